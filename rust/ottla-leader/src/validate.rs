//! The verdict on a record set for a partition that knows no producer.

use crate::config::TopicConfig;
use crate::profiles::Profile;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::state::PartitionState;
use crate::validator::Validator;
use crate::verdict::Verdict;
use ottla_format::header::Header;
use ottla_log::kafka_version::KafkaVersion;
use ottla_log::producers::{Appender, Origin, UnknownSequence};
use std::convert::Infallible;

/// What a leader would do with a record set, in a partition that knows no producer.
///
/// # Examples
/// ```
/// use ottla_format::builder::{BatchFields, NewRecord, build_batch};
/// use ottla_leader::{Request, TopicConfig, Validator, validate};
///
/// let mut validator = Validator::default();
/// let record = NewRecord { value: Some(b"hello"), timestamp: 1000, ..NewRecord::default() };
/// let batch = build_batch(&BatchFields::default(), &[record], validator.codecs())?;
/// let request = Request { now_ms: 1000, base_offset: 42, ..Request::default() };
/// let verdict = validate(&batch, &TopicConfig::default(), &request, &mut validator);
/// let accepted = verdict.outcome.expect("a right batch is accepted");
/// assert_eq!((accepted.base_offset, accepted.last_offset), (42, 42));
/// # Ok::<(), ottla_format::builder::BuildError>(())
/// ```
pub fn validate<'a>(
    records: &'a [u8],
    config: &TopicConfig,
    request: &Request,
    validator: &mut Validator,
) -> Verdict<'a> {
    let mut verdict = validator.validate(records, config, request);
    let Ok(accepted) = &verdict.outcome else { return verdict };
    let header = accepted.stored.header();
    // Nothing is known of any producer: only a negative epoch or a marker can be refused.
    let is_plain = header.is_none_or(|header| {
        !header.has_producer_id() || (header.producer_epoch >= -1 && !header.is_control())
    });
    if is_plain && request.origin != Origin::Replication {
        return verdict;
    }
    let mut state = PartitionState::new(0, request.base_offset, i64::MAX);
    let by = Appender {
        origin: request.origin,
        must_be_verified: false,
        guard: None,
        unknown: UnknownSequence::Accept,
        markers_bump_epoch: false,
    };
    let next_offset = accepted.last_offset.saturating_add(1);
    let keep = |_: &PartitionState| Ok::<(), Infallible>(());
    let Ok(appended) = state.append(&accepted.stored, next_offset, &by, validator.codecs(), keep);
    if let Err(refusal) = appended {
        verdict.refuse(Refusal::producer(request.profile, refusal));
    }
    verdict
}

/// What a leader would do with a batch of a log if its producer sent it once more.
///
/// The batch has base offset 0 again, as every producer sends it, and no request gate; a marker
/// comes from the coordinator, anything else from a client with a transactional id, since whoever
/// wrote it was authorised then. It would get the offset it has; a damaged header may name one that
/// no log has, and then gets the nearest that a log can have.
pub fn validate_stored(
    batch: &[u8],
    base_offset: i64,
    config: &TopicConfig,
    now_ms: i64,
    profile: Profile,
    kafka_version: KafkaVersion,
    validator: &mut Validator,
) -> Verdict<'static> {
    let header = Header::read(batch, 0).filter(|header| header.magic >= 2);
    let is_control = header.is_some_and(|header| header.is_control());
    let request = Request {
        now_ms,
        api_version: None,
        base_offset: base_offset.clamp(0, MAX_BASE_OFFSET),
        origin: if is_control { Origin::Coordinator } else { Origin::Client },
        has_transactional_id: true,
        profile,
        kafka_version,
        ..Request::default()
    };
    let mut sent = batch.to_vec();
    // Offsets of older formats are for the leader to assign, whatever was sent.
    if header.is_some()
        && let Some(base_offset) = sent.first_chunk_mut::<8>()
    {
        *base_offset = [0; 8];
    }
    validate(&sent, config, &request, validator).into_owned()
}

/// The largest base offset that leaves room for the offsets of a batch, which has less than 2^31.
const MAX_BASE_OFFSET: i64 = i64::MAX - (1 << 31);
