//! A buffer of batches as columns: the records that a consumer would get, checksums verified.
//!
//! The kernels write the columns of ordinary batches while they check them. Compressed batches are
//! inflated one behind the other into memory that the columns keep; all others are read record by
//! record.

use crate::attributes::Compression;
use crate::batch::{self, BatchInfo, Payload, RecordCursor};
use crate::check::Checker;
use crate::compression::Reading;
use crate::error::{Error, ErrorKind, Result};
use crate::header::{Envelope, Next};
use crate::limits::{Limits, MAX_COLUMN_BYTES};
use crate::number_columns::HeadersPlace;
pub use crate::number_columns::{HeaderColumns, NumberColumns, Places};
use ottla_kernels::numbers::Row;
use ottla_kernels::{BatchHeader, Numbers, Views};

/// Numbers while they are read.
pub(crate) struct PlacedNumbers {
    pub(crate) columns: NumberColumns,
    /// What positions count from.
    base: u32,
}

impl PlacedNumbers {
    /// Room for about the records of `data`.
    pub(crate) fn for_data(data: &[u8]) -> Self {
        Self { columns: NumberColumns::new(Numbers::for_data(data)), base: 0 }
    }

    /// Where a position of the present place is.
    fn place_of(&self, position: u32) -> u32 {
        position.wrapping_add(self.base)
    }

    fn placed(&self, row: Row) -> Row {
        Row {
            key_position: self.place_of(row.key_position),
            value_position: self.place_of(row.value_position),
            ..row
        }
    }
}

/// Columns, and the inflated payloads they refer to.
pub struct InflatedColumns<T> {
    /// The rows.
    pub columns: T,
    /// Inflated payloads, one behind the other.
    pub inflated: Vec<u8>,
}

/// Reads a buffer as columns of numbers.
///
/// # Errors
/// The first batch that a consumer would refuse, and what exceeds a bound.
pub fn read_numbers(checker: &mut Checker, data: &[u8]) -> Result<InflatedColumns<NumberColumns>> {
    let mut reader = Reader { checker, inflated: Vec::new() };
    let mut placed = PlacedNumbers::for_data(data);
    reader.read(data, &mut placed)?;
    Ok(InflatedColumns { columns: placed.columns, inflated: reader.inflated })
}

/// Reads a buffer as columns of Arrow views: buffer 0 is the source, buffer 1 the inflated payloads.
///
/// # Errors
/// The first batch that a consumer would refuse, and what exceeds a bound.
pub fn read_views(checker: &mut Checker, data: &[u8]) -> Result<InflatedColumns<Views>> {
    let mut reader = Reader { checker, inflated: Vec::new() };
    let mut views = Views::for_data(data);
    reader.read(data, &mut views)?;
    Ok(InflatedColumns { columns: views, inflated: reader.inflated })
}

/// Columns that the kernels and the reader write to.
pub(crate) trait RowTarget {
    /// Adds the rows of consecutive ordinary batches.
    fn run(&mut self, checker: &Checker, data: &[u8], from: usize) -> ottla_kernels::Run;
    /// Adds the rows of one inflated payload, if the kernels accept it.
    fn walk(&mut self, checker: &Checker, payload: &[u8], header: &BatchHeader) -> bool;
    /// Sets what the positions of the rows that follow count from: the source, or this position of
    /// the inflated payloads.
    fn set_place(&mut self, source_size: usize, inflated_position: Option<usize>);
    /// Adds a row whose positions count in `data`, and so do those of its headers.
    fn push(&mut self, data: &[u8], row: Row, headers: HeadersPlace);
    fn truncate(&mut self, rows: usize);
    fn row_count(&self) -> usize;
}

impl RowTarget for PlacedNumbers {
    fn run(&mut self, checker: &Checker, data: &[u8], from: usize) -> ottla_kernels::Run {
        ottla_kernels::run(checker.kernels(), data, from, self.columns.numbers_mut())
    }

    fn walk(&mut self, checker: &Checker, payload: &[u8], header: &BatchHeader) -> bool {
        ottla_kernels::walk_payload(checker.kernels(), payload, header, self.columns.numbers_mut())
    }

    fn set_place(&mut self, source_size: usize, inflated_position: Option<usize>) {
        self.base =
            inflated_position.map_or(0, |position| source_size.saturating_add(position) as u32);
        self.columns.numbers_mut().set_position_base(self.base);
    }

    fn push(&mut self, _: &[u8], row: Row, headers: HeadersPlace) {
        let position = self.place_of(headers.position);
        self.columns.push(self.placed(row), HeadersPlace { position, ..headers });
    }

    fn truncate(&mut self, rows: usize) {
        self.columns.truncate(rows);
    }

    fn row_count(&self) -> usize {
        self.columns.numbers().row_count()
    }
}

impl RowTarget for Views {
    fn run(&mut self, checker: &Checker, data: &[u8], from: usize) -> ottla_kernels::Run {
        ottla_kernels::run(checker.kernels(), data, from, self)
    }

