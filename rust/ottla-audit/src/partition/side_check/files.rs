//! Where the files beside the segments of a partition are read.

use crate::catalogue::finding::SideFile;
use std::io;

/// Where the files beside the segments of a partition are read, one at a time.
pub trait SideFiles {
    /// Offsets that there are snapshots of, in order.
    fn snapshots(&self) -> &[i64];

    /// The bytes of a file; `None` when there is none. `segment` is an index among those merged,
    /// for the files that belong to one.
    ///
    /// # Errors
    /// What the operating system says.
    fn read(&self, file: SideFile, segment: usize) -> io::Result<Option<Vec<u8>>>;

    /// Whether they are to be held against the log.
    fn is_known(&self) -> bool {
        true
    }
}

/// No files but segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSideFiles;

impl SideFiles for NoSideFiles {
    fn snapshots(&self) -> &[i64] {
        &[]
    }

    fn read(&self, _: SideFile, _: usize) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn is_known(&self) -> bool {
        false
    }
}
