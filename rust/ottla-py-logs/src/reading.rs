//! The records of a partition, as a consumer would get them: the glue around
//! [`ottla_audit::PartitionReader`].

use crate::damage::damage_dict;
use crate::partition_batches::{BATCH_BYTES, NextRows, PartitionBatches, PartitionColumns};
use crate::place::{Opened, Place, os_error};
use crate::scanners::with_scanner;
use ottla_audit::rows::BufferedRecords;
use ottla_audit::{
    Damage, Isolation, PartitionReader, ReadOptions, ReadStep, ReadableBatch, RecordPlace,
};
use ottla_format::check::Level;
use ottla_log::source::{Limited, WINDOW_BYTES, fill};
use ottla_py_batches::bytes::SharedBytes;
use ottla_py_batches::calls::{called_back, detached};
use ottla_py_batches::integers::int;
use ottla_py_batches::records::{Record, RecordIterator, iterate};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use std::io;
use std::sync::Mutex;

/// Iterator over the :class:`Record` objects of a partition, and an Arrow stream of the same records.
///
/// Either goes on where the other has stopped: what was read is not read again. The stream has the
/// columns of :meth:`batches`, which also tells how to have them otherwise::
///
///     pyarrow.table(records)
///     polars.DataFrame(records)
///     duckdb.sql("select count(*) from records")
///
/// Args:
///     segments: path and base offset of each segment, in order. In place of a path an object that
///         reads the file will do; see :class:`Segment`.
///     isolation: ``read_uncommitted`` or ``read_committed``.
///     start_offset: the first offset.
///     end_offset: the offset behind the last.
///     stopped_cleanly: whether the broker stopped cleanly.
///     on_damage: called with a dictionary of what was passed over: segment (its index), position, size,
///         first_offset, last_offset, next_good_offset, severity, message.
///     on_end: called with the log end offset, if reading comes that far.
///     on_missing: called with the index of a segment that is not there any more. It returns the index
///         of the first that is, if those before it were deleted lawfully and reading goes on there.
#[pyclass(frozen, module = "ottla")]
pub struct PartitionRecords {
    /// `None` while a record is being read: Python is called for bytes and damage on the way, and no
    /// lock is held then.
    reading: Mutex<Option<Box<Reading>>>,
}

/// Where reading is.
struct Reading {
    reader: PartitionReader,
    places: Vec<Place>,
    /// The open file, and which segment it is.
    file: Option<(usize, Opened)>,
    /// Bytes of the open file, and where they begin in it.
    data: Option<(u64, SharedBytes)>,
    /// What is read into before it becomes `data`.
    buffer: Vec<u8>,
    batch: Option<BatchReading>,
    on_damage: Py<PyAny>,
    /// `None` once it was called.
    on_end: Option<Py<PyAny>>,
    on_missing: Py<PyAny>,
}

/// The batch whose records are returned.
struct BatchReading {
    readable: ReadableBatch,
    records: RecordIterator,
    /// The smallest offset that may come next.
    next_offset: i64,
    /// The offset of the first record that is not in its place.
    misplaced: Option<i64>,
}

