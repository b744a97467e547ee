//! The snapshots that a start has made, as what has changed from each to the next.
//!
//! A start writes a snapshot at each segment that it recovers, of every producer: as bytes they would
//! grow with the square of the log.

use super::interruption::Interruption;
use crate::sidefiles::snapshot::SnapshotEntry;
use std::collections::BTreeSet;

/// Entries of snapshots that are read again over a whole start. Kafka goes on with the newest
/// snapshot, which needs no reading; only logs whose offsets contradict themselves go back further.
const MAX_ENTRIES_READ_AGAIN: usize = 1 << 22;

/// A snapshot: what a journal held up to here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewSnapshot {
    journal: usize,
    len: usize,
}

/// What snapshots consist of.
#[derive(Debug, Default)]
pub(super) struct Journals {
    /// Entries as they were written; of one producer, the last counts.
    all: Vec<Vec<SnapshotEntry>>,
    read_again: usize,
    /// Snapshots on disk that were read.
    read: BTreeSet<Vec<u8>>,
}

impl Journals {
    /// A snapshot of these producers.
    pub(super) fn begin(&mut self, entries: Vec<SnapshotEntry>) -> NewSnapshot {
        let (journal, len) = (self.all.len(), entries.len());
        self.all.push(entries);
        NewSnapshot { journal, len }
    }

    /// The snapshot that follows on another, with what has changed since.
    pub(super) fn append(
        &mut self,
        before: NewSnapshot,
        changed: Vec<SnapshotEntry>,
    ) -> Result<NewSnapshot, Interruption> {
        if self.all.get(before.journal).is_none_or(|journal| journal.len() != before.len) {
            // Another snapshot follows on the same one.
            let mut entries = self.read(before)?.to_vec();
            entries.extend(changed);
            return Ok(self.begin(entries));
        }
        let Some(journal) = self.all.get_mut(before.journal) else {
            return Ok(self.begin(changed));
        };
        journal.extend(changed);
        Ok(NewSnapshot { len: journal.len(), ..before })
    }

    /// The entries of a snapshot, the last of each producer being the one that counts.
    pub(super) fn read(&mut self, snapshot: NewSnapshot) -> Result<&[SnapshotEntry], Interruption> {
        self.count(snapshot.len)?;
        let journal = self.all.get(snapshot.journal);
        Ok(journal.and_then(|journal| journal.get(..snapshot.len)).unwrap_or(&[]))
    }

    /// A snapshot of so many bytes is read from disk: the first time costs what the file has.
    pub(super) fn read_from_disk(
        &mut self,
        name: &[u8],
        entries: usize,
    ) -> Result<(), Interruption> {
        if self.read.insert(name.to_vec()) { Ok(()) } else { self.count(entries) }
    }

    fn count(&mut self, entries: usize) -> Result<(), Interruption> {
        self.read_again = self.read_again.saturating_add(entries);
        if self.read_again > MAX_ENTRIES_READ_AGAIN {
            return Err(Interruption::limit(format!(
                "the start goes back to older producer snapshots again and again: more than \
                 {MAX_ENTRIES_READ_AGAIN} entries"
            )));
        }
        Ok(())
    }
}
