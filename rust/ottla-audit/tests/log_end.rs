//! The end of a log: what proves that it went on, to the offset and to the byte.

mod logs;

use logs::{Log, active};
use ottla_audit::{PartitionContext, Scanner, Severity, merge_partition};
use ottla_format::check::Level;
use ottla_format::limits::Limits;

/// Severity, first and last offset of the one finding about a log of the offsets 0 and 1 with so
/// many bytes of noise behind it.
fn judged(noise: usize, context: &PartitionContext) -> (Severity, Option<i64>, Option<i64>) {
    let mut log = Log::at(0);
    log.plain(&[b"first"]).plain(&[b"second"]);
    log.bytes.extend(vec![0xa5; noise]);
    let mut scanner = Scanner::new(Level::Full, Limits::default());
    let bytes = log.bytes.as_slice();
    let scan = scanner.scan(&bytes, active(0), &mut |_| true, None).expect("a buffer can be read");
    let found = merge_partition(vec![scan], context);
    assert_eq!((found.log_end_offset, found.findings.len()), (2, 1), "{:?}", found.findings);
    let finding = &found.findings[0].finding;
    (finding.severity, finding.first_offset, finding.last_offset)
}

#[test]
fn what_ends_with_the_log_proves_nothing_and_what_goes_on_does() {
    let nothing = judged(40, &PartitionContext::default());
    assert!(nothing.0 < Severity::Error);
    for (end, lost) in [(1, None), (2, None), (3, Some(2)), (9, Some(8))] {
        let expected = lost.map_or(nothing, |last| (Severity::Error, Some(2), Some(last)));
        let recovery_point =
            PartitionContext { recovery_point: Some(end), ..PartitionContext::default() };
        let high_watermark =
            PartitionContext { high_watermark: Some(end), ..PartitionContext::default() };
        let leader_epochs = PartitionContext {
            leader_epochs: vec![(0, 0), (1, end)],
            ..PartitionContext::default()
        };
        assert_eq!(judged(40, &recovery_point), expected, "recovery point {end}");
        assert_eq!(judged(40, &high_watermark), expected, "high watermark {end}");
        assert_eq!(judged(40, &leader_epochs), expected, "leader epoch {end}");
    }
}

#[test]
fn more_than_the_largest_batch_cannot_be_one_that_was_torn() {
    let limit =
        |bytes| PartitionContext { max_message_bytes: Some(bytes), ..PartitionContext::default() };
    let lost = (Severity::Error, Some(2), None);
    assert_ne!(judged(500, &limit(500)), lost);
    assert_eq!(judged(500, &limit(499)), lost);
    // A topic's bound may have been higher when its batches came.
    assert_ne!(judged(40, &limit(1)), lost);
}
