//! Snapshots, transaction indexes and leader epochs against the log: what contradicts it, and what
//! retention, expiry, compaction and damage make lawful.

use ottla_audit::partition::side_check::SideFiles;
use ottla_audit::segment::index_check::Indexes;
use ottla_audit::{
    Finding, FindingKind, PartitionContext, Scanner, SegmentContext, SegmentScan, Severity,
    SideFile, merge_partition_with,
};
use ottla_format::builder::{
    BatchFields, NewControlRecord, NewRecord, build_batch, build_control_batch,
};
use ottla_format::check::Level;
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_log::sidefiles::snapshot::{SnapshotEntry, write_snapshot};
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use std::collections::HashMap;
use std::io;

const TIME: i64 = 1_700_000_000_000;

/// The files beside a log, in memory.
#[derive(Clone, Debug, Default)]
struct Files {
    snapshots: Vec<i64>,
    bytes: HashMap<(SideFile, usize), Vec<u8>>,
}

impl SideFiles for Files {
    fn snapshots(&self) -> &[i64] {
        &self.snapshots
    }

    fn read(&self, file: SideFile, segment: usize) -> io::Result<Option<Vec<u8>>> {
        let segment = if let SideFile::Snapshot(_) = file { 0 } else { segment };
        Ok(self.bytes.get(&(file, segment)).cloned())
    }
}

impl Files {
    fn snapshot_bytes(mut self, offset: i64, bytes: Vec<u8>) -> Self {
        self.snapshots.push(offset);
        self.bytes.insert((SideFile::Snapshot(offset), 0), bytes);
        self
    }

    fn snapshot(self, offset: i64, entries: &[SnapshotEntry]) -> Self {
        self.snapshot_bytes(offset, write_snapshot(entries.iter().copied()))
    }

    fn aborted(mut self, segment: usize, entries: &[AbortedTransaction]) -> Self {
        let bytes = entries.iter().flat_map(AbortedTransaction::to_bytes).collect();
        self.bytes.insert((SideFile::TransactionIndex, segment), bytes);
        self
    }
}

/// A log of segments, under construction.
struct Log {
    segments: Vec<(i64, Vec<u8>)>,
    next: i64,
    epoch: i32,
    codecs: Codecs,
}

impl Log {
    fn at(base_offset: i64) -> Self {
        Self {
            segments: vec![(base_offset, Vec::new())],
            next: base_offset,
            epoch: 0,
            codecs: Codecs::new(Limits::default()),
        }
    }

    fn roll(mut self) -> Self {
        self.segments.push((self.next, Vec::new()));
        self
    }

    fn epoch(mut self, epoch: i32) -> Self {
        self.epoch = epoch;
        self
    }

    fn skip(mut self, offsets: i64) -> Self {
        self.next += offsets;
        self
    }

    fn fields(&self, producer: (i64, i16)) -> BatchFields {
        BatchFields {
            base_offset: self.next,
            partition_leader_epoch: self.epoch,
            producer_id: producer.0,
            producer_epoch: producer.1,
            ..BatchFields::default()
        }
    }

    /// Three records of a producer.
    fn data(mut self, producer: (i64, i16), base_sequence: i32, is_transactional: bool) -> Self {
        let fields = BatchFields { base_sequence, is_transactional, ..self.fields(producer) };
        let record = NewRecord { timestamp: TIME, value: Some(b"value"), ..NewRecord::default() };
        let records = [record.clone(), record.clone(), record];
        let batch = build_batch(&fields, &records, &mut self.codecs).expect("builds");
        self.add(&batch, 3)
    }

    fn plain(self, producer: (i64, i16), base_sequence: i32) -> Self {
        self.data(producer, base_sequence, false)
    }

    fn transactional(self, producer: (i64, i16), base_sequence: i32) -> Self {
        self.data(producer, base_sequence, true)
    }

    fn marker(mut self, producer: (i64, i16), is_commit: bool) -> Self {
        let coordinator_epoch = 3;
        let record = if is_commit {
            NewControlRecord::Commit { coordinator_epoch }
        } else {
            NewControlRecord::Abort { coordinator_epoch }
        };
        let fields = self.fields(producer);
        let batch = build_control_batch(&fields, TIME, record, &mut self.codecs).expect("builds");
        self.add(&batch, 1)
    }

    fn add(mut self, batch: &[u8], offsets: i64) -> Self {
        self.segments.last_mut().expect("begun").1.extend_from_slice(batch);
        self.next += offsets;
        self
    }

