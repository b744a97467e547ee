//! What a partition is between two appends: its offsets, producers and aborted transactions, and how
//! they come back from a snapshot and the batches behind it.

use crate::verdict::Stored;
use ottla_format::batch::BatchInfo;
use ottla_format::batches::Batches;
use ottla_format::compression::Codecs;
use ottla_format::error::Error;
use ottla_log::producers::snapshot::SnapshotError;
use ottla_log::producers::transactions::{AbortedTransaction, aborted_between};
use ottla_log::producers::{
    Appender, Guard, Pending, ProducerBatch, ProducerRefusal, Producers, RememberedBatch,
};
use std::fmt;

/// Why a state cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields say what they are
pub enum RestoreError {
    /// The snapshot cannot be read.
    Snapshot(SnapshotError),
    /// A batch behind it cannot be read.
    Batch(Error),
    /// A batch behind it contradicts the transactions before it. Kafka does not load such a log.
    Producer { refusal: ProducerRefusal, base_offset: i64 },
    /// Offsets that contradict each other.
    Offsets { what: &'static str, found: i64, minimum: i64, maximum: i64 },
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Snapshot(error) => error.fmt(f),
            Self::Batch(error) => write!(f, "a stored batch cannot be read: {error}"),
            Self::Producer { refusal, base_offset } => {
                write!(f, "the stored batch at offset {base_offset} contradicts the log: {refusal}")
            }
            Self::Offsets { what, found, minimum, maximum } => {
                write!(f, "{what} is {found}, expected {minimum} to {maximum}")
            }
        }
    }
}

impl std::error::Error for RestoreError {}

/// An offset that is not in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetOutOfRange {
    /// The offset asked for.
    pub found: i64,
    /// The lowest it may be.
    pub minimum: i64,
    /// The highest it may be.
    pub maximum: i64,
}

impl fmt::Display for OffsetOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, minimum, maximum } = self;
        write!(f, "offset {found}, expected {minimum} to {maximum}")
    }
}

impl std::error::Error for OffsetOutOfRange {}

/// How stored batches are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// As after a clean stop or a truncation: each set as one append; the transaction index is kept
    /// elsewhere and not added to.
    Load,
    /// As after an unclean stop: batch by batch, and the aborted transactions are found again.
    Recover,
}

/// What a set of stored batches did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is appended.
    Appended,
    /// It was there already, here.
    Duplicate(RememberedBatch),
}

/// The state of one partition.
#[derive(Clone, Debug)]
pub struct PartitionState {
    producers: Producers,
    /// In the order of their markers.
    aborted: Vec<AbortedTransaction>,
    log_start_offset: i64,
    /// Base offset of the batch that holds the log start offset.
    log_start_batch_offset: i64,
    high_watermark: i64,
    log_end_offset: i64,
    producer_id_expiration_ms: i64,
}

impl PartitionState {
    /// An empty log that begins at an offset.
    pub fn new(log_start_offset: i64, log_end_offset: i64, producer_id_expiration_ms: i64) -> Self {
        Self {
            producers: Producers::new(log_end_offset),
            aborted: Vec::new(),
            log_start_offset,
            log_start_batch_offset: log_start_offset,
            high_watermark: log_end_offset,
            log_end_offset,
            producer_id_expiration_ms,
        }
    }

    /// The producers.
    pub fn producers(&self) -> &Producers {
        &self.producers
    }

    /// The first offset that may be read.
    pub fn log_start_offset(&self) -> i64 {
        self.log_start_offset
    }

    /// The offset that the next record gets.
    pub fn log_end_offset(&self) -> i64 {
        self.log_end_offset
    }

    /// Records below this are replicated.
    pub fn high_watermark(&self) -> i64 {
        self.high_watermark
    }

    /// First offset of the oldest transaction that is open, or whose marker is not replicated.
    pub fn first_unstable_offset(&self) -> Option<i64> {
        self.producers.transactions().first_unstable_offset()
    }

