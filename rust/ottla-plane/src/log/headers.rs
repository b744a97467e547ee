//! The headers of batches of a segment, one behind the other: what is walked over from an entry of an
//! index on. Of a file they are read some at a time, since a call takes longer than what it reads.

use super::segment::Segment;
use ottla_format::batch::BatchInfo;
use ottla_format::header::{Envelope, Header, MIN_SIZE, RECORD_BATCH_OVERHEAD};
use std::io;

/// Bytes that are read at once of a file: some headers of small batches.
pub(super) const READ_AHEAD_BYTES: usize = 1 << 10;

/// Reads headers, each of which mostly begins behind the one before it.
pub(super) struct Headers<'a> {
    data: &'a dyn Segment,
    /// Bytes of the segment.
    size: u64,
    bytes: [u8; READ_AHEAD_BYTES],
    /// Where in the segment these begin, and how many of them there are.
    start: u64,
    len: usize,
}

impl<'a> Headers<'a> {
    pub(super) fn new(data: &'a dyn Segment, size: u64) -> Self {
        Self { data, size, bytes: [0; READ_AHEAD_BYTES], start: 0, len: 0 }
    }

    /// The header of the batch at a position, `None` at the end.
    pub(super) fn at(&mut self, position: u64) -> io::Result<Option<BatchInfo>> {
        if position >= self.size {
            return Ok(None);
        }
        let end = position.saturating_add(RECORD_BATCH_OVERHEAD as u64).min(self.size);
        if position < self.start || end > self.start.saturating_add(self.len as u64) {
            self.read(position)?;
        }
        let from = position.saturating_sub(self.start) as usize;
        let head = self.bytes.get(from..self.len).unwrap_or_default();
        let Some(envelope) = Envelope::read(head, 0) else { return Ok(None) };
        // What follows damage in a file that was there is not read.
        let total = envelope.total() as u64;
        if envelope.size < MIN_SIZE || position.saturating_add(total) > self.size {
            return Ok(None);
        }
        if envelope.magic >= 2 {
            let header = Header::read(head, 0);
            return Ok(header.map(|header| BatchInfo::from_header(&header, position)));
        }
        let mut whole = Vec::with_capacity(total as usize);
        let behind = position.saturating_add(total);
        self.data.read(position..behind, &mut |slice| whole.extend_from_slice(slice))?;
        let info = BatchInfo::read(&whole, 0, &envelope).ok();
        Ok(info.map(|info| BatchInfo { position, ..info }))
    }

    fn read(&mut self, position: u64) -> io::Result<()> {
        let wanted = self.data.read_ahead().min(READ_AHEAD_BYTES) as u64;
        let end = position.saturating_add(wanted).min(self.size);
        let Self { data, bytes, start, len, .. } = self;
        (*start, *len) = (position, 0);
        data.read(position..end, &mut |slice| {
            let behind = len.saturating_add(slice.len());
            if let Some(to) = bytes.get_mut(*len..behind) {
                to.copy_from_slice(slice);
                *len = behind;
            }
        })
    }
}