    fn scans(&self, stopped_cleanly: bool) -> Vec<SegmentScan> {
        let mut scanner = Scanner::new(Level::Full, Limits::default());
        let mut scans = Vec::new();
        for (index, (base_offset, bytes)) in self.segments.iter().enumerate() {
            let next = self.segments.get(index + 1).map(|(base_offset, _)| *base_offset);
            let context = SegmentContext {
                base_offset: Some(*base_offset),
                next_base_offset: next,
                is_active: next.is_none(),
                stopped_cleanly,
                now_ms: TIME + 1000,
                ..SegmentContext::default()
            };
            let source: &[u8] = bytes;
            let mut progress = |_| true;
            let scan = scanner.scan_indexed(&source, context, Indexes::NONE, &mut progress, None);
            scans.push(scan.expect("scans"));
        }
        scans
    }

    /// Findings about the files beside the log.
    fn audit_after(
        &self,
        files: &Files,
        stopped_cleanly: bool,
        epochs: &[(i32, i64)],
    ) -> Vec<Finding> {
        let context =
            PartitionContext { leader_epochs: epochs.to_vec(), ..PartitionContext::default() };
        let scan = merge_partition_with(&self.scans(stopped_cleanly), &context, files);
        let placed = scan.findings.into_iter().map(|placed| placed.finding);
        placed
            .filter(|f| f.side_file.is_some() || f.kind == FindingKind::LeaderEpochFault)
            .collect()
    }

    fn audit(&self, files: &Files) -> Vec<Finding> {
        self.audit_after(files, true, &[])
    }
}

const WRITER: (i64, i16) = (9, 0);
const OTHER: (i64, i16) = (8, 2);

fn entry(producer: (i64, i16), last_sequence: i32, last_offset: i64) -> SnapshotEntry {
    SnapshotEntry {
        producer_id: producer.0,
        producer_epoch: producer.1,
        last_sequence,
        last_offset,
        offset_delta: 2,
        last_timestamp: TIME,
        coordinator_epoch: -1,
        transaction_first_offset: None,
    }
}

fn only(findings: Vec<Finding>) -> Finding {
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.into_iter().next().expect("one")
}

/// Offsets 0 to 11 in two segments: `WRITER` 0..2 and 6..8, `OTHER` 3..5 and 9..11.
fn two_producers() -> Log {
    Log::at(0).plain(WRITER, 0).plain(OTHER, 0).roll().plain(WRITER, 3).plain(OTHER, 3)
}

fn sound() -> Files {
    Files::default()
        .snapshot(6, &[entry(WRITER, 2, 2), entry(OTHER, 2, 5)])
        .snapshot(12, &[entry(WRITER, 5, 8), entry(OTHER, 5, 11)])
        .aborted(0, &[])
}

#[test]
fn snapshots_that_say_what_the_log_says_are_sound() {
    assert_eq!(two_producers().audit(&sound()), []);
}

#[test]
fn a_snapshot_that_cannot_be_read_is_told() {
    let good = write_snapshot([entry(WRITER, 5, 8)].into_iter());
    let mut flipped = good.clone();
    flipped[20] ^= 1;
    let cut = good[..30].to_vec();
    for bytes in [flipped, cut, Vec::new()] {
        let finding = only(two_producers().audit(&Files::default().snapshot_bytes(12, bytes)));
        assert_eq!(finding.kind, FindingKind::SnapshotMismatch);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.side_file, Some(SideFile::Snapshot(12)));
        assert!(finding.message.text().contains("Kafka deletes it"), "{}", finding.message);
    }
}

#[test]
fn every_field_of_a_snapshot_is_held_against_the_log() {
    let right = entry(WRITER, 5, 8);
    let wrong = [
        SnapshotEntry { producer_epoch: 1, ..right },
        SnapshotEntry { last_sequence: 4, ..right },
        SnapshotEntry { last_offset: 2, ..right },
        SnapshotEntry { offset_delta: 1, ..right },
        SnapshotEntry { coordinator_epoch: 7, ..right },
        SnapshotEntry { transaction_first_offset: Some(6), ..right },
        SnapshotEntry { last_offset: 12, ..right },
        SnapshotEntry { producer_id: 77, ..right },
    ];
    for entry in wrong {
        let finding = only(two_producers().audit(&Files::default().snapshot(12, &[entry])));
        assert_eq!(finding.kind, FindingKind::SnapshotMismatch);
        assert_eq!((finding.position, finding.size), (Some(10), Some(46)));
        assert_eq!(finding.producer_id, Some(entry.producer_id));
    }
}

