//! The log check: segment files in, findings out.
//!
//! ```text
//! Source → Scanner::scan → SegmentScan ┐
//! Source → Scanner::scan → SegmentScan ┼→ merge_partition → PartitionScan
//! Source → Scanner::scan → SegmentScan ┘
//! ```
//!
//! A scan is one pass over one file in a bounded window. What it cannot decide alone, because it
//! depends on the files before, it keeps as a summary that merges; merging costs nothing compared
//! to scanning. Segments can thus be scanned in any order and on any thread, and so can ranges of
//! one segment ([`Chunk`]):
//!
//! ```text
//! Source → Scanner::scan_range → Chunk ┐
//! Source → Scanner::scan_range → Chunk ┼→ Chunk::merge → Scanner::finish → SegmentScan
//! Source → Scanner::scan_range → Chunk ┘
//! ```
//!
//! Whatever a scan takes down of each batch goes through `Tally::ordinary` (batches in their place,
//! at full speed) or `Tally::sound` (all others) into a field of [`SegmentScan`], and from there
//! through `SegmentScan::append` when ranges are joined: a new field needs a line in each.
//!
//! | module | subject |
//! | --- | --- |
//! | [`findings`] | the catalogue of what can be found |
//! | `source` | files and buffers, seen through a window |
//! | `resync` | where batches go on after damage |
//! | `scan` | one pass over one segment, or over a range of it |
//! | `chunk` | what a range shows, in a form that joins |
//! | `cuts` | where the `.index` of a segment lets it be cut |
//! | `tally` | what sound batches amount to: order, epochs, timestamps, counts |
//! | [`producers`], [`sequences`], [`transactions`] | what producers did, in a form that merges |
//! | [`index_check`] | `.index` and `.timeindex` against the batches |
//! | [`side_check`] | snapshots, transaction indexes and leader epochs against the log |
//! | `merge` | the segments of a partition put together |
//! | [`gaps`], `causes` | offsets that consumers do not get, and why |
//! | `timeline` | timestamps and retention |
//! | `reading` | what a consumer would get of a partition |
//! | [`rows`] | the batches and records of a segment as columns |
//! | [`recovery`] | what the next start of a broker makes of a directory |
//! | `fingerprint`, [`replicas`] | copies of a partition compared |

mod causes;
mod chunk;
mod cuts;
pub mod findings;
mod fingerprint;
pub mod gaps;
pub mod index_check;
mod merge;
pub mod producers;
mod reading;
pub mod recovery;
pub mod replicas;
mod resync;
pub mod rows;
mod scan;
pub mod sequences;
pub mod side_check;
mod source;
mod tally;
mod timeline;
pub mod transactions;
mod verdicts;

pub use chunk::{Chunk, ChunkError};
pub use findings::{
    Cause, CauseRow, Confidence, Finding, FindingKind, Findings, MAX_FINDINGS_PER_KIND, Row,
    Severity, SideFile,
};
pub use fingerprint::{Fingerprint, LEAST_SHIFT, MAX_BLOCKS, Place};
pub use gaps::{Gap, Reader};
pub use merge::{
    Epoch, PartitionContext, PartitionScan, PlacedFinding, merge_partition, merge_partition_with,
};
pub use reading::{Damage, Isolation, PartitionReader, ReadOptions, Readable, RecordPlace, Step};
pub use resync::{BUDGET_AT_START, BUDGET_PER_BYTE};
pub use scan::{Listing, Scanner};
pub use source::{Limited, Source, WINDOW_BYTES, fill};
pub use tally::{Counters, Dated, EpochRun, OnBatch, SegmentContext, SegmentScan};
pub use timeline::RetentionEffect;
