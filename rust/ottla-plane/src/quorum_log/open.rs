//! The log of a directory, or a new one, and what was found.

use super::snapshots::{Choice, choose, remove_unfinished};
use super::{QuorumLog, QuorumLogError, leader_settings, partition_settings};
use crate::log::directory::LogDirectory;
use crate::log::load::{LoadFailure, Loaded, load};
use crate::log::partition_log::PartitionLog;
use crate::partition::Partition;
use crate::wire::TopicId;
use ottla_format::batch::{BatchInfo, verify};
use ottla_format::header::{Envelope, RECORD_BATCH_OVERHEAD};
use ottla_leader::Leader;
use ottla_log::names::{CLUSTER_METADATA, MetadataSnapshotId};
use ottla_log::recovery::{
    Aborted, Directory, IndexConfig, LoadError, Recovery, Restart, predict_recovery,
};
use ottla_log::resync::first_batch;
use ottla_log::source::{Source, Window};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The id of the topic of a quorum's log.
const TOPIC_ID: TopicId = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Nothing of the log goes by the clock.
const NOW_MS: i64 = 0;

/// What was found in a directory and is worth a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuorumLogFound {
    /// What was cut off at the end of the log.
    pub torn: Option<TornTail>,
    /// Snapshots that are not whole, newest first, and what is wrong with each.
    pub faulty_snapshots: Vec<(PathBuf, String)>,
}

/// What a crash has left of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The segment.
    pub path: PathBuf,
    /// Where its last whole batch ends.
    pub position: u64,
    /// Bytes behind.
    pub bytes: u64,
}

impl QuorumLog {
    /// Opens the log of a directory, which is made where there is none. Bytes behind the last whole
    /// batch are what a crash has left, and are cut off.
    ///
    /// # Errors
    /// [`QuorumLogError`]: also damage that no crash leaves, and a log whose beginning is gone without
    /// a snapshot of it; nothing is changed then.
    pub fn open(path: &Path, segment_bytes: i32) -> Result<(Self, QuorumLogFound), QuorumLogError> {
        let directory = Arc::new(LogDirectory::new(path, &Arc::default()));
        let failed = |error| QuorumLogError::Io { path: path.to_owned(), error };
        let mut found = QuorumLogFound::default();
        let (partition, snapshots) = if directory.is_empty().map_err(failed)? {
            (create(&directory, segment_bytes).map_err(failed)?, Vec::new())
        } else {
            resume(&directory, segment_bytes, &mut found)?
        };
        Ok((Self { partition, directory, snapshots }, found))
    }
}

fn create(directory: &Arc<LogDirectory>, segment_bytes: i32) -> io::Result<Partition> {
    directory.create(TOPIC_ID)?;
    let log = PartitionLog::in_directory(Arc::clone(directory), 0, NOW_MS)?;
    let leader = Leader::new(leader_settings(-1), 0, 0);
    let topic = Arc::from(CLUSTER_METADATA.as_bytes());
    Partition::new(topic, 0, leader, log, partition_settings(segment_bytes))
}

fn resume(
    directory: &Arc<LogDirectory>,
    segment_bytes: i32,
    found: &mut QuorumLogFound,
) -> Result<(Partition, Vec<MetadataSnapshotId>), QuorumLogError> {
    let failed = |error| QuorumLogError::Io { path: directory.path().to_owned(), error };
    // As in Kafka: every start reads all of it.
    let mut restart = Restart { config: IndexConfig::default(), ..Restart::default() };
    let predicted = predict(directory, &restart)?;
    found.torn = torn_tail(directory, &predicted)?;
    let Choice { snapshots, faulty } =
        choose(directory, predicted.log_start_offset, predicted.log_end_offset)?;
    found.faulty_snapshots = faulty;
    remove_unfinished(directory).map_err(failed)?;
    if let Some(newest) = snapshots.last()
        && newest.end_offset > predicted.log_end_offset
    {
        // The log was not yet begun anew behind it: all of it is in the snapshot.
        restart.log_start_offset = newest.end_offset;
    }
    let Loaded { log, epochs, state, changes } =
        load(directory, TOPIC_ID, &restart).map_err(of_load)?;
    let leader = Leader::resume(leader_settings(-1), state, NOW_MS).map_err(|error| {
        QuorumLogError::Refused(format!("{}: {error}", directory.path().display()))
    })?;
    let topic = Arc::from(CLUSTER_METADATA.as_bytes());
    let settings = partition_settings(segment_bytes);
    let mut partition =
        Partition::resume(topic, 0, leader, (log, epochs), settings).map_err(failed)?;
    partition.changes = changes;
    // What a start has cut off does not come back.
    partition.log.flush().map_err(failed)?;
    Ok((partition, snapshots))
}

