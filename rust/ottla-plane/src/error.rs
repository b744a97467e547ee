//! Why something is not done to a partition.

use crate::log::load::LoadFailure;
use crate::topics::Handle;
use ottla_format::builder::BuildError;
use ottla_format::error_code::ErrorCode;
use ottla_log::producers::ProducerRefusal;
use std::fmt;
use std::io;

/// Why something is not done to a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaneError {
    /// There is no such partition.
    Closed {
        /// What was named.
        handle: Handle,
    },
    /// The code that the protocol has for it, and what was found.
    Refused {
        /// The code.
        error: ErrorCode,
        /// What was found and expected.
        message: String,
    },
    /// A marker that cannot be built: a negative producer id.
    Marker(BuildError),
}

/// Why a partition is not opened.
#[derive(Debug)]
pub enum OpenError {
    /// It is open already, or its topic has another id, or the id another topic.
    Taken,
    /// Its directory cannot be used.
    Io(io::Error),
    /// Its directory cannot be loaded.
    Load(LoadFailure),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken => {
                f.write_str("is open already, or its topic has another id, or the id another topic")
            }
            Self::Io(error) => error.fmt(f),
            Self::Load(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for PlaneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { handle } => write!(f, "no partition has the handle {handle}"),
            Self::Refused { message, .. } => f.write_str(message),
            Self::Marker(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PlaneError {}

impl From<io::Error> for PlaneError {
    fn from(error: io::Error) -> Self {
        Self::Refused { error: ErrorCode::KafkaStorageError, message: error.to_string() }
    }
}

impl From<ProducerRefusal> for PlaneError {
    fn from(refusal: ProducerRefusal) -> Self {
        Self::Refused { error: refusal.error(), message: refusal.to_string() }
    }
}
