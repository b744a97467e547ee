//! Whole batches are found by their sizes, and nothing else is believed.

use ottla_log::framing::{WholeBatches, whole_batches};
use ottla_log::source::Source;
use proptest::prelude::*;
use std::io;

const MIN_BATCH_BYTES: usize = 26;

/// A batch whose size field says so, of so many bytes.
fn batch(size: i32, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    data[8..12].copy_from_slice(&size.to_be_bytes());
    data
}

fn whole(bytes: usize) -> Vec<u8> {
    batch(bytes as i32 - 12, bytes)
}

fn find(data: &[u8], position: u64, stop: u64, max_bytes: Option<u64>) -> (u64, u64) {
    let WholeBatches { last, end } =
        whole_batches(&data, position, stop, max_bytes, 64).expect("read");
    (last, end)
}

#[test]
fn batches_end_where_the_next_one_is_not_whole() {
    let log = [whole(26), whole(100), whole(3_000)].concat();
    let size = log.len() as u64;
    assert_eq!(find(&log, 0, size, None), (126, 3_126));
    assert_eq!(find(&log, 0, size - 1, None), (26, 126));
    assert_eq!(find(&log[..3_000], 0, size, None), (126, 3_126));
    assert_eq!(find(&log[..140], 0, size, None), (26, 126));
    assert_eq!(find(&log, 126, size, None), (126, 3_126));
    assert_eq!(find(&log, 126, 126, None), (126, 126));
    assert_eq!(find(&log, u64::MAX, u64::MAX, None), (u64::MAX, u64::MAX));
    assert_eq!(find(&[], 0, 0, None), (0, 0));
}

#[test]
fn a_budget_is_used_up_by_whole_batches() {
    let log = [whole(26), whole(26), whole(26)].concat();
    for (max_bytes, end) in [(0, 0), (1, 26), (26, 26), (27, 52), (u64::MAX, 78)] {
        assert_eq!(find(&log, 0, 78, Some(max_bytes)).1, end, "{max_bytes}");
    }
}

#[test]
fn a_size_that_no_batch_has_ends_the_run() {
    for size in [i32::MIN, -1, 0, 13, i32::MAX] {
        let log = [whole(50), batch(size, 50)].concat();
        assert_eq!(find(&log, 0, 100, None), (0, 50), "{size}");
        assert_eq!(find(&log, 50, 100, None), (50, 50), "{size}");
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
    let found = whole_batches(&Unreadable, 0, 1 << 20, None, 4096);
    assert_eq!(found.unwrap_err().raw_os_error(), Some(5));
}

proptest! {
    #[test]
    fn any_bytes_are_read_as_one_would_by_hand(
        sizes in proptest::collection::vec(14..300_i32, 0..20),
        tail in proptest::collection::vec(any::<u8>(), 0..60),
        read_bytes in 1..400_u64,
    ) {
        let mut log: Vec<u8> = sizes.iter().flat_map(|&size| whole(size as usize + 12)).collect();
        log.extend(tail);
        let (mut last, mut end) = (0, 0);
        while let Some(size) = log.get(end + 8..end + 12) {
            let size = i64::from(i32::from_be_bytes(size.try_into().unwrap())) + 12;
            if size < MIN_BATCH_BYTES as i64 || end as i64 + size > log.len() as i64 {
                break;
            }
            (last, end) = (end, end + size as usize);
        }
        let found = whole_batches(&log.as_slice(), 0, log.len() as u64, None, read_bytes).unwrap();
        prop_assert_eq!(found, WholeBatches { last: last as u64, end: end as u64 });
    }
}
