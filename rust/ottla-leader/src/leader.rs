//! A leader's decisions over time: the verdict on the bytes, the rules of producers, and the
//! offsets that follow.
//!
//! ```text
//! append ─▸ validate (bytes, config) ─▸ producers (epochs, sequences, transactions) ─▸ offsets
//! ```
//!
//! A [`Leader`] holds no records. Its caller stores the bytes of each verdict, rolls segments,
//! writes [`PartitionState::snapshot`] when it does, and restores a leader with [`Leader::restore`]
//! from a snapshot and the batches after it. A refusal or an error leaves the leader unchanged.

use crate::config::TopicConfig;
use crate::metrics::Metrics;
use crate::profiles::{Difference, Profile};
use crate::reason::Reason;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::state::bytes::StateBytesError;
use crate::state::restore::{LoadedLog, ReplaySource, RestoreError, StoredLog, Truncation};
use crate::state::{AppendOutcome, OffsetOutOfRange, PartitionState};
use crate::stored::Stored;
use crate::validator::Validator;
use crate::verdict::{Accepted, Verdict};
use ottla_format::builder::{BatchFields, BuildError, NewControlRecord, build_control_batch};
use ottla_format::compression::Codecs;
use ottla_format::error::ErrorKind;
use ottla_log::kafka_version::{KafkaVersion, ReleaseDifference};
use ottla_log::producers::{Appender, Guard, Origin, ProducerRefusal, UnknownSequence};
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use std::convert::Infallible;

/// What a leader does with a producer that it does not know, and whose sequence is not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownProducer {
    /// What the profile does: Kafka accepts it since 2.5 (KIP-360); the strict profile refuses it
    /// where the client can recover, from Produce 8 on.
    #[default]
    Auto,
    /// Refuses it with `UNKNOWN_PRODUCER_ID` (59).
    Unknown,
    /// Accepts it.
    Accept,
}

impl UnknownProducer {
    /// Returns the setting of a name: `auto`, `unknown` or `accept`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "unknown" => Some(Self::Unknown),
            "accept" => Some(Self::Accept),
            _ => None,
        }
    }
}

/// The first version of Produce whose clients recover from `UNKNOWN_PRODUCER_ID` (KIP-360).
const RECOVERING_VERSION: i16 = 8;

/// The settings of a leader.
#[derive(Clone, Debug, Default)]
pub struct LeaderSettings {
    /// The topic's configuration.
    pub config: TopicConfig,
    /// Epoch of the leader, stored with every batch.
    pub leader_epoch: i32,
    /// The profile that decides.
    pub profile: Profile,
    /// The release of Kafka whose rules hold.
    pub kafka_version: KafkaVersion,
    /// What it does with producers that it does not know.
    pub unknown_producer: UnknownProducer,
    /// `transaction.partition.verification.enable`: a transaction begins with a guard (KIP-890).
    pub transaction_verification: bool,
}

/// The circumstances of an append: its request and the clock.
#[derive(Clone, Copy, Debug)]
pub struct AppendRequest<'a> {
    /// Produce version; `None` skips the request gate.
    pub api_version: Option<i16>,
    /// Whether the request carries a transactional id.
    pub has_transactional_id: bool,
    /// Who appends.
    pub origin: Origin,
    /// The guard of [`Leader::begin_verification`].
    pub guard: Option<&'a Guard>,
    /// The transaction version of the markers in the set.
    pub transaction_version: i16,
    /// The leader's clock.
    pub now_ms: i64,
}

impl AppendRequest<'_> {
    /// What the leader of this partition has sent to its follower, offsets included.
    pub fn replication(now_ms: i64) -> Self {
        Self {
            api_version: None,
            has_transactional_id: true,
            origin: Origin::Replication,
            guard: None,
            transaction_version: 0,
            now_ms,
        }
    }
}

/// The end of a transaction, as its coordinator writes it (KIP-98).
#[derive(Clone, Copy, Debug)]
pub struct EndTransaction {
    /// The producer's id.
    pub producer_id: i64,
    /// The producer's epoch, or the next one where the coordinator bumps it.
    pub producer_epoch: i16,
    /// Epoch of the coordinator.
    pub coordinator_epoch: i32,
    /// Commit, or abort.
    pub commit: bool,
    /// The transaction version with which the coordinator writes it: from 2 on it bumps the
    /// producer's epoch first (KIP-890, KIP-1228).
    pub transaction_version: i16,
    /// The coordinator's clock.
    pub now_ms: i64,
}

