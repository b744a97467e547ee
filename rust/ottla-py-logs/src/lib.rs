//! Logs and tables as objects of Python: converts, never decides.
//!
//! A crate of its own, since it is made for size and `ottla-py-batches` for speed.
#![deny(unsafe_code)]
#![warn(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects
)]
// What stands in `///` here is what Python's `help()` shows: reStructuredText, not Markdown. What is `pub` is
// for `ottla-py` alone, which hands it to Python.
#![allow(clippy::doc_markdown, clippy::missing_errors_doc, clippy::implicit_hasher)]

pub mod arrow;
pub mod bare;
pub mod copies;
pub mod damage;
pub mod events;
pub mod finding_rows;
pub mod findings;
pub mod framing;
pub mod internal_topics;
pub mod json;
pub mod listing;
pub mod names;
pub mod packed_log;
pub mod packed_rows;
pub mod partition;
pub mod partition_batches;
pub mod partition_tables;
pub mod place;
pub mod placed;
pub mod progress;
pub mod readable_offsets;
pub mod reading;
pub mod recovery;
pub mod row_arrays;
pub mod row_columns;
pub mod rows;
pub mod scanners;
pub mod segment;
pub mod segment_table;
pub mod side_check;
pub mod side_entries;
pub mod sidefiles;
pub mod traces;
pub mod whole_logs;
mod words;