#[pymethods]
impl PartitionRecords {
    #[new]
    #[pyo3(signature = (
        segments, *, isolation, start_offset, end_offset, stopped_cleanly, on_damage, on_end,
        on_missing
    ))]
    #[expect(clippy::too_many_arguments, reason = "by name")]
    fn new(
        segments: Vec<(Place, Option<i64>)>,
        isolation: &str,
        start_offset: i64,
        end_offset: i64,
        stopped_cleanly: bool,
        on_damage: Py<PyAny>,
        on_end: Py<PyAny>,
        on_missing: Py<PyAny>,
    ) -> PyResult<Self> {
        let isolation = Isolation::from_name(isolation).ok_or_else(|| {
            let names = "read_uncommitted or read_committed";
            PyValueError::new_err(format!("isolation is {names}, not '{isolation}'"))
        })?;
        let (places, bases) = segments.into_iter().unzip();
        let options = ReadOptions { isolation, start_offset, end_offset, stopped_cleanly };
        let reading = Reading {
            reader: PartitionReader::new(bases, options),
            places,
            file: None,
            data: None,
            buffer: Vec::new(),
            batch: None,
            on_damage,
            on_end: Some(on_end),
            on_missing,
        };
        Ok(Self { reading: Mutex::new(Some(Box::new(reading))) })
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        let Some(mut reading) = self.take() else {
            return Err(PyRuntimeError::new_err("the iterator is already in use"));
        };
        let record = reading.next(py);
        if let Ok(mut idle) = self.reading.lock() {
            *idle = Some(reading);
        }
        record
    }

    /// Returns the records that are left as an iterator over record batches of Arrow, which Arrow
    /// libraries also take as it is, as a stream.
    ///
    /// Memory is bounded by a window of the log, one batch inflated, and the record batch that is made.
    /// The columns are ``offset``, ``timestamp`` (in ms, UTC; null where a record has none), ``key``,
    /// ``value``, and ``headers``, a list of structs of key and value.
    ///
    /// Args:
    ///     raw: everything as it is in the log: timestamps as int64, -1 for none, and keys of headers
    ///         as bytes, which else are text with replacement characters.
    ///     batch_bytes: bytes of a record batch, about; at most 64 MiB.
    ///
    /// Raises:
    ///     ValueError: ``batch_bytes`` is out of range.
    #[pyo3(signature = (*, raw=false, batch_bytes=1 << 20))]
    fn batches(
        this: Py<Self>,
        raw: bool,
        #[pyo3(from_py_with = int)] batch_bytes: usize,
    ) -> PyResult<PartitionBatches> {
        PartitionBatches::of(next_rows(this), raw, batch_bytes)
    }

    /// Returns the records that are left as an iterator over :class:`Columns`, for NumPy.
    ///
    /// Memory is bounded as with :meth:`batches`. Timestamps are as in the log; positions of keys, values
    /// and headers count through ``inflated`` of each of the columns.
    ///
    /// Args:
    ///     headers: see :func:`read_columns`.
    ///     batch_bytes: bytes of keys, values, headers and numbers of one of the columns, about; at
    ///         most 64 MiB.
    ///
    /// Raises:
    ///     ValueError: ``batch_bytes`` is out of range.
    ///
    /// >>> import ottla
    /// >>> chunks = ottla.read_partition("examples/data/refunds-0").columns()
    /// >>> [(len(chunk), int(chunk.offset[-1])) for chunk in chunks]
    /// [(23, 24)]
    #[pyo3(signature = (*, headers=false, batch_bytes=1 << 20))]
    fn columns(
        this: Py<Self>,
        headers: bool,
        #[pyo3(from_py_with = int)] batch_bytes: usize,
    ) -> PyResult<PartitionColumns> {
        PartitionColumns::of(next_rows(this), headers, batch_bytes)
    }

    /// The records that are left, read while the stream is (Arrow PyCapsule interface).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        this: &Bound<'py, Self>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = PartitionBatches::of(next_rows(this.clone().unbind()), false, BATCH_BYTES)?;
        PartitionBatches::__arrow_c_stream__(&Bound::new(this.py(), batches)?, requested_schema)
    }

    /// The open transaction at which ``read_committed`` has ended: the last stable offset and the
    /// producer id. ``None`` while there is more, and where the log ended.
    #[getter]
    fn stopped_by(&self) -> Option<(i64, i64)> {
        let reading = self.reading.lock().ok()?;
        reading.as_ref().and_then(|reading| reading.reader.stopped_by())
    }

    /// The offset behind the last batch of the log, also where ``read_committed`` has ended before.
    /// ``None`` while there is more, and where the last offset asked for ended reading.
    #[getter]
    fn log_end_offset(&self) -> Option<i64> {
        let reading = self.reading.lock().ok()?;
        reading.as_ref().and_then(|reading| reading.reader.log_end_offset())
    }
}

