//! Batches are followed by their headers: whole ones, whose offsets continue each other.

use ottla_log::framing::{Followed, Range, Stop, follow_batches};
use ottla_log::source::Source;
use proptest::prelude::*;
use std::io;

/// A batch of magic 2 with so many offsets and records, of so many bytes behind its header.
fn batch(base_offset: i64, offsets: i32, records: i32, bytes: usize) -> Vec<u8> {
    let mut data = vec![7; 61 + bytes];
    data[0..8].copy_from_slice(&base_offset.to_be_bytes());
    data[8..12].copy_from_slice(&(49 + bytes as i32).to_be_bytes());
    data[12..16].copy_from_slice(&5_i32.to_be_bytes());
    data[16] = 2;
    data[21..23].copy_from_slice(&0_u16.to_be_bytes());
    data[23..27].copy_from_slice(&(offsets - 1).to_be_bytes());
    data[57..61].copy_from_slice(&records.to_be_bytes());
    data
}

/// A message of magic 0 or 1.
fn message(magic: u8, offset: i64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; 26 + bytes];
    data[0..8].copy_from_slice(&offset.to_be_bytes());
    data[8..12].copy_from_slice(&(14 + bytes as i32).to_be_bytes());
    data[16] = magic;
    data
}

fn everything(log: &[u8]) -> Range {
    Range {
        position: 0,
        stop: log.len() as u64,
        max_bytes: u64::MAX,
        next_offset: None,
        has_holes: false,
    }
}

fn follow(log: &[u8], range: Range) -> Followed {
    follow_batches(&log, range, 64).expect("read")
}

#[test]
fn batches_are_followed_to_the_end() {
    let log = [batch(10, 3, 3, 0), batch(13, 1, 1, 200)].concat();
    let found = follow(&log, everything(&log));
    assert_eq!((found.last, found.end, found.batches), (61, 322, 2));
    assert_eq!((found.first_offset, found.next_offset), (Some(10), Some(14)));
    assert_eq!((found.leader_epoch, found.rewritten, found.stop), (5, 0, Stop::End));
    assert_eq!(follow(&log, Range { position: 322, ..everything(&log) }).batches, 0);
    assert_eq!(follow(&[], everything(&[])).stop, Stop::End);
    let beyond = Range { position: u64::MAX, stop: u64::MAX, ..everything(&log) };
    assert_eq!(follow(&log, beyond).stop, Stop::End);
}

#[test]
fn a_batch_that_is_not_whole_ends_the_run() {
    let log = [batch(0, 1, 1, 9), batch(1, 1, 1, 9)].concat();
    for stop in 71..140 {
        let range = Range { stop, ..everything(&log) };
        let found = follow(&log, range);
        assert_eq!((found.end, found.stop), (70, Stop::Torn), "{stop}");
    }
}

#[test]
fn what_is_no_header_ends_the_run() {
    let good = batch(0, 1, 1, 0);
    for (at, bytes) in [
        (8, 48_i32.to_be_bytes().to_vec()),
        (8, (-1_i32).to_be_bytes().to_vec()),
        (16, vec![3]),
        (16, vec![255]),
        (0, (-1_i64).to_be_bytes().to_vec()),
        (0, i64::MAX.to_be_bytes().to_vec()),
        (23, (-1_i32).to_be_bytes().to_vec()),
    ] {
        let mut bad = batch(1, 1, 1, 0);
        bad[at..at + bytes.len()].copy_from_slice(&bytes);
        let log = [good.clone(), bad].concat();
        let found = follow(&log, Range { has_holes: true, ..everything(&log) });
        assert_eq!((found.end, found.stop), (61, Stop::NoBatch), "{at} {bytes:?}");
    }
}