/// What is known of a set that was not appended at once.
#[derive(Debug)]
pub enum Rest<'a> {
    /// Its bytes are accepted; its producer is yet to be heard.
    Accepted(Accepted<'a>),
    /// It is not proved, and this is what that has found of its payload.
    Unproved(Option<ErrorKind>),
}

/// What stores nothing: the caller does.
#[expect(clippy::unnecessary_wraps, reason = "storing may fail")]
fn keep_nothing(_: &Stored<'_>, _: &PartitionState) -> Result<(), Infallible> {
    Ok(())
}

/// A partition's leader.
#[derive(Clone, Debug)]
pub struct Leader {
    settings: LeaderSettings,
    state: PartitionState,
    metrics: Metrics,
}

impl Leader {
    /// A leader of an empty log that begins at `log_start_offset` and continues at `next_offset`.
    pub fn new(settings: LeaderSettings, log_start_offset: i64, next_offset: i64) -> Self {
        let expiration_ms = settings.config.producer_id_expiration_ms;
        let state = PartitionState::new(log_start_offset, next_offset, expiration_ms);
        Self { settings, state, metrics: Metrics::default() }
    }

    /// Restores the leader of a stored log.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn restore(
        settings: LeaderSettings,
        log: StoredLog<'_>,
        codecs: &mut Codecs,
    ) -> Result<Self, RestoreError> {
        let expiration_ms = settings.config.producer_id_expiration_ms;
        let state = PartitionState::restore(log, expiration_ms, codecs)?;
        Ok(Self { settings, state, metrics: Metrics::default() })
    }

    /// The leader of a log that was loaded.
    ///
    /// # Errors
    /// [`RestoreError::Offsets`].
    pub fn resume(
        settings: LeaderSettings,
        log: LoadedLog,
        now_ms: i64,
    ) -> Result<Self, RestoreError> {
        let expiration_ms = settings.config.producer_id_expiration_ms;
        let state = PartitionState::resume(log, expiration_ms, now_ms)?;
        Ok(Self { settings, state, metrics: Metrics::default() })
    }

    /// The leader of a state that [`PartitionState::to_bytes`] has written.
    ///
    /// # Errors
    /// [`StateBytesError`].
    pub fn from_bytes(settings: LeaderSettings, state: &[u8]) -> Result<Self, StateBytesError> {
        let expiration_ms = settings.config.producer_id_expiration_ms;
        let state = PartitionState::from_bytes(state, expiration_ms)?;
        Ok(Self { settings, state, metrics: Metrics::default() })
    }

    /// What is known of the partition.
    pub fn state(&self) -> &PartitionState {
        &self.state
    }

    /// Its settings.
    pub fn settings(&self) -> &LeaderSettings {
        &self.settings
    }

    /// Decides by other settings from now on: the topic was configured anew, or the leader was elected
    /// again with a higher epoch.
    pub fn configure(&mut self, settings: LeaderSettings) {
        self.state.expire_producers_after(settings.config.producer_id_expiration_ms);
        self.settings = settings;
    }

    /// What it has counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The end of what readers of committed records see (KIP-98).
    pub fn last_stable_offset(&self) -> i64 {
        self.state.last_stable_offset(!self.settings.profile.is_strict(Difference::StableOffset))
    }

    /// Decides on the record set of a produce request, and appends it if it is accepted.
    #[inline]
    pub fn append<'a>(
        &mut self,
        records: &'a [u8],
        request: &AppendRequest<'_>,
        validator: &mut Validator,
    ) -> Verdict<'a> {
        self.append_at_once(records, request, validator)
            .unwrap_or_else(|rest| self.append_rest(rest, records, request, validator))
    }

    /// As [`append`](Self::append), of nearly every set: it is proved, and no producer has a say in it
    /// or it follows on the last batch of its producer. Apart, so that the caller need not ask of its
    /// verdict what every verdict may be.
    ///
    /// # Errors
    /// What [`append_rest`](Self::append_rest) needs of another set, which changes nothing yet.
    #[inline(always)]
    pub fn append_at_once<'a>(
        &mut self,
        records: &'a [u8],
        request: &AppendRequest<'_>,
        validator: &mut Validator,
    ) -> Result<Verdict<'a>, Rest<'a>> {
        let Ok(appended) = self.append_proved(records, request, validator, keep_nothing);
        appended.map_err(|(rest, _)| rest)
    }

    /// As [`append`](Self::append), of a set that was not appended at once.
    #[inline(always)]
    pub fn append_rest<'a>(
        &mut self,
        rest: Rest<'a>,
        records: &'a [u8],
        request: &AppendRequest<'_>,
        validator: &mut Validator,
    ) -> Verdict<'a> {
        let Ok(verdict) = self.append_rest_to(rest, records, request, validator, keep_nothing);
        verdict
    }

    /// As [`append`](Self::append), with a log: `keep` stores what is accepted, and sees the state
    /// before it. So the state is never ahead of the log.
    ///
    /// # Errors
    /// What `keep` fails with, and then nothing is changed.
    #[inline(always)]
    pub fn append_to<'a, E>(
        &mut self,
        records: &'a [u8],
        request: &AppendRequest<'_>,
        validator: &mut Validator,
        keep: impl FnOnce(&Stored<'_>, &PartitionState) -> Result<(), E>,
    ) -> Result<Verdict<'a>, E> {
        match self.append_proved(records, request, validator, keep)? {
            Ok(verdict) => Ok(verdict),
            Err((rest, keep)) => self.append_rest_to(rest, records, request, validator, keep),
        }
    }

    /// Appends a set at once where that can be; `keep` comes back where it cannot.
    #[inline(always)]
    fn append_proved<'a, E, K: FnOnce(&Stored<'_>, &PartitionState) -> Result<(), E>>(
        &mut self,
        records: &'a [u8],
        request: &AppendRequest<'_>,
        validator: &mut Validator,
        keep: K,
    ) -> Result<Result<Verdict<'a>, (Rest<'a>, K)>, E> {
        let set = self.request_of(request);
        let accepted = match validator.accept(records, &self.settings.config, &set) {
            Ok(accepted) => accepted,
            Err(refused) => return Ok(Err((Rest::Unproved(refused), keep))),
        };
        if accepted.stored.header().is_some_and(|header| !header.has_producer_id()) {
            keep(&accepted.stored, &self.state)?;
        } else {
            // Not the verdict's own: that would be in memory then, for those without a producer too.
            let stored = accepted.stored.clone();
            if let Some(keep) = self.append_next(&stored, request.origin, keep)? {
                return Ok(Err((Rest::Accepted(accepted), keep)));
            }
        }
        self.state.end_at(accepted.last_offset.saturating_add(1));
        self.count_accepted(&accepted, records.len());
        Ok(Ok(Verdict::accepted(accepted, records.len(), &set)))
    }

    /// Appends what follows on its producer's last batch; of another `keep` comes back. Out of line, as
    /// the rest: it would cost the others.
    #[inline(never)]
    fn append_next<E, K: FnOnce(&Stored<'_>, &PartitionState) -> Result<(), E>>(
        &mut self,
        stored: &Stored<'_>,
        origin: Origin,
        keep: K,
    ) -> Result<Option<K>, E> {
        let Some(batch) = self.state.next_batch(stored, origin) else { return Ok(Some(keep)) };
        keep(stored, &self.state)?;
        self.state.append_next(&batch);
        Ok(None)
    }

    #[inline(never)]
    fn append_rest_to<'a, E>(
        &mut self,
        rest: Rest<'a>,
        records: &'a [u8],
        request: &AppendRequest<'_>,
        validator: &mut Validator,
        keep: impl FnOnce(&Stored<'_>, &PartitionState) -> Result<(), E>,
    ) -> Result<Verdict<'a>, E> {
        let set = self.request_of(request);
        let verdict = match rest {
            Rest::Accepted(accepted) => Verdict::accepted(accepted, records.len(), &set),
            Rest::Unproved(refused) => {
                validator.validate_by_stages(records, &self.settings.config, &set, refused)
            }
        };
        self.append_judged(verdict, request, validator, keep)
    }

    #[inline]
    fn count_accepted(&mut self, accepted: &Accepted<'_>, set_bytes: usize) {
        let (messages, converted) = (accepted.message_count(), accepted.converted);
        self.metrics.add(&Metrics::accepted(set_bytes, messages, converted));
    }

    /// What a set is judged by, beside its bytes and the topic's configuration.
    #[inline(always)]
    fn request_of(&self, request: &AppendRequest<'_>) -> Request {
        Request {
            api_version: request.api_version,
            origin: request.origin,
            has_transactional_id: request.has_transactional_id,
            profile: self.settings.profile,
            kafka_version: self.settings.kafka_version,
            now_ms: request.now_ms,
            base_offset: self.state.log_end_offset(),
            leader_epoch: self.settings.leader_epoch,
            log_start_offset: self.state.log_start_offset(),
        }
    }

    /// Holds a set that was judged by its bytes to the rules of producers, and appends it.
    #[inline(never)]
    fn append_judged<'a, E>(
        &mut self,
        mut verdict: Verdict<'a>,
        request: &AppendRequest<'_>,
        validator: &mut Validator,
        keep: impl FnOnce(&Stored<'_>, &PartitionState) -> Result<(), E>,
    ) -> Result<Verdict<'a>, E> {
        if let Ok(accepted) = &mut verdict.outcome {
            let by = Appender {
                origin: request.origin,
                must_be_verified: self.settings.transaction_verification,
                guard: request.guard,
                unknown: self.unknown_sequence(request.api_version),
                markers_bump_epoch: request.transaction_version >= 2
                    && self.settings.kafka_version.has(ReleaseDifference::MarkerEpochs),
            };
            if let Err(refusal) = self.store(accepted, &by, validator.codecs(), keep)? {
                verdict.refuse(refusal);
            }
        }
        match &verdict.outcome {
            Ok(accepted) => self.count_accepted(accepted, verdict.set_bytes),
            Err(refusal) => self.metrics.add(&refusal.metrics),
        }
        Ok(verdict)
    }

    /// Appends the marker that ends a transaction (KIP-98).
    ///
    /// # Errors
    /// [`BuildError`] for a marker that cannot be built: a negative producer id.
    pub fn end_transaction(
        &mut self,
        end: &EndTransaction,
        validator: &mut Validator,
    ) -> Result<Verdict<'static>, BuildError> {
        let Ok(verdict) = self.end_transaction_to(end, validator, keep_nothing)?;
        Ok(verdict)
    }

    /// As [`end_transaction`](Self::end_transaction), with a log as [`append_to`](Self::append_to).
    ///
    /// # Errors
    /// [`BuildError`]; within, what `keep` fails with.
    pub fn end_transaction_to<E>(
        &mut self,
        end: &EndTransaction,
        validator: &mut Validator,
        keep: impl FnOnce(&Stored<'_>, &PartitionState) -> Result<(), E>,
    ) -> Result<Result<Verdict<'static>, E>, BuildError> {
        let coordinator_epoch = end.coordinator_epoch;
        let record = if end.commit {
            NewControlRecord::Commit { coordinator_epoch }
        } else {
            NewControlRecord::Abort { coordinator_epoch }
        };
        let fields = BatchFields {
            producer_id: end.producer_id,
            producer_epoch: end.producer_epoch,
            ..BatchFields::default()
        };
        let marker = build_control_batch(&fields, end.now_ms, record, validator.codecs())?;
        let request = AppendRequest {
            api_version: None,
            has_transactional_id: true,
            origin: Origin::Coordinator,
            guard: None,
            transaction_version: end.transaction_version,
            now_ms: end.now_ms,
        };
        Ok(self.append_to(&marker, &request, validator, keep).map(Verdict::into_owned))
    }

    /// Holds an accepted set to the rules of producers, and appends it to the log and the state.
    fn store<E>(
        &mut self,
        accepted: &mut Accepted<'_>,
        by: &Appender<'_>,
        codecs: &mut Codecs,
        keep: impl FnOnce(&Stored<'_>, &PartitionState) -> Result<(), E>,
    ) -> Result<Result<(), Box<Refusal>>, E> {
        if accepted.stored.is_empty() {
            return Ok(Ok(()));
        }
        let profile = self.settings.profile;
        let log_end_offset = self.state.log_end_offset();
        if by.origin == Origin::Replication && accepted.base_offset < log_end_offset {
            let reason = Reason::OffsetBelowEnd { offset: accepted.base_offset, log_end_offset };
            return Ok(Err(Refusal::leak(profile, Difference::ReplicaOffsets, reason)));
        }
        let next_offset = accepted.last_offset.saturating_add(1);
        let stored = &accepted.stored;
        let keep = |state: &PartitionState| keep(stored, state);
        match self.state.append(stored, next_offset, by, codecs, keep)? {
            Ok(AppendOutcome::Appended) => {}
            Ok(AppendOutcome::Duplicate(known)) => {
                accepted.is_duplicate = true;
                accepted.base_offset = known.first_offset();
                accepted.last_offset = known.last_offset;
                // As Kafka answers: also where the topic keeps the producer's timestamps.
                accepted.log_append_time_ms = known.timestamp;
                accepted.stored = Stored::Nothing;
            }
            Err(refusal) => return Ok(Err(Refusal::producer(profile, refusal))),
        }
        Ok(Ok(()))
    }

    fn unknown_sequence(&self, api_version: Option<i16>) -> UnknownSequence {
        let is_refused = match self.settings.unknown_producer {
            UnknownProducer::Unknown => true,
            UnknownProducer::Accept => false,
            UnknownProducer::Auto => {
                self.settings.profile.is_strict(Difference::UnknownProducer)
                    && api_version.is_some_and(|version| version >= RECOVERING_VERSION)
            }
        };
        if is_refused { UnknownSequence::Refuse } else { UnknownSequence::Accept }
    }

    /// Begins to verify a producer's transaction with its coordinator (KIP-890). Returns the guard
    /// that its next append has to carry, or `None` if that transaction is open here already.
    ///
    /// # Errors
    /// [`ProducerRefusal::StaleEpoch`].
    pub fn begin_verification(
        &mut self,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        transaction_version: i16,
        now_ms: i64,
    ) -> Result<Option<Guard>, ProducerRefusal> {
        let bumps_epoch = transaction_version >= 2;
        self.state.begin_verification(
            producer_id,
            producer_epoch,
            base_sequence,
            bumps_epoch,
            now_ms,
        )
    }

    /// Advances the log start offset (KIP-107).
    ///
    /// # Errors
    /// [`OffsetOutOfRange`] above the high watermark.
    pub fn delete_records(
        &mut self,
        offset: i64,
        batch_base_offset: Option<i64>,
    ) -> Result<(), OffsetOutOfRange> {
        self.state.delete_records(offset, batch_base_offset)
    }

    /// Moves the high watermark, within the log.
    pub fn advance_high_watermark(&mut self, offset: i64) {
        self.state.set_high_watermark(offset);
    }

    /// The log below an offset was compacted: of the aborted transactions that end there, readers need
    /// to know of these alone, in the order of their markers.
    pub fn forget_aborted(&mut self, below: i64, left: &[AbortedTransaction]) {
        self.state.forget_aborted(below, left);
    }

    /// Drops producers that have been idle for `producer.id.expiration.ms`.
    pub fn expire_producers(&mut self, now_ms: i64) {
        self.state.expire_producers(now_ms);
    }

    /// Truncates the log to an offset.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub fn truncate(
        &mut self,
        offset: i64,
        source: &ReplaySource<'_>,
        codecs: &mut Codecs,
    ) -> Result<(), RestoreError> {
        self.state.truncate(offset, source, codecs)
    }

    /// Ends a truncation that [`PartitionState::begin_truncation`] has begun.
    pub fn end_truncation(&mut self, truncation: Truncation) {
        self.state.end_truncation(truncation);
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::expect_used)]
mod tests {
    use super::*;
    use ottla_format::attributes::{Compression, TimestampType};
    use ottla_format::builder::{NewRecord, build_batch};
    use ottla_format::header::{CRC_START, RECORD_BATCH_OVERHEAD, field};
    use ottla_format::sequence::increment_sequence;
    use ottla_log::producers::ProducerEntry;
    use proptest::prelude::*;

