//! What can be wrong with bytes: a kind with its values, and the position where it shows.
//!
//! A kind carries no free text. Its family says how Kafka's own code answers, `CORRUPT_MESSAGE`,
//! `INVALID_RECORD` and so on (`record-batch.md` §10.5); its name is stable.

use std::fmt;

/// A fault and the byte where it shows. Each layer adds its own base as the error climbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Bytes from the start of the buffer or file.
    pub position: u64,
}

/// Short for a result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error at a position of the buffer in hand.
    #[must_use]
    pub fn new(kind: ErrorKind, position: usize) -> Self {
        Self { kind, position: position as u64 }
    }

    /// The same error, seen from a buffer in which this one starts at `base`.
    #[must_use]
    pub fn within(self, base: usize) -> Self {
        Self { position: self.position.saturating_add(base as u64), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (position {})", self.kind, self.position)
    }
}

impl std::error::Error for Error {}

/// How Kafka's own code treats a fault; decides the Python exception and the error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Framing, checksum or structure: `CORRUPT_MESSAGE` (2).
    Corrupt,
    /// Framed and summed rightly, but against the rules: `INVALID_RECORD` (87).
    Invalid,
    /// A codec that does not exist, is not allowed here, or refuses its payload.
    Compression,
    /// The end of the buffer came first: no damage by itself.
    Truncated,
    /// A bound of [`crate::limits`] was reached.
    Limit,
}

/// Which part of a record a fault is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The length before the record.
    RecordLength,
    /// The attributes byte.
    Attributes,
    /// The timestamp delta.
    TimestampDelta,
    /// The offset delta.
    OffsetDelta,
    /// The key.
    Key,
    /// The value.
    Value,
    /// The number of headers.
    HeaderCount,
    /// A header's key.
    HeaderKey,
    /// A header's value.
    HeaderValue,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RecordLength => "record length",
            Self::Attributes => "record attributes",
            Self::TimestampDelta => "timestamp delta",
            Self::OffsetDelta => "offset delta",
            Self::Key => "key",
            Self::Value => "value",
            Self::HeaderCount => "header count",
            Self::HeaderKey => "header key",
            Self::HeaderValue => "header value",
        })
    }
}

