//! One partition: what its leader decides, its log stores.

use crate::error::PlaneError;
use crate::log::epochs::EpochStarts;
use crate::log::memory::MemorySegment;
use crate::log::partition_log::{LogSettings, PartitionLog};
use ottla_format::batch::BatchInfo;
use ottla_format::batches::Batches;
use ottla_format::builder::BuildError;
use ottla_format::error_code::ErrorCode;
use ottla_format::header::RECORD_BATCH_OVERHEAD;
use ottla_leader::{
    AppendRequest, EndTransaction, Leader, LeaderSettings, Replay, ReplaySource, Stored, Validator,
    Verdict,
};
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
    pub(crate) is_offline: bool,
}

impl Partition {
    pub(crate) fn new(
        topic: Arc<[u8]>,
        index: i32,
        leader: Leader,
        settings: PartitionSettings,
        now_ms: i64,
    ) -> Self {
        let offset = leader.state().log_end_offset();
        let log = PartitionLog::new(offset, now_ms, || Box::<MemorySegment>::default());
        let mut epochs = EpochStarts::default();
        epochs.assign(leader.settings().leader_epoch, offset);
        Self { topic, index, leader, log, epochs, settings, is_offline: false }
    }

    /// Decides by other settings from now on.
    pub(crate) fn configure(&mut self, leader: LeaderSettings, settings: PartitionSettings) {
        self.epochs.assign(leader.leader_epoch, self.leader.state().log_end_offset());
        self.leader.configure(leader);
        self.settings = settings;
        self.replicate();
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
        let verdict = self.leader.append(records, request, validator);
        self.store(&verdict, request.now_ms)?;
        Ok(verdict)
    }

    /// Appends the marker that ends a transaction (KIP-98).
    pub(crate) fn end_transaction(
        &mut self,
        end: &EndTransaction,
        validator: &mut Validator,
    ) -> Result<io::Result<Verdict<'static>>, BuildError> {
        let verdict = self.leader.end_transaction(end, validator)?;
        Ok(self.store(&verdict, end.now_ms).map(|()| verdict))
    }

    /// Stores what the leader has accepted.
    fn store(&mut self, verdict: &Verdict<'_>, now_ms: i64) -> io::Result<()> {
        let Ok(accepted) = &verdict.outcome else { return Ok(()) };
        let stored = &accepted.stored;
        if stored.is_empty() {
            return Ok(());
        }
        let single = stored.header().map(|header| (header, BatchInfo::from_header(&header, 0)));
        let written = match (stored, single) {
            (Stored::Patched { batch, .. }, Some((header, info))) => {
                let records = batch.get(RECORD_BATCH_OVERHEAD..).unwrap_or_default();
                self.write(&[&header.to_bytes(), records], &[info], now_ms)
            }
            (_, Some((_, info))) if info.size == stored.len() as u64 => {
                self.write(&[&stored.bytes()], &[info], now_ms)
            }
            _ => {
                let bytes = stored.bytes();
                let batches: Vec<_> = Batches::new(&bytes, 0).flatten().collect();
                self.write(&[&bytes], &batches, now_ms)
            }
        };
        self.is_offline |= written.is_err();
        written?;
        self.replicate();
        Ok(())
    }

    fn write(&mut self, parts: &[&[u8]], batches: &[BatchInfo], now_ms: i64) -> io::Result<()> {
        for batch in batches {
            if self.epochs.latest() != Some(batch.partition_leader_epoch) {
                self.epochs.assign(batch.partition_leader_epoch, batch.base_offset);
            }
        }
        self.log.append(parts, batches, &self.settings.log, now_ms)
    }

    /// The log begins at an offset.
    pub(crate) fn start_at(&mut self, offset: i64) -> Result<(), PlaneError> {
        let log_end_offset = self.leader.state().log_end_offset();
        let batch = self.log.base_offset_of(offset)?.unwrap_or(log_end_offset);
        let moved = self.leader.delete_records(offset, Some(batch));
        moved.map_err(|error| {
            let message = error.to_string();
            PlaneError::Refused { error: ErrorCode::OffsetOutOfRange, message }
        })?;
        self.epochs.truncate_start(self.leader.state().log_start_offset());
        Ok(())
    }

    /// The log ends at an offset, or with the batch before it.
    pub(crate) fn truncate(
        &mut self,
        offset: i64,
        now_ms: i64,
        validator: &mut Validator,
    ) -> Result<(), PlaneError> {
        self.log.truncate(offset)?;
        self.epochs.truncate_end(offset);
        let sets = self.log.sets()?;
        let sets: Vec<&[u8]> = sets.iter().map(Vec::as_slice).collect();
        let snapshot_offset = self.leader.state().log_start_offset();
        let source = ReplaySource {
            snapshot: None,
            snapshot_offset,
            sets: &sets,
            replay: Replay::Load,
            now_ms,
        };
        self.leader.truncate(offset, &source, validator.codecs()).map_err(|error| {
            let message = error.to_string();
            PlaneError::Refused { error: ErrorCode::KafkaStorageError, message }
        })
    }

    /// What is in the log is replicated at once where nobody else is in sync.
    fn replicate(&mut self) {
        if self.settings.in_sync_replicas <= 1 {
            self.leader.advance_high_watermark(self.leader.state().log_end_offset());
        }
    }
}
