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
//! Whatever a scan records of each batch goes through `Tally::on_plain_batch` (plain batches, at full
//! speed) or `Tally::on_valid_batch` (all others) into a field of [`SegmentScan`], and from there
//! through `SegmentScan::append` when ranges are joined: a new field needs a line in each.
//!
//! | module | subject |
//! | --- | --- |
//! | [`catalogue`] | everything that can be found, and a finding |
//! | [`segment`] | one pass over one segment file, or over a range of it |
//! | [`partition`] | the segments of a partition put together |
//! | [`copies`] | copies of a partition compared |
//! | [`rows`] | batches and records of a segment as columns; what a consumer would get |
//! | [`traces`] | which findings have one cause |
//! | [`events`] | what happened, each with the findings that show it |
//! | [`committed_offsets`] | offsets that groups have committed, against the logs they are of |
#![forbid(unsafe_code)]
#![warn(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects
)]

pub mod catalogue;
pub mod committed_offsets;
pub mod copies;
pub mod events;
pub mod partition;
pub mod rows;
pub mod segment;
pub mod traces;

pub use catalogue::causes::{Cause, CauseRow, Confidence};
pub use catalogue::finding::{Finding, SideFile};
pub use catalogue::kinds::FindingKind;
pub use catalogue::list::{Findings, MAX_FINDINGS_PER_KIND};
pub use catalogue::message::Message;
pub use catalogue::row::{ByteState, ConsumerEffect, Effect, Joining, RecordState, Row};
pub use catalogue::severity::Severity;
pub use ottla_log::resync::budget::{BUDGET_AT_START, BUDGET_PER_BYTE};
pub use partition::epochs::Epoch;
pub use partition::gap_causes::lawful_hole;
pub use partition::gaps::{Gap, Reader};
pub use partition::merge::{merge_partition, merge_partition_with};
pub use partition::scan::{PartitionContext, PartitionScan, PlacedFinding};
pub use partition::timeline::RetentionEffect;
pub use rows::readable_offsets::{KnownOffsets, ReadableOffsets, Remainder};
pub use rows::reading::{
    Damage, Isolation, PartitionReader, ReadOptions, ReadStep, ReadableBatch, RecordPlace,
};
pub use segment::chunk::Chunk;
pub use segment::context::SegmentContext;
pub use segment::counters::Counters;
pub use segment::encoding::ChunkError;
pub use segment::epochs::EpochRun;
pub use segment::fingerprint::{Fingerprint, LogPosition, MAX_BLOCKS, MIN_SHIFT};
pub use segment::listing::Listing;
pub use segment::observation::OnBatch;
pub use segment::scan_error::ScanError;
pub use segment::scanner::Scanner;
pub use segment::segment_scan::SegmentScan;
pub use segment::timestamps::TimestampOffset;
