//! Finished view columns as Arrow arrays.
//!
//! Arrow's own constructor compares every prefix with the bytes it stands for, which costs as much as
//! making the views. [`Views`](crate::Views) makes the prefixes from those bytes, and records how far
//! views go in each buffer. That is compared with the buffers here, so that no mistake of a caller can
//! lead a reader out of them.

use crate::views::{Nulls, ViewColumns};
use arrow_array::{Array, BinaryViewArray, Int64Array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};

/// The columns of a result as Arrow arrays.
#[derive(Debug)]
pub struct ViewArrays {
    /// Offsets in the log.
    pub offsets: Int64Array,
    /// Milliseconds since 1970.
    pub timestamps: Int64Array,
    /// Keys.
    pub keys: BinaryViewArray,
    /// Values.
    pub values: BinaryViewArray,
}

impl ViewArrays {
    /// The arrays of `columns`, whose views refer to `buffers`; `None` if a view lies outside of them.
    pub fn new(columns: &ViewColumns, buffers: &[Buffer]) -> Option<ViewArrays> {
        let rows = columns.row_count;
        let size_of = |index: usize| buffers.get(index).map_or(0, Buffer::len);
        if columns.extents.iter().enumerate().any(|(index, &end)| end > size_of(index)) {
            return None;
        }
        let bytes = |column: &crate::Column| Buffer::from(bytes::Bytes::from_owner(column.clone()));
        let numbers = |column| Int64Array::new(ScalarBuffer::new(bytes(column), 0, rows), None);
        let views = |column, nulls: &Nulls| {
            let views = ScalarBuffer::<u128>::new(bytes(column), 0, rows);
            let nulls = nulls.validity.as_ref().map(|bits| {
                NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits.clone()), 0, rows))
            });
            // SAFETY: no view reaches beyond the extent of its buffer, and no extent beyond the buffer;
            // short views are padded with zeros, and prefixes are those of the bytes, by construction;
            // validity has a bit for every row.
            unsafe { BinaryViewArray::new_unchecked(views, buffers.into(), nulls) }
        };
        let arrays = ViewArrays {
            offsets: numbers(&columns.offsets),
            timestamps: numbers(&columns.timestamps),
            keys: views(&columns.keys, &columns.key_nulls),
            values: views(&columns.values, &columns.value_nulls),
        };
        (arrays.keys.len() == rows && arrays.values.len() == rows).then_some(arrays)
    }
}
