//! Columns of Python values as an Arrow stream, so that no Arrow package is needed to make one.

use crate::json::values::json_column;
use arrow_array::builder::{BinaryBuilder, BooleanBuilder, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use ottla_py_batches::arrow_stream::stream_capsule;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::sync::Arc;

/// A table behind Arrow's C stream interface.
#[pyclass(frozen, module = "ottla._engine")]
pub struct TableStream {
    batch: RecordBatch,
}

#[pymethods]
impl TableStream {
    /// One record batch with all rows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the requested schema; consumers then cast.
        drop(requested_schema);
        stream_capsule(py, self.batch.clone())
    }
}

/// Makes an Arrow stream from columns.
///
/// Args:
///     names: the names of the columns.
///     types: ``int32``, ``int64``, ``float64``, ``bool``, ``string``, ``binary``, or
///         ``list`` for values that become JSON text; one per column.
///     columns: the values of each column, ``None`` for null.
///
/// Raises:
///     ValueError: an unknown type, or lists of different lengths.
///     TypeError: a value that is not of its column's type.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn table_stream(
    names: Vec<String>,
    types: Vec<String>,
    columns: Vec<Bound<'_, PyList>>,
) -> PyResult<TableStream> {
    if names.len() != types.len() || names.len() != columns.len() {
        let counts =
            format!("{} names, {} types, {} columns", names.len(), types.len(), columns.len());
        return Err(PyValueError::new_err(counts));
    }
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for ((name, kind), column) in names.into_iter().zip(&types).zip(&columns) {
        let (data_type, array) = array(kind, column)?;
        fields.push(Field::new(name, data_type, true));
        arrays.push(array);
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(TableStream { batch })
}

fn array(kind: &str, column: &Bound<'_, PyList>) -> PyResult<(DataType, ArrayRef)> {
    fn values<'py, T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>>(
        column: &Bound<'py, PyList>,
    ) -> PyResult<Vec<Option<T>>> {
        column
            .iter()
            .map(|value| {
                if value.is_none() {
                    Ok(None)
                } else {
                    value.extract::<T>().map(Some).map_err(Into::into)
                }
            })
            .collect()
    }
    Ok(match kind {
        "int32" => (DataType::Int32, Arc::new(Int32Array::from(values::<i32>(column)?))),
        "int64" => (DataType::Int64, Arc::new(Int64Array::from(values::<i64>(column)?))),
        "float64" => (DataType::Float64, Arc::new(Float64Array::from(values::<f64>(column)?))),
        "bool" => {
            let mut builder = BooleanBuilder::new();
            values::<bool>(column)?.into_iter().for_each(|value| builder.append_option(value));
            (DataType::Boolean, Arc::new(builder.finish()))
        }
        "string" => {
            let mut builder = StringBuilder::new();
            values::<String>(column)?
                .iter()
                .for_each(|value| builder.append_option(value.as_ref()));
            (DataType::Utf8, Arc::new(builder.finish()))
        }
        "binary" => {
            let mut builder = BinaryBuilder::new();
            values::<Vec<u8>>(column)?
                .iter()
                .for_each(|value| builder.append_option(value.as_ref()));
            (DataType::Binary, Arc::new(builder.finish()))
        }
        "list" => (DataType::Utf8, Arc::new(json_column(column)?)),
        kind => {
            let kinds = "int32, int64, float64, bool, string, binary or list";
            return Err(PyValueError::new_err(format!("column type is {kinds}, not '{kind}'")));
        }
    })
}
