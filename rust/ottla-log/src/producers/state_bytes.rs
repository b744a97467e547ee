//! All that is known of a partition's producers as bytes, to go on elsewhere.
//!
//! A snapshot keeps the newest batch of each producer, as Kafka's does; these bytes keep all that are
//! remembered, and the transactions whose markers are not replicated. Verifications are left out: a
//! guard is known only to the process that gave it out. Numbers are big-endian.
//!
//! ```text
//! end offset i64 │ added u64 │ buckets u64 │ producers u32 × entry
//! open u32 × (first offset i64, producer id i64) │ unreplicated u32 × (i64, i64) │ has clashed u8
//! entry: number u64 │ id i64 │ epoch i16 │ coordinator i32 │ timestamp i64 │ in transaction u8 │
//!        its first offset i64 │ batches u8 × (sequence i32, offset i64, delta i32, timestamp i64)
//! ```

use super::entry::{ProducerEntry, RememberedBatch};
use super::id_hash::IdHash;
use super::java_table::JavaTable;
use super::table::{KnownProducer, Producers};
use super::transactions::Transactions;
use crate::sorting::sort_by_key;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Bytes of an entry without batches.
const ENTRY_BYTES: usize = 40;
/// Bytes of a pair of numbers.
const PAIR_BYTES: usize = 16;

/// Why bytes are no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateError {
    /// They end before what they announce.
    Cut,
    /// A value that no state has; the name of the field.
    Value(&'static str),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("it ends before what it announces"),
            Self::Value(field) => write!(f, "no state has this {field}"),
        }
    }
}

impl std::error::Error for StateError {}

/// Reads numbers one after the other.
#[derive(Debug)]
pub struct StateReader<'a> {
    left: &'a [u8],
}

impl<'a> StateReader<'a> {
    /// Reads from the beginning of bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], StateError> {
        let (bytes, left) = self.left.split_first_chunk::<N>().ok_or(StateError::Cut)?;
        self.left = left;
        Ok(*bytes)
    }

    /// The next 8 bytes.
    ///
    /// # Errors
    /// [`StateError::Cut`].
    pub fn i64(&mut self) -> Result<i64, StateError> {
        self.take().map(i64::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, StateError> {
        self.take().map(u64::from_be_bytes)
    }

    fn i32(&mut self) -> Result<i32, StateError> {
        self.take().map(i32::from_be_bytes)
    }

    fn i16(&mut self) -> Result<i16, StateError> {
        self.take().map(i16::from_be_bytes)
    }

    fn u8(&mut self) -> Result<u8, StateError> {
        let [byte] = self.take()?;
        Ok(byte)
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, StateError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(StateError::Value(field)),
        }
    }

    /// The next 4 bytes: a number of things of so many bytes at least, which are there.
    ///
    /// # Errors
    /// [`StateError::Cut`] if the bytes cannot hold so many.
    pub fn count(&mut self, item_bytes: usize) -> Result<usize, StateError> {
        let count = u32::from_be_bytes(self.take()?) as usize;
        let needed = count.checked_mul(item_bytes).ok_or(StateError::Cut)?;
        if needed > self.left.len() { Err(StateError::Cut) } else { Ok(count) }
    }

    /// Nothing is left.
    ///
    /// # Errors
    /// [`StateError::Value`] if something is.
    pub fn finish(self) -> Result<(), StateError> {
        if self.left.is_empty() { Ok(()) } else { Err(StateError::Value("length")) }
    }

    fn pairs(&mut self, field: &'static str) -> Result<BTreeMap<i64, i64>, StateError> {
        let mut pairs = BTreeMap::new();
        for _ in 0..self.count(PAIR_BYTES)? {
            let (key, value) = (self.i64()?, self.i64()?);
            if pairs.insert(key, value).is_some() {
                return Err(StateError::Value(field));
            }
        }
        Ok(pairs)
    }

    fn known(&mut self) -> Result<Box<KnownProducer>, StateError> {
        let number = self.u64()?;
        Ok(Box::new(KnownProducer { entry: self.entry()?, number }))
    }

    /// What is known of a producer, as [`ProducerEntry::write_state`] has written it.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn entry(&mut self) -> Result<ProducerEntry, StateError> {
        let mut entry = ProducerEntry::unknown(self.i64()?);
        entry.producer_epoch = self.i16()?;
        entry.coordinator_epoch = self.i32()?;
        entry.last_timestamp = self.i64()?;
        let is_in_transaction = self.flag("transaction")?;
        let first_offset = self.i64()?;
        entry.transaction_first_offset = is_in_transaction.then_some(first_offset);
        let count = self.u8()?;
        for _ in 0..count {
            entry.remember(RememberedBatch {
                last_sequence: self.i32()?,
                last_offset: self.i64()?,
                offset_delta: self.i32()?,
                timestamp: self.i64()?,
            });
        }
        if entry.batches().len() != usize::from(count) {
            return Err(StateError::Value("number of batches"));
        }
        Ok(entry)
    }
}

