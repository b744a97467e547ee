//! The directory of a partition, and what is in it beside the segments (`docs/kafka/log-dir.md` §1).

use super::epochs::EpochStarts;
use super::open_files::OpenFiles;
use crate::wire::TopicId;
use ottla_log::names::{
    FileKind, FileName, FileState, LEADER_EPOCHS, PARTITION_METADATA, PartitionName,
    PartitionState, SNAPSHOT, file_name,
};
use ottla_log::sidefiles::checkpoint::write_leader_epochs;
use ottla_log::sidefiles::metadata::write_partition_metadata;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The directory of a partition.
#[derive(Debug)]
pub(crate) struct LogDirectory {
    path: PathBuf,
    open_files: Arc<OpenFiles>,
    /// What a test has the disk do.
    room: Room,
}

/// Whether a disk is full because a test says so, and how many writes have found it so.
#[derive(Debug, Default)]
struct Room {
    is_full: AtomicBool,
    refused: AtomicU64,
}

impl LogDirectory {
    /// A directory that is there.
    pub(crate) fn new(path: &Path, open_files: &Arc<OpenFiles>) -> Self {
        Self { path: path.to_owned(), open_files: Arc::clone(open_files), room: Room::default() }
    }

    /// Has the disk be full for this partition, or no longer. Returns how many writes were refused.
    pub(crate) fn set_full(&self, is_full: bool) -> u64 {
        self.room.is_full.store(is_full, Ordering::Relaxed);
        self.room.refused.load(Ordering::Relaxed)
    }

    /// The error of a disk that is full, where a test has it be so.
    pub(crate) fn require_room(&self) -> io::Result<()> {
        if !self.room.is_full.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.room.refused.fetch_add(1, Ordering::Relaxed);
        Err(io::ErrorKind::StorageFull.into())
    }

    /// Whether nothing is in it, or it is not there.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        match fs::read_dir(&self.path) {
            Ok(mut entries) => Ok(entries.next().transpose()?.is_none()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Makes it, for a partition of a topic of this id, all zeros for none.
    pub(crate) fn create(&self, topic_id: TopicId) -> io::Result<()> {
        fs::create_dir_all(&self.path)?;
        if topic_id != TopicId::default() {
            self.replace(PARTITION_METADATA, &write_partition_metadata(topic_id))?;
        }
        self.path.parent().map_or(Ok(()), sync_directory)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn open_files(&self) -> &OpenFiles {
        &self.open_files
    }

    /// The path of one of its files.
    pub(crate) fn file(&self, name: &[u8]) -> PathBuf {
        self.path.join(system_name(name))
    }

    /// Its own name, as messages have it.
    pub(crate) fn partition(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// As [`put`](Self::put), after a crash too.
    pub(crate) fn replace(&self, name: &[u8], bytes: &[u8]) -> io::Result<()> {
        self.put(name, bytes)?;
        self.sync()
    }

    /// Writes a file that is there whole, as it was or as it will be, whatever happens meanwhile.
    pub(crate) fn put(&self, name: &[u8], bytes: &[u8]) -> io::Result<()> {
        self.require_room()?;
        let temporary = self.file(&[name, b".tmp"].concat());
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, self.file(name))
    }

    /// Writes `leader-epoch-checkpoint`, unless it is as it should be.
    pub(crate) fn write_epochs(&self, epochs: &EpochStarts) -> io::Result<()> {
        let bytes = write_leader_epochs(&epochs.entries());
        if fs::read(self.file(LEADER_EPOCHS)).is_ok_and(|found| found == bytes) {
            return Ok(());
        }
        self.replace(LEADER_EPOCHS, &bytes)
    }

    pub(crate) fn snapshot_path(&self, offset: i64) -> PathBuf {
        self.file(&file_name(offset, SNAPSHOT))
    }

    /// Writes the producers of an offset. As in Kafka it is synced with the segment before it: its
    /// checksum tells whether it is whole.
    pub(crate) fn write_snapshot(&self, offset: i64, bytes: &[u8]) -> io::Result<()> {
        let path = self.snapshot_path(offset);
        self.require_room()?;
        fs::write(&path, bytes).inspect_err(|_| {
            // No snapshot is better than half of one. The first error counts.
            let _ = fs::remove_file(&path);
        })
    }

    /// Deletes the snapshot of an offset, where there is one.
    pub(crate) fn delete_snapshot(&self, offset: i64) -> io::Result<()> {
        match fs::remove_file(self.snapshot_path(offset)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The offsets of all snapshots, in their order.
    pub(crate) fn snapshots(&self) -> io::Result<Vec<i64>> {
        let mut offsets = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = FileName::parse(entry?.file_name().as_encoded_bytes());
            if name.kind == FileKind::ProducerSnapshot && name.state == FileState::Live {
                offsets.extend(name.base_offset);
            }
        }
        offsets.sort_unstable();
        Ok(offsets)
    }

    /// Makes survive a crash which files there are.
    pub(crate) fn sync(&self) -> io::Result<()> {
        sync_directory(&self.path)
    }

    /// Removes it with all that is in it: first its name, so that no start takes what is left for a
    /// partition.
    pub(crate) fn remove(&self, topic: &[u8], index: i32, topic_id: TopicId) -> io::Result<()> {
        let live = PartitionName { topic, partition: index, state: PartitionState::Live };
        let name = live.renamed(PartitionState::Delete, topic_id);
        let renamed = self.path.with_file_name(&*String::from_utf8_lossy(&name));
        // A removal of an earlier topic of that name and id may have been cut short.
        match fs::remove_dir_all(&renamed) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::rename(&self.path, &renamed)?;
        fs::remove_dir_all(&renamed)
    }
}

/// The name of a file as the operating system takes it.
#[cfg(unix)]
fn system_name(name: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(name)
}

/// The name of a file as the operating system takes it: there names are text.
#[cfg(not(unix))]
fn system_name(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    // The parent of a relative path may have no name.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

/// Windows has no sync of a directory; Kafka leaves it out there, too.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "elsewhere it fails")]
fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}
