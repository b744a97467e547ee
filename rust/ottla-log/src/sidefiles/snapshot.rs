//! A `.snapshot` file: what a partition knows of its producers at an offset
//! (`docs/kafka/producer-state.md` §8.1).
//!
//! ```text
//! 0        2        6        10
//! │ version│ crc    │ count  │ entries of 46 bytes …        CRC-32C covers 6..end
//!
//! 0            8      10         14           22         26          34           38
//! │ producer id│ epoch│ last seq.│ last offset│ off.delta│ timestamp │ coord. epoch│ transaction
//! ```

use ottla_format::header::{NONE, read_i16, read_i32, read_i64};
use std::fmt;

/// The one version of the format.
pub const SNAPSHOT_VERSION: i16 = 1;
/// Bytes before the entries.
pub const SNAPSHOT_OVERHEAD: usize = 10;
/// Bytes of one entry.
pub const SNAPSHOT_ENTRY_BYTES: usize = 46;
/// Where the CRC begins to cover.
const CRC_START: usize = 6;

/// A producer in a snapshot, which holds only the newest of its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotEntry {
    /// Its id.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Sequence of its last record, −1 for none.
    pub last_sequence: i32,
    /// Offset of its last record, −1 for none.
    pub last_offset: i64,
    /// Offset of the last record of its newest batch less that of the first.
    pub offset_delta: i32,
    /// Max timestamp of its newest batch, markers included.
    pub last_timestamp: i64,
    /// Epoch of the coordinator that wrote its last marker, −1 for none.
    pub coordinator_epoch: i32,
    /// First offset of its open transaction.
    pub transaction_first_offset: Option<i64>,
}

impl SnapshotEntry {
    /// The same as it is read from a snapshot, which knows no transaction from a negative offset on.
    #[must_use]
    pub fn as_stored(self) -> Self {
        let transaction_first_offset = self.transaction_first_offset.filter(|&first| first >= 0);
        Self { transaction_first_offset, ..self }
    }
}

/// Why bytes are no snapshot. Kafka deletes such a file and reads the next older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields say what they are
pub enum SnapshotError {
    /// Written by another version.
    Version { found: i16 },
    /// The bytes end before the entries they announce.
    Cut { needed: u64, found: u64 },
    /// The number of entries is negative.
    Count { found: i32 },
    /// The stored checksum is not that of the bytes.
    Crc { stored: u32, computed: u32 },
}

impl SnapshotError {
    /// Stable kebab-case name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Version { .. } => "snapshot-version",
            Self::Cut { .. } => "snapshot-cut",
            Self::Count { .. } => "snapshot-count",
            Self::Crc { .. } => "snapshot-crc",
        }
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Version { found } => {
                write!(f, "producer snapshot of version {found}, expected {SNAPSHOT_VERSION}")
            }
            Self::Cut { needed, found } => {
                write!(f, "producer snapshot of {found} bytes, expected {needed}: it is cut")
            }
            Self::Count { found } => write!(f, "producer snapshot announces {found} entries"),
            Self::Crc { stored, computed } => write!(
                f,
                "producer snapshot with checksum {stored:#010x}, its bytes have {computed:#010x}"
            ),
        }
    }
}

impl std::error::Error for SnapshotError {}

/// The bytes of a snapshot of these producers, in their order.
pub fn write_snapshot(entries: impl ExactSizeIterator<Item = SnapshotEntry>) -> Vec<u8> {
    let count = (entries.len() as i32).to_be_bytes();
    let mut summed = Vec::from(count);
    summed.reserve(entries.len().saturating_mul(SNAPSHOT_ENTRY_BYTES));
    for entry in entries {
        summed.extend_from_slice(&entry.producer_id.to_be_bytes());
        summed.extend_from_slice(&entry.producer_epoch.to_be_bytes());
        summed.extend_from_slice(&entry.last_sequence.to_be_bytes());
        summed.extend_from_slice(&entry.last_offset.to_be_bytes());
        summed.extend_from_slice(&entry.offset_delta.to_be_bytes());
        summed.extend_from_slice(&entry.last_timestamp.to_be_bytes());
        summed.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
        summed.extend_from_slice(&entry.transaction_first_offset.unwrap_or(NONE).to_be_bytes());
    }
    let crc = ottla_kernels::crc32c(&summed).to_be_bytes();
    [&SNAPSHOT_VERSION.to_be_bytes()[..], &crc, &summed].concat()
}

/// Reads a snapshot: its producers, in its order.
///
/// # Errors
/// [`SnapshotError`]: what is wrong first, version, length, checksum.
pub fn read_snapshot(data: &[u8]) -> Result<Vec<SnapshotEntry>, SnapshotError> {
    let found = data.len() as u64;
    let cut = |needed: usize| SnapshotError::Cut { needed: needed as u64, found };
    let version = read_i16(data, 0).ok_or_else(|| cut(SNAPSHOT_OVERHEAD))?;
    if version != SNAPSHOT_VERSION {
        return Err(SnapshotError::Version { found: version });
    }
    let (Some(stored), Some((_, summed))) = (read_i32(data, 2), data.split_at_checked(CRC_START))
    else {
        return Err(cut(SNAPSHOT_OVERHEAD));
    };
    let Some((count, entries)) = summed.split_first_chunk() else {
        return Err(cut(SNAPSHOT_OVERHEAD));
    };
    let found = i32::from_be_bytes(*count);
    let count = usize::try_from(found).map_err(|_| SnapshotError::Count { found })?;
    let needed = count.saturating_mul(SNAPSHOT_ENTRY_BYTES).saturating_add(SNAPSHOT_OVERHEAD);
    if data.len() < needed {
        return Err(cut(needed));
    }
    let (stored, computed) = (stored as u32, ottla_kernels::crc32c(summed));
    if stored != computed {
        return Err(SnapshotError::Crc { stored, computed });
    }
    let entries = entries.chunks_exact(SNAPSHOT_ENTRY_BYTES).take(count);
    entries.map(read_entry).collect::<Option<Vec<_>>>().ok_or_else(|| cut(needed))
}

fn read_entry(entry: &[u8]) -> Option<SnapshotEntry> {
    Some(SnapshotEntry {
        producer_id: read_i64(entry, 0)?,
        producer_epoch: read_i16(entry, 8)?,
        last_sequence: read_i32(entry, 10)?,
        last_offset: read_i64(entry, 14)?,
        offset_delta: read_i32(entry, 22)?,
        last_timestamp: read_i64(entry, 26)?,
        coordinator_epoch: read_i32(entry, 34)?,
        transaction_first_offset: Some(read_i64(entry, 38)?).filter(|&offset| offset >= 0),
    })
}
