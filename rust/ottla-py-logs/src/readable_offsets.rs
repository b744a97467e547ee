//! The offsets that reading a partition gives, counted.

use crate::place::{Opened, Place, os_error};
use ottla_audit::{
    Isolation, KnownOffsets, PartitionReader, ReadOptions, ReadableOffsets as Counting, Remainder,
    Scanner,
};
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use ottla_log::source::Source;
use ottla_py_batches::calls::{called_back, detached};
use pyo3::prelude::*;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

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

/// The offsets that :class:`PartitionRecords` gives with ``read_uncommitted``.
///
/// Args:
///     segments: path and base offset of each segment, in order; the path, or an object that reads it,
///         is as of :class:`Segment`.
///     start_offset: the log start offset.
///     stopped_cleanly: whether the broker did.
#[pyclass(frozen, module = "ottla._engine")]
pub struct ReadableOffsets {
    places: Vec<Place>,
    bases: Vec<Option<i64>>,
    options: ReadOptions,
    /// How many there are, and which, once they were read.
    known: Mutex<Option<Arc<(u64, KnownOffsets)>>>,
}

#[pymethods]
impl ReadableOffsets {
    #[new]
    #[pyo3(signature = (segments, *, start_offset, stopped_cleanly))]
    fn new(segments: Vec<(Place, Option<i64>)>, start_offset: i64, stopped_cleanly: bool) -> Self {
        let (places, bases) = segments.into_iter().unzip();
        let isolation = Isolation::ReadUncommitted;
        let options =
            ReadOptions { isolation, start_offset, end_offset: i64::MAX, stopped_cleanly };
        Self { places, bases, options, known: Mutex::new(None) }
    }

    /// Counts them, and those that are left when the log begins and ends elsewhere, or its segments
    /// are cut. The log is read once, unless its offsets are too many to be remembered.
    ///
    /// Args:
    ///     remainders: of each, its first offset, the offset behind its last, and the bytes left of
    ///         each segment.
    ///     progress: called with the bytes read so far, now and then; stops by returning false.
    ///
    /// Returns:
    ///     How many there are, and how many each remainder has.
    ///
    /// Raises:
    ///     OSError: a file cannot be read.
    ///     AuditCancelledError: ``progress`` said so.
    #[pyo3(signature = (remainders, progress=None))]
    fn count(
        &self,
        py: Python<'_>,
        remainders: Vec<(i64, i64, Vec<u64>)>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(u64, Vec<u64>)> {
        let remainder = |(start_offset, end_offset, segment_bytes)| Remainder {
            start_offset,
            end_offset,
            segment_bytes,
        };
        let remainders: Vec<_> = remainders.into_iter().map(remainder).collect();
        let known = self.known.lock().ok().and_then(|known| known.clone());
        if let Some(known) = known {
            let (total, offsets) = &*known;
            let kept = || remainders.iter().map(|left| offsets.kept_by(left)).collect();
            if let Some(kept) = detached(py, kept)? {
                return Ok((*total, kept));
            }
        }
        let offsets = self.read(py, remainders, progress)?;
        let (total, kept) = (offsets.total(), offsets.kept().to_vec());
        if let Ok(mut known) = self.known.lock() {
            *known = Some(Arc::new((total, offsets.into_known())));
        }
        Ok((total, kept))
    }
}

impl ReadableOffsets {
    fn read(
        &self,
        py: Python<'_>,
        remainders: Vec<Remainder>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Counting> {
        let reader = PartitionReader::new(self.bases.clone(), self.options);
        let mut offsets = Counting::new(reader, remainders);
        // Its own: a place may be an object of Python's, which may do as it likes while it reads.
        let mut scanner = Scanner::new(Level::Crc, Limits::default());
        let read = AtomicU64::new(0);
        let mut opened = None;
        while offsets.segment().is_some() {
            py.check_signals()?;
            let places = &self.places;
            detached(py, || some_steps(&mut offsets, &mut scanner, places, (&mut opened, &read)))?
                .map_err(|(segment, error)| match places.get(segment) {
                    Some(place) => place.error(py, &error),
                    None => os_error(py, &error, None),
                })?;
            if let Some(progress) = progress
                && !called_back(|| progress.call1((read.load(Ordering::Relaxed),))?.is_truthy())?
            {
                let cancelled = py.import("ottla.errors")?.getattr("AuditCancelledError")?;
                return Err(PyErr::from_value(cancelled.call1(("counting was stopped",))?));
            }
        }
        Ok(offsets)
    }
}

fn some_steps<'a>(
    offsets: &mut Counting,
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
