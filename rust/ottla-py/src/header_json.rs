//! Headers of records as JSON: an array of pairs of key and value, one text a record.
//!
//! A key that is not UTF-8 has replacement characters, a value that is not is `{"base64": …}`; a
//! space follows each comma and colon, as from `json.dumps`.

use arrow_array::StringArray;
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ottla_audit::rows::headers::RecordHeaders;
use ottla_format::record::Headers;

/// Returns the column of texts.
pub(crate) fn header_texts(headers: &RecordHeaders) -> Result<StringArray, ArrowError> {
    let mut data = Vec::new();
    let mut ends = Vec::with_capacity(headers.iter().len().saturating_add(1));
    ends.push(0);
    for row in headers.iter() {
        write_headers(&mut data, &row)?;
        let end =
            i32::try_from(data.len()).map_err(|_| ArrowError::OffsetOverflowError(data.len()))?;
        ends.push(end);
    }
    let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
    StringArray::try_new(ends, Buffer::from_vec(data), None)
}

fn write_headers(out: &mut Vec<u8>, headers: &Headers<'_>) -> Result<(), ArrowError> {
    let mut separator: &[u8] = b"";
    out.push(b'[');
    for (key, value) in headers.iter() {
        out.extend_from_slice(separator);
        separator = b", ";
        out.push(b'[');
        write_text(out, &String::from_utf8_lossy(key))?;
        out.extend_from_slice(b", ");
        match value.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
            None => out.extend_from_slice(b"null"),
            Some((_, Ok(text))) => write_text(out, text)?,
            Some((bytes, Err(_))) => {
                out.extend_from_slice(b"{\"base64\": ");
                write_text(out, &STANDARD.encode(bytes))?;
                out.push(b'}');
            }
        }
        out.push(b']');
    }
    out.push(b']');
    Ok(())
}

fn write_text(out: &mut Vec<u8>, text: &str) -> Result<(), ArrowError> {
    serde_json::to_writer(out, text).map_err(|error| ArrowError::JsonError(error.to_string()))
}
