//! What a broker keeps of a partition: segment files and the files beside them, producers, and how
//! a directory is loaded again.
//!
//! Nothing here knows a finding: a broker and the audit stand on this crate side by side.
//!
//! | module | subject |
//! | --- | --- |
//! | [`names`] | what files and directories are called, and what a name says |
//! | [`source`] | files and buffers, seen through a window |
//! | [`sidefiles`] | the files beside a segment: indexes, snapshots, checkpoints |
//! | [`producers`] | idempotence and transactions: what a partition lets a producer append |
//! | [`recovery`] | what the next start of a broker makes of a directory |
//! | [`internal_topics`] | what coordinators keep in topics, decoded |
#![forbid(unsafe_code)]

pub mod internal_topics;
pub mod names;
pub mod producers;
pub mod recovery;
pub mod sidefiles;
pub mod source;
