//! A fault and its position.

use std::fmt;

use super::ErrorKind;

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
