//! Offsets that consumers do not get: their causes, what speaks for them, and the bounds.

use ottla_audit::partition::gaps::{MAX_RANGES, OffsetRange, Ranges};
use ottla_audit::partition::side_check::SideFiles;
use ottla_audit::{
    Cause, Confidence, FindingKind, Gap, PartitionContext, PartitionScan, Reader, RetentionEffect,
    Scanner, SegmentContext, SegmentScan, Severity, SideFile, merge_partition,
    merge_partition_with,
};
use ottla_format::builder::{
    BatchFields, NewControlRecord, NewRecord, build_batch, build_control_batch,
};
use ottla_format::check::Level;
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_log::sidefiles::snapshot::{SnapshotEntry, write_snapshot};
use std::io;

const TIME: i64 = 1_700_000_000_000;
const NOW: i64 = TIME + 86_400_000;

/// A batch of `count` records from `base_offset` on.
fn plain(base_offset: i64, count: i64, epoch: i32) -> Vec<u8> {
    let fields =
        BatchFields { base_offset, partition_leader_epoch: epoch, ..BatchFields::default() };
    batch(&fields, count, TIME)
}

fn batch(fields: &BatchFields, count: i64, timestamp: i64) -> Vec<u8> {
    let record = NewRecord { timestamp, value: Some(b"value"), ..NewRecord::default() };
    let records: Vec<_> = (0..count).map(|_| record.clone()).collect();
    build_batch(fields, &records, &mut Codecs::new(Limits::default())).expect("builds")
}

fn produced(base_offset: i64, producer_id: i64) -> Vec<u8> {
    let fields = BatchFields {
        base_offset,
        producer_id,
        producer_epoch: 0,
        base_sequence: 0,
        is_transactional: true,
        ..BatchFields::default()
    };
    batch(&fields, 2, TIME)
}

fn marker(base_offset: i64, producer_id: i64, record: NewControlRecord<'_>) -> Vec<u8> {
    let fields =
        BatchFields { base_offset, producer_id, producer_epoch: 0, ..BatchFields::default() };
    build_control_batch(&fields, TIME, record, &mut Codecs::new(Limits::default())).expect("builds")
}

fn scan(base_offset: i64, batches: &[Vec<u8>]) -> SegmentScan {
    let bytes = batches.concat();
    let context = SegmentContext {
        base_offset: Some(base_offset),
        is_active: true,
        now_ms: NOW,
        ..SegmentContext::default()
    };
    let mut scanner = Scanner::new(Level::Full, Limits::default());
    scanner.scan(&bytes.as_slice(), context, &mut |_| true, None).expect("reads")
}

fn merged(base_offset: i64, batches: &[Vec<u8>], context: &PartitionContext) -> PartitionScan {
    merge_partition(vec![scan(base_offset, batches)], context)
}

fn only(scan: &PartitionScan) -> &Gap {
    assert_eq!(scan.gaps.len(), 1, "{:?}", scan.gaps);
    &scan.gaps[0]
}

fn place(gap: &Gap) -> (i64, i64, u64, Cause, Confidence) {
    (gap.first_offset, gap.last_offset, gap.offsets, gap.cause, gap.confidence)
}

#[test]
fn a_gap_below_the_first_dirty_offset_is_certainly_compaction() {
    let batches = [plain(0, 4, 0), plain(9, 1, 0)];
    let context = PartitionContext { first_dirty_offset: Some(9), ..PartitionContext::default() };
    let found = merged(0, &batches, &context);
    assert_eq!(place(only(&found)), (4, 8, 5, Cause::Compaction, Confidence::Certain));
    let finding = &found.findings[0].finding;
    assert_eq!((finding.kind, finding.severity), (FindingKind::OffsetGap, Severity::Info));
    assert!(finding.message.text().contains("cleaned up to offset 9"), "{}", finding.message);
}

