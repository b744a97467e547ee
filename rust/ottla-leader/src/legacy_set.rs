//! Sets of magic 0 and 1: plain records, or a compressed wrapper
//! (docs/kafka/produce-validation.md §5.2–§5.6).

use crate::batch_rules::judge_batch;
use crate::config::TargetCompression;
use crate::convert::SetWriter;
use crate::framing::batches;
use crate::metrics::count;
use crate::profiles::Difference;
use crate::reason::Reason;
use crate::record_rules::{RecordFacts, judge_record};
use crate::refusal::{Decision, Refusal};
use crate::rewrite::stamp_legacy;
use crate::stored::Stored;
use crate::summary::Summary;
use crate::validation::Validation;
use crate::verdict::Accepted;
use ottla_format::attributes::{CODEC_MASK, Compression, TimestampType};
use ottla_format::batch::{BatchInfo, Payload, payload};
use ottla_format::builder::NewRecord;
use ottla_format::compression::{Codecs, Reading};
use ottla_format::error::ErrorKind;
use ottla_format::error_code::ErrorCode;
use ottla_format::header::{LOG_OVERHEAD, MIN_SIZE, field, read_i32, read_i64};
use ottla_format::legacy::{self, Entry, LegacyRecord};

/// Uncompressed and of the log's format: kept, with other offsets and timestamps.
pub(crate) fn in_place<'a>(
    validation: &mut Validation<'_>,
    first: &BatchInfo,
    records: &[u8],
) -> Decision<Accepted<'a>> {
    let (config, request) = (validation.config, validation.request);
    let mut summary = Summary::default();
    let mut set = records.to_vec();
    let mut rest = &mut set[..];
    for (index, (info, whole)) in (0..).zip(batches(records)) {
        judge_batch(validation, first, &info)?;
        let timestamp = judge_plain_record(validation, &info, whole, index)?;
        summary.add(if info.magic > 0 { timestamp } else { -1 }, true);
        validation.end_of_entry()?;
        // Each entry is stamped with its own timestamp.
        let of_entry = Summary { max_timestamp: timestamp.max(-1), ..summary };
        if let Some(entry) = rest.split_off_mut(..whole.len()) {
            stamp_legacy(entry, &of_entry.stamp(config, request));
        }
    }
    validation.end_of_set()?;
    Ok(summary.kept(config, request, Stored::Owned(set)))
}

/// Uncompressed and of another format than the log's: written anew.
pub(crate) fn converted<'a>(
    validation: &mut Validation<'_>,
    first: &BatchInfo,
    records: &[u8],
    mut writer: SetWriter<'_>,
    codecs: &mut Codecs,
) -> Decision<Accepted<'a>> {
    for (index, (info, whole)) in (0..).zip(batches(records)) {
        judge_batch(validation, first, &info)?;
        let timestamp = judge_plain_record(validation, &info, whole, index)?;
        if validation.is_clean() {
            let record = read_plain(validation, whole, Some(index))?;
            writer.push(&new_record(&record, timestamp))?;
        }
        validation.end_of_entry()?;
    }
    validation.end_of_set()?;
    writer.finish(first, codecs)
}

/// Uncompressed, in a topic that compresses: written anew.
pub(crate) fn compressed<'a>(
    validation: &mut Validation<'_>,
    first: &BatchInfo,
    records: &[u8],
    target: TargetCompression,
    codecs: &mut Codecs,
) -> Decision<Accepted<'a>> {
    for (index, (info, whole)) in (0..).zip(batches(records)) {
        judge_batch(validation, first, &info)?;
        judge_plain_record(validation, &info, whole, index)?;
        validation.end_of_entry()?;
    }
    validation.end_of_set()?;
    let mut writer = SetWriter::new(validation, target, records.len());
    for (index, (info, whole)) in (0..).zip(batches(records)) {
        let record = read_plain(validation, whole, Some(index))?;
        writer.push(&new_record(&record, info.max_timestamp))?;
    }
    writer.finish(first, codecs)
}

/// One wrapper: kept with another header, or its records written anew.
pub(crate) fn wrapper<'a>(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    records: &[u8],
    is_kept: bool,
    target: TargetCompression,
    codecs: &mut Codecs,
) -> Decision<Accepted<'a>> {
    judge_batch(validation, info, info)?;
    let repaired;
    let mut framing = None;
    let set = match payload(info, records) {
        Ok(Payload::Compressed { codec, reading, bytes, .. }) => {
            // Two calls, because the first borrows the codecs for as long as its bytes live.
            match codecs.decompress(codec, reading, bytes).map(<[u8]>::len) {
                Ok(_) => {
                    framing = codecs.client_fault();
                    codecs.inflated()
                }
                Err(kind) => {
                    repaired = before_damage(validation, kind, (codec, reading, bytes), codecs)?;
                    &repaired
                }
            }
        }
        Ok(Payload::Plain { .. }) => &[],
        Err(error) => return Err(validation.unreadable_legacy(error.kind, None)),
    };
    judge_lengths(validation, set)?;
    let wrapper =
        Wrapper::open(info, set).map_err(|kind| validation.unreadable_legacy(kind, None))?;
    let summary = judge_inner_records(validation, &wrapper)?;
    validation.judge_framing(framing)?;
    let (config, request) = (validation.config, validation.request);
    if is_kept && summary.is_dense {
        let mut set = records.to_vec();
        stamp_legacy(&mut set, &summary.stamp(config, request));
        return Ok(summary.kept(config, request, Stored::Owned(set)));
    }
    let mut writer = SetWriter::new(validation, target, set.len());
    for (index, entry) in (0..).zip(&wrapper.entries) {
        let record = legacy::read_body(wrapper.body(entry))
            .map_err(|error| validation.unreadable_legacy(error.kind, Some(index)))?;
        writer.push(&new_record(&record, wrapper.timestamp(record.timestamp)))?;
    }
    writer.finish(info, codecs)
}

