//! The data plane of a broker as an object of Python: what is called for each request.
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

pub mod plane;
pub mod plane_answers;
pub mod plane_compaction;
pub mod plane_errors;
pub mod plane_options;
pub mod plane_storage;
pub mod quorum_log;
