//! Kafka's record batches: reading, checking, building and auditing, exactly as Kafka does.
//!
//! The crate knows no Python, no clock and no global state. Bytes come in, values and faults come
//! out; whatever the bytes are, nothing panics and nothing is allocated on their word alone.
//!
//! | module | subject |
//! | --- | --- |
//! | [`error`] | what can be wrong with bytes, as kinds with positions |
//! | [`limits`] | every bound, with its reason |
//! | [`varint`], [`attributes`], [`header`], [`record`] | the format of magic 2, bottom up |
//! | [`legacy`] | message sets of magic 0 and 1 |
//! | [`compression`] | the four codecs, bounded |
//! | [`batch`], [`batches`] | one batch of any magic; a buffer of them |
//! | [`check`] | the levels `crc`, `decode` and `full` |
//! | [`columns`] | a run of batches as columns |
//! | [`builder`] | one batch from records or columns |
//! | [`sidefiles`] | the files beside a segment: indexes, snapshots, checkpoints |
//! | [`producers`] | idempotence and transactions: what a partition lets a producer append |
//! | [`leader`] | what a leader does with a produce request |
//! | [`audit`] | a segment file checked as a whole |
//! | [`internal_topics`] | what coordinators keep in topics, decoded |
#![forbid(unsafe_code)]

pub mod attributes;
pub mod audit;
pub mod batch;
pub mod batches;
pub mod builder;
pub mod check;
pub mod columns;
pub mod compression;
pub mod error;
pub mod header;
pub mod internal_topics;
pub mod leader;
pub mod legacy;
pub mod limits;
pub mod producers;
pub mod record;
pub mod sidefiles;
pub mod varint;
