//! What a start keeps of producers is in proportion to their batches, however small these are.

use ottla_format::builder::{BatchFields, NewRecord, build_batch};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_log::recovery::{Aborted, Restart, predict_recovery};
use peak_alloc::PeakAlloc;
use std::collections::BTreeMap;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const BATCHES: i64 = 1 << 14;

/// A segment of batches of one record, of so many producers in turn.
fn segment(producers: i64, is_transactional: bool) -> Vec<u8> {
    let mut codecs = Codecs::new(Limits::default());
    let mut data = Vec::new();
    for offset in 0..BATCHES {
        let fields = BatchFields {
            base_offset: offset,
            producer_id: offset % producers,
            producer_epoch: 0,
            base_sequence: (offset / producers) as i32,
            is_transactional,
            ..BatchFields::default()
        };
        let record = NewRecord { timestamp: 1, value: Some(b""), ..NewRecord::default() };
        data.extend(build_batch(&fields, &[record], &mut codecs).expect("builds"));
    }
    data
}

/// Bytes of the segment, and those held at the most while a start over it is predicted.
fn taken(producers: i64, is_transactional: bool) -> (usize, usize) {
    let data = segment(producers, is_transactional);
    let size = data.len();
    let files = BTreeMap::from([(format!("{:020}.log", 0).into_bytes(), data)]);
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let restart = Restart::default();
    let after = predict_recovery(&files, "orders-0", &restart, Aborted::Sought, &|_| true);
    assert_eq!(after.expect("read").producers.len() as i64, producers);
    (size, ALLOCATOR.peak_usage() - before)
}

#[test]
fn a_start_takes_a_few_times_the_bytes_of_its_producers() {
    let (_, constant) = taken(1, false);
    for is_transactional in [false, true] {
        let (size, taken) = taken(BATCHES, is_transactional);
        let held = taken.saturating_sub(constant) as f64 / size as f64;
        assert!(held <= 4.0, "{is_transactional}: {held}");
    }
}
