//! Message sets of magic 0 and 1: plain records and compressed wrappers.
//!
//! ```text
//! 0       8     12    16     17    18          (magic 1)      26
//! │offset │size │crc  │magic │attr │timestamp (magic 1 only)  │key length│key│value length│value
//!               └ size counts from here; the CRC-32 covers from the magic byte to the end
//! ```
//!
//! A wrapper's value is a compressed message set. Inner offsets of magic 0 are absolute; those of
//! magic 1 are relative, and the wrapper carries the absolute offset of the last one.

use crate::attributes::{Compression, LOG_APPEND_TIME, TimestampType};
use crate::error::{Error, ErrorKind, Field, Result};
use crate::header::{LOG_OVERHEAD, read_i32, read_i64};

/// Bytes of the smallest body: magic 0 without key and value.
pub const MIN_BODY: usize = 14;

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

/// The fields of one legacy record, borrowed from its body.
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

/// Stored and computed CRC-32 of a body (`magic` byte to the end).
pub fn checksums(body: &[u8]) -> Option<(u32, u32)> {
    let stored = read_i32(body, 0)? as u32;
    Some((stored, crc32fast::hash(body.get(4..)?)))
}

/// A length at `at` and as many bytes behind it; any negative length is null.
fn sized(body: &[u8], at: usize, field: Field) -> Result<(Option<&[u8]>, usize)> {
    let short = || {
        Error::new(
            ErrorKind::LegacyTooShort { size: body.len() as u64, minimum: (at + 4) as u64 },
            at,
        )
    };
    let declared = read_i32(body, at).ok_or_else(short)?;
    let start = at + 4;
    let Ok(length) = usize::try_from(declared) else { return Ok((None, start)) };
    let rest = body.get(start..).unwrap_or_default();
    let bytes = rest.get(..length).ok_or_else(|| {
        let left = rest.len() as u64;
        Error::new(ErrorKind::LegacyOverrun { field, declared, left }, at)
    })?;
    Ok((Some(bytes), start + length))
}

/// Parses a body. Bytes behind the value are ignored, as Kafka does.
///
/// # Errors
/// [`ErrorKind::LegacyTooShort`] and [`ErrorKind::LegacyOverrun`]; positions count from the body.
pub fn read_body(body: &[u8]) -> Result<LegacyRecord<'_>> {
    let short = |minimum: usize| {
        let size = body.len() as u64;
        Error::new(ErrorKind::LegacyTooShort { size, minimum: minimum as u64 }, 0)
    };
    if body.len() < MIN_BODY {
        return Err(short(MIN_BODY));
    }
    let (Some(&magic), Some(&attributes)) = (body.get(4), body.get(5)) else {
        return Err(short(MIN_BODY));
    };
    let magic = i8::from_be_bytes([magic]);
    let (timestamp, key_at) =
        if magic == 0 { (-1, 6) } else { (read_i64(body, 6).ok_or_else(|| short(22))?, 14) };
    let (key, value_at) = sized(body, key_at, Field::Key)?;
    let (value, _) = sized(body, value_at, Field::Value)?;
    Ok(LegacyRecord { magic, attributes, timestamp, key, value })
}

/// Who gave the timestamp of a record with this magic and these attributes.
pub fn timestamp_type(magic: i8, attributes: u8) -> TimestampType {
    if magic == 0 {
        TimestampType::None
    } else if u16::from(attributes) & LOG_APPEND_TIME == 0 {
        TimestampType::CreateTime
    } else {
        TimestampType::LogAppendTime
    }
}

/// The codec that attributes name.
///
/// # Errors
/// [`ErrorKind::UnknownCodec`]: magic 0 and 1 know none above lz4.
pub fn compression(magic: i8, attributes: u8) -> Result<Compression> {
    let codec = attributes & 7;
    match Compression::from_id(codec) {
        Some(known) if known != Compression::Zstd => Ok(known),
        _ => Err(Error::new(ErrorKind::UnknownCodec { codec, magic }, 0)),
    }
}

/// The entries of an inflated message set. A last entry that is cut is dropped silently, as Kafka
/// does.
///
/// # Errors
/// [`ErrorKind::SizeTooSmall`] for an entry below 14 bytes, [`ErrorKind::WrapperEmpty`] for none,
/// [`ErrorKind::WrapperNested`] and [`ErrorKind::UnknownCodec`] for a compressed one.
pub fn entries(set: &[u8]) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let (Some(offset), Some(size)) = (read_i64(set, at), read_i32(set, at + 8)) {
        let minimum = MIN_BODY as i32;
        if size < minimum {
            return Err(Error::new(ErrorKind::SizeTooSmall { declared: size, minimum }, at));
        }
        let start = at + LOG_OVERHEAD;
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

/// The offset of the first inner record counts from this: absolute offset = base + stored offset.
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
