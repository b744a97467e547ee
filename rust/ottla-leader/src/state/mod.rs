//! What a partition is between two appends: its offsets, producers and aborted transactions.

pub(crate) mod bytes;
pub(crate) mod restore;

use crate::stored::Stored;
use ottla_format::batch::BatchInfo;
use ottla_format::batches::Batches;
use ottla_format::compression::Codecs;
use ottla_format::error::Error;
use ottla_log::producers::{
    Appender, Guard, Origin, Pending, ProducerBatch, ProducerRefusal, Producers, RememberedBatch,
};
use ottla_log::sidefiles::transaction_index::{AbortedTransaction, aborted_between};
use std::fmt;

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

/// What became of a set of batches with their offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    /// It is appended.
    Appended,
    /// It is in the log already, here.
    Duplicate(RememberedBatch),
}

/// What a set of batches does to the producers.
enum Judged {
    /// Nothing.
    Plain,
    /// It follows on the last batch of its producer.
    Next(ProducerBatch),
    Pending(Pending),
    Duplicate(RememberedBatch),
}

/// A set that is one batch of records, as nearly every set is: its header says everything.
enum Single {
    /// It has no producer.
    Plain,
    OfProducer(ProducerBatch),
}

impl Single {
    #[inline(always)]
    fn of(stored: &Stored<'_>) -> Option<Self> {
        let info = BatchInfo::from_header(&stored.header()?, 0);
        if info.is_control() || info.size != stored.len() as u64 {
            return None;
        }
        if !info.has_producer_id() {
            return Some(Self::Plain);
        }
        Some(Self::OfProducer(ProducerBatch::of_records(&info)))
    }
}

/// The state of one partition.
#[derive(Clone, Debug)]
pub struct PartitionState {
    producers: Producers,
    /// Aborted transactions, in the order of their markers.
    aborted: Vec<AbortedTransaction>,
    log_start_offset: i64,
    /// Base offset of the batch that holds the log start offset, or of the next batch, or the log end
    /// offset: where a reader that asks for the log start offset begins.
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

    /// The end of what readers of committed records see (KIP-98).
    ///
    /// Where `DeleteRecords` has moved the log start into a transaction, Kafka resolves the first
    /// unstable offset to the batch that a read from the log start finds, and so may return an offset
    /// below or above it; `exactly_kafka` does the same.
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

    /// The aborted transactions that a reader of committed records of `from..upper` skips.
    pub fn aborted_between(&self, from: i64, upper: i64) -> Vec<AbortedTransaction> {
        aborted_between(&self.aborted, from, upper)
    }

    /// Judges a set of batches that has its offsets, and appends it. `keep` stores the set in between:
    /// it sees the state before the set.
    ///
    /// # Errors
    /// What `keep` fails with, or a [`ProducerRefusal`]; either way nothing is changed.
    pub fn append<E>(
        &mut self,
        stored: &Stored<'_>,
        log_end_offset: i64,
        by: &Appender<'_>,
        codecs: &mut Codecs,
        keep: impl FnOnce(&Self) -> Result<(), E>,
    ) -> Result<Result<AppendOutcome, ProducerRefusal>, E> {
        let judged = match self.judge(stored, by, codecs) {
            Ok(Judged::Duplicate(known)) => return Ok(Ok(AppendOutcome::Duplicate(known))),
            Ok(judged) => judged,
            Err(refusal) => return Ok(Err(refusal)),
        };
        keep(self)?;
        match judged {
            Judged::Next(batch) => self.producers.append_next(&batch),
            Judged::Pending(pending) => {
                // Two transactions at one offset cannot come from an append, whose offsets increase.
                if let Ok(aborted) = self.producers.commit(pending) {
                    self.aborted.extend(aborted);
                }
            }
            Judged::Plain | Judged::Duplicate(_) => {}
        }
        self.end_at(log_end_offset);
        Ok(Ok(AppendOutcome::Appended))
    }

