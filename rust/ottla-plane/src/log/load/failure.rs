//! Why the directory of a partition cannot be loaded.

use crate::log::directory::LogDirectory;
use ottla_log::recovery::LoadError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why the directory of a partition cannot be loaded.
#[derive(Debug)]
pub enum LoadFailure {
    /// A file cannot be read or changed.
    Io {
        /// The file, or the directory.
        path: PathBuf,
        /// What the operating system reports.
        error: io::Error,
    },
    /// It is a directory of another topic.
    OtherTopic {
        /// The directory.
        path: PathBuf,
        /// The id in its `partition.metadata`.
        found: String,
        /// The id of the topic that was asked for.
        expected: String,
    },
    /// A broker does not start over it. Nothing is changed.
    Refused {
        /// The directory.
        path: PathBuf,
        /// The exception with which Kafka gives up.
        reason: String,
    },
}

impl LoadFailure {
    pub(super) fn of_file(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), error }
    }

    pub(super) fn of_directory(directory: &LogDirectory, error: LoadError) -> Self {
        let path = directory.path().to_owned();
        match error {
            LoadError::Io { file, error } => {
                let path = file.map_or(path, |name| directory.file(&name));
                Self::Io { path, error }
            }
            error => Self::Refused { path, reason: error.to_string() },
        }
    }
}

impl fmt::Display for LoadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::OtherTopic { path, found, expected } => write!(
                f,
                "{} belongs to the topic with id {found}, expected {expected}: move it away, or open \
                 the topic whose it is",
                path.display()
            ),
            Self::Refused { path, reason } => write!(
                f,
                "{} cannot be loaded, nor does Kafka start over it: {reason}; `ottla audit` tells \
                 what to do",
                path.display()
            ),
        }
    }
}

impl std::error::Error for LoadFailure {}
