//! The snapshots that a start has made, as what has changed from each to the next.
//!
//! A start writes a snapshot at each segment that it recovers, of every producer: as bytes they would
//! grow with the square of the log.

use super::interruption::Interruption;
use crate::sidefiles::snapshot::SnapshotEntry;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

/// Entries of snapshots that are read again over a whole start. Kafka goes on with the newest
/// snapshot, which needs no reading; only logs whose offsets contradict themselves go back further.
const MAX_ENTRIES_READ_AGAIN: usize = 1 << 22;

/// A snapshot: what a journal held up to here. A journal is kept as long as a snapshot of it.
#[derive(Clone, Default)]
pub(super) struct NewSnapshot {
    /// Entries as they were written; of one producer, the last counts.
    journal: Rc<Cell<Vec<SnapshotEntry>>>,
    len: usize,
}

impl NewSnapshot {
    /// Calls a function with the journal.
    fn with<T>(&self, function: impl FnOnce(&mut Vec<SnapshotEntry>) -> T) -> T {
        let mut journal = self.journal.take();
        let result = function(&mut journal);
        self.journal.set(journal);
        result
    }

    /// Gives its entries away, the last of each producer being the one that counts.
    pub(super) fn give(&self, to: &mut dyn FnMut(&[SnapshotEntry])) {
        self.with(|journal| to(journal.get(..self.len).unwrap_or(&[])));
    }
}

impl PartialEq for NewSnapshot {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.journal, &other.journal) && self.len == other.len
    }
}

impl fmt::Debug for NewSnapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NewSnapshot({})", self.len)
    }
}

/// How snapshots are read and written.
#[derive(Debug, Default)]
pub(super) struct Journals {
    read_again: usize,
    /// Snapshots on disk that were read.
    read: BTreeSet<Vec<u8>>,
}

impl Journals {
    /// A snapshot of these producers.
    pub(super) fn begin(entries: Vec<SnapshotEntry>) -> NewSnapshot {
        let len = entries.len();
        NewSnapshot { journal: Rc::new(Cell::new(entries)), len }
    }

    /// The snapshot that follows on another, with what has changed since.
    pub(super) fn append(
        &mut self,
        before: &NewSnapshot,
        changed: Vec<SnapshotEntry>,
    ) -> Result<NewSnapshot, Interruption> {
        if before.with(|journal| journal.len()) != before.len {
            // Another snapshot follows on the same one.
            let mut entries = self.read(before)?;
            entries.extend(changed);
            return Ok(Self::begin(entries));
        }
        let len = before.with(|journal| {
            journal.extend(changed);
            journal.len()
        });
        Ok(NewSnapshot { len, ..before.clone() })
    }

    /// The entries of a snapshot, the last of each producer being the one that counts.
    pub(super) fn read(
        &mut self,
        snapshot: &NewSnapshot,
    ) -> Result<Vec<SnapshotEntry>, Interruption> {
        self.count(snapshot.len)?;
        Ok(snapshot.with(|journal| journal.get(..snapshot.len).unwrap_or(&[]).to_vec()))
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
