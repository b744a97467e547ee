//! The requests that Kafka makes for records and entries, and the bytes it gets.

use super::buffered::{BufferedStream, LARGE_BUFFER_BYTES};
use crate::attributes::Compression;
use crate::compression::arena::Fault;
use crate::compression::reading::Reading;
use crate::header::{LOG_OVERHEAD, MIN_SIZE, field, read_i32};
use crate::varint::read_varint;
use zstd_safe::DCtx;

/// Bytes of the longest numbers.
const MAX_VARINT_BYTES: usize = 5;
const MAX_VARLONG_BYTES: usize = 10;

/// What a stream returns for the end, as Kafka stores it in a byte.
const END: u8 = 0xff;

/// The bytes that a reader got of a payload, and the fault behind them.
pub(in crate::compression) struct StreamedPayload {
    pub(in crate::compression) bytes: Vec<u8>,
    pub(in crate::compression) fault: Option<Fault>,
}

/// Whether Kafka can open the stream of a payload, which it does even where it reads nothing.
pub(in crate::compression) fn is_opened(
    codec: Compression,
    magic: i8,
    payload: &[u8],
    limit: usize,
    zstd: &mut DCtx<'static>,
) -> Result<(), Fault> {
    BufferedStream::open(codec, magic, payload, limit, zstd).map(|_| ())
}

/// Reads a payload as Kafka does. The bytes are those that its reader sees: where the stream pauses
/// inside a number, the reader sees a byte that is none of its own. They are appended to `bytes`.
pub(in crate::compression) fn read(
    codec: Compression,
    reading: Reading,
    payload: &[u8],
    limit: usize,
    zstd: &mut DCtx<'static>,
    bytes: Vec<u8>,
) -> StreamedPayload {
    let stream = match BufferedStream::open(codec, reading.magic(), payload, limit, zstd) {
        Ok(stream) => stream,
        Err(fault) => return StreamedPayload { bytes, fault: Some(fault) },
    };
    let mut reader = StreamReader { stream, bytes, limit };
    let done = match reading {
        Reading::Records { count } => reader.records(count, StreamReader::record),
        Reading::SkippedRecords { count } => reader.records(count, StreamReader::skipped_record),
        Reading::Entries { .. } => reader.entries(),
        Reading::Bytes { .. } => reader.all(),
    };
    StreamedPayload { bytes: reader.bytes, fault: done.err() }
}

struct StreamReader<'p> {
    stream: BufferedStream<'p>,
    bytes: Vec<u8>,
    limit: usize,
}

/// Whether the next record can be read: not behind a place where Kafka refuses the batch.
type GoesOn = bool;

impl StreamReader<'_> {
    /// The records of a batch, and one byte more if there is one: Kafka refuses the last record then.
    fn records(
        &mut self,
        count: u32,
        record: impl Fn(&mut Self) -> Result<GoesOn, Fault>,
    ) -> Result<(), Fault> {
        for _ in 0..count {
            if !record(self)? {
                return Ok(());
            }
        }
        self.bytes.extend(self.stream.next_byte()?);
        self.check_limit()
    }

    /// A record at once, by its length.
    fn record(&mut self) -> Result<GoesOn, Fault> {
        match self.varint()?.map(usize::try_from) {
            Some(Ok(length)) => self.take(length),
            _ => Ok(false),
        }
    }

    /// A record field by field, whatever its length.
    fn skipped_record(&mut self) -> Result<GoesOn, Fault> {
        if self.varint()?.is_none() {
            return Ok(false);
        }
        let attributes = self.stream.next_byte()?.unwrap_or(END);
        self.bytes.push(attributes);
        if !self.number(MAX_VARLONG_BYTES)? || self.varint()?.is_none() {
            return Ok(false);
        }
        if !self.skip_field(false)? || !self.skip_field(false)? {
            return Ok(false);
        }
        let Some(headers @ 0..) = self.varint()? else { return Ok(false) };
        for _ in 0..headers {
            if !self.skip_field(true)? || !self.skip_field(false)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A length and as many bytes.
    fn skip_field(&mut self, is_required: bool) -> Result<GoesOn, Fault> {
        let Some(length) = self.varint()? else { return Ok(false) };
        let Ok(length) = usize::try_from(length) else { return Ok(!is_required) };
        let goes_on = self.stream.skip_fully(length)?;
        if goes_on {
            self.bytes.resize(self.bytes.len().saturating_add(length), 0);
            self.check_limit()?;
        }
        Ok(goes_on)
    }

    /// The entries of a message set, up to one that is cut.
    fn entries(&mut self) -> Result<(), Fault> {
        loop {
            let start = self.bytes.len();
            if !self.take(LOG_OVERHEAD)? {
                return Ok(());
            }
            let size = read_i32(&self.bytes, start.saturating_add(field::BATCH_LENGTH));
            match size.filter(|&size| size >= MIN_SIZE).map(usize::try_from) {
                Some(Ok(size)) if self.take(size)? => {}
                _ => return Ok(()),
            }
        }
    }

    /// Takes all bytes. Kafka's buffer takes a pause for the end only where it is asked for less than
    /// it holds: up to the bound it is asked for more, so that the bound decides nothing else.
    fn all(&mut self) -> Result<(), Fault> {
        let room = self.limit.saturating_sub(self.bytes.len());
        let wanted = room.saturating_add(LARGE_BUFFER_BYTES).saturating_add(1);
        let read = self.stream.read_fully(wanted, &mut self.bytes);
        // One byte above the bound tells that it is exceeded.
        self.bytes.truncate(self.limit.saturating_add(1));
        self.check_limit()?;
        read.map(drop)
    }

    /// Takes so many bytes, or as many as there are. Returns whether all were there.
    fn take(&mut self, wanted: usize) -> Result<bool, Fault> {
        // One byte above the bound tells that it is exceeded.
        let room = self.limit.saturating_sub(self.bytes.len()).saturating_add(1);
        let is_whole = self.stream.read_fully(wanted.min(room), &mut self.bytes)?;
        self.check_limit()?;
        Ok(is_whole && wanted <= room)
    }

    fn varint(&mut self) -> Result<Option<i32>, Fault> {
        let start = self.bytes.len();
        if !self.number(MAX_VARINT_BYTES)? {
            return Ok(None);
        }
        let bytes = self.bytes.get(start..).unwrap_or_default();
        Ok(read_varint(bytes).ok().map(|(value, _)| value))
    }

    /// Takes a number of at most `max_bytes`; returns whether it ends.
    fn number(&mut self, max_bytes: usize) -> Result<bool, Fault> {
        let mut length = self.bytes.len();
        for _ in 0..max_bytes {
            let byte = self.stream.next_byte()?;
            self.bytes.push(byte.unwrap_or(END));
            if byte.is_some() {
                length = self.bytes.len();
                self.check_limit()?;
            }
            if byte.is_some_and(|byte| byte & 0x80 == 0) {
                return Ok(true);
            }
        }
        // What is left of a number that the payload ends in.
        self.bytes.truncate(length);
        Ok(false)
    }

    fn check_limit(&self) -> Result<(), Fault> {
        if self.bytes.len() > self.limit { Err(Fault::TooLarge) } else { Ok(()) }
    }
}
