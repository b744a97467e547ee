//! One start of a broker over one partition, carried out.

use super::directory_changes::{DirectoryChange, MutableDirectory, change_directory};
use super::interruption::LoadError;
use super::loader::load;
use super::open_file::Progress;
use super::partition_log::PartitionLog;
use super::restart::Restart;
use crate::producers::Producers;
use crate::sidefiles::checkpoint::LeaderEpoch;

/// A log that is loaded, and whose files are as a start leaves them.
#[derive(Debug)]
pub struct RecoveredLog {
    /// Offset of the first record.
    pub log_start_offset: i64,
    /// The offset that the next record gets.
    pub log_end_offset: i64,
    /// The base offsets of its segments, increasing; there is at least one.
    pub segments: Vec<i64>,
    /// The epochs of leaders.
    pub leader_epochs: Vec<LeaderEpoch>,
    /// The producers, with their open transactions. Of each as many batches are known as were read.
    pub producers: Producers,
    /// What was done to the files.
    pub changes: Vec<DirectoryChange>,
}

/// Does to a partition's directory what the start of a broker does, `partition` by name: what
/// [`predict_recovery`](super::predict_recovery) says of the same files.
///
/// It may be stopped at any moment; the next one makes the same log, if it is not told that the broker
/// stopped cleanly.
///
/// # Errors
/// [`LoadError::Refused`] where a broker gives up, with nothing changed. Files that cannot be read or
/// changed.
pub fn recover(
    directory: &dyn MutableDirectory,
    partition: &str,
    restart: &Restart,
) -> Result<RecoveredLog, LoadError> {
    let progress = Progress::new(&|_| true);
    let mut log = PartitionLog::begin(directory, partition, restart, &progress)?;
    log.keep_all();
    let bounds = load(&mut log, restart)?;
    let changes = change_directory(&mut log, directory)?;
    Ok(RecoveredLog {
        log_start_offset: bounds.log_start_offset,
        log_end_offset: bounds.log_end_offset,
        segments: log.segments.keys().copied().collect(),
        leader_epochs: log.epochs.entries(),
        producers: log.state.into_producers(),
        changes,
    })
}
