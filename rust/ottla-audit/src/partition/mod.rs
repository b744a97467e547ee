//! A partition: its segments put together.
//!
//! | module | subject |
//! | --- | --- |
//! | `scan` | what is known about a partition, and what its segments show together |
//! | `merge` | the segments put together |
//! | `bound` | a bound on the findings |
//! | [`whole`] | a small log and the files beside it, judged at once |
//! | `border` | where a segment begins, compared with where the one before ends |
//! | `limits_met` | what the bounds on a partition left out |
//! | `lost_head` | segments that were before the first one, and that no broker has deleted |
//! | `log_start` | the log start offset, compared with the leader epochs |
//! | [`log_end`] | the bytes behind the last batch, and what proves that the log went on |
//! | `epochs` | the leader epochs |
//! | [`producers`] | what producers did, in a form that merges |
//! | [`sequences`] | the sequences of one producer |
//! | [`transactions`] | the transactions of one producer |
//! | `producer_findings` | findings about producers and transactions |
//! | `missing_markers` | markers that seem missing, and may be what was found damaged |
//! | `open_transactions` | transactions that are open at the end of the log |
//! | [`gaps`] | offsets that consumers do not get |
//! | `gap_list` | all of them, and the causes of those that are findings |
//! | `gap_causes` | why offsets are missing |
//! | `gap_sources` | gaps that are no findings |
//! | `gap_totals` | many gaps in one finding |
//! | [`side_check`] | the files beside the segments, compared with the log |
//! | `timeline` | timestamps and retention |

mod border;
pub mod bound;
pub(crate) mod epochs;
pub mod gap_causes;
mod gap_list;
mod gap_sources;
mod gap_totals;
pub mod gaps;
mod limits_met;
pub mod log_end;
mod log_start;
mod lost_head;
pub(crate) mod merge;
mod missing_markers;
mod open_transactions;
pub(crate) mod producer_findings;
pub mod producers;
pub(crate) mod scan;
pub mod sequences;
pub mod side_check;
pub(crate) mod timeline;
pub mod transactions;
pub mod whole;
