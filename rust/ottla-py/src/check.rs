//! `check_batches` and what it needs of the machine.

use crate::bytes::{DETACH_BYTES, bytes_of};
use crate::errors::to_python;
use ottla_core::check::{Checker, Level};
use ottla_core::limits::Limits;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::RefCell;
use std::sync::OnceLock;

/// The kernels in use: the best this machine has, or those that `OTTLA_KERNELS` names.
pub(crate) fn kernels() -> ottla_kernels::Level {
    static LEVEL: OnceLock<ottla_kernels::Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let named = std::env::var("OTTLA_KERNELS").ok().and_then(|name| name.parse().ok());
        named.unwrap_or_else(ottla_kernels::Level::best)
    })
}

thread_local! {
    static CHECKER: RefCell<Checker> =
        RefCell::new(Checker::with_kernels(Level::Full, Limits::default(), kernels()));
}

/// Works with this thread's checker at a level.
pub(crate) fn with_checker<T>(level: Level, work: impl FnOnce(&mut Checker) -> T) -> T {
    CHECKER.with_borrow_mut(|checker| {
        checker.set_level(level);
        work(checker)
    })
}

/// The level of a name.
pub(crate) fn level_of(name: &str) -> PyResult<Level> {
    Level::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!("level is 'crc', 'decode' or 'full', not '{name}'"))
    })
}

/// Checks a buffer of record batches of any magic and gives the number of records in it.
///
/// Levels: ``crc`` proves framing and checksums and never looks inside; ``decode`` also inflates
/// payloads and parses every record as Kafka's consumer does; ``full`` also proves every rule of the
/// format (counts, offset deltas, timestamps, producer fields, control records). Zeros to the end of
/// the data are taken for the unused end of a preallocated file.
///
/// Args:
///     data: any bytes-like object; ``bytes`` is not copied.
///     level: ``"crc"``, ``"decode"`` or ``"full"``.
///
/// Raises:
///     CorruptRecordBatchError: framing or checksum.
///     TruncatedBatchError: the data end inside a batch.
///     InvalidRecordError: a rule of the format.
///     UnsupportedCompressionError: a codec that does not exist, or refuses its payload.
///     LimitExceededError: a bound.
///
/// >>> import ottla
/// >>> ottla.check_batches(ottla.build_batch([ottla.NewRecord(value=b"hello")]))
/// 1
#[pyfunction]
#[pyo3(signature = (data, *, level=None))]
pub(crate) fn check_batches(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    level: Option<&str>,
) -> PyResult<u64> {
    let level = level.map_or(Ok(Level::Full), level_of)?;
    match data.cast::<PyBytes>() {
        Ok(bytes) => check(py, bytes.as_bytes(), level),
        Err(_) => check(py, bytes_of(data)?.as_bytes(), level),
    }
}

fn check(py: Python<'_>, bytes: &[u8], level: Level) -> PyResult<u64> {
    let work = || {
        let quick = match level {
            Level::Crc => ottla_kernels::crc_only_run(kernels(), bytes, 0, |_| true),
            _ => ottla_kernels::run(kernels(), bytes, 0, &mut ottla_kernels::Nothing),
        };
        if quick.position == bytes.len() {
            return Ok(quick.records);
        }
        with_checker(level, |checker| checker.check_all(bytes))
    };
    let result = if bytes.len() < DETACH_BYTES { work() } else { py.detach(work) };
    result.map_err(|error| to_python(py, &error))
}

/// The name of the kernels in use: ``portable``, ``arm64``, ``sse42``, ``bmi2`` or ``avx512``.
#[pyfunction]
pub(crate) fn kernel_level() -> &'static str {
    kernels().name()
}
