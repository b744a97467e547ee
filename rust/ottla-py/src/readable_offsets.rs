//! The offsets that reading a partition gives, counted.

use crate::calls::detached;
use crate::place::{Opened, Place, os_error};
use ottla_audit::{Isolation, PartitionReader, ReadOptions, ReadableOffsets, Remainder, Scanner};
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use ottla_log::source::Source;
use pyo3::prelude::*;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file whose bytes are counted as they are read.
struct Counted<'a> {
    file: Opened,
    read: &'a AtomicU64,
}

impl Source for Counted<'_> {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(position, buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn next_data(&self, position: u64) -> u64 {
        self.file.next_data(position)
    }
}

/// Windows read, or batches looked into, between two calls of ``progress``.
const STEPS: usize = 1024;

/// Counts the offsets that :class:`PartitionRecords` gives with ``read_uncommitted``, and those of them
/// that are left when the log begins and ends elsewhere, or its segments are cut.
///
/// Args:
///     segments: path and base offset of each segment, in order; the path, or an object that reads it,
///         is as of :class:`Segment`.
///     start_offset: the log start offset.
///     stopped_cleanly: whether the broker did.
///     remainders: of each, its first offset, the offset behind its last, and the bytes left of each
///         segment.
///     progress: called with the bytes read so far, now and then; stops by returning false.
///
/// Returns:
///     How many there are, and how many each remainder has.
///
/// Raises:
///     OSError: a file cannot be read.
///     AuditCancelledError: ``progress`` said so.
#[pyfunction]
#[pyo3(signature = (segments, *, start_offset, stopped_cleanly, remainders, progress=None))]
pub(crate) fn count_readable_offsets(
    py: Python<'_>,
    segments: Vec<(Place, Option<i64>)>,
    start_offset: i64,
    stopped_cleanly: bool,
    remainders: Vec<(i64, i64, Vec<u64>)>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(u64, Vec<u64>)> {
    let (places, bases): (Vec<_>, Vec<_>) = segments.into_iter().unzip();
    let isolation = Isolation::ReadUncommitted;
    let options = ReadOptions { isolation, start_offset, end_offset: i64::MAX, stopped_cleanly };
    let remainder = |(start_offset, end_offset, segment_bytes)| Remainder {
        start_offset,
        end_offset,
        segment_bytes,
    };
    let remainders = remainders.into_iter().map(remainder).collect();
    let mut offsets = ReadableOffsets::new(PartitionReader::new(bases, options), remainders);
    // Its own: a place may be an object of Python's, which may do as it likes while it reads.
    let mut scanner = Scanner::new(Level::Crc, Limits::default());
    let read = AtomicU64::new(0);
    let mut opened = None;
    while offsets.segment().is_some() {
        py.check_signals()?;
        detached(py, || some_steps(&mut offsets, &mut scanner, &places, (&mut opened, &read)))?
            .map_err(|(segment, error)| match places.get(segment) {
                Some(place) => place.error(py, &error),
                None => os_error(py, &error, None),
            })?;
        if let Some(progress) = progress
            && !progress.call1((read.load(Ordering::Relaxed),))?.is_truthy()?
        {
            let cancelled = py.import("ottla.errors")?.getattr("AuditCancelledError")?;
            return Err(PyErr::from_value(cancelled.call1(("counting was stopped",))?));
        }
    }
    Ok((offsets.total(), offsets.kept().to_vec()))
}

fn some_steps<'a>(
    offsets: &mut ReadableOffsets,
    scanner: &mut Scanner,
    places: &[Place],
    (opened, read): (&mut Option<(usize, Counted<'a>)>, &'a AtomicU64),
) -> Result<(), (usize, io::Error)> {
    for _ in 0..STEPS {
        let Some(segment) = offsets.segment() else { break };
        let file = match opened.take() {
            Some((known, file)) if known == segment => file,
            _ => {
                let place = places.get(segment).ok_or(io::ErrorKind::NotFound);
                let place = place.map_err(|kind| (segment, kind.into()))?;
                Counted { file: place.open().map_err(|error| (segment, error))?, read }
            }
        };
        offsets.step(scanner, &file).map_err(|error| (segment, error))?;
        *opened = Some((segment, file));
    }
    Ok(())
}
