//! Producer snapshots compared with the producers of the log.

use crate::catalogue::finding::{Finding, SideFile};
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::partition::producers::{KnownProducer, Producers};
use crate::partition::side_check::proof::Proof;
use ottla_format::words;
use ottla_log::sidefiles::snapshot::{
    SNAPSHOT_ENTRY_BYTES, SNAPSHOT_OVERHEAD, SnapshotEntry, read_snapshot,
};
use std::collections::BTreeSet;

/// Compares a snapshot with the producers at its offset, or at the end of the segment it is in;
/// returns the first difference.
pub(crate) fn compare(
    offset: i64,
    data: &[u8],
    producers: &Producers,
    proof: Proof,
) -> Option<Finding> {
    let side = SideFile::Snapshot(offset);
    let entries = match read_snapshot(data) {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!(
                "{error}; at the next start Kafka deletes it and uses the previous snapshot, or reads the log from its start"
            );
            let finding = Finding::new(FindingKind::SnapshotMismatch, message).beside(side);
            return Some(
                finding.at(0, data.len() as u64).values("a producer snapshot", error.name()),
            );
        }
    };
    let check = SnapshotCheck { offset, proof, producers };
    for (number, entry) in entries.iter().enumerate() {
        if let Some((field, expected, found)) = check.compare(entry) {
            return Some(check.finding(number, entry, field, &expected, &found));
        }
    }
    check.missing_producer(&entries)
}

struct SnapshotCheck<'a> {
    offset: i64,
    proof: Proof,
    producers: &'a Producers,
}

