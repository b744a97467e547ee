//! Which batches of a Fetch answer belong to an aborted transaction.

use crate::batch::BatchInfo;
use std::collections::HashSet;

/// The aborted transactions of a Fetch answer, followed batch by batch.
///
/// The answer lists them by their first offset. A producer is aborting from there until its abort
/// marker: what it has written between them is left out.
///
/// # Examples
/// ```
/// let mut filter = ottla_format::fetched::AbortedFilter::new(vec![(9, 100)]);
/// assert!(!filter.withholds(9, true, 99));
/// assert!(filter.withholds(9, true, 100));
/// assert!(!filter.withholds(9, false, 100) && !filter.withholds(8, true, 100));
/// filter.end(9);
/// assert!(!filter.withholds(9, true, 101));
/// ```
#[derive(Clone, Debug)]
pub struct AbortedFilter {
    /// Producer and first offset, the first last.
    pending: Vec<(i64, i64)>,
    /// Producers that are aborting.
    producers: HashSet<i64>,
}

impl AbortedFilter {
    /// The transactions of an answer, by producer and first offset, in any order.
    pub fn new(mut transactions: Vec<(i64, i64)>) -> Self {
        transactions.sort_by_key(|&(_, first_offset)| std::cmp::Reverse(first_offset));
        Self { pending: transactions, producers: HashSet::new() }
    }

    /// Whether nothing is left out from here on.
    pub(super) fn is_over(&self) -> bool {
        self.pending.is_empty() && self.producers.is_empty()
    }

    /// Whether a batch of records, whose last offset this is, belongs to an aborted transaction.
    pub fn withholds(
        &mut self,
        producer_id: i64,
        is_transactional: bool,
        last_offset: i64,
    ) -> bool {
        if producer_id < 0 || self.is_over() {
            return false;
        }
        while let Some((producer_id, _)) =
            self.pending.pop_if(|(_, first_offset)| *first_offset <= last_offset)
        {
            self.producers.insert(producer_id);
        }
        is_transactional && self.producers.contains(&producer_id)
    }

    /// The transaction of a producer ends here, with its abort marker.
    pub fn end(&mut self, producer_id: i64) {
        self.producers.remove(&producer_id);
    }

    pub(super) fn withholds_batch(&mut self, info: &BatchInfo) -> bool {
        self.withholds(info.producer_id, info.is_transactional(), info.last_offset)
    }
}
