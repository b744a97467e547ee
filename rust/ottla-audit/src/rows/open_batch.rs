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
    /// The offset behind the last record in its place; `None` where every record is believed.
    pub(crate) next_offset: Option<i64>,
    /// Whether a record was in its place.
    has_begun: bool,
    /// Why its records cannot be read on, or one was left out.
    pub(crate) fault: Option<String>,
}

impl OpenBatch {
    /// Opens a batch.
    ///
    /// # Errors
    /// Why its records cannot be read.
    pub(crate) fn open(
        pass: &mut Pass<'_, '_>,
        info: &BatchInfo,
        next_offset: Option<i64>,
    ) -> Result<Self, String> {
        let size = info.size as usize;
        let is_held = info.size <= pass.checker.limits().batch_bytes;
        let whole = is_held.then(|| pass.window.hold(info.position, size).get(..size)).flatten();
        let whole = whole.ok_or_else(|| "its bytes are gone".to_owned())?;
        let start = match batch::payload(info, whole).map_err(|error| error.kind.to_string())? {
            Payload::Plain { start, .. } => Some(start),
            Payload::Compressed { codec, reading, bytes, .. } => {
                let inflated = pass.checker.codecs().decompress(codec, reading, bytes);
                inflated.map_err(|error| error.to_string())?;
                None
            }
        };
        Ok(Self { info: *info, start, cursor: None, next_offset, has_begun: false, fault: None })
    }

    /// The header, where the kernels may take the inflated records of the batch.
    pub(crate) fn header(&self, whole: &[u8]) -> Option<BatchHeader> {
        // Records before that offset are left out one by one.
        let is_whole = self.next_offset.is_none_or(|next| next <= self.info.base_offset);
        let is_inflated = self.start.is_none() && !self.info.is_control() && is_whole;
        BatchHeader::parse(whole, 0).filter(|header| {
            is_inflated
                && i64::from(header.record_count)
                    == i64::from(header.last_offset_delta).saturating_add(1)
        })
    }
}

impl OpenBatch {
    /// Whether a record is in its place; the first that is not is remembered.
    pub(crate) fn takes(&mut self, offset: i64) -> bool {
        let Some(next_offset) = self.next_offset else { return true };
        if offset >= next_offset && offset <= self.info.last_offset {
            self.next_offset = Some(offset.saturating_add(1));
            self.has_begun = true;
            return true;
        }
        let is_before = offset < next_offset && !self.has_begun;
        if !is_before && self.fault.is_none() {
            self.fault =
                Some(format!("a record with offset {offset} is out of order and was left out"));
        }
        false
    }
}