/// Where the record batches of a partition have their rows from.
fn next_rows(records: Py<PartitionRecords>) -> NextRows {
    Box::new(move |py, rows| records.bind(py).get().fill(py, rows))
}

impl PartitionRecords {
    /// Adds the next records to columns until these are full.
    fn fill(&self, py: Python<'_>, rows: &mut BufferedRecords) -> PyResult<()> {
        let Some(mut reading) = self.take() else {
            return Err(PyRuntimeError::new_err("the iterator is already in use"));
        };
        let filled = reading.fill(py, rows);
        if let Ok(mut idle) = self.reading.lock() {
            *idle = Some(reading);
        }
        filled
    }

    /// Takes what is read, unless somebody else has it.
    fn take(&self) -> Option<Box<Reading>> {
        self.reading.lock().ok()?.take()
    }
}

impl Reading {
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Record>> {
        while self.has_batch(py)? {
            let Some(batch) = &mut self.batch else { break };
            match batch.next(py) {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => self.finish_batch(),
                Err(error) => self.break_off(py, error)?,
            }
        }
        Ok(None)
    }

    /// Adds records to columns until these are full, or there are no more.
    fn fill(&mut self, py: Python<'_>, rows: &mut BufferedRecords) -> PyResult<()> {
        while self.has_batch(py)? {
            let Some(batch) = &mut self.batch else { break };
            match batch.fill(py, rows) {
                Ok(true) => self.finish_batch(),
                Ok(false) => break,
                Err(error) => self.break_off(py, error)?,
            }
        }
        Ok(())
    }

    /// Opens the next batch where none is: whether there is one.
    fn has_batch(&mut self, py: Python<'_>) -> PyResult<bool> {
        while self.batch.is_none() {
            let Some(segment) = self.reader.segment() else {
                self.end(py)?;
                return Ok(false);
            };
            match self.step(py, segment)? {
                ReadStep::Batch(readable) => self.load(py, readable)?,
                ReadStep::Damage(damage) => self.report(py, &damage)?,
                ReadStep::Busy => py.check_signals()?,
                ReadStep::End => {}
            }
        }
        Ok(true)
    }

    /// Leaves a batch whose records were all read.
    fn finish_batch(&mut self) {
        if let Some(BatchReading { readable, misplaced: Some(offset), .. }) = self.batch.take() {
            self.reader.misplaced(&readable, offset);
        }
    }

    /// Leaves a batch at a record that cannot be read.
    fn break_off(&mut self, py: Python<'_>, error: PyErr) -> PyResult<()> {
        match self.batch.take() {
            Some(batch) => self.unreadable(py, &batch.readable, batch.next_offset, error),
            None => Err(error),
        }
    }

    /// Says once where the log ends.
    fn end(&mut self, py: Python<'_>) -> PyResult<()> {
        if let (Some(offset), Some(on_end)) = (self.reader.log_end_offset(), self.on_end.take()) {
            called_back(|| on_end.call1(py, (offset,)))?;
        }
        Ok(())
    }

    /// Returns what to raise for an error in a segment.
    fn error(&self, py: Python<'_>, segment: usize, error: &io::Error) -> PyErr {
        match self.places.get(segment) {
            Some(place) => place.error(py, error),
            None => os_error(py, error, None),
        }
    }

    fn step(&mut self, py: Python<'_>, segment: usize) -> PyResult<ReadStep> {
        let file = match self.file.take() {
            Some((opened, file)) if opened == segment => file,
            _ => {
                self.data = None;
                let place = self.places.get(segment);
                match detached(py, || place.ok_or(io::ErrorKind::NotFound)?.open())? {
                    Ok(file) => file,
                    Err(error) => return self.pass_over(py, segment, &error),
                }
            }
        };
        let reader = &mut self.reader;
        let step =
            detached(py, || with_scanner(Level::Crc, |scanner| reader.step(scanner, &file)))?;
        self.file = Some((segment, file));
        step.or_else(|error| self.pass_over(py, segment, &error))
    }

