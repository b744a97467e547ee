//! Damage in words: the findings of bytes that are no valid batch, with their severities.

use crate::catalogue::causes::Cause;
use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::segment::context::SegmentContext;
use ottla_format::batch::BatchInfo;
use ottla_format::error::Error;
use ottla_format::header::LOG_OVERHEAD;
use ottla_format::words;

/// Bytes at the end of a file that are no whole batch.
#[derive(Clone, Copy, Debug)]
pub(super) enum TailKind {
    /// The beginning of a batch, of so many bytes where its size is there.
    Cut { batch_bytes: Option<u64> },
    /// Neither a batch nor zeros.
    Garbage,
}

/// Says that bytes cannot be read as batches.
pub(crate) fn unreadable_message(position: u64, size: u64) -> String {
    format!("{} from position {position} on cannot be read as batches", words::count(size, "byte"))
}

/// Says that a batch is larger than the limit.
pub(crate) fn too_large_message(info: &BatchInfo, limit: u64) -> String {
    format!(
        "the batch at position {} has {} bytes, above the limit of {limit}: it was skipped",
        info.position, info.size
    )
}

pub(super) fn too_large(info: &BatchInfo, limit: u64) -> Finding {
    Finding::new(FindingKind::LimitExceeded, too_large_message(info, limit))
        .at(info.position, info.size)
        .offsets(info.base_offset, info.last_offset)
        .values(format!("at most {limit} bytes"), info.size)
}

pub(super) fn wrong_magic(info: &BatchInfo, magic: i8) -> Finding {
    let message = format!(
        "the batch at position {} has magic {magic}, but its CRC matches a batch of magic 2",
        info.position
    );
    Finding::new(FindingKind::MagicFault, message)
        .at(info.position, info.size)
        .offsets(info.base_offset, info.last_offset)
        .values(2, magic)
}

/// The last batch of a file that was being written: zeros follow from `zeros` on, to `end`.
pub(super) fn torn_batch(info: &BatchInfo, zeros: u64, end: u64) -> Finding {
    let message = format!(
        "the last batch, at position {}, was only partly written: from position {zeros} on there are zeros",
        info.position
    );
    let written = zeros.saturating_sub(info.position);
    Finding::new(FindingKind::TruncatedTail, message)
        .at(info.position, end.saturating_sub(info.position))
        .values(format!("{} bytes", info.size), format!("{written} bytes"))
        .graded(Severity::Info)
}

pub(super) fn wrong_crc(info: &BatchInfo, fault: &Error) -> Finding {
    let (expected, found) = fault.kind.expected_and_found();
    let message = format!(
        "the batch at position {} (base offset {}): {}",
        info.position, info.base_offset, fault.kind
    );
    Finding::new(FindingKind::CrcMismatch, message)
        .at(info.position, info.size)
        .values(expected, found)
}

/// A batch of `size` bytes whose size field says `declared`.
pub(super) fn wrong_size(position: u64, size: u64, declared: i32) -> Finding {
    let right = size.saturating_sub(LOG_OVERHEAD as u64);
    let message = format!(
        "the size field of the batch at position {position} says {declared}, but its CRC matches the {} before the next batch: only the size field is wrong",
        words::count(right, "byte")
    );
    by_damage(message, position, size).values(right, declared)
}

pub(super) fn damaged_range(position: u64, size: u64) -> Finding {
    let message = unreadable_message(position, size);
    by_damage(message, position, size).values("a batch", format!("{size} bytes"))
}

fn by_damage(message: String, position: u64, size: u64) -> Finding {
    let finding = Finding::new(FindingKind::DamagedRange, message).at(position, size);
    Finding { cause: Some(Cause::Damage), ..finding }
}

pub(super) fn zero_tail(position: u64, size: u64, context: &SegmentContext) -> Finding {
    let state = if context.is_active { "active" } else { "closed" };
    let message =
        format!("{} after the last batch of this {state} segment", words::count(size, "zero"));
    let is_odd = context.is_active && context.stopped_cleanly;
    let severity = if is_odd { Severity::Warning } else { Severity::Info };
    Finding::new(FindingKind::ZeroTail, message)
        .at(position, size)
        .values("the end of the file", format!("{size} zeros"))
        .graded(severity)
}

pub(super) fn tail(position: u64, size: u64, tail: TailKind, context: &SegmentContext) -> Finding {
    let (kind, message, expected) = match tail {
        TailKind::Cut { batch_bytes: Some(needed) } => (
            FindingKind::TruncatedTail,
            format!(
                "the file ends inside the batch at position {position}: it has {size} of its {needed} bytes"
            ),
            format!("{needed} bytes"),
        ),
        TailKind::Cut { batch_bytes: None } => (
            FindingKind::TruncatedTail,
            format!("the file ends inside the header of the batch at position {position}"),
            "a whole batch".to_owned(),
        ),
        TailKind::Garbage => (
            FindingKind::GarbageTail,
            format!(
                "{} after the last batch, neither a batch nor zeros",
                words::count(size, "byte")
            ),
            "the end of the file".to_owned(),
        ),
    };
    let severity = match (context.is_active, context.stopped_cleanly) {
        (true, false) => Severity::Info,
        (true, true) => Severity::Warning,
        (false, _) => Severity::Error,
    };
    Finding::new(kind, message)
        .at(position, size)
        .values(expected, format!("{size} bytes"))
        .graded(severity)
}
