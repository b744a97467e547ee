//! Values of Python: rows of tables, and lists in them.

use super::text::{write_bytes, write_character, write_text, write_unit};
use arrow_array::StringArray;
use arrow_array::builder::StringBuilder;
use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// How many lists and dictionaries may be within each other.
const MAX_DEPTH: usize = 100;

/// Rows as JSON objects.
///
/// Args:
///     names: the names of the columns.
///     rows: tuples with a value for each of them.
///     separator: what stands between two rows.
///
/// Raises:
///     TypeError: a row that is no tuple, or a value that JSON does not know.
///     ValueError: a row of another length.
///     RecursionError: lists in lists, a hundred times over.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn json_rows<'py>(
    names: Vec<String>,
    rows: &Bound<'py, PyAny>,
    separator: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let befores: Vec<String> = names.iter().enumerate().map(before).collect();
    let mut out = String::new();
    for (index, row) in rows.try_iter()?.enumerate() {
        let row = row?.cast_into::<PyTuple>()?;
        if row.len() != befores.len() {
            let message = format!("{} names, {} values", befores.len(), row.len());
            return Err(PyValueError::new_err(message));
        }
        if index > 0 {
            out.push_str(separator);
        }
        out.push('{');
        for (before, value) in befores.iter().zip(row.iter_borrowed()) {
            out.push_str(before);
            write_value(&mut out, &value, 0)?;
        }
        out.push('}');
    }
    Ok(PyBytes::new(rows.py(), out.as_bytes()))
}

/// Returns a column of values as JSON, `None` as null.
pub(crate) fn json_column(column: &Bound<'_, PyList>) -> PyResult<StringArray> {
    let mut texts = StringBuilder::new();
    let mut text = String::new();
    for value in column.iter() {
        if value.is_none() {
            texts.append_null();
            continue;
        }
        text.clear();
        write_value(&mut text, &value, 0)?;
        texts.append_value(&text);
    }
    Ok(texts.finish())
}

/// What comes before the value of a column.
fn before((index, name): (usize, &String)) -> String {
    let mut before = if index == 0 { String::new() } else { ", ".to_owned() };
    write_text(&mut before, name);
    before.push_str(": ");
    before
}

/// Writes a value, and all within it.
fn write_value(out: &mut String, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
    if value.is_none() {
        out.push_str("null");
    } else if let Ok(text) = value.cast::<PyString>() {
        write_string(out, text)?;
    } else if let Ok(value) = value.cast::<PyBool>() {
        out.push_str(if value.is_true() { "true" } else { "false" });
    } else if let Ok(value) = value.cast::<PyInt>() {
        write_integer(out, value)?;
    } else if let Ok(bytes) = value.cast::<PyBytes>() {
        write_bytes(out, bytes.as_bytes());
    } else if depth >= MAX_DEPTH {
        let message = format!("more than {MAX_DEPTH} lists within each other");
        return Err(PyRecursionError::new_err(message));
    } else if let Ok(items) = value.cast::<PyTuple>() {
        write_items(out, items.iter(), depth)?;
    } else if let Ok(items) = value.cast::<PyList>() {
        write_items(out, items.iter(), depth)?;
    } else if let Ok(items) = value.cast::<PyDict>() {
        let mut separator = "";
        out.push('{');
        for (name, item) in items.iter() {
            out.push_str(separator);
            separator = ", ";
            write_string(out, name.cast::<PyString>()?)?;
            out.push_str(": ");
            write_value(out, &item, depth.saturating_add(1))?;
        }
        out.push('}');
    } else if let Ok(number) = value.cast::<PyFloat>() {
        write_float(out, number)?;
    } else {
        let name = value.get_type().name()?;
        let message = format!("Object of type {name} is not JSON serializable");
        return Err(PyTypeError::new_err(message));
    }
    Ok(())
}

fn write_items<'py>(
    out: &mut String,
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    depth: usize,
) -> PyResult<()> {
    let mut separator = "";
    out.push('[');
    for item in items {
        out.push_str(separator);
        separator = ", ";
        write_value(out, &item, depth.saturating_add(1))?;
    }
    out.push(']');
    Ok(())
}

fn write_string(out: &mut String, text: &Bound<'_, PyString>) -> PyResult<()> {
    if let Ok(text) = text.to_cow() {
        write_text(out, &text);
        return Ok(());
    }
    // It has halves of surrogate pairs, as Python keeps bytes of file names that are no UTF-8.
    let points = text.call_method1(intern!(text.py(), "encode"), ("utf-32-le", "surrogatepass"))?;
    out.push('"');
    for point in points.cast::<PyBytes>()?.as_bytes().chunks_exact(4) {
        let point = point.try_into().map_or(0, u32::from_le_bytes);
        match (char::from_u32(point), u16::try_from(point)) {
            (Some(character), _) => write_character(out, character),
            (None, Ok(unit)) => write_unit(out, unit),
            (None, Err(_)) => {}
        }
    }
    out.push('"');
    Ok(())
}

fn write_integer(out: &mut String, value: &Bound<'_, PyInt>) -> PyResult<()> {
    let written = match value.extract::<i64>() {
        Ok(number) => number.to_string(),
        // Digits of an enumeration's member, not its name.
        Err(_) => text_of(value.py().get_type::<PyInt>().as_any(), value)?,
    };
    out.push_str(&written);
    Ok(())
}

/// Digits as Python has them: the shortest that give the same number.
fn write_float(out: &mut String, value: &Bound<'_, PyFloat>) -> PyResult<()> {
    let number = value.value();
    let written = if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() }
    } else {
        text_of(value.py().get_type::<PyFloat>().as_any(), value)?
    };
    out.push_str(&written);
    Ok(())
}

fn text_of(class: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<String> {
    class.call_method1(intern!(class.py(), "__repr__"), (value,))?.extract()
}