    /// Goes on behind a segment that was deleted lawfully. Any other error is raised.
    fn pass_over(
        &mut self,
        py: Python<'_>,
        segment: usize,
        error: &io::Error,
    ) -> PyResult<ReadStep> {
        if error.kind() == io::ErrorKind::NotFound {
            let next: Option<usize> =
                called_back(|| self.on_missing.call1(py, (segment,)))?.extract(py)?;
            if let Some(next) = next.filter(|&next| next > segment) {
                return Ok(self.reader.deleted_before(next));
            }
        }
        Err(self.error(py, segment, error))
    }

    /// Makes the records of a batch the next ones.
    fn load(&mut self, py: Python<'_>, readable: ReadableBatch) -> PyResult<()> {
        let info = readable.info;
        let found = match self.hold(py, &readable)? {
            Some((start, data)) => iterate(py, &info, &data, start),
            None => Err(PyErr::new::<pyo3::exceptions::PyEOFError, _>("its bytes are gone")),
        };
        let next_offset = readable.first_offset;
        match found {
            Ok(records) => {
                self.batch = Some(BatchReading { readable, records, next_offset, misplaced: None });
            }
            Err(error) => self.unreadable(py, &readable, next_offset, error)?,
        }
        Ok(())
    }

    /// Returns bytes of the open file that hold the whole batch, and where they begin.
    fn hold(
        &mut self,
        py: Python<'_>,
        readable: &ReadableBatch,
    ) -> PyResult<Option<(u64, SharedBytes)>> {
        let (position, size) = (readable.info.position, readable.info.size as usize);
        if let Some((start, data)) = &self.data
            && let Some(skip) = position.checked_sub(*start)
            && (skip as usize).saturating_add(size) <= data.as_bytes(py).len()
        {
            return Ok(Some((*start, data.clone_ref(py))));
        }
        let Some((_, file)) = &self.file else { return Ok(None) };
        let buffer = &mut self.buffer;
        let filled = detached(py, || read(file, position, size.max(WINDOW_BYTES), buffer))?
            .map_err(|error| self.error(py, readable.segment, &error))?;
        let Some(bytes) = self.buffer.get(..filled).filter(|bytes| bytes.len() >= size) else {
            return Ok(None);
        };
        let data = SharedBytes::whole(PyBytes::new(py, bytes));
        self.data = Some((position, data.clone_ref(py)));
        Ok(Some((position, data)))
    }

    /// Passes over what cannot be read of a batch. An error that is not about the batch is raised.
    fn unreadable(
        &mut self,
        py: Python<'_>,
        readable: &ReadableBatch,
        offset: i64,
        error: PyErr,
    ) -> PyResult<()> {
        let fault = py.import("ottla.errors")?.getattr("RecordBatchError")?;
        let is_fault = error.is_instance(py, &fault)
            || error.is_instance_of::<pyo3::exceptions::PyEOFError>(py);
        if !is_fault {
            return Err(error);
        }
        self.reader.unreadable(readable, offset, &error.value(py).to_string());
        Ok(())
    }

    fn report(&self, py: Python<'_>, damage: &Damage) -> PyResult<()> {
        let row = damage_dict(py, damage)?;
        called_back(|| self.on_damage.call1(py, (row,))).map(drop)
    }
}

/// Producer id, first offset and offset of the marker of a transaction.
type AbortedSpan = (i64, i64, i64);

/// Aborted transactions, and the last stable offset and producer id of the first open one.
type Transactions = (Vec<AbortedSpan>, Option<(i64, i64)>);

