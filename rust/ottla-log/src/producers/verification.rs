//! Verifications: before the first batch of a transaction the leader asks the transaction coordinator
//! whether there is one (KIP-890, `docs/kafka/producer-state.md` §7).

use super::batch::{Content, ProducerBatch};
use std::collections::HashMap;
use std::sync::Arc;

/// Permission to begin a transaction on a partition, returned once the coordinator is asked. Equal to
/// itself and its clones alone.
#[derive(Clone, Debug)]
pub struct Guard(Arc<()>);

/// A verification under way.
#[derive(Clone, Debug)]
pub(super) struct Verification {
    created_ms: i64,
    guard: Guard,
    /// The lowest sequence that a batch of its epoch came with.
    pub(super) lowest_sequence: i32,
    producer_epoch: i16,
    /// The client speaks transaction version 2: every transaction has an epoch of its own.
    pub(super) bumps_epoch: bool,
}

impl Verification {
    /// Whether a guard is of this verification.
    pub(super) fn has_guard(&self, guard: &Guard) -> bool {
        Arc::ptr_eq(&self.guard.0, &guard.0)
    }

    /// Whether this is a verification of the transaction after the one that a marker ends: with
    /// version 2 the marker brings that one's epoch.
    pub(super) fn is_of_next(&self, batch: &ProducerBatch) -> bool {
        batch.content != Content::Data
            && self.bumps_epoch
            && self.producer_epoch == batch.producer_epoch
    }
}

/// The verifications under way on a partition, by producer id.
#[derive(Clone, Debug, Default)]
pub(super) struct Verifications(HashMap<i64, Verification>);

impl Verifications {
    pub(super) fn get(&self, producer_id: i64) -> Option<&Verification> {
        self.0.get(&producer_id)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Begins a verification, or adds a batch to the one under way.
    pub(super) fn begin(
        &mut self,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        bumps_epoch: bool,
        now_ms: i64,
    ) -> Guard {
        let verification = self.0.entry(producer_id).or_insert_with(|| Verification {
            created_ms: now_ms,
            guard: Guard(Arc::new(())),
            lowest_sequence: base_sequence,
            producer_epoch,
            bumps_epoch,
        });
        if producer_epoch > verification.producer_epoch {
            verification.producer_epoch = producer_epoch;
            verification.lowest_sequence = base_sequence;
        } else if producer_epoch == verification.producer_epoch {
            verification.lowest_sequence = verification.lowest_sequence.min(base_sequence);
        }
        verification.guard.clone()
    }

    pub(super) fn remove(&mut self, producer_id: i64) {
        self.0.remove(&producer_id);
    }

    /// Drops those older than `expiration_ms`.
    pub(super) fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.0
            .retain(|_, verification| now_ms.wrapping_sub(verification.created_ms) < expiration_ms);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
