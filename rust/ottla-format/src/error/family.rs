//! How Kafka treats a fault, and which part of a record it is in.

use std::fmt;

/// How Kafka's own code treats a fault. Decides the Python exception and the error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Framing, checksum or structure: `CORRUPT_MESSAGE` (2).
    Corrupt,
    /// Framing and checksum are right, but a rule is broken: `INVALID_RECORD` (87).
    Invalid,
    /// A codec that does not exist, is not allowed here, or refuses its payload.
    Compression,
    /// The buffer ends inside a batch, which by itself is no damage.
    Truncated,
    /// A bound of [`limits`](crate::limits) is exceeded.
    Limit,
}

/// The part of a record that a fault is in.
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
