#![no_main]
//! Arbitrary directories of a partition: what a report is made of comes within bounds, the same twice,
//! and without a character that a terminal obeys. The findings over segments, names and side files, and
//! the price of what advice may delete before a start.

use libfuzzer_sys::fuzz_target;
use ottla_audit::partition::bound::MAX_FINDINGS_PER_PARTITION;
use ottla_audit::partition::side_check::{DirectoryEntry, SideFiles, check_names};
use ottla_audit::{
    Finding, Isolation, PartitionContext, PartitionReader, PartitionScan, ReadOptions,
    ReadableOffsets, Remainder, RetentionEffect, Scanner, SegmentContext, SideFile,
    merge_partition_with,
};
use ottla_format::check::Level;
use ottla_fuzz::{INFLATED_BYTES, bounded, indexes, limits, unpack_files};
use ottla_log::names::{
    FileKind, FileName, FileState, INDEX, LEADER_EPOCHS, PartitionState, SNAPSHOT, TIME_INDEX,
    TRANSACTION_INDEX, file_name,
};
use ottla_log::recovery::{Aborted, LoadError, Recovery, Restart, predict_recovery};
use ottla_log::sidefiles::checkpoint::read_leader_epochs;
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use std::collections::BTreeMap;
use std::io;

/// Nothing that is said of one thing found is longer.
const LONGEST_TEXT: usize = 1000;

/// Files that are left out before a start, one after the other.
const MAX_DEEDS: usize = 4;

type Files = BTreeMap<Vec<u8>, Vec<u8>>;

fuzz_target!(|data: &[u8]| {
    let files = unpack_files(data);
    let log = bounded(data.len() + INFLATED_BYTES, || findings(&files));
    let again = findings(&files);
    assert_eq!((&log.findings, &log.gaps), (&again.findings, &again.gaps));
    assert_eq!(log.producers, again.producers);
    let mut counts = BTreeMap::new();
    for placed in &log.findings {
        *counts.entry(placed.finding.kind).or_insert(0) += 1;
        check_text(&placed.finding);
    }
    assert!(counts.values().all(|&count| count <= MAX_FINDINGS_PER_PARTITION));
    for gap in &log.gaps {
        assert!(gap.evidence.len() <= LONGEST_TEXT && !gap.evidence.contains(char::is_control));
    }
    let named = |name: &Vec<u8>| matches!(FileName::parse(name).kind, FileKind::Unknown);
    let entries: Vec<_> =
        files.keys().map(|name| DirectoryEntry { name, is_directory: named(name) }).collect();
    check_names(&entries, PartitionState::Live, true).iter().for_each(|(_, f)| check_text(f));
    price_deeds(&files, &log, data.len());
});

/// A finding names nothing of what it read but numbers.
fn check_text(finding: &Finding) {
    for text in [&finding.message, &finding.expected, &finding.found] {
        assert!(text.len() <= LONGEST_TEXT && !text.contains(char::is_control), "{finding:?}");
    }
}

/// The segments in use, by base offset.
fn segments(files: &Files) -> Vec<(i64, &[u8])> {
    let mut found = Vec::new();
    for (name, data) in files {
        let FileName { kind, state, base_offset } = FileName::parse(name);
        let is_live = kind == FileKind::Segment && state == FileState::Live;
        found.extend(base_offset.filter(|_| is_live).map(|base| (base, data.as_slice())));
    }
    found.sort_unstable();
    found.dedup_by_key(|(base, _)| *base);
    found
}

/// What lies beside the segments.
struct Beside<'a> {
    files: &'a Files,
    bases: Vec<i64>,
    snapshots: Vec<i64>,
}

impl SideFiles for Beside<'_> {
    fn snapshots(&self) -> &[i64] {
        &self.snapshots
    }

    fn read(&self, file: SideFile, segment: usize) -> io::Result<Option<Vec<u8>>> {
        let name = match file {
            SideFile::Snapshot(offset) => file_name(offset, SNAPSHOT),
            SideFile::TransactionIndex => file_name(self.bases[segment], TRANSACTION_INDEX),
            _ => return Ok(None),
        };
        Ok(self.files.get(&name).cloned())
    }
}

