//! The look at a record set before the log's lock is taken: framing, size, checksum, codec
//! (docs/kafka/produce-validation.md §4).

use crate::config::TopicConfig;
use crate::framing::envelope;
use crate::metrics::{Metrics, count};
use crate::profiles::Difference;
use crate::reason::Reason;
use crate::refusal::{Decision, Refusal};
use crate::request::Request;
use ottla_format::attributes::{CODEC_MASK, Compression};
use ottla_format::batch;
use ottla_format::error::ErrorKind;
use ottla_format::error_code::ErrorCode;
use ottla_format::header::{
    Envelope, LOG_OVERHEAD, MIN_SIZE_V2, field, read_i16, read_i32, read_i64,
};
use ottla_format::legacy;
use ottla_log::producers::Origin;

/// What is known of a record set whose batches are whole and have the right checksums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Analysis<'a> {
    /// The whole batches; what follows is cut off.
    pub(crate) batches: &'a [u8],
    /// Codec of the last compressed batch.
    pub(crate) source: Compression,
    /// Offset of the first record as it was sent; of a first batch of magic 0 or 1, that of its
    /// last record.
    pub(crate) first_offset: i64,
    /// Offset of the last record as it was sent.
    pub(crate) last_offset: i64,
    /// The largest timestamp that a header names, and the last offset of that batch.
    pub(crate) max_timestamp: (i64, i64),
}

/// Looks at every batch in turn; the first fault decides.
pub(crate) fn analyze<'a>(
    records: &'a [u8],
    config: &TopicConfig,
    request: &Request,
    metrics: &mut Metrics,
) -> Decision<Analysis<'a>> {
    let mut found = Analysis {
        batches: &[],
        source: Compression::None,
        first_offset: -1,
        last_offset: -1,
        max_timestamp: (-1, -1),
    };
    let mut rest = records;
    while let Some(envelope) = envelope(rest, 0, request)? {
        let Some(whole) = rest.split_off(..envelope.total()) else { break };
        let is_replicated = request.origin == Origin::Replication;
        if is_replicated && leader_epoch(whole, &envelope) > request.leader_epoch {
            // Another leader than the one asked has written it: KAFKA-18723.
            break;
        }
        let last_offset = judge_batch(whole, &envelope, config, request, records.len(), metrics)?;
        if is_replicated && found.last_offset >= last_offset {
            let reason = Reason::ReplicaOffsets { previous: found.last_offset, last_offset };
            return Err(Refusal::leak(request.profile, Difference::ReplicaOffsets, reason));
        }
        if found.batches.is_empty() {
            found.first_offset = if envelope.magic >= 2 { envelope.offset } else { last_offset };
        }
        let codec = codec(whole, &envelope, request)?;
        if codec != Compression::None {
            found.source = codec;
        }
        let timestamp = max_timestamp(whole, &envelope);
        if timestamp > found.max_timestamp.0 {
            found.max_timestamp = (timestamp, last_offset);
        }
        found.last_offset = last_offset;
        let end = records.len().saturating_sub(rest.len());
        found.batches = records.get(..end).unwrap_or(records);
    }
    Ok(found)
}

/// Judges one batch by its offset, its size and its checksum. Returns its last offset.
fn judge_batch(
    whole: &[u8],
    envelope: &Envelope,
    config: &TopicConfig,
    request: &Request,
    set_bytes: usize,
    metrics: &mut Metrics,
) -> Decision<i64> {
    let is_v2 = envelope.magic >= 2;
    if is_v2 && request.origin == Origin::Client && envelope.offset != 0 {
        let reason = Reason::BaseOffsetNotZero { base_offset: envelope.offset };
        return Err(Refusal::invalid(reason));
    }
    let delta = if is_v2 { read_i32(whole, field::LAST_OFFSET_DELTA) } else { Some(0) };
    let Some(delta) = delta else {
        let kind = ErrorKind::SizeTooSmall { declared: envelope.size, minimum: MIN_SIZE_V2 };
        let row = Difference::BatchTooShort;
        return Err(Refusal::leak(request.profile, row, Reason::Format(kind)));
    };
    let (size, limit) = (whole.len() as u64, config.max_message_bytes);
    if request.origin != Origin::Replication && size > u64::from(limit.unsigned_abs()) {
        count(&mut metrics.bytes_rejected, set_bytes as u64);
        let reason = Reason::BatchTooLarge { size, limit };
        return Err(Refusal::new(ErrorCode::MessageTooLarge, reason));
    }
    batch::verify(whole).map_err(|error| {
        count(&mut metrics.invalid_message_crc_records, 1);
        Refusal::corrupt(error.kind)
    })?;
    let body_bytes = whole.len().saturating_sub(LOG_OVERHEAD);
    if !is_v2 && envelope.magic > 0 && body_bytes < legacy::TIMESTAMP_END {
        let (size, minimum) = (body_bytes as u64, legacy::TIMESTAMP_END as u64);
        let reason = Reason::Format(ErrorKind::LegacyTooShort { size, minimum });
        return Err(Refusal::leak(request.profile, Difference::LegacyLengths, reason));
    }
    Ok(envelope.offset.wrapping_add(i64::from(delta)))
}

/// Where attributes and timestamp of a magic 0 or 1 entry begin.
const LEGACY_ATTRIBUTES: usize = LOG_OVERHEAD + legacy::ATTRIBUTES;
const LEGACY_TIMESTAMP: usize = LOG_OVERHEAD + legacy::TIMESTAMP;

fn leader_epoch(whole: &[u8], envelope: &Envelope) -> i32 {
    if envelope.magic >= 2 {
        read_i32(whole, field::PARTITION_LEADER_EPOCH).unwrap_or(-1)
    } else {
        -1
    }
}

fn max_timestamp(whole: &[u8], envelope: &Envelope) -> i64 {
    let position = match envelope.magic {
        0 => return -1,
        1 => LEGACY_TIMESTAMP,
        _ => field::MAX_TIMESTAMP,
    };
    read_i64(whole, position).unwrap_or(-1)
}

fn codec(whole: &[u8], envelope: &Envelope, request: &Request) -> Decision<Compression> {
    let magic = envelope.magic;
    let codec = if magic >= 2 {
        (read_i16(whole, field::ATTRIBUTES).unwrap_or(0) as u16 & CODEC_MASK) as u8
    } else {
        whole.get(LEGACY_ATTRIBUTES).copied().unwrap_or(0) & CODEC_MASK as u8
    };
    Compression::from_id(codec).ok_or_else(|| {
        let reason = Reason::Format(ErrorKind::UnknownCodec { codec, magic });
        Refusal::leak(request.profile, Difference::UnknownCodec, reason)
    })
}
