//! What can be wrong with bytes: a kind with its values, and the position where it shows.
//!
//! A kind carries no free text. Its name is stable, and its family says how Kafka's own code answers
//! (`docs/kafka/record-batch.md` §10.5).

mod kind;

use std::fmt;

pub use kind::ErrorKind;

/// A fault and the position where it shows. Each layer adds its own base on the way up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Bytes from the start of the buffer or file.
    pub position: u64,
}

/// A result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error at a position of the buffer in hand.
    #[must_use]
    pub fn new(kind: ErrorKind, position: usize) -> Self {
        Self { kind, position: position as u64 }
    }

    /// The same error in a buffer where the one in hand begins at `base`.
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
