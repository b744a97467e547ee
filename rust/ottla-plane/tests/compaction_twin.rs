//! A compacted log against a naive twin of it: a list of records.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test panics to fail")]

mod support;

use ottla_format::attributes::Compression;
use ottla_format::batch::{BatchInfo, Payload, RecordCursor, payload, verify};
use ottla_format::batches::Batches;
use ottla_format::builder::{BatchFields, LegacyFields, NewRecord, build_batch, build_legacy};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_leader::{
    AppendRequest, EndTransaction, Leader, LeaderSettings, LogOffsets, Replay, ReplaySource,
    StoredLog, TopicConfig, Validator,
};
use ottla_log::producers::{Origin, control_record};
use ottla_plane::{
    Compaction, CompactionSettings, DataPlane, Handle, LogPlace, LogSettings, NewPartition,
    PartitionSettings, PlaneSettings,
};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use support::Scratch;

const RETENTION_MS: i64 = 1000;

#[derive(Clone, Debug)]
enum Step {
    /// Of producer 0, who has no id; 1 and 2, who are idempotent; 3 and 4, who are transactional.
    Append {
        producer: i64,
        records: Vec<(u8, bool)>,
        codec: u8,
    },
    /// As an early broker has stored it.
    AppendLegacy {
        magic: i8,
        records: Vec<(u8, bool)>,
        codec: u8,
    },
    End {
        producer: i64,
        is_commit: bool,
    },
    Wait {
        duration_ms: i64,
    },
    Compact {
        is_forced: bool,
        dedupe_buffer_size: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let records = prop::collection::vec((0..6u8, prop::bool::weighted(0.8)), 1..5);
    prop_oneof![
        12 => (0..5i64, records.clone(), 0..9u8)
            .prop_map(|(producer, records, codec)| Step::Append { producer, records, codec }),
        4 => (0..2i8, records, 0..4u8)
            .prop_map(|(magic, records, codec)| Step::AppendLegacy { magic, records, codec }),
        3 => (3..5i64, any::<bool>())
            .prop_map(|(producer, is_commit)| Step::End { producer, is_commit }),
        2 => (0..2 * RETENTION_MS).prop_map(|duration_ms| Step::Wait { duration_ms }),
        4 => (any::<bool>(), prop_oneof![3 => Just(1u64 << 20), 1 => Just(100u64)])
            .prop_map(|(is_forced, dedupe_buffer_size)| {
                Step::Compact { is_forced, dedupe_buffer_size }
            }),
    ]
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct TwinRecord {
    offset: i64,
    key: u8,
    value: Option<Vec<u8>>,
    timestamp: i64,
}

/// What was appended, and what of it is left.
#[derive(Default)]
struct Twin {
    all: Vec<TwinRecord>,
    left: Vec<TwinRecord>,
    batches: Vec<TwinBatch>,
    /// Offsets of the markers, and when they were appended.
    markers: Vec<(i64, i64)>,
    aborted: HashSet<i64>,
    cleaned_to: i64,
}

/// A batch of records.
struct TwinBatch {
    offsets: RangeInclusive<i64>,
    magic: i8,
    appended_ms: i64,
    delete_horizon_ms: Option<i64>,
}

impl Twin {
    /// Whether a batch of magic 0 or 1 ends here, which cannot stay without records.
    fn is_legacy(&self, last_offset: i64) -> bool {
        self.batches.iter().any(|batch| *batch.offsets.end() == last_offset && batch.magic < 2)
    }

    fn batch_of(&self, offset: i64) -> &TwinBatch {
        self.batches.iter().find(|batch| batch.offsets.contains(&offset)).unwrap()
    }

    /// When something was appended last to a segment.
    fn appended_ms(&self, segment: &Range<i64>) -> i64 {
        let batches = self.batches.iter().map(|batch| (*batch.offsets.end(), batch.appended_ms));
        let appended = batches.chain(self.markers.iter().copied());
        let within = appended.filter(|(offset, _)| segment.contains(offset));
        within.map(|(_, appended_ms)| appended_ms).max().unwrap_or(0)
    }

    /// Offsets at which tombstones of magic 0 and 1 go: of segments that are older than the last clean
    /// one by the time for which tombstones are kept.
    fn legacy_tombstones(&self, segments: &[Range<i64>]) -> Vec<Range<i64>> {
        let clean = segments.iter().rfind(|segment| segment.start < self.cleaned_to);
        let horizon_ms = clean.map_or(0, |last| self.appended_ms(last) - RETENTION_MS);
        let is_old = |segment: &&Range<i64>| self.appended_ms(segment) <= horizon_ms;
        segments.iter().filter(is_old).cloned().collect()
    }

    /// Compaction of the log below `end`, with keys known below `cleaned_to`, of these segments.
    fn compact(&mut self, cleaned_to: i64, end: i64, now_ms: i64, segments: &[Range<i64>]) {
        let mut newest: HashMap<u8, i64> = HashMap::new();
        for record in &self.all {
            if record.offset < cleaned_to && !self.aborted.contains(&record.offset) {
                newest.insert(record.key, record.offset);
            }
        }
        let past = self.legacy_tombstones(segments);
        let stays = |record: &TwinRecord| {
            if record.offset >= end {
                return true;
            }
            if self.aborted.contains(&record.offset) {
                return false;
            }
            if record.offset >= cleaned_to {
                return true;
            }
            let batch = self.batch_of(record.offset);
            let is_past = match batch.magic {
                2 => batch.delete_horizon_ms.is_some_and(|ms| ms <= now_ms),
                _ => past.iter().any(|segment| segment.contains(&record.offset)),
            };
            newest[&record.key] == record.offset && (record.value.is_some() || !is_past)
        };
        let left: Vec<_> = self.left.iter().filter(|&record| stays(record)).cloned().collect();
        self.left = left;
        for batch in self.batches.iter_mut().filter(|batch| batch.magic == 2) {
            let has_tombstones = self
                .left
                .iter()
                .any(|record| batch.offsets.contains(&record.offset) && record.value.is_none());
            if *batch.offsets.start() < end && has_tombstones {
                batch.delete_horizon_ms.get_or_insert(now_ms + RETENTION_MS);
            }
        }
        self.cleaned_to = cleaned_to;
    }
}

struct World {
    plane: DataPlane,
    handle: Handle,
    directory: Option<PathBuf>,
    leader: LeaderSettings,
    validator: Validator,
    now_ms: i64,
    sequences: HashMap<i64, i32>,
    /// Offsets of transactions that are open.
    open: HashMap<i64, Vec<i64>>,
    twin: Twin,
}

fn codecs() -> Codecs {
    Codecs::new(Limits::default())
}

impl World {
    fn new(directory: Option<&Path>, segment_bytes: i32) -> Self {
        let config = TopicConfig { segment_bytes, is_compacted: true, ..TopicConfig::default() };
        let leader =
            LeaderSettings { config, transaction_verification: false, ..LeaderSettings::default() };
        let log = LogSettings {
            segment_bytes,
            segment_ms: i64::MAX,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 100,
            is_deleted: false,
            retention_ms: -1,
            retention_bytes: -1,
        };
        let settings = PartitionSettings {
            log,
            is_internal: false,
            min_insync_replicas: 1,
            in_sync_replicas: 1,
            partition_epoch: -1,
        };
        let new = NewPartition {
            topic: b"t",
            topic_id: [1; 16],
            index: 0,
            next_offset: 0,
            leader: leader.clone(),
            settings,
            place: directory.map(|directory| LogPlace {
                directory,
                recovery_point: 0,
                log_start_offset: 0,
                is_clean: false,
                is_dense: false,
            }),
        };
        let mut plane = DataPlane::new(PlaneSettings::default());
        let handle = plane.open(&new, 1).unwrap();
        Self {
            plane,
            handle,
            directory: directory.map(Path::to_owned),
            leader,
            validator: Validator::default(),
            now_ms: 1_700_000_000_000,
            sequences: HashMap::new(),
            open: HashMap::new(),
            twin: Twin::default(),
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Append { producer, records, codec } => self.append(*producer, records, *codec),
            Step::AppendLegacy { magic, records, codec } => {
                self.append_legacy(*magic, records, *codec);
            }
            Step::End { producer, is_commit } => self.end(*producer, *is_commit),
            Step::Wait { duration_ms } => self.now_ms += duration_ms,
            Step::Compact { is_forced, dedupe_buffer_size } => {
                self.compact(*is_forced, *dedupe_buffer_size);
            }
        }
    }

    fn append(&mut self, producer: i64, records: &[(u8, bool)], codec: u8) {
        let sequence = *self.sequences.get(&producer).unwrap_or(&0);
        let fields = BatchFields {
            producer_id: if producer == 0 { -1 } else { producer },
            producer_epoch: if producer == 0 { -1 } else { 0 },
            base_sequence: if producer == 0 { -1 } else { sequence },
            is_transactional: producer >= 3,
            compression: Compression::from_id(codec).unwrap_or(Compression::None),
            ..BatchFields::default()
        };
        let base_offset = self.plane.offsets(self.handle).unwrap().log_end_offset;
        let added = added(base_offset, records, self.now_ms);
        let batch = build_batch(&fields, &built(&added), &mut codecs()).unwrap();
        self.store(&batch, Origin::Client);
        self.sequences.insert(producer, sequence + added.len() as i32);
        if producer >= 3 {
            let offsets = self.open.entry(producer).or_default();
            offsets.extend(added.iter().map(|record| record.offset));
        }
        self.know(2, added);
    }

    fn append_legacy(&mut self, magic: i8, records: &[(u8, bool)], codec: u8) {
        let base_offset = self.plane.offsets(self.handle).unwrap().log_end_offset;
        let fields = LegacyFields {
            magic,
            base_offset,
            log_append_time_ms: None,
            compression: Compression::from_id(codec).unwrap(),
            compression_level: None,
        };
        let timestamp = if magic == 0 { -1 } else { self.now_ms };
        let added = added(base_offset, records, timestamp);
        let set = build_legacy(&fields, &built(&added), &mut codecs()).unwrap();
        self.store(&set, Origin::Replication);
        self.know(magic, added);
    }

    fn store(&mut self, set: &[u8], origin: Origin) {
        let request = AppendRequest {
            api_version: None,
            has_transactional_id: true,
            origin,
            guard: None,
            transaction_version: 0,
            now_ms: self.now_ms,
        };
        let verdict = self.plane.append(self.handle, set, &request, &mut self.validator).unwrap();
        assert!(verdict.outcome.is_ok(), "{:?}", verdict.outcome.err());
    }

    /// A batch of these records is in the log.
    fn know(&mut self, magic: i8, added: Vec<TwinRecord>) {
        let offsets = added[0].offset..=added[added.len() - 1].offset;
        let appended_ms = self.now_ms;
        let batch = TwinBatch { offsets, magic, appended_ms, delete_horizon_ms: None };
        self.twin.batches.push(batch);
        self.twin.all.extend(added.iter().cloned());
        self.twin.left.extend(added);
    }

    /// The offsets of each segment.
    fn segments(&self) -> Vec<Range<i64>> {
        let bases = self.plane.segments(self.handle).unwrap().into_iter().map(|(base, _)| base);
        let mut ends: Vec<i64> = bases.chain([i64::MAX]).collect();
        ends.dedup();
        ends.windows(2).map(|ends| ends[0]..ends[1]).collect()
    }

    fn end(&mut self, producer: i64, is_commit: bool) {
        let Some(offsets) = self.open.remove(&producer) else { return };
        let end = EndTransaction {
            producer_id: producer,
            producer_epoch: 0,
            coordinator_epoch: 0,
            commit: is_commit,
            transaction_version: 0,
            now_ms: self.now_ms,
        };
        let offset = self.plane.offsets(self.handle).unwrap().log_end_offset;
        let verdict = self.plane.end_transaction(self.handle, &end, &mut self.validator).unwrap();
        assert!(verdict.outcome.is_ok());
        self.twin.markers.push((offset, self.now_ms));
        if !is_commit {
            self.twin.aborted.extend(offsets);
        }
    }

    fn compact(&mut self, is_forced: bool, dedupe_buffer_size: u64) {
        let settings = CompactionSettings {
            min_cleanable_dirty_ratio: 0.2,
            delete_retention_ms: RETENTION_MS,
            dedupe_buffer_size,
            ..CompactionSettings::default()
        };
        let before = self.segments();
        let Some(done) = compact(&mut self.plane, self.handle, &settings, is_forced, self.now_ms)
        else {
            return;
        };
        // Whatever was replaced, the segments that were left alone are where they were.
        let stable = self.plane.offsets(self.handle).unwrap().last_stable_offset;
        let segments = self.plane.segments(self.handle).unwrap();
        let limit = segments.iter().rev().find(|(base, _)| *base <= stable).unwrap().0;
        let end = if done.first_dirty_offset >= limit {
            limit
        } else {
            segments.iter().find(|(base, _)| *base >= done.first_dirty_offset).unwrap().0
        };
        assert!(done.first_dirty_offset >= self.twin.cleaned_to);
        self.twin.compact(done.first_dirty_offset, end, self.now_ms, &before);
        self.check((end == limit).then_some(end));
    }

    fn stored(&self) -> Vec<Vec<u8>> {
        let mut sets = Vec::new();
        let mut offset = 0;
        loop {
            let set = self.read(offset, 1 << 30);
            let Some(last) = Batches::new(&set, 0).map(Result::unwrap).last() else {
                return sets;
            };
            offset = last.last_offset + 1;
            sets.push(set);
        }
    }

    fn read(&self, offset: i64, max_bytes: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut add = |slice: &[u8]| bytes.extend_from_slice(slice);
        self.plane.read(self.handle, offset, max_bytes, &mut add).unwrap();
        bytes
    }

    /// Holds the log to the twin, behind a compaction of all below `end`, or of a part of it.
    fn check(&self, end: Option<i64>) {
        let sets = self.stored();
        let offsets = self.plane.offsets(self.handle).unwrap();
        let aborted = self.plane.leader(self.handle).unwrap().state();
        let mut aborted = aborted.aborted_between(0, offsets.last_stable_offset);
        aborted.sort_by_key(|entry| entry.first_offset);
        aborted.reverse();
        let mut aborting = HashSet::new();
        let (mut found, mut committed) = (Vec::new(), Vec::new());
        let mut infos: Vec<BatchInfo> = Vec::new();
        let mut codecs = codecs();
        for set in &sets {
            let mut batches = Batches::new(set, 0);
            let mut at = 0;
            while let Some(info) = batches.next().map(Result::unwrap) {
                let batch = &set[at..batches.position()];
                at = batches.position();
                verify(batch).unwrap();
                assert!(infos.last().is_none_or(|before| before.last_offset < info.base_offset));
                infos.push(info);
                // As a consumer of committed records goes through the log.
                while aborted.last().is_some_and(|next| next.first_offset <= info.last_offset) {
                    aborting.extend(aborted.pop().map(|entry| entry.producer_id));
                }
                if info.is_control() {
                    if let Some((control, _)) = control_record(batch, &info, &mut codecs).unwrap()
                        && control.name() == "ABORT"
                    {
                        aborting.remove(&info.producer_id);
                    }
                    continue;
                }
                let is_read = info.base_offset < offsets.last_stable_offset
                    && !(info.is_transactional() && aborting.contains(&info.producer_id));
                for record in records_of(&info, batch) {
                    if is_read {
                        committed.push(record.clone());
                    }
                    found.push(record);
                }
            }
        }
        assert_eq!(found, self.twin.left);
        let is_committed = |record: &&TwinRecord| {
            record.offset < offsets.last_stable_offset
                && !self.twin.aborted.contains(&record.offset)
        };
        let expected: Vec<_> = self.twin.left.iter().filter(is_committed).cloned().collect();
        assert_eq!(committed, expected);
        // The end of the log is known, and any offset finds its batch or the next one.
        let ends_at = |end| infos.iter().any(|info| info.last_offset + 1 == end);
        let is_known = |end: i64| {
            end < offsets.high_watermark || end == 0 || ends_at(end) || self.twin.is_legacy(end - 1)
        };
        assert!(end.is_none_or(is_known));
        for offset in 0..offsets.log_end_offset {
            let set = self.read(offset, 1);
            let first = Batches::new(&set, 0).next().map(|info| info.unwrap().base_offset);
            let next = infos.iter().find(|info| info.last_offset >= offset);
            assert_eq!(first, next.map(|info| info.base_offset), "of {offset}");
        }
        self.check_producers(&sets);
        self.check_files();
    }

    /// Nothing is left of what took the place of other files, nor of these.
    fn check_files(&self) {
        let Some(directory) = &self.directory else { return };
        let segments = self.plane.segments(self.handle).unwrap();
        for entry in std::fs::read_dir(directory).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let Some((base_offset, kind)) = name.split_once('.') else { continue };
            let Ok(base_offset) = base_offset.parse::<i64>() else { continue };
            assert!(
                ["log", "index", "timeindex", "txnindex", "snapshot"].contains(&kind),
                "{name}"
            );
            assert!(segments.iter().any(|(base, _)| *base == base_offset), "{name}");
        }
    }

    /// Producers go on where they were behind a start that has the log alone.
    fn check_producers(&self, sets: &[Vec<u8>]) {
        let leader = self.plane.leader(self.handle).unwrap();
        let sets: Vec<&[u8]> = sets.iter().map(Vec::as_slice).collect();
        let log_end_offset = Some(leader.state().log_end_offset());
        let high_watermark = log_end_offset;
        let log = StoredLog {
            offsets: LogOffsets { log_end_offset, high_watermark, ..LogOffsets::default() },
            aborted: Vec::new(),
            source: ReplaySource {
                snapshot: None,
                snapshot_offset: 0,
                sets: &sets,
                replay: Replay::Recover,
                now_ms: self.now_ms,
            },
        };
        let restored = Leader::restore(self.leader.clone(), log, &mut codecs()).unwrap();
        for known in leader.state().producers().by_id() {
            let again = restored.state().producers().get(known.producer_id).unwrap();
            let of = |entry: &ottla_log::producers::ProducerEntry| {
                let first_offset = entry.transaction_first_offset;
                (entry.producer_epoch, entry.last_sequence(), first_offset)
            };
            assert_eq!(of(again), of(known));
        }
        let unstable = leader.state().first_unstable_offset();
        assert_eq!(restored.state().first_unstable_offset(), unstable);
        // Where the marker alone is left, one more may be known.
        let ends = |leader: &Leader| -> HashSet<_> {
            let aborted = leader.state().aborted_transactions().iter();
            aborted.map(|entry| (entry.producer_id, entry.last_offset)).collect()
        };
        assert!(ends(&restored).is_subset(&ends(leader)));
    }
}

fn added(base_offset: i64, records: &[(u8, bool)], timestamp: i64) -> Vec<TwinRecord> {
    let record = |(offset, &(key, has_value)): (i64, &(u8, bool))| {
        let value = has_value.then(|| format!("value {offset}").into_bytes());
        TwinRecord { offset, key, value, timestamp }
    };
    (base_offset..).zip(records).map(record).collect()
}

fn built(records: &[TwinRecord]) -> Vec<NewRecord<'_>> {
    records
        .iter()
        .map(|record| NewRecord {
            timestamp: record.timestamp,
            key: Some(std::slice::from_ref(&record.key)),
            value: record.value.as_deref(),
            ..NewRecord::default()
        })
        .collect()
}

