//! Message sets of magic 0 and 1: plain records and compressed wrappers.
//!
//! ```text
//! 0       8     12    16     17    18          (magic 1)      26
//! │offset │size │crc  │magic │attr │timestamp (magic 1 only)  │key length│key│value length│value
//!               └ size counts from here; the CRC-32 covers from the magic byte to the end
//! ```
//!
//! The value of a wrapper is a compressed message set. Inner offsets of magic 0 are absolute; those of
//! magic 1 are relative, and the wrapper has the absolute offset of the last one
//! (`docs/kafka/record-batch.md` §2).

use crate::attributes::{CODEC_MASK, Compression, LOG_APPEND_TIME, TimestampType};
use crate::error::{Error, ErrorKind, Field, Result};
use crate::header::{LOG_OVERHEAD, MIN_SIZE, field, read_i32, read_i64};
use ottla_kernels::gzip::crc32;

/// Bytes of the smallest body of magic 0: no key and no value.
pub const MIN_BODY_BYTES: usize = 14;
/// Bytes of the smallest body of magic 1: no key and no value.
pub const MIN_BODY_BYTES_V1: usize = 22;

/// Where the CRC begins in a body.
pub const CRC: usize = 0;
/// Where the magic byte stands in a body; the CRC covers the body from here to its end.
pub const MAGIC: usize = 4;
/// Where the attributes byte stands in a body.
pub const ATTRIBUTES: usize = 5;
/// Where the timestamp begins in a body of magic 1.
pub const TIMESTAMP: usize = 6;

/// Where the timestamp ends in a body of magic 1.
pub const TIMESTAMP_END: usize = 14;

/// Where the key length begins in a body.
pub fn key_position(magic: i8) -> usize {
    if magic == 0 { TIMESTAMP } else { TIMESTAMP_END }
}

/// Bytes of the smallest body of a magic.
pub fn min_body_bytes(magic: i8) -> usize {
    if magic == 0 { MIN_BODY_BYTES } else { MIN_BODY_BYTES_V1 }
}

/// The magic byte of a body; 0 where the body is too short to have one.
pub fn magic_of(body: &[u8]) -> i8 {
    body.get(MAGIC).map_or(0, |&byte| i8::from_be_bytes([byte]))
}

/// Offset, size and body of one entry of a message set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As stored: absolute, or relative inside a wrapper of magic 1.
    pub offset: i64,
    /// Where the body begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

impl Entry {
    /// The body of the entry in the message set it was found in; `None` in one that is shorter.
    pub fn body<'a>(&self, set: &'a [u8]) -> Option<&'a [u8]> {
        set.get(self.start..self.end)
    }
}

/// The fields of one record of magic 0 or 1, borrowed from its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct LegacyRecord<'a> {
    pub magic: i8,
    pub attributes: u8,
    /// −1 with magic 0.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
}

/// Stored and computed CRC-32 of a body; `None` where it is too short for them.
pub fn checksums(body: &[u8]) -> Option<(u32, u32)> {
    let stored = read_i32(body, CRC)? as u32;
    Some((stored, crc32(0, body.get(MAGIC..)?)))
}

/// Refuses a body that is too short or whose stored checksum is not that of its bytes.
///
/// # Errors
/// [`ErrorKind::LegacyTooShort`] and [`ErrorKind::CrcMismatch`], at position 0.
pub fn verify_body(body: &[u8]) -> Result<()> {
    let sums = checksums(body).filter(|_| body.len() >= MIN_BODY_BYTES);
    let (stored, computed) = sums.ok_or_else(|| too_short(body, MIN_BODY_BYTES))?;
    if stored == computed {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::CrcMismatch { stored, computed }, 0))
    }
}

fn too_short(body: &[u8], minimum: usize) -> Error {
    let (size, minimum) = (body.len() as u64, minimum as u64);
    Error::new(ErrorKind::LegacyTooShort { size, minimum }, 0)
}

/// The bytes behind the length at `at`, and the position after them. Any negative length is null.
fn sized(body: &[u8], at: usize, field: Field) -> Result<(Option<&[u8]>, usize)> {
    let start = at.saturating_add(size_of::<i32>());
    let short = || Error { position: at as u64, ..too_short(body, start) };
    let declared = read_i32(body, at).ok_or_else(short)?;
    let Ok(length) = usize::try_from(declared) else { return Ok((None, start)) };
    let rest = body.get(start..).ok_or_else(short)?;
    let bytes = rest.get(..length).ok_or_else(|| {
        let left = rest.len() as u64;
        Error::new(ErrorKind::LegacyOverrun { field, declared, left }, at)
    })?;
    Ok((Some(bytes), start.saturating_add(length)))
}

