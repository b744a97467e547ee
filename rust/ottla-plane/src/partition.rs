//! One partition: what its leader decides, its log stores.

use crate::error::PlaneError;
use crate::log::epochs::EpochStarts;
use crate::log::on_disk::OnDisk;
use crate::log::partition_log::{LogSettings, PartitionLog};
use crate::log::segment::is_lack_of_room;
use ottla_format::batch::BatchInfo;
use ottla_format::batches::Batches;
use ottla_format::builder::BuildError;
use ottla_format::compression::Codecs;
use ottla_format::error_code::ErrorCode;
use ottla_format::header::RECORD_BATCH_OVERHEAD;
use ottla_leader::{
    AppendRequest, EndTransaction, Leader, LeaderSettings, PartitionState, Replay, ReplaySource,
    RestoreError, Stored, Truncation, Validator, Verdict,
};
use ottla_log::recovery::DirectoryChange;
use std::cell::Cell;
use std::fs;
use std::io;
use std::sync::Arc;

/// What is set of a partition beside its leader's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionSettings {
    /// What concerns its log.
    pub log: LogSettings,
    /// Whether only the broker itself writes to it.
    pub is_internal: bool,
    /// `min.insync.replicas`.
    pub min_insync_replicas: u32,
    /// How many replicas are in sync, this one included.
    pub in_sync_replicas: u32,
    /// The partition epoch of KIP-232, −1 for none.
    pub partition_epoch: i32,
}

/// The offsets of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Kafka's own names")]
pub struct PartitionOffsets {
    pub log_start_offset: i64,
    pub last_stable_offset: i64,
    pub high_watermark: i64,
    pub log_end_offset: i64,
}

/// A partition.
pub(crate) struct Partition {
    pub(crate) topic: Arc<[u8]>,
    pub(crate) index: i32,
    pub(crate) leader: Leader,
    pub(crate) log: PartitionLog,
    pub(crate) epochs: EpochStarts,
    pub(crate) settings: PartitionSettings,
    /// Its log could not be written or read: nothing more is done to it.
    is_offline: Cell<bool>,
    /// What was done to the files of its log when it was loaded.
    pub(crate) changes: Vec<DirectoryChange>,
    /// Where its last compaction ended.
    pub(crate) cleaned_to: Option<i64>,
}

impl Partition {
    /// A partition with a log that ends where its leader's state does.
    pub(crate) fn new(
        topic: Arc<[u8]>,
        index: i32,
        leader: Leader,
        log: PartitionLog,
        settings: PartitionSettings,
    ) -> io::Result<Self> {
        let mut partition = Self::of(topic, index, leader, (log, EpochStarts::default()), settings);
        partition.begin_epoch(partition.leader.settings().leader_epoch)?;
        Ok(partition)
    }

    /// A partition whose log was there.
    pub(crate) fn resume(
        topic: Arc<[u8]>,
        index: i32,
        leader: Leader,
        known: (PartitionLog, EpochStarts),
        settings: PartitionSettings,
    ) -> io::Result<Self> {
        let mut partition = Self::of(topic, index, leader, known, settings);
        let leader_epoch = partition.leader.settings().leader_epoch;
        // An epoch below those that are known has not begun.
        if partition.epochs.latest().is_none_or(|latest| latest < leader_epoch) {
            partition.begin_epoch(leader_epoch)?;
        }
        partition.log.keep_epochs(&partition.epochs)?;
        Ok(partition)
    }

    fn of(
        topic: Arc<[u8]>,
        index: i32,
        leader: Leader,
        (log, epochs): (PartitionLog, EpochStarts),
        settings: PartitionSettings,
    ) -> Self {
        Self {
            topic,
            index,
            leader,
            log,
            epochs,
            settings,
            is_offline: Cell::new(false),
            changes: Vec::new(),
            cleaned_to: None,
        }
    }

    fn begin_epoch(&mut self, leader_epoch: i32) -> io::Result<()> {
        if self.epochs.assign(leader_epoch, self.leader.state().log_end_offset()) {
            self.log.keep_epochs(&self.epochs)?;
        }
        Ok(())
    }

    /// Decides by other settings from now on.
    pub(crate) fn configure(&mut self, leader: LeaderSettings, settings: PartitionSettings) {
        let begun = self.begin_epoch(leader.leader_epoch);
        self.watch(begun).ok();
        self.leader.configure(leader);
        self.settings = settings;
        self.replicate();
    }