/// Kafka estimates the size of a set that it converts, and so meets an unreadable record before all
/// else.
pub(crate) fn estimate(validation: &mut Validation<'_>, entry: &[u8]) -> Decision<()> {
    read_plain(validation, entry, None).map(|_| ())
}

/// Inflates the wrapper's entries before the damage of a payload that its codec refuses: Kafka
/// takes them apart before it looks at any. Returns them where Kafka's own streams accept the
/// payload.
fn before_damage(
    validation: &mut Validation<'_>,
    kind: ErrorKind,
    (codec, reading, bytes): (Compression, Reading, &[u8]),
    codecs: &mut Codecs,
) -> Decision<Vec<u8>> {
    let is_undecodable = matches!(kind, ErrorKind::Undecodable { .. });
    if validation.is_strict(Difference::Undecodable) || !is_undecodable {
        return Err(validation.unreadable_legacy(kind, None));
    }
    let (set, is_damaged) = codecs.decompress_before_damage(codec, reading, bytes);
    if !is_damaged {
        return Ok(set);
    }
    judge_lengths(validation, &set)?;
    let kind = match legacy::entries(&set) {
        Err(error) if matches!(error.kind, ErrorKind::SizeTooSmall { .. }) => error.kind,
        _ => kind,
    };
    Err(validation.unreadable_legacy(kind, None))
}

/// Holds the entries of an inflated wrapper to the length that the topic allows, as they are taken
/// apart: one that is too short ends that, with another refusal.
fn judge_lengths(validation: &mut Validation<'_>, set: &[u8]) -> Decision<()> {
    let Some(lengths) = validation.record_lengths() else { return Ok(()) };
    let limit = *lengths.end();
    let mut rest = set;
    for index in 0.. {
        let Some(declared) = read_i32(rest, field::BATCH_LENGTH) else { break };
        if declared > limit {
            let kind = ErrorKind::RecordTooLarge { index, declared, limit };
            return Err(validation.unreadable_legacy(kind, Some(index)));
        }
        let size = usize::try_from(declared).unwrap_or(0);
        let is_long_enough = declared >= MIN_SIZE;
        match rest.split_at_checked(LOG_OVERHEAD.saturating_add(size)) {
            Some((_, behind)) if is_long_enough => rest = behind,
            _ => break,
        }
    }
    Ok(())
}

/// The record of an uncompressed entry.
fn read_plain<'e>(
    validation: &mut Validation<'_>,
    entry: &'e [u8],
    index: Option<u32>,
) -> Decision<LegacyRecord<'e>> {
    legacy::read_body(body_of(entry))
        .map_err(|error| validation.unreadable_legacy(error.kind, index))
}

/// Judges an uncompressed entry by its key and its timestamp, which is returned.
fn judge_plain_record(
    validation: &mut Validation<'_>,
    info: &BatchInfo,
    entry: &[u8],
    index: u32,
) -> Decision<i64> {
    let body = body_of(entry);
    let has_key = has_key(validation, info.magic, body, index)?;
    if let Some(kind) = unreadable(validation, body) {
        validation.blame(index, ErrorCode::InvalidRecord, Reason::Format(kind));
        return Ok(info.max_timestamp);
    }
    // To Kafka each entry is a batch, and its record the first.
    let index = if validation.is_strict(Difference::LegacyPositions) { index } else { 0 };
    judge_record(validation, info, RecordFacts { index, has_key, timestamp: info.max_timestamp });
    Ok(info.max_timestamp)
}