    /// Readers of committed records see what lies below this (KIP-98).
    ///
    /// Where `DeleteRecords` has moved the log start into a transaction, Kafka resolves the first
    /// unstable offset to the batch that holds the log start, and so may answer with an offset below
    /// it; `exactly_kafka` asks for that.
    pub fn last_stable_offset(&self, exactly_kafka: bool) -> i64 {
        let unstable = self.first_unstable_offset().map(|offset| {
            if offset >= self.log_start_offset {
                offset
            } else if exactly_kafka {
                self.log_start_batch_offset
            } else {
                self.log_start_offset
            }
        });
        unstable.map_or(self.high_watermark, |offset| offset.min(self.high_watermark))
    }

    /// The aborted transactions whose markers the log still holds, in the order of their markers.
    pub fn aborted_transactions(&self) -> &[AbortedTransaction] {
        &self.aborted
    }

    /// The aborted transactions that a read of committed records of `from..upper` leaves out.
    pub fn aborted_between(&self, from: i64, upper: i64) -> Vec<AbortedTransaction> {
        aborted_between(&self.aborted, from, upper)
    }

    /// Judges a set of batches that has its offsets, and appends it.
    ///
    /// # Errors
    /// [`ProducerRefusal`], with nothing changed.
    pub fn append(
        &mut self,
        stored: &Stored<'_>,
        log_end_offset: i64,
        by: &Appender<'_>,
        codecs: &mut Codecs,
    ) -> Result<Taken, ProducerRefusal> {
        // One batch of records, of which the header says everything: nearly every append.
        let single = stored
            .header()
            .map(|header| BatchInfo::from_header(&header, 0))
            .filter(|info| !info.is_control() && info.size == stored.len() as u64)
            .map(|info| info.has_producer_id().then(|| ProducerBatch::of_records(&info)));
        let known = match single {
            Some(None) => None,
            Some(Some(batch)) if self.producers.append_next(&batch, by.origin) => None,
            Some(Some(batch)) => self.take(std::iter::once(Ok(batch)), by)?,
            None => {
                let whole = stored.bytes();
                let read = |info: Result<BatchInfo, Error>| {
                    info.and_then(|info| ProducerBatch::read(&whole, &info, codecs)).transpose()
                };
                self.take(Batches::new(&whole, 0).filter_map(read), by)?
            }
        };
        if let Some(known) = known {
            return Ok(Taken::Duplicate(known));
        }
        self.log_end_offset = log_end_offset;
        self.producers.set_end_offset(log_end_offset);
        self.high_watermark = self.high_watermark.min(log_end_offset);
        Ok(Taken::Appended)
    }

    /// Judges batches and takes over what they do; gives the one in the log that one of them repeats,
    /// with nothing taken over.
    fn take(
        &mut self,
        batches: impl Iterator<Item = Result<ProducerBatch, Error>>,
        by: &Appender<'_>,
    ) -> Result<Option<RememberedBatch>, ProducerRefusal> {
        let mut pending = Pending::default();
        for batch in batches {
            let batch = batch.map_err(ProducerRefusal::UnreadableMarker)?;
            if let Some(known) = self.producers.judge(&batch, by, &mut pending)? {
                return Ok(Some(known));
            }
        }
        // Two transactions at one offset cannot come from an append, whose offsets go up.
        if let Ok(aborted) = self.producers.commit(pending) {
            self.aborted.extend(aborted);
        }
        Ok(None)
    }

    /// The coordinator is about to be asked whether a transaction goes on.
    ///
    /// # Errors
    /// [`ProducerRefusal::StaleEpoch`].
    pub fn begin_verification(
        &mut self,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        bumps_epoch: bool,
        now_ms: i64,
    ) -> Result<Option<Guard>, ProducerRefusal> {
        self.producers.begin_verification(
            producer_id,
            producer_epoch,
            base_sequence,
            bumps_epoch,
            now_ms,
        )
    }

