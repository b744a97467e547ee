//! `check_batches`, and the checker of each thread.

use crate::bytes::{DETACH_BYTES, SharedBytes, copied, octets_of, size_of, view_of};
use crate::calls::{attached, detached};
use crate::errors::to_python;
use crate::kernels::kernels;
use ottla_format::check::{Checker, Level, Pieces};
use ottla_format::limits::Limits;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice};
use std::cell::Cell;

thread_local! {
    static IDLE: Cell<Option<Box<Checker>>> = const { Cell::new(None) };
}

/// Works with this thread's checker, at a level; it is taken out for that time.
pub fn with_checker<T>(level: Level, work: impl FnOnce(&mut Checker) -> T) -> T {
    let mut checker = IDLE.take().unwrap_or_else(|| {
        Box::new(Checker::with_kernels(Level::Full, Limits::default(), kernels()))
    });
    checker.set_level(level);
    let result = work(&mut checker);
    IDLE.set(Some(checker));
    result
}

/// The level with this name.
pub fn level_of(name: &str) -> PyResult<Level> {
    Level::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!("level is 'crc', 'decode' or 'full', not '{name}'"))
    })
}

/// Checks a buffer of record batches of any magic. Returns the number of records in it.
///
/// Levels: ``crc`` checks framing and checksums and never looks inside; ``decode`` also inflates
/// payloads and parses every record as Kafka's consumer does; ``full`` also checks every rule of the
/// format (counts, offset deltas, timestamps, producer fields, control records). Zeros up to the end
/// of the data are taken as the unused end of a preallocated file.
///
/// Args:
///     data: any bytes-like object. ``bytes``, and views of it, are not copied; what may be written to
///         meanwhile is copied piece by piece.
///     level: ``"crc"``, ``"decode"`` or ``"full"``.
///
/// Raises:
///     CorruptRecordBatchError: framing or checksum.
///     TruncatedBatchError: the data ends inside a batch.
///     InvalidRecordError: a rule of the format.
///     UnsupportedCompressionError: a codec that does not exist, or that refuses its payload.
///     LimitExceededError: a bound is exceeded.
///
/// >>> import ottla
/// >>> ottla.check_batches(ottla.build_batch([ottla.NewRecord(value=b"hello")]))
/// 1
#[pyfunction]
#[pyo3(signature = (data, *, level=None))]
pub fn check_batches(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    level: Option<&str>,
) -> PyResult<u64> {
    let level = level.map_or(Ok(Level::Full), level_of)?;
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return check(py, bytes.as_bytes(), level);
    }
    let view = view_of(data)?;
    match SharedBytes::lent(&view)? {
        Some(lent) => check(py, lent.as_bytes(py), level),
        None => check_view(&view, level),
    }
}

/// Checks memory that may be written to meanwhile: copied piece by piece, into a core's cache.
#[inline(never)]
fn check_view(view: &Bound<'_, PyAny>, level: Level) -> PyResult<u64> {
    let py = view.py();
    let mut pieces = Pieces::new(size_of(view)?);
    let Some(first) = pieces.next_range() else { return Ok(0) };
    if first.end == pieces.size() {
        return check(py, copied(view)?.as_bytes(), level);
    }
    let view = octets_of(view)?;
    while let Some(range) = pieces.next_range() {
        let slice = PySlice::new(py, range.start as isize, range.end as isize, 1);
        let piece = copied(&view.get_item(slice)?)?;
        let bytes = piece.as_bytes();
        let work = || with_checker(level, |checker| pieces.check(checker, bytes));
        detached(py, work)?.map_err(|error| to_python(py, &error))?;
    }
    Ok(pieces.records())
}

fn check(py: Python<'_>, bytes: &[u8], level: Level) -> PyResult<u64> {
    // The short way for small and ordinary data, where a call costs as much as the work.
    if bytes.len() < DETACH_BYTES && level != Level::Crc {
        let run = ottla_kernels::check_run(kernels(), bytes, 0);
        if run.position == bytes.len() {
            return Ok(run.records);
        }
    }
    check_all(py, bytes, level)
}

#[inline(never)]
fn check_all(py: Python<'_>, bytes: &[u8], level: Level) -> PyResult<u64> {
    let work = || with_checker(level, |checker| checker.check_all(bytes));
    let result = if bytes.len() < DETACH_BYTES { attached(py, work) } else { detached(py, work) }?;
    result.map_err(|error| to_python(py, &error))
}
