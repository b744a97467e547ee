//! Which kernels run.

use crate::calls::detached;
use ottla_kernels::Level;
use pyo3::exceptions::{PyImportError, PyValueError};
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
pub fn check_environment() -> PyResult<()> {
    match named_kernels() {
        Some(name) if name.parse::<Level>().is_err() => {
            let names = "portable, sse42, bmi2, avx512 or arm64";
            Err(PyValueError::new_err(format!("OTTLA_KERNELS is {names}, not '{name}'")))
        }
        _ => Ok(()),
    }
}

/// Whether NumPy may be loaded: its wheels end the process on a CPU that lacks their instructions. One
/// that was built for this CPU is loaded already, by whoever has it.
pub(crate) fn may_load_numpy(py: Python<'_>) -> PyResult<bool> {
    Ok(has_numpys_instructions() || py.import("sys")?.getattr("modules")?.contains("numpy")?)
}

/// Refuses to load NumPy where its wheels end the process, and says what to do instead.
///
/// Raises:
///     ImportError: its wheels end the process on this CPU, and it is not loaded.
#[pyfunction]
pub fn require_numpy(py: Python<'_>, instead: &str) -> PyResult<()> {
    if may_load_numpy(py)? {
        return Ok(());
    }
    Err(PyImportError::new_err(format!(
        "columns need NumPy, whose wheels end the process on this CPU: it has no SSE4.2. {instead} \
         instead, or import a NumPy that was built for this CPU before"
    )))
}

#[cfg(target_arch = "x86_64")]
fn has_numpys_instructions() -> bool {
    std::is_x86_feature_detected!("sse4.2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_numpys_instructions() -> bool {
    true
}

/// Returns the name of the kernels that run: ``portable``, ``arm64``, ``sse42``, ``bmi2`` or
/// ``avx512``. If ``OTTLA_KERNELS`` names kernels that this CPU lacks, the nearest below run.
#[pyfunction]
pub fn kernel_level() -> &'static str {
    kernels().name()
}

/// Returns memory that was freed to the operating system, which takes some milliseconds.
#[pyfunction]
pub fn release_freed_memory(py: Python<'_>) -> PyResult<()> {
    detached(py, ottla_kernels::release_freed_memory)
}

/// Returns how this extension was built: ``"release"``, optimised as a whole, as wheels hold it, or
/// ``"dev"``, quick to build and with debug assertions. Only the former is worth measuring.
#[pyfunction]
pub fn build_profile() -> &'static str {
    if cfg!(debug_assertions) { "dev" } else { "release" }
}
