//! Segment files scanned, in one pass or in ranges.

use crate::findings::Finding;
use crate::place::{Opened, Place, reason_to_stop};
use crate::progress::{Progress, cancelled};
use crate::scanners::with_scanner;
use ottla_audit::segment::index_check::{Indexes, read_index};
use ottla_audit::{ChunkError, FindingKind, ScanError, Scanner, SegmentContext, SideFile};
use ottla_format::attributes::Compression;
use ottla_format::check::Level;
use ottla_log::source::{Limited, Source};
use ottla_py_batches::calls::detached;
use ottla_py_batches::check::level_of;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Passes the file to `take` piece by piece, until that returns false; returns its size.
fn read_pieces(place: &Place, take: impl FnMut(&[u8]) -> bool) -> io::Result<u64> {
    read_index(&place.open()?, take)
}

/// Reads the index files of a segment; one that cannot be read is a finding.
fn read_indexes(
    base_offset: i64,
    offsets: Option<&Place>,
    times: Option<&Place>,
) -> PyResult<(Indexes, Vec<ottla_audit::Finding>)> {
    let mut indexes = Indexes::new(base_offset);
    let mut findings = Vec::new();
    let mut unread = |error: &io::Error, kind, side| {
        if let Some(stop) = reason_to_stop(error) {
            return Err(stop);
        }
        let message = format!("the index cannot be read: {error}");
        let finding = ottla_audit::Finding::new(kind, message).beside(side);
        findings.push(finding.values("a readable file", "none"));
        Ok(())
    };
    if let Some(place) = offsets {
        match read_pieces(place, |data| indexes.add_offsets(data)) {
            Ok(size) => indexes.has_offsets(size),
            Err(error) => unread(&error, FindingKind::IndexMismatch, SideFile::OffsetIndex)?,
        }
    }
    if let Some(place) = times {
        match read_pieces(place, |data| indexes.add_times(data)) {
            Ok(size) => indexes.has_times(size),
            Err(error) => unread(&error, FindingKind::TimeindexMismatch, SideFile::TimeIndex)?,
        }
    }
    Ok((indexes, findings))
}

/// What one pass over a segment file shows; picklable.
#[pyclass(frozen, eq, module = "ottla._engine")]
#[derive(PartialEq)]
pub struct SegmentScan {
    pub(crate) inner: ottla_audit::SegmentScan,
}

/// Format versions of the batches of a scan.
pub(crate) fn magics_of(scan: &ottla_audit::SegmentScan) -> Vec<usize> {
    let counts = scan.counters.magics.iter().enumerate();
    counts.filter(|(_, count)| **count > 0).map(|(magic, _)| magic).collect()
}

/// Codecs of the batches of a scan.
pub(crate) fn codecs_of(scan: &ottla_audit::SegmentScan) -> Vec<&'static str> {
    let counts = scan.counters.codecs.iter().zip(0u8..);
    counts
        .filter(|(count, _)| **count > 0)
        .map(|(_, id)| Compression::from_id(id).map_or("unknown", Compression::name))
        .collect()
}

#[pymethods]
impl SegmentScan {
    /// Bytes of the file.
    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.counters.bytes
    }

    /// Valid batches.
    #[getter]
    fn batches(&self) -> u64 {
        self.inner.counters.batches
    }

    /// Records in them; at level ``crc`` according to the headers.
    #[getter]
    fn records(&self) -> u64 {
        self.inner.counters.records
    }

    /// First offset, ``None`` without a batch.
    #[getter]
    fn first_offset(&self) -> Option<i64> {
        self.inner.first_offset
    }

    /// The last offset plus one.
    #[getter]
    fn next_offset(&self) -> Option<i64> {
        self.inner.next_offset
    }

    /// Smallest timestamp in ms, without −1.
    #[getter]
    fn min_timestamp(&self) -> Option<i64> {
        self.inner.oldest.map(|oldest| oldest.timestamp)
    }

    /// Largest timestamp in ms, without −1.
    #[getter]
    fn max_timestamp(&self) -> Option<i64> {
        self.inner.newest.map(|newest| newest.timestamp)
    }

    /// Format versions of its batches.
    #[getter]
    fn magics(&self) -> Vec<usize> {
        magics_of(&self.inner)
    }

    /// Codecs of its batches.
    #[getter]
    fn codecs(&self) -> Vec<&'static str> {
        codecs_of(&self.inner)
    }

    /// Findings of this file alone, by position.
    #[getter]
    fn findings(&self) -> Vec<Finding> {
        self.inner.findings.kept().iter().cloned().map(Finding::from).collect()
    }

    /// The scan as bytes, of a format that begins with its version.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &detached(py, || self.inner.to_bytes())?))
    }

    /// The scan that :meth:`to_bytes` made into bytes.
    ///
    /// Raises:
    ///     ValueError: the bytes are not of this format, or of another version of it.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        let inner = ottla_audit::SegmentScan::from_bytes(data).map_err(chunk_error)?;
        Ok(Self { inner })
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = slf.get_type().getattr("from_bytes")?;
        Ok((from_bytes, (slf.get().to_bytes(slf.py())?,)))
    }
}