fn compact(
    plane: &mut DataPlane,
    handle: Handle,
    settings: &CompactionSettings,
    is_forced: bool,
    now_ms: i64,
) -> Option<Compaction> {
    let mut job = plane.compact_job(handle, settings, is_forced, now_ms).unwrap()?;
    job.run(&mut codecs());
    let done = plane.compacted(job).unwrap().unwrap();
    assert_eq!(plane.stored_bytes(), done.bytes_after);
    Some(done)
}

fn records_of(info: &BatchInfo, batch: &[u8]) -> Vec<TwinRecord> {
    let mut codecs = codecs();
    let records = match payload(info, batch).unwrap() {
        Payload::Plain { bytes, .. } => bytes,
        Payload::Compressed { codec, reading, bytes, .. } => {
            codecs.decompress(codec, reading, bytes).unwrap()
        }
    };
    let mut cursor = RecordCursor::start(info, records, Limits::default()).unwrap();
    let mut found = Vec::new();
    while let Some(record) = cursor.next(records).unwrap() {
        found.push(TwinRecord {
            offset: record.offset,
            key: record.key.unwrap()[0],
            value: record.value.map(<[u8]>::to_vec),
            timestamp: record.timestamp,
        });
    }
    found
}

fn hold_to_twin(directory: Option<&Path>, segment_bytes: i32, steps: &[Step]) {
    let mut world = World::new(directory, segment_bytes);
    for step in steps {
        world.take(step);
    }
    for producer in 3..5 {
        world.end(producer, producer == 3);
    }
    for _ in 0..3 {
        world.compact(true, 1 << 20);
        world.now_ms += RETENTION_MS;
    }
    // Those of magic 0 and 1 stay until segments are there that are newer.
    let is_legacy = |offset| world.twin.batch_of(offset).magic < 2;
    let mut left = world.twin.left.iter();
    assert!(left.all(|record| record.value.is_some() || is_legacy(record.offset)));
}

fn segment_bytes() -> impl Strategy<Value = i32> {
    prop_oneof![Just(300), Just(1000), Just(1 << 20)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn of_each_key_the_newest_record_stays(
        segment_bytes in segment_bytes(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        hold_to_twin(None, segment_bytes, &steps);
    }
}

// Each compaction syncs its files.
proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

    #[test]
    fn of_each_key_the_newest_record_stays_in_files(
        segment_bytes in segment_bytes(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let scratch = Scratch::new();
        hold_to_twin(Some(&scratch.path().join("t-0")), segment_bytes, &steps);
    }
}
