//! The epochs of leaders that a partition keeps (`LeaderEpochFileCache`).

use super::interruption::Interruption;
use crate::sidefiles::checkpoint::{LeaderEpoch, read_leader_epochs};
use crate::sidefiles::text::TextFault;
use std::collections::BTreeMap;

/// Epochs and the offsets they start at, both increasing.
#[derive(Clone, Debug, Default)]
pub(super) struct LeaderEpochs {
    entries: BTreeMap<i32, i64>,
    /// What batches have changed since the mark, oldest first.
    changes: Vec<Change>,
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Added(i32),
    Removed(i32, i64),
}

impl LeaderEpochs {
    /// Reads a `leader-epoch-checkpoint`. Entries that do not increase replace those before them.
    pub(super) fn read(data: &[u8], path: &str) -> Result<Self, Interruption> {
        let entries = match read_leader_epochs(data) {
            Ok(entries) => entries,
            Err(error) if error.fault == TextFault::CountMissing => Vec::new(),
            // Kafka does not catch this exception.
            Err(error) if error.fault == TextFault::Number => {
                let message = format!("For input string: \"{}\"", error.found);
                return Err(Interruption::other("java.lang.NumberFormatException", message));
            }
            Err(_) => {
                let message = format!("Error while reading checkpoint file {path}");
                return Err(Interruption::storage(message));
            }
        };
        let mut epochs = Self::default();
        for LeaderEpoch { epoch, start_offset } in entries {
            epochs.assign(epoch, start_offset)?;
        }
        Ok(epochs)
    }

    fn assign(&mut self, epoch: i32, start_offset: i64) -> Result<(), Interruption> {
        if epoch < 0 || start_offset < 0 {
            return Err(Interruption::illegal_argument(format!(
                "Received invalid partition leader epoch entry EpochEntry(epoch={epoch}, \
                 startOffset={start_offset})"
            )));
        }
        let latest = self.entries.last_key_value();
        if latest.is_some_and(|(&known, &start)| known == epoch && start_offset >= start) {
            return Ok(());
        }
        while let Some(last) = self.entries.last_entry()
            && (*last.key() >= epoch || *last.get() >= start_offset)
        {
            let (epoch, start_offset) = last.remove_entry();
            self.changes.push(Change::Removed(epoch, start_offset));
        }
        self.entries.insert(epoch, start_offset);
        self.changes.push(Change::Added(epoch));
        Ok(())
    }

    /// From here on changes can be undone.
    pub(super) fn mark(&mut self) {
        self.changes.clear();
    }

    /// Undoes what batches have changed since the mark.
    pub(super) fn undo(&mut self) {
        while let Some(change) = self.changes.pop() {
            match change {
                Change::Added(epoch) => self.entries.remove(&epoch),
                Change::Removed(epoch, start_offset) => self.entries.insert(epoch, start_offset),
            };
        }
    }

    /// A batch of an epoch was read: a new epoch begins with it.
    pub(super) fn begin(&mut self, epoch: i32, base_offset: i64) -> Result<(), Interruption> {
        if epoch >= 0 && self.entries.last_key_value().is_none_or(|(&latest, _)| epoch > latest) {
            self.assign(epoch, base_offset)?;
        }
        Ok(())
    }

    /// The log ends at an offset.
    pub(super) fn truncate_from_end(&mut self, end_offset: i64) {
        while end_offset >= 0
            && let Some(last) = self.entries.last_entry()
            && *last.get() >= end_offset
        {
            last.remove();
        }
    }

    /// The log starts at an offset.
    pub(super) fn truncate_from_start(&mut self, start_offset: i64) {
        let mut removed = None;
        while let Some(first) = self.entries.first_entry()
            && *first.get() <= start_offset
        {
            removed = Some(first.remove_entry().0);
        }
        if let Some(epoch) = removed {
            self.entries.insert(epoch, start_offset);
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn entries(&self) -> Vec<LeaderEpoch> {
        let entry = |(&epoch, &start_offset)| LeaderEpoch { epoch, start_offset };
        self.entries.iter().map(entry).collect()
    }
}
