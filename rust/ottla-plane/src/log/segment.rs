//! What a place for the bytes of a segment must do.

use ottla_format::batch::BatchInfo;
use std::io;
use std::ops::Range;

/// Bytes of batches one behind the other, from position 0. In memory nothing fails; what stores
/// them in files reports what the file system does.
pub(crate) trait Segment: Send {
    /// Adds batches, whose bytes are these parts one behind the other. `batches` are their headers,
    /// for what a file keeps beside the bytes; their positions count from the first part.
    fn append(&mut self, parts: &[&[u8]], batches: &[BatchInfo]) -> io::Result<()>;

    /// Gives the bytes of a range to `each`, in order, in as few slices as there are.
    fn read(&self, range: Range<u64>, each: &mut dyn FnMut(&[u8])) -> io::Result<()>;

    /// Drops what is behind a position.
    fn truncate(&mut self, size: u64) -> io::Result<()>;

    /// Makes what was added survive a crash.
    fn flush(&mut self) -> io::Result<()>;

    /// Nothing is added from now on.
    fn seal(&mut self) -> io::Result<()>;
}
