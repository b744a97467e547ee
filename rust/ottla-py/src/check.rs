//! `check_batches` and what it needs of the machine.

use crate::bytes::{DETACH_BYTES, bytes_of};
use crate::errors::to_python;
use ottla_format::batch::{Payload, payload};
use ottla_format::batches::Batches;
use ottla_format::check::{Checker, Level};
use ottla_format::error::Error;
use ottla_format::limits::Limits;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::RefCell;
use std::sync::OnceLock;

/// The kernels in use: the best this machine has, or those that `OTTLA_KERNELS` names, or where the
/// machine lacks these the nearest below.
pub(crate) fn kernels() -> ottla_kernels::Level {
    static LEVEL: OnceLock<ottla_kernels::Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let named = named_kernels().and_then(|name| name.parse().ok());
        named.map_or_else(ottla_kernels::Level::best, ottla_kernels::Level::usable)
    })
}

fn named_kernels() -> Option<String> {
    std::env::var("OTTLA_KERNELS").ok().filter(|name| !name.is_empty())
}

/// Refuses a wrong name where the module is imported: later nobody could tell what was measured.
pub(crate) fn check_environment() -> PyResult<()> {
    match named_kernels() {
        Some(name) if name.parse::<ottla_kernels::Level>().is_err() => {
            let names = "portable, sse42, bmi2, avx512 or arm64";
            Err(PyValueError::new_err(format!("OTTLA_KERNELS is {names}, not '{name}'")))
        }
        _ => Ok(()),
    }
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
    // Small and ordinary data come this way and no further: a call is worth as much as the work.
    if bytes.len() < DETACH_BYTES && level != Level::Crc {
        let run = ottla_kernels::run(kernels(), bytes, 0, &mut ottla_kernels::Nothing);
        if run.position == bytes.len() {
            return Ok(run.records);
        }
    }
    check_all(py, bytes, level)
}

#[inline(never)]
fn check_all(py: Python<'_>, bytes: &[u8], level: Level) -> PyResult<u64> {
    let work = || with_checker(level, |checker| checker.check_all(bytes));
    let result = if bytes.len() < DETACH_BYTES { work() } else { py.detach(work) };
    result.map_err(|error| to_python(py, &error))
}

/// Returns the name of the kernels that run: ``portable``, ``arm64``, ``sse42``, ``bmi2`` or
/// ``avx512``. Where ``OTTLA_KERNELS`` names kernels that this CPU lacks, it is the nearest below.
#[pyfunction]
pub(crate) fn kernel_level() -> &'static str {
    kernels().name()
}

/// Loads one byte of every cache line: what reading the same memory costs, for benchmarks.
#[pyfunction]
pub(crate) fn bare_read(py: Python<'_>, data: &Bound<'_, PyBytes>) -> u64 {
    let bytes = data.as_bytes();
    let load = |line: &[u8]| line.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word));
    py.detach(|| bytes.chunks(64).fold(0u64, |sum, line| sum.wrapping_add(load(line))))
}

/// Inflates the payload of every compressed batch and looks at nothing: what the codec itself costs,
/// for benchmarks. Gives the inflated bytes.
#[pyfunction]
pub(crate) fn bare_inflate(py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<u64> {
    let bytes = data.as_bytes();
    let inflate = || {
        with_checker(Level::Full, |checker| {
            let mut total = 0;
            for info in Batches::new(bytes, 0) {
                let info = info?;
                let (start, size) = (info.position as usize, info.size as usize);
                let whole = bytes.get(start..start + size).unwrap_or_default();
                if let Payload::Compressed { codec, bytes, .. } = payload(&info, whole)? {
                    let inflated = checker.codecs().decompress(codec, info.magic, bytes);
                    total += inflated.map_err(|kind| Error::new(kind, start))?.len() as u64;
                }
            }
            Ok(total)
        })
    };
    py.detach(inflate).map_err(|error| to_python(py, &error))
}
