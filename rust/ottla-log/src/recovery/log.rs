//! A segment's batches as Kafka's `FileLogInputStream` finds them: framing and nothing else, and
//! what a loader asks of them.

use super::stop::Stop;
use crate::source::{Source, fill};
use ottla_format::batch::{BatchInfo, RecordCursor, payload, verify};
use ottla_format::compression::Codecs;
use ottla_format::error::{Error, Family};
use ottla_format::header::{
    CRC_START, Envelope, HEADER_UP_TO_MAGIC, Header, LOG_OVERHEAD, MIN_SIZE, RECORD_BATCH_OVERHEAD,
};
use ottla_format::limits::{Limits, MAX_BATCH_BYTES};

/// Bytes read at once.
const PIECE: usize = 256 << 10;

/// A batch by its first 17 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) position: u64,
    /// As it stands in the frame.
    pub(super) offset: i64,
    pub(super) magic: i8,
    /// Bytes, envelope included.
    pub(super) total: u64,
}

impl Frame {
    pub(super) fn end(&self) -> u64 {
        self.position + self.total
    }
}

/// The bytes of a segment file, seen through a small buffer.
pub(super) struct Log<'a> {
    source: Box<dyn Source + 'a>,
    /// Where the segment begins in the source.
    start: u64,
    size: u64,
    /// For messages.
    path: String,
    buffer: Vec<u8>,
    held: u64,
}

