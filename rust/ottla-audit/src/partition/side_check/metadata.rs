//! The text files of a log directory and of a partition: those that cannot be read, and topic ids
//! that contradict each other.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use ottla_log::names::{FileKind, FileName};
use std::collections::HashMap;

/// Returns the finding about a text file that cannot be read, or does not hold what it should.
pub fn unreadable_text_file(file_name: &[u8], fault: &str, expected: &str, found: &str) -> Finding {
    let kind = match FileName::parse(file_name).kind {
        FileKind::OffsetCheckpoint => FindingKind::CheckpointMismatch,
        FileKind::LeaderEpochCheckpoint => FindingKind::EpochCheckpointMismatch,
        _ => FindingKind::MetadataMismatch,
    };
    let message = format!("{}: {fault}", String::from_utf8_lossy(file_name));
    Finding::new(kind, message).values(expected, found)
}

/// Returns findings about those of a topic's partitions whose topic id is not the one that most of
/// them have, each with its index. `partitions` are topic ids and the file that each is from.
pub fn foreign_topic_ids(partitions: &[(String, String)]) -> Vec<(usize, Finding)> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (topic_id, _) in partitions {
        let count = counts.entry(topic_id).or_default();
        *count = count.saturating_add(1);
    }
    // Of several that are as frequent the first.
    let frequency = |topic_id: &str| counts.get(topic_id).copied();
    let Some((usual, example)) =
        partitions.iter().rev().max_by_key(|(topic_id, _)| frequency(topic_id))
    else {
        return Vec::new();
    };
    let foreign = partitions.iter().enumerate().filter(|(_, (topic_id, _))| topic_id != usual);
    let finding = |topic_id: &str| {
        let message = format!(
            "topic id {topic_id}, but {example} says {usual}: the directories were not made for one topic"
        );
        Finding::new(FindingKind::MetadataMismatch, message).values(usual, topic_id)
    };
    foreign.map(|(index, (topic_id, _))| (index, finding(topic_id))).collect()
}
