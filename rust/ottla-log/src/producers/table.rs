//! The producers of a partition, between sets of batches.

use super::appender::{Appender, Origin};
use super::batch::{Content, ProducerBatch};
use super::entry::{ProducerEntry, RememberedBatch};
use super::id_hash::IdHash;
use super::java_table::JavaTable;
use super::judge::{Judge, check_epoch, has_open_transaction};
use super::pending::Pending;
use super::refusal::ProducerRefusal;
use super::snapshot::{read_producers, write_producers};
use super::transactions::{CompletedTransaction, NotBegun, Transactions};
use super::verification::{Guard, Verifications};
use crate::sidefiles::snapshot::{SnapshotEntry, SnapshotError};
use crate::sidefiles::transaction_index::AbortedTransaction;
use crate::sorting::sort_by_key;
use ottla_format::sequence::increment_sequence;
use std::collections::HashMap;

#[derive(Clone, Debug)]
pub(super) struct KnownProducer {
    pub(super) entry: ProducerEntry,
    /// Its number among all that were ever added.
    pub(super) number: u64,
}

/// The producers of a partition.
#[derive(Clone, Debug)]
pub struct Producers {
    /// Boxed: a table of hashes is up to two thirds empty.
    pub(super) entries: HashMap<i64, Box<KnownProducer>, IdHash>,
    pub(super) order: JavaTable,
    pub(super) transactions: Transactions,
    verifications: Verifications,
    end_offset: i64,
}

impl Producers {
    /// No producers, of a log that was read up to `end_offset`.
    pub fn new(end_offset: i64) -> Self {
        Self {
            entries: HashMap::default(),
            order: JavaTable::default(),
            transactions: Transactions::default(),
            verifications: Verifications::default(),
            end_offset,
        }
    }

    /// What is known of a producer.
    #[inline]
    pub fn get(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.entries.get(&producer_id).map(|known| &known.entry)
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is known: of no producer, and of no transaction.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.transactions.has_unreplicated()
    }

    /// All of them, by id.
    pub fn by_id(&self) -> Vec<&ProducerEntry> {
        let mut all: Vec<_> = self.entries.values().map(|known| &known.entry).collect();
        sort_by_key(&mut all, |entry| entry.producer_id);
        all
    }

    /// What a snapshot keeps of all of them, by id.
    pub(crate) fn into_by_id(self) -> Vec<SnapshotEntry> {
        let Self { entries, transactions, .. } = self;
        drop(transactions);
        let known = entries.into_values();
        let mut all: Vec<_> = known.map(|known| SnapshotEntry::from(&known.entry)).collect();
        sort_by_key(&mut all, |entry| entry.producer_id);
        all
    }

    /// Their transactions.
    pub fn transactions(&self) -> &Transactions {
        &self.transactions
    }

    /// The offset up to which the log was read.
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// The log was read up to an offset.
    #[inline]
    pub fn set_end_offset(&mut self, end_offset: i64) {
        self.end_offset = end_offset;
    }

    /// Judges a batch after those that are in `pending`, by Kafka's checks in Kafka's order. Returns
    /// the batch in the log that this one repeats.
    ///
    /// # Errors
    /// [`ProducerRefusal`]: the first check that failed.
    pub fn judge(
        &self,
        batch: &ProducerBatch,
        appender: &Appender<'_>,
        pending: &mut Pending,
    ) -> Result<Option<RememberedBatch>, ProducerRefusal> {
        let stored = self.get(batch.producer_id);
        let verification = self.verifications.get(batch.producer_id);
        Judge { stored, verification, appender }.judge(batch, pending)
    }

    /// Whether a client's batch follows on its producer's last one outside of transactions, as nearly
    /// every batch does: then [`append_next`](Self::append_next) does what [`judge`](Self::judge)
    /// and [`commit`](Self::commit) do.
    #[expect(clippy::inline_always, reason = "what is not a call is not copied")]
    #[inline(always)]
    pub fn is_next(&self, batch: &ProducerBatch, origin: Origin) -> bool {
        if origin != Origin::Client || batch.is_transactional || !self.verifications.is_empty() {
            return false;
        }
        self.get(batch.producer_id).is_some_and(|entry| {
            batch.content == Content::Data
                && entry.producer_epoch == batch.producer_epoch
                && entry.transaction_first_offset.is_none()
                && !entry.batches().is_empty()
                && increment_sequence(entry.last_sequence(), 1) == batch.base_sequence
                && entry.repeated_by(batch).is_none()
        })
    }

