//! How a partition's state is restored: from a snapshot of its producers and the batches after it.

use super::PartitionState;
use ottla_format::batch::BatchInfo;
use ottla_format::batches::Batches;
use ottla_format::compression::Codecs;
use ottla_format::error::Error;
use ottla_log::producers::{Appender, Pending, ProducerBatch, ProducerRefusal, Producers};
use ottla_log::sidefiles::snapshot::SnapshotError;
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use std::fmt;

/// Why a state cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields say what they are
pub enum RestoreError {
    /// The snapshot cannot be read.
    Snapshot(SnapshotError),
    /// A batch after it cannot be read.
    Batch(Error),
    /// A batch after it contradicts the transactions before it. Kafka does not load such a log.
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

/// How stored batches are replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// As after a clean stop or a truncation: each set as one append, without a change to the
    /// transaction index.
    Load,
    /// As after an unclean stop: batch by batch, with the aborted transactions found again.
    Recover,
}

/// What producers are restored from.
#[derive(Clone, Copy, Debug)]
pub struct ReplaySource<'a> {
    /// A `.snapshot` file; without one no producer is known at `snapshot_offset`.
    pub snapshot: Option<&'a [u8]>,
    /// The offset in its name; without one, where the batches begin.
    pub snapshot_offset: i64,
    /// The stored batches from there on, in sets: in Kafka each holds those of a segment.
    pub sets: &'a [&'a [u8]],
    /// How they are replayed.
    pub replay: Replay,
    /// The clock: producers of the snapshot may have expired.
    pub now_ms: i64,
}

/// Where a stored log begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogOffsets {
    /// The first offset that may be read.
    pub log_start_offset: i64,
    /// Base offset of the stored batch that holds it or, if none does, of the next one, if it is
    /// known.
    pub log_start_batch_offset: Option<i64>,
    /// Records below this are replicated.
    pub high_watermark: Option<i64>,
    /// The offset that the next record gets.
    pub log_end_offset: Option<i64>,
}

/// A log that a leader is restored from.
#[derive(Clone, Debug)]
pub struct StoredLog<'a> {
    /// Where it begins and ends.
    pub offsets: LogOffsets,
    /// What the transaction index holds.
    pub aborted: Vec<AbortedTransaction>,
    /// What its producers are restored from.
    pub source: ReplaySource<'a>,
}

/// A log whose producers are known: those of a broker's start.
#[derive(Clone, Debug)]
pub struct LoadedLog {
    /// Where it begins and ends.
    pub offsets: LogOffsets,
    /// What the transaction indexes hold.
    pub aborted: Vec<AbortedTransaction>,
    /// The producers at its end, with their open transactions.
    pub producers: Producers,
}

impl PartitionState {
    /// Truncates the log to an offset and restores what its producers were there. An offset at or
    /// above the log end changes nothing.
    ///
    /// # Errors
    /// [`RestoreError`], with nothing changed.
    pub fn truncate(
        &mut self,
        offset: i64,
        source: &ReplaySource<'_>,
        codecs: &mut Codecs,
    ) -> Result<(), RestoreError> {
        if offset >= self.log_end_offset {
            return Ok(());
        }
        let mut truncation = self.begin_truncation(offset, source)?;
        let sets = if truncation.reads_batches() { source.sets } else { &[] };
        for set in sets {
            truncation.replay(set, codecs)?;
            truncation.end_of_set()?;
        }
        self.end_truncation(truncation);
        Ok(())
    }

    /// Begins to truncate the log to an offset below its end, for who reads its batches piece by piece:
    /// the sets of the source are not looked at.
    ///
    /// # Errors
    /// [`RestoreError::Snapshot`].
    pub fn begin_truncation(
        &self,
        offset: i64,
        source: &ReplaySource<'_>,
    ) -> Result<Truncation, RestoreError> {
        let mut next = self.clone();
        next.log_end_offset = offset;
        if offset < next.log_start_offset {
            next.log_start_offset = offset;
        }
        next.log_start_batch_offset = next.log_start_batch_offset.min(offset);
        next.aborted.retain(|entry| entry.last_offset < offset);
        let mut reads_batches = false;
        if next.producers.end_offset() == offset {
            next.producers.log_start_moved(next.log_start_offset);
        } else {
            // Where no producer was known, Kafka does not look for one again.
            reads_batches = !next.producers.is_empty() || next.producers.end_offset() < offset;
            next.load_snapshot(source)?;
        }
        let (first, replay) = (next.first_replayed(source), source.replay);
        let pending = Pending::default();
        Ok(Truncation { next, first, replay, pending, reads_batches })
    }