    /// What a client sends: nearly always right, and what follows on its last batch.
    #[derive(Clone, Copy, Debug)]
    struct Sent {
        producer_id: i64,
        epoch_step: i16,
        /// From the sequence that follows.
        sequence_step: i32,
        count: usize,
        is_transactional: bool,
        compression: Compression,
        /// A byte of the header, what is changed of it, and whether the CRC covers that.
        changed: Option<(usize, u8, bool)>,
        origin: Origin,
    }

    prop_compose! {
        fn sent()(
            producer_id in -1i64..2,
            epoch_step in prop_oneof![20 => Just(0i16), 1 => -1i16..2],
            sequence_step in prop_oneof![8 => Just(0), 1 => -6i32..6, 1 => Just(i32::MAX)],
            count in 1usize..4,
            is_transactional in prop::bool::weighted(0.1),
            compression in prop_oneof![4 => Just(Compression::None), 1 => Just(Compression::Lz4)],
            changed in prop::option::weighted(
                0.1, (0..RECORD_BATCH_OVERHEAD, 1u8.., any::<bool>()),
            ),
            origin in prop_oneof![
                18 => Just(Origin::Client),
                1 => Just(Origin::Coordinator),
                1 => Just(Origin::Replication),
            ],
        ) -> Sent {
            Sent {
                producer_id, epoch_step, sequence_step, count, is_transactional, compression,
                changed, origin,
            }
        }
    }

