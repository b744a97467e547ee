//! Snapshots: written, chosen at a start, and deleted with what they replace (KIP-630).

use super::{QuorumLog, QuorumLogError};
use crate::limits::MAX_METADATA_SNAPSHOT_BYTES;
use crate::log::directory::LogDirectory;
use ottla_log::names::{FileKind, FileName, FileState, MetadataSnapshotId, PART};
use ottla_log::recovery::Directory;
use ottla_log::sidefiles::metadata_snapshot::check_metadata_snapshot;
use ottla_log::sorting::sort_by;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// The snapshots of a directory.
pub(super) struct Choice {
    /// From the oldest to the newest that is whole; the log has everything behind this one.
    pub(super) snapshots: Vec<MetadataSnapshotId>,
    /// Newer ones, which are not whole, and what is wrong with each.
    pub(super) faulty: Vec<(PathBuf, String)>,
}

/// Chooses the newest snapshot that is whole, for a log that begins and ends at these offsets.
pub(super) fn choose(
    directory: &LogDirectory,
    log_start_offset: i64,
    log_end_offset: i64,
) -> Result<Choice, QuorumLogError> {
    let (mut snapshots, mut faulty) = (ids(directory)?, Vec::new());
    while let Some(id) = snapshots.last() {
        let path = directory.file(&id.name());
        let failed = |error| QuorumLogError::Io { path: path.clone(), error };
        let Err(fault) = check_metadata_snapshot(&read(directory, *id).map_err(failed)?) else {
            break;
        };
        if id.end_offset > log_end_offset {
            let message = format!(
                "{} is no snapshot, and the log ends at offset {log_end_offset}, before what it \
                 should hold ({fault}): take the file from a copy",
                path.display()
            );
            return Err(QuorumLogError::Refused(message));
        }
        faulty.push((path, fault.to_string()));
        snapshots.pop();
    }
    let reached = snapshots.last().map_or(0, |id| id.end_offset);
    if log_start_offset > reached {
        let of_faulty = faulty.first().map_or(String::new(), |(path, fault)| {
            format!("; {} is no snapshot ({fault}): take it from a copy", path.display())
        });
        return Err(QuorumLogError::Refused(format!(
            "{} begins at offset {log_start_offset}, and no snapshot says what was before \
             it{of_faulty}",
            directory.path().display()
        )));
    }
    Ok(Choice { snapshots, faulty })
}

/// Removes what a crash has left of writing or deleting a snapshot.
pub(super) fn remove_unfinished(directory: &LogDirectory) -> io::Result<()> {
    for name in directory.names()? {
        let FileName { kind, state, .. } = FileName::parse(&name);
        if kind == FileKind::MetadataSnapshot
            && matches!(state, FileState::Temporary | FileState::Deleted)
        {
            fs::remove_file(directory.file(&name))?;
        }
    }
    Ok(())
}

impl QuorumLog {
    /// The bytes of the newest snapshot.
    ///
    /// # Errors
    /// [`QuorumLogError`].
    pub fn read_snapshot(&self) -> Result<Option<Vec<u8>>, QuorumLogError> {
        let newest = self.snapshots.last();
        newest.map(|id| read(&self.directory, *id).map_err(|error| self.failed(error))).transpose()
    }

    /// Writes a snapshot of all batches that are there: whole, or not at all.
    ///
    /// # Errors
    /// [`QuorumLogError`]: the log is as it was, and has no snapshot more.
    pub fn write_snapshot(&mut self, snapshot: &[u8]) -> Result<(), QuorumLogError> {
        check_metadata_snapshot(snapshot).map_err(|fault| self.refused(&fault))?;
        let id =
            MetadataSnapshotId { end_offset: self.end_offset(), epoch: self.epoch().unwrap_or(0) };
        let name = id.name();
        let part = self.directory.file(&[&*name, PART].concat());
        let write = || -> io::Result<()> {
            let mut file = File::create(&part)?;
            file.write_all(snapshot)?;
            file.sync_all()?;
            fs::rename(&part, self.directory.file(&name))?;
            self.directory.sync()
        };
        write().map_err(|error| {
            // The first error counts.
            let _ = fs::remove_file(&part);
            self.failed(error)
        })?;
        self.snapshots.retain(|known| known.end_offset < id.end_offset);
        self.snapshots.push(id);
        Ok(())
    }

    /// Deletes the oldest snapshots, as long as log and snapshots together are larger than
    /// `max_bytes`, and the segments that the next one replaces. The newest stays.
    ///
    /// # Errors
    /// [`QuorumLogError`].
    pub fn delete_old(&mut self, max_bytes: u64) -> Result<(), QuorumLogError> {
        while let [oldest, next, ..] = *self.snapshots
            && self.total_bytes()? > max_bytes
        {
            if next.end_offset > self.start_offset() {
                let moved = self.partition.start_at(next.end_offset);
                moved
                    .and_then(|()| self.partition.apply_retention(0))
                    .map_err(|error| self.refused(&error))?;
            }
            for id in ids(&self.directory)?.into_iter().filter(|id| *id <= oldest) {
                let removed = fs::remove_file(self.directory.file(&id.name()));
                removed.map_err(|error| self.failed(error))?;
            }
            self.snapshots.retain(|id| *id > oldest);
        }
        Ok(())
    }

    fn total_bytes(&self) -> Result<u64, QuorumLogError> {
        let mut bytes = self.size();
        for id in &self.snapshots {
            let metadata = fs::metadata(self.directory.file(&id.name()));
            bytes = bytes.saturating_add(metadata.map_err(|error| self.failed(error))?.len());
        }
        Ok(bytes)
    }
}

/// The snapshots of a directory by their names, in their order.
fn ids(directory: &LogDirectory) -> Result<Vec<MetadataSnapshotId>, QuorumLogError> {
    let names = directory.names();
    let names =
        names.map_err(|error| QuorumLogError::Io { path: directory.path().to_owned(), error })?;
    let mut ids: Vec<_> = names.iter().filter_map(|name| MetadataSnapshotId::parse(name)).collect();
    sort_by(&mut ids, Ord::cmp);
    Ok(ids)
}

fn read(directory: &LogDirectory, id: MetadataSnapshotId) -> io::Result<Vec<u8>> {
    let path = directory.file(&id.name());
    let size = fs::metadata(&path)?.len();
    if size > MAX_METADATA_SNAPSHOT_BYTES {
        let message =
            format!("{size} bytes, of at most {MAX_METADATA_SNAPSHOT_BYTES} that are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    fs::read(path)
}
