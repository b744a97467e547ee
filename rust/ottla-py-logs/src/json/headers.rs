//! Headers of records: an array of pairs of key and value, one text a record.
//!
//! A key that is not UTF-8 has replacement characters.

use super::text::{write_bytes, write_text};
use arrow_array::StringArray;
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use ottla_audit::rows::headers::RecordHeaders;
use ottla_format::record::Headers;

/// Returns the column of texts.
pub(crate) fn header_texts(headers: &RecordHeaders) -> Result<StringArray, ArrowError> {
    let mut data = String::new();
    let mut ends = Vec::with_capacity(headers.iter().len().saturating_add(1));
    ends.push(0);
    for row in headers.iter() {
        write_headers(&mut data, &row);
        let end =
            i32::try_from(data.len()).map_err(|_| ArrowError::OffsetOverflowError(data.len()))?;
        ends.push(end);
    }
    let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
    StringArray::try_new(ends, Buffer::from_vec(data.into_bytes()), None)
}

fn write_headers(out: &mut String, headers: &Headers<'_>) {
    let mut separator = "[";
    out.push('[');
    for (key, value) in headers.iter() {
        out.push_str(separator);
        separator = ", [";
        write_text(out, &String::from_utf8_lossy(key));
        out.push_str(", ");
        match value {
            None => out.push_str("null"),
            Some(bytes) => write_bytes(out, bytes),
        }
        out.push(']');
    }
    out.push(']');
}
