//! Kafka's record-batch formats, every one it ever wrote: reading, checking and building.
//!
//! The crate knows no log, no Python, no clock and no global state. Bytes go in, values and faults come
//! out. No input makes it panic, and it allocates no memory merely because input asks for it.
//!
//! | module | subject |
//! | --- | --- |
//! | [`error`] | what can be wrong with bytes, as kinds with positions |
//! | [`error_code`] | the error codes of Kafka's protocol |
//! | [`limits`] | the bounds on what input may ask for, with their reasons |
//! | [`varint`], [`attributes`], [`header`], [`sequence`], [`record`] | the format of magic 2, bottom up |
//! | [`legacy`] | message sets of magic 0 and 1 |
//! | [`control_record`] | what a control record says |
//! | [`compression`] | the four codecs, bounded |
//! | [`batch`], [`batches`] | one batch of any magic; a buffer of them |
//! | [`check`] | the levels `crc`, `decode` and `full` |
//! | [`clients`] | where consumers of different libraries do not make the same of a batch |
//! | [`columns`] | a buffer of batches as columns |
//! | [`fetched`] | what a consumer gets of one partition of a Fetch answer |
//! | [`builder`] | one batch from records or columns |
//! | [`partitioning`] | which partition a record with a key goes to |
//! | [`words`] | numbers, offsets and times in sentences |
#![forbid(unsafe_code)]
#![warn(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects
)]

pub mod attributes;
pub mod batch;
pub mod batches;
pub mod builder;
pub mod check;
pub mod clients;
pub mod columns;
pub mod compression;
pub mod control_record;
pub mod error;
pub mod error_code;
pub mod fetched;
pub mod header;
pub mod legacy;
pub mod limits;
mod number_columns;
pub mod partitioning;
pub mod record;
pub mod sequence;
pub mod varint;
pub mod words;

/// What the README says of the crate is tried.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
