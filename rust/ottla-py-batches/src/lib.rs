//! Batches, records, columns and verdicts as objects of Python: what is called for each of them.
//!
//! A crate of its own, since it is made for speed and `ottla-py-logs` for size.
#![deny(unsafe_code)]
#![warn(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects
)]
// What stands in `///` here is what Python's `help()` shows: reStructuredText, not Markdown. What is `pub` is
// for `ottla-py` and `ottla-py-logs` alone.
#![allow(clippy::doc_markdown, clippy::missing_errors_doc)]

pub mod arrow_stream;
pub mod batch_builder;
pub mod batches;
pub mod build;
pub mod bytes;
pub mod calls;
pub mod check;
pub mod columns;
pub mod consumer_record;
pub mod error_codes;
pub mod errors;
pub mod fetched;
pub mod fetched_columns;
pub mod hashes;
pub mod header_structs;
pub mod integers;
pub mod kernels;
pub mod leader;
pub mod leader_options;
pub mod numpy_columns;
pub mod partitioning;
pub mod producer_state;
pub mod record_error;
pub mod records;
pub mod request_options;
pub mod row_column;
pub mod shared_array;
pub mod shown;
pub mod topic_settings;
pub mod validate;
pub mod validator;
pub mod verdict;
pub mod verdict_state;
