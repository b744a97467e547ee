//! Control records: the markers in control batches.

use crate::error::ErrorKind;
use crate::header::{read_i16, read_i32};
use serde::{Deserialize, Serialize};

/// Types of control records: the number in the key.
#[allow(missing_docs)] // Kafka's own names
pub mod control_type {
    pub const ABORT: i16 = 0;
    pub const COMMIT: i16 = 1;
    pub const LEADER_CHANGE: i16 = 2;
    pub const SNAPSHOT_HEADER: i16 = 3;
    pub const SNAPSHOT_FOOTER: i16 = 4;
    pub const KRAFT_VERSION: i16 = 5;
    pub const KRAFT_VOTERS: i16 = 6;
}

/// What a control record says (`docs/kafka/record-batch.md` §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // Kafka's own names
pub enum ControlRecord {
    Abort {
        coordinator_epoch: i32,
    },
    Commit {
        coordinator_epoch: i32,
    },
    LeaderChange,
    SnapshotHeader,
    SnapshotFooter,
    KraftVersion,
    KraftVoters,
    /// A type this engine does not know; consumers ignore it.
    Unknown {
        kind: i16,
    },
}

impl ControlRecord {
    /// Reads key and value of record `index` of a control batch.
    ///
    /// # Errors
    /// [`ErrorKind::ControlKey`] and [`ErrorKind::ControlValue`].
    pub fn read(index: u32, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Self, ErrorKind> {
        let kind = kind_of(index, key)?;
        let coordinator_epoch = || {
            let epoch = versioned(value).and_then(|value| read_i32(value, 2));
            epoch.ok_or(ErrorKind::ControlValue { index, size: size_of(value) })
        };
        Ok(match kind {
            control_type::ABORT => Self::Abort { coordinator_epoch: coordinator_epoch()? },
            control_type::COMMIT => Self::Commit { coordinator_epoch: coordinator_epoch()? },
            control_type::LEADER_CHANGE => Self::LeaderChange,
            control_type::SNAPSHOT_HEADER => Self::SnapshotHeader,
            control_type::SNAPSHOT_FOOTER => Self::SnapshotFooter,
            control_type::KRAFT_VERSION => Self::KraftVersion,
            control_type::KRAFT_VOTERS => Self::KraftVoters,
            kind => Self::Unknown { kind },
        })
    }

    /// Kafka's name of the type.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Abort { .. } => "ABORT",
            Self::Commit { .. } => "COMMIT",
            Self::LeaderChange => "LEADER_CHANGE",
            Self::SnapshotHeader => "SNAPSHOT_HEADER",
            Self::SnapshotFooter => "SNAPSHOT_FOOTER",
            Self::KraftVersion => "KRAFT_VERSION",
            Self::KraftVoters => "KRAFT_VOTERS",
            Self::Unknown { .. } => "UNKNOWN",
        }
    }
}

/// The type of record `index` of a control batch, by its key.
///
/// # Errors
/// [`ErrorKind::ControlKey`].
pub fn kind_of(index: u32, key: Option<&[u8]>) -> Result<i16, ErrorKind> {
    let kind = versioned(key).and_then(|key| read_i16(key, 2));
    kind.ok_or(ErrorKind::ControlKey { index, size: size_of(key) })
}

fn size_of(part: Option<&[u8]>) -> i64 {
    part.map_or(-1, |bytes| bytes.len() as i64)
}

/// A key or value whose version, in the first two bytes, is not negative.
fn versioned(part: Option<&[u8]>) -> Option<&[u8]> {
    part.filter(|bytes| read_i16(bytes, 0).is_some_and(|version| version >= 0))
}
