//! The data plane of a broker: what it does for each partition of a Produce or a Fetch, from the
//! bytes of a request to the bytes of its answer.
//!
//! Time is an argument, and there are no sockets and no threads. Everything that is not for each
//! partition of these two is decided elsewhere, and handed over as the error of a partition.
//!
//! ```text
//! produce ─▸ wire ─▸ partition: leader decides ─▸ log stores ─▸ wire
//! fetch   ─▸ wire ─▸ session ─▸ partition: log finds ─▸ enough, or wait ─▸ wire
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | `plane`, `topics` | all partitions, by handle, by name and by id |
//! | `produce`, `verification` | Produce, and what a transaction coordinator is asked first |
//! | `fetch`, `sessions` | Fetch, and its sessions (KIP-227) |
//! | `offsets` | offsets by time and by leader epoch, deletion, retention |
//! | `storage` | syncing, checkpoints, partitions offline: what logs in directories need |
//! | `compaction` | compaction of partitions, as jobs |
//! | `quorum_log` | the log of a quorum's only voter, and its snapshots |
//! | `partition` | one partition: its leader and its log |
//! | `log` | segments of stored batches |
//! | `wire` | requests and answers as bytes |
//! | [`limits`] | every bound, with its reason |

#![forbid(unsafe_code)]
#![warn(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects
)]

mod compaction;
mod error;
mod fetch;
pub mod limits;
mod log;
mod offsets;
mod partition;
mod plane;
mod produce;
mod quorum_log;
mod sessions;
mod storage;
mod topics;
mod verification;
mod wire;

pub use compaction::{CompactError, CompactJob, Compaction};
pub use error::{OpenError, PlaneError};
pub use fetch::{FetchCall, Fetched};
pub use log::compaction::filter::RecordCounts;
pub use log::compaction::{CompactionError, CompactionFault, CompactionSettings};
pub use log::flush::FlushJob;
pub use log::load::LoadFailure;
pub use log::partition_log::LogSettings;
pub use offsets::{FoundOffset, OffsetQuery};
pub use partition::{PartitionOffsets, PartitionSettings};
pub use plane::{DataPlane, LogPlace, NewPartition, PlaneSettings};
pub use produce::{ProduceCall, Produced};
pub use quorum_log::{QuorumLog, QuorumLogError, QuorumLogFound, TornTail};
pub use storage::Checkpoint;
pub use topics::{Handle, Refused};
pub use verification::Verification;
pub use wire::malformed::{MalformedFrame, MalformedKind};
pub use wire::{Sink, TopicId};
