//! Where a bound of the audit is met it says so, as a warning: what was not followed is not sound.

mod logs;

use logs::{Log, active, closed};
use ottla_audit::partition::producers::MAX_PRODUCERS;
use ottla_audit::{
    Finding, FindingKind, PartitionContext, Scanner, SegmentContext, SegmentScan, Severity,
    merge_partition,
};
use ottla_format::builder::BatchFields;
use ottla_format::check::Level;
use ottla_format::limits::Limits;

/// A log with a batch of one record of each of so many producers.
fn one_batch_each(base_offset: i64, producers: i64) -> Log {
    let mut log = Log::at(base_offset);
    for producer_id in base_offset..base_offset + producers {
        let idempotent =
            BatchFields { producer_id, producer_epoch: 0, base_sequence: 0, ..log.fields() };
        log.with(idempotent, &[b""]);
    }
    log
}

fn scan(log: &Log, context: SegmentContext) -> SegmentScan {
    let mut scanner = Scanner::new(Level::Crc, Limits::default());
    let bytes = log.bytes.as_slice();
    scanner.scan(&bytes, context, &mut |_| true, None).expect("a buffer can be read")
}

fn found_in(segments: Vec<SegmentScan>) -> Vec<Finding> {
    let merged = merge_partition(segments, &PartitionContext::default());
    merged.findings.into_iter().map(|placed| placed.finding).collect()
}

#[test]
fn producers_beyond_the_bound_of_a_segment_are_counted_in_a_warning() {
    let bound = MAX_PRODUCERS as i64;
    let log = one_batch_each(0, bound + 2);
    let found = found_in(vec![scan(&log, active(0))]);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.kind, finding.severity), (FindingKind::LimitExceeded, Severity::Warning));
    assert!(finding.message.text().starts_with("2 batches belong to producers beyond the first"));
}

#[test]
fn producers_beyond_the_bound_of_a_partition_are_counted_in_a_warning() {
    let bound = MAX_PRODUCERS as i64;
    let (first, second) = (one_batch_each(0, bound), one_batch_each(bound, 3));
    let fits = found_in(vec![scan(&first, active(0))]);
    assert_eq!(fits, []);
    let found = found_in(vec![scan(&first, closed(0, bound)), scan(&second, active(bound))]);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.kind, finding.severity), (FindingKind::LimitExceeded, Severity::Warning));
    assert!(finding.message.text().starts_with("3 producers are beyond the first"));
}

#[test]
fn leader_epochs_beyond_the_bound_are_a_warning() {
    let mut log = Log::at(0);
    for epoch in 0..4097 {
        log.epoch = epoch;
        log.plain(&[b""]);
    }
    let found = found_in(vec![scan(&log, active(0))]);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.kind, finding.severity), (FindingKind::LimitExceeded, Severity::Warning));
    assert!(finding.message.text().contains("later changes were not followed"));
}
