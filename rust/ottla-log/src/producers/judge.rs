//! Whether a producer may append a batch: Kafka's checks in Kafka's order, the first failure wins
//! (`ProducerAppendInfo`, `docs/kafka/producer-state.md` §2 and §3).

use super::appender::{Appender, Origin, UnknownSequence};
use super::batch::{Content, ProducerBatch};
use super::entry::{ProducerEntry, RememberedBatch};
use super::pending::{Pending, Update};
use super::refusal::ProducerRefusal;
use super::transactions::CompletedTransaction;
use super::verification::Verification;
use ottla_format::sequence::increment_sequence;

/// What is known of a producer when one of its batches is judged.
#[derive(Clone, Copy)]
pub(super) struct Judge<'a> {
    /// Its entry in the partition, without what is pending.
    pub(super) stored: Option<&'a ProducerEntry>,
    pub(super) verification: Option<&'a Verification>,
    pub(super) appender: &'a Appender<'a>,
}

impl Judge<'_> {
    /// Adds a batch to what is pending. Returns the batch in the log that this one repeats, with
    /// nothing added.
    pub(super) fn judge(
        &self,
        batch: &ProducerBatch,
        pending: &mut Pending,
    ) -> Result<Option<RememberedBatch>, ProducerRefusal> {
        let origin = self.appender.origin;
        if origin == Origin::Client
            && let Some(known) = self.stored.and_then(|stored| stored.repeated_by(batch))
        {
            return Ok(Some(known));
        }
        if origin != Origin::Replication && batch.is_transactional {
            self.check_begin(batch, pending)?;
        }
        let update = pending.update(self.stored, batch.producer_id);
        let completed = match batch.content {
            Content::Data => {
                self.append(batch, update)?;
                None
            }
            Content::Marker { is_commit, coordinator_epoch, timestamp } => {
                self.check_marker(batch, coordinator_epoch, &update.copy)?;
                let first_offset =
                    update.end_transaction(batch.producer_epoch, coordinator_epoch, timestamp);
                first_offset.map(|first_offset| CompletedTransaction {
                    producer_id: batch.producer_id,
                    first_offset,
                    last_offset: batch.base_offset,
                    is_commit,
                })
            }
            Content::EmptyControl => None,
        };
        pending.completed.extend(completed);
        let is_used_up = self.verification.is_some_and(|verified| !verified.is_of_next(batch));
        if batch.is_transactional && is_used_up {
            pending.verified.push(batch.producer_id);
        }
        Ok(None)
    }

    /// A transactional batch continues the transaction of its epoch, or needs a guard (KIP-890).
    fn check_begin(&self, batch: &ProducerBatch, pending: &Pending) -> Result<(), ProducerRefusal> {
        let (producer_id, producer_epoch) = (batch.producer_id, batch.producer_epoch);
        if has_open_transaction(self.stored, producer_epoch) {
            return Ok(());
        }
        check_epoch(self.stored, producer_id, producer_epoch)?;
        if !self.appender.must_be_verified || batch.content != Content::Data {
            return Ok(());
        }
        let verification = self.verification.filter(|_| !pending.verified.contains(&producer_id));
        match (verification, self.appender.guard) {
            (Some(verification), Some(guard)) if verification.has_guard(guard) => Ok(()),
            _ => Err(ProducerRefusal::NotVerified { producer_id, producer_epoch }),
        }
    }

    fn append(&self, batch: &ProducerBatch, update: &mut Update) -> Result<(), ProducerRefusal> {
        if self.appender.origin != Origin::Replication {
            check_epoch(Some(&update.copy), batch.producer_id, batch.producer_epoch)?;
        }
        if self.appender.origin == Origin::Client {
            self.check_verified_sequence(batch)?;
            self.check_sequence(batch, &update.copy)?;
        }
        update.append(batch)
    }

    fn check_marker(
        &self,
        batch: &ProducerBatch,
        found: i32,
        copy: &ProducerEntry,
    ) -> Result<(), ProducerRefusal> {
        if self.appender.origin == Origin::Replication {
            return Ok(());
        }
        let producer_id = batch.producer_id;
        self.check_marker_epoch(batch, copy)?;
        let current = copy.coordinator_epoch;
        if current > found {
            return Err(ProducerRefusal::CoordinatorFenced { producer_id, found, current });
        }
        Ok(())
    }

    /// Where the coordinator bumps the epoch of every marker, one of the producer's own epoch ends no
    /// transaction of it, but may be sent again after the end (KIP-1228, KAFKA-19999); the last
    /// epoch cannot be bumped.
    fn check_marker_epoch(
        &self,
        batch: &ProducerBatch,
        copy: &ProducerEntry,
    ) -> Result<(), ProducerRefusal> {
        let (producer_id, found) = (batch.producer_id, batch.producer_epoch);
        let current = copy.producer_epoch;
        let may_be_equal = found == i16::MAX || copy.transaction_first_offset.is_none();
        let is_above = found > current || found == current && may_be_equal;
        if self.appender.markers_bump_epoch && !is_above {
            return Err(ProducerRefusal::MarkerEpoch { producer_id, found, current });
        }
        check_epoch(Some(copy), producer_id, found)
    }

    /// Nothing may overtake the batch with which the transaction was verified.
    fn check_verified_sequence(&self, batch: &ProducerBatch) -> Result<(), ProducerRefusal> {
        let Some(verification) = self.verification else { return Ok(()) };
        let found = batch.base_sequence;
        let has_batches = self.stored.is_some_and(|stored| !stored.batches().is_empty());
        if verification.bumps_epoch && found != 0 && !has_batches {
            return Err(out_of_order(batch, 0));
        }
        if found > verification.lowest_sequence {
            return Err(out_of_order(batch, verification.lowest_sequence));
        }
        Ok(())
    }

    /// A client's batch begins with the sequence that follows.
    fn check_sequence(
        &self,
        batch: &ProducerBatch,
        copy: &ProducerEntry,
    ) -> Result<(), ProducerRefusal> {
        let ProducerBatch { producer_epoch, base_sequence: found, .. } = *batch;
        let stored_epoch = self.stored.map_or(-1, |stored| stored.producer_epoch);
        if producer_epoch != copy.producer_epoch {
            return match found {
                0 => Ok(()),
                _ if copy.producer_epoch == -1 => self.check_unknown(batch),
                _ => Err(out_of_order(batch, 0)),
            };
        }
        if stored_epoch == -1 {
            return Ok(());
        }
        let last_sequence = if !copy.batches().is_empty() {
            copy.last_sequence()
        } else if producer_epoch == stored_epoch {
            self.stored.map_or(-1, ProducerEntry::last_sequence)
        } else {
            -1
        };
        let expected = increment_sequence(last_sequence, 1);
        if found == expected {
            return Ok(());
        }
        if last_sequence == -1 {
            // Of this epoch only a marker is known.
            self.check_unknown(batch)?;
        }
        Err(out_of_order(batch, expected))
    }

    /// A batch of a producer of which nothing is known.
    fn check_unknown(&self, batch: &ProducerBatch) -> Result<(), ProducerRefusal> {
        let ProducerBatch { producer_id, producer_epoch, base_sequence: found, .. } = *batch;
        if self.appender.unknown == UnknownSequence::Refuse && found != 0 {
            return Err(ProducerRefusal::UnknownProducer { producer_id, producer_epoch, found });
        }
        Ok(())
    }
}

fn out_of_order(batch: &ProducerBatch, expected: i32) -> ProducerRefusal {
    let ProducerBatch { producer_id, producer_epoch, base_sequence: found, .. } = *batch;
    ProducerRefusal::OutOfOrderSequence { producer_id, producer_epoch, found, expected }
}

/// Whether a producer has a transaction of this epoch open.
pub(super) fn has_open_transaction(stored: Option<&ProducerEntry>, producer_epoch: i16) -> bool {
    stored.is_some_and(|stored| {
        stored.transaction_first_offset.is_some() && stored.producer_epoch == producer_epoch
    })
}

/// An epoch below the producer's is fenced.
pub(super) fn check_epoch(
    known: Option<&ProducerEntry>,
    producer_id: i64,
    found: i16,
) -> Result<(), ProducerRefusal> {
    let current = known.map_or(-1, |known| known.producer_epoch);
    if found < current {
        return Err(ProducerRefusal::StaleEpoch { producer_id, found, current });
    }
    Ok(())
}
