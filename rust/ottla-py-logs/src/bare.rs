//! What the memory and the codecs cost by themselves, for benchmarks.

use ottla_format::batch::{Payload, payload};
use ottla_format::batches::Batches;
use ottla_format::check::Level;
use ottla_format::error::Error;
use ottla_py_batches::calls::detached;
use ottla_py_batches::check::with_checker;
use ottla_py_batches::errors::to_python;
use ottla_py_batches::records::whole_batch;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Loads one byte of every cache line: the cost of reading the same memory, for benchmarks.
#[pyfunction]
pub fn bare_read(py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<u64> {
    let bytes = data.as_bytes();
    let load = |line: &[u8]| line.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word));
    detached(py, || bytes.chunks(64).fold(0u64, |sum, line| sum.wrapping_add(load(line))))
}

/// Inflates the payload of every compressed batch and does nothing else: the cost of the codec, for
/// benchmarks. Returns the number of inflated bytes.
#[pyfunction]
pub fn bare_inflate(py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<u64> {
    let bytes = data.as_bytes();
    let inflate = || {
        with_checker(Level::Full, |checker| {
            let mut total = 0u64;
            for info in Batches::new(bytes, 0) {
                let info = info?;
                let start = info.position as usize;
                let whole = whole_batch(&info, bytes, 0)?;
                if let Payload::Compressed { codec, reading, bytes, .. } = payload(&info, whole)? {
                    let inflated = checker.codecs().decompress(codec, reading, bytes);
                    let inflated = inflated.map_err(|kind| Error::new(kind, start))?;
                    total = total.saturating_add(inflated.len() as u64);
                }
            }
            Ok(total)
        })
    };
    detached(py, inflate)?.map_err(|error| to_python(py, &error))
}
