//! A segment's batches as Kafka's `FileLogInputStream` finds them, by framing alone
//! (`docs/kafka/record-batch.md` §1.2), and what a loader asks of them.

use super::checksum::Checksum;
use super::interruption::{Interruption, LoadError};
use super::open_file::OpenFile;
use ottla_format::batch::{BatchInfo, Payload, RecordCursor, payload, verify};
use ottla_format::compression::Codecs;
use ottla_format::error::{Error, Family};
use ottla_format::header::{
    Envelope, HEADER_UP_TO_MAGIC, Header, LOG_OVERHEAD, MIN_SIZE, RECORD_BATCH_OVERHEAD,
};
use ottla_format::legacy;
use ottla_format::limits::{Limits, MAX_BATCH_BYTES};

/// Bytes read at once.
const PIECE_BYTES: usize = 256 << 10;

/// A larger buffer is freed once its batch has passed.
const MAX_IDLE_BYTES: usize = 1 << 20;

/// Bytes of an old message up to its timestamp: offset, size, CRC, magic, attributes, and from magic 1
/// on the timestamp.
const LEGACY_HEAD_BYTES: u64 = (LOG_OVERHEAD + legacy::TIMESTAMP_END) as u64;

/// A batch by its first 17 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) position: u64,
    /// The base offset in the frame, of old messages the offset of the last one.
    pub(super) offset: i64,
    pub(super) magic: i8,
    /// Bytes, envelope included.
    pub(super) total: u64,
}

impl Frame {
    pub(super) fn end(&self) -> u64 {
        self.position.saturating_add(self.total)
    }
}

/// The batches of a segment, seen through a small buffer.
pub(super) struct SegmentFile<'a> {
    /// `None` for a segment without a file.
    file: Option<OpenFile<'a>>,
    /// Where the segment begins in the file.
    start: u64,
    size: u64,
    /// For messages.
    path: String,
    buffer: Vec<u8>,
    /// Position of the buffer in the segment.
    held_from: u64,
}

