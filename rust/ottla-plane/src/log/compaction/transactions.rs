//! Transactions on the way through a log: which batches were aborted, and which markers are still
//! needed.
//!
//! A marker is needed as long as a batch of its transaction is there, even an empty one: without the
//! marker, the next transaction of its producer would seem to be the same one.

use ottla_format::batch::BatchInfo;
use ottla_format::control_record::ControlRecord;
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use ottla_log::sorting::sort_by_key;
use std::collections::{HashMap, HashSet, VecDeque};

/// An aborted transaction on the way through it.
struct Aborting {
    transaction: AbortedTransaction,
    /// Whether a batch of it was met.
    has_batches: bool,
}

/// Transactions on the way through a log.
pub(super) struct CleanedTransactions {
    /// Those to come, by first offset.
    aborted: VecDeque<AbortedTransaction>,
    aborting: HashMap<i64, Aborting>,
    /// Producers of which a batch was met that was not aborted, and no marker behind it.
    committing: HashSet<i64>,
    /// Aborted transactions whose marker was met, behind batches of them.
    met: Vec<AbortedTransaction>,
}

impl CleanedTransactions {
    pub(super) fn new(mut aborted: Vec<AbortedTransaction>) -> Self {
        sort_by_key(&mut aborted, |transaction| transaction.first_offset);
        Self {
            aborted: aborted.into(),
            aborting: HashMap::new(),
            committing: HashSet::new(),
            met: Vec::new(),
        }
    }

    /// Aborted transactions whose marker was met since the last call, behind batches of them.
    pub(super) fn take_met(&mut self) -> Vec<AbortedTransaction> {
        std::mem::take(&mut self.met)
    }

    /// The transactions that begin up to here, but for those that ended before the batch.
    fn advance(&mut self, batch: &BatchInfo) {
        while let Some(&transaction) =
            self.aborted.front().filter(|transaction| transaction.first_offset <= batch.last_offset)
        {
            self.aborted.pop_front();
            let is_over = |of: &AbortedTransaction| of.last_offset < batch.base_offset;
            let known = self.aborting.get(&transaction.producer_id);
            if !is_over(&transaction) && known.is_none_or(|known| is_over(&known.transaction)) {
                let begun = Aborting { transaction, has_batches: false };
                self.aborting.insert(transaction.producer_id, begun);
            }
        }
    }

    /// A batch of records comes. Returns whether it was aborted.
    pub(super) fn on_records(&mut self, batch: &BatchInfo) -> bool {
        self.advance(batch);
        if !batch.is_transactional() {
            return false;
        }
        let aborting = self.aborting.get_mut(&batch.producer_id);
        if let Some(aborting) =
            aborting.filter(|aborting| aborting.transaction.last_offset >= batch.base_offset)
        {
            aborting.has_batches = true;
            return true;
        }
        self.committing.insert(batch.producer_id);
        false
    }

    /// A control batch comes, with its record unless it was emptied. Returns whether nothing of what
    /// it ended is left.
    pub(super) fn on_control(&mut self, batch: &BatchInfo, record: Option<ControlRecord>) -> bool {
        self.advance(batch);
        match record {
            None => true,
            Some(ControlRecord::Abort { .. }) => {
                let aborting = self.aborting.remove(&batch.producer_id);
                // Of batches that no index calls aborted, all were taken for committed.
                let was_met = self.committing.remove(&batch.producer_id);
                match aborting.filter(|aborting| aborting.has_batches) {
                    Some(aborting) => {
                        self.met.push(aborting.transaction);
                        false
                    }
                    None => !was_met,
                }
            }
            Some(ControlRecord::Commit { .. }) => !self.committing.remove(&batch.producer_id),
            Some(_) => false,
        }
    }
}
