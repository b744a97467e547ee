//! What ends a step of a start: an exception of Kafka's, or what keeps a start from being predicted.

use crate::names::OffsetError;
use crate::sidefiles::snapshot::SnapshotError;
use std::fmt;
use std::io;

/// An exception with which a broker gives up its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its class.
    pub class: &'static str,
    /// Its message, as the broker logs it or near to that.
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

/// Why a partition could not be loaded or rebuilt.
#[derive(Debug)]
pub enum LoadError {
    /// A file cannot be read, or, without a name, the directory.
    Io {
        /// Name of the file.
        file: Option<Vec<u8>>,
        /// What the operating system reports.
        error: io::Error,
    },
    /// The caller asked to stop.
    Stopped,
    /// It takes more memory than this crate spends on it.
    Limit(String),
    /// A broker gives up on the segment.
    Refused(Refusal),
    /// The bytes given as a snapshot are none.
    Snapshot(SnapshotError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { error, .. } => error.fmt(f),
            Self::Stopped => f.write_str("stopped by the caller"),
            Self::Limit(message) => f.write_str(message),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Snapshot(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

impl LoadError {
    pub(super) fn of_file(name: &[u8], error: io::Error) -> Self {
        Self::Io { file: Some(name.to_vec()), error }
    }
}

/// Why a step ended.
#[derive(Debug)]
pub(super) enum Interruption {
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
    /// No exception of Kafka's.
    Failed(LoadError),
}

impl Interruption {
    pub(super) fn other(class: &'static str, message: impl Into<String>) -> Self {
        Self::Other { class, message: message.into() }
    }

    pub(super) fn illegal_argument(message: impl Into<String>) -> Self {
        Self::other("java.lang.IllegalArgumentException", message)
    }

    pub(super) fn kafka(message: impl Into<String>) -> Self {
        Self::other("org.apache.kafka.common.KafkaException", message)
    }

    pub(super) fn storage(message: impl Into<String>) -> Self {
        Self::other("org.apache.kafka.common.errors.KafkaStorageException", message)
    }

    pub(super) fn limit(message: String) -> Self {
        Self::Failed(LoadError::Limit(message))
    }

    /// The exception with which the broker gives up.
    pub(super) fn refusal(self) -> Result<Refusal, LoadError> {
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
            Self::Failed(error) => return Err(error),
        };
        Ok(Refusal { class, message })
    }
}

impl From<LoadError> for Interruption {
    fn from(error: LoadError) -> Self {
        Self::Failed(error)
    }
}

impl From<OffsetError> for Interruption {
    fn from(error: OffsetError) -> Self {
        Self::other(error.class(), error.to_string())
    }
}

impl From<Interruption> for LoadError {
    fn from(interruption: Interruption) -> Self {
        interruption.refusal().map_or_else(|error| error, Self::Refused)
    }
}