/// Judges the records inside a compressed wrapper.
fn judge_inner_records(
    validation: &mut Validation<'_>,
    wrapper: &Wrapper<'_>,
) -> Decision<Summary> {
    let info = &wrapper.info;
    let mut summary = Summary::default();
    for (index, entry) in (0..).zip(&wrapper.entries) {
        let body = wrapper.body(entry);
        let magic = legacy::magic_of(body);
        if !is_compressed(body) && magic != info.magic {
            count(&mut validation.metrics.invalid_magic_number_records, 1);
            if !validation.is_strict(Difference::LegacyLengths)
                && let Err(error) = legacy::read_body(body)
            {
                // Kafka's message describes the record, key and value included.
                return Err(validation.unreadable_legacy(error.kind, Some(index)));
            }
            let reason = Reason::RecordMagic { magic, batch: info.magic };
            validation.blame(index, ErrorCode::InvalidRecord, reason);
            summary.skip();
            continue;
        }
        if let Some((error, kind)) = inner_fault(validation, body, index) {
            let reason = Reason::Format(kind);
            if !validation.is_strict(Difference::InnerRecords) {
                return Err(Refusal::new(error, reason));
            }
            validation.blame(index, error, reason);
            summary.skip();
            continue;
        }
        let has_key = has_key(validation, magic, body, index)?;
        let own = if magic == 0 { None } else { read_i64(body, legacy::TIMESTAMP) };
        let timestamp = wrapper.timestamp(own.unwrap_or(-1));
        let is_right = judge_record(validation, info, RecordFacts { index, has_key, timestamp });
        let can_be_kept = info.magic > 0 && validation.config.message_format > 0;
        if is_right && can_be_kept {
            summary.add(timestamp, wrapper.offset(entry) == summary.count as i64);
        } else {
            summary.skip();
        }
    }
    validation.end_of_set()?;
    Ok(summary)
}

/// What makes an inner record unreadable, with its error.
fn inner_fault(
    validation: &mut Validation<'_>,
    body: &[u8],
    index: u32,
) -> Option<(ErrorCode, ErrorKind)> {
    if is_compressed(body) {
        return Some((ErrorCode::InvalidRecord, ErrorKind::WrapperNested { index }));
    }
    match legacy::checksums(body) {
        Some((stored, computed)) if stored != computed => {
            count(&mut validation.metrics.invalid_message_crc_records, 1);
            let kind = ErrorKind::InnerCrcMismatch { index, stored, computed };
            Some((ErrorCode::CorruptMessage, kind))
        }
        _ => unreadable(validation, body).map(|kind| (ErrorCode::InvalidRecord, kind)),
    }
}

/// Why a record of magic 0 or 1 stops its readers. Kafka keeps one whose lengths it did not need to
/// read.
fn unreadable(validation: &Validation<'_>, body: &[u8]) -> Option<ErrorKind> {
    if !validation.is_strict(Difference::LegacyLengths) {
        return None;
    }
    legacy::read_body(body).err().map(|error| error.kind)
}

/// Whether a record has a key. Kafka reads the key's length only for topics that ask for a key.
fn has_key(validation: &mut Validation<'_>, magic: i8, body: &[u8], index: u32) -> Decision<bool> {
    let position = legacy::key_position(magic);
    match read_i32(body, position) {
        Some(length) => Ok(length >= 0),
        None if validation.config.is_compacted => {
            let (size, minimum) = (body.len() as u64, position.saturating_add(4) as u64);
            let kind = ErrorKind::LegacyTooShort { size, minimum };
            Err(validation.unreadable_legacy(kind, Some(index)))
        }
        None => Ok(true),
    }
}

/// The body of an entry, which is longer than its offset and size.
fn body_of(entry: &[u8]) -> &[u8] {
    entry.get(LOG_OVERHEAD..).unwrap_or_default()
}

fn is_compressed(body: &[u8]) -> bool {
    body.get(legacy::ATTRIBUTES).is_some_and(|&attributes| u16::from(attributes) & CODEC_MASK != 0)
}

fn new_record<'a>(record: &LegacyRecord<'a>, timestamp: i64) -> NewRecord<'a> {
    NewRecord { timestamp, key: record.key, value: record.value, ..NewRecord::default() }
}

/// A compressed wrapper of magic 0 or 1, inflated.
struct Wrapper<'s> {
    info: BatchInfo,
    set: &'s [u8],
    entries: Vec<Entry>,
    /// What the offsets of its records count from.
    base: i64,
}

impl<'s> Wrapper<'s> {
    fn open(info: &BatchInfo, set: &'s [u8]) -> Result<Self, ErrorKind> {
        let entries = legacy::entries(set).map_err(|error| error.kind)?;
        let base = legacy::absolute_base(info.magic, info.last_offset, &entries)
            .map_err(|error| error.kind)?;
        Ok(Self { info: *info, set, entries, base })
    }

    /// The bytes of an entry, which lie inside the set that it was read from.
    fn body(&self, entry: &Entry) -> &'s [u8] {
        self.set.get(entry.start..entry.end).unwrap_or_default()
    }

    fn offset(&self, entry: &Entry) -> i64 {
        if self.info.magic == 0 { entry.offset } else { self.base.wrapping_add(entry.offset) }
    }

    /// The timestamp of an inner record that carries `own`.
    fn timestamp(&self, own: i64) -> i64 {
        match self.info.timestamp_type() {
            TimestampType::LogAppendTime => self.info.max_timestamp,
            _ => own,
        }
    }
}
