//! One start of a broker over one partition, carried out.

use super::directory_changes::{DirectoryChange, MutableDirectory, change_directory, trim_indexes};
use super::interruption::{Interruption, LoadError};
use super::loader::{LogBounds, load};
use super::open_file::Progress;
use super::partition_log::PartitionLog;
use super::restart::Restart;
use super::sound_entries::{RecoveredSegment, read_segment};
use crate::names::SegmentNames;
use crate::producers::Producers;
use crate::sidefiles::checkpoint::LeaderEpoch;

/// A log that is loaded, and whose files are as a start leaves them.
#[derive(Debug)]
pub struct RecoveredLog {
    /// Offset of the first record.
    pub log_start_offset: i64,
    /// The offset that the next record gets.
    pub log_end_offset: i64,
    /// Its segments in their order; there is at least one.
    pub segments: Vec<RecoveredSegment>,
    /// The epochs of leaders.
    pub leader_epochs: Vec<LeaderEpoch>,
    /// The producers, with their open transactions. Of each as many batches are known as were read.
    pub producers: Producers,
    /// The offset of the newest snapshot, or where the log begins.
    pub last_snapshot_offset: i64,
    /// Whether it was loaded as after a clean stop.
    pub stopped_cleanly: bool,
    /// What was done to the files.
    pub changes: Vec<DirectoryChange>,
}

/// Plays through a start, of which everything is kept that was read.
fn load_all<'d>(
    directory: &'d dyn MutableDirectory,
    partition: &str,
    restart: &Restart,
) -> Result<(PartitionLog<'d>, LogBounds), LoadError> {
    let progress = Progress::new(&|_| true);
    let mut log = PartitionLog::begin(directory, partition, restart, &progress)?;
    log.keep_all();
    let bounds = load(&mut log, restart)?;
    Ok((log, bounds))
}

/// The segments of a log as their files are.
fn read_segments(
    log: &PartitionLog<'_>,
    log_end_offset: i64,
) -> Result<Vec<RecoveredSegment>, LoadError> {
    let ends = log.segments.keys().skip(1).map(|&next| (next, false));
    let segments = log.segments.values().zip(ends.chain([(log_end_offset, true)]));
    let read = |(names, (end_offset, is_last))| {
        read_segment(&log.reader.files, names, end_offset, is_last)
    };
    segments.map(read).collect()
}

/// Whether a log ends with the last batch of its last segment.
fn is_whole(
    log: &mut PartitionLog<'_>,
    last: &SegmentNames,
    log_end_offset: i64,
) -> Result<bool, LoadError> {
    match log.reader.is_whole(last, log_end_offset) {
        Err(Interruption::Failed(error)) => Err(error),
        // What it does not read is no batch.
        result => Ok(result.unwrap_or(false)),
    }
}

/// Does to a partition's directory what the start of a broker does, `partition` by name: what
/// [`predict_recovery`](super::predict_recovery) says of the same files.
///
/// With three exceptions. After a clean stop Kafka believes the last entry of an index, and leaves what is
/// behind the last batch: where that would hide batches, or those to come, the last segment is recovered
/// as after an unclean stop, unless that would only take batches away. After an unclean stop Kafka gives
/// up over a transaction index with bytes that are no entry, as a power cut may leave them: here it is
/// built anew from the segment, and where that needs segments in front of it which are torn themselves,
/// once they are recovered. And where nothing was ever compacted, a segment that was not synced and begins
/// behind the end of the one before it is cut off with all that follow.
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
    let mut restart = *restart;
    let (mut log, mut bounds) = load_all(directory, partition, &restart)?;
    let last = log.segments.last_key_value().map(|(_, names)| names.clone());
    if let Some(last) = last.filter(|_| restart.stopped_cleanly)
        && !is_whole(&mut log, &last, bounds.log_end_offset)?
    {
        let (stopped_cleanly, recovery_point) = (false, last.base_offset);
        let unclean = Restart { stopped_cleanly, recovery_point, ..restart };
        let recovered = load_all(directory, partition, &unclean)?;
        let is_lower = recovered.1.log_end_offset < bounds.log_end_offset;
        if !is_lower || log.reader.reaches(&last, bounds.log_end_offset)? {
            (log, bounds) = recovered;
            restart = unclean;
        }
    }
    let mut changes = change_directory(&mut log, directory, bounds.log_end_offset)?;
    let segments = read_segments(&log, bounds.log_end_offset)?;
    if let Some(last) = segments.last() {
        changes.extend(trim_indexes(last, directory)?);
    }
    Ok(RecoveredLog {
        log_start_offset: bounds.log_start_offset,
        log_end_offset: bounds.log_end_offset,
        segments,
        leader_epochs: log.epochs.entries(),
        last_snapshot_offset: log.state.last_snapshot_offset(),
        producers: log.state.into_producers(),
        stopped_cleanly: restart.stopped_cleanly,
        changes,
    })
}