    /// Ends a truncation of this state, with nothing changed since it was begun.
    pub fn end_truncation(&mut self, truncation: Truncation) {
        let mut next = truncation.next;
        let offset = next.log_end_offset;
        next.producers.set_end_offset(offset);
        if next.high_watermark >= offset {
            next.set_high_watermark(offset);
        }
        *self = next;
    }

    /// Restores the state of a stored log.
    ///
    /// With [`Replay::Recover`] the aborted transactions that the transaction index lacks are found
    /// again. Without `log_end_offset` the log ends after the last batch.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn restore(
        log: StoredLog<'_>,
        producer_id_expiration_ms: i64,
        codecs: &mut Codecs,
    ) -> Result<Self, RestoreError> {
        let StoredLog { offsets, aborted, source } = log;
        let log_start_offset = offsets.log_start_offset;
        let mut state = Self::new(log_start_offset, i64::MAX, producer_id_expiration_ms);
        state.log_end_offset = offsets.log_end_offset.unwrap_or(i64::MAX);
        state.aborted = aborted;
        state.reload(&source, codecs)?;
        state.settle(&offsets)?;
        Ok(state)
    }

    /// The state of a log that was loaded, without the producers that are expired.
    ///
    /// # Errors
    /// [`RestoreError::Offsets`].
    pub fn resume(
        log: LoadedLog,
        producer_id_expiration_ms: i64,
        now_ms: i64,
    ) -> Result<Self, RestoreError> {
        let LoadedLog { offsets, aborted, producers } = log;
        let log_start_offset = offsets.log_start_offset;
        let mut state = Self::new(log_start_offset, i64::MAX, producer_id_expiration_ms);
        state.aborted = aborted;
        state.producers = producers;
        state.settle(&offsets)?;
        state.expire_producers(now_ms);
        Ok(state)
    }

    /// The log is read: its offsets are these.
    fn settle(&mut self, offsets: &LogOffsets) -> Result<(), RestoreError> {
        let LogOffsets { log_start_offset, log_start_batch_offset, .. } = *offsets;
        self.aborted.retain(|entry| entry.last_offset >= log_start_offset);
        self.log_end_offset = offsets.log_end_offset.unwrap_or(self.producers.end_offset());
        self.producers.set_end_offset(self.log_end_offset);
        let within = |what, found, minimum| {
            let maximum = self.log_end_offset;
            if (minimum..=maximum).contains(&found) {
                return Ok(());
            }
            Err(RestoreError::Offsets { what, found, minimum, maximum })
        };
        within("log_end_offset", self.log_end_offset, 0)?;
        within("log_start_offset", log_start_offset, 0)?;
        within("high_watermark", offsets.high_watermark.unwrap_or(log_start_offset), 0)?;
        self.log_start_batch_offset = log_start_batch_offset.unwrap_or(log_start_offset);
        self.high_watermark = self.log_end_offset;
        if let Some(high_watermark) = offsets.high_watermark {
            self.set_high_watermark(high_watermark);
        }
        Ok(())
    }

    /// Restores producers and transactions from a snapshot and the batches after it, up to the log
    /// end.
    fn reload(
        &mut self,
        source: &ReplaySource<'_>,
        codecs: &mut Codecs,
    ) -> Result<(), RestoreError> {
        self.load_snapshot(source)?;
        let first = self.first_replayed(source);
        for set in source.sets {
            let mut pending = Pending::default();
            self.replay(set, first, source.replay, &mut pending, codecs)?;
            self.end_of_set(pending)?;
        }
        Ok(())
    }

    fn load_snapshot(&mut self, source: &ReplaySource<'_>) -> Result<(), RestoreError> {
        self.producers.clear(source.snapshot_offset);
        let Some(snapshot) = source.snapshot else { return Ok(()) };
        let expiration_ms = self.producer_id_expiration_ms;
        self.producers
            .load(snapshot, source.snapshot_offset, source.now_ms, expiration_ms)
            .map_err(RestoreError::Snapshot)
    }

    /// The first offset whose batch is replayed.
    fn first_replayed(&self, source: &ReplaySource<'_>) -> i64 {
        match source.replay {
            Replay::Load => source.snapshot_offset.max(self.log_start_offset),
            Replay::Recover => source.snapshot_offset,
        }
    }

    /// Replays stored batches, those from `first` up to the log end.
    fn replay(
        &mut self,
        set: &[u8],
        first: i64,
        replay: Replay,
        pending: &mut Pending,
        codecs: &mut Codecs,
    ) -> Result<(), RestoreError> {
        let mut next_offset = self.producers.end_offset();
        for info in Batches::new(set, 0) {
            let info = info.map_err(RestoreError::Batch)?;
            if !(first..self.log_end_offset).contains(&info.last_offset) {
                continue;
            }
            next_offset = info.last_offset.saturating_add(1);
            self.replay_batch(set, &info, pending, codecs)?;
            if replay == Replay::Recover {
                self.recover(std::mem::take(pending), info.base_offset)?;
            }
        }
        self.producers.set_end_offset(next_offset);
        Ok(())
    }

    /// What a set did holds from now on: until then it is one append.
    fn end_of_set(&mut self, pending: Pending) -> Result<(), RestoreError> {
        self.producers.commit(pending).map_err(|error| RestoreError::Producer {
            refusal: ProducerRefusal::NotBegun(error),
            base_offset: error.transaction.last_offset,
        })?;
        Ok(())
    }

    fn replay_batch(
        &self,
        set: &[u8],
        info: &BatchInfo,
        pending: &mut Pending,
        codecs: &mut Codecs,
    ) -> Result<(), RestoreError> {
        let refused = |refusal| RestoreError::Producer { refusal, base_offset: info.base_offset };
        let batch = ProducerBatch::read(set, info, codecs)
            .map_err(|error| refused(ProducerRefusal::UnreadableMarker(error)))?;
        if let Some(batch) = batch {
            self.producers.judge(&batch, &Appender::REPLICATION, pending).map_err(refused)?;
        }
        Ok(())
    }

    /// Commits what a batch did, and finds the aborted transactions that the index lacks.
    fn recover(&mut self, pending: Pending, base_offset: i64) -> Result<(), RestoreError> {
        let found = self.producers.commit(pending).map_err(|error| RestoreError::Producer {
            refusal: ProducerRefusal::NotBegun(error),
            base_offset,
        })?;
        let known = self.aborted.last().map_or(-1, |entry| entry.last_offset);
        self.aborted.extend(found.iter().filter(|entry| entry.last_offset > known));
        Ok(())
    }
}

/// A truncation under way: the state at its end, as far as batches were read.
#[derive(Debug)]
pub struct Truncation {
    next: PartitionState,
    first: i64,
    replay: Replay,
    pending: Pending,
    reads_batches: bool,
}

impl Truncation {
    /// Whether it depends on the batches from the snapshot on up to the new end.
    pub fn reads_batches(&self) -> bool {
        self.reads_batches
    }

    /// Takes the next whole batches of a set.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn replay(&mut self, batches: &[u8], codecs: &mut Codecs) -> Result<(), RestoreError> {
        self.next.replay(batches, self.first, self.replay, &mut self.pending, codecs)
    }

    /// A set ends: in Kafka it holds the batches of a segment.
    ///
    /// # Errors
    /// [`RestoreError::Producer`].
    pub fn end_of_set(&mut self) -> Result<(), RestoreError> {
        self.next.end_of_set(std::mem::take(&mut self.pending))
    }
}