    /// Whether a sealed segment is not synced.
    pub(crate) fn has_rolled(&self) -> bool {
        self.log.disk().is_some_and(OnDisk::is_unflushed)
    }

    /// Whether nothing more is done to it, since its log could not be written or read.
    pub(crate) fn is_offline(&self) -> bool {
        self.is_offline.get()
    }

    pub(crate) fn take_offline(&self) {
        self.is_offline.set(true);
    }

    /// Goes offline with an error of its log.
    pub(crate) fn watch<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.inspect_err(|_| self.take_offline())
    }

    /// As [`watch`](Self::watch), of an append: where there was no room the log is as it was, and
    /// takes more as soon as there is.
    fn watch_append<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.inspect_err(|error| self.is_offline.set(self.is_offline() || !is_lack_of_room(error)))
    }

    /// Holds the leader epoch that a client knows, −1 for none, to this one (KIP-320).
    pub(crate) fn check_leader_epoch(&self, current: i32) -> Result<(), ErrorCode> {
        let leader_epoch = self.leader.settings().leader_epoch;
        match current {
            ..0 => Ok(()),
            _ if current < leader_epoch => Err(ErrorCode::FencedLeaderEpoch),
            _ if current > leader_epoch => Err(ErrorCode::UnknownLeaderEpoch),
            _ => Ok(()),
        }
    }

    pub(crate) fn offsets(&self) -> PartitionOffsets {
        let state = self.leader.state();
        PartitionOffsets {
            log_start_offset: state.log_start_offset(),
            last_stable_offset: self.leader.last_stable_offset(),
            high_watermark: state.high_watermark(),
            log_end_offset: state.log_end_offset(),
        }
    }

    /// Appends a record set where the leader accepts it.
    pub(crate) fn append<'a>(
        &mut self,
        records: &'a [u8],
        request: &AppendRequest<'_>,
        validator: &mut Validator,
    ) -> io::Result<Verdict<'a>> {
        let known = self.leader.state().aborted_transactions().len();
        let Self { leader, log, epochs, settings, .. } = self;
        let verdict = leader.append_to(records, request, validator, |stored, state| {
            store(log, epochs, &settings.log, stored, state, request.now_ms)
        });
        let verdict = self.watch_append(verdict)?;
        self.appended(known)?;
        Ok(verdict)
    }

    /// Appends the marker that ends a transaction (KIP-98).
    pub(crate) fn end_transaction(
        &mut self,
        end: &EndTransaction,
        validator: &mut Validator,
    ) -> Result<io::Result<Verdict<'static>>, BuildError> {
        let known = self.leader.state().aborted_transactions().len();
        let Self { leader, log, epochs, settings, .. } = self;
        let verdict = leader.end_transaction_to(end, validator, |stored, state| {
            store(log, epochs, &settings.log, stored, state, end.now_ms)
        })?;
        let verdict = self.watch_append(verdict);
        Ok(verdict.and_then(|verdict| self.appended(known).map(|()| verdict)))
    }

    /// Something was appended, and so many aborted transactions were known before.
    fn appended(&mut self, known: usize) -> io::Result<()> {
        let aborted = self.leader.state().aborted_transactions().get(known..).unwrap_or_default();
        let added = self.log.add_aborted(aborted);
        self.watch(added)?;
        self.replicate();
        Ok(())
    }

    /// The log begins at an offset.
    pub(crate) fn start_at(&mut self, offset: i64) -> Result<(), PlaneError> {
        let log_end_offset = self.leader.state().log_end_offset();
        let batch = self.watch(self.log.base_offset_of(offset))?.unwrap_or(log_end_offset);
        let moved = self.leader.delete_records(offset, Some(batch));
        moved.map_err(|error| {
            let message = error.to_string();
            PlaneError::Refused { error: ErrorCode::OffsetOutOfRange, message }
        })?;
        if self.epochs.truncate_start(self.leader.state().log_start_offset()) {
            self.watch(self.log.keep_epochs(&self.epochs))?;
        }
        Ok(())
    }

    /// Deletes segments that are too old or too many.
    pub(crate) fn apply_retention(&mut self, now_ms: i64) -> Result<(), PlaneError> {
        let state = self.leader.state();
        let start = self.log.delete_old(&self.settings.log, state, now_ms);
        let start = self.watch(start)?;
        if start > self.leader.state().log_start_offset() { self.start_at(start) } else { Ok(()) }
    }

    /// The log ends at an offset, or with the batch before it.
    pub(crate) fn truncate(
        &mut self,
        offset: i64,
        now_ms: i64,
        validator: &mut Validator,
    ) -> Result<(), PlaneError> {
        if offset >= self.leader.state().log_end_offset() {
            return Ok(());
        }
        self.cleaned_to = self.cleaned_to.map(|cleaned_to| cleaned_to.min(offset));
        let truncated = self.log.truncate(offset);
        let snapshot_offset = self.watch(truncated)?;
        if self.epochs.truncate_end(offset) {
            self.watch(self.log.keep_epochs(&self.epochs))?;
        }
        let snapshot = self.watch(self.read_snapshot(snapshot_offset))?;
        let start = self.leader.state().log_start_offset();
        let snapshot_offset = snapshot_offset.filter(|_| snapshot.is_some()).unwrap_or(start);
        let source = ReplaySource {
            snapshot: snapshot.as_deref(),
            snapshot_offset,
            sets: &[],
            replay: Replay::Load,
            now_ms,
        };
        let truncation = self
            .replay_truncated(offset, &source, validator.codecs())
            .inspect_err(|_| self.take_offline())?;
        self.leader.end_truncation(truncation);
        let taken = self.log.take_snapshot(self.leader.state());
        Ok(self.watch(taken)?)
    }

    /// What is known of the producers where the log was truncated to an offset.
    fn replay_truncated(
        &self,
        offset: i64,
        source: &ReplaySource<'_>,
        codecs: &mut Codecs,
    ) -> Result<Truncation, PlaneError> {
        let refused = |error: RestoreError| {
            let message = error.to_string();
            PlaneError::Refused { error: ErrorCode::KafkaStorageError, message }
        };
        let begun = self.leader.state().begin_truncation(offset, source);
        let mut truncation = begun.map_err(refused)?;
        if truncation.reads_batches() {
            self.log.each_piece_from(source.snapshot_offset, &mut |piece| {
                let done = match piece {
                    Some(batches) => truncation.replay(batches, codecs),
                    None => truncation.end_of_set(),
                };
                done.map_err(refused)
            })?;
        }
        Ok(truncation)
    }

    /// The snapshot of an offset.
    fn read_snapshot(&self, offset: Option<i64>) -> io::Result<Option<Vec<u8>>> {
        let path = self.log.disk().zip(offset).map(|(disk, offset)| disk.snapshot_path(offset));
        path.map(fs::read).transpose()
    }

    /// Leaves the log as a clean stop does.
    pub(crate) fn shut_down(&mut self) -> io::Result<()> {
        let done = self.log.shut_down(self.leader.state());
        self.watch(done)
    }

    /// What is in the log is replicated at once where nobody else is in sync.
    fn replicate(&mut self) {
        if self.settings.in_sync_replicas <= 1 {
            self.leader.advance_high_watermark(self.leader.state().log_end_offset());
        }
    }
}