/// The fields at the beginning of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct LegacyHeader {
    pub crc: u32,
    pub attributes: u8,
    /// −1 with magic 0.
    pub timestamp: i64,
}

/// Reads the fields at the beginning of a body of this magic.
///
/// # Errors
/// [`ErrorKind::LegacyTooShort`], at position 0.
pub fn read_header(magic: i8, body: &[u8]) -> Result<LegacyHeader> {
    let (Some(crc), Some(&attributes)) = (read_i32(body, CRC), body.get(ATTRIBUTES)) else {
        return Err(too_short(body, MIN_BODY_BYTES));
    };
    let timestamp = if magic == 0 {
        -1
    } else {
        read_i64(body, TIMESTAMP).ok_or_else(|| too_short(body, MIN_BODY_BYTES_V1))?
    };
    Ok(LegacyHeader { crc: crc as u32, attributes, timestamp })
}

/// Parses a body. Like Kafka, ignores bytes behind the value.
///
/// # Errors
/// [`ErrorKind::LegacyTooShort`] and [`ErrorKind::LegacyOverrun`]; positions count from the body.
pub fn read_body(body: &[u8]) -> Result<LegacyRecord<'_>> {
    if body.len() < MIN_BODY_BYTES {
        return Err(too_short(body, MIN_BODY_BYTES));
    }
    let magic = magic_of(body);
    let LegacyHeader { attributes, timestamp, .. } = read_header(magic, body)?;
    let (key, value_at) = sized(body, key_position(magic), Field::Key)?;
    let (value, _) = sized(body, value_at, Field::Value)?;
    Ok(LegacyRecord { magic, attributes, timestamp, key, value })
}

/// The timestamp type of a record of this magic with these attributes.
pub fn timestamp_type(magic: i8, attributes: u8) -> TimestampType {
    if magic == 0 {
        TimestampType::None
    } else if u16::from(attributes) & LOG_APPEND_TIME == 0 {
        TimestampType::CreateTime
    } else {
        TimestampType::LogAppendTime
    }
}

/// The codec in the attributes of a record of this magic.
///
/// # Errors
/// [`ErrorKind::UnknownCodec`]: magic 0 and 1 have none above lz4.
pub fn compression(magic: i8, attributes: u8) -> Result<Compression> {
    let codec = attributes & CODEC_MASK as u8;
    match Compression::from_id(codec) {
        Some(known) if known != Compression::Zstd => Ok(known),
        _ => Err(Error::new(ErrorKind::UnknownCodec { codec, magic }, 0)),
    }
}

/// The entries of an inflated message set. Like Kafka, drops a truncated last entry without a word.
///
/// # Errors
/// [`ErrorKind::SizeTooSmall`] for an entry below 14 bytes, [`ErrorKind::WrapperEmpty`] for a set
/// without an entry.
pub fn entries(set: &[u8]) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    let mut at = 0usize;
    while let (Some(offset), Some(size)) =
        (read_i64(set, at), read_i32(set, at.saturating_add(field::BATCH_LENGTH)))
    {
        if size < MIN_SIZE {
            let kind = ErrorKind::SizeTooSmall { declared: size, minimum: MIN_SIZE };
            return Err(Error::new(kind, at));
        }
        let start = at.saturating_add(LOG_OVERHEAD);
        let Some(end) = start.checked_add(size as usize).filter(|&end| end <= set.len()) else {
            break;
        };
        found.push(Entry { offset, start, end });
        at = end;
    }
    if found.is_empty() {
        return Err(Error::new(ErrorKind::WrapperEmpty, 0));
    }
    Ok(found)
}

/// What stored offsets of a wrapper's entries count from: absolute offset = base + stored offset.
///
/// # Errors
/// [`ErrorKind::WrapperOffsetTooSmall`].
pub fn absolute_base(magic: i8, wrapper_offset: i64, entries: &[Entry]) -> Result<i64> {
    let Some(last) = entries.last() else { return Ok(0) };
    // Some versions of librdkafka leave a wrapper's offset at 0: Kafka then counts from 0.
    if magic == 0 || wrapper_offset == 0 {
        return Ok(0);
    }
    if wrapper_offset < last.offset {
        let kind =
            ErrorKind::WrapperOffsetTooSmall { offset: wrapper_offset, last_inner: last.offset };
        return Err(Error::new(kind, 0));
    }
    Ok(wrapper_offset.wrapping_sub(last.offset))
}
