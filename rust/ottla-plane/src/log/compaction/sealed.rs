//! Segments that nothing is added to, batch by batch.

use super::{CompactionError, CompactionFault};
use crate::log::segment::SegmentReader;
use ottla_format::batch::{BatchInfo, verify};
use ottla_format::batches::Batches;
use ottla_format::error::{Error, ErrorKind};
use ottla_format::limits::MAX_BATCH_BYTES;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that are read at once.
const CHUNK_BYTES: u64 = 1 << 20;

/// What is done with a whole batch; with false it was the last.
type EachBatch<'a> = dyn FnMut(&BatchInfo, &[u8]) -> Result<bool, CompactionFault> + 'a;

/// A sealed segment.
pub(crate) struct SealedSegment {
    /// The offset that names it.
    pub(crate) base_offset: i64,
    pub(crate) size: u64,
    /// When it was begun, and when a batch was added last.
    pub(crate) created_ms: i64,
    pub(crate) appended_ms: i64,
    /// Entries of its indexes.
    pub(crate) offset_entries: usize,
    pub(crate) time_entries: usize,
    pub(crate) reader: Box<dyn SegmentReader>,
}

impl SealedSegment {
    /// Gives its batches to `each`, whole and with a right checksum, until that returns false or
    /// somebody stops it.
    pub(super) fn each_batch(
        &self,
        stop: &AtomicBool,
        each: &mut EachBatch<'_>,
    ) -> Result<(), CompactionError> {
        let mut position = 0u64;
        let walked = self.walk(&mut position, stop, each);
        let segment = self.base_offset;
        walked.map_err(|fault| CompactionError { segment, position, fault })
    }

    /// Walks on from a position, which stays that of the next batch.
    fn walk(
        &self,
        position: &mut u64,
        stop: &AtomicBool,
        each: &mut EachBatch<'_>,
    ) -> Result<(), CompactionFault> {
        let mut chunk = Vec::new();
        let mut wanted = CHUNK_BYTES;
        while *position < self.size {
            if stop.load(Ordering::Relaxed) {
                return Err(CompactionFault::Stopped);
            }
            let start = *position;
            let end = start.saturating_add(wanted).min(self.size);
            chunk.clear();
            self.reader.read(start..end, &mut |slice| chunk.extend_from_slice(slice))?;
            let mut batches = Batches::new(&chunk, 0);
            let mut at = 0;
            while let Some(found) = batches.next() {
                let info = BatchInfo { position: *position, ..found? };
                let batch = chunk.get(at..batches.position()).unwrap_or_default();
                verify(batch)?;
                if !each(&info, batch)? {
                    return Ok(());
                }
                at = batches.position();
                *position = start.saturating_add(at as u64);
            }
            if at > 0 {
                wanted = CHUNK_BYTES;
            } else if end < self.size && wanted <= MAX_BATCH_BYTES {
                // Larger than what was read at once.
                wanted = wanted.saturating_mul(2);
            } else {
                let (needed, left) = (wanted, self.size.saturating_sub(start));
                return Err(Error::new(ErrorKind::TruncatedBatch { needed, left }, 0).into());
            }
        }
        Ok(())
    }
}
