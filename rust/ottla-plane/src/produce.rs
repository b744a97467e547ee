//! Produce: the verdict of each partition's leader, stored and answered
//! (`docs/kafka/produce-validation.md` §2, §3, §11; KIP-467).
//!
//! One partition that is refused never stops the others, but for what Kafka refuses as a whole in
//! the profile `kafka`, and for transactional batches of several producers in both.

use crate::partition::Partition;
use crate::plane::DataPlane;
use crate::topics::{Handle, Refused};
use crate::verification::{Asking, Transactions, Verification};
use crate::wire::TopicKey;
use crate::wire::malformed::MalformedFrame;
use crate::wire::produce::{
    ProduceAnswer, ProducePartition, ProduceRequest, ProduceTopic, ProduceWriter, RECORD_ERRORS,
};
use ottla_format::error_code::ErrorCode;
use ottla_leader::{
    AppendRequest, Difference, Profile, Reason, Refusal, Request, Validator, Verdict, check_request,
};
use ottla_log::producers::Origin;

/// The acknowledgement of all replicas that are in sync.
const ALL: i16 = -1;

/// What is said of a Produce beside its frame.
#[derive(Clone, Copy, Debug)]
pub struct ProduceCall<'a> {
    /// The broker's clock.
    pub now_ms: i64,
    /// Partitions that are refused whatever they are sent.
    pub refused: &'a Refused,
    /// What [`Produced::Verify`] asked for, once the coordinator has answered. What it refused is
    /// among `refused`.
    pub verified: Option<&'a Verification>,
    /// Whether internal topics may be written to, as by Kafka's own admin client.
    pub allows_internal: bool,
}

/// What became of a Produce.
#[derive(Debug)]
pub enum Produced {
    /// Nothing yet: the coordinator of the transaction is to be asked first.
    Verify(Verification),
    /// It is done.
    Done {
        /// Whether there is an answer: none with `acks=0`.
        has_answer: bool,
        /// Partitions of which there is more to read.
        moved: Vec<Handle>,
        /// Partitions that have had what they were sent before.
        repeated: Vec<Handle>,
        /// Whether any partition was refused: with `acks=0` the connection is closed then.
        failed: bool,
    },
}

/// The answer for a partition, with what it borrows.
struct Outcome<'a> {
    error_code: i16,
    log_start_offset: i64,
    verdict: Option<Verdict<'a>>,
    message: Option<String>,
}

impl Outcome<'_> {
    fn code(error_code: i16, log_start_offset: i64) -> Self {
        Self { error_code, log_start_offset, verdict: None, message: None }
    }

    fn error(error: ErrorCode, log_start_offset: i64) -> Self {
        Self::code(error.code(), log_start_offset)
    }
}

/// A Produce on its way through the partitions.
struct Work<'a> {
    request: &'a ProduceRequest<'a>,
    call: &'a ProduceCall<'a>,
    /// The error of the whole request.
    refusal: Option<(ErrorCode, Option<String>)>,
    moved: Vec<Handle>,
    repeated: Vec<Handle>,
    failed: bool,
}

impl DataPlane {
    /// Appends what a request holds, and adds the body of its answer to `out`.
    ///
    /// # Errors
    /// [`MalformedFrame`], with nothing appended.
    pub fn produce(
        &mut self,
        frame: &[u8],
        position: usize,
        version: i16,
        call: &ProduceCall<'_>,
        validator: &mut Validator,
        out: &mut Vec<u8>,
    ) -> Result<Produced, MalformedFrame> {
        let request = ProduceRequest::read(frame, position, version)?;
        let mut refusal = self.refusal_of(&request, call);
        let asking = Asking {
            now_ms: call.now_ms,
            refused: call.refused,
            is_answered: call.verified.is_some(),
        };
        match self.transactions_of(&request, &asking) {
            Transactions::Verify(verification) if refusal.is_none() => {
                return Ok(Produced::Verify(verification));
            }
            Transactions::SeveralProducers => {
                refusal = refusal.or(Some((ErrorCode::InvalidProducerIdMapping, None)));
            }
            _ => {}
        }
        let mut work = Work {
            request: &request,
            call,
            refusal,
            moved: Vec::new(),
            repeated: Vec::new(),
            failed: false,
        };
        let has_answer = request.acks != 0;
        let mut nowhere = Vec::new();
        let to = if has_answer { out } else { &mut nowhere };
        let mut writer = ProduceWriter::new(to, version, request.topics.len());
        for topic in &request.topics {
            writer.begin_topic(topic);
            for partition in request.of(topic) {
                self.produce_to(&mut work, topic, partition, validator, &mut writer);
            }
            writer.end_topic();
        }
        writer.finish();
        let Work { moved, repeated, failed, .. } = work;
        Ok(Produced::Done { has_answer, moved, repeated, failed })
    }

    fn is_strict(&self, row: Difference) -> bool {
        self.settings.profile.is_strict(row)
    }