    impl Sent {
        fn bytes(&self, leader: &Leader, codecs: &mut Codecs) -> Vec<u8> {
            let known = leader.state.producers().get(self.producer_id);
            let sequence = known.map_or(-1, ProducerEntry::last_sequence);
            let epoch = known.map_or(0, |known| known.producer_epoch);
            let next = increment_sequence(sequence, 1);
            let is_producer = self.producer_id >= 0;
            let fields = BatchFields {
                producer_id: self.producer_id,
                producer_epoch: if is_producer {
                    epoch.wrapping_add(self.epoch_step).max(0)
                } else {
                    -1
                },
                base_sequence: if is_producer {
                    next.wrapping_add(self.sequence_step) & i32::MAX
                } else {
                    -1
                },
                is_transactional: is_producer && self.is_transactional,
                compression: self.compression,
                ..BatchFields::default()
            };
            let record = NewRecord { timestamp: 5, value: Some(b"v"), ..NewRecord::default() };
            let built = build_batch(&fields, &vec![record; self.count], codecs);
            let mut bytes = built.expect("a right batch");
            if let Some((at, change, is_covered)) = self.changed {
                bytes[at] ^= change;
                if is_covered {
                    let crc = ottla_kernels::crc32c(&bytes[CRC_START..]).to_be_bytes();
                    bytes[field::CRC..CRC_START].copy_from_slice(&crc);
                }
            }
            bytes
        }
    }

