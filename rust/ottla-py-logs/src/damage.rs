//! What was passed over in a log, for Python.

use ottla_audit::Damage;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns what was passed over as a dictionary.
pub(crate) fn damage_dict<'py>(py: Python<'py>, damage: &Damage) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("segment", damage.segment)?;
    row.set_item("position", damage.position)?;
    row.set_item("size", damage.size)?;
    row.set_item("first_offset", damage.first_offset)?;
    row.set_item("last_offset", damage.last_offset)?;
    row.set_item("next_good_offset", damage.next_good_offset)?;
    row.set_item("severity", damage.severity.name())?;
    row.set_item("message", &damage.message)?;
    Ok(row)
}
