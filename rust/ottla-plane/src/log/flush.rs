//! Syncing a log apart from it, on another thread.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// What makes a log survive a crash, up to where it ended when this was made. The indexes of the
/// segment that grows are left out: a start after a crash builds them anew.
#[derive(Debug)]
pub struct FlushJob {
    /// The batches of the segment that grows.
    pub(super) active: Option<Arc<File>>,
    /// Files that are synced as they are; one that is gone was deleted meanwhile.
    pub(super) whole: Vec<PathBuf>,
    /// The directory, where files were made in it.
    pub(super) directory: Option<PathBuf>,
    pub(super) sealed: BTreeSet<i64>,
    pub(super) snapshots: BTreeSet<i64>,
    pub(super) made: u64,
    pub(super) log_end_offset: i64,
    pub(super) generation: u64,
}

impl FlushJob {
    /// Syncs.
    ///
    /// # Errors
    /// What the operating system reports: nobody knows then what is on the disk.
    pub fn run(&self) -> io::Result<()> {
        for path in &self.whole {
            match File::open(path) {
                Ok(file) => file.sync_data()?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(active) = &self.active {
            active.sync_data()?;
        }
        self.directory.as_ref().map_or(Ok(()), |path| File::open(path)?.sync_all())
    }
}
