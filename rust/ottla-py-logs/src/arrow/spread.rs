//! Nulls between the rows of a column.
//!
//! Arrow's own way takes columns of any type, and a tenth of the extension.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, BinaryType, ByteArrayType, Int32Type, Int64Type, Utf8Type,
};
use arrow_array::{Array, ArrayRef, GenericByteArray, PrimitiveArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType};
use std::sync::Arc;

/// The rows of a column of records where there is one, and null where not.
pub(crate) fn spread(column: &ArrayRef, has_row: &[bool]) -> Result<ArrayRef, ArrowError> {
    match column.data_type() {
        DataType::Int32 => Ok(numbers::<Int32Type>(column.as_primitive(), has_row)),
        DataType::Int64 => Ok(numbers::<Int64Type>(column.as_primitive(), has_row)),
        DataType::Binary => parts::<BinaryType>(column.as_bytes(), has_row),
        DataType::Utf8 => parts::<Utf8Type>(column.as_bytes(), has_row),
        other => Err(ArrowError::NotYetImplemented(format!("nulls between rows of {other}"))),
    }
}

fn numbers<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, has_row: &[bool]) -> ArrayRef {
    let mut rows = column.iter();
    let spread = has_row.iter().map(|&has_row| if has_row { rows.next().flatten() } else { None });
    Arc::new(spread.collect::<PrimitiveArray<T>>())
}

/// The bytes stay where they are.
fn parts<T: ByteArrayType<Offset = i32>>(
    column: &GenericByteArray<T>,
    has_row: &[bool],
) -> Result<ArrayRef, ArrowError> {
    let mut rows = column.offsets().lengths().enumerate();
    let next = |&has_row: &bool| {
        let row = if has_row { rows.next() } else { None };
        row.map_or((0, false), |(row, length)| (length, column.is_valid(row)))
    };
    let (lengths, valid): (Vec<usize>, Vec<bool>) = has_row.iter().map(next).unzip();
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = Some(NullBuffer::from(valid));
    let first = column.offsets().first() as usize;
    Ok(Arc::new(GenericByteArray::<T>::try_new(offsets, column.values().slice(first), nulls)?))
}
