//! Why a scan ended without a result.

use std::fmt;
use std::io;

/// Why a scan ended without a result.
#[derive(Debug)]
pub enum ScanError {
    /// The source does not report its size.
    Io(io::Error),
    /// The progress callback stopped the scan.
    Stopped,
    /// The chunk was scanned at another level than the scanner has.
    WrongLevel,
    /// The chunk does not begin with the segment.
    NotAnchored,
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Io(error) => return error.fmt(f),
            Self::Stopped => "the scan was stopped",
            Self::WrongLevel => {
                "the chunk was scanned at another level: use a scanner of that level"
            }
            Self::NotAnchored => {
                "the chunk does not begin with the segment: merge it with the chunks before it"
            }
        })
    }
}

impl std::error::Error for ScanError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Stopped | Self::WrongLevel | Self::NotAnchored => None,
        }
    }
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
