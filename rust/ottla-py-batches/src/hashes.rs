//! Hashes that clients and brokers agree on.

use crate::calls::attached;
use ottla_kernels as kernels;
use pyo3::prelude::*;

/// The CRC-32C of some bytes.
#[pyfunction]
pub fn crc32c(py: Python<'_>, data: &[u8]) -> PyResult<u32> {
    attached(py, || kernels::crc32c(data))
}

/// The hash of a key by which Kafka's clients choose a partition.
///
/// >>> from ottla.records import murmur2
/// >>> murmur2(b"foobar")
/// -790332482
#[pyfunction]
pub fn murmur2(py: Python<'_>, key: &[u8]) -> PyResult<i32> {
    attached(py, || ottla_format::partitioning::murmur2(key))
}
