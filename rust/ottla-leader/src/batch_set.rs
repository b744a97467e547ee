//! Sets of one batch of magic 2, whose records are kept as they are or written anew
//! (docs/kafka/produce-validation.md §5.2–§5.4).

use crate::batch_rules::judge_batch;
use crate::config::TargetCompression;
use crate::convert::SetWriter;
use crate::profiles::Difference;
use crate::reason::Reason;
use crate::record_rules::{RecordFacts, judge_record, judge_record_strictly};
use crate::record_walk::{Parse, RecordWalk};
use crate::refusal::Decision;
use crate::summary::Summary;
use crate::validation::Validation;
use crate::verdict::Accepted;
use ottla_format::attributes::{Compression, TimestampType};
use ottla_format::batch::{BatchInfo, Payload, payload};
use ottla_format::builder::NewRecord;
use ottla_format::compression::{Codecs, Reading};
use ottla_format::control_record::ControlRecord;
use ottla_format::error::{ErrorKind, Field};
use ottla_format::error_code::ErrorCode;
use ottla_format::header::RECORD_BATCH_OVERHEAD;
use ottla_format::limits::Limits;
use ottla_format::record::read_record;

/// Uncompressed and of the log's format: kept, with another header.
pub(crate) fn in_place<'a>(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    records: &'a [u8],
) -> Decision<Accepted<'a>> {
    judge_batch(validation, info, info)?;
    let summary = judge_records(validation, info, plain_payload(records), Parse::Full, false)?;
    validation.end_of_set()?;
    Ok(summary.kept_batch(validation.config, validation.request, records))
}

/// Uncompressed, in a log of an older format: written anew.
pub(crate) fn converted<'a>(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    records: &[u8],
    mut writer: SetWriter<'_>,
    codecs: &mut Codecs,
) -> Decision<Accepted<'a>> {
    judge_batch(validation, info, info)?;
    let payload = plain_payload(records);
    judge_records(validation, info, payload, Parse::Full, false)?;
    copy_records(validation, info, payload, &mut writer)?;
    validation.end_of_set()?;
    writer.finish(info, codecs)
}

/// Compressed before or after.
pub(crate) fn compressed<'a>(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    records: &'a [u8],
    is_kept: bool,
    target: TargetCompression,
    codecs: &mut Codecs,
) -> Decision<Accepted<'a>> {
    judge_batch(validation, info, info)?;
    let is_compressed = info.codec() != 0;
    // Kafka does not even open the payload of an empty batch that it keeps.
    let is_unopened =
        is_kept && info.record_count == Some(0) && !validation.is_strict(Difference::Undecodable);
    let parse = if is_kept && is_compressed { Parse::Skip } else { Parse::Full };
    let repaired;
    let mut framing = None;
    let payload = match payload(info, records) {
        Ok(Payload::Compressed { codec, reading, bytes, .. }) if !is_unopened => {
            let is_skipped =
                parse == Parse::Skip && !validation.is_strict(Difference::StreamPauses);
            let reading = if is_skipped { reading.skipping() } else { reading };
            // Two calls, because the first borrows the codecs for as long as its bytes live.
            let refused = validation.known_refusal(reading, bytes);
            match refused.map_or_else(|| codecs.decompress(codec, reading, bytes).map(drop), Err) {
                Ok(()) => {
                    framing = codecs.client_fault();
                    codecs.inflated()
                }
                Err(kind) => {
                    let damaged = (codec, reading, bytes);
                    repaired = before_damage(validation, info, kind, damaged, parse, codecs)?;
                    &repaired
                }
            }
        }
        Ok(Payload::Compressed { .. }) => &[],
        Ok(Payload::Plain { .. }) => plain_payload(records),
        Err(error) => return Err(validation.unreadable_batch(error.kind, false, None)),
    };
    let summary = judge_records(validation, info, payload, parse, is_compressed)?;
    validation.end_of_set()?;
    validation.judge_framing(framing)?;
    if is_kept && summary.is_dense {
        return Ok(summary.kept_batch(validation.config, validation.request, records));
    }
    if parse == Parse::Skip {
        // Kafka has skipped the keys and values that it needs now.
        return Err(validation.leak(Difference::OffsetDeltas, Reason::SkippedRecords));
    }
    let mut writer = SetWriter::new(validation, target, payload.len());
    copy_records(validation, info, payload, &mut writer)?;
    writer.finish(info, codecs)
}

/// The records of an uncompressed batch: nothing of one that is cut inside its header.
pub(crate) fn plain_payload(batch: &[u8]) -> &[u8] {
    batch.get(RECORD_BATCH_OVERHEAD..).unwrap_or_default()
}

