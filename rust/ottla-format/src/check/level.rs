//! How much of a batch is checked.

use serde::{Deserialize, Serialize};

/// How much of a batch is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Framing and checksum.
    Crc,
    /// Also that every record parses.
    Decode,
    /// Also that every rule holds.
    Full,
}

impl Level {
    /// The level of a name: `crc`, `decode` or `full`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "crc" => Some(Self::Crc),
            "decode" => Some(Self::Decode),
            "full" => Some(Self::Full),
            _ => None,
        }
    }
}