/// A segment file to be scanned, in one pass or in ranges.
///
/// The file is opened and its size is taken when this is made: what is appended later is not read, and
/// all ranges are of the same file. Where processes that open it at different times scan the ranges,
/// `size` is the same for all of them.
///
/// Args:
///     path: of the file, as the operating system has it, or an object that reads it: with its bytes as
///         ``size`` and with ``read_at(position, size)``, which returns fewer only at the end and
///         raises OSError. Such an object is not used before the first scan. If it has a method
///         ``expect(start, stop)``, that is called with the range that the same thread will read.
///     base_offset, next_base_offset: of this file's name and of the next one's.
///     is_active: whether it is the last of its partition.
///     stopped_cleanly: whether the broker did.
///     is_consumer_offsets: whether it belongs to ``__consumer_offsets``.
///     is_compared: whether it will be compared with other copies of the partition.
///     offset_index, time_index: paths of the index files beside it, which are compared with it.
///     level: ``crc``, ``decode`` or ``full``.
///     now_ms: the time of the audit.
///     size: bytes of the file that are read, at most.
///
/// Raises:
///     OSError: the file cannot be opened.
#[pyclass(frozen, module = "ottla._engine")]
pub struct Segment {
    place: Place,
    source: Limited<Opened>,
    context: SegmentContext,
    level: Level,
    indexes: Indexes,
    /// Findings about indexes that could not be read.
    unread: Vec<ottla_audit::Finding>,
}

