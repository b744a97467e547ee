//! Producers of a partition as a `.snapshot` file keeps them, in the format of
//! [`sidefiles::snapshot`](crate::sidefiles::snapshot).

use super::entry::{ProducerEntry, RememberedBatch};
use crate::sidefiles::snapshot::{SnapshotEntry, SnapshotError, read_snapshot, write_snapshot};

/// The bytes of a snapshot of these producers, in their order.
pub fn write_producers<'a>(entries: impl ExactSizeIterator<Item = &'a ProducerEntry>) -> Vec<u8> {
    write_snapshot(entries.map(SnapshotEntry::from))
}

/// The producers of a snapshot, in its order.
///
/// # Errors
/// [`SnapshotError`]: what is wrong first, version, length, checksum.
pub fn read_producers(data: &[u8]) -> Result<Vec<ProducerEntry>, SnapshotError> {
    Ok(read_snapshot(data)?.iter().map(ProducerEntry::from).collect())
}

impl From<&ProducerEntry> for SnapshotEntry {
    fn from(entry: &ProducerEntry) -> Self {
        let newest = entry.batches().last().copied().unwrap_or(RememberedBatch::NONE);
        Self {
            producer_id: entry.producer_id,
            producer_epoch: entry.producer_epoch,
            last_sequence: newest.last_sequence,
            last_offset: newest.last_offset,
            offset_delta: newest.offset_delta,
            last_timestamp: entry.last_timestamp,
            coordinator_epoch: entry.coordinator_epoch,
            transaction_first_offset: entry.transaction_first_offset,
        }
    }
}

impl From<&SnapshotEntry> for ProducerEntry {
    fn from(entry: &SnapshotEntry) -> Self {
        let mut producer = Self::unknown(entry.producer_id);
        producer.producer_epoch = entry.producer_epoch;
        producer.coordinator_epoch = entry.coordinator_epoch;
        producer.last_timestamp = entry.last_timestamp;
        producer.transaction_first_offset = entry.transaction_first_offset;
        if entry.last_offset >= 0 {
            producer.remember(RememberedBatch {
                last_sequence: entry.last_sequence,
                last_offset: entry.last_offset,
                offset_delta: entry.offset_delta,
                timestamp: entry.last_timestamp,
            });
        }
        producer
    }
}
