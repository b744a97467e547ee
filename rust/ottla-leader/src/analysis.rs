//! The look at a record set before the log's lock is taken: framing, size, checksum, codec.

use crate::config::TopicConfig;
use crate::gate::envelope;
use crate::metrics::Metrics;
use crate::profiles::Difference;
use crate::validate::{Origin, Request};
use crate::verdict::{Decision, Reason, Refusal};
use ottla_format::attributes::{CODEC_MASK, Compression};
use ottla_format::batch;
use ottla_format::error::ErrorKind;
use ottla_format::error_code::ErrorCode;
use ottla_format::header::{Envelope, LOG_OVERHEAD, MIN_SIZE_V2, read_i16, read_i32};

/// What is known of a record set whose batches are whole and sound on the outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Analysis {
    /// Bytes of whole batches; what follows is cut off.
    pub(super) valid_bytes: usize,
    /// Codec of the last compressed batch.
    pub(super) source: Compression,
    /// Offset of the first record, or of the last one of the first batch where it is of magic 0 or
    /// 1, as they are.
    pub(super) first_offset: i64,
    /// Offset of the last record, as it is.
    pub(super) last_offset: i64,
    /// The largest timestamp the headers name, and the last offset of that batch.
    pub(super) max_timestamp: (i64, i64),
}

/// Looks at every batch in turn; the first fault decides.
pub(super) fn analyze(
    records: &[u8],
    config: &TopicConfig,
    request: &Request,
    metrics: &mut Metrics,
) -> Decision<Analysis> {
    let mut found = Analysis {
        valid_bytes: 0,
        source: Compression::None,
        first_offset: -1,
        last_offset: -1,
        max_timestamp: (-1, -1),
    };
    while let Some(envelope) = envelope(records, found.valid_bytes, request)? {
        let end = found.valid_bytes.saturating_add(envelope.total());
        let whole = records.get(found.valid_bytes..end).unwrap_or_default();
        let replicated = request.origin == Origin::Replication;
        if replicated && leader_epoch(whole, &envelope) > request.leader_epoch {
            // The leader that wrote it is not the one asked: KAFKA-18723.
            break;
        }
        let is_first = found.valid_bytes == 0;
        let last_offset = batch(whole, &envelope, config, request, records.len(), metrics)?;
        if replicated && found.last_offset >= last_offset {
            let reason = Reason::ReplicaOffsets { previous: found.last_offset, last_offset };
            return Err(Refusal::leak(request.profile, Difference::ReplicaOffsets, reason));
        }
        if is_first {
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
        found.valid_bytes = end;
    }
    Ok(found)
}

/// The last offset of one batch whose size and checksum are right.
fn batch(
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
    let delta = if is_v2 { read_i32(whole, LAST_OFFSET_DELTA) } else { Some(0) };
    let Some(delta) = delta else {
        let kind = ErrorKind::SizeTooSmall { declared: envelope.size, minimum: MIN_SIZE_V2 };
        let row = Difference::BatchTooShort;
        return Err(Refusal::leak(request.profile, row, Reason::Format(kind)));
    };
    let (size, limit) = (whole.len() as u64, config.max_message_bytes);
    if request.origin != Origin::Replication && size > u64::from(limit.unsigned_abs()) {
        metrics.bytes_rejected += set_bytes as u64;
        let reason = Reason::BatchTooLarge { size, limit };
        return Err(Refusal::new(ErrorCode::MessageTooLarge, reason));
    }
    batch::verify(whole).map_err(|error| {
        metrics.invalid_message_crc_records += 1;
        Refusal::corrupt(error.kind)
    })?;
    if !is_v2 && envelope.magic > 0 && whole.len() < LOG_OVERHEAD + LEGACY_TIMESTAMP_END {
        let size = (whole.len() - LOG_OVERHEAD) as u64;
        let kind = ErrorKind::LegacyTooShort { size, minimum: LEGACY_TIMESTAMP_END as u64 };
        let row = Difference::LegacyLengths;
        return Err(Refusal::leak(request.profile, row, Reason::Format(kind)));
    }
    Ok(envelope.offset.wrapping_add(i64::from(delta)))
}

/// Where the fields of a magic 2 header stand that are read here.
const LEADER_EPOCH: usize = 12;
const ATTRIBUTES: usize = 21;
const LAST_OFFSET_DELTA: usize = 23;
const MAX_TIMESTAMP: usize = 35;
/// Where attributes and timestamp of a magic 0 or 1 body stand.
const LEGACY_ATTRIBUTES: usize = LOG_OVERHEAD + 5;
const LEGACY_TIMESTAMP: usize = LOG_OVERHEAD + 6;
const LEGACY_TIMESTAMP_END: usize = 14;

fn leader_epoch(whole: &[u8], envelope: &Envelope) -> i32 {
    if envelope.magic >= 2 { read_i32(whole, LEADER_EPOCH).unwrap_or(-1) } else { -1 }
}

fn max_timestamp(whole: &[u8], envelope: &Envelope) -> i64 {
    let at = match envelope.magic {
        0 => return -1,
        1 => LEGACY_TIMESTAMP,
        _ => MAX_TIMESTAMP,
    };
    ottla_format::header::read_i64(whole, at).unwrap_or(-1)
}

fn codec(whole: &[u8], envelope: &Envelope, request: &Request) -> Decision<Compression> {
    let magic = envelope.magic;
    let codec = if magic >= 2 {
        (read_i16(whole, ATTRIBUTES).unwrap_or(0) as u16 & CODEC_MASK) as u8
    } else {
        whole.get(LEGACY_ATTRIBUTES).copied().unwrap_or(0) & CODEC_MASK as u8
    };
    Compression::from_id(codec).ok_or_else(|| {
        let reason = Reason::Format(ErrorKind::UnknownCodec { codec, magic });
        Refusal::leak(request.profile, Difference::UnknownCodec, reason)
    })
}
