//! Offsets in names, as Kafka's loader writes and reads them (`LogFileUtils`).

use super::constants::{CLEANED, INDEX, LOG, SNAPSHOT, SWAP, TIME_INDEX, TRANSACTION_INDEX};
use super::digits::OFFSET_DIGITS;
use std::fmt;

/// What a name ends with where the loader reads an offset in it.
const NUMBERED: [&[u8]; 7] = [LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX, SNAPSHOT, SWAP, CLEANED];

/// The name of a file as Kafka builds it: an offset of 20 digits and a suffix, such as [`SWAP`](super::SWAP).
pub fn file_name(offset: i64, suffix: &[u8]) -> Vec<u8> {
    // A start names some hundred files, and formatting takes most of that. No number has more digits.
    let mut digits = [b'0'; OFFSET_DIGITS];
    let mut left = offset.unsigned_abs();
    for digit in digits.iter_mut().rev() {
        *digit |= (left % 10) as u8;
        left /= 10;
    }
    let sign: &[u8] = if offset < 0 { b"-" } else { b"" };
    [sign, &digits, suffix].concat()
}

/// Why Kafka's loader reads no offset in a name; Java's exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OffsetError {
    /// The name has no dot: `StringIndexOutOfBoundsException`.
    NoDot {
        /// Bytes of the name.
        size: usize,
    },
    /// What stands before the dot is no number: `NumberFormatException`.
    NotANumber {
        /// What stands there.
        found: String,
    },
}

impl OffsetError {
    /// The class of Java's exception.
    pub fn class(&self) -> &'static str {
        match self {
            Self::NoDot { .. } => "java.lang.StringIndexOutOfBoundsException",
            Self::NotANumber { .. } => "java.lang.NumberFormatException",
        }
    }
}

impl fmt::Display for OffsetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDot { size } => write!(f, "Range [0, -1) out of bounds for length {size}"),
            Self::NotANumber { found } => write!(f, "For input string: \"{found}\""),
        }
    }
}

impl std::error::Error for OffsetError {}

/// The number before the first dot of a name, as Kafka's loader reads it
/// (`LogFileUtils.offsetFromFileName`): with a sign, and of any number of digits.
///
/// # Errors
/// [`OffsetError`], with which a broker gives up its start.
pub fn offset_of(name: &[u8]) -> Result<i64, OffsetError> {
    let dot = name.iter().position(|&byte| byte == b'.');
    let Some((digits, _)) = dot.and_then(|dot| name.split_at_checked(dot)) else {
        return Err(OffsetError::NoDot { size: name.len() });
    };
    let digits = String::from_utf8_lossy(digits);
    digits.parse().map_err(|_| OffsetError::NotANumber { found: digits.into_owned() })
}

/// Whether Kafka's loader gives up its start at a file of this name: it looks for an offset in it, and
/// there is none.
pub fn lacks_offset(name: &[u8]) -> bool {
    NUMBERED.iter().any(|suffix| name.ends_with(suffix)) && offset_of(name).is_err()
}