#[test]
fn a_gap_above_the_first_dirty_offset_is_unexplained_without_other_traces() {
    let batches = [plain(0, 4, 0), plain(9, 1, 0)];
    let context = PartitionContext { first_dirty_offset: Some(3), ..PartitionContext::default() };
    let found = merged(0, &batches, &context);
    assert_eq!(only(&found).cause, Cause::Unexplained);
    assert_eq!(found.findings[0].finding.severity, Severity::Warning);
    assert!(only(&found).evidence.contains("has only reached offset 3"));
}

#[test]
fn the_configuration_of_the_topic_and_internal_topics_explain_a_gap() {
    let batches = [plain(0, 4, 0), plain(9, 1, 0)];
    for context in [
        PartitionContext {
            cleanup_policy: Some("compact,delete".to_owned()),
            ..PartitionContext::default()
        },
        PartitionContext {
            topic: Some("__transaction_state".to_owned()),
            ..PartitionContext::default()
        },
    ] {
        let found = merged(0, &batches, &context);
        assert_eq!(place(only(&found)), (4, 8, 5, Cause::Compaction, Confidence::Likely));
    }
    let deleted = PartitionContext {
        topic: Some("__transaction_state".to_owned()),
        cleanup_policy: Some("delete".to_owned()),
        ..PartitionContext::default()
    };
    assert_eq!(only(&merged(0, &batches, &deleted)).cause, Cause::Unexplained);
}

#[test]
fn a_gap_where_the_leader_changed_says_so() {
    let batches = [plain(0, 4, 3), plain(9, 1, 4)];
    let said = |leader_epochs| {
        let found = merged(0, &batches, &PartitionContext { leader_epochs, ..Default::default() });
        (only(&found).cause, only(&found).confidence)
    };
    assert_eq!(said(vec![]), (Cause::EpochChange, Confidence::Possible));
    assert_eq!(said(vec![(3, 0), (4, 9)]), (Cause::EpochChange, Confidence::Likely));
    // The new leader began inside the gap: its first batches are gone.
    assert_eq!(said(vec![(3, 0), (4, 4)]), (Cause::Unexplained, Confidence::Likely));
}

#[test]
fn what_lies_below_the_log_start_is_retention_deletion_or_in_a_tier() {
    let batches = [plain(20, 10, 0)];
    let said = |log_start_offset, remote_storage| {
        let context = PartitionContext {
            log_start_offset,
            remote_storage,
            is_head: true,
            ..PartitionContext::default()
        };
        let gaps = merged(20, &batches, &context).gaps;
        gaps.iter().map(|gap| (gap.first_offset, gap.last_offset, gap.cause)).collect::<Vec<_>>()
    };
    let retention = (0, 19, Cause::Retention);
    assert_eq!(said(None, None), [retention]);
    assert_eq!(said(Some(25), None), [retention, (20, 24, Cause::DeleteRecords)]);
    assert_eq!(said(Some(5), None), [(0, 4, Cause::Retention), (5, 19, Cause::TierBoundary)]);
    assert_eq!(said(None, Some(true)), [(0, 19, Cause::TierBoundary)]);
    // Of files asked for by name nobody knows what came before.
    let context = PartitionContext::default();
    assert_eq!(merged(20, &batches, &context).gaps, []);
}