    /// What Kafka refuses the whole request for.
    fn refusal_of(
        &self,
        request: &ProduceRequest<'_>,
        call: &ProduceCall<'_>,
    ) -> Option<(ErrorCode, Option<String>)> {
        if self.is_strict(Difference::RequestWide) {
            return None;
        }
        let set = set_request(request, call, self.settings.profile);
        request.partitions.iter().find_map(|partition| {
            let Some(records) = partition.records else {
                return Some((ErrorCode::UnknownServerError, None));
            };
            let refusal = check_request(records, &set).err()?;
            let message =
                (refusal.error != ErrorCode::UnknownServerError).then(|| refusal.message());
            refusal.is_request_wide.then_some((refusal.error, message))
        })
    }

    /// Appends one record set, and writes its answer.
    fn produce_to<'a>(
        &mut self,
        work: &mut Work<'a>,
        topic: &ProduceTopic<'_>,
        partition: &ProducePartition<'a>,
        validator: &mut Validator,
        writer: &mut ProduceWriter<'_>,
    ) {
        let outcome = self.outcome_of(work, topic.key, partition, validator);
        let Outcome { mut error_code, log_start_offset, verdict, message } = outcome;
        let accepted = verdict.as_ref().and_then(|verdict| verdict.outcome.as_ref().ok());
        let is_old = work.request.version < RECORD_ERRORS && self.is_strict(Difference::OldClients);
        if is_old && error_code == ErrorCode::InvalidRecord.code() {
            error_code = ErrorCode::InvalidRequest.code();
        }
        work.failed |= error_code != 0;
        writer.partition(&ProduceAnswer {
            index: partition.index,
            error_code,
            base_offset: accepted.map_or(-1, |accepted| accepted.base_offset),
            log_append_time_ms: accepted.map_or(-1, |accepted| accepted.log_append_time_ms),
            log_start_offset,
            record_errors: verdict.as_ref().map_or(&[], |verdict| verdict.record_errors()),
            has_record_codes: self.is_strict(Difference::ErrorMessages),
            error_message: message.as_deref(),
        });
    }

    fn outcome_of<'a>(
        &mut self,
        work: &mut Work<'a>,
        key: TopicKey<'_>,
        set: &ProducePartition<'a>,
        validator: &mut Validator,
    ) -> Outcome<'a> {
        if let Some((error, message)) = &work.refusal {
            return Outcome { message: message.clone(), ..Outcome::error(*error, -1) };
        }
        let call = work.call;
        let (handle, partition) = match self.place_of(key, set.index, call.refused) {
            Ok(place) => place,
            Err((error_code, log_start_offset)) => {
                return Outcome::code(error_code, log_start_offset);
            }
        };
        let records = set.records.unwrap_or_default();
        if let Some(error) = hindrance(partition, work.request, call) {
            return hindered(error, partition, records, work);
        }
        let tells_start = self.is_strict(Difference::LogStartOffset);
        let log_start_offset =
            if tells_start { partition.leader.state().log_start_offset() } else { -1 };
        let is_full = !self.has_room(partition, records.len());
        let Some(partition) =
            self.partition_mut(handle).filter(|partition| !is_full && !partition.is_offline())
        else {
            return Outcome::error(ErrorCode::KafkaStorageError, log_start_offset);
        };
        let append = AppendRequest {
            api_version: Some(work.request.version),
            has_transactional_id: work.request.transactional_id.is_some(),
            origin: Origin::Client,
            guard: call.verified.and_then(|verified| verified.guard(handle)),
            transaction_version: 0,
            now_ms: call.now_ms,
        };
        match partition.append(records, &append, validator) {
            Ok(verdict) => self.judged(work, handle, verdict),
            Err(_) => Outcome::error(ErrorCode::KafkaStorageError, -1),
        }
    }

    /// The outcome of a verdict.
    fn judged<'a>(
        &mut self,
        work: &mut Work<'_>,
        handle: Handle,
        verdict: Verdict<'a>,
    ) -> Outcome<'a> {
        let mut message = None;
        match &verdict.outcome {
            Ok(accepted) => {
                let size = accepted.stored.len() as u64;
                self.stored_bytes = self.stored_bytes.saturating_add(size);
                if size > 0 {
                    work.moved.push(handle);
                    self.note_rolled(handle);
                } else if accepted.is_duplicate {
                    work.repeated.push(handle);
                }
            }
            Err(refusal) => message = message_of(refusal, self.settings.profile),
        }
        Outcome {
            error_code: verdict.error().code(),
            log_start_offset: verdict.log_start_offset,
            message,
            verdict: Some(verdict),
        }
    }

    /// The partition of a request, or the code and log start offset that it is answered with.
    fn place_of(
        &self,
        key: TopicKey<'_>,
        index: i32,
        refused: &Refused,
    ) -> Result<(Handle, &Partition), (i16, i64)> {
        let topic = self.topics.find(key);
        let name = topic.map(|topic| &*topic.name).or(match key {
            TopicKey::Name(name) => Some(name),
            TopicKey::Id(_) => None,
        });
        let handle = topic.and_then(|topic| topic.partition(index));
        let found = handle.and_then(|handle| Some((handle, self.partition(handle)?)));
        if let Some(code) = name.and_then(|name| refused.code(name, index)) {
            let hosted = found.filter(|_| self.is_strict(Difference::LogStartOffset));
            let log_start_offset =
                hosted.map_or(-1, |(_, found)| found.leader.state().log_start_offset());
            return Err((code, log_start_offset));
        }
        found.ok_or_else(|| (unknown(key, topic.is_some()).code(), -1))
    }
}

