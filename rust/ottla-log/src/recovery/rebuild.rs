//! What a segment's side files should be: one pass over its batches, as `LogSegment.recover` does it.
//!
//! The pass ends at the first batch that is framed wrongly, whose checksum is wrong, or whose marker
//! cannot be read; what comes before is kept.

use super::epochs::LeaderEpochs;
use super::log::{Frame, Log};
use super::segment::is_in_range;
use super::stop::Stop;
use crate::names::SegmentNames;
use crate::producers::{
    Appender, Pending, ProducerBatch, ProducerRefusal, Producers, control_record,
};
use crate::sidefiles::checkpoint::write_leader_epochs;
use crate::sidefiles::offset_index::{OFFSET_ENTRY_BYTES, OffsetEntry};
use crate::sidefiles::snapshot::SnapshotError;
use crate::sidefiles::time_index::{TIME_ENTRY_BYTES, TimeEntry};
use crate::sidefiles::transaction_index::AbortedTransaction;
use crate::source::Source;
use ottla_format::batch::BatchInfo;
use ottla_format::compression::Codecs;
use ottla_format::error::{Error, ErrorKind, Family};
use ottla_format::limits::Limits;
use std::io;

/// What a topic's configuration says of its indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// `index.interval.bytes`: bytes between two entries of an index.
    pub index_interval_bytes: u64,
    /// `segment.index.bytes`: bytes of the largest index.
    pub segment_index_bytes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { index_interval_bytes: 4096, segment_index_bytes: 10 << 20 }
    }
}

/// What one pass has made.
#[derive(Clone, Debug)]
pub(super) struct Rebuilt {
    base_offset: i64,
    pub(super) index: Vec<OffsetEntry>,
    pub(super) time_index: Vec<TimeEntry>,
    pub(super) aborted: Vec<AbortedTransaction>,
    /// Greatest timestamp, and the last offset of the batch that reached it first.
    pub(super) max_timestamp: (i64, i64),
    pub(super) valid_bytes: u64,
    /// Why the rest was not taken.
    pub(super) fault: Option<String>,
    last_entry: u64,
    last_indexed: i64,
}

impl Rebuilt {
    pub(super) fn new(base_offset: i64) -> Self {
        Self {
            base_offset,
            index: Vec::new(),
            time_index: Vec::new(),
            aborted: Vec::new(),
            max_timestamp: (-1, base_offset),
            valid_bytes: 0,
            fault: None,
            last_entry: 0,
            last_indexed: base_offset,
        }
    }

    fn relative(&self, offset: i64) -> i32 {
        offset.wrapping_sub(self.base_offset) as i32
    }

    /// Takes a sound batch into both indexes, where an entry is due.
    fn add(&mut self, last_offset: i64, max_timestamp: i64, config: &Config) -> Result<(), Stop> {
        if max_timestamp > self.max_timestamp.0 {
            self.max_timestamp = (max_timestamp, last_offset);
        }
        if self.valid_bytes - self.last_entry > config.index_interval_bytes {
            self.add_offset(last_offset, config)?;
            self.add_timestamp(Some(config))?;
            self.last_entry = self.valid_bytes;
        }
        Ok(())
    }

    fn add_offset(&mut self, last_offset: i64, config: &Config) -> Result<(), Stop> {
        let count = self.index.len();
        if count as u64 >= config.segment_index_bytes / OFFSET_ENTRY_BYTES as u64 {
            let message = format!("Attempt to append to a full index (size = {count}).");
            return Err(Stop::illegal_argument(message));
        }
        if count > 0 && last_offset <= self.last_indexed {
            return Err(Stop::InvalidOffset(format!(
                "Attempt to append an offset {last_offset} to position {count} no larger than the \
                 last offset appended ({})",
                self.last_indexed
            )));
        }
        let relative_offset = self.relative(last_offset);
        self.index.push(OffsetEntry { relative_offset, position: self.valid_bytes as i32 });
        self.last_indexed = last_offset;
        Ok(())
    }

    /// Adds the greatest timestamp so far; at the end of a segment even to a full index.
    fn add_timestamp(&mut self, config: Option<&Config>) -> Result<(), Stop> {
        let count = self.time_index.len();
        let room = |config: &Config| config.segment_index_bytes / TIME_ENTRY_BYTES as u64;
        if config.is_some_and(|config| count as u64 + 1 >= room(config)) {
            let message = format!("Attempt to append to a full time index (size = {count}).");
            return Err(Stop::illegal_argument(message));
        }
        let (timestamp, offset) = self.max_timestamp;
        let last = self.time_index.last();
        if let Some(last) = last.map(|entry| entry.offset(self.base_offset))
            && offset < last
        {
            return Err(Stop::InvalidOffset(format!(
                "Attempt to append an offset ({offset}) to slot {count} no larger than the last \
                 offset appended ({last})"
            )));
        }
        if timestamp > last.map_or(-1, |entry| entry.timestamp) {
            let relative_offset = self.relative(offset);
            self.time_index.push(TimeEntry { timestamp, relative_offset });
        }
        Ok(())
    }

