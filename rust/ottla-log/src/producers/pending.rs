//! What a set of batches will do to the producers of a partition once it is in the log.
//!
//! A set is judged against copies of the entries it touches, and these are committed as a whole: what
//! is refused leaves no trace.

use super::batch::ProducerBatch;
use super::entry::ProducerEntry;
use super::java_table::JavaTable;
use super::refusal::ProducerRefusal;
use super::transactions::CompletedTransaction;
use crate::sorting::sort_by_key;
use std::collections::HashMap;

/// A copy of one producer's entry while a set of batches is judged.
#[derive(Clone, Debug)]
pub(super) struct Update {
    pub(super) copy: ProducerEntry,
    /// First offsets of the transactions that begin and end.
    ended: Vec<i64>,
    /// Its number among the updates of the set.
    number: u32,
    /// The transaction that is open in the copy begins here.
    has_begun: bool,
}

impl Update {
    /// Adds a batch of records.
    pub(super) fn append(&mut self, batch: &ProducerBatch) -> Result<(), ProducerRefusal> {
        self.copy.append(batch);
        match self.copy.transaction_first_offset {
            Some(first_offset) if !batch.is_transactional => {
                let producer_id = batch.producer_id;
                return Err(ProducerRefusal::PlainInTransaction { producer_id, first_offset });
            }
            None if batch.is_transactional => {
                self.copy.transaction_first_offset = Some(batch.base_offset);
                self.has_begun = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// A marker ends the transaction. Returns the first offset of that.
    pub(super) fn end_transaction(
        &mut self,
        producer_epoch: i16,
        coordinator_epoch: i32,
        timestamp: i64,
    ) -> Option<i64> {
        let ended = self.copy.end_transaction(producer_epoch, coordinator_epoch, timestamp);
        if std::mem::take(&mut self.has_begun) {
            self.ended.extend(ended);
        }
        ended
    }

    /// First offsets of the transactions that begin, in their order.
    pub(super) fn begun(&self) -> impl Iterator<Item = i64> {
        let open = self.copy.transaction_first_offset.filter(|_| self.has_begun);
        self.ended.iter().copied().chain(open)
    }
}

/// What a set of batches will do once it is in the log.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    /// The update of the last batch: sets of one producer, nearly all, need no table.
    newest: Option<Box<Update>>,
    /// Boxed: a table of hashes is up to two thirds empty.
    others: HashMap<i64, Box<Update>>,
    pub(super) completed: Vec<CompletedTransaction>,
    /// Producers whose verifications are used up.
    pub(super) verified: Vec<i64>,
}

impl Pending {
    /// The transactions that its markers end.
    pub fn completed(&self) -> &[CompletedTransaction] {
        &self.completed
    }

    /// The producers of its batches.
    pub fn producer_ids(&self) -> impl Iterator<Item = i64> {
        self.newest.iter().chain(self.others.values()).map(|update| update.copy.producer_id)
    }

    /// The update of a producer, of whose entry `before` is what the partition holds.
    pub(super) fn update(
        &mut self,
        before: Option<&ProducerEntry>,
        producer_id: i64,
    ) -> &mut Update {
        let is_newest =
            self.newest.as_ref().is_some_and(|newest| newest.copy.producer_id == producer_id);
        let number = self.others.len().saturating_add(usize::from(self.newest.is_some())) as u32;
        let next = if is_newest { self.newest.take() } else { self.others.remove(&producer_id) };
        let next = next.unwrap_or_else(|| {
            let unknown = || ProducerEntry::unknown(producer_id);
            let copy = before.map_or_else(unknown, ProducerEntry::without_batches);
            Box::new(Update { copy, ended: Vec::new(), number, has_begun: false })
        });
        if let Some(last) = self.newest.take() {
            self.others.insert(last.copy.producer_id, last);
        }
        self.newest.insert(next)
    }

    /// The updates, in the order in which Kafka's table of them holds them.
    pub(super) fn take_updates(&mut self) -> impl Iterator<Item = Box<Update>> + use<> {
        let alone = if self.others.is_empty() { self.newest.take() } else { None };
        let others = std::mem::take(&mut self.others).into_values();
        let mut updates: Vec<_> = others.chain(self.newest.take()).collect();
        sort_by_key(&mut updates, |update| update.number);
        let mut table = JavaTable::default();
        for (index, update) in updates.iter().enumerate() {
            let before = updates.iter().take(index).map(|update| update.copy.producer_id);
            table.add(update.copy.producer_id, before);
        }
        sort_by_key(&mut updates, |update| table.bucket(update.copy.producer_id));
        updates.into_iter().chain(alone)
    }
}
