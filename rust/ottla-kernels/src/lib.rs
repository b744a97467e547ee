//! The fast loops of Ottla, and the only crate of the project with `unsafe` code.
//!
//! Every kernel stands behind a safe function that takes a [`Level`], has a naive twin as its
//! oracle in `tests/`, and never reads a byte outside the slices it is given.
//!
//! The kernels know one kind of batch, the *ordinary* one ([`BatchHeader::is_ordinary`]). What they
//! accept is correct by every rule; what they do not accept need not be wrong. [`run`](run::run) stops
//! there, and `ottla-format` judges that batch by the complete rules and names the fault.
//!
//! | module | subject |
//! | --- | --- |
//! | [`level`] | which instructions to use, detected at run time |
//! | [`mod@crc32c`] | the checksum of a batch |
//! | [`header`] | the 61 bytes before the records |
//! | [`walk`] | the records of one batch, structure checked |
//! | [`mod@run`] | consecutive batches: header, checksum and walk of each while it is in cache |
//! | [`target`] | where the records of a run go |
//! | [`numbers`], [`views`], [`copies`] | columns written during the walk |
//! | [`mod@timestamps`] | what a leader needs to know about the timestamps of a batch |
//! | [`build`] | the records of one batch from columns |
//! | [`gzip`] | libdeflate |
//! | [`release_freed_memory`] | what the allocator keeps |

#![warn(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects
)]
// Loops over bytes must be inlined into the function of their level to use its instructions.
#![allow(clippy::inline_always)]
// Loads and stores are unaligned by name where they may be, and columns are aligned by
// construction.
#![allow(clippy::cast_ptr_alignment)]

#[cfg(feature = "arrow")]
pub mod arrow;
mod block;
pub mod build;
mod compiled;
pub mod copies;
pub mod crc32c;
mod freed;
pub mod gzip;
pub mod header;
pub mod level;
pub mod numbers;
mod opaque;
pub mod run;
pub mod target;
pub mod timestamps;
pub mod views;
pub mod walk;

pub use crate::block::Column;
pub use crate::build::{BinaryColumn, Offsets, RecordColumns, RecordsPlan, Validity};
pub use crate::compiled::{copy_run, header_run, timestamp_run};
pub use crate::copies::{CopiedColumns, CopiedParts, Copies};
pub use crate::crc32c::{crc32c, crc32c_at};
pub use crate::freed::release_freed_memory;
pub use crate::header::{BatchHeader, HEADER_BYTES};
pub use crate::level::Level;
pub use crate::numbers::Numbers;
pub use crate::run::{Run, check_run, crc_only_run, is_right, run, walk_payload};
pub use crate::target::{EachBatch, EachRecord, Nothing, Target};
pub use crate::timestamps::Timestamps;
pub use crate::views::Views;
pub use crate::walk::{Record, Sink};

/// What the README says of the crate is tried.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