#[test]
fn a_producer_that_expired_may_be_missing_from_a_snapshot() {
    assert_eq!(two_producers().audit(&Files::default().snapshot(12, &[entry(OTHER, 5, 11)])), []);
    assert_eq!(two_producers().audit(&Files::default().snapshot(12, &[])), []);
}

#[test]
fn a_producer_with_an_open_transaction_does_not_expire() {
    let log = Log::at(0).transactional(WRITER, 0);
    let finding = only(log.audit(&Files::default().snapshot(3, &[])));
    assert_eq!(finding.producer_id, Some(WRITER.0));
    assert!(finding.message.text().contains("is open at offset 3"));
    let open = SnapshotEntry { transaction_first_offset: Some(0), ..entry(WRITER, 2, 2) };
    assert_eq!(log.audit(&Files::default().snapshot(3, &[open])), []);
}

#[test]
fn a_snapshot_inside_a_segment_is_held_against_producers_that_were_silent_since() {
    // Taken at offset 9, before the last batch.
    let at_9 = [entry(WRITER, 5, 8), entry(OTHER, 2, 5)];
    assert_eq!(two_producers().audit(&Files::default().snapshot(9, &at_9)), []);
    let stale = [entry(WRITER, 2, 2), entry(OTHER, 2, 5)];
    let finding = only(two_producers().audit(&Files::default().snapshot(9, &stale)));
    assert_eq!(finding.producer_id, Some(WRITER.0));
}

#[test]
fn a_snapshot_right_before_a_marker_is_not_held_against_it() {
    let log = Log::at(0).transactional(WRITER, 0).marker(WRITER, true);
    let open = SnapshotEntry { transaction_first_offset: Some(0), ..entry(WRITER, 2, 2) };
    assert_eq!(log.audit(&Files::default().snapshot(3, &[open])), []);
}

#[test]
fn a_snapshot_knows_nothing_of_its_own_offset_even_where_the_log_is_damaged() {
    let mut log = two_producers();
    log.segments[0].1[70] ^= 1;
    let begun =
        |offset| SnapshotEntry { transaction_first_offset: Some(offset), ..entry(WRITER, 5, 8) };
    for (right, wrong) in [(entry(WRITER, 5, 11), entry(WRITER, 5, 12)), (begun(11), begun(12))] {
        assert_eq!(log.audit(&Files::default().snapshot(12, &[right])), []);
        let found = only(log.audit(&Files::default().snapshot(12, &[wrong])));
        assert_eq!(found.expected, "below 12");
    }
}

#[test]
fn a_marker_of_a_new_epoch_makes_a_broker_forget_the_batches_before() {
    let log = Log::at(0).transactional(WRITER, 0).marker((9, 1), true);
    let marked = SnapshotEntry {
        producer_epoch: 1,
        offset_delta: 0,
        coordinator_epoch: 3,
        ..entry(WRITER, -1, -1)
    };
    assert_eq!(log.audit(&Files::default().snapshot(4, &[marked])), []);
    let same = Log::at(0).transactional(WRITER, 0).marker(WRITER, true);
    let kept = SnapshotEntry { coordinator_epoch: 3, ..entry(WRITER, 2, 2) };
    assert_eq!(same.audit(&Files::default().snapshot(4, &[kept])), []);
}

#[test]
fn retention_leaves_a_snapshot_what_it_takes_from_the_log() {
    let log = Log::at(100).plain(WRITER, 30).roll().plain(WRITER, 33);
    let gone = entry(OTHER, 5, 40);
    let begun = SnapshotEntry { transaction_first_offset: Some(41), ..entry(OTHER, 8, 43) };
    let known = SnapshotEntry { coordinator_epoch: 3, ..entry(WRITER, 35, 105) };
    let files = Files::default().snapshot(100, &[gone]).snapshot(106, &[known, begun]);
    assert_eq!(log.audit(&files), []);
    let stale = Files::default().snapshot(106, &[entry(WRITER, 32, 102)]);
    assert_eq!(only(log.audit(&stale)).producer_id, Some(WRITER.0));
}

