//! Where each leader epoch begins (KIP-101, KIP-279).

use ottla_log::sidefiles::checkpoint::LeaderEpoch;

/// Leader epochs with the offsets at which they begin, both increasing.
#[derive(Clone, Debug, Default)]
pub(crate) struct EpochStarts {
    entries: Vec<(i32, i64)>,
}

impl EpochStarts {
    /// An epoch begins at an offset. Later ones, and those that begin there or behind, never were.
    /// Returns whether that is another state than before, as all that change it.
    pub(crate) fn assign(&mut self, epoch: i32, start_offset: i64) -> bool {
        if epoch < 0 {
            return false;
        }
        if self
            .entries
            .last()
            .is_some_and(|&(known, start)| known == epoch && start_offset >= start)
        {
            return false;
        }
        self.entries.retain(|&(known, start)| known < epoch && start < start_offset);
        self.entries.push((epoch, start_offset));
        true
    }

    /// All of them, in their order.
    pub(crate) fn entries(&self) -> Vec<LeaderEpoch> {
        let entry = |&(epoch, start_offset): &(i32, i64)| LeaderEpoch { epoch, start_offset };
        self.entries.iter().map(entry).collect()
    }

    /// The newest epoch.
    pub(crate) fn latest(&self) -> Option<i32> {
        self.entries.last().map(|&(epoch, _)| epoch)
    }

    /// The epoch of an offset.
    pub(crate) fn of(&self, offset: i64) -> Option<i32> {
        let behind = self.entries.partition_point(|&(_, start)| start <= offset);
        self.entries.get(behind.checked_sub(1)?).map(|&(epoch, _)| epoch)
    }

    /// Where an epoch ends: the newest epoch not above it, and the offset behind its last record.
    /// `None` of an epoch above all that are known.
    pub(crate) fn end_of(&self, epoch: i32, log_end_offset: i64) -> Option<(i32, i64)> {
        if self.latest()? == epoch {
            return Some((epoch, log_end_offset));
        }
        let behind = self.entries.partition_point(|&(known, _)| known <= epoch);
        let &(_, end_offset) = self.entries.get(behind)?;
        let floor = behind.checked_sub(1).and_then(|before| self.entries.get(before));
        Some((floor.map_or(epoch, |&(known, _)| known), end_offset))
    }

    /// The log ends at an offset.
    pub(crate) fn truncate_end(&mut self, offset: i64) -> bool {
        let before = self.entries.len();
        self.entries.retain(|&(_, start)| start < offset);
        self.entries.len() != before
    }

    /// The log begins at an offset: of the epochs that begin before it, the last begins there.
    pub(crate) fn truncate_start(&mut self, offset: i64) -> bool {
        let behind = self.entries.partition_point(|&(_, start)| start <= offset);
        let gone = behind.saturating_sub(1);
        self.entries.drain(..gone);
        let mut is_moved = false;
        if let Some((_, start)) = self.entries.first_mut().filter(|_| behind > 0) {
            is_moved = *start < offset;
            *start = (*start).max(offset);
        }
        gone > 0 || is_moved
    }
}
