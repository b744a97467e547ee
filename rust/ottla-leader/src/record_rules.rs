//! What a record must keep, whatever its format (docs/kafka/produce-validation.md §5.6).

use crate::config::TopicConfig;
use crate::metrics::count;
use crate::profiles::{Difference, Profile};
use crate::reason::Reason;
use crate::record_walk::{Parse, WalkedRecord};
use crate::validation::Validation;
use ottla_format::attributes::TimestampType;
use ottla_format::batch::BatchInfo;
use ottla_format::clients::ClientFault;
use ottla_format::error::ErrorKind;
use ottla_format::error_code::ErrorCode;

/// What a record is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordFacts {
    pub(crate) index: u32,
    pub(crate) has_key: bool,
    pub(crate) timestamp: i64,
}

/// Judges a record by its key, then by its timestamp. Returns whether it keeps the rules; a record
/// that breaks one is to blame.
pub(crate) fn judge_record(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    facts: RecordFacts,
) -> bool {
    let RecordFacts { index, has_key, timestamp } = facts;
    if validation.config.is_compacted && !has_key {
        count(&mut validation.metrics.no_key_compacted_topic_records, 1);
        validation.blame(index, ErrorCode::InvalidRecord, Reason::KeyMissing);
        return false;
    }
    let is_flagged = info.timestamp_type() == TimestampType::LogAppendTime;
    let is_judged = validation.config.message_timestamp_type == TimestampType::CreateTime
        && timestamp != -1
        && !(is_flagged && validation.is_strict(Difference::LogAppendTimeFlag));
    let reason = if is_judged {
        outside_window(validation.config, validation.request.now_ms, timestamp)
    } else {
        is_flagged.then_some(Reason::TimestampType)
    };
    if let Some(reason) = reason {
        validation.blame(index, ErrorCode::InvalidTimestamp, reason);
        return false;
    }
    let cannot_be_written = validation.is_rebuilt
        && timestamp < -1
        && validation.is_strict(Difference::NegativeTimestamp);
    if cannot_be_written {
        let reason = Reason::TimestampNegative { timestamp };
        validation.blame(index, ErrorCode::InvalidRecord, reason);
    }
    !cannot_be_written
}

/// Kafka's arithmetic wraps, and so accepts some timestamps near the ends of 64 bits.
fn outside_window(config: &TopicConfig, now_ms: i64, timestamp: i64) -> Option<Reason> {
    let before = config.message_timestamp_before_max_ms;
    let after = config.message_timestamp_after_max_ms;
    let age = now_ms.wrapping_sub(timestamp);
    (age > before || age.wrapping_neg() > after).then(|| Reason::TimestampOutOfRange {
        timestamp,
        earliest: now_ms.saturating_sub(before),
        latest: now_ms.saturating_add(after),
    })
}

/// What stops some clients at a record once it is stored: of one that is written anew, only what is
/// copied.
fn client_fault(validation: &Validation<'_>, record: &WalkedRecord) -> Option<ClientFault> {
    record.client_fault.filter(|&fault| match fault {
        ClientFault::HeaderKey => validation.is_strict(Difference::HeaderKeys),
        _ => validation.is_strict(Difference::ClientRecords) && !validation.is_rebuilt,
    })
}

/// Judges a record of magic 2 by what only the strict profile asks. Returns whether it keeps the
/// rules; the first that is broken is what the record is to blame for.
pub(crate) fn judge_record_strictly(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    record: &WalkedRecord,
    parse: Parse,
) -> bool {
    if validation.request.profile != Profile::Strict {
        return true;
    }
    let WalkedRecord { index, offset_delta, timestamp_delta, .. } = *record;
    let has_wrong_length = parse == Parse::Skip
        && validation.is_strict(Difference::RecordLengths)
        && !record.has_declared_length();
    let is_out_of_place = validation.is_strict(Difference::OffsetDeltas)
        && i64::from(offset_delta) != i64::from(index);
    let overflows = validation.is_strict(Difference::TimestampOverflow)
        && info.timestamp_type() == TimestampType::CreateTime
        && info.base_timestamp.checked_add(timestamp_delta).is_none();
    let reason = if has_wrong_length {
        let (declared, used) = (record.declared_length, record.length);
        Reason::Format(ErrorKind::RecordLengthMismatch { index, declared, used })
    } else if is_out_of_place {
        let expected = index as i32;
        Reason::Format(ErrorKind::OffsetDeltaMismatch { index, delta: offset_delta, expected })
    } else if overflows {
        let base_timestamp = info.base_timestamp;
        Reason::TimestampOverflow { base_timestamp, delta: timestamp_delta }
    } else if let Some(fault) = client_fault(validation, record) {
        Reason::Clients(fault)
    } else {
        return true;
    };
    validation.blame(index, ErrorCode::InvalidRecord, reason);
    false
}
