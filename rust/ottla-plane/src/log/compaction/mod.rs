//! Compaction of a log, as Kafka's cleaner does it (`docs/kafka/log-dir.md` §10).
//!
//! Of each key the newest record stays. What is compacted is sealed: segments below the active one and
//! below the last stable offset. A job has all that it needs, so that it runs beside the broker:
//!
//! ```text
//! cleanable ─▸ job: sealed ─▸ offset map ─▸ filter, batch by batch ─▸ segments in their place
//!                      └────▸ transactions ─┘
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | `cleanable` | what of a log may be compacted, and whether it is worth it |
//! | `sealed` | segments that nothing is added to, batch by batch |
//! | `offset_map` | the newest offset of each key, in bounded memory |
//! | `transactions` | which batches were aborted, and which markers are still needed |
//! | `filter` | what stays of a batch |
//! | `groups` | segments that become one |
//! | `job` | all of it, in order |
//! | `swap` | the segments of a log, and others in their place |

pub(crate) mod cleanable;
pub(crate) mod filter;
mod groups;
pub(crate) mod job;
mod offset_map;
pub(crate) mod sealed;
mod swap;
mod transactions;

use ottla_format::builder::BuildError;
use ottla_format::error::Error;
use std::fmt;
use std::io;

/// What of a topic's and the broker's configuration concerns compaction alone, under Kafka's names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompactionSettings {
    /// `min.cleanable.dirty.ratio`.
    pub min_cleanable_dirty_ratio: f64,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: i64,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// `log.cleaner.dedupe.buffer.size`.
    pub dedupe_buffer_size: u64,
}

impl Default for CompactionSettings {
    /// Kafka's defaults.
    fn default() -> Self {
        Self {
            min_cleanable_dirty_ratio: 0.5,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            delete_retention_ms: 86_400_000,
            dedupe_buffer_size: 128 << 20,
        }
    }
}

/// Why a log cannot be compacted. It stays as it was.
#[derive(Debug)]
pub struct CompactionError {
    /// Base offset of the segment.
    pub segment: i64,
    /// Where the batch begins there, in bytes.
    pub position: u64,
    /// What is wrong with it.
    pub fault: CompactionFault,
}

/// What keeps a log from being compacted.
#[derive(Debug)]
pub enum CompactionFault {
    /// A segment cannot be read, or a new one not be written.
    Io(io::Error),
    /// A batch is damaged: what is written anew of it would have a right checksum.
    Unreadable(Error),
    /// What is left of a batch is none.
    Unwritable(BuildError),
    /// It was told to stop.
    Stopped,
}

impl CompactionError {
    /// Whether files could not be read or written, such as on a full disk: the next time they may be. A
    /// file that has become shorter stays so.
    pub fn may_pass(&self) -> bool {
        matches!(&self.fault, CompactionFault::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof)
    }
}

impl fmt::Display for CompactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {}, batch at position {}: ", self.segment, self.position)?;
        match &self.fault {
            CompactionFault::Io(error) => error.fmt(f),
            CompactionFault::Unreadable(error) => error.kind.fmt(f),
            CompactionFault::Unwritable(error) => error.fmt(f),
            CompactionFault::Stopped => f.write_str("the compaction was stopped"),
        }
    }
}

impl std::error::Error for CompactionError {}

impl From<io::Error> for CompactionFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for CompactionFault {
    fn from(error: Error) -> Self {
        Self::Unreadable(error)
    }
}

impl From<BuildError> for CompactionFault {
    fn from(error: BuildError) -> Self {
        Self::Unwritable(error)
    }
}
