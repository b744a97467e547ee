//! What a broker keeps of a partition: segment files and the files beside them, producers, and how
//! a directory is loaded again.
//!
//! ```text
//! meta.properties, *-offset-checkpoint        sidefiles
//! orders-0/                                   names
//!   00000000000000000000.log                  source, framing
//!                       .index .timeindex …   sidefiles
//!   00000000000000000042.snapshot             producers
//!   leader-epoch-checkpoint …                 sidefiles
//! ```
//!
//! Nothing here knows a finding: a broker and the audit stand on this crate side by side.
//!
//! | module | subject |
//! | --- | --- |
//! | [`kafka_version`] | the releases that are known, and what they decide otherwise |
//! | [`names`] | what files and directories are called, and what a name says |
//! | [`ahead`] | pieces of work that threads do before their results are asked for |
//! | [`listing`] | directories of partitions with regular files alone |
//! | [`source`] | files and buffers, read through a window |
//! | [`framing`] | how far a segment that is still written can be followed |
//! | [`sorting`] | lists put in order, by one sort for every type |
//! | [`sidefiles`] | the files beside a segment and those of a log directory: formats alone |
//! | [`producers`] | idempotence and transactions: what a partition lets a producer append |
//! | [`recovery`] | what the next start of a broker makes of a directory |
//! | [`resync`] | where batches go on behind damage |
//! | [`internal_topics`] | the state of coordinators in their topics, decoded |
#![forbid(unsafe_code)]
#![warn(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

pub mod ahead;
pub mod framing;
pub mod internal_topics;
pub mod kafka_version;
pub mod listing;
pub mod names;
pub mod producers;
pub mod recovery;
pub mod resync;
pub mod sidefiles;
pub mod sorting;
pub mod source;

/// What the README says of the crate is tried.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