#[pymethods]
impl Segment {
    #[new]
    #[pyo3(signature = (
        path, *, base_offset=None, next_base_offset=None, is_active=true, stopped_cleanly=false,
        is_consumer_offsets=false, is_compared=false, offset_index=None, time_index=None,
        level="full", now_ms, size=None
    ))]
    #[expect(clippy::fn_params_excessive_bools, reason = "by name")]
    #[expect(clippy::too_many_arguments, reason = "by name")]
    #[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
    fn new(
        py: Python<'_>,
        path: Place,
        base_offset: Option<i64>,
        next_base_offset: Option<i64>,
        is_active: bool,
        stopped_cleanly: bool,
        is_consumer_offsets: bool,
        is_compared: bool,
        offset_index: Option<Place>,
        time_index: Option<Place>,
        level: &str,
        now_ms: i64,
        size: Option<u64>,
    ) -> PyResult<Self> {
        let level = level_of(level)?;
        let file = path.open_detached(py)?;
        let there = file.size().map_err(|error| path.error(py, &error))?;
        let source = Limited::new(file, size.map_or(there, |size| size.min(there)));
        let context = SegmentContext {
            base_offset,
            next_base_offset,
            is_active,
            stopped_cleanly,
            is_consumer_offsets,
            now_ms,
            is_compared,
        };
        let (indexes, unread) = detached(py, || {
            let base = base_offset.unwrap_or(0);
            read_indexes(base, offset_index.as_ref(), time_index.as_ref())
        })??;
        Ok(Self { place: path, source, context, level, indexes, unread })
    }

    /// Scans the file in one pass, without the interpreter's lock.
    ///
    /// Args:
    ///     progress: called after each window with the bytes read so far; ``False`` stops the scan.
    ///
    /// Raises:
    ///     OSError: the file cannot be read.
    ///     AuditCancelledError: ``progress`` returned ``False``.
    #[pyo3(signature = (*, progress=None))]
    fn scan(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<SegmentScan> {
        self.place.announce(py, 0, self.source.size().unwrap_or(u64::MAX))?;
        self.work(py, progress, |scanner, source, advance| {
            let scan = scanner.scan_indexed(source, self.context, &self.indexes, advance, None)?;
            Ok(self.with_unread(scan))
        })
    }

    /// Scans the batches that begin between two positions, and a few after them. Chunks of consecutive
    /// ranges, from 0 to the end, merge to what one pass shows.
    ///
    /// Args:
    ///     start, stop: bytes from the beginning of the file.
    ///     progress: see :meth:`scan`.
    ///
    /// Raises:
    ///     ValueError: ``stop`` is below ``start``.
    ///     OSError, AuditCancelledError: see :meth:`scan`.
    #[pyo3(signature = (start, stop, *, progress=None))]
    fn scan_range(
        &self,
        py: Python<'_>,
        start: u64,
        stop: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Chunk> {
        if stop < start {
            return Err(PyValueError::new_err(format!("stop is {stop}, below start {start}")));
        }
        self.place.announce(py, start, stop)?;
        self.work(py, progress, |scanner, source, advance| {
            let (context, indexes) = (self.context, &self.indexes);
            let inner = scanner.scan_range(source, context, indexes, start..stop, advance)?;
            Ok(Chunk { inner })
        })
    }

    /// Reads again what kept a chunk that begins with the file from being one piece.
    ///
    /// Args:
    ///     chunk: of this file.
    ///     progress: see :meth:`scan`.
    ///
    /// Raises:
    ///     ValueError: the chunk was scanned at another level.
    ///     OSError, AuditCancelledError: see :meth:`scan`.
    #[pyo3(signature = (chunk, *, progress=None))]
    fn resolve(
        &self,
        py: Python<'_>,
        chunk: &Chunk,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Chunk> {
        self.work(py, progress, |scanner, source, advance| {
            let chunk = chunk.inner.clone();
            let inner = scanner.resolve(chunk, source, &self.indexes, advance)?;
            Ok(Chunk { inner })
        })
    }

    /// Returns what all chunks of the file show together; reads again what did not fit together.
    ///
    /// Args:
    ///     chunk: all of this file.
    ///     progress: see :meth:`scan`.
    ///
    /// Raises:
    ///     ValueError: the chunk was scanned at another level, or does not begin with the file.
    ///     OSError, AuditCancelledError: see :meth:`scan`.
    #[pyo3(signature = (chunk, *, progress=None))]
    fn finish(
        &self,
        py: Python<'_>,
        chunk: &Chunk,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<SegmentScan> {
        self.work(py, progress, |scanner, source, advance| {
            let chunk = chunk.inner.clone();
            let scan = scanner.finish(chunk, source, &self.indexes, advance)?;
            Ok(self.with_unread(scan))
        })
    }
}

impl Segment {
    fn with_unread(&self, mut inner: ottla_audit::SegmentScan) -> SegmentScan {
        for finding in &self.unread {
            inner.findings.push(finding.clone());
        }
        SegmentScan { inner }
    }

    /// Works with the scanner of this thread, without the interpreter's lock except for `progress`.
    fn work<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(
            &mut Scanner,
            &dyn Source,
            &mut dyn FnMut(u64) -> bool,
        ) -> Result<T, ScanError>
        + Send,
    ) -> PyResult<T> {
        let source = Watched::new(&self.source);
        let progress = Progress::new(progress);
        let mut read: u64 = 0;
        let mut advance = |bytes: u64| {
            read = read.saturating_add(bytes);
            progress.report(read)
        };
        let done = detached(py, || {
            with_scanner(self.level, |scanner| work(scanner, &source, &mut advance))
        })?;
        let stopped = progress.into_error(py, "the scan was stopped");
        if let Some(error) = stopped.or_else(|| source.into_error(py, &self.place)) {
            return Err(error);
        }
        done.map_err(|error| match error {
            ScanError::Io(error) => self.place.error(py, &error),
            ScanError::Stopped => cancelled(py, "the scan was stopped"),
            ScanError::WrongLevel | ScanError::NotAnchored => {
                PyValueError::new_err(error.to_string())
            }
        })
    }
}

/// The source of a segment during one scan, for which an error of reading is a finding. Two errors are
/// raised instead: one that means to stop, and one of a place of which nothing could be read.
struct Watched<'a> {
    source: &'a Limited<Opened>,
    has_read: AtomicBool,
    error: Mutex<Option<io::Error>>,
    is_stopped: AtomicBool,
}

impl<'a> Watched<'a> {
    fn new(source: &'a Limited<Opened>) -> Self {
        let (has_read, is_stopped) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { source, has_read, error: Mutex::new(None), is_stopped }
    }

    /// Returns what to raise, whatever the scan has found.
    fn into_error(self, py: Python<'_>, place: &Place) -> Option<PyErr> {
        let error = self.error.into_inner().ok().flatten()?;
        let is_gone = matches!(place, Place::Object(_)) && !self.has_read.into_inner();
        (is_gone || self.is_stopped.into_inner()).then(|| place.error(py, &error))
    }
}

impl Source for Watched<'_> {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("stopped"));
        }
        match self.source.read_at(position, buffer) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                self.is_stopped.store(reason_to_stop(&error).is_some(), Ordering::Relaxed);
                let copied = io::Error::new(error.kind(), error.to_string());
                if let Ok(mut first) = self.error.lock() {
                    *first = Some(error);
                }
                Err(copied)
            }
            read => {
                self.has_read.fetch_or(matches!(read, Ok(1..)), Ordering::Relaxed);
                read
            }
        }
    }

    fn size(&self) -> io::Result<u64> {
        self.source.size()
    }

    fn next_data(&self, position: u64) -> u64 {
        self.source.next_data(position)
    }
}

