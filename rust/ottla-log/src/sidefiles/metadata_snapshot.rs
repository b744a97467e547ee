//! Snapshots of the cluster's metadata: batches between a head and a foot (KIP-630).
//!
//! ```text
//! control batch    SNAPSHOT_HEADER, and what a quorum has to know of itself
//! batches          records, as in the log
//! control batch    SNAPSHOT_FOOTER
//! ```
//!
//! The offsets count from 0: they are none of the log's.

use ottla_format::batch::{BatchInfo, Payload, RecordCursor, payload, verify};
use ottla_format::batches::Batches;
use ottla_format::control_record::ControlRecord;
use ottla_format::error::{Error, Result};
use ottla_format::limits::Limits;
use std::fmt;

/// Why a file is no whole snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotFault {
    /// A batch at a position cannot be read.
    Batch {
        /// Where it begins.
        position: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A batch is not behind the one before.
    Offset {
        /// Where it begins.
        position: usize,
        /// Its base offset.
        found: i64,
        /// The offset behind the batch before.
        expected: i64,
    },
    /// It begins with something else.
    NoHead,
    /// It ends before its last batch.
    NoFoot,
}

impl fmt::Display for SnapshotFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch { position, reason } => write!(f, "at position {position}: {reason}"),
            Self::Offset { position, found, expected } => {
                write!(f, "offset {found} at position {position}, where {expected} is expected")
            }
            Self::NoHead => f.write_str("it begins without the head of a snapshot"),
            Self::NoFoot => f.write_str("it ends without the foot of a snapshot"),
        }
    }
}

impl std::error::Error for SnapshotFault {}

/// Checks that a snapshot is whole: head, foot, and each batch between them.
///
/// # Errors
/// [`SnapshotFault`]: the first.
pub fn check_metadata_snapshot(data: &[u8]) -> std::result::Result<(), SnapshotFault> {
    let mut batches = Batches::new(data, 0);
    let mut next_offset = 0i64;
    let mut has_foot = false;
    loop {
        let position = batches.position();
        let of_batch = |reason: &dyn fmt::Display| SnapshotFault::Batch {
            position,
            reason: reason.to_string(),
        };
        let Some(info) = batches.next() else { break };
        let info = info.map_err(|error| of_batch(&error))?;
        let whole = data.get(position..batches.position()).unwrap_or_default();
        verify(whole).map_err(|error| of_batch(&error))?;
        if info.base_offset != next_offset {
            let (found, expected) = (info.base_offset, next_offset);
            return Err(SnapshotFault::Offset { position, found, expected });
        }
        next_offset = info.last_offset.saturating_add(1);
        let control = first_control(whole, &info).map_err(|error| of_batch(&error))?;
        if position == 0 && control != Some(ControlRecord::SnapshotHeader) {
            return Err(SnapshotFault::NoHead);
        }
        has_foot = control == Some(ControlRecord::SnapshotFooter);
    }
    if has_foot && batches.tail().is_empty() { Ok(()) } else { Err(SnapshotFault::NoFoot) }
}

/// What the first record of a control batch says. Nobody compresses one.
fn first_control(whole: &[u8], info: &BatchInfo) -> Result<Option<ControlRecord>> {
    let Payload::Plain { bytes, .. } = payload(info, whole)? else { return Ok(None) };
    if !info.is_control() {
        return Ok(None);
    }
    let record = RecordCursor::start(info, bytes, Limits::default())?.next(bytes)?;
    let control = record.map(|record| ControlRecord::read(0, record.key, record.value));
    control.transpose().map_err(|kind| Error::new(kind, 0))
}