    /// Drops producers that nothing was heard of for `producer.id.expiration.ms`.
    pub fn expire_producers(&mut self, now_ms: i64) {
        self.producers.expire(now_ms, self.producer_id_expiration_ms);
    }

    /// Moves the high watermark, within the log.
    pub fn set_high_watermark(&mut self, offset: i64) {
        self.high_watermark = offset.max(self.log_start_offset).min(self.log_end_offset);
        self.producers.high_watermark_moved(self.high_watermark);
    }

    /// Moves the log start up (KIP-107); one below it changes nothing. `batch_base_offset` is that
    /// of the stored batch which holds the offset, where the caller knows it.
    ///
    /// # Errors
    /// [`OffsetOutOfRange`] above the high watermark.
    pub fn delete_records(
        &mut self,
        offset: i64,
        batch_base_offset: Option<i64>,
    ) -> Result<(), OffsetOutOfRange> {
        if offset > self.high_watermark {
            let (minimum, maximum) = (self.log_start_offset, self.high_watermark);
            return Err(OffsetOutOfRange { found: offset, minimum, maximum });
        }
        if offset > self.log_start_offset {
            self.log_start_offset = offset;
            self.log_start_batch_offset = batch_base_offset.unwrap_or(offset);
            self.producers.log_start_moved(offset);
            let gone = self.aborted.partition_point(|entry| entry.last_offset < offset);
            self.aborted.drain(..gone);
        }
        Ok(())
    }

    /// The `.snapshot` file of now.
    pub fn snapshot(&self) -> Vec<u8> {
        self.producers.snapshot()
    }
}

/// What a state is restored from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// A `.snapshot` file; without one nothing is known of producers at `snapshot_offset`.
    pub snapshot: Option<&'a [u8]>,
    /// The offset of its name; without one, where the batches begin.
    pub snapshot_offset: i64,
    /// The stored batches from there on, in sets: in Kafka each is what one segment holds.
    pub sets: &'a [&'a [u8]],
    /// How they are read.
    pub replay: Replay,
    /// Now: producers of the snapshot may have expired.
    pub now_ms: i64,
}

impl PartitionState {
    /// Cuts the log at an offset and brings back what its producers were there. An offset at or
    /// above the log end changes nothing.
    ///
    /// # Errors
    /// [`RestoreError`], with nothing changed.
    pub fn truncate(
        &mut self,
        offset: i64,
        source: &Source<'_>,
        codecs: &mut Codecs,
    ) -> Result<(), RestoreError> {
        if offset >= self.log_end_offset {
            return Ok(());
        }
        let mut next = self.clone();
        next.log_end_offset = offset;
        if offset < next.log_start_offset {
            next.log_start_offset = offset;
            next.log_start_batch_offset = offset;
        }
        next.aborted.retain(|entry| entry.last_offset < offset);
        if next.producers.end_offset() == offset {
            next.producers.log_start_moved(next.log_start_offset);
        } else {
            // Where no producer was known, Kafka does not look for one again.
            let is_empty = next.producers.is_empty() && next.producers.end_offset() >= offset;
            let sets = if is_empty { &[][..] } else { source.sets };
            next.reload(&Source { sets, ..*source }, codecs)?;
        }
        next.producers.set_end_offset(offset);
        if next.high_watermark >= offset {
            next.set_high_watermark(offset);
        }
        *self = next;
        Ok(())
    }

