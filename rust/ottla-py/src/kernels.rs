//! Which kernels run.

use crate::calls::detached;
use ottla_kernels::Level;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::OnceLock;

/// The kernels that run: the best of this machine, or those that `OTTLA_KERNELS` names, or the nearest
/// below them that the machine has.
pub(crate) fn kernels() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let named = named_kernels().and_then(|name| name.parse().ok());
        named.map_or_else(Level::best, Level::usable)
    })
}

fn named_kernels() -> Option<String> {
    std::env::var("OTTLA_KERNELS").ok().filter(|name| !name.is_empty())
}

/// Refuses a wrong name when the module is imported: later nobody would know what was measured.
pub(crate) fn check_environment() -> PyResult<()> {
    match named_kernels() {
        Some(name) if name.parse::<Level>().is_err() => {
            let names = "portable, sse42, bmi2, avx512 or arm64";
            Err(PyValueError::new_err(format!("OTTLA_KERNELS is {names}, not '{name}'")))
        }
        _ => Ok(()),
    }
}

/// Returns the name of the kernels that run: ``portable``, ``arm64``, ``sse42``, ``bmi2`` or
/// ``avx512``. If ``OTTLA_KERNELS`` names kernels that this CPU lacks, the nearest below run.
#[pyfunction]
pub(crate) fn kernel_level() -> &'static str {
    kernels().name()
}

/// Returns memory that was freed to the operating system, which takes some milliseconds.
#[pyfunction]
pub(crate) fn release_freed_memory(py: Python<'_>) -> PyResult<()> {
    detached(py, ottla_kernels::release_freed_memory)
}

/// Returns how this extension was built: ``"release"``, optimised as a whole, as wheels hold it, or
/// ``"dev"``, quick to build and with debug assertions. Only the former is worth measuring.
#[pyfunction]
pub(crate) fn build_profile() -> &'static str {
    if cfg!(debug_assertions) { "dev" } else { "release" }
}
