//! `__cluster_metadata-0`: the log of a KRaft quorum's only voter, and its snapshots (KIP-595, KIP-630).
//!
//! It is the log of a partition like any other, but for three things. Nothing that was acknowledged may
//! be lost, so each append is synced before it counts, and damage that no crash leaves is refused
//! instead of cut off. Its start knows no checkpoint and no clean stop, as in Kafka. And what batches
//! below an offset amount to is kept in a snapshot, so that they can be deleted.
//!
//! | module | subject |
//! | --- | --- |
//! | `open` | the log of a directory, or a new one, and what was found |
//! | `snapshots` | snapshots: written, chosen at a start, and deleted with what they replace |

mod open;
mod snapshots;

pub use open::{QuorumLogFound, TornTail};

use crate::log::directory::LogDirectory;
use crate::log::partition_log::LogSettings;
use crate::partition::{Partition, PartitionSettings};
use ottla_format::header::Envelope;
use ottla_leader::{AppendRequest, LeaderSettings, Profile, TopicConfig, Validator};
use ottla_log::names::MetadataSnapshotId;
use ottla_log::producers::Origin;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are read at once, unless a batch is larger.
const READ_BYTES: u64 = 1 << 20;

/// Why something is not done to the log of a quorum.
#[derive(Debug)]
pub enum QuorumLogError {
    /// A file cannot be read or changed.
    Io {
        /// The file, or the directory.
        path: PathBuf,
        /// What the operating system reports.
        error: io::Error,
    },
    /// It is not as it should be: what was found, what was expected, and what to do.
    Refused(String),
}

impl fmt::Display for QuorumLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Refused(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for QuorumLogError {}

/// The log of a quorum's only voter.
pub struct QuorumLog {
    partition: Partition,
    directory: Arc<LogDirectory>,
    /// Those that are whole, as far as was looked, in their order.
    snapshots: Vec<MetadataSnapshotId>,
}

impl QuorumLog {
    /// Where the next record goes.
    pub fn end_offset(&self) -> i64 {
        self.partition.offsets().log_end_offset
    }

    /// Where the log begins.
    pub fn start_offset(&self) -> i64 {
        self.partition.offsets().log_start_offset
    }

    /// The newest epoch of a leader that is known, of the log or of a snapshot.
    pub fn epoch(&self) -> Option<i32> {
        let of_snapshot = self.snapshots.last().map(|id| id.epoch);
        self.partition.epochs.latest().max(of_snapshot)
    }

    /// The newest snapshot.
    pub fn snapshot(&self) -> Option<MetadataSnapshotId> {
        self.snapshots.last().copied()
    }

    /// Bytes of all batches.
    pub fn size(&self) -> u64 {
        self.partition.log.size()
    }

    /// The next batches, the first of which begins at an offset; nothing at the end.
    ///
    /// # Errors
    /// [`QuorumLogError`], also where another offset follows than should.
    pub fn read(&self, offset: i64) -> Result<Vec<u8>, QuorumLogError> {
        let log = &self.partition.log;
        let mut bytes = Vec::new();
        let span = log.read(offset, self.end_offset(), READ_BYTES, true);
        let span = span.map_err(|error| self.failed(error))?;
        log.give(&span, &mut |piece| bytes.extend_from_slice(piece))
            .map_err(|error| self.failed(error))?;
        let first = Envelope::read(&bytes, 0).map_or(offset, |first| first.offset);
        if first != offset {
            return Err(self.refused(&format!("offset {first}, where {offset} is expected")));
        }
        Ok(bytes)
    }

    /// Becomes the leader of an epoch: what is appended from now on has it.
    ///
    /// # Errors
    /// [`QuorumLogError`].
    pub fn begin_epoch(&mut self, epoch: i32) -> Result<(), QuorumLogError> {
        self.check_online()?;
        let settings = self.partition.settings;
        self.partition.configure(leader_settings(epoch), settings);
        self.check_online()
    }

    /// Appends batches, all of them or none, and syncs them. Their offsets are assigned.
    ///
    /// # Errors
    /// [`QuorumLogError`]. Where there was no room, the log is as it was; behind any other error of the
    /// system it takes nothing any more.
    pub fn append(
        &mut self,
        records: &[u8],
        now_ms: i64,
        validator: &mut Validator,
    ) -> Result<(), QuorumLogError> {
        self.check_online()?;
        let before = self.end_offset();
        let request = AppendRequest {
            api_version: None,
            has_transactional_id: false,
            origin: Origin::Coordinator,
            guard: None,
            transaction_version: 0,
            now_ms,
        };
        let verdict = self.partition.append(records, &request, validator);
        let verdict = verdict.map_err(|error| self.failed(error))?;
        if let Err(refusal) = verdict.outcome {
            return Err(self.refused(&refusal.reason));
        }
        let synced = self.partition.log.flush();
        synced.map_err(|error| {
            // It has not happened: as far as can be, a start finds nothing of it. The first error
            // counts.
            let _ = self.partition.truncate(before, now_ms, validator);
            self.partition.take_offline();
            self.failed(error)
        })
    }

    /// Closes its files; everything is synced already.
    pub fn close(&mut self) {
        self.partition.log.close();
        self.partition.take_offline();
    }

    fn check_online(&self) -> Result<(), QuorumLogError> {
        if !self.partition.is_offline() {
            return Ok(());
        }
        Err(self.failed(io::Error::other("is closed since it could not be written")))
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn failed(&self, error: io::Error) -> QuorumLogError {
        QuorumLogError::Io { path: self.path().to_owned(), error }
    }

    fn refused(&self, reason: &dyn fmt::Display) -> QuorumLogError {
        QuorumLogError::Refused(format!("{}: {reason}", self.path().display()))
    }
}

/// Whatever the batches of a controller are, they are appended.
fn leader_settings(leader_epoch: i32) -> LeaderSettings {
    let config = TopicConfig {
        max_message_bytes: i32::MAX,
        segment_bytes: i32::MAX,
        message_timestamp_after_max_ms: i64::MAX,
        ..TopicConfig::default()
    };
    LeaderSettings { config, leader_epoch, profile: Profile::Kafka, ..LeaderSettings::default() }
}

fn partition_settings(segment_bytes: i32) -> PartitionSettings {
    PartitionSettings {
        log: LogSettings {
            segment_bytes,
            segment_ms: i64::MAX,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            is_deleted: false,
            retention_ms: -1,
            retention_bytes: -1,
        },
        is_internal: true,
        min_insync_replicas: 1,
        in_sync_replicas: 1,
        partition_epoch: -1,
    }
}
