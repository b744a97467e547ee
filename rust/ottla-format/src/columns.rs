//! A buffer of batches as columns: what a consumer would get of it, checksums verified.
//!
//! Ordinary batches are written by the kernels while they are checked. Compressed ones are inflated
//! behind one another into chunks that the columns keep; all others are read record by record.

use crate::batch::{self, BatchInfo, Payload, RecordCursor};
use crate::check::Checker;
use crate::error::{Error, ErrorKind, Result};
use crate::header::{Envelope, Next};
use ottla_kernels::numbers::Row;
use ottla_kernels::{BatchHeader, Numbers, Views};

/// Bytes of source and inflated payloads together that one call may refer to: positions in Arrow's
/// views have 31 bits.
pub const MAX_COLUMN_BYTES: u64 = i32::MAX as u64;

/// Numbers whose positions count through the source and on through the inflated payloads.
struct PlacedNumbers {
    numbers: Numbers,
    base: u32,
}

impl PlacedNumbers {
    /// Room for about the records of `data`.
    fn for_data(data: &[u8]) -> Self {
        Self { numbers: Numbers::for_data(data), base: 0 }
    }

    fn moved(&self, row: Row) -> Row {
        Row {
            key_position: row.key_position.wrapping_add(self.base),
            value_position: row.value_position.wrapping_add(self.base),
            ..row
        }
    }
}

/// Columns and the inflated payloads they refer to.
pub struct Read<T> {
    /// The rows.
    pub columns: T,
    /// Inflated payloads, one behind the other.
    pub inflated: Vec<u8>,
}

/// Reads numbers.
///
/// # Errors
/// The first batch that a consumer would refuse, and bounds.
pub fn read_numbers(checker: &mut Checker, data: &[u8]) -> Result<Read<Numbers>> {
    let mut reader = Reader { checker, inflated: Vec::new() };
    let mut placed = PlacedNumbers::for_data(data);
    reader.read(data, &mut placed)?;
    Ok(Read { columns: placed.numbers, inflated: reader.inflated })
}

/// Reads Arrow views: buffer 0 is the source, buffer 1 the inflated payloads.
///
/// # Errors
/// The first batch that a consumer would refuse, and bounds.
pub fn read_views(checker: &mut Checker, data: &[u8]) -> Result<Read<Views>> {
    let mut reader = Reader { checker, inflated: Vec::new() };
    let mut views = Views::for_data(data);
    reader.read(data, &mut views)?;
    Ok(Read { columns: views, inflated: reader.inflated })
}

/// How the reader writes: through the kernels where they can, row by row else.
trait Sheet {
    fn run(&mut self, checker: &Checker, data: &[u8], from: usize) -> ottla_kernels::Run;
    fn walk(&mut self, checker: &Checker, payload: &[u8], header: &BatchHeader) -> bool;
    fn place(&mut self, source_size: usize, inflated_position: Option<usize>);
    fn push(&mut self, data: &[u8], row: Row);
    fn truncate(&mut self, rows: usize);
    fn rows(&self) -> usize;
}

impl Sheet for PlacedNumbers {
    fn run(&mut self, checker: &Checker, data: &[u8], from: usize) -> ottla_kernels::Run {
        ottla_kernels::run(checker.kernels(), data, from, &mut self.numbers)
    }

    fn walk(&mut self, checker: &Checker, payload: &[u8], header: &BatchHeader) -> bool {
        ottla_kernels::walk_payload(checker.kernels(), payload, header, &mut self.numbers)
    }

    fn place(&mut self, source_size: usize, inflated_position: Option<usize>) {
        self.base = inflated_position.map_or(0, |position| (source_size + position) as u32);
        self.numbers.set_position_base(self.base);
    }

    fn push(&mut self, _: &[u8], row: Row) {
        self.numbers.push(self.moved(row));
    }

    fn truncate(&mut self, rows: usize) {
        self.numbers.truncate(rows);
    }

    fn rows(&self) -> usize {
        self.numbers.row_count()
    }
}

impl Sheet for Views {
    fn run(&mut self, checker: &Checker, data: &[u8], from: usize) -> ottla_kernels::Run {
        ottla_kernels::run(checker.kernels(), data, from, self)
    }

    fn walk(&mut self, checker: &Checker, payload: &[u8], header: &BatchHeader) -> bool {
        ottla_kernels::walk_payload(checker.kernels(), payload, header, self)
    }