    /// Appends a batch for which [`is_next`](Self::is_next) holds, once it is in the log.
    #[inline]
    pub fn append_next(&mut self, batch: &ProducerBatch) {
        if let Some(known) = self.entries.get_mut(&batch.producer_id) {
            known.entry.append(batch);
        }
    }

    /// Adopts what was judged, once it is in the log. Returns the transactions that it aborts, as the
    /// transaction index keeps them.
    ///
    /// # Errors
    /// [`NotBegun`], with everything else adopted. A leader or follower never meets it: it takes two
    /// batches at one offset, which only a damaged log holds.
    pub fn commit(&mut self, mut pending: Pending) -> Result<Vec<AbortedTransaction>, NotBegun> {
        for update in pending.take_updates() {
            let update = *update;
            let producer_id = update.copy.producer_id;
            for first_offset in update.begun() {
                self.transactions.begin(first_offset, producer_id);
            }
            self.change(producer_id, |entry| entry.update(update.copy));
        }
        for producer_id in pending.verified {
            self.verifications.remove(producer_id);
        }
        let mut aborted = Vec::new();
        let mut result = Ok(());
        for completed in &pending.completed {
            let last_stable_offset = self.transactions.last_stable_offset_after(completed);
            let CompletedTransaction { producer_id, first_offset, last_offset, is_commit } =
                *completed;
            if !is_commit {
                aborted.push(AbortedTransaction {
                    producer_id,
                    first_offset,
                    last_offset,
                    last_stable_offset,
                });
            }
            result = result.and(self.transactions.complete(completed));
        }
        result.map(|()| aborted)
    }

    /// Changes the entry of a producer; one that was not known gets a new entry.
    fn change(&mut self, producer_id: i64, change: impl FnOnce(&mut ProducerEntry)) {
        if let Some(known) = self.entries.get_mut(&producer_id) {
            change(&mut known.entry);
        } else {
            let number = self.order.add(producer_id, self.entries.keys().copied());
            let mut entry = ProducerEntry::unknown(producer_id);
            change(&mut entry);
            self.entries.insert(producer_id, Box::new(KnownProducer { entry, number }));
        }
    }