/// Stores what the leader has accepted.
fn store(
    log: &mut PartitionLog,
    epochs: &mut EpochStarts,
    settings: &LogSettings,
    stored: &Stored<'_>,
    state: &PartitionState,
    now_ms: i64,
) -> io::Result<()> {
    let mut write = |parts: &[&[u8]], batches: &[BatchInfo]| {
        for batch in batches {
            let leader_epoch = batch.partition_leader_epoch;
            if epochs.latest() != Some(leader_epoch)
                && epochs.assign(leader_epoch, batch.base_offset)
            {
                log.keep_epochs(epochs)?;
            }
        }
        log.append(parts, batches, settings, state, now_ms)
    };
    let single = stored.header().map(|header| (header, BatchInfo::from_header(&header, 0)));
    match (stored, single) {
        (Stored::Patched { batch, .. }, Some((header, info))) => {
            let records = batch.get(RECORD_BATCH_OVERHEAD..).unwrap_or_default();
            write(&[&header.to_bytes(), records], &[info])
        }
        (_, Some((_, info))) if info.size == stored.len() as u64 => {
            write(&[&stored.bytes()], &[info])
        }
        _ => {
            let bytes = stored.bytes();
            let batches: Vec<_> = Batches::new(&bytes, 0).flatten().collect();
            write(&[&bytes], &batches)
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use crate::log::failing::failing_log;
    use ottla_format::builder::{BatchFields, NewRecord, build_batch};
    use ottla_log::producers::Origin;

    const APPENDS: i64 = 12;

    /// Small segments, and an entry in the indexes for every batch.
    const SETTINGS: PartitionSettings = PartitionSettings {
        log: LogSettings {
            segment_bytes: 400,
            segment_ms: i64::MAX,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 0,
            is_deleted: true,
            retention_ms: -1,
            retention_bytes: -1,
        },
        is_internal: false,
        min_insync_replicas: 1,
        in_sync_replicas: 1,
        partition_epoch: -1,
    };

    fn request(now_ms: i64) -> AppendRequest<'static> {
        AppendRequest {
            api_version: None,
            has_transactional_id: true,
            origin: Origin::Client,
            guard: None,
            transaction_version: 0,
            now_ms,
        }
    }

    /// A batch in the transaction of producer 7 with this sequence.
    fn batch(sequence: i32, validator: &mut Validator) -> Vec<u8> {
        let fields = BatchFields {
            producer_id: 7,
            producer_epoch: 0,
            base_sequence: sequence,
            is_transactional: true,
            ..BatchFields::default()
        };
        let record = NewRecord { timestamp: i64::from(sequence), ..NewRecord::default() };
        build_batch(&fields, &[record], validator.codecs()).unwrap()
    }

    fn abort(now_ms: i64) -> EndTransaction {
        EndTransaction {
            producer_id: 7,
            producer_epoch: 0,
            coordinator_epoch: 0,
            commit: false,
            transaction_version: 0,
            now_ms,
        }
    }

    /// Appends until it is done or fails, again where it may, and reads the batches that are there.
    /// Returns how often it failed.
    fn live(partition: &mut Partition) -> usize {
        let mut validator = Validator::default();
        let (mut sequence, mut failures, mut acknowledged) = (0, 0, Vec::new());
        while sequence < APPENDS as i32 {
            let end_offset = partition.offsets().log_end_offset;
            let is_data = end_offset % 3 != 2;
            let done = if is_data {
                let batch = batch(sequence, &mut validator);
                let verdict = partition.append(&batch, &request(end_offset), &mut validator);
                verdict.map(|verdict| verdict.outcome.unwrap().base_offset)
            } else {
                let ended = partition.end_transaction(&abort(end_offset), &mut validator).unwrap();
                ended.map(|verdict| verdict.outcome.unwrap().base_offset)
            };
            if let Ok(offset) = done {
                acknowledged.push(offset);
                sequence += i32::from(is_data);
                continue;
            }
            failures += 1;
            assert!(failures == 1, "one call fails");
            if partition.is_offline() {
                break;
            }
            assert_eq!(partition.offsets().log_end_offset, end_offset);
        }
        // Nothing is there twice, nothing is missing, and no state is ahead of the log.
        let mut stored = Vec::new();
        let read = partition.log.each_piece_from(0, &mut |piece| {
            stored.extend_from_slice(piece.unwrap_or_default());
            io::Result::Ok(())
        });
        if read.is_err() {
            // It is the turn of this read.
            return failures;
        }
        let offsets: Vec<_> =
            Batches::new(&stored, 0).map(|found| found.unwrap().base_offset).collect();
        assert!(offsets.starts_with(&acknowledged), "{offsets:?} {acknowledged:?}");
        if !partition.is_offline() {
            assert_eq!(offsets, acknowledged);
            assert_eq!(partition.offsets().log_end_offset, offsets.len() as i64);
        }
        failures
    }

    /// The partition of a log whose call of this number fails.
    fn failing(kind: io::ErrorKind, call: usize) -> Partition {
        let settings = LeaderSettings { transaction_verification: false, ..Default::default() };
        let leader = Leader::new(settings, 0, 0);
        let log = failing_log(kind, call).unwrap();
        Partition::new(Arc::from(*b"t"), 0, leader, log, SETTINGS).unwrap()
    }

    #[test]
    fn a_full_disk_costs_the_append_that_meets_it_and_nothing_else() {
        let (mut call, mut survived) = (0, 0);
        loop {
            let mut partition = failing(io::ErrorKind::StorageFull, call);
            if live(&mut partition) == 0 {
                break;
            }
            survived += usize::from(!partition.is_offline());
            call += 1;
        }
        // What each of the five markers has aborted is stored behind it, where the state would be
        // ahead of the log.
        assert!(survived > APPENDS as usize && survived + 5 == call, "{survived} of {call}");
    }

    #[test]
    fn any_other_error_takes_the_partition_offline_with_all_that_was_acknowledged() {
        let mut call = 0;
        loop {
            let mut partition = failing(io::ErrorKind::Other, call);
            if live(&mut partition) == 0 {
                break;
            }
            assert!(partition.is_offline());
            call += 1;
        }
        assert!(call > 20, "{call}");
    }
}
