//! What is asked and done beside Produce and Fetch: offsets by time and by leader epoch, deletion,
//! retention, what coordinators write and read.

use crate::error::PlaneError;
use crate::partition::Partition;
use crate::plane::DataPlane;
use crate::topics::Handle;
use ottla_format::error_code::ErrorCode;
use ottla_leader::{AppendRequest, EndTransaction, Validator, Verdict};
use ottla_log::producers::Guard;

/// What `ListOffsets` asks for, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetQuery {
    /// −1: the end of what may be read.
    Latest,
    /// −2: the log start offset.
    Earliest,
    /// −3: the first record with the largest timestamp (KIP-734).
    MaxTimestamp,
    /// −4: the log start offset of what is not in remote storage (KIP-405).
    EarliestLocal,
    /// −5 and −6: what is in remote storage, of which there is none (KIP-1005, KIP-1023).
    Remote,
    /// The first record of this time or a later one.
    Timestamp(i64),
}

impl From<i64> for OffsetQuery {
    fn from(number: i64) -> Self {
        match number {
            -1 => Self::Latest,
            -2 => Self::Earliest,
            -3 => Self::MaxTimestamp,
            -4 => Self::EarliestLocal,
            -5 | -6 => Self::Remote,
            timestamp => Self::Timestamp(timestamp),
        }
    }
}

/// An offset that was found, each −1 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Kafka's own names")]
pub struct FoundOffset {
    pub offset: i64,
    pub timestamp: i64,
    pub leader_epoch: i32,
}

impl FoundOffset {
    const NONE: Self = Self { offset: -1, timestamp: -1, leader_epoch: -1 };
}

impl DataPlane {
    pub(crate) fn known(&self, handle: Handle) -> Result<&Partition, PlaneError> {
        let partition = self.partition(handle).ok_or(PlaneError::Closed { handle })?;
        if partition.is_offline() { Err(offline(partition)) } else { Ok(partition) }
    }

    pub(crate) fn known_mut(&mut self, handle: Handle) -> Result<&mut Partition, PlaneError> {
        let partition = self.partition_mut(handle).ok_or(PlaneError::Closed { handle })?;
        if partition.is_offline() { Err(offline(partition)) } else { Ok(partition) }
    }

