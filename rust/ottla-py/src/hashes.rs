//! Hashes that clients and brokers agree on.

use crate::calls::attached;
use ottla_kernels as kernels;
use pyo3::prelude::*;

/// The CRC-32C of some bytes.
#[pyfunction]
pub(crate) fn crc32c(py: Python<'_>, data: &[u8]) -> PyResult<u32> {
    attached(py, || kernels::crc32c(data))
}