/// Reads the records before the damage of a payload that its codec refuses: Kafka sees these first,
/// and refuses them first. Returns the payload where Kafka's own streams accept it.
fn before_damage(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    kind: ErrorKind,
    (codec, reading, bytes): (Compression, Reading, &[u8]),
    parse: Parse,
    codecs: &mut Codecs,
) -> Decision<Vec<u8>> {
    let is_undecodable = matches!(kind, ErrorKind::Undecodable { .. });
    if validation.is_strict(Difference::Undecodable) || !is_undecodable {
        return Err(validation.unreadable_batch(kind, false, None));
    }
    let (payload, is_damaged) = codecs.decompress_before_damage(codec, reading, bytes);
    if !is_damaged {
        return Ok(payload);
    }
    let walked = RecordWalk::start(info, &payload, parse, validation.limits)
        .map_err(|kind| validation.unreadable_batch(kind, false, None))
        .and_then(|walk| {
            let walk = walk.bounded(validation.record_lengths()).cut();
            judge_walk(validation, info, walk, parse, true)
        });
    match walked {
        Err(refusal) if !meets_end(&refusal.reason, parse) => Err(refusal),
        _ => Err(validation.unreadable_batch(kind, false, None)),
    }
}

/// Whether a parser went past the end of its bytes.
fn meets_end(reason: &Reason, parse: Parse) -> bool {
    match reason {
        Reason::Format(ErrorKind::RecordsMissing { .. }) => true,
        // A full parse reads a whole record before it looks at its fields.
        Reason::Format(ErrorKind::FieldOverrun { field, .. }) => {
            parse == Parse::Skip || *field == Field::RecordLength
        }
        _ => false,
    }
}

/// Judges every record of a batch.
fn judge_records(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    payload: &[u8],
    parse: Parse,
    is_compressed: bool,
) -> Decision<Summary> {
    let walk = RecordWalk::start(info, payload, parse, validation.limits)
        .map_err(|kind| validation.unreadable_batch(kind, !is_compressed, None))?
        .bounded(if is_compressed { validation.record_lengths() } else { None });
    let summary = judge_walk(validation, info, walk, parse, is_compressed)?;
    if info.is_control() && validation.is_strict(Difference::ControlRecord) {
        judge_control_records(validation, info, payload)?;
    }
    Ok(summary)
}

fn judge_walk(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    mut walk: RecordWalk<'_>,
    parse: Parse,
    is_compressed: bool,
) -> Decision<Summary> {
    let mut summary = Summary::default();
    loop {
        match walk.next() {
            Ok(Some(record)) => {
                let facts = RecordFacts {
                    index: record.index,
                    has_key: record.has_key,
                    timestamp: record.timestamp,
                };
                let is_right = judge_record_strictly(validation, info, &record, parse)
                    && judge_record(validation, info, facts);
                // The offset, not the delta, is what Kafka holds against the place.
                let offset = info.base_offset.wrapping_add(i64::from(record.offset_delta));
                if is_right {
                    summary.add(record.timestamp, offset == summary.count as i64);
                } else {
                    summary.skip();
                }
            }
            Ok(None) => return Ok(summary),
            Err(kind) => {
                let index = match kind {
                    ErrorKind::TooMany { .. } => Some(walk.index()),
                    kind => kind.record_index(),
                };
                let refusal = validation.unreadable_batch(kind, !is_compressed, index);
                let can_go_on = validation.is_strict(Difference::StructureUnnamed)
                    && index.is_some()
                    && walk.step_over();
                if !can_go_on {
                    return Err(refusal);
                }
                validation.resume_after(*refusal);
                summary.skip();
            }
        }
    }
}

/// Judges the control records of a broker's own batch by what their readers need.
fn judge_control_records(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    payload: &[u8],
) -> Decision<()> {
    let mut position = 0;
    for index in 0..info.record_count.unwrap_or(0).max(0) as u32 {
        let read = read_record(payload, position, index, &validation.limits);
        let Ok((record, end)) = read else { break };
        if let Err(kind) = ControlRecord::read(index, record.key, record.value) {
            validation.blame(index, ErrorCode::InvalidRecord, Reason::Format(kind));
        }
        position = end;
    }
    validation.end_of_set()
}

/// Kafka estimates the size of a set that it converts, and so meets an unreadable record before all
/// else.
pub(crate) fn estimate(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    batch: &[u8],
) -> Decision<()> {
    let walked = RecordWalk::start(info, plain_payload(batch), Parse::Full, validation.limits)
        .and_then(|mut walk| {
            while walk.next()?.is_some() {}
            Ok(())
        });
    walked.map_err(|kind| validation.unreadable_batch(kind, true, None))
}

/// Passes the records of a batch, which are right, to a writer.
fn copy_records(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    payload: &[u8],
    writer: &mut SetWriter<'_>,
) -> Decision<()> {
    let is_stamped = info.timestamp_type() == TimestampType::LogAppendTime;
    // Headers are held one record at a time, dozens of bytes for each two of theirs.
    let limits = Limits::default();
    let mut position = 0;
    for index in 0..info.record_count.unwrap_or(0).max(0) as u32 {
        let (record, end) = read_record(payload, position, index, &limits)
            .map_err(|error| validation.unreadable_batch(error.kind, false, Some(index)))?;
        let own = info.base_timestamp.wrapping_add(record.timestamp_delta);
        writer.push(&NewRecord {
            timestamp: if is_stamped { info.max_timestamp } else { own },
            key: record.key,
            value: record.value,
            headers: record.headers.iter().collect(),
            offset_delta: None,
        })?;
        position = end;
    }
    Ok(())
}
