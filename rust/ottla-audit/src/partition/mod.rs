//! A partition: its segments put together.
//!
//! | module | subject |
//! | --- | --- |
//! | `merge` | the segments of a partition put together |
//! | `causes` | why offsets are missing |
//! | [`gaps`] | offsets that consumers do not get |
//! | [`producers`] | what producers did, in a form that merges |
//! | [`sequences`] | sequences of one producer |
//! | [`transactions`] | transactions, in a form that merges |
//! | `verdicts` | findings about producers and transactions |
//! | [`side_check`] | snapshots, transaction indexes and leader epochs against the log |
//! | `timeline` | timestamps and retention |

pub(crate) mod causes;
pub mod gaps;
pub(crate) mod merge;
pub mod producers;
pub mod sequences;
pub mod side_check;
pub(crate) mod timeline;
pub mod transactions;
pub(crate) mod verdicts;
