//! Offsets that reading gives, counted in what is left of a log.

mod logs;

use logs::{Log, Random};
use ottla_audit::{Isolation, PartitionReader, ReadOptions, ReadableOffsets, Remainder, Scanner};
use ottla_format::attributes::Compression;
use ottla_format::check::Level;
use ottla_format::limits::Limits;

const OPTIONS: ReadOptions = ReadOptions {
    isolation: Isolation::ReadUncommitted,
    start_offset: 0,
    end_offset: i64::MAX,
    stopped_cleanly: true,
};

/// A segment of all kinds of batches, some of them damaged.
fn any_log(random: &mut Random) -> Log {
    let mut log = Log::at(0);
    for _ in 0..10 + random.below(20) {
        let size = [5, 50, 500][random.below(3)];
        let value = random.bytes(size);
        let values = vec![value.as_slice(); 1 + random.below(4)];
        match random.below(4) {
            0 => log.compressed(Compression::Lz4, &values),
            _ => log.plain(&values),
        };
    }
    for _ in 0..random.below(4) {
        let position = random.below(log.bytes.len());
        log.bytes[position] ^= 1 << random.below(8);
    }
    log
}

/// The offset of each record that reading gives.
fn read(bytes: &[u8]) -> Vec<i64> {
    let mut reader = PartitionReader::new(vec![Some(0)], OPTIONS);
    let mut scanner = Scanner::new(Level::Crc, Limits::default());
    let mut offsets = Vec::new();
    while reader.segment().is_some() {
        let mut visit = |record: &ottla_format::batch::Record<'_>| offsets.push(record.offset);
        reader.visit(&mut scanner, &bytes, &mut visit).expect("bytes in memory are read");
    }
    offsets
}

fn count(bytes: &[u8], remainders: Vec<Remainder>) -> (u64, Vec<u64>) {
    let mut counted =
        ReadableOffsets::new(PartitionReader::new(vec![Some(0)], OPTIONS), remainders);
    let mut scanner = Scanner::new(Level::Crc, Limits::default());
    while counted.segment().is_some() {
        counted.step(&mut scanner, &bytes).expect("bytes in memory are read");
    }
    (counted.total(), counted.kept().to_vec())
}

/// The same for remainders that are asked for once everything is read.
fn count_later(bytes: &[u8], remainders: &[Remainder]) -> Vec<u64> {
    let mut counted =
        ReadableOffsets::new(PartitionReader::new(vec![Some(0)], OPTIONS), Vec::new());
    let mut scanner = Scanner::new(Level::Crc, Limits::default());
    while counted.segment().is_some() {
        counted.step(&mut scanner, &bytes).expect("bytes in memory are read");
    }
    let known = counted.into_known();
    remainders.iter().map(|left| known.kept_by(left).expect("few are remembered")).collect()
}

fn between(start_offset: i64, end_offset: i64, bytes: u64) -> Remainder {
    Remainder { start_offset, end_offset, segment_bytes: vec![bytes] }
}

#[test]
fn a_remainder_has_the_offsets_that_are_read_between_its_ends() {
    let mut random = Random(7);
    for _ in 0..300 {
        let log = any_log(&mut random);
        let offsets = read(&log.bytes);
        let ends: Vec<_> = (0..5)
            .map(|_| {
                let limit = log.next as usize + 2;
                (random.below(limit) as i64, random.below(limit) as i64)
            })
            .collect();
        let remainders: Vec<_> =
            ends.iter().map(|&(start, end)| between(start, end, u64::MAX)).collect();
        let later = count_later(&log.bytes, &remainders);
        let (total, kept) = count(&log.bytes, remainders);
        assert_eq!(kept, later);
        assert_eq!(total, offsets.len() as u64);
        for (&(start, end), kept) in ends.iter().zip(kept) {
            let inside = offsets.iter().filter(|offset| (start..end).contains(*offset));
            assert_eq!(kept, inside.count() as u64);
        }
    }
}

#[test]
fn bytes_that_are_cut_off_take_their_batches_with_them() {
    let mut log = Log::at(0);
    for _ in 0..10 {
        log.plain(&[b"one", b"two", b"three"]);
    }
    let (third, size, _) = log.batches[2];
    let behind_the_third = (third + size) as u64;
    let remainders = vec![
        between(0, i64::MAX, behind_the_third),
        between(0, i64::MAX, behind_the_third - 1),
        between(4, i64::MAX, behind_the_third),
        Remainder { start_offset: 0, end_offset: i64::MAX, segment_bytes: Vec::new() },
    ];
    assert_eq!(count_later(&log.bytes, &remainders), [9, 6, 5, 0]);
    assert_eq!(count(&log.bytes, remainders), (30, vec![9, 6, 5, 0]));
}
