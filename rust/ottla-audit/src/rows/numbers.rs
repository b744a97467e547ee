//! Records as columns of numbers over bytes of their own: key, value and headers of each record, one
//! behind the other.

use super::headers::RecordHeaders;
use super::sheet::RecordRows;
use ottla_format::columns::{InflatedColumns, NumberColumns};
use ottla_kernels::copies::BinaryValues;
use ottla_kernels::numbers::Row;

impl RecordRows {
    /// The records as numbers. Nothing is a source; positions count through the inflated bytes.
    pub fn to_numbers(&self) -> InflatedColumns<NumberColumns> {
        let mut bytes =
            Vec::with_capacity(self.keys.data.len().saturating_add(self.values.data.len()));
        let mut headers = self.headers.iter().flat_map(RecordHeaders::iter);
        let add = |part: Option<&[u8]>, bytes: &mut Vec<u8>| {
            // Rows of more than one record are bounded by less than what 32 bits count.
            let position = bytes.len() as u32;
            bytes.extend_from_slice(part.unwrap_or_default());
            (position, part.map_or(-1, |part| part.len() as i32))
        };
        let numbers = self.offsets.iter().zip(&self.timestamps).enumerate();
        let rows = numbers.map(|(row, (&offset, &timestamp))| {
            let (key_position, key_length) = add(value(&self.keys, row), &mut bytes);
            let (value_position, value_length) = add(value(&self.values, row), &mut bytes);
            headers.next().unwrap_or_default().write(&mut bytes);
            Row { offset, timestamp, key_position, key_length, value_position, value_length }
        });
        let columns = NumberColumns::of_rows(rows);
        InflatedColumns { columns, inflated: bytes }
    }
}

/// The value of a row; `None` for null.
fn value(values: &BinaryValues, row: usize) -> Option<&[u8]> {
    let is_valid =
        |bits: &Vec<u8>| bits.get(row / 8).is_some_and(|bits| bits >> (row % 8) & 1 == 1);
    if !values.nulls.validity.as_ref().is_none_or(is_valid) {
        return None;
    }
    let (from, to) = (values.ends.get(row)?, values.ends.get(row.saturating_add(1))?);
    values.data.get(*from as usize..*to as usize)
}
