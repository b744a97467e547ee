//! The files of all logs that are open, of which there are only so many at once.

use crate::limits::MAX_OPEN_FILES;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file: the number of its segment, and which of its files.
pub(crate) type FileKey = (u64, &'static [u8]);

/// Files that are open to be read and appended to. The one that was used longest ago is closed
/// where another is opened: what was written to it stays with the system until it is synced.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    files: Mutex<Files>,
}

#[derive(Debug, Default)]
struct Files {
    open: HashMap<FileKey, (Arc<File>, u64)>,
    /// How often any was asked for.
    uses: u64,
    segments: u64,
}

impl OpenFiles {
    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a segment, never given twice.
    pub(crate) fn number(&self) -> u64 {
        let mut files = self.files();
        files.segments = files.segments.saturating_add(1);
        files.segments
    }

    /// A file, opened where it is not, and made where it is not there if `is_made`: one that should be
    /// there and is not is no empty one.
    pub(crate) fn get(
        &self,
        key: FileKey,
        is_made: bool,
        path: impl FnOnce() -> PathBuf,
    ) -> io::Result<Arc<File>> {
        let mut files = self.files();
        files.uses = files.uses.saturating_add(1);
        let uses = files.uses;
        if let Some((file, used)) = files.open.get_mut(&key) {
            *used = uses;
            return Ok(Arc::clone(file));
        }
        let file =
            Arc::new(OpenOptions::new().read(true).append(true).create(is_made).open(path())?);
        if files.open.len() >= MAX_OPEN_FILES
            && let Some(oldest) =
                files.open.iter().min_by_key(|(_, (_, used))| *used).map(|(&key, _)| key)
        {
            files.open.remove(&oldest);
        }
        files.open.insert(key, (Arc::clone(&file), uses));
        Ok(file)
    }

    /// Closes the files of a segment.
    pub(crate) fn close(&self, segment: u64) {
        self.files().open.retain(|&(of, _), _| of != segment);
    }
}
