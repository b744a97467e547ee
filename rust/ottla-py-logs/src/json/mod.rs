//! Rows, headers and texts as JSON that displays as it is.
//!
//! Byte for byte what `ottla.text.json_text` writes, a space behind each comma and colon, bytes as
//! `ottla.audit.result.tables.jsonable` has them; without a Python object for a row.

pub mod headers;
pub mod lines;
pub mod text;
pub mod values;