/// The error of a partition that is not here.
pub(crate) fn unknown(key: TopicKey<'_>, is_topic_known: bool) -> ErrorCode {
    match key {
        TopicKey::Id(_) if !is_topic_known => ErrorCode::UnknownTopicId,
        _ => ErrorCode::UnknownTopicOrPartition,
    }
}

/// Why nothing may be appended to a partition now.
fn hindrance(
    partition: &Partition,
    request: &ProduceRequest<'_>,
    call: &ProduceCall<'_>,
) -> Option<ErrorCode> {
    let settings = &partition.settings;
    if !(ALL..=1).contains(&request.acks) {
        return Some(ErrorCode::InvalidRequiredAcks);
    }
    if settings.is_internal && !call.allows_internal {
        return Some(ErrorCode::InvalidTopicException);
    }
    let lacks_replicas = settings.in_sync_replicas < settings.min_insync_replicas;
    (request.acks == ALL && lacks_replicas).then_some(ErrorCode::NotEnoughReplicas)
}

/// The outcome where nothing may be appended: what the request's version does not allow is told
/// first.
fn hindered<'a>(
    error: ErrorCode,
    partition: &Partition,
    records: &[u8],
    work: &Work<'_>,
) -> Outcome<'a> {
    let profile = partition.leader.settings().profile;
    let tells_start = profile.is_strict(Difference::LogStartOffset);
    let gate = set_request(work.request, work.call, profile);
    let refusal = check_request(records, &gate).err();
    let is_told = tells_start || refusal.is_none() && error == ErrorCode::NotEnoughReplicas;
    let log_start_offset = if is_told { partition.leader.state().log_start_offset() } else { -1 };
    let message = refusal.as_ref().and_then(|refusal| message_of(refusal, profile));
    let error = refusal.map_or(error, |refusal| refusal.error);
    Outcome { message, ..Outcome::error(error, log_start_offset) }
}

/// A record set of a request as the gate sees it.
fn set_request(request: &ProduceRequest<'_>, call: &ProduceCall<'_>, profile: Profile) -> Request {
    Request {
        now_ms: call.now_ms,
        api_version: Some(request.version),
        has_transactional_id: request.transactional_id.is_some(),
        profile,
        ..Request::default()
    }
}

/// What the client is told beside the code: in Kafka only of records.
fn message_of(refusal: &Refusal, profile: Profile) -> Option<String> {
    let is_told = profile.is_strict(Difference::ErrorMessages)
        || matches!(refusal.reason, Reason::Records { .. });
    is_told.then(|| refusal.message())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use crate::log::failing::failing_log;
    use crate::log::partition_log::LogSettings;
    use crate::partition::PartitionSettings;
    use crate::plane::{NewPartition, PlaneSettings};
    use ottla_format::builder::{BatchFields, NewRecord, build_batch};
    use ottla_leader::LeaderSettings;
    use std::io;

    #[test]
    fn a_partition_whose_log_cannot_be_written_is_offline_from_then_on() {
        let mut plane = DataPlane::new(PlaneSettings::default());
        let log = LogSettings {
            segment_bytes: 1 << 20,
            segment_ms: 1,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            is_deleted: true,
            retention_ms: -1,
            retention_bytes: -1,
        };
        let settings = PartitionSettings {
            log,
            is_internal: false,
            min_insync_replicas: 1,
            in_sync_replicas: 1,
            partition_epoch: -1,
        };
        let new = NewPartition {
            topic: b"t",
            topic_id: [1; 16],
            index: 0,
            next_offset: 0,
            leader: LeaderSettings::default(),
            settings,
            place: None,
        };
        let handle = plane.open(&new, 0).unwrap();
        let partition = plane.partition_mut(handle).unwrap();
        partition.log = failing_log(io::ErrorKind::Other, 0).unwrap();
        let mut validator = Validator::default();
        let record = NewRecord::default();
        let batch = build_batch(&BatchFields::default(), &[record], validator.codecs()).unwrap();
        let mut frame = vec![255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1];
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(&(batch.len() as u32).to_be_bytes());
        frame.extend_from_slice(&batch);
        let refused = Refused::default();
        let call =
            ProduceCall { now_ms: 0, refused: &refused, verified: None, allows_internal: false };
        for _ in 0..2 {
            let mut answer = Vec::new();
            let done = plane.produce(&frame, 0, 3, &call, &mut validator, &mut answer).unwrap();
            assert!(matches!(done, Produced::Done { failed: true, moved, .. } if moved.is_empty()));
            assert_eq!(answer[15..17], ErrorCode::KafkaStorageError.code().to_be_bytes());
        }
        assert_eq!(plane.stored_bytes(), 0);
    }
}
