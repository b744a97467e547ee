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
pub(crate) mod cuts;
pub(crate) mod fingerprint;
pub mod index_check;
pub(crate) mod resync;
pub(crate) mod scan;
pub(crate) mod tally;
