//! The offset checkpoints of a log directory compared with where its logs end.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use ottla_format::words;
use ottla_log::names::{CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS};

/// What the offsets of a checkpoint are, and what Kafka does with one beyond the end of its log.
struct Checkpoint {
    offset_name: &'static str,
    severity: Severity,
    consequence: &'static str,
}

/// Returns what is known about the checkpoint of this file name.
fn checkpoint_of(file_name: &[u8]) -> Option<Checkpoint> {
    let (offset_name, severity, consequence) = match file_name {
        RECOVERY_POINTS => (
            "recovery point",
            Severity::Error,
            "after an unclean stop Kafka would not recover the last segment",
        ),
        LOG_START_OFFSETS => (
            "log start offset",
            Severity::Warning,
            "at the next start Kafka deletes every segment and starts the log there",
        ),
        HIGH_WATERMARKS => (
            "high watermark",
            Severity::Error,
            "at the next start Kafka silently uses the end of the log instead",
        ),
        CLEANER_OFFSETS => (
            "first dirty offset",
            Severity::Info,
            "the cleaner starts again at the log start offset",
        ),
        _ => return None,
    };
    Some(Checkpoint { offset_name, severity, consequence })
}

/// Returns the finding about the offset that a checkpoint has for a partition, if it lies beyond the
/// end of the log. Files of other names have none.
pub fn offset_beyond_end(
    file_name: &[u8],
    topic: &str,
    partition: i32,
    offset: i64,
    log_end_offset: i64,
) -> Option<Finding> {
    if offset <= log_end_offset {
        return None;
    }
    let Checkpoint { offset_name, severity, consequence } = checkpoint_of(file_name)?;
    let message = format!(
        "{} has {offset_name} {offset} for {topic}-{partition}, but its log ends at {log_end_offset}: {}; {consequence}",
        String::from_utf8_lossy(file_name),
        words::last_missing(offset.saturating_sub(log_end_offset))
    );
    Some(
        Finding::new(FindingKind::CheckpointMismatch, message)
            .graded(severity)
            .offsets(log_end_offset, offset.saturating_sub(1))
            .values(format!("at most {log_end_offset}"), offset),
    )
}

/// Partitions that a finding names.
const MAX_NAMED: usize = 3;

/// Returns the finding about partitions of which a checkpoint has an offset and the log directory
/// has none, given with that offset. One at offset 0 held no record.
pub fn partitions_without_directory(
    file_name: &[u8],
    partitions: &[(String, i32, i64)],
) -> Option<Finding> {
    let Checkpoint { offset_name, .. } = checkpoint_of(file_name)?;
    let held: Vec<_> = partitions.iter().filter(|(.., offset)| *offset > 0).collect();
    let named: Vec<_> = held
        .iter()
        .take(MAX_NAMED)
        .map(|(topic, partition, offset)| format!("{topic}-{partition} ({offset})"))
        .collect();
    let more = match held.len().saturating_sub(named.len()) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let named = format!("{}{more}", named.join(", "));
    let message = format!(
        "{} has a {offset_name} of partitions that have no directory here: {named}; they were deleted or moved moments before the broker stopped, or they are lost",
        String::from_utf8_lossy(file_name),
    );
    (!held.is_empty())
        .then(|| Finding::new(FindingKind::MissingPartition, message).values("a directory", named))
}