/// All findings about a log and the files beside it.
fn findings(files: &Files) -> PartitionScan {
    let segments = segments(files);
    let bases: Vec<i64> = segments.iter().map(|(base, _)| *base).collect();
    let mut scanner = Scanner::new(Level::Full, limits());
    let scan = |(number, (base, data)): (usize, &(i64, &[u8]))| {
        let beside = |suffix| files.get(&file_name(*base, suffix)).map(Vec::as_slice);
        let indexes = indexes(*base, beside(INDEX), beside(TIME_INDEX));
        let context = SegmentContext {
            base_offset: Some(*base),
            next_base_offset: bases.get(number + 1).copied(),
            is_active: number + 1 == bases.len(),
            now_ms: 1_500_000_000_000,
            ..SegmentContext::default()
        };
        let scan = scanner.scan_indexed(data, context, &indexes, &mut |_| true, None);
        let mut scan = scan.expect("memory can be read");
        scan.judge_indexes(&indexes);
        RetentionEffect::of(&scan);
        scan
    };
    let scans: Vec<_> = segments.iter().enumerate().map(scan).collect();
    let epochs = files.get(LEADER_EPOCHS).and_then(|data| read_leader_epochs(data).ok());
    let context = PartitionContext {
        topic: Some("orders".to_owned()),
        leader_epochs: epochs
            .unwrap_or_default()
            .iter()
            .map(|epoch| (epoch.epoch, epoch.start_offset))
            .collect(),
        is_head: true,
        ..PartitionContext::default()
    };
    let snapshot = |name: &Vec<u8>| {
        let FileName { kind, state, base_offset } = FileName::parse(name);
        let is_snapshot = kind == FileKind::ProducerSnapshot && state == FileState::Live;
        base_offset.filter(|_| is_snapshot)
    };
    let mut snapshots: Vec<i64> = files.keys().filter_map(snapshot).collect();
    snapshots.sort_unstable();
    snapshots.dedup();
    merge_partition_with(&scans, &context, &Beside { files, bases, snapshots })
}

/// Predicts the start over a directory as it is, and without some of its side files, and counts what
/// each start leaves.
fn price_deeds(files: &Files, log: &PartitionScan, bytes: usize) {
    let aborted = log.ended.aborted.iter().map(|(producer_id, done)| AbortedTransaction {
        producer_id: *producer_id,
        first_offset: done.first_offset,
        last_offset: done.marker_offset,
        last_stable_offset: done.first_offset,
    });
    let aborted: Vec<_> = aborted.collect();
    let live: Vec<_> = segments(files);
    let side_files = files.keys().filter(|name| {
        matches!(
            FileName::parse(name).kind,
            FileKind::OffsetIndex
                | FileKind::TimeIndex
                | FileKind::TransactionIndex
                | FileKind::ProducerSnapshot
        )
    });
    let deeds = side_files.take(MAX_DEEDS).map(Some);
    let mut remainders = Vec::new();
    for gone in [None].into_iter().chain(deeds) {
        let mut left = files.clone();
        gone.and_then(|name| left.remove(name));
        for stopped_cleanly in [false, true] {
            let restart = Restart { stopped_cleanly, ..Restart::default() };
            let start = || {
                let aborted = Aborted::Known(&aborted);
                predict_recovery(&left, "orders-0", &restart, aborted, &|_| true)
            };
            match bounded(bytes + INFLATED_BYTES, start) {
                Ok(after) => remainders.push(remainder(&after, &live)),
                Err(LoadError::Limit(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }
    let options = ReadOptions {
        isolation: Isolation::ReadUncommitted,
        start_offset: 0,
        end_offset: i64::MAX,
        stopped_cleanly: false,
    };
    let bases: Vec<_> = live.iter().map(|(base, _)| Some(*base)).collect();
    let counted = bounded(bytes + INFLATED_BYTES, || {
        let reader = PartitionReader::new(bases.clone(), options);
        let mut offsets = ReadableOffsets::new(reader, remainders.clone());
        let mut scanner = Scanner::new(Level::Crc, limits());
        while let Some(segment) = offsets.segment() {
            offsets.step(&mut scanner, &live[segment].1).expect("memory can be read");
        }
        offsets
    });
    assert!(counted.kept().iter().all(|kept| *kept <= counted.total()));
}

/// What a start leaves of the segments.
fn remainder(after: &Recovery, segments: &[(i64, &[u8])]) -> Remainder {
    let outcome = |base: i64| {
        let named = |file: &[u8]| FileName::parse(file).base_offset == Some(base);
        after.segments.iter().find(|segment| named(&segment.file))
    };
    Remainder {
        start_offset: after.log_start_offset,
        end_offset: after.log_end_offset,
        segment_bytes: segments
            .iter()
            .map(|(base, _)| outcome(*base).map_or(0, |segment| segment.bytes))
            .collect(),
    }
}