/// A field, what it should be, and what it is.
type FieldDifference = (&'static str, String, String);

fn differs<T: Copy + PartialEq + std::fmt::Display>(
    field: &'static str,
    is: T,
    was: T,
) -> Option<FieldDifference> {
    (is != was).then(|| (field, is.to_string(), was.to_string()))
}

fn offset_or_none(offset: Option<i64>) -> String {
    offset.map_or_else(|| "none".to_owned(), |offset| offset.to_string())
}

impl SnapshotCheck<'_> {
    fn compare(&self, entry: &SnapshotEntry) -> Option<FieldDifference> {
        let below = |field, offset: i64| {
            (offset >= self.offset)
                .then(|| (field, format!("below {}", self.offset), offset.to_string()))
        };
        let transaction = entry.transaction_first_offset;
        if let Some(wrong) = below("last offset", entry.last_offset)
            .or_else(|| below("transaction", transaction.unwrap_or(-1)))
        {
            return Some(wrong);
        }
        let Proof { first_offset: first, is_compacted, is_damaged } = self.proof;
        if is_damaged || self.producers.left_out() > 0 {
            return None;
        }
        let Some(known) = self.producers.known(entry.producer_id) else {
            // Its batches are below the first offset, or the cleaner removed them.
            let is_whole = first == 0 && !is_compacted;
            return is_whole.then(|| {
                ("producer id", "a producer of the log".to_owned(), entry.producer_id.to_string())
            });
        };
        if known.newest_offset >= self.offset {
            return None;
        }
        if is_compacted {
            return Self::compare_compacted(entry, &known);
        }
        self.compare_fields(entry, &known)
    }

    /// Compares an entry with a compacted log: the cleaner keeps the newest batch of a producer, and
    /// removes markers.
    fn compare_compacted(entry: &SnapshotEntry, known: &KnownProducer) -> Option<FieldDifference> {
        let is = &known.entry;
        if entry.producer_epoch < is.producer_epoch {
            return differs("epoch", is.producer_epoch, entry.producer_epoch);
        }
        let is_same = entry.producer_epoch == is.producer_epoch;
        if is_same && entry.last_offset < is.last_offset {
            return differs("last offset", is.last_offset, entry.last_offset);
        }
        None
    }

    fn compare_fields(
        &self,
        entry: &SnapshotEntry,
        known: &KnownProducer,
    ) -> Option<FieldDifference> {
        let is = &known.entry;
        let first = self.proof.first_offset;
        // If the log has no data of it, the deleted head of the log may have had some.
        let knows_data = known.has_data || first == 0;
        let knows_marker = known.has_marker || first == 0;
        let began_before = entry.transaction_first_offset.is_some_and(|offset| offset < first);
        let data = || {
            differs("last sequence", is.last_sequence, entry.last_sequence)
                .or_else(|| differs("last offset", is.last_offset, entry.last_offset))
                .or_else(|| differs("offset delta", is.offset_delta, entry.offset_delta))
        };
        let coordinator =
            || differs("coordinator epoch", is.coordinator_epoch, entry.coordinator_epoch);
        let transaction = || {
            let (is, was) = (is.transaction_first_offset, entry.transaction_first_offset);
            (is != was).then(|| ("open transaction", offset_or_none(is), offset_or_none(was)))
        };
        differs("epoch", is.producer_epoch, entry.producer_epoch)
            .or_else(|| data().filter(|_| knows_data))
            .or_else(|| coordinator().filter(|_| knows_marker))
            .or_else(|| transaction().filter(|_| knows_marker || !began_before))
    }

    fn finding(
        &self,
        number: usize,
        entry: &SnapshotEntry,
        field: &str,
        expected: &str,
        found: &str,
    ) -> Finding {
        let position =
            number.saturating_mul(SNAPSHOT_ENTRY_BYTES).saturating_add(SNAPSHOT_OVERHEAD);
        let message = format!(
            "the snapshot has {field} {found} for producer {}, but the log before offset {} has {expected}; at the next start Kafka trusts the snapshot",
            entry.producer_id, self.offset
        );
        let finding = Finding::new(FindingKind::SnapshotMismatch, message)
            .beside(SideFile::Snapshot(self.offset))
            .at(position as u64, SNAPSHOT_ENTRY_BYTES as u64)
            .producer(entry.producer_id)
            .values(expected, found);
        if entry.last_offset < 0 {
            finding
        } else {
            finding.offsets(entry.last_offset, entry.last_offset)
        }
    }

    /// Returns the finding about a producer that is not in the snapshot although its transaction is
    /// open: such a producer never expires.
    fn missing_producer(&self, entries: &[SnapshotEntry]) -> Option<Finding> {
        if self.proof.is_damaged || self.producers.left_out() > 0 {
            return None;
        }
        let open = self.producers.with_open_transaction();
        let mut open = open.filter(|known| known.newest_offset < self.offset).peekable();
        open.peek()?;
        let listed: BTreeSet<i64> = entries.iter().map(|entry| entry.producer_id).collect();
        let known = open.find(|known| !listed.contains(&known.entry.producer_id))?;
        let (producer_id, begun) =
            (known.entry.producer_id, known.entry.transaction_first_offset.unwrap_or(0));
        let message = format!(
            "the snapshot lacks producer {producer_id}, whose transaction from offset {begun} on is open at offset {}; after the next start read_committed consumers would not wait for its end",
            self.offset
        );
        Some(
            Finding::new(FindingKind::SnapshotMismatch, message)
                .beside(SideFile::Snapshot(self.offset))
                .producer(producer_id)
                .offsets(begun, known.newest_offset)
                .values("an entry", "none"),
        )
    }
}

/// Returns the finding about a snapshot of an offset that the log does not reach.
pub(crate) fn beyond_end(offset: i64, end: i64) -> Finding {
    let message = format!(
        "the snapshot is of offset {offset}, but the log ends at {end}: {}; Kafka deletes the snapshot at the next start",
        words::last_missing(offset.saturating_sub(end))
    );
    Finding::new(FindingKind::SnapshotMismatch, message)
        .beside(SideFile::Snapshot(offset))
        .offsets(end, offset.saturating_sub(1))
        .values(format!("at most {end}"), offset)
        .graded(Severity::Error)
}