/// Which transactions of a partition were aborted, and which open one comes first.
///
/// The markers in the log decide (KIP-98), as for :class:`PartitionRecords`. Every batch is read, but
/// none inflated.
///
/// Args:
///     segments: path and base offset of each segment, in order; see :class:`PartitionRecords`.
///     position: where a batch of the first segment begins; what comes before is not looked at.
///     stop: where the last segment ends, whatever is appended to it meanwhile; by default as it is.
///
/// Returns:
///     Producer id, first offset and offset of the marker of each aborted transaction, in the order
///     of the markers; and the last stable offset and its producer id, ``None`` where no transaction
///     is open.
///
/// Raises:
///     OSError: a file cannot be read.
#[pyfunction]
#[pyo3(signature = (segments, *, position=0, stop=None))]
pub fn partition_transactions(
    py: Python<'_>,
    segments: Vec<(Place, Option<i64>)>,
    position: u64,
    stop: Option<u64>,
) -> PyResult<Transactions> {
    let (places, bases): (Vec<_>, Vec<_>) = segments.into_iter().unzip();
    let options = ReadOptions {
        isolation: Isolation::ReadCommitted,
        start_offset: 0,
        end_offset: i64::MAX,
        stopped_cleanly: false,
    };
    let mut reader = PartitionReader::new(bases, options).from_position(position);
    let mut opened: Option<(usize, Opened)> = None;
    while let Some(segment) = reader.segment() {
        if let Some((aborted, first_open)) = reader.transactions() {
            return Ok((aborted.list(), first_open));
        }
        let place = places.get(segment).ok_or_else(|| PyValueError::new_err(segment))?;
        let file = match opened.take() {
            Some((number, file)) if number == segment => file,
            _ => place.open_detached(py)?,
        };
        let is_last = segment.saturating_add(1) == places.len();
        let size = stop.filter(|_| is_last).unwrap_or(u64::MAX);
        let step = detached(py, || {
            with_scanner(Level::Crc, |scanner| reader.step(scanner, &Limited::new(&file, size)))
        })?;
        if let ReadStep::Busy = step.map_err(|error| place.error(py, &error))? {
            py.check_signals()?;
        }
        opened = Some((segment, file));
    }
    Ok(reader.transactions().map_or((Vec::new(), None), |(aborted, open)| (aborted.list(), open)))
}

impl BatchReading {
    /// Returns the next record that is asked for.
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Record>> {
        while let Some(record) = self.records.next_record(py)? {
            let Self { readable, next_offset, misplaced, .. } = self;
            if is_wanted(readable, record.at(), next_offset, misplaced) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Adds the records that are asked for to columns: whether there was room for all.
    fn fill(&mut self, py: Python<'_>, rows: &mut BufferedRecords) -> PyResult<bool> {
        let Self { readable, records, next_offset, misplaced } = self;
        let wanted = |offset| is_wanted(readable, offset, next_offset, misplaced);
        records.fill(py, &readable.info, rows, wanted)
    }
}

/// Whether the record of an offset is asked for; keeps count of what comes next, and of the first that
/// is not in its place.
fn is_wanted(
    readable: &ReadableBatch,
    offset: i64,
    next_offset: &mut i64,
    misplaced: &mut Option<i64>,
) -> bool {
    match readable.place(offset, *next_offset) {
        RecordPlace::Wanted => {
            *next_offset = offset.saturating_add(1);
            true
        }
        RecordPlace::Unwanted => false,
        RecordPlace::Wrong => {
            *misplaced = misplaced.or(Some(offset));
            false
        }
    }
}

/// Reads `size` bytes from `position` on into `buffer`, fewer at the end. Returns how many.
fn read(file: &Opened, position: u64, size: usize, buffer: &mut Vec<u8>) -> io::Result<usize> {
    buffer.truncate(size.max(WINDOW_BYTES));
    buffer.resize(buffer.len().max(size), 0);
    let size = size.min(buffer.len());
    let (target, _) = buffer.split_at_mut(size);
    fill(file, position, target)
}