    /// The pass is over: the greatest timestamp goes into the time index, full or not.
    pub(super) fn finish(&mut self) -> Result<(), Stop> {
        self.add_timestamp(None)
    }

    fn abort(&mut self, entry: AbortedTransaction) -> Result<(), Stop> {
        if let Some(last) = self.aborted.last()
            && last.last_offset >= entry.last_offset
        {
            return Err(Stop::illegal_argument(format!(
                "The last offset of appended transactions must increase sequentially, but {} is \
                 not greater than current last offset {}",
                entry.last_offset, last.last_offset
            )));
        }
        self.aborted.push(entry);
        Ok(())
    }
}

/// What a pass needs beside the batches.
pub(super) struct Pass<'a> {
    pub(super) config: &'a Config,
    pub(super) codecs: &'a mut Codecs,
    pub(super) producers: &'a mut Producers,
    pub(super) epochs: &'a mut LeaderEpochs,
    pub(super) partition: &'a str,
}

impl Pass<'_> {
    /// Reads a segment from its beginning. What `rebuilt` holds counts after an error, too.
    pub(super) fn run(&mut self, log: &mut Log<'_>, rebuilt: &mut Rebuilt) -> Result<(), Stop> {
        match self.batches(log, rebuilt) {
            Err(Stop::Corrupt(message) | Stop::InvalidRecord(message)) => {
                rebuilt.fault = Some(message);
            }
            result => result?,
        }
        Ok(())
    }

    fn batches(&mut self, log: &mut Log<'_>, rebuilt: &mut Rebuilt) -> Result<(), Stop> {
        let base_offset = rebuilt.base_offset;
        while let Some(frame) = log.next(rebuilt.valid_bytes, log.size())? {
            log.check(&frame)?;
            let info = log.info(&frame)?;
            if !is_in_range(base_offset, info.last_offset) {
                return Err(Stop::Overflow { base_offset });
            }
            rebuilt.add(info.last_offset, info.max_timestamp, self.config)?;
            rebuilt.valid_bytes = frame.end();
            if frame.magic >= 2 {
                self.epochs.reached(info.partition_leader_epoch, info.base_offset)?;
                self.produced(log, &frame, &info, rebuilt)?;
                self.producers.set_end_offset(info.last_offset.wrapping_add(1));
            }
        }
        Ok(())
    }

    fn produced(
        &mut self,
        log: &mut Log<'_>,
        frame: &Frame,
        info: &BatchInfo,
        rebuilt: &mut Rebuilt,
    ) -> Result<(), Stop> {
        let Some(batch) = producer_batch(log, frame, info, self.codecs)? else { return Ok(()) };
        let mut pending = Pending::default();
        judge(self.producers, &batch, &mut pending, self.partition)?;
        for aborted in commit(self.producers, pending, self.partition)? {
            rebuilt.abort(aborted)?;
        }
        Ok(())
    }
}

/// The entries of an offset index over a part of a segment that was read before.
pub(super) fn rebuild_indexes(
    log: &mut Log<'_>,
    names: &SegmentNames,
    valid_bytes: u64,
    config: &Config,
) -> Result<Vec<OffsetEntry>, Stop> {
    let mut rebuilt = Rebuilt::new(names.base_offset);
    while let Some(frame) = log.next(rebuilt.valid_bytes, valid_bytes)? {
        rebuilt.add(log.last_offset(&frame)?, -1, config)?;
        rebuilt.valid_bytes = frame.end();
    }
    Ok(rebuilt.index)
}

/// The batch as the rules of producers see it; `None` without a producer id.
pub(super) fn producer_batch(
    log: &mut Log<'_>,
    frame: &Frame,
    info: &BatchInfo,
    codecs: &mut Codecs,
) -> Result<Option<ProducerBatch>, Stop> {
    if !info.has_producer_id() {
        return Ok(None);
    }
    if !info.is_control() {
        return Ok(Some(ProducerBatch::of_records(info)));
    }
    let whole = log.whole(frame)?;
    let here = BatchInfo { position: 0, size: frame.total, ..*info };
    ProducerBatch::read(whole, &here, codecs).map_err(|error| match error.kind {
        ErrorKind::ControlBatch { .. } => {
            let record = control_record(whole, &here, codecs);
            let name = record.ok().flatten().map_or("UNKNOWN", |(control, _)| control.name());
            Stop::illegal_argument(format!(
                "Invalid control record type for end transaction marker {name}"
            ))
        }
        _ => marker_stop(&error),
    })
}

