//! The rows of an Arrow record batch, an object and a line each.

use super::text::{write_bytes, write_number, write_text};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType};

/// The values of a column.
enum Values<'a> {
    Int64(&'a Int64Array),
    Int32(&'a Int32Array),
    Boolean(&'a BooleanArray),
    Text(&'a StringArray),
    Binary(&'a BinaryArray),
    /// Texts that are JSON already.
    Json(&'a StringArray),
}

struct Column<'a> {
    /// What comes before each value: brace or comma, the name and a colon.
    before: String,
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

/// Returns the lines. `json_columns` are those whose text is JSON already.
///
/// # Errors
/// A column of a type that no table written as JSON has.
pub(crate) fn json_lines(
    batch: &RecordBatch,
    json_columns: &[String],
) -> Result<String, ArrowError> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let columns = columns.enumerate().map(|(index, (field, array))| {
        let mut before = if index == 0 { "{".to_owned() } else { ", ".to_owned() };
        write_text(&mut before, field.name());
        before.push_str(": ");
        let values = match array.data_type() {
            DataType::Int64 => Values::Int64(array.as_primitive::<Int64Type>()),
            DataType::Int32 => Values::Int32(array.as_primitive::<Int32Type>()),
            DataType::Boolean => Values::Boolean(array.as_boolean()),
            DataType::Binary => Values::Binary(array.as_binary()),
            DataType::Utf8 if json_columns.contains(field.name()) => {
                Values::Json(array.as_string())
            }
            DataType::Utf8 => Values::Text(array.as_string()),
            other => {
                let message = format!("column {} of type {other} has no JSON form", field.name());
                return Err(ArrowError::JsonError(message));
            }
        };
        Ok(Column { before, nulls: array.nulls(), values })
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let mut out = String::with_capacity(batch.get_array_memory_size());
    for row in 0..batch.num_rows() {
        if columns.is_empty() {
            out.push('{');
        }
        for column in &columns {
            out.push_str(&column.before);
            column.write(&mut out, row);
        }
        out.push_str("}\n");
    }
    Ok(out)
}

impl Column<'_> {
    fn write(&self, out: &mut String, row: usize) {
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            out.push_str("null");
            return;
        }
        match self.values {
            Values::Int64(values) => write_number(out, values.value(row)),
            Values::Int32(values) => write_number(out, values.value(row)),
            Values::Boolean(values) => {
                out.push_str(if values.value(row) { "true" } else { "false" });
            }
            Values::Text(values) => write_text(out, values.value(row)),
            Values::Binary(values) => write_bytes(out, values.value(row)),
            Values::Json(values) => out.push_str(values.value(row)),
        }
    }
}
