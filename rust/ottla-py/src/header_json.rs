//! Headers of records as JSON: an array of pairs of key and value, one text a record.
//!
//! A key that is not UTF-8 has replacement characters, a value that is not is `{"base64": …}`; a
//! space follows each comma and colon, as from `ottla.text.json_text`.

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
    let is_plain = text.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    if is_plain || !text.contains(is_hidden) {
        let written = serde_json::to_writer(out, text);
        return written.map_err(|error| ArrowError::JsonError(error.to_string()));
    }
    let json = serde_json::to_string(text);
    let json = json.map_err(|error| ArrowError::JsonError(error.to_string()))?;
    let mut units = [0; 2];
    for character in json.chars() {
        if is_hidden(character) {
            let units = character.encode_utf16(&mut units);
            out.extend(units.iter().flat_map(|unit| format!("\\u{unit:04x}").into_bytes()));
        } else {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Ok(())
}

/// Whether a character is displayed as nothing, or changes how others are: C1, marks of direction,
/// separators, tags. Those that `ottla.text.json_text` escapes too.
fn is_hidden(character: char) -> bool {
    matches!(character,
        '\u{7f}'..='\u{9f}'
        | '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}
