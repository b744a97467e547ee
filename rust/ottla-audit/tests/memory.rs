//! What is kept of producers is in proportion to their batches, however small these are.

mod logs;

use logs::{Log, active};
use ottla_audit::partition::side_check::NoSideFiles;
use ottla_audit::{PartitionContext, Scanner, merge_partition_with};
use ottla_format::builder::BatchFields;
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const PRODUCERS: i64 = 1 << 14;

/// A log of so many producers, each with as many batches, one after the other or in turn.
fn log(producers: i64, batches: i64, is_transactional: bool) -> Log {
    let mut log = Log::at(0);
    for number in 0..producers * batches {
        let fields = BatchFields {
            producer_id: number % producers,
            producer_epoch: 0,
            base_sequence: (number / producers) as i32,
            is_transactional,
            ..log.fields()
        };
        log.with(fields, &[b""]);
    }
    log
}

/// Bytes held at the most while a log is scanned and merged.
fn taken(log: &Log) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut scanner = Scanner::new(Level::Full, Limits::default());
    let scan = scanner
        .scan(&log.bytes.as_slice(), active(0), &mut |_| true, None)
        .expect("a buffer can be read");
    let merged = merge_partition_with([&scan], &PartitionContext::default(), &NoSideFiles);
    assert!(!merged.producers.is_empty());
    ALLOCATOR.peak_usage() - before
}

/// Bytes that so many producers take, beyond what a log of as many batches takes.
fn taken_by(producers: i64, batches: i64, is_transactional: bool) -> (usize, f64) {
    let constant = taken(&log(1, producers * batches, false));
    let log = log(producers, batches, is_transactional);
    (log.bytes.len(), taken(&log).saturating_sub(constant) as f64)
}

#[test]
fn a_producer_takes_a_few_times_its_batches() {
    for (batches, times) in [(1, 3.5), (2, 4.0), (4, 3.0)] {
        let (bytes, taken) = taken_by(PRODUCERS, batches, false);
        let held = taken / bytes as f64;
        assert!(held <= times, "{batches}: {held}");
    }
    // Of open transactions, beyond the findings: both have as many of them as a partition keeps.
    let (bytes, some) = taken_by(PRODUCERS, 1, true);
    let (twice_bytes, twice) = taken_by(2 * PRODUCERS, 1, true);
    let held = (twice - some) / (twice_bytes - bytes) as f64;
    assert!(held <= 4.0, "open transactions: {held}");
}