/// Everything that can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields say what they are
pub enum ErrorKind {
    /// The buffer ends inside a batch.
    TruncatedBatch { needed: u64, left: u64 },
    /// The size field is below what any batch needs.
    SizeTooSmall { declared: i32, minimum: i32 },
    /// The size field is so large that adding the envelope overflows 32 bits, as in Kafka.
    SizeTooLarge { declared: i32 },
    /// A magic byte Kafka never wrote.
    UnknownMagic { magic: i8 },
    /// The stored checksum is not that of the bytes.
    CrcMismatch { stored: u32, computed: u32 },
    /// Attribute bits name a codec that does not exist (for this magic).
    UnknownCodec { codec: u8, magic: i8 },
    /// A payload its codec refuses.
    Undecodable { codec: u8 },
    /// A payload that would inflate past a bound.
    DecompressedTooLarge { limit: u64 },
    /// More records or headers than a bound allows.
    TooMany { what: &'static str, declared: u64, limit: u64 },
    /// A batch longer than a bound allows.
    BatchTooLarge { declared: u64, limit: u64 },
    /// A buffer longer than one call may refer to.
    BufferTooLarge { size: u64, limit: u64 },
    /// The record count is negative.
    RecordCountNegative { count: i32 },
    /// Bytes are left after the last record counted.
    TrailingBytes { left: u64 },
    /// A record ends before this field does.
    FieldOverrun { index: u32, field: Field, declared: i64, left: u64 },
    /// A varint that does not end within its five or ten bytes.
    VarintTooLong { index: u32, field: Field },
    /// A length or count that must not be negative.
    FieldNegative { index: u32, field: Field, declared: i64 },
    /// A record whose parts do not fill the length it declares.
    RecordLengthMismatch { index: u32, declared: i64, used: u64 },
    /// The records end before the count is reached.
    RecordsMissing { index: u32, count: u32 },
    /// A legacy record with a key or value length that leaves it.
    LegacyOverrun { field: Field, declared: i32, left: u64 },
    /// A legacy body too short for its own fields.
    LegacyTooShort { size: u64, minimum: u64 },
    /// A compressed wrapper without a value.
    WrapperWithoutValue,
    /// A compressed wrapper without a record inside.
    WrapperEmpty,
    /// A wrapper whose offset lies below its last inner offset.
    WrapperOffsetTooSmall { offset: i64, last_inner: i64 },
    /// A compressed record inside a compressed wrapper.
    WrapperNested { index: u32 },
    /// An inner record whose magic is not its wrapper's.
    InnerMagicMismatch { index: u32, magic: i8, wrapper: i8 },
    /// An inner record with a wrong checksum.
    InnerCrcMismatch { index: u32, stored: u32, computed: u32 },
    /// An offset delta that is not the one its place asks for.
    OffsetDeltaMismatch { index: u32, delta: i32, expected: i32 },
    /// An offset delta that does not go up, or passes the header's last.
    OffsetDeltaOutOfOrder { index: u32, delta: i32, previous: i32, last: i32 },
    /// A record later than the header's maximum timestamp.
    TimestampAboveMaximum { index: u32, timestamp: i64, maximum: i64 },
    /// Header count and last offset delta contradict each other.
    CountAboveOffsets { count: i32, last_offset_delta: i32 },
    /// The last offset delta is negative.
    LastOffsetDeltaNegative { last_offset_delta: i32 },
    /// The base offset is negative or the last offset leaves 64 bits.
    OffsetOutOfRange { base_offset: i64, last_offset_delta: i32 },
    /// A producer id without epoch or sequence, or these without a producer id.
    ProducerFields { producer_id: i64, producer_epoch: i16, base_sequence: i32 },
    /// A transactional batch without a producer id.
    TransactionalWithoutProducer { producer_id: i64 },
    /// A control record whose key is too short or of a negative version.
    ControlKey { index: u32, size: i64 },
    /// An end-transaction marker whose value is too short.
    ControlValue { index: u32, size: i64 },
    /// A control batch that holds more or other than one marker.
    ControlBatch { count: i32 },
}

impl ErrorKind {
    /// Stable kebab-case name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TruncatedBatch { .. } => "truncated-batch",
            Self::SizeTooSmall { .. } => "size-too-small",
            Self::SizeTooLarge { .. } => "size-too-large",
            Self::UnknownMagic { .. } => "unknown-magic",
            Self::CrcMismatch { .. } => "crc-mismatch",
            Self::UnknownCodec { .. } => "unknown-codec",
            Self::Undecodable { .. } => "undecodable",
            Self::DecompressedTooLarge { .. } => "decompressed-too-large",
            Self::TooMany { .. } => "too-many",
            Self::BatchTooLarge { .. } => "batch-too-large",
            Self::BufferTooLarge { .. } => "buffer-too-large",
            Self::RecordCountNegative { .. } => "record-count-negative",
            Self::TrailingBytes { .. } => "trailing-bytes",
            Self::FieldOverrun { .. } => "field-overrun",
            Self::VarintTooLong { .. } => "varint-too-long",
            Self::FieldNegative { .. } => "field-negative",
            Self::RecordLengthMismatch { .. } => "record-length-mismatch",
            Self::RecordsMissing { .. } => "records-missing",
            Self::LegacyOverrun { .. } => "legacy-overrun",
            Self::LegacyTooShort { .. } => "legacy-too-short",
            Self::WrapperWithoutValue => "wrapper-without-value",
            Self::WrapperEmpty => "wrapper-empty",
            Self::WrapperOffsetTooSmall { .. } => "wrapper-offset-too-small",
            Self::WrapperNested { .. } => "wrapper-nested",
            Self::InnerMagicMismatch { .. } => "inner-magic-mismatch",
            Self::InnerCrcMismatch { .. } => "inner-crc-mismatch",
            Self::OffsetDeltaMismatch { .. } => "offset-delta-mismatch",
            Self::OffsetDeltaOutOfOrder { .. } => "offset-delta-out-of-order",
            Self::TimestampAboveMaximum { .. } => "timestamp-above-maximum",
            Self::CountAboveOffsets { .. } => "count-above-offsets",
            Self::LastOffsetDeltaNegative { .. } => "last-offset-delta-negative",
            Self::OffsetOutOfRange { .. } => "offset-out-of-range",
            Self::ProducerFields { .. } => "producer-fields",
            Self::TransactionalWithoutProducer { .. } => "transactional-without-producer",
            Self::ControlKey { .. } => "control-key",
            Self::ControlValue { .. } => "control-value",
            Self::ControlBatch { .. } => "control-batch",
        }
    }

    /// How Kafka's own code treats it.
    pub fn family(&self) -> Family {
        match self {
            Self::TruncatedBatch { .. } => Family::Truncated,
            Self::SizeTooSmall { .. }
            | Self::SizeTooLarge { .. }
            | Self::UnknownMagic { .. }
            | Self::CrcMismatch { .. }
            | Self::InnerCrcMismatch { .. }
            | Self::LegacyTooShort { .. }
            | Self::LegacyOverrun { .. } => Family::Corrupt,
            Self::UnknownCodec { .. } | Self::Undecodable { .. } => Family::Compression,
            Self::DecompressedTooLarge { .. }
            | Self::TooMany { .. }
            | Self::BatchTooLarge { .. }
            | Self::BufferTooLarge { .. } => Family::Limit,
            _ => Family::Invalid,
        }
    }

    /// The error code of its family: 2 `CORRUPT_MESSAGE`, 87 `INVALID_RECORD`,
    /// 10 `MESSAGE_TOO_LARGE`, −1 where Kafka leaks an internal error.
    pub fn error_code(&self) -> i16 {
        match (self, self.family()) {
            (Self::BatchTooLarge { .. }, _) => 10,
            // zstd is a codec, only not one of magic 0 and 1: Kafka has a check for it.
            (Self::UnknownCodec { codec: 4, .. }, _) => 87,
            (_, Family::Corrupt | Family::Truncated) => 2,
            (_, Family::Compression) => -1,
            _ => 87,
        }
    }

    /// Index of the record to blame, where one is.
    pub fn record_index(&self) -> Option<u32> {
        match *self {
            Self::FieldOverrun { index, .. }
            | Self::VarintTooLong { index, .. }
            | Self::FieldNegative { index, .. }
            | Self::RecordLengthMismatch { index, .. }
            | Self::RecordsMissing { index, .. }
            | Self::WrapperNested { index }
            | Self::InnerMagicMismatch { index, .. }
            | Self::InnerCrcMismatch { index, .. }
            | Self::OffsetDeltaMismatch { index, .. }
            | Self::OffsetDeltaOutOfOrder { index, .. }
            | Self::TimestampAboveMaximum { index, .. }
            | Self::ControlKey { index, .. }
            | Self::ControlValue { index, .. } => Some(index),
            _ => None,
        }
    }

    /// What should have been there and what is, for a report's columns.
    pub fn expected_and_found(&self) -> (String, String) {
        let pair = |expected: &dyn fmt::Display, found: &dyn fmt::Display| {
            (expected.to_string(), found.to_string())
        };
        match *self {
            Self::TruncatedBatch { needed, left } => {
                pair(&format_args!("{needed} bytes"), &format_args!("{left} bytes"))
            }
            Self::SizeTooSmall { declared, minimum } => {
                pair(&format_args!("at least {minimum}"), &declared)
            }
            Self::SizeTooLarge { declared } => pair(&"below 2147483636", &declared),
            Self::UnknownMagic { magic } => pair(&"0, 1 or 2", &magic),
            Self::CrcMismatch { stored, computed }
            | Self::InnerCrcMismatch { stored, computed, .. } => {
                pair(&format_args!("{stored:08x}"), &format_args!("{computed:08x}"))
            }
            Self::UnknownCodec { codec, magic } => {
                pair(&(if magic < 2 { "0 to 3" } else { "0 to 4" }), &codec)
            }
            Self::Undecodable { codec } => {
                pair(&"a payload its codec takes", &format_args!("codec {codec} refuses it"))
            }
            Self::DecompressedTooLarge { limit } => {
                pair(&format_args!("at most {limit} bytes"), &"more")
            }
            Self::TooMany { declared, limit, .. } | Self::BatchTooLarge { declared, limit } => {
                pair(&format_args!("at most {limit}"), &declared)
            }
            Self::BufferTooLarge { size, limit } => {
                pair(&format_args!("at most {limit} bytes"), &size)
            }
            Self::RecordCountNegative { count } => pair(&"0 or more", &count),
            Self::TrailingBytes { left } => pair(&"0 bytes", &left),
            Self::FieldOverrun { declared, left, .. } => {
                pair(&format_args!("at most {left}"), &declared)
            }
            Self::VarintTooLong { .. } => pair(&"an end within the varint's bytes", &"none"),
            Self::FieldNegative { declared, .. } => pair(&"0 or more", &declared),
            Self::RecordLengthMismatch { declared, used, .. } => pair(&declared, &used),
            Self::RecordsMissing { index, count } => pair(&count, &index),
            Self::LegacyOverrun { declared, left, .. } => {
                pair(&format_args!("at most {left}"), &declared)
            }
            Self::LegacyTooShort { size, minimum } => {
                pair(&format_args!("at least {minimum}"), &size)
            }
            Self::WrapperWithoutValue => pair(&"compressed records", &"null"),
            Self::WrapperEmpty => pair(&"at least one record", &"none"),
            Self::WrapperOffsetTooSmall { offset, last_inner } => {
                pair(&format_args!("at least {last_inner}"), &offset)
            }
            Self::WrapperNested { .. } => pair(&"a plain record", &"a compressed one"),
            Self::InnerMagicMismatch { magic, wrapper, .. } => pair(&wrapper, &magic),
            Self::OffsetDeltaMismatch { delta, expected, .. } => pair(&expected, &delta),
            Self::OffsetDeltaOutOfOrder { delta, previous, last, .. } => {
                pair(&format_args!("{} to {last}", i64::from(previous) + 1), &delta)
            }
            Self::TimestampAboveMaximum { timestamp, maximum, .. } => {
                pair(&format_args!("at most {maximum}"), &timestamp)
            }
            Self::CountAboveOffsets { count, last_offset_delta } => {
                pair(&format_args!("at most {}", i64::from(last_offset_delta) + 1), &count)
            }
            Self::LastOffsetDeltaNegative { last_offset_delta } => {
                pair(&"0 or more", &last_offset_delta)
            }
            Self::OffsetOutOfRange { base_offset, last_offset_delta } => {
                pair(&"0 to 2^63-1", &format_args!("{base_offset} + {last_offset_delta}"))
            }
            Self::ProducerFields { producer_id, producer_epoch, base_sequence } => pair(
                &"all of producer id, epoch and sequence, or none",
                &format_args!("{producer_id}, {producer_epoch}, {base_sequence}"),
            ),
            Self::TransactionalWithoutProducer { producer_id } => pair(&"0 or more", &producer_id),
            Self::ControlKey { size, .. } => {
                pair(&"4 bytes, version 0 or more", &format_args!("{size} bytes"))
            }
            Self::ControlValue { size, .. } => pair(&"6 bytes", &format_args!("{size} bytes")),
            Self::ControlBatch { count } => pair(&"1 marker", &format_args!("{count} records")),
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (expected, found) = self.expected_and_found();
        if let Some(index) = self.record_index() {
            write!(f, "record {index}: ")?;
        }
        match *self {
            Self::TruncatedBatch { .. } => {
                write!(f, "the buffer ends inside a batch: {expected} needed, {found} left")
            }
            Self::SizeTooSmall { .. } | Self::SizeTooLarge { .. } => {
                write!(f, "batch size {found} out of range, expected {expected}")
            }
            Self::UnknownMagic { .. } => write!(f, "magic {found}, expected {expected}"),
            Self::CrcMismatch { .. } | Self::InnerCrcMismatch { .. } => {
                write!(f, "stored CRC {expected}, but the bytes have {found}")
            }
            Self::UnknownCodec { magic, .. } => {
                write!(f, "codec {found}, expected {expected} with magic {magic}")
            }
            Self::Undecodable { codec } => {
                write!(f, "the payload is not what codec {codec} writes")
            }
            Self::DecompressedTooLarge { limit } => {
                write!(f, "the payload inflates past the bound of {limit} bytes")
            }
            Self::TooMany { what, .. } => write!(f, "{found} {what}, expected {expected}"),
            Self::BatchTooLarge { .. } => write!(f, "batch of {found} bytes, expected {expected}"),
            Self::BufferTooLarge { .. } => {
                write!(f, "data of {found} bytes, expected {expected}; read it in parts")
            }
            Self::RecordCountNegative { .. } => write!(f, "record count {found} is negative"),
            Self::TrailingBytes { .. } => write!(f, "{found} bytes left after the last record"),
            Self::FieldOverrun { field, left, .. } | Self::LegacyOverrun { field, left, .. } => {
                write!(f, "{field} of {found} bytes, but {left} are left")
            }
            Self::VarintTooLong { field, .. } => write!(f, "the varint of the {field} has no end"),
            Self::FieldNegative { field, .. } => write!(f, "{field} {found} is negative"),
            Self::RecordLengthMismatch { .. } => {
                write!(f, "length {expected}, but its fields take {found} bytes")
            }
            Self::RecordsMissing { .. } => {
                write!(f, "the records end after {found} of {expected}")
            }
            Self::LegacyTooShort { .. } => write!(f, "record of {found} bytes, {expected} needed"),
            Self::WrapperWithoutValue => f.write_str("compressed wrapper without a value"),
            Self::WrapperEmpty => f.write_str("compressed wrapper without a record"),
            Self::WrapperOffsetTooSmall { .. } => {
                write!(f, "wrapper offset {found}, expected {expected}, its last inner offset")
            }
            Self::WrapperNested { .. } => f.write_str("compressed inside a compressed wrapper"),
            Self::InnerMagicMismatch { .. } => {
                write!(f, "magic {found} inside a wrapper of magic {expected}")
            }
            Self::OffsetDeltaMismatch { .. } | Self::OffsetDeltaOutOfOrder { .. } => {
                write!(f, "offset delta {found}, expected {expected}")
            }
            Self::TimestampAboveMaximum { .. } => {
                write!(f, "timestamp {found}, but the header's maximum allows {expected}")
            }
            Self::CountAboveOffsets { .. } => {
                write!(f, "{found} records, but the last offset delta allows {expected}")
            }
            Self::LastOffsetDeltaNegative { .. } => {
                write!(f, "last offset delta {found} is negative")
            }
            Self::OffsetOutOfRange { .. } => write!(f, "offsets {found}, expected {expected}"),
            Self::ProducerFields { .. } => {
                write!(f, "producer id, epoch and sequence are {found}; expected {expected}")
            }
            Self::TransactionalWithoutProducer { .. } => {
                write!(f, "transactional batch with producer id {found}")
            }
            Self::ControlKey { .. } => write!(f, "control key of {found}, expected {expected}"),
            Self::ControlValue { .. } => {
                write!(f, "end-transaction marker with a value of {found}, expected {expected}")
            }
            Self::ControlBatch { .. } => write!(f, "control batch of {found}, expected {expected}"),
        }
    }
}