    /// Appends batches that are no client's: a coordinator's, or those of the leader that this
    /// partition follows.
    ///
    /// # Errors
    /// [`PlaneError`]; a refusal of the leader is a verdict.
    pub fn append<'a>(
        &mut self,
        handle: Handle,
        records: &'a [u8],
        request: &AppendRequest<'_>,
        validator: &mut Validator,
    ) -> Result<Verdict<'a>, PlaneError> {
        let (size, maximum) = (records.len(), self.settings.max_stored_bytes);
        if !self.has_room(self.known(handle)?, size) {
            let message =
                format!("{size} more bytes than the {maximum} that logs in memory may hold");
            return Err(PlaneError::Refused { error: ErrorCode::KafkaStorageError, message });
        }
        let verdict = self.known_mut(handle)?.append(records, request, validator)?;
        self.count(handle, &verdict);
        Ok(verdict)
    }

    /// Appends the marker that ends a transaction (KIP-98).
    ///
    /// # Errors
    /// [`PlaneError`]; a refusal of the leader is a verdict.
    pub fn end_transaction(
        &mut self,
        handle: Handle,
        end: &EndTransaction,
        validator: &mut Validator,
    ) -> Result<Verdict<'static>, PlaneError> {
        let partition = self.known_mut(handle)?;
        let verdict = partition.end_transaction(end, validator).map_err(PlaneError::Marker)??;
        self.count(handle, &verdict);
        Ok(verdict)
    }

    /// Whether a log may take so many bytes: what is in memory is bounded, and a disk says itself when
    /// it is full.
    pub(crate) fn has_room(&self, partition: &Partition, size: usize) -> bool {
        let wanted = self.stored_bytes.saturating_add(size as u64);
        partition.log.disk().is_some() || wanted <= self.settings.max_stored_bytes
    }

    fn count(&mut self, handle: Handle, verdict: &Verdict<'_>) {
        if let Ok(accepted) = &verdict.outcome {
            self.stored_bytes = self.stored_bytes.saturating_add(accepted.stored.len() as u64);
            self.note_rolled(handle);
        }
    }

    /// Begins to verify a producer's transaction with its coordinator (KIP-890). Returns the guard
    /// that the next append has to carry, or `None` if that transaction is open here already.
    ///
    /// # Errors
    /// [`PlaneError`]: an epoch below the producer's.
    pub fn begin_verification(
        &mut self,
        handle: Handle,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        transaction_version: i16,
        now_ms: i64,
    ) -> Result<Option<Guard>, PlaneError> {
        let leader = &mut self.known_mut(handle)?.leader;
        let begun = leader.begin_verification(
            producer_id,
            producer_epoch,
            base_sequence,
            transaction_version,
            now_ms,
        );
        begun.map_err(PlaneError::from)
    }

    /// Gives whole batches to `each`: from the one that holds an offset on, up to the log end, at
    /// least one of them and otherwise at most `max_bytes`.
    ///
    /// # Errors
    /// [`PlaneError`]: an offset that is not in the log.
    pub fn read(
        &self,
        handle: Handle,
        offset: i64,
        max_bytes: u64,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), PlaneError> {
        let partition = self.known(handle)?;
        let offsets = partition.offsets();
        let (minimum, maximum) = (offsets.log_start_offset, offsets.log_end_offset);
        if !(minimum..=maximum).contains(&offset) {
            let message = format!("offset {offset}, expected {minimum} to {maximum}");
            return Err(PlaneError::Refused { error: ErrorCode::OffsetOutOfRange, message });
        }
        let span = partition.watch(partition.log.read(offset, maximum, max_bytes, true))?;
        Ok(partition.watch(partition.log.give(&span, each))?)
    }

    /// Holds the leader epoch that a client knows, −1 for none, to that of a partition (KIP-320).
    ///
    /// # Errors
    /// [`PlaneError`]: an older one is fenced, a newer one is not known yet.
    pub fn check_leader_epoch(&self, handle: Handle, current: i32) -> Result<(), PlaneError> {
        self.known(handle)?.check_leader_epoch(current).map_err(|error| {
            let message = format!("leader epoch {current}, which is not that of the partition");
            PlaneError::Refused { error, message }
        })
    }

    /// The offset that `ListOffsets` asks for.
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn find_offset(
        &self,
        handle: Handle,
        query: OffsetQuery,
        is_read_committed: bool,
        validator: &mut Validator,
    ) -> Result<FoundOffset, PlaneError> {
        let partition = self.known(handle)?;
        let offsets = partition.offsets();
        let start = offsets.log_start_offset;
        let end =
            if is_read_committed { offsets.last_stable_offset } else { offsets.high_watermark };
        let epoch_of = |offset| partition.epochs.of(offset).unwrap_or(-1);
        let codecs = validator.codecs();
        let found = match query {
            OffsetQuery::Latest => {
                let leader_epoch = partition.leader.settings().leader_epoch;
                return Ok(FoundOffset { offset: end, timestamp: -1, leader_epoch });
            }
            OffsetQuery::Earliest | OffsetQuery::EarliestLocal => {
                let leader_epoch = epoch_of(start);
                return Ok(FoundOffset { offset: start, timestamp: -1, leader_epoch });
            }
            OffsetQuery::Remote => None,
            OffsetQuery::MaxTimestamp => {
                partition.watch(partition.log.find_max_timestamp(start, codecs))?
            }
            OffsetQuery::Timestamp(timestamp) => {
                partition.watch(partition.log.find_timestamp(timestamp, start, codecs))?
            }
        };
        Ok(found.filter(|found| found.offset < end).map_or(FoundOffset::NONE, |found| {
            let (offset, timestamp) = (found.offset, found.timestamp);
            FoundOffset { offset, timestamp, leader_epoch: epoch_of(offset) }
        }))
    }

    /// Where a leader epoch ends (KIP-101, KIP-279): the newest epoch not above it, and the offset
    /// behind its last record; −1 and −1 of an epoch above all that are known.
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn end_of_epoch(&self, handle: Handle, epoch: i32) -> Result<(i32, i64), PlaneError> {
        let partition = self.known(handle)?;
        let log_end_offset = partition.leader.state().log_end_offset();
        Ok(partition.epochs.end_of(epoch, log_end_offset).unwrap_or((-1, -1)))
    }

    /// Advances the log start offset (KIP-107); −1 is the high watermark. Returns the log start
    /// offset.
    ///
    /// # Errors
    /// [`PlaneError`]: an offset above the high watermark, or a negative one.
    pub fn delete_records(&mut self, handle: Handle, offset: i64) -> Result<i64, PlaneError> {
        let partition = self.known_mut(handle)?;
        let high_watermark = partition.leader.state().high_watermark();
        let offset = if offset == -1 { high_watermark } else { offset };
        if !(0..=high_watermark).contains(&offset) {
            let message = format!("offset {offset}, expected 0 to {high_watermark}");
            return Err(PlaneError::Refused { error: ErrorCode::OffsetOutOfRange, message });
        }
        partition.start_at(offset)?;
        Ok(partition.leader.state().log_start_offset())
    }

    /// Deletes segments by `retention.ms`, `retention.bytes` and the log start offset. Returns the
    /// partitions that begin at another offset since. A partition whose files cannot be deleted is
    /// offline then.
    pub fn apply_retention(&mut self, now_ms: i64) -> Vec<Handle> {
        let (mut moved, mut freed) = (Vec::new(), 0u64);
        for (handle, partition) in self.each_mut().filter(|(_, found)| !found.is_offline()) {
            let before = (partition.log.size(), partition.offsets().log_start_offset);
            let is_done = partition.apply_retention(now_ms).is_ok();
            if is_done && partition.offsets().log_start_offset > before.1 {
                moved.push(handle);
            }
            freed = freed.saturating_add(before.0.saturating_sub(partition.log.size()));
        }
        self.stored_bytes = self.stored_bytes.saturating_sub(freed);
        moved
    }

    /// Drops producers that have been idle for `producer.id.expiration.ms`, in all partitions.
    pub fn expire_producers(&mut self, now_ms: i64) {
        for (_, partition) in self.each_mut() {
            partition.leader.expire_producers(now_ms);
        }
    }

    /// Moves the high watermark of a partition with several replicas, within the log.
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn advance_high_watermark(
        &mut self,
        handle: Handle,
        offset: i64,
    ) -> Result<(), PlaneError> {
        self.known_mut(handle)?.leader.advance_high_watermark(offset);
        Ok(())
    }

    /// Truncates the log of a follower to an offset.
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn truncate(
        &mut self,
        handle: Handle,
        offset: i64,
        now_ms: i64,
        validator: &mut Validator,
    ) -> Result<(), PlaneError> {
        let partition = self.known_mut(handle)?;
        let before = partition.log.size();
        partition.truncate(offset, now_ms, validator)?;
        let freed = before.saturating_sub(partition.log.size());
        self.stored_bytes = self.stored_bytes.saturating_sub(freed);
        Ok(())
    }
}

fn offline(partition: &Partition) -> PlaneError {
    let (topic, index) = (String::from_utf8_lossy(&partition.topic), partition.index);
    let message = format!("{topic}-{index} is offline: its log could not be written or read");
    PlaneError::Refused { error: ErrorCode::KafkaStorageError, message }
}