/// The exception with which Kafka meets a marker it cannot read.
fn marker_stop(error: &Error) -> Stop {
    let message = error.kind.to_string();
    match error.kind {
        ErrorKind::ControlKey { size: -1, .. } | ErrorKind::ControlValue { size: -1, .. } => {
            Stop::other("java.lang.NullPointerException", message)
        }
        ErrorKind::ControlValue { size: ..=5, .. } => {
            Stop::other("java.nio.BufferUnderflowException", message)
        }
        ErrorKind::UnknownCodec { .. } => Stop::illegal_argument(message),
        kind => match kind.family() {
            Family::Compression => Stop::kafka(message),
            Family::Limit => Stop::Limit(message),
            _ => Stop::InvalidRecord(message),
        },
    }
}

/// Takes a batch into what is pending, with the rules of a log that is read again.
pub(super) fn judge(
    producers: &Producers,
    batch: &ProducerBatch,
    pending: &mut Pending,
    partition: &str,
) -> Result<(), Stop> {
    let judged = producers.judge(batch, &Appender::REPLICATION, pending);
    judged.map(|_| ()).map_err(|refusal| match refusal {
        ProducerRefusal::PlainInTransaction { producer_id, .. } => Stop::other(
            "org.apache.kafka.common.errors.InvalidTxnStateException",
            format!(
                "Expected transactional write from producer {producer_id} at offset (offset={}, \
                 segment=[-1:-1]) in partition {partition}",
                batch.base_offset
            ),
        ),
        refusal => Stop::kafka(refusal.to_string()),
    })
}

/// Takes over what is pending: the transactions it aborts.
pub(super) fn commit(
    producers: &mut Producers,
    pending: Pending,
    partition: &str,
) -> Result<Vec<AbortedTransaction>, Stop> {
    producers.commit(pending).map_err(|not_begun| {
        let transaction = not_begun.transaction;
        Stop::illegal_argument(format!(
            "Attempted to complete transaction CompletedTxn(producerId={}, firstOffset={}, \
             lastOffset={}, isAborted={}) on partition {partition} which was not started",
            transaction.producer_id,
            transaction.first_offset,
            transaction.last_offset,
            !transaction.is_commit
        ))
    })
}

/// The side files of one segment as Kafka would write them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideFiles {
    /// `.index`.
    pub offset_index: Vec<u8>,
    /// `.timeindex`.
    pub time_index: Vec<u8>,
    /// `.txnindex`; Kafka makes no such file where this is empty.
    pub transaction_index: Vec<u8>,
    /// The `.snapshot` after the last batch.
    pub snapshot: Vec<u8>,
    /// The offset in that snapshot's name.
    pub next_offset: i64,
    /// `leader-epoch-checkpoint` after the last batch.
    pub leader_epochs: Vec<u8>,
    /// Bytes of the segment up to the first batch that a recovery does not take.
    pub valid_bytes: u64,
    /// Why it does not.
    pub fault: Option<String>,
}

/// Builds what should stand beside a segment: its indexes as a recovery makes them, and the producer
/// snapshot and leader epochs after it. `snapshot` and `leader_epochs` are those before it.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] where a recovery would end with an exception or `snapshot` is none;
/// what keeps the segment from being read.
pub fn rebuild_side_files(
    segment: &dyn Source,
    base_offset: i64,
    snapshot: Option<&[u8]>,
    leader_epochs: Option<&[u8]>,
    config: &Config,
) -> io::Result<SideFiles> {
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    let mut producers = Producers::new(base_offset);
    if let Some(snapshot) = snapshot {
        let loaded: Result<(), SnapshotError> = producers.load(snapshot, base_offset, 0, i64::MAX);
        loaded.map_err(|error| invalid(error.to_string()))?;
    }
    let refused = |stop: Stop| match stop.refusal() {
        Ok(refusal) => invalid(format!("{}: {}", refusal.class, refusal.message)),
        Err(error) => error,
    };
    let epochs = leader_epochs.map(|data| LeaderEpochs::read(data, "leader-epoch-checkpoint"));
    let mut epochs = epochs.transpose().map_err(refused)?.unwrap_or_default();
    let mut log = Log::new(Box::new(segment), (0, segment.size()?), "the segment".to_owned());
    let mut rebuilt = Rebuilt::new(base_offset);
    let mut codecs = Codecs::new(Limits::default());
    let mut pass = Pass {
        config,
        codecs: &mut codecs,
        producers: &mut producers,
        epochs: &mut epochs,
        partition: "",
    };
    pass.run(&mut log, &mut rebuilt).and_then(|()| rebuilt.finish()).map_err(refused)?;
    Ok(SideFiles {
        offset_index: rebuilt.index.iter().flat_map(OffsetEntry::to_bytes).collect(),
        time_index: rebuilt.time_index.iter().flat_map(TimeEntry::to_bytes).collect(),
        transaction_index: rebuilt.aborted.iter().flat_map(AbortedTransaction::to_bytes).collect(),
        snapshot: producers.snapshot(),
        next_offset: producers.end_offset(),
        leader_epochs: write_leader_epochs(&epochs.entries()),
        valid_bytes: rebuilt.valid_bytes,
        fault: rebuilt.fault,
    })
}