/// Writes how many things follow.
pub fn write_count(out: &mut Vec<u8>, count: usize) {
    // A state of so many things does not fit into memory.
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
}

fn write_pairs(out: &mut Vec<u8>, pairs: &BTreeMap<i64, i64>) {
    write_count(out, pairs.len());
    for (key, value) in pairs {
        out.extend_from_slice(&key.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

impl ProducerEntry {
    /// Writes all that is known.
    pub fn write_state(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.producer_id.to_be_bytes());
        out.extend_from_slice(&self.producer_epoch.to_be_bytes());
        out.extend_from_slice(&self.coordinator_epoch.to_be_bytes());
        out.extend_from_slice(&self.last_timestamp.to_be_bytes());
        out.push(u8::from(self.transaction_first_offset.is_some()));
        out.extend_from_slice(&self.transaction_first_offset.unwrap_or(-1).to_be_bytes());
        out.push(self.batches().len() as u8);
        for batch in self.batches() {
            out.extend_from_slice(&batch.last_sequence.to_be_bytes());
            out.extend_from_slice(&batch.last_offset.to_be_bytes());
            out.extend_from_slice(&batch.offset_delta.to_be_bytes());
            out.extend_from_slice(&batch.timestamp.to_be_bytes());
        }
    }
}

impl Producers {
    /// Writes all that is known, but for verifications.
    pub fn write_state(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.end_offset().to_be_bytes());
        let (added, buckets) = self.order.parts();
        out.extend_from_slice(&added.to_be_bytes());
        out.extend_from_slice(&buckets.to_be_bytes());
        let mut all: Vec<_> = self.entries.values().collect();
        sort_by_key(&mut all, |known| known.number);
        write_count(out, all.len());
        for known in all {
            out.extend_from_slice(&known.number.to_be_bytes());
            known.entry.write_state(out);
        }
        let (open, unreplicated, has_clashed) = self.transactions.parts();
        write_pairs(out, open);
        write_pairs(out, unreplicated);
        out.push(u8::from(has_clashed));
    }

    /// Reads what [`write_state`](Self::write_state) has written.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn read_state(reader: &mut StateReader<'_>) -> Result<Self, StateError> {
        let mut producers = Self::new(reader.i64()?);
        let (added, buckets) = (reader.u64()?, reader.u64()?);
        producers.order = JavaTable::of(added, buckets).ok_or(StateError::Value("table"))?;
        let count = reader.count(ENTRY_BYTES)?;
        let mut entries = HashMap::with_capacity_and_hasher(count, IdHash::default());
        for _ in 0..count {
            let known = reader.known()?;
            if entries.insert(known.entry.producer_id, known).is_some() {
                return Err(StateError::Value("producer id twice"));
            }
        }
        producers.entries = entries;
        let (open, unreplicated) = (reader.pairs("transaction")?, reader.pairs("transaction")?);
        let has_clashed = reader.flag("transaction")?;
        producers.transactions = Transactions::of(open, unreplicated, has_clashed);
        Ok(producers)
    }
}