    /// The batch of a producer that a set is, if it is what follows on the last one.
    #[inline(always)]
    pub(crate) fn next_batch(&self, stored: &Stored<'_>, origin: Origin) -> Option<ProducerBatch> {
        match Single::of(stored)? {
            Single::OfProducer(batch) => self.producers.is_next(&batch, origin).then_some(batch),
            Single::Plain => None,
        }
    }

    /// Its producer takes note of a batch that [`next_batch`](Self::next_batch) returned, once it is in
    /// the log.
    #[inline]
    pub(crate) fn append_next(&mut self, batch: &ProducerBatch) {
        self.producers.append_next(batch);
    }

    /// A set was appended, and its producers have taken note of it where it has any.
    #[inline]
    pub(crate) fn end_at(&mut self, log_end_offset: i64) {
        self.log_end_offset = log_end_offset;
        self.producers.set_end_offset(log_end_offset);
        self.high_watermark = self.high_watermark.min(log_end_offset);
    }

    /// Judges a set of batches that has its offsets.
    fn judge(
        &self,
        stored: &Stored<'_>,
        by: &Appender<'_>,
        codecs: &mut Codecs,
    ) -> Result<Judged, ProducerRefusal> {
        match Single::of(stored) {
            Some(Single::Plain) => Ok(Judged::Plain),
            Some(Single::OfProducer(batch)) if self.producers.is_next(&batch, by.origin) => {
                Ok(Judged::Next(batch))
            }
            Some(Single::OfProducer(batch)) => self.judge_each(std::iter::once(Ok(batch)), by),
            None => {
                let whole = stored.bytes();
                let read = |info: Result<BatchInfo, Error>| {
                    info.and_then(|info| ProducerBatch::read(&whole, &info, codecs)).transpose()
                };
                self.judge_each(Batches::new(&whole, 0).filter_map(read), by)
            }
        }
    }

    fn judge_each(
        &self,
        batches: impl Iterator<Item = Result<ProducerBatch, Error>>,
        by: &Appender<'_>,
    ) -> Result<Judged, ProducerRefusal> {
        let mut pending = Pending::default();
        for batch in batches {
            let batch = batch.map_err(ProducerRefusal::UnreadableMarker)?;
            if let Some(known) = self.producers.judge(&batch, by, &mut pending)? {
                return Ok(Judged::Duplicate(known));
            }
        }
        Ok(Judged::Pending(pending))
    }

    /// Begins to verify a transaction with its coordinator (KIP-890).
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

    /// Sets `producer.id.expiration.ms`.
    pub(crate) fn expire_producers_after(&mut self, expiration_ms: i64) {
        self.producer_id_expiration_ms = expiration_ms;
    }

    /// Drops producers that have been idle for `producer.id.expiration.ms`.
    pub fn expire_producers(&mut self, now_ms: i64) {
        self.producers.expire(now_ms, self.producer_id_expiration_ms);
    }

    /// Moves the high watermark, within the log.
    pub fn set_high_watermark(&mut self, offset: i64) {
        self.high_watermark = offset.max(self.log_start_offset).min(self.log_end_offset);
        self.producers.high_watermark_moved(self.high_watermark);
    }

    /// Advances the log start offset (KIP-107); a lower offset changes nothing. `batch_base_offset`
    /// is that of the stored batch which holds the offset, where the caller knows it; of the next
    /// batch if the offset is in none, and the log end offset if there is no other.
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

    /// The log below an offset was compacted: of the aborted transactions that end there, readers need
    /// to know of these alone, in the order of their markers. Where batches and marker of one are
    /// gone, a reader who is told of it would take the next transaction of its producer for aborted.
    pub fn forget_aborted(&mut self, below: i64, left: &[AbortedTransaction]) {
        let is_left = |entry: &AbortedTransaction| {
            left.binary_search_by_key(&entry.last_offset, |left| left.last_offset).is_ok()
        };
        self.aborted.retain(|entry| entry.last_offset >= below || is_left(entry));
    }

    /// The bytes of a `.snapshot` file of this state.
    pub fn snapshot(&self) -> Vec<u8> {
        self.producers.snapshot()
    }
}