#[test]
fn what_files_beside_the_log_know_below_its_first_segment_is_lost_and_not_deleted() {
    let batches = [plain(20, 10, 0)];
    let log = PartitionContext {
        is_head: true,
        high_watermark: Some(30),
        cleanup_policy: Some("compact".to_owned()),
        ..PartitionContext::default()
    };
    let said = |context: PartitionContext| {
        let found = merged(20, &batches, &context);
        let gaps = found.gaps.iter().map(|gap| (gap.first_offset, gap.last_offset, gap.cause));
        (found.findings.len(), gaps.collect::<Vec<_>>())
    };
    let retention = |last| (0, last, Cause::Retention);
    let lost = |first| (first, 19, Cause::MissingFile);
    let orphans = vec![5, 12];
    let epochs = vec![(0, 8), (1, 25)];
    assert_eq!(said(log.clone()), (0, vec![retention(19)]));
    // An index without its segment.
    let indexed = PartitionContext { orphans, ..log.clone() };
    assert_eq!(said(indexed.clone()), (1, vec![retention(4), lost(5)]));
    // Deleted up to there, and the index of a later file is left.
    let deleted = PartitionContext { log_start_offset: Some(9), ..indexed.clone() };
    assert_eq!(said(deleted), (1, vec![retention(8), lost(9)]));
    // The first epoch begins where the log does.
    let early = PartitionContext { leader_epochs: epochs, ..log.clone() };
    assert_eq!(said(early.clone()), (1, vec![retention(7), lost(8)]));
    let moved = PartitionContext { leader_epochs: vec![(0, 20), (1, 25)], ..log };
    assert_eq!(said(moved), (0, vec![retention(19)]));
    // The older segments are elsewhere, or may be: the log directory's checkpoints are not known.
    let tiered = PartitionContext { remote_storage: Some(true), ..early.clone() };
    assert_eq!(said(tiered), (0, vec![(0, 19, Cause::TierBoundary)]));
    let copied = PartitionContext { high_watermark: None, ..early };
    assert_eq!(said(copied), (0, vec![retention(19)]));
    // Of files asked for by name nobody knows what came before.
    assert_eq!(said(PartitionContext { is_head: false, ..indexed }), (0, vec![]));
}

#[test]
fn markers_are_gaps_for_everybody_and_aborted_data_for_read_committed() {
    let abort = NewControlRecord::Abort { coordinator_epoch: 0 };
    let commit = NewControlRecord::Commit { coordinator_epoch: 0 };
    let batches = [produced(0, 7), marker(2, 7, abort), produced(3, 8), marker(5, 8, commit)];
    let found = merged(0, &batches, &PartitionContext::default());
    let gaps: Vec<_> =
        found.gaps.iter().map(|gap| (gap.first_offset, gap.reader, gap.cause)).collect();
    assert_eq!(
        gaps,
        [
            (0, Reader::ReadCommitted, Cause::AbortedData),
            (2, Reader::All, Cause::ControlRecords),
            (5, Reader::All, Cause::ControlRecords),
        ]
    );
    assert_eq!(found.gaps[0].offsets, 2);
    assert_eq!((found.ended.aborted.len(), found.ended.committed.len()), (1, 1));
    assert_eq!(found.ended.committed[0].1.marker_offset, 5);
}

#[test]
fn many_lawful_gaps_of_a_segment_are_one_finding_and_their_sum_is_kept() {
    let count = 3000;
    let batches: Vec<_> = (0..count).map(|number| plain(number * 3, 1, 0)).collect();
    let context =
        PartitionContext { first_dirty_offset: Some(i64::MAX), ..PartitionContext::default() };
    let found = merged(0, &batches, &context);
    assert_eq!(found.findings.len(), 1, "{:?}", found.findings.get(1));
    let finding = &found.findings[0].finding;
    assert_eq!((finding.severity, finding.cause), (Severity::Info, Some(Cause::Compaction)));
    assert!(
        finding.message.text().starts_with("2999 ranges with 5998 offsets"),
        "{}",
        finding.message
    );
    assert_eq!(found.suppressed, []);
    let sums = found.gaps.iter().map(|gap| (gap.ranges, gap.offsets));
    let sums = sums.fold((0, 0), |sum, gap| (sum.0 + gap.0, sum.1 + gap.1));
    assert_eq!(sums, (2999, 5998));
    assert!(found.gaps.len() <= 1001);
}

