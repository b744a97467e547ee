//! A directory of a partition becomes a log again (`docs/kafka/log-dir.md` §5, §6).
//!
//! What is made of its files is decided and done by `ottla_log::recovery`, which also predicts it for
//! an audit. Here the files are changed, and what is loaded is put together.
//!
//! | module | subject |
//! | --- | --- |
//! | `failure` | why a directory cannot be loaded |
//! | `files` | the files of a directory as a start changes them |
//! | `aborted` | the aborted transactions of all segments |

mod aborted;
mod failure;
mod files;

pub use failure::LoadFailure;

use super::directory::LogDirectory;
use super::epochs::EpochStarts;
use super::partition_log::PartitionLog;
use crate::wire::TopicId;
use ottla_leader::{LoadedLog, LogOffsets};
use ottla_log::names::PARTITION_METADATA;
use ottla_log::recovery::{Directory, DirectoryChange, Restart, recover};
use ottla_log::sidefiles::metadata::{
    read_partition_metadata, topic_id_text, write_partition_metadata,
};
use std::io;
use std::sync::Arc;

/// The most bytes of a `partition.metadata` that are read.
const MAX_METADATA_BYTES: u64 = 16 << 10;

/// A log that was there.
pub(crate) struct Loaded {
    pub(crate) log: PartitionLog,
    pub(crate) epochs: EpochStarts,
    /// What its leader goes on with.
    pub(crate) state: LoadedLog,
    /// What was done to its files.
    pub(crate) changes: Vec<DirectoryChange>,
}

/// Loads the log of a partition of the topic of an id, all zeros for none.
pub(crate) fn load(
    directory: &Arc<LogDirectory>,
    topic_id: TopicId,
    restart: &Restart,
) -> Result<Loaded, LoadFailure> {
    let metadata = read_topic_id(directory, topic_id)?;
    let recovered = recover(&**directory, &directory.partition(), restart)
        .map_err(|error| LoadFailure::of_directory(directory, error))?;
    let in_directory = |error| LoadFailure::of_file(directory.path(), error);
    if metadata.is_none() && topic_id != TopicId::default() {
        // Releases before 2.8 wrote none.
        directory
            .replace(PARTITION_METADATA, &write_partition_metadata(topic_id))
            .map_err(in_directory)?;
    }
    let mut epochs = EpochStarts::default();
    for entry in &recovered.leader_epochs {
        epochs.assign(entry.epoch, entry.start_offset);
    }
    let aborted = aborted::read(&**directory, &recovered).map_err(in_directory)?;
    // As Kafka: what was recovered is not synced.
    let recovery_point = if recovered.stopped_cleanly {
        recovered.log_end_offset
    } else {
        restart.recovery_point.min(recovered.log_end_offset)
    };
    let path = directory.path().to_owned();
    let log = PartitionLog::resume(directory, &recovered, recovery_point)
        .map_err(|error| LoadFailure::of_file(&path, error))?;
    let start = log
        .base_offset_of(recovered.log_start_offset)
        .map_err(|error| LoadFailure::of_file(&path, error))?;
    let offsets = LogOffsets {
        log_start_offset: recovered.log_start_offset,
        log_start_batch_offset: Some(start.unwrap_or(recovered.log_end_offset)),
        high_watermark: None,
        log_end_offset: Some(recovered.log_end_offset),
    };
    let state = LoadedLog { offsets, aborted, producers: recovered.producers };
    Ok(Loaded { log, epochs, state, changes: recovered.changes })
}

/// The `partition.metadata` of a directory, which has to name the topic of this id. One that nobody can
/// read a start refuses.
fn read_topic_id(
    directory: &LogDirectory,
    topic_id: TopicId,
) -> Result<Option<Vec<u8>>, LoadFailure> {
    let path = directory.file(PARTITION_METADATA);
    let read = || -> io::Result<Vec<u8>> {
        let file = directory.open(PARTITION_METADATA)?;
        let mut data = vec![0; file.size()?.min(MAX_METADATA_BYTES) as usize];
        let filled = ottla_log::source::fill(&*file, 0, &mut data)?;
        data.truncate(filled);
        Ok(data)
    };
    let data = match read() {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LoadFailure::of_file(&path, error)),
    };
    let expected = topic_id_text(topic_id);
    match read_partition_metadata(&data) {
        Ok(found) if topic_id != TopicId::default() && found != expected => {
            let (path, found) = (directory.path().to_owned(), found.to_owned());
            Err(LoadFailure::OtherTopic { path, found, expected })
        }
        _ => Ok(Some(data)),
    }
}
