//! The batch whose records are being read.

use crate::segment::pass::Pass;
use ottla_format::batch::{self, BatchInfo, Payload, RecordCursor};
use ottla_kernels::BatchHeader;

/// A batch of which some records may be left to read.
pub(crate) struct OpenBatch {
    pub(crate) info: BatchInfo,
    /// Where its records are: from here on in the batch, or inflated by the codecs.
    pub(crate) start: Option<usize>,
    /// `None` before the first record.
    pub(crate) cursor: Option<RecordCursor>,
}

impl OpenBatch {
    /// `None` where there are no records to be read.
    pub(crate) fn open(pass: &mut Pass<'_, '_>, info: &BatchInfo) -> Option<Self> {
        if info.size > pass.checker.limits().batch_bytes {
            return None;
        }
        let size = info.size as usize;
        let whole = pass.window.hold(info.position, size).get(..size)?;
        let start = match batch::payload(info, whole).ok()? {
            Payload::Plain { start, .. } => Some(start),
            Payload::Compressed { codec, reading, bytes, .. } => {
                pass.checker.codecs().decompress(codec, reading, bytes).ok()?;
                None
            }
        };
        Some(Self { info: *info, start, cursor: None })
    }

    /// The header, where the kernels may take the inflated records of the batch.
    pub(crate) fn header(&self, whole: &[u8]) -> Option<BatchHeader> {
        let is_inflated = self.start.is_none() && !self.info.is_control();
        BatchHeader::parse(whole, 0).filter(|header| {
            is_inflated
                && i64::from(header.record_count)
                    == i64::from(header.last_offset_delta).saturating_add(1)
        })
    }
}
