//! What objects show of themselves: bounded text, and tables for notebooks.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// Longer byte strings are shown by their first bytes.
const MAX_SHOWN_BYTES: usize = 64;

/// The `repr` of bytes, of long ones that of the first.
pub(crate) fn bytes_shown(py: Python<'_>, bytes: Option<&Py<PyBytes>>) -> PyResult<String> {
    let Some(bytes) = bytes else { return Ok("None".to_owned()) };
    match bytes.as_bytes(py).split_at_checked(MAX_SHOWN_BYTES) {
        Some((shown, rest)) if !rest.is_empty() => {
            let shown = PyBytes::new(py, shown).repr()?;
            Ok(format!("{shown}… and {} more bytes", rest.len()))
        }
        _ => Ok(bytes.bind(py).repr()?.to_string()),
    }
}

/// The fields of an object as a table of HTML.
pub(crate) fn fields_html<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    object.py().import("ottla.notebook")?.call_method1("fields_html", (object,))
}

/// Rows as a table of HTML, of which there are `count`.
pub(crate) fn rows_html<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    title: &str,
    names: &[&str],
    rows: Vec<T>,
    count: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let arguments = (PyString::new(py, title), names, rows, count);
    py.import("ottla.notebook")?.call_method1("rows_html", arguments)
}
