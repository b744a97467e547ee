//! Finished view columns as Arrow arrays.
//!
//! Arrow's own constructor compares every prefix with the bytes it stands for, which costs as much as making the views.
//! That the prefixes are right is how [`Views`](crate::Views) makes them; that long views lie inside the buffers is checked
//! here, so that no mistake of a caller can let a reader out of them.

use crate::views::{Nulls, ViewColumns};
use arrow_array::{Array, BinaryViewArray, Int64Array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};

/// The longest value inside its view.
const INLINE_BYTES: u32 = 12;

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
        let bytes = |column: &crate::Column| Buffer::from(bytes::Bytes::from_owner(column.clone()));
        let numbers = |column| Int64Array::new(ScalarBuffer::new(bytes(column), 0, rows), None);
        let views = |column, nulls: &Nulls| {
            let views = ScalarBuffer::<u128>::new(bytes(column), 0, rows);
            if !are_inside(&views, buffers) {
                return None;
            }
            let nulls = nulls.validity.as_ref().map(|bits| {
                NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits.clone()), 0, rows))
            });
            // SAFETY: every long view lies inside its buffer; short ones are padded with zeros, and prefixes are those of
            // the bytes, by construction; validity has a bit for every row.
            Some(unsafe { BinaryViewArray::new_unchecked(views, buffers.into(), nulls) })
        };
        let arrays = ViewArrays {
            offsets: numbers(&columns.offsets),
            timestamps: numbers(&columns.timestamps),
            keys: views(&columns.keys, &columns.key_nulls)?,
            values: views(&columns.values, &columns.value_nulls)?,
        };
        (arrays.keys.len() == rows && arrays.values.len() == rows).then_some(arrays)
    }
}

#[expect(clippy::needless_bitwise_bool, reason = "without a branch the loop becomes vectors")]
fn are_inside(views: &[u128], buffers: &[Buffer]) -> bool {
    let size_of = |index: u32| buffers.get(index as usize).map_or(0, |buffer| buffer.len() as u64);
    let first = size_of(0);
    views.iter().fold(true, |inside, &view| {
        let (size, index, position) = (view as u32, (view >> 64) as u32, (view >> 96) as u32);
        let end = u64::from(position) + u64::from(size);
        let limit = if index == 0 { first } else { size_of(index) };
        inside & (size <= INLINE_BYTES || end <= limit)
    })
}
