//! What ends a step of a start: an exception of Kafka, or something that keeps us from telling.

use std::io;

/// Why a step ended.
#[derive(Debug)]
pub(super) enum Stop {
    /// Framing or checksum: `CorruptRecordException`.
    Corrupt(String),
    /// Records that contradict themselves: `InvalidRecordException`.
    InvalidRecord(String),
    /// An entry that may not follow in an index: `InvalidOffsetException`.
    InvalidOffset(String),
    /// An offset too far from the base of its segment: `LogSegmentOffsetOverflowException`.
    Overflow { base_offset: i64 },
    /// Any other exception: its class and message.
    Other { class: &'static str, message: String },
    /// A file that cannot be read.
    Unreadable(io::Error),
    /// More than this engine holds in memory.
    Limit(String),
}

impl Stop {
    pub(super) fn other(class: &'static str, message: impl Into<String>) -> Self {
        Self::Other { class, message: message.into() }
    }

    pub(super) fn illegal_argument(message: impl Into<String>) -> Self {
        Self::other("java.lang.IllegalArgumentException", message)
    }

    pub(super) fn kafka(message: impl Into<String>) -> Self {
        Self::other("org.apache.kafka.common.KafkaException", message)
    }

    /// The exception with which the broker gives up; an error where nothing can be told.
    pub(super) fn refusal(self) -> io::Result<super::Refusal> {
        let (class, message) = match self {
            Self::Corrupt(message) => {
                ("org.apache.kafka.common.errors.CorruptRecordException", message)
            }
            Self::InvalidRecord(message) => {
                ("org.apache.kafka.common.InvalidRecordException", message)
            }
            Self::InvalidOffset(message) => {
                ("org.apache.kafka.common.errors.InvalidOffsetException", message)
            }
            Self::Overflow { base_offset } => (
                "org.apache.kafka.common.errors.LogSegmentOffsetOverflowException",
                format!("Detected offset overflow in the segment at offset {base_offset}"),
            ),
            Self::Other { class, message } => (class, message),
            Self::Unreadable(error) => return Err(error),
            Self::Limit(message) => return Err(io::Error::other(message)),
        };
        Ok(super::Refusal { class, message })
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl From<crate::names::OffsetError> for Stop {
    fn from(error: crate::names::OffsetError) -> Self {
        Self::other(error.class(), error.to_string())
    }
}
