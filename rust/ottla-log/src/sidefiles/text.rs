//! What keeps a text file from being read, and how Kafka splits such files into lines and fields.

use std::fmt;

/// Characters of a line that an error quotes.
const QUOTED_CHARACTERS: usize = 60;

/// What is wrong with a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFault {
    /// Not UTF-8.
    NotText,
    /// Another version.
    Version,
    /// A first line without a version.
    VersionMissing,
    /// No line with the number of entries. Kafka reads such a file as an empty one.
    CountMissing,
    /// The second line is no number of entries.
    Count,
    /// Another number of entries than announced.
    WrongCount,
    /// A line that is no entry.
    Entry,
    /// A field of an entry that is no number.
    Number,
    /// An entry that does not come after the one before it.
    Order,
    /// No topic id, or the one of zeros.
    TopicId,
    /// No `broker.id`, or none that is a number.
    BrokerId,
    /// No `node.id`, or none that is a number.
    NodeId,
}

/// Why a text file cannot be read, with the line at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// What is wrong.
    pub fault: TextFault,
    /// Which line, from 1.
    pub line: usize,
    /// What should be there.
    pub expected: String,
    /// The beginning of what is there.
    pub found: String,
}

impl TextError {
    pub(super) fn new(fault: TextFault, line: usize, expected: impl Into<String>) -> Self {
        Self { fault, line, expected: expected.into(), found: String::new() }
    }

    pub(super) fn found(self, found: &str) -> Self {
        Self { found: quoted(found), ..self }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line;
        match self.fault {
            TextFault::NotText => f.write_str("no text"),
            TextFault::Version => f.write_str("unknown version"),
            TextFault::VersionMissing => f.write_str("no version"),
            TextFault::CountMissing | TextFault::Count => write!(f, "line {line} is no count"),
            TextFault::WrongCount => f.write_str("the count is wrong"),
            TextFault::Entry => write!(f, "line {line} is not `{}`", self.expected),
            TextFault::Number => write!(f, "line {line} holds no number"),
            TextFault::Order => write!(f, "line {line} does not increase"),
            TextFault::TopicId => f.write_str("no topic id"),
            TextFault::BrokerId => f.write_str("no broker.id"),
            TextFault::NodeId => f.write_str("no node.id"),
        }
    }
}

impl std::error::Error for TextError {}

/// A line as an error quotes it: printable and short.
fn quoted(line: &str) -> String {
    let mut out = String::new();
    for (count, character) in line.chars().enumerate() {
        if count == QUOTED_CHARACTERS {
            out.push_str("...");
            break;
        }
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// The file as text.
pub(super) fn text(data: &[u8]) -> Result<&str, TextError> {
    std::str::from_utf8(data).map_err(|error| {
        let position = error.valid_up_to();
        let before = data.iter().take(position).filter(|&&byte| byte == b'\n').count();
        let byte = data.get(position).copied().unwrap_or(0);
        TextError::new(TextFault::NotText, before.saturating_add(1), "UTF-8 text")
            .found(&format!("byte {byte:#04x} at position {position}"))
    })
}

/// The lines of a text as Java's readers return them: ended by `\n`, `\r` or both.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.find(['\n', '\r']).unwrap_or(text.len());
        let (line, behind) = text.split_at(end);
        let behind = behind.strip_prefix("\r\n").or_else(|| behind.strip_prefix(['\n', '\r']));
        rest = behind.filter(|behind| !behind.is_empty());
        Some(line)
    })
}

/// The fields of a line as Java's `\s+` splits it: blanks before the first make an empty one.
pub(super) fn fields(line: &str) -> Vec<&str> {
    let line = line.trim_end_matches(is_blank);
    let mut fields = Vec::new();
    let mut rest = line;
    while let Some(end) = rest.find(is_blank) {
        let (field, behind) = rest.split_at(end);
        fields.push(field);
        rest = behind.trim_start_matches(is_blank);
    }
    fields.push(rest);
    fields
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

/// A number of a field.
pub(super) fn number<T: std::str::FromStr>(field: &str, line: usize) -> Result<T, TextError> {
    field.parse().map_err(|_| TextError::new(TextFault::Number, line, "a number").found(field))
}