/// What a range of a segment shows: small, picklable, and merged with its right neighbour.
#[pyclass(frozen, eq, module = "ottla._engine")]
#[derive(PartialEq)]
pub struct Chunk {
    inner: ottla_audit::Chunk,
}

fn chunk_error(error: ChunkError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Chunk {
    /// Where its range begins.
    #[getter]
    fn start(&self) -> u64 {
        self.inner.start()
    }

    /// Where its range ends.
    #[getter]
    fn stop(&self) -> u64 {
        self.inner.stop()
    }

    /// How many parts it has that could not be joined without the file: 1 if all could.
    #[getter]
    fn pieces(&self) -> usize {
        self.inner.pieces()
    }

    /// Appends the chunk to the right.
    ///
    /// Raises:
    ///     ValueError: they are not neighbours, or of different segments or levels.
    fn merge(&self, py: Python<'_>, right: &Self) -> PyResult<Self> {
        let merged = detached(py, || self.inner.clone().merge(right.inner.clone()))?;
        merged.map(|inner| Self { inner }).map_err(chunk_error)
    }

    /// The chunk as bytes, of a format that begins with its version.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &detached(py, || self.inner.to_bytes())?))
    }

    /// The chunk that :meth:`to_bytes` made into bytes.
    ///
    /// Raises:
    ///     ValueError: the bytes are not of this format, or of another version of it.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        let inner = ottla_audit::Chunk::from_bytes(data).map_err(chunk_error)?;
        Ok(Self { inner })
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = slf.get_type().getattr("from_bytes")?;
        Ok((from_bytes, (slf.get().to_bytes(slf.py())?,)))
    }
}

/// Positions at which a segment can be cut: of valid batches that its offset index lists and the
/// batches before lead to.
///
/// Args:
///     path: of the segment, see :class:`Segment`.
///     index: the bytes of its ``.index``.
///     base_offset: of its name.
///     size: bytes of the segment that are read, at most.
///     apart: bytes between two positions, and between them and both ends, at least.
///
/// Raises:
///     OSError: the file cannot be read.
#[pyfunction]
#[pyo3(signature = (path, index, *, base_offset, size, apart))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn segment_cuts(
    py: Python<'_>,
    path: Place,
    index: &[u8],
    base_offset: i64,
    size: u64,
    apart: u64,
) -> PyResult<Vec<u64>> {
    let source = Limited::new(path.open_detached(py)?, size);
    detached(py, || {
        with_scanner(Level::Decode, |scanner| scanner.cuts(&source, base_offset, index, apart))
    })?
    .map_err(|error| path.error(py, &error))
}
