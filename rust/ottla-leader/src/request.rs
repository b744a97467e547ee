//! What a verdict depends on beside the bytes and the topic's configuration.

use crate::profiles::{Difference, Profile};
use ottla_log::kafka_version::KafkaVersion;
use ottla_log::producers::Origin;

/// The circumstances of a record set: its request, its place in the log, the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The broker's clock, read once.
    pub now_ms: i64,
    /// Produce version. `None` skips the request gate: for what the broker itself writes, and for
    /// record sets of older formats, which no Produce version of Kafka 4 carries.
    pub api_version: Option<i16>,
    /// The offset that the first record gets: the log end offset.
    pub base_offset: i64,
    /// The log start offset, for the answer.
    pub log_start_offset: i64,
    /// The leader epoch that is stored with the batch.
    pub leader_epoch: i32,
    /// Who appends.
    pub origin: Origin,
    /// Whether the request carries a transactional id that it may write with.
    pub has_transactional_id: bool,
    /// The profile that decides.
    pub profile: Profile,
    /// The release of Kafka whose rules hold.
    pub kafka_version: KafkaVersion,
}

impl Default for Request {
    /// Produce 11 of a client, at the beginning of a log, in the strict profile, by the newest rules.
    fn default() -> Self {
        Self {
            now_ms: 0,
            api_version: Some(11),
            base_offset: 0,
            log_start_offset: 0,
            leader_epoch: 0,
            origin: Origin::Client,
            has_transactional_id: false,
            profile: Profile::Strict,
            kafka_version: KafkaVersion::NEWEST,
        }
    }
}

impl Request {
    /// Whether the strict side of a row of the table of differences holds.
    pub(crate) fn is_strict(&self, row: Difference) -> bool {
        self.profile.is_strict(row)
    }

    /// Whether the request may carry several batches for a partition: below Produce 3, and without
    /// a request (docs/kafka/produce-validation.md §2).
    pub(crate) fn allows_several_batches(&self) -> bool {
        self.api_version.is_none_or(|version| version < ONE_BATCH_VERSION)
    }
}

/// Since this version of Produce a partition has one batch, of magic 2 (KIP-98).
const ONE_BATCH_VERSION: i16 = 3;