    fn walk(&mut self, checker: &Checker, payload: &[u8], header: &BatchHeader) -> bool {
        ottla_kernels::walk_payload(checker.kernels(), payload, header, self)
    }

    fn set_place(&mut self, _: usize, inflated_position: Option<usize>) {
        match inflated_position {
            Some(position) => self.set_buffer(1, position as u32),
            None => self.set_buffer(0, 0),
        }
    }

    fn push(&mut self, data: &[u8], row: Row, _: HeadersPlace) {
        Views::push(self, data, row);
    }

    fn truncate(&mut self, rows: usize) {
        Views::truncate(self, rows);
    }

    fn row_count(&self) -> usize {
        Views::row_count(self)
    }
}

/// Reads one buffer.
pub(crate) struct Reader<'a> {
    pub(crate) checker: &'a mut Checker,
    pub(crate) inflated: Vec<u8>,
}

impl Reader<'_> {
    fn read(&mut self, data: &[u8], target: &mut impl RowTarget) -> Result<()> {
        let size = data.len() as u64;
        if size > MAX_COLUMN_BYTES {
            let kind = ErrorKind::BufferTooLarge { size, limit: MAX_COLUMN_BYTES };
            return Err(Error::new(kind, 0));
        }
        let mut position = 0;
        loop {
            target.set_place(data.len(), None);
            position = target.run(self.checker, data, position).position;
            match Envelope::next(data, position) {
                Ok(Next::End { .. }) => return Ok(()),
                Ok(Next::Batch(envelope)) => {
                    let whole = envelope.batch(data, position)?;
                    self.batch(data, whole, position, &envelope, target)
                        .map_err(|error| error.within(position))?;
                    position = position.saturating_add(whole.len());
                }
                Err(_) if crate::batches::is_zero_tail(data, position) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Adds the rows of one batch that the kernels did not accept.
    fn batch(
        &mut self,
        data: &[u8],
        whole: &[u8],
        position: usize,
        envelope: &Envelope,
        target: &mut impl RowTarget,
    ) -> Result<()> {
        let info = BatchInfo::read(whole, 0, envelope)?;
        batch::verify(whole)?;
        if info.is_control() { Ok(()) } else { self.rows(&info, data, whole, position, target) }
    }

    /// Adds the rows of one batch, `whole`, which is at `position` of the data.
    pub(crate) fn rows(
        &mut self,
        info: &BatchInfo,
        data: &[u8],
        whole: &[u8],
        position: usize,
        target: &mut impl RowTarget,
    ) -> Result<()> {
        match batch::payload(info, whole)? {
            Payload::Plain { bytes: records, start } => {
                let place = (data, position.saturating_add(start));
                push_records(info, records, place, target, *self.checker.limits())
                    .map_err(|error| error.within(start))
            }
            Payload::Compressed { codec, reading, bytes, start } => {
                let at = self.inflated.len();
                self.inflate(data.len(), (codec, reading), bytes)
                    .map_err(|kind| Error::new(kind, start))?;
                let (_, payload) = self.inflated.split_at(at);
                target.set_place(data.len(), Some(at));
                if let Some(header) = BatchHeader::parse(whole, 0)
                    && header.last_offset_delta.checked_add(1) == Some(header.record_count)
                    && target.walk(self.checker, payload, &header)
                {
                    return Ok(());
                }
                push_records(info, payload, (payload, 0), target, *self.checker.limits())
                    .map_err(|error| Error::new(error.kind, start))
            }
        }
    }

    /// Inflates a payload behind the others.
    fn inflate(
        &mut self,
        source_size: usize,
        (codec, reading): (Compression, Reading),
        bytes: &[u8],
    ) -> std::result::Result<(), ErrorKind> {
        let payload = self.checker.codecs().decompress(codec, reading, bytes)?;
        let total = [self.inflated.len(), payload.len()]
            .iter()
            .fold(source_size as u64, |total, &size| total.saturating_add(size as u64));
        if total > MAX_COLUMN_BYTES {
            return Err(ErrorKind::DecompressedTooLarge { limit: MAX_COLUMN_BYTES });
        }
        self.inflated.extend_from_slice(payload);
        Ok(())
    }
}

/// Adds the rows of one batch record by record. Its records begin at position `base` of `data`.
fn push_records(
    info: &BatchInfo,
    records: &[u8],
    (data, base): (&[u8], usize),
    target: &mut impl RowTarget,
    limits: Limits,
) -> Result<()> {
    let before = target.row_count();
    let mut cursor = RecordCursor::start(info, records, limits)?;
    // Parts of records are slices of `records`: their distance from its start is their position.
    let position = |part: &[u8]| {
        base.wrapping_add((part.as_ptr() as usize).wrapping_sub(records.as_ptr() as usize)) as u32
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
                let headers = HeadersPlace {
                    position: position(record.headers.bytes()),
                    count: record.headers.len() as u32,
                };
                target.push(data, row, headers);
            }
            Ok(None) => return Ok(()),
            Err(error) => {
                target.truncate(before);
                return Err(error);
            }
        }
    }
}
