//! What the bounds on a partition left out: it was not followed, so the log is not called sound.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::partition::producers::MAX_PRODUCERS;
use crate::partition::scan::PartitionScan;
use crate::partition::transactions::MAX_ABORTED;

/// Returns findings about what was left out when the segments were put together. `producers_left_out`
/// counts batches and markers of producers beyond the bound, those of single segments not included.
pub(crate) fn find_limits_met(out: &PartitionScan, producers_left_out: u64) -> Vec<Finding> {
    let aborted = out.counters.aborted.saturating_sub(out.ended.aborted.len() as u64);
    let producers = format!(
        "{producers_left_out} producers are beyond the first {MAX_PRODUCERS} of the partition: their sequences and transactions were not followed from one segment to the next"
    );
    let transactions = format!(
        "{aborted} aborted transactions are beyond the first {MAX_ABORTED} of the partition: they are not listed, and the .txnindex files were not compared with them"
    );
    let found = [
        (producers_left_out, producers, format!("at most {MAX_PRODUCERS} producers")),
        (aborted, transactions, format!("at most {MAX_ABORTED} aborted transactions")),
    ];
    let met = found.into_iter().filter(|(left_out, ..)| *left_out > 0);
    met.map(|(_, message, bound)| {
        Finding::new(FindingKind::LimitExceeded, message).values(bound, "more")
    })
    .collect()
}