fn predict(directory: &LogDirectory, restart: &Restart) -> Result<Recovery, QuorumLogError> {
    let refused = |reason: String| {
        QuorumLogError::Refused(format!("{}: {reason}", directory.path().display()))
    };
    let predicted =
        predict_recovery(directory, &directory.partition(), restart, Aborted::Ignored, &|_| true);
    let predicted = predicted.map_err(|error| match error {
        LoadError::Io { file, error } => {
            let path = file.map_or(directory.path().to_owned(), |name| directory.file(&name));
            QuorumLogError::Io { path, error }
        }
        error => refused(error.to_string()),
    })?;
    match &predicted.refusal {
        Some(refusal) => Err(refused(refusal.to_string())),
        None => Ok(predicted),
    }
}

/// What a start would cut off. A crash tears the last append alone: all before it was synced.
fn torn_tail(
    directory: &LogDirectory,
    predicted: &Recovery,
) -> Result<Option<TornTail>, QuorumLogError> {
    let kept = |file: &[u8]| {
        let outcome = predicted.segments.iter().find(|outcome| outcome.file == file);
        outcome.map_or(0, |outcome| outcome.bytes)
    };
    let (mut torn, mut next_offset) = (None, predicted.log_start_offset);
    for (number, (file, &size)) in predicted.bytes_before.iter().enumerate() {
        let path = directory.file(file);
        let refused = |what: String| {
            let message = format!("{} is damaged{what}: take the file from a copy", path.display());
            Err(QuorumLogError::Refused(message))
        };
        let failed = |error| QuorumLogError::Io { path: path.clone(), error };
        let source = directory.open(file).map_err(failed)?;
        let end = kept(file);
        let walked = walk(&*source, end, next_offset).map_err(failed)?;
        next_offset = walked.next_offset;
        if walked.position >= size {
            continue;
        }
        if number.saturating_add(1) < predicted.bytes_before.len() {
            return refused(format!(", and a segment follows it (position {})", walked.position));
        }
        let behind = first_batch(&*source, walked.position, next_offset).map_err(failed)?;
        let position = walked.position;
        if let Some(behind) = behind {
            return refused(format!(
                " at position {position}, and no crash did it, since a whole batch follows at \
                 {behind}; to cut it there would lose the topics and settings behind it"
            ));
        }
        if let Some(fault) = walked.fault {
            return refused(format!(" at position {position}, and no crash did it ({fault})"));
        }
        let bytes = size.saturating_sub(end);
        torn = Some(TornTail { path: path.clone(), position: end, bytes });
    }
    Ok(torn)
}

/// How far whole batches of a segment follow one another.
struct Walked {
    position: u64,
    next_offset: i64,
    /// Why not up to the end.
    fault: Option<String>,
}

/// Walks over the batches of a segment up to `end`. A start of Kafka looks at less: its checksum
/// covers neither the offsets nor the magic of a batch.
fn walk(source: &dyn Source, end: u64, next_offset: i64) -> io::Result<Walked> {
    let mut progress = |_| true;
    let mut window = Window::new(source, Vec::new(), u64::MAX, &mut progress)?;
    let mut walked = Walked { position: 0, next_offset, fault: None };
    while walked.position < end && walked.fault.is_none() {
        match batch_at(&mut window, &walked) {
            Ok((size, next_offset)) => {
                walked.position = walked.position.saturating_add(size);
                walked.next_offset = next_offset;
            }
            Err(fault) => walked.fault = Some(fault),
        }
    }
    window.take_failure().map_or(Ok(walked), Err)
}

/// The size of the next batch, and the offset behind it; or why there is none.
fn batch_at(window: &mut Window<'_>, walked: &Walked) -> Result<(u64, i64), String> {
    let head = window.hold(walked.position, RECORD_BATCH_OVERHEAD);
    let envelope = Envelope::read(head, 0).filter(|envelope| envelope.magic == 2);
    let envelope = envelope.ok_or("bytes that are no batch of magic 2")?;
    let whole = window.hold(walked.position, envelope.total());
    let whole = whole.get(..envelope.total()).ok_or("a batch that is not whole")?;
    let info = BatchInfo::read(whole, 0, &envelope).map_err(|error| error.to_string())?;
    verify(whole).map_err(|error| error.to_string())?;
    let (found, expected) = (info.base_offset, walked.next_offset);
    if found != expected {
        return Err(format!("offset {found}, where {expected} is expected"));
    }
    Ok((info.size, info.last_offset.saturating_add(1)))
}

fn of_load(failure: LoadFailure) -> QuorumLogError {
    match failure {
        LoadFailure::Io { path, error } => QuorumLogError::Io { path, error },
        failure => QuorumLogError::Refused(failure.to_string()),
    }
}
