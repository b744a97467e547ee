//! The files beside a segment: what their bytes say, and how Kafka writes them
//! (`docs/kafka/log-dir.md` §3).
//!
//! Formats only: nothing here knows a log, so nothing here decides whether a file is right.
//!
//! | module | file |
//! | --- | --- |
//! | [`offset_index`] | `.index`: offsets and where their batches are |
//! | [`time_index`] | `.timeindex`: timestamps and the offsets that reached them |
//! | [`transaction_index`] | `.txnindex`: aborted transactions |
//! | [`fill`] | when batches get entries in the first two |
//! | [`snapshot`] | `.snapshot`: producers |
//! | [`checkpoint`] | the offset checkpoints of a log directory, `leader-epoch-checkpoint` |
//! | [`metadata`] | `partition.metadata` |
//! | [`metadata_snapshot`] | `.checkpoint`: what the cluster's metadata amounts to |
//! | [`meta_properties`] | `meta.properties` of a log directory |
//! | [`text`] | what keeps a text file from being read |

pub mod checkpoint;
pub mod fill;
pub mod meta_properties;
pub mod metadata;
pub mod metadata_snapshot;
pub mod offset_index;
pub mod snapshot;
pub mod text;
pub mod time_index;
pub mod transaction_index;