    /// As [`Leader::append`], by all stages.
    fn append_by_stages<'a>(
        leader: &mut Leader,
        records: &'a [u8],
        request: &AppendRequest<'_>,
        validator: &mut Validator,
    ) -> Verdict<'a> {
        let set = leader.request_of(request);
        let config = &leader.settings.config;
        let verdict = validator.validate_by_stages(records, config, &set, None);
        let Ok(verdict) = leader.append_judged(verdict, request, validator, keep_nothing);
        verdict
    }

    proptest! {
        #[test]
        fn the_short_way_of_a_set_leads_where_all_stages_do(
            history in prop::collection::vec(sent(), 1..40),
            is_stamped in any::<bool>(),
            transaction_verification in any::<bool>(),
        ) {
            let mut config = TopicConfig::default();
            if is_stamped {
                config.message_timestamp_type = TimestampType::LogAppendTime;
            }
            let settings = LeaderSettings {
                config,
                leader_epoch: 3,
                transaction_verification,
                ..LeaderSettings::default()
            };
            let mut short = Leader::new(settings, 0, 0);
            let mut long = short.clone();
            // While a transaction is verified, of whatever producer, no batch takes the short way.
            prop_assert!(long.begin_verification(i64::MAX, 0, 0, 0, 0).is_ok());
            let mut validator = Validator::default();
            for (index, sent) in history.iter().enumerate() {
                let records = sent.bytes(&short, validator.codecs());
                let request = AppendRequest {
                    api_version: Some(11),
                    has_transactional_id: true,
                    origin: sent.origin,
                    guard: None,
                    transaction_version: 0,
                    now_ms: 100 + index as i64,
                };
                let found = short.append(&records, &request, &mut validator);
                let expected = append_by_stages(&mut long, &records, &request, &mut validator);
                prop_assert_eq!(found, expected, "{:?}", sent);
                prop_assert_eq!(short.metrics(), long.metrics());
                prop_assert_eq!(short.state().to_bytes(), long.state().to_bytes());
            }
        }
    }
}
