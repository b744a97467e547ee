//! `partition.metadata`: to which topic a partition's directory belongs (`PartitionMetadataFile`,
//! KIP-516).
//!
//! ```text
//! version: 0
//! topic_id: 0m9DrTmLQPuPkwYGQIy5Zw
//! ```

use super::text::{TextError, TextFault, lines, text};

/// Characters of a topic id: 128 bits as base64url without padding.
const TOPIC_ID_CHARACTERS: usize = 22;

/// The digits of base64url.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The topic id of a `partition.metadata`.
///
/// # Errors
/// [`TextFault::NotText`], [`TextFault::VersionMissing`] and [`TextFault::TopicId`].
///
/// # Examples
/// ```
/// use ottla_log::sidefiles::metadata::read_partition_metadata;
///
/// let file = b"version: 0\ntopic_id: 0m9DrTmLQPuPkwYGQIy5Zw\n";
/// assert_eq!(read_partition_metadata(file).unwrap(), "0m9DrTmLQPuPkwYGQIy5Zw");
/// ```
pub fn read_partition_metadata(data: &[u8]) -> Result<&str, TextError> {
    let mut lines = lines(text(data)?);
    let first = lines.next().unwrap_or_default();
    if value(first).and_then(|value| value.parse::<i32>().ok()).is_none_or(|version| version < 0) {
        return Err(TextError::new(TextFault::VersionMissing, 1, "version: 0").found(first));
    }
    let second = lines.next().unwrap_or_default();
    value(second).filter(|value| is_topic_id(value)).ok_or_else(|| {
        let expected = format!("topic_id: {TOPIC_ID_CHARACTERS} base64url characters");
        TextError::new(TextFault::TopicId, 2, expected).found(second)
    })
}

/// The characters of a topic id: base64url without padding.
///
/// # Examples
/// ```
/// use ottla_log::sidefiles::metadata::topic_id_text;
///
/// assert_eq!(topic_id_text([255; 16]), "_____________________w");
/// ```
pub fn topic_id_text(topic_id: [u8; 16]) -> String {
    let id = u128::from_be_bytes(topic_id);
    // The last character has two bits of the id before four zeros.
    let digits =
        (0..21).map(|number: u32| (id >> (122u32.saturating_sub(number.saturating_mul(6)))) & 63);
    let last = (id & 3) << 4;
    let character = |digit: u128| ALPHABET.get(digit as usize).copied().map_or('A', char::from);
    digits.chain([last]).map(character).collect()
}

/// The bytes of a `partition.metadata`.
pub fn write_partition_metadata(topic_id: [u8; 16]) -> Vec<u8> {
    format!("version: 0\ntopic_id: {}\n", topic_id_text(topic_id)).into_bytes()
}

/// What follows the colon and its blanks. Kafka does not look at the names before them.
fn value(line: &str) -> Option<&str> {
    let (_, value) = line.split_once(':')?;
    value.starts_with([' ', '\t']).then(|| value.trim_start_matches([' ', '\t']))
}

fn is_topic_id(value: &str) -> bool {
    value.len() == TOPIC_ID_CHARACTERS
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        && value.bytes().any(|byte| byte != b'A')
}