impl<'a> Log<'a> {
    pub(super) fn new(
        source: Box<dyn Source + 'a>,
        (start, size): (u64, u64),
        path: String,
    ) -> Self {
        Self { source, start, size, path, buffer: Vec::new(), held: 0 }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// `wanted` bytes from a position on, fewer at the end.
    fn bytes(&mut self, position: u64, wanted: usize) -> Result<&[u8], Stop> {
        let left = usize::try_from(self.size.saturating_sub(position)).unwrap_or(usize::MAX);
        let wanted = wanted.min(left);
        let held = |log: &Self| {
            let skip = usize::try_from(position.checked_sub(log.held)?).ok()?;
            let end = skip.checked_add(wanted)?;
            (end <= log.buffer.len()).then_some(skip..end)
        };
        if held(self).is_none() {
            let size = wanted.max(PIECE).min(left);
            if self.buffer.capacity() > 4 * PIECE && size <= PIECE {
                self.buffer = Vec::new();
            }
            self.buffer.resize(size, 0);
            self.held = position;
            let filled = fill(&*self.source, self.start + position, &mut self.buffer)?;
            self.buffer.truncate(filled);
        }
        let range = held(self).unwrap_or(0..self.buffer.len());
        Ok(self.buffer.get(range).unwrap_or_default())
    }

    /// The batch that begins at a position of the part up to `end`; `None` where too few bytes are
    /// left.
    pub(super) fn next(&mut self, position: u64, end: u64) -> Result<Option<Frame>, Stop> {
        if position.saturating_add(HEADER_UP_TO_MAGIC as u64) >= end {
            return Ok(None);
        }
        let Some(envelope) = Envelope::read(self.bytes(position, HEADER_UP_TO_MAGIC)?, 0) else {
            return Ok(None);
        };
        if envelope.size < MIN_SIZE {
            return Err(Stop::Corrupt(format!(
                "Found record size {} smaller than minimum record overhead ({MIN_SIZE}) in file \
                 {}.",
                envelope.size, self.path
            )));
        }
        let total = LOG_OVERHEAD as u64 + u64::from(envelope.size.unsigned_abs());
        if position + total > end {
            return Ok(None);
        }
        Ok(Some(Frame { position, offset: envelope.offset, magic: envelope.magic, total }))
    }

    /// The header of a batch of magic 2 and above, whatever its size: Kafka reads 61 bytes.
    fn header(&mut self, frame: &Frame) -> Result<Header, Stop> {
        let position = frame.position;
        let header = Header::read(self.bytes(position, RECORD_BATCH_OVERHEAD)?, 0);
        header.ok_or_else(|| {
            Stop::kafka(format!(
                "Failed to load record batch at position {position} from FileRecords(file={})",
                self.path
            ))
        })
    }

    /// The fields of a batch, from its header.
    pub(super) fn info(&mut self, frame: &Frame) -> Result<BatchInfo, Stop> {
        if frame.magic >= 2 {
            return Ok(BatchInfo::from_header(&self.header(frame)?, frame.position));
        }
        // Offset, size, CRC, magic, attributes, and a timestamp from magic 1 on.
        let head = self.bytes(frame.position, frame.total.min(26) as usize)?.to_vec();
        let size = head.len().saturating_sub(LOG_OVERHEAD) as i32;
        let envelope = Envelope { offset: frame.offset, size, magic: frame.magic };
        let info = BatchInfo::read(&head, 0, &envelope)
            .map_err(|error| Stop::kafka(format!("{} in {}", error.kind, self.path)))?;
        Ok(BatchInfo { position: frame.position, size: frame.total, ..info })
    }

    pub(super) fn last_offset(&mut self, frame: &Frame) -> Result<i64, Stop> {
        if frame.magic < 2 { Ok(frame.offset) } else { Ok(self.header(frame)?.last_offset()) }
    }

    /// The whole batch.
    pub(super) fn whole(&mut self, frame: &Frame) -> Result<&[u8], Stop> {
        if frame.total > MAX_BATCH_BYTES {
            let Frame { position, total, .. } = frame;
            return Err(Stop::Limit(format!(
                "the batch at position {position} of {} has {total} bytes, more than \
                 {MAX_BATCH_BYTES}",
                self.path
            )));
        }
        self.bytes(frame.position, frame.total as usize)
    }

    /// Holds the checksum against the bytes, as `ensureValid` does.
    pub(super) fn check(&mut self, frame: &Frame) -> Result<(), Stop> {
        if frame.total > MAX_BATCH_BYTES {
            return self.check_in_pieces(frame);
        }
        let path = self.path.clone();
        verify(self.whole(frame)?).map_err(|error| {
            Stop::Corrupt(format!(
                "Record is corrupt: {} at position {} of {path}",
                error.kind, frame.position
            ))
        })
    }

    /// A batch larger than what is held in memory: its size field lies, nearly always.
    fn check_in_pieces(&mut self, frame: &Frame) -> Result<(), Stop> {
        let start = if frame.magic >= 2 { CRC_START } else { HEADER_UP_TO_MAGIC - 1 };
        let stored_at = if frame.magic >= 2 { start - 4 } else { LOG_OVERHEAD };
        let head = self.bytes(frame.position, RECORD_BATCH_OVERHEAD)?;
        let stored = ottla_format::header::read_i32(head, stored_at).unwrap_or(0) as u32;
        let mut castagnoli = !0;
        let mut legacy = crc32fast::Hasher::new();
        let mut position = frame.position + start as u64;
        while position < frame.end() {
            let wanted = (frame.end() - position).min(PIECE as u64) as usize;
            let piece = self.bytes(position, wanted)?;
            if frame.magic >= 2 {
                castagnoli = extend_crc32c(castagnoli, piece);
            } else {
                legacy.update(piece);
            }
            position += wanted as u64;
        }
        let computed = if frame.magic >= 2 { !castagnoli } else { legacy.finalize() };
        if stored == computed {
            return Ok(());
        }
        Err(Stop::Corrupt(format!(
            "Record is corrupt: stored crc = {stored}, computed crc = {computed} at position {} of \
             {}",
            frame.position, self.path
        )))
    }

    /// Offset of the first record. Of a compressed batch of magic 0 or 1 Kafka inflates everything
    /// to know it, and gives up on what it cannot.
    pub(super) fn base_offset(&mut self, frame: &Frame, codecs: &mut Codecs) -> Result<i64, Stop> {
        if frame.magic >= 2 {
            return Ok(frame.offset);
        }
        let info = self.info(frame)?;
        let position = frame.position;
        let whole = self.whole(frame)?;
        first_offset(&info, whole, codecs)
            .map_err(|error| wrapper_stop(&error, position, &self.path))
    }

    /// Where the batch begins that holds an offset or the next above it, looked for from a position
    /// on.
    pub(super) fn search(
        &mut self,
        target: i64,
        position: u64,
        codecs: &mut Codecs,
    ) -> Result<Option<u64>, Stop> {
        let mut before: Option<Frame> = None;
        let mut at = position;
        while let Some(frame) = self.next(at, self.size)? {
            let base_offset = self.base_offset(&frame, codecs)?;
            if base_offset == target {
                return Ok(Some(frame.position));
            }
            if base_offset > target {
                return match before {
                    Some(before) if self.last_offset(&before)? >= target => {
                        Ok(Some(before.position))
                    }
                    _ => Ok(Some(frame.position)),
                };
            }
            at = frame.end();
            before = Some(frame);
        }
        match before {
            Some(before) if self.last_offset(&before)? >= target => Ok(Some(before.position)),
            _ => Ok(None),
        }
    }

    /// The offset after the last batch from a position on; `None` if there is no batch.
    pub(super) fn next_offset_from(&mut self, position: u64) -> Result<Option<i64>, Stop> {
        let mut last = None;
        let mut at = position;
        while let Some(frame) = self.next(at, self.size)? {
            at = frame.end();
            last = Some(frame);
        }
        match last {
            Some(frame) => Ok(Some(self.last_offset(&frame)?.wrapping_add(1))),
            None => Ok(None),
        }
    }
}

fn first_offset(info: &BatchInfo, whole: &[u8], codecs: &mut Codecs) -> Result<i64, Error> {
    use ottla_format::batch::Payload;
    let (codec, bytes) = match payload(info, whole)? {
        Payload::Plain { .. } => return Ok(info.last_offset),
        Payload::Compressed { codec, bytes, .. } => (codec, bytes),
    };
    let records =
        codecs.decompress(codec, info.magic, bytes).map_err(|kind| Error::new(kind, 0))?;
    let mut cursor = RecordCursor::start(info, records, Limits::default())?;
    Ok(cursor.next(records)?.map_or(info.last_offset, |record| record.offset))
}

fn wrapper_stop(error: &Error, position: u64, path: &str) -> Stop {
    let message = format!("{} at position {position} of {path}", error.kind);
    match error.kind.family() {
        Family::Compression => Stop::kafka(message),
        Family::Limit => Stop::Limit(message),
        _ => Stop::InvalidRecord(message),
    }
}

/// Takes bytes into a running CRC-32C. Slow, and used for batches alone that no memory should hold.
fn extend_crc32c(crc: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut entry = index as u32;
            let mut bit = 0;
            while bit < 8 {
                entry = if entry & 1 == 0 { entry >> 1 } else { (entry >> 1) ^ 0x82f6_3b78 };
                bit += 1;
            }
            table[index] = entry;
            index += 1;
        }
        table
    };
    bytes.iter().fold(crc, |crc, &byte| {
        let index = usize::from((crc as u8) ^ byte);
        TABLE.get(index).copied().unwrap_or(0) ^ (crc >> 8)
    })
}

#[cfg(test)]
mod tests {
    use super::extend_crc32c;

    #[test]
    fn a_checksum_in_pieces_is_the_checksum_of_the_whole() {
        let data: Vec<u8> = (0..1000u32).map(|number| (number * 7) as u8).collect();
        let crc = data.chunks(77).fold(!0, extend_crc32c);
        assert_eq!(!crc, ottla_kernels::crc32c(&data));
    }
}