#[test]
fn a_snapshot_behind_the_end_says_what_is_gone() {
    let files = Files::default().snapshot(20, &[]);
    let finding = only(two_producers().audit(&files));
    assert_eq!((finding.first_offset, finding.last_offset), (Some(12), Some(19)));
    assert_eq!(finding.severity, Severity::Error);
    let killed = only(two_producers().audit_after(&files, false, &[]));
    // The snapshot proves that the offsets were there, whatever stopped the broker.
    assert_eq!(killed.severity, Severity::Error);
}

#[test]
fn a_damaged_log_proves_nothing_against_a_snapshot() {
    let mut log = two_producers();
    log.segments[1].1[70] ^= 1;
    let files = Files::default().snapshot(12, &[entry(WRITER, 4, 8), entry((5, 0), 1, 3)]);
    assert_eq!(log.audit(&files), []);
}

/// `WRITER` aborts 0..2 with a marker at 6, inside it `OTHER` commits 3..5 with a marker at 7; in
/// the second segment `WRITER` aborts 8..10 with a marker at 11.
fn aborts() -> Log {
    Log::at(0)
        .transactional(WRITER, 0)
        .transactional(OTHER, 0)
        .marker(WRITER, false)
        .marker(OTHER, true)
        .roll()
        .transactional(WRITER, 3)
        .marker(WRITER, false)
}

fn first_abort() -> AbortedTransaction {
    AbortedTransaction { producer_id: 9, first_offset: 0, last_offset: 6, last_stable_offset: 3 }
}

fn second_abort() -> AbortedTransaction {
    AbortedTransaction { producer_id: 9, first_offset: 8, last_offset: 11, last_stable_offset: 12 }
}

fn with_aborts(first: &[AbortedTransaction], second: &[AbortedTransaction]) -> Files {
    Files::default().aborted(0, first).aborted(1, second)
}

#[test]
fn transaction_indexes_that_list_the_aborts_of_their_segment_are_sound() {
    assert_eq!(aborts().audit(&with_aborts(&[first_abort()], &[second_abort()])), []);
}

#[test]
fn an_abort_that_is_not_listed_is_told_with_its_offsets() {
    let finding = only(aborts().audit(&with_aborts(&[], &[second_abort()])));
    assert_eq!(finding.kind, FindingKind::TxnindexMismatch);
    assert_eq!((finding.first_offset, finding.last_offset), (Some(0), Some(6)));
    assert_eq!(finding.producer_id, Some(9));
    let missing = only(aborts().audit(&Files::default().aborted(0, &[first_abort()])));
    assert_eq!(missing.side_file, Some(SideFile::TransactionIndex));
    assert_eq!((missing.first_offset, missing.last_offset), (Some(8), Some(11)));
    assert!(missing.message.text().contains("no .txnindex"));
}

#[test]
fn an_entry_that_contradicts_the_log_is_told() {
    let right = first_abort();
    let wrong = [
        AbortedTransaction { first_offset: 1, ..right },
        AbortedTransaction { producer_id: 8, ..right },
        AbortedTransaction { last_stable_offset: 7, ..right },
        AbortedTransaction { last_offset: 5, ..right },
    ];
    for entry in wrong {
        let finding = only(aborts().audit(&with_aborts(&[entry], &[second_abort()])));
        assert_eq!((finding.kind, finding.position), (FindingKind::TxnindexMismatch, Some(0)));
    }
    let extra = AbortedTransaction { producer_id: 8, last_offset: 7, ..right };
    let finding = only(aborts().audit(&with_aborts(&[right, extra], &[second_abort()])));
    assert_eq!(finding.position, Some(34));
    assert!(finding.message.text().contains("is not in the log"), "{}", finding.message);
    let again = only(aborts().audit(&with_aborts(&[right, right], &[second_abort()])));
    assert!(again.message.text().contains("out of order"));
}

#[test]
fn a_transaction_that_began_in_what_retention_took_is_lawful() {
    let log = Log::at(8).transactional(WRITER, 3).marker(WRITER, false).marker(OTHER, false);
    let began_before = AbortedTransaction { first_offset: 2, ..second_abort() };
    let all_before = AbortedTransaction {
        producer_id: 8,
        first_offset: 4,
        last_offset: 12,
        last_stable_offset: 13,
    };
    assert_eq!(log.audit(&Files::default().aborted(0, &[began_before, all_before])), []);
}