    /// A log that is opened again.
    ///
    /// `aborted` is what the transaction index holds; with [`Replay::Recover`] what it lacks is
    /// found again. Without `log_end_offset` the log ends behind the last batch.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn restore(
        offsets: Offsets,
        aborted: Vec<AbortedTransaction>,
        producer_id_expiration_ms: i64,
        source: &Source<'_>,
        codecs: &mut Codecs,
    ) -> Result<Self, RestoreError> {
        let Offsets { log_start_offset, log_start_batch_offset, .. } = offsets;
        let mut state = Self::new(log_start_offset, i64::MAX, producer_id_expiration_ms);
        state.log_end_offset = offsets.log_end_offset.unwrap_or(i64::MAX);
        state.aborted = aborted;
        state.reload(source, codecs)?;
        state.aborted.retain(|entry| entry.last_offset >= log_start_offset);
        state.log_end_offset = offsets.log_end_offset.unwrap_or(state.producers.end_offset());
        state.producers.set_end_offset(state.log_end_offset);
        let within = |what, found, minimum| {
            let maximum = state.log_end_offset;
            if (minimum..=maximum).contains(&found) {
                return Ok(());
            }
            Err(RestoreError::Offsets { what, found, minimum, maximum })
        };
        within("log_end_offset", state.log_end_offset, 0)?;
        within("log_start_offset", log_start_offset, 0)?;
        within("high_watermark", offsets.high_watermark.unwrap_or(log_start_offset), 0)?;
        state.log_start_batch_offset = log_start_batch_offset.unwrap_or(log_start_offset);
        state.high_watermark = state.log_end_offset;
        if let Some(high_watermark) = offsets.high_watermark {
            state.set_high_watermark(high_watermark);
        }
        Ok(state)
    }

    /// Producers and transactions from a snapshot and the batches behind it, up to the log end.
    fn reload(&mut self, source: &Source<'_>, codecs: &mut Codecs) -> Result<(), RestoreError> {
        self.producers.clear(source.snapshot_offset);
        if let Some(snapshot) = source.snapshot {
            let expiration_ms = self.producer_id_expiration_ms;
            self.producers
                .load(snapshot, source.snapshot_offset, source.now_ms, expiration_ms)
                .map_err(RestoreError::Snapshot)?;
        }
        let first = match source.replay {
            Replay::Load => source.snapshot_offset.max(self.log_start_offset),
            Replay::Recover => source.snapshot_offset,
        };
        for set in source.sets {
            let mut pending = Pending::default();
            let mut last_offset = self.producers.end_offset() - 1;
            for info in Batches::new(set, 0) {
                let info = info.map_err(RestoreError::Batch)?;
                if !(first..self.log_end_offset).contains(&info.last_offset) {
                    continue;
                }
                last_offset = info.last_offset;
                let base_offset = info.base_offset;
                let refused = |refusal| RestoreError::Producer { refusal, base_offset };
                let batch = ProducerBatch::read(set, &info, codecs)
                    .map_err(|error| refused(ProducerRefusal::UnreadableMarker(error)))?;
                let Some(batch) = batch else { continue };
                self.producers
                    .judge(&batch, &Appender::REPLICATION, &mut pending)
                    .map_err(refused)?;
                if source.replay == Replay::Recover {
                    let found = self.producers.commit(std::mem::take(&mut pending));
                    let found = found.map_err(|error| refused(ProducerRefusal::NotBegun(error)))?;
                    let known = self.aborted.last().map_or(-1, |entry| entry.last_offset);
                    self.aborted.extend(found.iter().filter(|entry| entry.last_offset > known));
                }
            }
            self.producers.commit(pending).map_err(|error| RestoreError::Producer {
                refusal: ProducerRefusal::NotBegun(error),
                base_offset: error.transaction.last_offset,
            })?;
            self.producers.set_end_offset(last_offset.saturating_add(1));
        }
        Ok(())
    }
}

/// Where a log that is opened again begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offsets {
    /// The first offset that may be read.
    pub log_start_offset: i64,
    /// Base offset of the stored batch that holds it, where it is known.
    pub log_start_batch_offset: Option<i64>,
    /// Records below this are replicated.
    pub high_watermark: Option<i64>,
    /// The offset that the next record gets.
    pub log_end_offset: Option<i64>,
}