    fn place(&mut self, _: usize, inflated_position: Option<usize>) {
        match inflated_position {
            Some(position) => self.set_buffer(1, position as u32),
            None => self.set_buffer(0, 0),
        }
    }

    fn push(&mut self, data: &[u8], row: Row) {
        Views::push(self, data, row);
    }

    fn truncate(&mut self, rows: usize) {
        Views::truncate(self, rows);
    }

    fn rows(&self) -> usize {
        self.row_count()
    }
}

struct Reader<'a> {
    checker: &'a mut Checker,
    inflated: Vec<u8>,
}

impl Reader<'_> {
    fn read(&mut self, data: &[u8], sheet: &mut impl Sheet) -> Result<()> {
        let size = data.len() as u64;
        if size > MAX_COLUMN_BYTES {
            let kind = ErrorKind::BufferTooLarge { size, limit: MAX_COLUMN_BYTES };
            return Err(Error::new(kind, 0));
        }
        let mut position = 0;
        loop {
            sheet.place(data.len(), None);
            position = sheet.run(self.checker, data, position).position;
            match Envelope::next(data, position) {
                Ok(Next::End { .. }) => return Ok(()),
                Ok(Next::Batch(envelope)) => {
                    let end = position.saturating_add(envelope.total());
                    let whole = data.get(position..end).unwrap_or_default();
                    self.batch(data, whole, position, &envelope, sheet)
                        .map_err(|error| error.within(position))?;
                    position = end;
                }
                Err(_) if crate::batches::is_zero_tail(data, position) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// One batch that the kernels did not take.
    fn batch(
        &mut self,
        data: &[u8],
        whole: &[u8],
        position: usize,
        envelope: &Envelope,
        sheet: &mut impl Sheet,
    ) -> Result<()> {
        let info = BatchInfo::read(whole, 0, envelope)?;
        batch::verify(whole)?;
        if info.is_control() {
            return Ok(());
        }
        match batch::payload(&info, whole)? {
            Payload::Plain { start } => {
                let records = whole.get(start..).unwrap_or_default();
                rows(&info, records, data, sheet, *self.checker.limits(), position + start)
                    .map_err(|error| error.within(start))
            }
            Payload::Compressed { codec, bytes, start } => {
                let limits = *self.checker.limits();
                let at = self.inflated.len();
                let payload = self
                    .checker
                    .codecs()
                    .decompress(codec, info.magic, bytes)
                    .map_err(|kind| Error::new(kind, start))?;
                let total = data.len() as u64 + at as u64 + payload.len() as u64;
                if total > MAX_COLUMN_BYTES {
                    let kind = ErrorKind::DecompressedTooLarge { limit: MAX_COLUMN_BYTES };
                    return Err(Error::new(kind, start));
                }
                self.inflated.extend_from_slice(payload);
                let payload = self.inflated.get(at..).unwrap_or_default();
                sheet.place(data.len(), Some(at));
                if let Some(header) = BatchHeader::parse(whole, 0)
                    && i64::from(header.record_count) == i64::from(header.last_offset_delta) + 1
                    && sheet.walk(self.checker, payload, &header)
                {
                    return Ok(());
                }
                rows(&info, payload, payload, sheet, limits, 0)
                    .map_err(|error| Error::new(error.kind, start))
            }
        }
    }
}

/// Record by record; `base` is where `records` begins in `data`.
fn rows(
    info: &BatchInfo,
    records: &[u8],
    data: &[u8],
    sheet: &mut impl Sheet,
    limits: crate::limits::Limits,
    base: usize,
) -> Result<()> {
    let before = sheet.rows();
    let mut cursor = RecordCursor::start(info, records, limits)?;
    // The records are slices of `records`: their distance from its start is their position in it.
    let position = |part: &[u8]| {
        (base + (part.as_ptr() as usize).wrapping_sub(records.as_ptr() as usize)) as u32
    };
    let part = |part: Option<&[u8]>| {
        part.map_or((base as u32, -1), |bytes| (position(bytes), bytes.len() as i32))
    };
    loop {
        match cursor.next(records) {
            Ok(Some(record)) => {
                let (key_position, key_length) = part(record.key);
                let (value_position, value_length) = part(record.value);
                let (offset, timestamp) = (record.offset, record.timestamp);
                let row = Row {
                    offset,
                    timestamp,
                    key_position,
                    key_length,
                    value_position,
                    value_length,
                };
                sheet.push(data, row);
            }
            Ok(None) => return Ok(()),
            Err(error) => {
                sheet.truncate(before);
                return Err(error);
            }
        }
    }
}