#[test]
fn what_a_kill_left_of_the_last_transaction_index_is_built_anew() {
    let behind = AbortedTransaction { first_offset: 12, last_offset: 15, ..second_abort() };
    let files = with_aborts(&[first_abort()], &[second_abort(), behind]);
    assert_eq!(aborts().audit_after(&files, false, &[]), []);
    assert_eq!(only(aborts().audit(&files)).severity, Severity::Warning);
    let files = with_aborts(&[first_abort()], &[]);
    assert_eq!(only(aborts().audit_after(&files, false, &[])).severity, Severity::Info);
}

#[test]
fn only_what_began_below_the_log_may_begin_elsewhere_than_the_index_says() {
    let log = Log::at(8).plain(OTHER, 0).transactional(WRITER, 3).marker(WRITER, false);
    let listed = |first_offset| {
        let entry = AbortedTransaction { first_offset, last_offset: 14, ..second_abort() };
        log.audit(&Files::default().aborted(0, &[entry])).len()
    };
    assert_eq!([7, 8, 11].map(listed), [0, 1, 0]);
}

#[test]
fn an_index_lists_markers_from_the_base_offset_of_its_segment_on() {
    // The marker at 3 is the first batch of its segment.
    let mut log = Log::at(0).transactional(WRITER, 0).roll().marker(WRITER, false);
    let whole = AbortedTransaction { last_offset: 3, last_stable_offset: 4, ..first_abort() };
    assert_eq!(log.audit(&with_aborts(&[], &[whole])), []);
    // Where the log is damaged, too, no entry belongs to an earlier segment.
    log.segments[0].1[70] ^= 1;
    let early = AbortedTransaction { last_offset: 2, ..whole };
    let found = only(log.audit(&with_aborts(&[], &[early])));
    assert_eq!(found.expected, "at least 3");
}

#[test]
fn a_kill_may_have_taken_a_marker_from_the_end_of_the_log_on() {
    let at = |last_offset| {
        let taken = AbortedTransaction { first_offset: 11, last_offset, ..second_abort() };
        let files = with_aborts(&[first_abort()], &[second_abort(), taken]);
        aborts().audit_after(&files, false, &[])
    };
    assert_eq!(at(12), []);
    assert!(only(at(11)).message.text().contains("out of order"));
}

/// Epoch 0 from 0, epoch 2 from 6.
fn epochs() -> Log {
    Log::at(0).plain(WRITER, 0).plain(WRITER, 3).epoch(2).plain(WRITER, 6).plain(WRITER, 9)
}

#[test]
fn the_epochs_of_a_checkpoint_are_held_against_the_batches() {
    let found = |entries: &[(i32, i64)]| {
        let findings = epochs().audit_after(&Files::default().aborted(0, &[]), true, entries);
        findings.into_iter().map(|f| (f.kind, f.first_offset)).collect::<Vec<_>>()
    };
    let wrong = FindingKind::EpochCheckpointMismatch;
    assert_eq!(found(&[(0, 0), (2, 6)]), []);
    assert_eq!(found(&[(0, 0), (2, 3)]), [(wrong, Some(3))]);
    assert_eq!(found(&[(0, 0), (2, 5)]), [(wrong, Some(5))]);
    assert_eq!(found(&[(0, 0), (2, 9)]), [(wrong, Some(6))]);
    assert_eq!(found(&[(0, 0)]), [(wrong, Some(6))]);
    assert_eq!(found(&[(0, 0), (1, 2), (2, 6)]), [(wrong, Some(2))]);
    // An epoch without a batch at the end, and no checkpoint at all.
    assert_eq!(found(&[(0, 0), (2, 6), (3, 12)]), []);
    assert_eq!(found(&[]), []);
    // Of what was deleted an epoch may be forgotten.
    assert_eq!(found(&[(2, 6)]), []);
}

#[test]
fn an_epoch_that_one_batch_alone_has_is_the_fault_of_the_batch() {
    let log = Log::at(0).plain(WRITER, 0).epoch(64).plain(WRITER, 3);
    let files = Files::default().aborted(0, &[]);
    let finding = only(log.audit_after(&files, true, &[(0, 0)]));
    assert_eq!(finding.kind, FindingKind::LeaderEpochFault);
    // After a kill the checkpoint may be older than the batch.
    assert_eq!(log.audit_after(&files, false, &[(0, 0)]), []);
}

#[test]
fn an_epoch_may_begin_where_compaction_took_the_batches() {
    let log = Log::at(0).plain(WRITER, 0).skip(10).epoch(2).plain(WRITER, 3);
    let files = Files::default().aborted(0, &[]);
    assert_eq!(log.audit_after(&files, true, &[(0, 0), (2, 8)]), []);
}