    /// The coordinator is about to be asked whether a transaction continues. Returns the guard that
    /// the first batch must carry, or `None` while the transaction of this epoch is open.
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
        let stored = self.get(producer_id);
        if has_open_transaction(stored, producer_epoch) {
            return Ok(None);
        }
        check_epoch(stored, producer_id, producer_epoch)?;
        let guard = self.verifications.begin(
            producer_id,
            producer_epoch,
            base_sequence,
            bumps_epoch,
            now_ms,
        );
        Ok(Some(guard))
    }

    /// Drops producers and verifications that have been silent for `expiration_ms`. Producers age by
    /// the timestamps of their records: one of old timestamps may go at once.
    pub fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.entries.retain(|_, known| !known.entry.is_expired(now_ms, expiration_ms));
        self.verifications.expire(now_ms, expiration_ms);
    }

    /// The high watermark has moved.
    pub fn high_watermark_moved(&mut self, high_watermark: i64) {
        self.transactions.release_below(high_watermark);
    }

    /// The log start has moved. Producers stay, whatever becomes of their records (KIP-360).
    pub fn log_start_moved(&mut self, log_start_offset: i64) {
        self.transactions.release_below(log_start_offset);
        self.end_offset = self.end_offset.max(log_start_offset);
    }

    /// Forgets every producer and transaction, but not the verifications.
    pub fn clear(&mut self, end_offset: i64) {
        self.entries.clear();
        self.transactions.clear();
        self.end_offset = end_offset;
    }

    /// Forgets the verifications.
    pub fn forget_verifications(&mut self) {
        self.verifications.clear();
    }

    /// Loads a snapshot of `end_offset` into empty state, but for producers that are expired.
    ///
    /// # Errors
    /// [`SnapshotError`], with nothing loaded.
    pub fn load(
        &mut self,
        snapshot: &[u8],
        end_offset: i64,
        now_ms: i64,
        expiration_ms: i64,
    ) -> Result<(), SnapshotError> {
        for entry in read_producers(snapshot)? {
            if entry.is_expired(now_ms, expiration_ms) {
                continue;
            }
            if let Some(first_offset) = entry.transaction_first_offset {
                self.transactions.begin(first_offset, entry.producer_id);
            }
            self.change(entry.producer_id, |known| *known = entry);
        }
        self.end_offset = end_offset;
        Ok(())
    }

    /// What a snapshot keeps of a producer.
    pub fn snapshot_entry(&self, producer_id: i64) -> Option<SnapshotEntry> {
        self.get(producer_id).map(SnapshotEntry::from)
    }

    /// Adopts entries of a snapshot, but not their transactions; of one producer, the last counts.
    pub fn adopt(&mut self, entries: &[SnapshotEntry]) {
        for entry in entries {
            self.change(entry.producer_id, |known| *known = entry.into());
        }
    }

    /// Goes on as if a snapshot of this state had been loaded into empty state, where only these
    /// producers have changed since it was last loaded. Returns `false`, with nothing changed, where
    /// two transactions begin at one offset: then only loading tells what becomes of them.
    pub fn reload(
        &mut self,
        changed: &[i64],
        end_offset: i64,
        now_ms: i64,
        expiration_ms: i64,
    ) -> bool {
        if !self.go_on_at(end_offset) {
            return false;
        }
        for producer_id in changed {
            let Some(known) = self.entries.get_mut(producer_id) else { continue };
            if known.entry.is_expired(now_ms, expiration_ms) {
                self.entries.remove(producer_id);
            } else {
                known.entry = ProducerEntry::from(&SnapshotEntry::from(&known.entry).as_stored());
            }
        }
        true
    }

    /// Goes on as [`reload`](Self::reload) does, with every batch that is known. Returns `false`, with
    /// nothing changed, where that does.
    pub fn go_on_at(&mut self, end_offset: i64) -> bool {
        if self.transactions.has_clashed() {
            return false;
        }
        self.transactions.forget_unreplicated();
        self.end_offset = end_offset;
        true
    }

    /// The bytes of a `.snapshot` file of these producers, in the order of Kafka's table of them.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut all: Vec<_> = self.entries.values().collect();
        sort_by_key(&mut all, |known| (self.order.bucket(known.entry.producer_id), known.number));
        write_producers(all.iter().map(|known| &known.entry))
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    const BY_CLIENT: Appender<'_> = Appender { origin: Origin::Client, ..Appender::REPLICATION };

    /// Batches around what comes next: of two producers, with sequences that follow, repeat, skip
    /// and wrap, epochs that go up and down, and transactions.
    fn batch(random: &mut u64, offset: i64, last: i32) -> ProducerBatch {
        let mut below = |limit: u64| {
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            (*random >> 11) % limit
        };
        let base_sequence = match below(10) {
            0 => 0,
            1 => i32::MAX,
            2 => increment_sequence(last, 2),
            3 => last.max(0),
            _ => increment_sequence(last, 1),
        };
        let offset_delta = below(3) as i32;
        ProducerBatch {
            base_offset: offset,
            last_offset: offset + i64::from(offset_delta),
            producer_id: i64::from(below(8) == 0),
            producer_epoch: (offset / 60) as i16 - i16::from(below(20) == 0),
            base_sequence,
            last_sequence: increment_sequence(base_sequence, offset_delta),
            max_timestamp: below(100) as i64,
            is_transactional: below(40) == 0,
            content: match below(8) {
                0 => Content::Marker { is_commit: true, coordinator_epoch: 0, timestamp: 3 },
                _ => Content::Data,
            },
        }
    }

    #[test]
    fn a_batch_that_is_appended_in_place_leaves_what_judging_it_does() {
        let (mut short_ways, mut random) = (0, 0x5eed);
        for _ in 0..200 {
            let (mut ours, mut plain) = (Producers::new(0), Producers::new(0));
            let (mut offset, mut last) = (0, -1);
            for _ in 0..100 {
                let batch = batch(&mut random, offset, last);
                let mut pending = Pending::default();
                let judged = plain.judge(&batch, &BY_CLIENT, &mut pending);
                if judged == Ok(None) {
                    plain.commit(pending).unwrap();
                    (offset, last) = (batch.last_offset + 1, batch.last_sequence);
                }
                if ours.is_next(&batch, Origin::Client) {
                    ours.append_next(&batch);
                    assert_eq!(judged, Ok(None), "{batch:?}");
                    short_ways += 1;
                } else {
                    let mut pending = Pending::default();
                    let again = ours.judge(&batch, &BY_CLIENT, &mut pending);
                    assert_eq!(again, judged, "{batch:?}");
                    if judged == Ok(None) {
                        ours.commit(pending).unwrap();
                    }
                }
                assert_eq!(ours.by_id(), plain.by_id(), "{batch:?}");
                assert_eq!(ours.snapshot(), plain.snapshot(), "{batch:?}");
                assert_eq!(ours.transactions, plain.transactions, "{batch:?}");
            }
        }
        assert!(short_ways > 1000, "{short_ways} of 20000");
    }
}