impl<'a> SegmentFile<'a> {
    /// The segment in `size` bytes of a file from `start` on.
    pub(super) fn new(file: Option<OpenFile<'a>>, (start, size): (u64, u64), path: String) -> Self {
        Self { file, start, size, path, buffer: Vec::new(), held_from: 0 }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// `wanted` bytes from a position on, fewer at the end.
    fn bytes(&mut self, position: u64, wanted: usize) -> Result<&[u8], LoadError> {
        let left = usize::try_from(self.size.saturating_sub(position)).unwrap_or(usize::MAX);
        let wanted = wanted.min(left);
        if self.held(position).len() < wanted {
            self.refill(position, wanted.max(PIECE_BYTES).min(left))?;
        }
        let held = self.held(position);
        Ok(held.get(..wanted).unwrap_or(held))
    }

    /// What the buffer holds from a position on.
    fn held(&self, position: u64) -> &[u8] {
        position
            .checked_sub(self.held_from)
            .and_then(|skip| usize::try_from(skip).ok())
            .and_then(|skip| self.buffer.get(skip..))
            .unwrap_or(&[])
    }

    fn refill(&mut self, position: u64, size: usize) -> Result<(), LoadError> {
        if self.buffer.capacity() > MAX_IDLE_BYTES && size <= PIECE_BYTES {
            self.buffer = Vec::new();
        }
        self.buffer.resize(size, 0);
        self.held_from = position;
        let filled = match &self.file {
            Some(file) => file.fill(self.start.saturating_add(position), &mut self.buffer),
            None => Ok(0),
        };
        // What was not read must not be seen.
        self.buffer.truncate(*filled.as_ref().unwrap_or(&0));
        filled.map(|_| ())
    }

    /// The batch that begins at a position of the part up to `end`; `None` where too few bytes are
    /// left.
    pub(super) fn next(&mut self, position: u64, end: u64) -> Result<Option<Frame>, Interruption> {
        if position.saturating_add(HEADER_UP_TO_MAGIC as u64) >= end {
            return Ok(None);
        }
        let Some(envelope) = Envelope::read(self.bytes(position, HEADER_UP_TO_MAGIC)?, 0) else {
            return Ok(None);
        };
        if envelope.size < MIN_SIZE {
            return Err(Interruption::Corrupt(format!(
                "Found record size {} smaller than minimum record overhead ({MIN_SIZE}) in file \
                 {}.",
                envelope.size, self.path
            )));
        }
        let total = u64::from(envelope.size.unsigned_abs()).saturating_add(LOG_OVERHEAD as u64);
        if position.saturating_add(total) > end {
            return Ok(None);
        }
        Ok(Some(Frame { position, offset: envelope.offset, magic: envelope.magic, total }))
    }

    /// The header of a batch of magic 2 and above, whatever its size: Kafka reads 61 bytes.
    fn header(&mut self, frame: &Frame) -> Result<Header, Interruption> {
        let position = frame.position;
        let header = Header::read(self.bytes(position, RECORD_BATCH_OVERHEAD)?, 0);
        header.ok_or_else(|| {
            Interruption::kafka(format!(
                "Failed to load record batch at position {position} from FileRecords(file={})",
                self.path
            ))
        })
    }

    /// The fields of a batch, from its header.
    pub(super) fn info(&mut self, frame: &Frame) -> Result<BatchInfo, Interruption> {
        if frame.magic >= 2 {
            return Ok(BatchInfo::from_header(&self.header(frame)?, frame.position));
        }
        let head = frame.total.min(LEGACY_HEAD_BYTES) as usize;
        let head = self.bytes(frame.position, head)?.to_vec();
        let size = head.len().saturating_sub(LOG_OVERHEAD) as i32;
        let envelope = Envelope { offset: frame.offset, size, magic: frame.magic };
        let info = BatchInfo::read(&head, 0, &envelope)
            .map_err(|error| Interruption::kafka(format!("{} in {}", error.kind, self.path)))?;
        Ok(BatchInfo { position: frame.position, size: frame.total, ..info })
    }

    pub(super) fn last_offset(&mut self, frame: &Frame) -> Result<i64, Interruption> {
        if frame.magic < 2 { Ok(frame.offset) } else { Ok(self.header(frame)?.last_offset()) }
    }

    /// The whole batch.
    pub(super) fn whole(&mut self, frame: &Frame) -> Result<&[u8], Interruption> {
        if frame.total > MAX_BATCH_BYTES {
            let Frame { position, total, .. } = frame;
            return Err(Interruption::limit(format!(
                "the batch at position {position} of {} has {total} bytes, more than \
                 {MAX_BATCH_BYTES}",
                self.path
            )));
        }
        Ok(self.bytes(frame.position, frame.total as usize)?)
    }

    /// Verifies the checksum, as `ensureValid` does.
    pub(super) fn check(&mut self, frame: &Frame) -> Result<(), Interruption> {
        if frame.total > MAX_BATCH_BYTES {
            return self.check_in_pieces(frame);
        }
        let verified = verify(self.whole(frame)?);
        verified.map_err(|error| {
            Interruption::Corrupt(format!(
                "Record is corrupt: {} at position {} of {}",
                error.kind, frame.position, self.path
            ))
        })
    }

    /// A batch larger than what is held in memory: nearly always its size field lies.
    fn check_in_pieces(&mut self, frame: &Frame) -> Result<(), Interruption> {
        let head = self.bytes(frame.position, RECORD_BATCH_OVERHEAD)?;
        let stored = Checksum::stored(frame.magic, head);
        let mut checksum = Checksum::new(frame.magic);
        let mut position = frame.position.saturating_add(checksum.start());
        while position < frame.end() {
            let wanted = frame.end().saturating_sub(position).min(PIECE_BYTES as u64) as usize;
            checksum.update(self.bytes(position, wanted)?);
            position = position.saturating_add(wanted as u64);
        }
        let computed = checksum.finish();
        if stored == Some(computed) {
            return Ok(());
        }
        let stored = stored.map_or_else(|| "none".to_owned(), |stored| stored.to_string());
        Err(Interruption::Corrupt(format!(
            "Record is corrupt: stored crc = {stored}, computed crc = {computed} at position {} of \
             {}",
            frame.position, self.path
        )))
    }

    /// Offset of the first record. Of a compressed batch of magic 0 or 1 Kafka inflates everything
    /// to know it, and gives up on what it cannot.
    pub(super) fn base_offset(
        &mut self,
        frame: &Frame,
        codecs: &mut Codecs,
    ) -> Result<i64, Interruption> {
        if frame.magic >= 2 {
            return Ok(frame.offset);
        }
        let info = self.info(frame)?;
        let position = frame.position;
        let whole = self.whole(frame)?;
        first_offset(&info, whole, codecs)
            .map_err(|error| wrapper_exception(&error, position, &self.path))
    }

    /// Where the batch begins that holds an offset or the next above it, looked for from a position
    /// on.
    pub(super) fn search(
        &mut self,
        target: i64,
        position: u64,
        codecs: &mut Codecs,
    ) -> Result<Option<u64>, Interruption> {
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
    pub(super) fn next_offset_from(&mut self, position: u64) -> Result<Option<i64>, Interruption> {
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
    let (codec, reading, bytes) = match payload(info, whole)? {
        Payload::Plain { .. } => return Ok(info.last_offset),
        Payload::Compressed { codec, reading, bytes, .. } => (codec, reading, bytes),
    };
    let records = codecs.decompress(codec, reading, bytes).map_err(|kind| Error::new(kind, 0))?;
    let mut cursor = RecordCursor::start(info, records, Limits::default())?;
    Ok(cursor.next(records)?.map_or(info.last_offset, |record| record.offset))
}

fn wrapper_exception(error: &Error, position: u64, path: &str) -> Interruption {
    let message = format!("{} at position {position} of {path}", error.kind);
    match error.kind.family() {
        Family::Compression => Interruption::kafka(message),
        Family::Limit => Interruption::limit(message),
        _ => Interruption::InvalidRecord(message),
    }
}