#[test]
fn offsets_must_continue_unless_holes_are_allowed() {
    let log = [batch(4, 2, 2, 0), batch(8, 1, 1, 0), batch(3, 1, 1, 0)].concat();
    let range = everything(&log);
    assert_eq!(follow(&log, range).stop, Stop::Hole(8));
    assert_eq!(follow(&log, Range { next_offset: Some(3), ..range }).stop, Stop::Hole(4));
    assert_eq!(follow(&log, Range { next_offset: Some(5), ..range }).stop, Stop::Back(4));
    let found = follow(&log, Range { has_holes: true, ..range });
    assert_eq!((found.end, found.stop), (122, Stop::Back(3)));
}

#[test]
fn legacy_batches_may_begin_before_the_offset_they_name() {
    let log = [message(0, 0, 3), message(1, 9, 0), batch(10, 1, 1, 0)].concat();
    let found = follow(&log, everything(&log));
    assert_eq!((found.next_offset, found.batches, found.stop), (Some(11), 3, Stop::End));
    let log = [message(1, 9, 0), message(1, 9, 0)].concat();
    assert_eq!(follow(&log, everything(&log)).stop, Stop::Back(9));
}

#[test]
fn marks_of_the_cleaner_are_counted() {
    let mut horizon = batch(9, 1, 1, 0);
    horizon[22] = 0x40;
    let log = [batch(0, 3, 2, 0), batch(3, 6, 0, 0), horizon, batch(10, 2, 2, 0)].concat();
    assert_eq!(follow(&log, everything(&log)).rewritten, 3);
}

#[test]
fn a_limit_is_reached_by_whole_batches() {
    let log = [batch(0, 1, 1, 0), batch(1, 1, 1, 0), batch(2, 1, 1, 0)].concat();
    for (max_bytes, end, stop) in [
        (0, 0, Stop::Limit),
        (1, 61, Stop::Limit),
        (61, 61, Stop::Limit),
        (62, 122, Stop::Limit),
        (u64::MAX, 183, Stop::End),
    ] {
        let found = follow(&log, Range { max_bytes, ..everything(&log) });
        assert_eq!((found.end, found.stop), (end, stop), "{max_bytes}");
    }
}

#[test]
fn every_field_that_makes_a_batch_is_in_the_digest() {
    let log = batch(0, 3, 3, 40);
    let digest = |log: &[u8]| follow(log, everything(log)).digest;
    for at in [7, 15, 17, 20] {
        let mut other = log.clone();
        other[at] ^= 1;
        assert_ne!(digest(&other), digest(&log), "{at}");
    }
}

struct Unreadable;

impl Source for Unreadable {
    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(5))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(1 << 20)
    }
}

#[test]
fn what_cannot_be_read_is_an_error_and_no_end() {
    let range = Range { stop: 1 << 20, ..everything(&[]) };
    let found = follow_batches(&Unreadable, range, 4096);
    assert_eq!(found.unwrap_err().raw_os_error(), Some(5));
}

proptest! {
    #[test]
    fn digests_of_parts_add_up_and_runs_do_not_depend_on_what_is_read_at_once(
        sizes in proptest::collection::vec(0..300_usize, 0..20),
        cut in any::<proptest::sample::Index>(),
        tail in proptest::collection::vec(any::<u8>(), 0..9),
        read_bytes in 1..400_u64,
    ) {
        let batches: Vec<_> =
            sizes.iter().enumerate().map(|(at, &size)| batch(at as i64, 1, 1, size)).collect();
        let cut = cut.index(batches.len() + 1);
        let whole = batches.concat();
        let left = batches[..cut].concat();
        let log = [whole.clone(), tail.clone()].concat();
        let found = follow_batches(&log.as_slice(), everything(&log), read_bytes).unwrap();
        prop_assert_eq!(found.end, whole.len() as u64);
        prop_assert_eq!(found.batches, batches.len() as u64);
        prop_assert_eq!(found.stop, if tail.is_empty() { Stop::End } else { Stop::Torn });
        let first = follow(&log, Range { stop: left.len() as u64, ..everything(&log) });
        let second = follow(
            &log,
            Range { position: left.len() as u64, next_offset: first.next_offset, ..everything(&log) },
        );
        prop_assert_eq!(first.digest.wrapping_add(second.digest), found.digest);
        prop_assert_eq!(second.end, found.end);
    }
}
