//! One text, or bytes that may be one. Writing into a text in memory cannot fail.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write as _;

/// Writes a text, in quotes. What is displayed as nothing or changes how the rest is, is escaped.
#[inline]
pub(crate) fn write_text(out: &mut String, text: &str) {
    // All of them, not until the first that is not plain: so that many are looked at at once.
    let special =
        text.bytes().filter(|byte| !(b' '..0x7f).contains(byte) || matches!(byte, b'"' | b'\\'));
    let is_plain = special.count() == 0;
    out.push('"');
    if is_plain {
        out.push_str(text);
    } else {
        for piece in text.split_inclusive(is_escaped) {
            match piece.chars().next_back() {
                Some(last) if is_escaped(last) => {
                    out.push_str(piece.strip_suffix(last).unwrap_or(piece));
                    write_escape(out, last);
                }
                _ => out.push_str(piece),
            }
        }
    }
    out.push('"');
}

/// Writes bytes: as a text if they are UTF-8, else as `{"base64": …}`.
#[inline]
pub(crate) fn write_bytes(out: &mut String, bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        write_text(out, text);
    } else {
        out.push_str("{\"base64\": \"");
        STANDARD.encode_string(bytes, out);
        out.push_str("\"}");
    }
}

/// Writes a character of a text.
pub(crate) fn write_character(out: &mut String, character: char) {
    if is_escaped(character) {
        write_escape(out, character);
    } else {
        out.push(character);
    }
}

fn is_escaped(character: char) -> bool {
    character < ' ' || matches!(character, '"' | '\\') || is_hidden(character)
}

fn write_escape(out: &mut String, character: char) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        _ => character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| write_unit(out, *unit)),
    }
}

/// Writes an integer.
pub(crate) fn write_number(out: &mut String, number: impl itoa::Integer) {
    out.push_str(itoa::Buffer::new().format(number));
}

/// Writes a unit of UTF-16 as an escape, also half of a pair.
pub(crate) fn write_unit(out: &mut String, unit: u16) {
    let _ = write!(out, "\\u{unit:04x}");
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
