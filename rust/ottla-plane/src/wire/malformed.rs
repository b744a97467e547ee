//! Why a frame is no request: its connection is closed.

use std::fmt;

/// A frame that is no request of its API and version. Kafka closes its connection without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedFrame {
    /// Where in the frame.
    pub position: usize,
    /// What is wrong there.
    pub kind: MalformedKind,
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedKind {
    /// The frame ends inside a field.
    Truncated {
        /// Bytes that the field needs.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// A null where none is allowed.
    Null {
        /// The field.
        field: &'static str,
    },
    /// A string longer than 32767 bytes.
    StringTooLong {
        /// The field.
        field: &'static str,
        /// Its length.
        size: u32,
    },
    /// An array of more elements than there are bytes.
    Count {
        /// The field.
        field: &'static str,
        /// The count.
        count: u32,
        /// Bytes that are left.
        left: usize,
    },
    /// A varint that does not end within five bytes, or exceeds 32 bits.
    Varint,
    /// More topics and partitions than a request may name.
    Entries {
        /// The most it may name.
        maximum: usize,
    },
    /// A version that is not served.
    Version {
        /// The version.
        version: i16,
        /// The lowest served.
        lowest: i16,
        /// The highest served.
        highest: i16,
    },
}

impl fmt::Display for MalformedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        write!(f, " (position {})", self.position)
    }
}

impl fmt::Display for MalformedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { needed, left } => {
                write!(f, "a field needs {needed} bytes, but {left} are left")
            }
            Self::Null { field } => write!(f, "{field} is null, expected a value"),
            Self::StringTooLong { field, size } => {
                write!(f, "{field} has {size} bytes, expected at most 32767")
            }
            Self::Count { field, count, left } => {
                write!(f, "{field} counts {count} elements, but {left} bytes are left")
            }
            Self::Varint => write!(f, "a varint exceeds 32 bits"),
            Self::Entries { maximum } => {
                write!(f, "more than {maximum} topics and partitions in one request")
            }
            Self::Version { version, lowest, highest } => {
                write!(f, "version {version}, expected {lowest} to {highest}")
            }
        }
    }
}

impl std::error::Error for MalformedFrame {}

/// What is read of a frame, or why it is no request.
pub(crate) type Wire<T> = Result<T, MalformedFrame>;
