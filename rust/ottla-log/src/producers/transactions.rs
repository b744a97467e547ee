//! Open and completed transactions, and how far consumers may read because of them
//! (`docs/kafka/producer-state.md` §4).
//!
//! ```text
//!                first offset        marker               high watermark
//! open           │───────────────────────────────────────▸          bounds the last stable offset
//! unreplicated   │───────────────────│    the high watermark is still below: bounds it
//! done           │───────────────────│                    │         does not bound it
//! ```

use std::collections::BTreeMap;

/// A transaction that its marker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedTransaction {
    /// Whose it was.
    pub producer_id: i64,
    /// Offset of its first record.
    pub first_offset: i64,
    /// Offset of its marker.
    pub last_offset: i64,
    /// Committed, or aborted.
    pub is_commit: bool,
}

/// A marker ends a transaction that no data began, as in a log that repeats itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotBegun {
    /// The transaction the marker would end.
    pub transaction: CompletedTransaction,
}

/// The transactions of a partition that bound its last stable offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transactions {
    /// First offset → producer id.
    open: BTreeMap<i64, i64>,
    /// First offset → offset of the marker.
    unreplicated: BTreeMap<i64, i64>,
    /// Two were open that begin at one offset, as only a damaged log has them.
    has_clashed: bool,
}

impl Transactions {
    /// First offset → producer id of the open ones, first offset → marker of the unreplicated ones,
    /// and whether two have clashed.
    pub(super) fn parts(&self) -> (&BTreeMap<i64, i64>, &BTreeMap<i64, i64>, bool) {
        (&self.open, &self.unreplicated, self.has_clashed)
    }

    /// The transactions of these [`parts`](Self::parts).
    pub(super) fn of(
        open: BTreeMap<i64, i64>,
        unreplicated: BTreeMap<i64, i64>,
        has_clashed: bool,
    ) -> Self {
        Self { open, unreplicated, has_clashed }
    }

    /// A producer's transaction begins.
    pub fn begin(&mut self, first_offset: i64, producer_id: i64) {
        let other = self.open.insert(first_offset, producer_id);
        self.has_clashed |= other.is_some_and(|other| other != producer_id);
    }

    /// Whether two were ever open that begin at one offset.
    pub(super) fn has_clashed(&self) -> bool {
        self.has_clashed
    }

    /// Forgets the markers that are not yet replicated.
    pub(super) fn forget_unreplicated(&mut self) {
        self.unreplicated.clear();
    }

    /// The last stable offset that the transaction index records with a transaction about to complete.
    pub fn last_stable_offset_after(&self, completed: &CompletedTransaction) -> i64 {
        self.open
            .iter()
            .find(|&(_, &producer_id)| producer_id != completed.producer_id)
            .map_or(completed.last_offset.saturating_add(1), |(&first_offset, _)| first_offset)
    }

    /// A marker was written, and is to be replicated.
    ///
    /// # Errors
    /// [`NotBegun`] when no transaction begins at its first offset.
    pub fn complete(&mut self, completed: &CompletedTransaction) -> Result<(), NotBegun> {
        if self.open.remove(&completed.first_offset).is_none() {
            return Err(NotBegun { transaction: *completed });
        }
        self.unreplicated.insert(completed.first_offset, completed.last_offset);
        Ok(())
    }

    /// The high watermark or the log start has reached `offset`: markers below it bound nothing.
    pub fn release_below(&mut self, offset: i64) {
        self.unreplicated.retain(|_, &mut last_offset| last_offset >= offset);
    }

    /// First offset of the oldest transaction that is open or unreplicated.
    pub fn first_unstable_offset(&self) -> Option<i64> {
        let first = |transactions: &BTreeMap<i64, i64>| transactions.keys().next().copied();
        [first(&self.open), first(&self.unreplicated)].into_iter().flatten().min()
    }

    /// First offset of the oldest transaction that is open.
    pub fn first_undecided_offset(&self) -> Option<i64> {
        self.open.keys().next().copied()
    }

    /// Whether a marker is not yet replicated.
    pub fn has_unreplicated(&self) -> bool {
        !self.unreplicated.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
