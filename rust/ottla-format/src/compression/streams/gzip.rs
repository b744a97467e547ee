//! Java's `GZIPInputStream`: zlib over 8 KiB of the payload at a time. What zlib makes in a call that
//! fails is lost.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::codec_stream::CodecStream;
use crate::compression::arena::Fault;
use crate::compression::gzip as members;

/// Bytes that the stream reads at a time.
const INPUT_BYTES: usize = 8 << 10;
/// zlib is called with at most this much room, again while its input lasts.
const STEP_BYTES: usize = 64 << 10;
const TRAILER_BYTES: usize = 8;

pub(super) struct GzipStream<'p> {
    payload: &'p [u8],
    /// Up to where the payload is used, and up to where it is read.
    used: usize,
    read: usize,
    inflater: Decompress,
    crc: Crc,
    is_member_done: bool,
    is_finished: bool,
    step: Vec<u8>,
}

impl<'p> GzipStream<'p> {
    pub(super) fn open(payload: &'p [u8]) -> Result<Self, Fault> {
        let (_, start) = members::header(payload).ok_or(Fault::Undecodable)?;
        Ok(Self {
            payload,
            used: start,
            read: start,
            inflater: Decompress::new(false),
            crc: Crc::new(),
            is_member_done: false,
            is_finished: false,
            step: Vec::new(),
        })
    }

    /// What zlib makes of the input that is read, up to `wanted` bytes.
    fn inflate(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<usize, Fault> {
        let mut done = 0usize;
        loop {
            let room = wanted.saturating_sub(done).min(STEP_BYTES);
            self.step.resize(room, 0);
            let input = self.payload.get(self.used..self.read).ok_or(Fault::Undecodable)?;
            let (before, made) = (self.inflater.total_in(), self.inflater.total_out());
            let status = self.inflater.decompress(input, &mut self.step, FlushDecompress::Sync);
            let status = status.map_err(|_| Fault::Undecodable)?;
            let used = self.inflater.total_in().saturating_sub(before) as usize;
            let made = self.inflater.total_out().saturating_sub(made) as usize;
            self.used = self.used.saturating_add(used);
            out.extend_from_slice(self.step.get(..made).unwrap_or_default());
            done = done.saturating_add(made);
            self.is_member_done = status == Status::StreamEnd;
            if self.is_member_done || made < room || done >= wanted {
                return Ok(done);
            }
        }
    }

    /// Reads the trailer of a member, and the header of the next one if Java looks for it.
    fn end_member(&mut self) -> Result<(), Fault> {
        let rest = self.payload.get(self.used..).unwrap_or_default();
        let trailer = rest.first_chunk::<TRAILER_BYTES>().ok_or(Fault::Undecodable)?;
        let stored = u64::from_le_bytes(*trailer);
        if stored as u32 != self.crc.sum() || (stored >> 32) as u32 != self.crc.amount() {
            return Err(Fault::Undecodable);
        }
        let unused = self.read.saturating_sub(self.used);
        self.used = self.used.saturating_add(TRAILER_BYTES);
        self.read = self.read.max(self.used);
        // Java looks for another member if there is input it has not read, or much that it has.
        let is_sought = self.read < self.payload.len()
            || unused > members::MIN_MEMBER_BYTES.saturating_add(TRAILER_BYTES);
        let rest = self.payload.get(self.used..).unwrap_or_default();
        match members::header(rest) {
            Some((_, length)) if is_sought => {
                self.used = self.used.saturating_add(length);
                self.read = self.read.max(self.used);
                self.inflater = Decompress::new(false);
                self.crc = Crc::new();
                self.is_member_done = false;
            }
            _ => self.is_finished = true,
        }
        Ok(())
    }
}

impl CodecStream for GzipStream<'_> {
    fn read(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<Option<usize>, Fault> {
        let start = out.len();
        while !self.is_finished {
            if self.is_member_done {
                self.end_member()?;
                continue;
            }
            let made = match self.inflate(wanted, out) {
                Ok(made) => made,
                Err(fault) => {
                    out.truncate(start);
                    return Err(fault);
                }
            };
            if made > 0 {
                self.crc.update(out.get(start..).unwrap_or_default());
                return Ok(Some(made));
            }
            if !self.is_member_done {
                if self.read >= self.payload.len() {
                    return Err(Fault::Undecodable);
                }
                self.read = self.read.saturating_add(INPUT_BYTES).min(self.payload.len());
            }
        }
        Ok(None)
    }

    fn is_available(&mut self) -> Result<bool, Fault> {
        Ok(!self.is_finished && !self.is_member_done)
    }
}
