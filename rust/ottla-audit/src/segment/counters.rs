//! What is counted in a segment.

use crate::segment::observation::BatchObservation;
use ottla_format::batch::BatchInfo;
use serde::{Deserialize, Serialize};

/// No count of a log reaches this. Counts that come as bytes are held to it, so that sums of them
/// do not overflow.
pub(crate) const MAX_COUNT: u64 = 1 << 60;

/// What was counted in a segment, of valid batches unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of damaged ranges, and of tails that are no batch.
    pub damaged_bytes: u64,
    /// Batches with a correct CRC.
    pub batches: u64,
    /// Batches that are framed correctly but have a wrong CRC.
    pub bad_batches: u64,
    /// Records; at level `crc` as the headers say.
    pub records: u64,
    /// Control batches.
    pub control_batches: u64,
    /// Transactional batches, markers included.
    pub transactional_batches: u64,
    /// Batches with a producer id.
    pub idempotent_batches: u64,
    /// Batches with fewer records than offsets: compaction removed the others.
    pub thin_batches: u64,
    /// Batches without a record: compaction keeps the newest batch of a producer so.
    pub empty_batches: u64,
    /// Batches with a delete horizon (KIP-534).
    pub delete_horizon_batches: u64,
    /// Offsets inside thin and empty batches that no longer hold a record.
    pub removed_offsets: u64,
    /// Batches of each magic.
    pub magics: [u64; 3],
    /// Batches of each codec, by number.
    pub codecs: [u64; 8],
    /// Transactions that a marker in this segment commits.
    pub committed: u64,
    /// Transactions that a marker in this segment aborts.
    pub aborted: u64,
}

impl Counters {
    /// Every count. A field that is not named here does not compile.
    fn counts_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        let Self {
            bytes,
            damaged_bytes,
            batches,
            bad_batches,
            records,
            control_batches,
            transactional_batches,
            idempotent_batches,
            thin_batches,
            empty_batches,
            delete_horizon_batches,
            removed_offsets,
            magics,
            codecs,
            committed,
            aborted,
        } = self;
        let counts = [
            bytes,
            damaged_bytes,
            batches,
            bad_batches,
            records,
            control_batches,
            transactional_batches,
            idempotent_batches,
            thin_batches,
            empty_batches,
            delete_horizon_batches,
            removed_offsets,
            committed,
            aborted,
        ];
        counts.into_iter().chain(magics).chain(codecs)
    }

    /// Adds the counts of another segment.
    pub fn add(&mut self, other: &Self) {
        let mut other = *other;
        for (count, added) in self.counts_mut().zip(other.counts_mut()) {
            *count = count.saturating_add(*added);
        }
    }

    /// Whether a log can have all this.
    pub(crate) fn are_possible(mut self) -> bool {
        self.counts_mut().all(|count| *count < MAX_COUNT)
    }

    /// Counts a batch.
    pub(crate) fn count(&mut self, seen: &BatchObservation) {
        let info = &seen.info;
        add_to(&mut self.batches, 1);
        add_to(&mut self.records, seen.records);
        if let Some(count) = self.magics.get_mut(info.magic.clamp(0, 2) as usize) {
            add_to(count, 1);
        }
        if let Some(count) = self.codecs.get_mut(usize::from(info.codec())) {
            add_to(count, 1);
        }
        add_to(&mut self.empty_batches, u64::from(info.record_count == Some(0)));
        add_to(&mut self.thin_batches, u64::from(seen.is_thin()));
        add_to(&mut self.control_batches, u64::from(info.is_control()));
        add_to(&mut self.delete_horizon_batches, u64::from(info.delete_horizon_ms().is_some()));
        self.count_producer(info);
    }

    /// Counts plain batches: magic 2, not compressed. Their producers are counted one by one.
    pub(crate) fn count_plain(&mut self, batches: u64, records: u64) {
        let [_, _, magic_2] = &mut self.magics;
        let [uncompressed, ..] = &mut self.codecs;
        add_to(&mut self.batches, batches);
        add_to(&mut self.records, records);
        add_to(magic_2, batches);
        add_to(uncompressed, batches);
    }

    /// Counts what a batch shows of its producer.
    pub(crate) fn count_producer(&mut self, info: &BatchInfo) {
        add_to(&mut self.transactional_batches, u64::from(info.is_transactional()));
        add_to(&mut self.idempotent_batches, u64::from(info.has_producer_id()));
    }

    /// Counts a batch of `bytes` bytes with a wrong CRC.
    pub(crate) fn count_bad_batch(&mut self, bytes: u64) {
        add_to(&mut self.bad_batches, 1);
        self.count_damaged_bytes(bytes);
    }

    /// Counts bytes that are no valid batch.
    pub(crate) fn count_damaged_bytes(&mut self, bytes: u64) {
        add_to(&mut self.damaged_bytes, bytes);
    }

    /// Whether batches show that the log cleaner was at work.
    pub fn shows_compaction(&self) -> bool {
        self.thin_batches > 0 || self.empty_batches > 0 || self.delete_horizon_batches > 0
    }
}

fn add_to(count: &mut u64, added: u64) {
    *count = count.saturating_add(added);
}
