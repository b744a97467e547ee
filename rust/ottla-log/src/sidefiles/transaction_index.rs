//! `.txnindex`: the aborted transactions whose markers are in a segment (`TransactionIndex`, KIP-98).
//!
//! ```text
//! 0         2             10             18            26                   34
//! │ version │ producer id │ first offset │ last offset │ last stable offset │
//! ```
//!
//! There is none until a segment holds the first such marker.

use ottla_format::header::{read_i16, read_i64};

/// Bytes of one entry of a `.txnindex` file.
pub const ABORTED_TRANSACTION_BYTES: usize = 34;

/// An aborted transaction as the transaction index keeps it (`docs/kafka/log-dir.md` §3.3, KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    /// Whose it was.
    pub producer_id: i64,
    /// Offset of its first record.
    pub first_offset: i64,
    /// Offset of its marker.
    pub last_offset: i64,
    /// Last stable offset once the marker was written: a search up to this offset ends here.
    pub last_stable_offset: i64,
}

impl AbortedTransaction {
    /// The entry as it stands in a `.txnindex` file.
    pub fn to_bytes(&self) -> [u8; ABORTED_TRANSACTION_BYTES] {
        let mut out = [0; ABORTED_TRANSACTION_BYTES];
        // Bytes 0 and 1: version 0.
        out[2..10].copy_from_slice(&self.producer_id.to_be_bytes());
        out[10..18].copy_from_slice(&self.first_offset.to_be_bytes());
        out[18..26].copy_from_slice(&self.last_offset.to_be_bytes());
        out[26..34].copy_from_slice(&self.last_stable_offset.to_be_bytes());
        out
    }

    /// Reads an entry at a position: `None` if it is cut or of a version above 0.
    pub fn read(data: &[u8], at: usize) -> Option<Self> {
        let entry = data.get(at..at.checked_add(ABORTED_TRANSACTION_BYTES)?)?;
        // Kafka's readers look at the first byte alone.
        (read_i16(entry, 0)? >> 8 <= 0).then_some(())?;
        Some(Self {
            producer_id: read_i64(entry, 2)?,
            first_offset: read_i64(entry, 10)?,
            last_offset: read_i64(entry, 18)?,
            last_stable_offset: read_i64(entry, 26)?,
        })
    }
}

/// The aborted transactions that a read of `from..upper` must leave out, from an index in the
/// order of its markers.
pub fn aborted_between(
    index: &[AbortedTransaction],
    from: i64,
    upper: i64,
) -> Vec<AbortedTransaction> {
    let start = index.partition_point(|entry| entry.last_offset < from);
    let mut found = Vec::new();
    for entry in index.iter().skip(start) {
        if entry.first_offset < upper {
            found.push(*entry);
        }
        if entry.last_stable_offset >= upper {
            break;
        }
    }
    found
}

/// The whole entries of a file or of a piece of one; `None` for one of a version above 0.
pub fn entries(data: &[u8]) -> impl DoubleEndedIterator<Item = Option<AbortedTransaction>> {
    data.chunks_exact(ABORTED_TRANSACTION_BYTES).map(|entry| AbortedTransaction::read(entry, 0))
}
