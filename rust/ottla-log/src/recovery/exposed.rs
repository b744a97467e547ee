//! Aborted transactions that a start leaves out of the transaction indexes: `read_committed`
//! consumers get their records.
//!
//! Kafka believes a `.txnindex` that it finds, and does not notice a missing one. Only recovery
//! writes a segment a new one.

use super::interruption::{Interruption, LoadError};
use super::loader::LogBounds;
use super::partition_log::PartitionLog;
use super::replay::producer_batch;
use crate::names::SegmentNames;
use crate::producers::{Content, ProducerBatch};
use crate::sidefiles::transaction_index::AbortedTransaction;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Transactions that are held at once.
const MAX_TRANSACTIONS: usize = 1 << 20;

/// The aborted transactions of a log, which its transaction indexes should have.
#[derive(Clone, Copy, Debug)]
pub enum Aborted<'a> {
    /// Of no interest.
    Ignored,
    /// These.
    Known(&'a [AbortedTransaction]),
    /// To be found: every segment is read.
    Sought,
}

/// A transaction by the offset of its marker and its producer.
type Key = (i64, i64);

/// Those whose marker is in the log and in no transaction index.
pub(super) fn find_exposed(
    log: &mut PartitionLog<'_>,
    bounds: LogBounds,
    aborted: Aborted<'_>,
) -> Result<Vec<AbortedTransaction>, LoadError> {
    let known = match aborted {
        Aborted::Ignored => return Ok(Vec::new()),
        Aborted::Known(known) => Cow::Borrowed(known),
        Aborted::Sought => Cow::Owned(find_aborted(log)?),
    };
    let offsets = bounds.log_start_offset..bounds.log_end_offset;
    let mut by_segment: BTreeMap<i64, BTreeMap<Key, AbortedTransaction>> = BTreeMap::new();
    for transaction in known.iter().filter(|t| offsets.contains(&t.last_offset)) {
        let segment = log.segments.range(..=transaction.last_offset).next_back();
        if let Some((&base_offset, _)) = segment
            && !log.rebuilt.contains_key(&base_offset)
        {
            let key = (transaction.last_offset, transaction.producer_id);
            by_segment.entry(base_offset).or_default().insert(key, *transaction);
        }
    }
    let mut exposed = Vec::new();
    for (base_offset, mut missing) in by_segment {
        remove_indexed(log, &SegmentNames::of(base_offset), &mut missing)?;
        exposed.extend(missing.into_values());
    }
    Ok(exposed)
}

/// Removes the transactions that a segment's index has.
fn remove_indexed(
    log: &PartitionLog<'_>,
    names: &SegmentNames,
    missing: &mut BTreeMap<Key, AbortedTransaction>,
) -> Result<(), LoadError> {
    let mut entries = log.aborted_on_disk(names)?;
    while let Some(bytes) = entries.next_entry()? {
        let Some(entry) = AbortedTransaction::read(&bytes, 0) else { continue };
        let key = (entry.last_offset, entry.producer_id);
        if missing.get(&key).is_some_and(|known| entry.first_offset <= known.first_offset) {
            missing.remove(&key);
        }
    }
    Ok(())
}

/// The transactions that are open at a place of the log: of each no more than where it begins.
#[derive(Debug, Default)]
struct OpenTransactions {
    /// First offsets by producer.
    by_producer: HashMap<i64, i64>,
    /// The highest of all first offsets so far.
    highest: Option<i64>,
    /// First offsets that no marker has ended, once offsets go back. Two transactions that begin at one
    /// offset, as only a damaged log has them, are ended by one marker (`NotBegun`).
    first_offsets: Option<HashSet<i64>>,
}

impl OpenTransactions {
    fn begin(&mut self, producer_id: i64, first_offset: i64) {
        if self.by_producer.contains_key(&producer_id) {
            return;
        }
        if self.highest.is_some_and(|highest| first_offset <= highest) {
            let open = || self.by_producer.values().copied().collect();
            self.first_offsets.get_or_insert_with(open);
        }
        self.highest = self.highest.max(Some(first_offset));
        self.by_producer.insert(producer_id, first_offset);
        if let Some(first_offsets) = &mut self.first_offsets {
            first_offsets.insert(first_offset);
        }
    }

    /// Adds a batch. Returns the transaction that it aborts.
    fn observe(&mut self, batch: &ProducerBatch) -> Option<AbortedTransaction> {
        let ProducerBatch { producer_id, base_offset, is_transactional, content, .. } = *batch;
        match content {
            Content::Data if is_transactional => {
                self.begin(producer_id, base_offset);
                None
            }
            Content::Data | Content::EmptyControl => None,
            Content::Marker { is_commit, .. } => {
                let first_offset = self.by_producer.remove(&producer_id)?;
                let known = self.first_offsets.as_mut();
                let has_begun = known.is_none_or(|known| known.remove(&first_offset));
                let last_stable_offset = 0;
                let aborted = AbortedTransaction {
                    producer_id,
                    first_offset,
                    last_offset: base_offset,
                    last_stable_offset,
                };
                (has_begun && !is_commit).then_some(aborted)
            }
        }
    }
}

/// The aborted transactions of the log, from its batches. Their last stable offsets are not known.
fn find_aborted(log: &mut PartitionLog<'_>) -> Result<Vec<AbortedTransaction>, LoadError> {
    let mut open = OpenTransactions::default();
    let mut found = Vec::new();
    let segments: Vec<_> = log.segments.values().cloned().collect();
    for names in segments {
        let mut file = log.reader.log(&names.log)?;
        let mut position = 0;
        // Damage ends the segment here: what it hides no consumer gets either.
        while let Some(frame) = unless_damaged(file.next(position, file.size()))?.flatten() {
            position = frame.end();
            if frame.magic < 2 {
                continue;
            }
            let Some(info) = unless_damaged(file.info(&frame))? else { break };
            let codecs = &mut log.reader.codecs;
            let batch = unless_damaged(producer_batch(&mut file, &frame, &info, codecs))?.flatten();
            let Some(batch) = batch else { continue };
            found.extend(open.observe(&batch).filter(|_| found.len() < MAX_TRANSACTIONS));
        }
    }
    Ok(found)
}

/// What was read, `None` where the log's own bytes forbid it.
fn unless_damaged<T>(result: Result<T, Interruption>) -> Result<Option<T>, LoadError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Interruption::Failed(error)) => Err(error),
        Err(_) => Ok(None),
    }
}
