//! What a place for the bytes and the indexes of a segment must do.

use ottla_log::sidefiles::offset_index::OffsetEntry;
use ottla_log::sidefiles::time_index::TimeEntry;
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Batches one behind the other, from position 0, and the entries of their indexes. In memory nothing
/// fails; what stores them in files reports what the file system does.
pub(crate) trait Segment: Send {
    /// Adds batches, whose bytes are these parts one behind the other, and entries of the indexes. All
    /// of it is added or nothing, unless not even that can be had: then the error is of another kind
    /// than [`is_lack_of_room`].
    fn append(
        &mut self,
        parts: &[&[u8]],
        offsets: &[OffsetEntry],
        times: &[TimeEntry],
    ) -> io::Result<()>;

    /// Adds transactions whose markers are in the segment.
    fn add_aborted(&mut self, aborted: &[AbortedTransaction]) -> io::Result<()>;

    /// Gives the bytes of a range to `each`, in order, in as few slices as there are.
    fn read(&self, range: Range<u64>, each: &mut dyn FnMut(&[u8])) -> io::Result<()>;

    /// How many bytes a read takes that costs hardly more than one of a header.
    fn read_ahead(&self) -> usize;

    /// How many bytes of batches there are, and how many entries.
    fn ends(&self) -> Ends;

    /// An entry of the offset index, `None` behind the last.
    fn offset_entry(&self, number: usize) -> io::Result<Option<OffsetEntry>>;

    /// An entry of the time index, `None` behind the last.
    fn time_entry(&self, number: usize) -> io::Result<Option<TimeEntry>>;

    /// Drops what is behind these ends, and aborted transactions whose markers are not below `offset`.
    fn truncate(&mut self, ends: Ends, offset: i64) -> io::Result<()>;

    /// Nothing is added from now on but by a truncation.
    fn seal(&mut self);

    /// Its batches alone, for who syncs a segment that grows; `None` in memory.
    fn file(&self) -> io::Result<Option<Arc<File>>>;

    /// Its files, for who syncs a segment that is sealed.
    fn paths(&self) -> Vec<PathBuf>;

    /// Makes it go away.
    fn delete(&mut self) -> io::Result<()>;

    /// Its batches for another thread, as they are now; it is sealed.
    fn reader(&self) -> Box<dyn SegmentReader>;

    /// Its files get this suffix behind their names: [`SWAP`](ottla_log::names::SWAP), and then none,
    /// where it takes the place of others.
    fn rename(&mut self, suffix: &'static [u8]) -> io::Result<()>;

    /// Keeps when a batch was added last, where that is not when it was written: what was compacted
    /// is as old as what it was made of.
    fn set_modified(&self, modified_ms: i64) -> io::Result<()>;
}

/// The batches of a segment that is sealed.
pub(crate) trait SegmentReader: Send {
    /// Gives the bytes of a range to `each`, in order, in as few slices as there are.
    fn read(&self, range: Range<u64>, each: &mut dyn FnMut(&[u8])) -> io::Result<()>;
}

/// Where a segment and its indexes end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Bytes of batches.
    pub(crate) size: u64,
    pub(crate) offset_entries: usize,
    pub(crate) time_entries: usize,
}

/// Makes the segment of a base offset.
pub(crate) type MakeSegment = Box<dyn Fn(i64) -> io::Result<Box<dyn Segment>> + Send>;

/// Whether there was only no room for what was to be added: with more room it can be added.
pub(crate) fn is_lack_of_room(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull)
}
