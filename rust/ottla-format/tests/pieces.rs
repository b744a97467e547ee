//! A check in pieces, held to the check of all bytes at once.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test panics to fail")]

use ottla_format::builder::{BatchFields, NewRecord, build_batch};
use ottla_format::check::{Checker, Level, Pieces};
use ottla_format::compression::Codecs;
use ottla_format::error::Error;
use ottla_format::limits::Limits;

fn batches() -> Vec<u8> {
    let mut codecs = Codecs::new(Limits::default());
    let mut all = Vec::new();
    for (count, size) in [(1, 5), (3, 40), (1, 200), (2, 0)] {
        let value = vec![b'v'; size];
        let records: Vec<_> = (0..count)
            .map(|_| NewRecord {
                timestamp: 5,
                key: None,
                value: Some(&value),
                headers: vec![],
                offset_delta: None,
            })
            .collect();
        all.extend(build_batch(&BatchFields::default(), &records, &mut codecs).unwrap());
    }
    all
}

fn in_pieces(checker: &mut Checker, data: &[u8], piece_bytes: usize) -> Result<u64, Error> {
    let mut pieces = Pieces::of(data.len(), piece_bytes);
    while let Some(range) = pieces.next_range() {
        pieces.check(checker, &data[range])?;
    }
    Ok(pieces.records())
}

#[test]
fn pieces_of_any_size_give_the_records_or_the_fault_of_the_whole() {
    let whole = batches();
    let mut cases = vec![whole.clone(), Vec::new(), vec![0; 40]];
    for size in 0..whole.len() {
        cases.push(whole[..size].to_vec());
        let mut broken = whole.clone();
        broken[size] ^= 0x55;
        cases.push(broken);
    }
    for zeros in [1, 16, 17, 18, 70] {
        let mut padded = [&whole[..], &vec![0; zeros]].concat();
        cases.push(padded.clone());
        padded.push(1);
        cases.push(padded);
        cases.push([&whole[..90], &vec![0; zeros]].concat());
    }
    for level in [Level::Crc, Level::Decode, Level::Full] {
        let mut checker = Checker::new(level, Limits::default());
        for data in &cases {
            let wanted = checker.check_all(data);
            for piece_bytes in [0, 1, 16, 64, 100, 333, 10_000] {
                let found = in_pieces(&mut checker, data, piece_bytes);
                assert_eq!(found, wanted, "{} bytes, pieces of {piece_bytes}", data.len());
            }
        }
    }
}

#[test]
fn a_piece_is_no_larger_than_asked_for_or_than_its_first_batch() {
    let data = batches();
    let mut checker = Checker::new(Level::Full, Limits::default());
    let mut pieces = Pieces::of(data.len(), 16);
    let mut largest = 0;
    while let Some(range) = pieces.next_range() {
        largest = largest.max(range.len());
        pieces.check(&mut checker, &data[range]).unwrap();
    }
    assert_eq!(largest, 61 + 209);
}
