//! A partition's state as bytes, so that another process goes on where this one ended.
//!
//! ```text
//! 0       4         6       10
//! │ OTTL  │ version │ crc   │ offsets, aborted transactions, producers        CRC-32C covers 10..end
//! ```

use super::PartitionState;
use ottla_log::producers::{Producers, StateError, StateReader, write_count};
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use std::fmt;

const MAGIC: [u8; 4] = *b"OTTL";
/// The version that is written.
pub const STATE_VERSION: u16 = 1;
/// Bytes before those that the checksum covers.
const OVERHEAD: usize = 10;
/// Bytes of an aborted transaction.
const ABORTED_BYTES: usize = 32;

/// Why bytes are no state of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields say what they are
pub enum StateBytesError {
    /// They do not begin as a state does.
    Magic,
    /// Written by another version.
    Version { found: u16 },
    /// The stored checksum is not that of the bytes.
    Crc { stored: u32, computed: u32 },
    /// What they hold contradicts itself.
    Content(StateError),
}

impl fmt::Display for StateBytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("these bytes are not the state of a leader"),
            Self::Version { found } => {
                write!(f, "a leader's state of version {found}, expected {STATE_VERSION}")
            }
            Self::Crc { stored, computed } => write!(
                f,
                "a leader's state with checksum {stored:#010x}, its bytes have {computed:#010x}"
            ),
            Self::Content(error) => write!(f, "a leader's state cannot be read: {error}"),
        }
    }
}

impl std::error::Error for StateBytesError {}

impl From<StateError> for StateBytesError {
    fn from(error: StateError) -> Self {
        Self::Content(error)
    }
}

impl PartitionState {
    /// The bytes of this state: everything but the verifications under way.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut summed = Vec::new();
        for offset in [
            self.log_start_offset,
            self.log_start_batch_offset,
            self.high_watermark,
            self.log_end_offset,
        ] {
            summed.extend_from_slice(&offset.to_be_bytes());
        }
        write_count(&mut summed, self.aborted.len());
        for entry in &self.aborted {
            for number in
                [entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset]
            {
                summed.extend_from_slice(&number.to_be_bytes());
            }
        }
        self.producers.write_state(&mut summed);
        let crc = ottla_kernels::crc32c(&summed).to_be_bytes();
        [&MAGIC[..], &STATE_VERSION.to_be_bytes(), &crc, &summed].concat()
    }

    /// The state of these bytes.
    ///
    /// # Errors
    /// [`StateBytesError`].
    pub fn from_bytes(
        bytes: &[u8],
        producer_id_expiration_ms: i64,
    ) -> Result<Self, StateBytesError> {
        let Some((head, summed)) = bytes.split_first_chunk::<OVERHEAD>() else {
            return Err(StateBytesError::Magic);
        };
        let [m0, m1, m2, m3, v0, v1, c0, c1, c2, c3] = *head;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(StateBytesError::Magic);
        }
        let found = u16::from_be_bytes([v0, v1]);
        if found != STATE_VERSION {
            return Err(StateBytesError::Version { found });
        }
        let (stored, computed) =
            (u32::from_be_bytes([c0, c1, c2, c3]), ottla_kernels::crc32c(summed));
        if stored != computed {
            return Err(StateBytesError::Crc { stored, computed });
        }
        let mut reader = StateReader::new(summed);
        let (log_start_offset, log_start_batch_offset) = (reader.i64()?, reader.i64()?);
        let (high_watermark, log_end_offset) = (reader.i64()?, reader.i64()?);
        if log_start_offset < 0 || log_end_offset < log_start_offset {
            return Err(StateError::Value("offset").into());
        }
        let mut aborted = Vec::new();
        for _ in 0..reader.count(ABORTED_BYTES)? {
            aborted.push(AbortedTransaction {
                producer_id: reader.i64()?,
                first_offset: reader.i64()?,
                last_offset: reader.i64()?,
                last_stable_offset: reader.i64()?,
            });
        }
        let producers = Producers::read_state(&mut reader)?;
        reader.finish()?;
        Ok(Self {
            producers,
            aborted,
            log_start_offset,
            log_start_batch_offset,
            high_watermark,
            log_end_offset,
            producer_id_expiration_ms,
        })
    }
}