#[test]
fn ranges_joined_anywhere_are_those_of_one_pass() {
    let mut state = 1_u64;
    let mut next = |limit: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    for _ in 0..500 {
        let count = next(3 * MAX_RANGES as u64);
        let mut offset = 0;
        let ranges: Vec<_> = (0..count)
            .map(|number| {
                let first_offset = offset + next(3) as i64;
                let last_offset = first_offset + next(3) as i64;
                offset = last_offset + 1;
                OffsetRange { first_offset, last_offset, position: number }
            })
            .collect();
        let pushed = |ranges: &[OffsetRange]| {
            let mut all = Ranges::default();
            for &range in ranges {
                all.push(range);
            }
            all
        };
        let (one, other) = (next(count + 1) as usize, next(count + 1) as usize);
        let (low, high) = (one.min(other), one.max(other));
        let parts = [&ranges[..low], &ranges[low..high], &ranges[high..]].map(pushed);
        let [mut left, middle, right] = parts.clone();
        left.append(&middle);
        left.append(&right);
        let [mut grouped, mut tail, end] = parts;
        tail.append(&end);
        grouped.append(&tail);
        let whole = pushed(&ranges);
        assert_eq!(left, whole);
        assert_eq!(grouped, whole);
        let offsets: u64 = ranges.iter().map(OffsetRange::offsets).sum();
        let listed: u64 = whole.listed().iter().map(OffsetRange::offsets).sum();
        assert_eq!(listed + whole.rest().map_or(0, |rest| rest.offsets), offsets);
    }
}

#[test]
fn a_segment_tells_what_its_timestamps_do_to_retention() {
    let said = |timestamp| {
        let fields = BatchFields { base_offset: 1, ..BatchFields::default() };
        let found = scan(0, &[batch(&fields, 1, timestamp)]);
        (RetentionEffect::of(&found), found.newest.map(|newest| newest.offset))
    };
    assert_eq!(said(TIME), (None, Some(1)));
    assert_eq!(said(NOW + 7_200_000), (Some(RetentionEffect::HeldBack), Some(1)));
    assert_eq!(said(TIME / 1000), (Some(RetentionEffect::ExpiresAtOnce), Some(1)));
}

/// One snapshot.
struct Snapshot([i64; 1], Vec<u8>);

impl SideFiles for Snapshot {
    fn snapshots(&self) -> &[i64] {
        &self.0
    }

    fn read(&self, file: SideFile, _segment: usize) -> io::Result<Option<Vec<u8>>> {
        Ok((file == SideFile::Snapshot(self.0[0])).then(|| self.1.clone()))
    }
}

#[test]
fn a_transaction_whose_data_retention_took_still_stops_readers_at_the_log_start() {
    let entry = SnapshotEntry {
        producer_id: 7,
        producer_epoch: 2,
        last_sequence: 1,
        last_offset: 13,
        offset_delta: 1,
        last_timestamp: TIME - 3_600_000,
        coordinator_epoch: -1,
        transaction_first_offset: Some(12),
    };
    let snapshot = Snapshot([24], write_snapshot([entry].into_iter()));
    let segments = || vec![scan(20, &[plain(20, 4, 0), plain(24, 4, 0)])];
    let found = merge_partition_with(&segments(), &PartitionContext::default(), &snapshot);
    assert_eq!(found.last_stable_offset, 20);
    let finding = &found.findings[0].finding;
    assert_eq!((finding.kind, finding.severity), (FindingKind::OpenTransaction, Severity::Warning));
    assert_eq!((finding.first_offset, finding.last_offset), (Some(12), Some(19)));
    assert_eq!(finding.producer_id, Some(7));
    // A marker behind the snapshot ends it.
    let abort = NewControlRecord::Abort { coordinator_epoch: 0 };
    let ended = vec![scan(20, &[plain(20, 4, 0), marker(24, 7, abort)])];
    let found = merge_partition_with(&ended, &PartitionContext::default(), &snapshot);
    assert_eq!((found.last_stable_offset, found.begun_below.len()), (25, 0));
}
