//! Where the files beside the segments of a partition are read.

use crate::catalogue::finding::SideFile;
use std::io;

/// Where the files beside the segments of a partition are read, one at a time.
pub trait SideFiles {
    /// The offsets of the snapshots, in order.
    fn snapshots(&self) -> &[i64];

    /// Returns the bytes of a file, `None` if it does not exist. `segment` is an index among those
    /// merged, for the files that belong to one.
    ///
    /// # Errors
    /// The error of the operating system.
    fn read(&self, file: SideFile, segment: usize) -> io::Result<Option<Vec<u8>>>;

    /// Whether they are to be compared with the log.
    fn is_known(&self) -> bool {
        true
    }
}

/// There are only segments.
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
