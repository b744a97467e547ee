//! What a log in a directory keeps beside its segments: snapshots of producers, leader epochs, and how
//! far it is synced.

use super::directory::LogDirectory;
use super::epochs::EpochStarts;
use super::flush::FlushJob;
use super::indexed::IndexedSegment;
use ottla_leader::PartitionState;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A log's own in its directory.
#[derive(Debug)]
pub(crate) struct OnDisk {
    directory: Arc<LogDirectory>,
    /// What is below this offset survives a crash.
    recovery_point: i64,
    /// Changes where the log is truncated: what a job has synced is not what is there then.
    generation: u64,
    /// Base offsets of segments that are sealed and not synced.
    sealed: BTreeSet<i64>,
    /// Offsets of snapshots that are not synced.
    snapshots: BTreeSet<i64>,
    /// How many files were made, and how many of them the directory is known to hold after a crash.
    made: u64,
    made_synced: u64,
    /// The offset of the newest snapshot, or where the log began.
    last_snapshot_offset: i64,
}

impl OnDisk {
    /// Of a log that begins in an empty directory.
    pub(crate) fn new(directory: Arc<LogDirectory>, offset: i64) -> Self {
        Self::resume(directory, offset, offset)
    }

    /// Of a log that is there, synced up to an offset.
    pub(crate) fn resume(
        directory: Arc<LogDirectory>,
        recovery_point: i64,
        last_snapshot_offset: i64,
    ) -> Self {
        Self {
            directory,
            recovery_point,
            generation: 0,
            sealed: BTreeSet::new(),
            snapshots: BTreeSet::new(),
            made: 1,
            made_synced: 0,
            last_snapshot_offset,
        }
    }

    pub(crate) fn directory(&self) -> &Arc<LogDirectory> {
        &self.directory
    }

    pub(crate) fn recovery_point(&self) -> i64 {
        self.recovery_point
    }

    /// Whether a sealed segment is not synced.
    pub(crate) fn is_unflushed(&self) -> bool {
        !self.sealed.is_empty()
    }

    pub(crate) fn write_epochs(&self, epochs: &EpochStarts) -> io::Result<()> {
        self.directory.write_epochs(epochs)
    }

    /// Writes what is known of the producers at the log end, unless a snapshot says it.
    pub(crate) fn take_snapshot(&mut self, state: &PartitionState, offset: i64) -> io::Result<()> {
        if offset > self.last_snapshot_offset {
            self.directory.write_snapshot(offset, &state.snapshot())?;
            self.last_snapshot_offset = offset;
            self.snapshots.insert(offset);
            self.made = self.made.saturating_add(1);
        }
        Ok(())
    }

    /// The path of the snapshot of an offset.
    pub(crate) fn snapshot_path(&self, offset: i64) -> PathBuf {
        self.directory.snapshot_path(offset)
    }

    /// A segment was sealed, and another one is there.
    pub(crate) fn rolled(&mut self, sealed: i64) {
        self.sealed.insert(sealed);
        self.made = self.made.saturating_add(1);
    }

    /// A segment was deleted.
    pub(crate) fn deleted(&mut self, base_offset: i64) -> io::Result<()> {
        self.sealed.remove(&base_offset);
        self.snapshots.remove(&base_offset);
        self.directory.delete_snapshot(base_offset)
    }

    /// Segments took the place of others, of which those that begin at these offsets are gone.
    pub(crate) fn replaced(&mut self, gone: &[i64]) -> io::Result<()> {
        for &base_offset in gone {
            self.deleted(base_offset)?;
        }
        self.directory.sync()
    }

    /// The log ends at an offset, in the segment of a base offset. Returns the offset of the newest
    /// snapshot at or below it.
    pub(crate) fn truncated(&mut self, offset: i64, active: i64) -> io::Result<Option<i64>> {
        self.recovery_point = self.recovery_point.min(offset);
        self.generation = self.generation.saturating_add(1);
        self.sealed.retain(|&sealed| sealed < active);
        self.snapshots.retain(|&snapshot| snapshot <= offset);
        let mut newest = None;
        for snapshot in self.directory.snapshots()? {
            if snapshot <= offset {
                newest = Some(snapshot);
            } else {
                self.directory.delete_snapshot(snapshot)?;
            }
        }
        self.last_snapshot_offset = newest.unwrap_or(0).min(offset);
        Ok(newest)
    }

    /// What is to be synced for the log to survive a crash up to its end; `None` where nothing is.
    pub(super) fn flush_job(
        &self,
        segments: &[IndexedSegment],
        log_end_offset: i64,
    ) -> io::Result<Option<FlushJob>> {
        let is_synced = self.sealed.is_empty() && self.made == self.made_synced;
        if is_synced && self.recovery_point >= log_end_offset {
            return Ok(None);
        }
        let sealed = self.sealed.iter().filter_map(|&base_offset| {
            let number = segments.partition_point(|segment| segment.base_offset < base_offset);
            segments.get(number).filter(|segment| segment.base_offset == base_offset)
        });
        let snapshots = self.snapshots.iter().map(|&offset| self.directory.snapshot_path(offset));
        Ok(Some(FlushJob {
            active: segments.last().map_or(Ok(None), IndexedSegment::file)?,
            whole: sealed.flat_map(IndexedSegment::paths).chain(snapshots).collect(),
            directory: (self.made > self.made_synced).then(|| self.directory.path().to_owned()),
            sealed: self.sealed.clone(),
            snapshots: self.snapshots.clone(),
            made: self.made,
            log_end_offset,
            generation: self.generation,
        }))
    }

    /// A job is done.
    pub(crate) fn flushed(&mut self, job: &FlushJob) {
        if job.generation != self.generation {
            return;
        }
        self.sealed.retain(|sealed| !job.sealed.contains(sealed));
        self.snapshots.retain(|snapshot| !job.snapshots.contains(snapshot));
        self.made_synced = self.made_synced.max(job.made);
        let mut synced_to = job.log_end_offset;
        if !self.sealed.is_empty() {
            // What grew when the job was made is sealed now, and its indexes are not synced.
            synced_to = synced_to.saturating_sub(1);
        }
        self.recovery_point = self.recovery_point.max(synced_to);
    }
}
