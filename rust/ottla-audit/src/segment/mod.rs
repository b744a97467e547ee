//! One segment file: one pass over it, or over a range of it.
//!
//! | module | subject |
//! | --- | --- |
//! | `scan` | the pass |
//! | `tally` | what sound batches amount to: order, epochs, timestamps, counts |
//! | `resync` | where batches go on after damage |
//! | `chunk` | what a range shows, in a form that joins |
//! | `cuts` | where the `.index` of a segment lets it be cut |
//! | [`index_check`] | `.index` and `.timeindex` against the batches |
//! | `fingerprint` | what copies of a log are compared by |

pub(crate) mod chunk;
pub(crate) mod context;
pub(crate) mod counters;
pub(crate) mod cuts;
pub(crate) mod encoding;
pub(crate) mod epochs;
pub(crate) mod fingerprint;
pub(crate) mod growth;
pub mod index_check;
pub(crate) mod losses;
pub(crate) mod observation;
pub(crate) mod order;
pub(crate) mod producer_events;
pub(crate) mod resync;
pub(crate) mod scan;
pub(crate) mod segment_scan;
pub(crate) mod tally;
pub(crate) mod timestamps;
