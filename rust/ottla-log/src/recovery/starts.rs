//! The next start over a partition, and the one after the other kind of stop: what becomes of the
//! log, and what to do before.

use super::exposed::Aborted;
use super::files::Directory;
use super::index_builder::IndexConfig;
use super::interruption::LoadError;
use super::open_file::Progress;
use super::prediction::{Recovery, predict};
use super::restart::Restart;
use crate::names::{CLUSTER_METADATA, PartitionName};

/// What the starts over a partition depend on beside its files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Starts {
    /// The log directory holds `.kafka_cleanshutdown`.
    pub stopped_cleanly: bool,
    /// The partition's entry in `recovery-point-offset-checkpoint`.
    pub recovery_point: Option<i64>,
    /// The partition's entry in `log-start-offset-checkpoint`.
    pub log_start_offset: Option<i64>,
    /// Where the log ends by its batches, if that is known.
    pub log_end_offset: Option<i64>,
    /// The broker misses a `partition.metadata`; those before 2.8 wrote none.
    pub needs_topic_id: bool,
    /// What the topic's configuration says of its indexes.
    pub config: IndexConfig,
}

/// What a start makes of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartOutcome {
    /// The broker gives up its start.
    Refuses,
    /// The directory is put aside as a stray one, and an empty partition takes its place.
    PutAside,
    /// The log ends before its last batch, which stays in the file.
    EndsEarly,
    /// Batches are cut off.
    Cuts,
    /// The log start offset is beyond the end: every segment is deleted, and the log begins there.
    Empties,
    /// `read_committed` consumers get aborted records.
    ExposesAborted,
    /// The log opens as it is.
    Opens,
}

impl StartOutcome {
    fn of(after: &Recovery, offsets_lost: u64, starts: &Starts) -> Self {
        if !after.opens() {
            Self::Refuses
        } else if after.is_stray && starts.needs_topic_id {
            Self::PutAside
        } else if offsets_lost > 0 && after.bytes_cut() > 0 {
            Self::Cuts
        } else if offsets_lost > 0 {
            Self::EndsEarly
        } else if starts.log_end_offset.is_some_and(|end| end < after.log_start_offset)
            && after.bytes_cut() > 0
        {
            Self::Empties
        } else if !after.exposed.is_empty() {
            Self::ExposesAborted
        } else {
            Self::Opens
        }
    }

    /// Stable kebab-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuses => "refuses",
            Self::PutAside => "put-aside",
            Self::EndsEarly => "ends-early",
            Self::Cuts => "cuts",
            Self::Empties => "empties",
            Self::ExposesAborted => "exposes-aborted",
            Self::Opens => "opens",
        }
    }

    /// What to do before the start.
    pub fn action(self) -> &'static str {
        match self {
            Self::Refuses => {
                "Mend the file, or move the directory away: the broker then fetches the partition \
                 from another replica"
            }
            Self::PutAside => {
                "Write partition.metadata anew (version: 0, topic_id: that of the topic)"
            }
            // What helps depends on the other partitions: it has to be tried over all of them.
            Self::EndsEarly | Self::Cuts | Self::Empties | Self::ExposesAborted => {
                "Copy the directory first"
            }
            Self::Opens => "Nothing",
        }
    }
}

/// One start over a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// It follows a clean stop.
    pub stopped_cleanly: bool,
    /// The directory is in the state that leads to this start.
    pub is_next: bool,
    /// What it makes of the log.
    pub outcome: StartOutcome,
    /// Offsets at the end of the log that are given to other records.
    pub offsets_lost: u64,
    /// What to do before.
    pub action: &'static str,
    /// The partition after it, without its producers: those of two starts are not held at once.
    pub after: Recovery,
}

/// Predicts the next start over a partition, first, and the one after the other kind of stop. The log
/// of the KRaft quorum has one start alone: it is recovered whole every time (`KafkaRaftLog`).
///
/// `progress` is called after each read with the bytes read so far, and stops by returning `false`.
///
/// # Errors
/// See [`predict_recovery`](super::predict_recovery).
pub fn predict_starts(
    directory: &dyn Directory,
    partition: &str,
    starts: &Starts,
    aborted: Aborted<'_>,
    progress: &dyn Fn(u64) -> bool,
) -> Result<Vec<Start>, LoadError> {
    let is_quorum = PartitionName::parse(partition.as_bytes())
        .is_some_and(|name| name.topic == CLUSTER_METADATA.as_bytes());
    let next_is_clean = starts.stopped_cleanly && !is_quorum;
    let recovery_point = if is_quorum { 0 } else { starts.recovery_point.unwrap_or(0) };
    let progress = Progress::new(progress);
    let start = |stopped_cleanly: bool| -> Result<Start, LoadError> {
        let restart = Restart {
            stopped_cleanly,
            recovery_point,
            log_start_offset: starts.log_start_offset.unwrap_or(0),
            is_dense: false,
            config: starts.config,
        };
        let mut after = predict(directory, partition, &restart, aborted, &progress)?;
        after.producers = Vec::new();
        let offsets_lost = offsets_lost(&after, starts.log_end_offset);
        let outcome = StartOutcome::of(&after, offsets_lost, starts);
        let is_next = stopped_cleanly == next_is_clean;
        let action = outcome.action();
        Ok(Start { stopped_cleanly, is_next, outcome, offsets_lost, action, after })
    };
    let mut predicted = vec![start(next_is_clean)?];
    if !is_quorum {
        predicted.push(start(!next_is_clean)?);
    }
    Ok(predicted)
}

fn offsets_lost(after: &Recovery, log_end_offset: Option<i64>) -> u64 {
    match log_end_offset {
        Some(end) if after.opens() && end > after.log_end_offset => {
            end.abs_diff(after.log_end_offset)
        }
        _ => 0,
    }
}
