//! Segments for tests whose calls fail when it is their turn.

use super::memory::MemorySegment;
use super::partition_log::PartitionLog;
use super::segment::{Ends, MakeSegment, Segment, SegmentReader};
use ottla_log::sidefiles::offset_index::OffsetEntry;
use ottla_log::sidefiles::time_index::TimeEntry;
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// In memory; of all calls of all segments one fails, and those behind it succeed.
struct FailingSegment {
    inner: MemorySegment,
    kind: io::ErrorKind,
    left: Arc<AtomicUsize>,
}

/// A log whose call of this number, from 0 on, fails with an error of this kind.
pub(crate) fn failing_log(kind: io::ErrorKind, call: usize) -> io::Result<PartitionLog> {
    // Making the first segment is no call.
    let left = Arc::new(AtomicUsize::new(call.saturating_add(1)));
    let make: MakeSegment = Box::new(move |_| {
        let inner = MemorySegment::default();
        let segment = FailingSegment { inner, kind, left: Arc::clone(&left) };
        segment.call()?;
        Ok(Box::new(segment))
    });
    PartitionLog::new(0, 0, make, None)
}

impl FailingSegment {
    fn call(&self) -> io::Result<()> {
        let left = self.left.fetch_sub(1, Ordering::Relaxed);
        if left == 0 { Err(self.kind.into()) } else { Ok(()) }
    }
}

impl Segment for FailingSegment {
    fn append(
        &mut self,
        parts: &[&[u8]],
        offsets: &[OffsetEntry],
        times: &[TimeEntry],
    ) -> io::Result<()> {
        self.call()?;
        self.inner.append(parts, offsets, times)
    }

    fn add_aborted(&mut self, _: &[AbortedTransaction]) -> io::Result<()> {
        self.call()
    }

    fn read(&self, range: Range<u64>, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.call()?;
        self.inner.read(range, each)
    }

    fn read_ahead(&self) -> usize {
        self.inner.read_ahead()
    }

    fn ends(&self) -> Ends {
        self.inner.ends()
    }

    fn offset_entry(&self, number: usize) -> io::Result<Option<OffsetEntry>> {
        self.call()?;
        self.inner.offset_entry(number)
    }

    fn time_entry(&self, number: usize) -> io::Result<Option<TimeEntry>> {
        self.call()?;
        self.inner.time_entry(number)
    }

    fn truncate(&mut self, ends: Ends, offset: i64) -> io::Result<()> {
        self.call()?;
        self.inner.truncate(ends, offset)
    }

    fn seal(&mut self) {}

    fn file(&self) -> io::Result<Option<Arc<File>>> {
        self.call().map(|()| None)
    }

    fn paths(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn delete(&mut self) -> io::Result<()> {
        self.call()
    }

    fn reader(&self) -> Box<dyn SegmentReader> {
        self.inner.reader()
    }

    fn rename(&mut self, _: &'static [u8]) -> io::Result<()> {
        self.call()
    }

    fn set_modified(&self, _: i64) -> io::Result<()> {
        self.call()
    }
}
