//! One segment file: one pass over it, or over a range of it.
//!
//! ```text
//! Scanner ── Pass ─┬─ plain batches, by the kernels ──┐
//!                  ├─ step: any other, by the rules ──┼─▸ Tally ─▸ SegmentScan
//!                  └─ damage ── resync ───────────────┘
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | `scanner` | scans of a segment, in one pass or range by range |
//! | `listing`, `cuts`, `row_pass` | other uses of a pass: batches listed, places to cut, rows |
//! | `scan_error` | why a scan ended without a result |
//! | `pass`, `step` | a pass; one step of it by the rules |
//! | `tail` | what a segment has behind its last batch |
//! | `damage`, `damage_findings` | what to make of bytes that are no valid batch; the same in words |
//! | `tally` | what batches amount to |
//! | `context` | what is known about a segment before it is read |
//! | `observation` | a valid batch as a scan observes it |
//! | `order` | whether a batch is in its place |
//! | `counters`, `epochs`, `timestamps`, `producer_events` | what is recorded of each batch |
//! | `growth`, `losses` | findings that grow, and findings that wait for the next valid batch |
//! | [`index_check`] | `.index` and `.timeindex` against the batches |
//! | `fingerprint` | what copies of a log are compared by |
//! | `segment_scan` | what a scan has found, in a form that joins |
//! | `walk`, `chunk` | the same of ranges, with what shows whether they join |
//! | `encoding` | scans and chunks as bytes |

pub(crate) mod chunk;
pub(crate) mod context;
pub(crate) mod counters;
mod cuts;
mod damage;
pub(crate) mod damage_findings;
pub(crate) mod encoding;
pub(crate) mod epochs;
pub(crate) mod fingerprint;
mod growth;
pub mod index_check;
pub(crate) mod listing;
pub(crate) mod losses;
pub(crate) mod observation;
pub(crate) mod order;
pub(crate) mod pass;
pub(crate) mod producer_events;
pub(crate) mod row_pass;
pub(crate) mod scan_error;
pub(crate) mod scanner;
pub(crate) mod segment_scan;
mod step;
pub(crate) mod tail;
pub(crate) mod tally;
pub(crate) mod timestamps;
pub(crate) mod walk;
