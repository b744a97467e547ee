//! The records of batches that are in memory as columns, a bounded piece at a time.

use super::range::{MAX_PIECE_BYTES, RowBounds, RowRange};
use super::sheet::{RecordParts, RecordRows, Sheet};
use ottla_format::batch::{self, BatchInfo, Payload, Record, RecordCursor};
use ottla_format::check::Checker;
use ottla_format::error::Error;
use ottla_format::limits::Limits;
use ottla_kernels::copies::Room;
use ottla_kernels::{BatchHeader, Level};

/// Columns of records, while they are filled.
pub struct BufferedRecords {
    sheet: Sheet,
    piece_bytes: usize,
}

/// The records of a batch that there was no room for.
#[derive(Debug)]
pub struct RestOfBatch {
    cursor: RecordCursor,
    /// Where the records begin in the batch, or what they were inflated to.
    records: Result<usize, Vec<u8>>,
}

impl BufferedRecords {
    /// No records yet. They are full with `piece_bytes`, of which a row takes `row_bytes` beside key,
    /// value and headers.
    /// `room` is what the piece before took.
    pub fn new(parts: RecordParts, piece_bytes: usize, row_bytes: usize, room: Room) -> Self {
        let piece_bytes = piece_bytes.min(MAX_PIECE_BYTES);
        let bounds = RowBounds::default();
        let range = RowRange { positions: 0..u64::MAX, bounds, piece_bytes, row_bytes };
        Self { sheet: Sheet::new(&range, parts, room), piece_bytes }
    }

    /// Rows.
    pub fn row_count(&self) -> usize {
        self.sheet.copies.row_count()
    }

    /// Bytes, as they count towards a full piece.
    pub fn size(&self) -> usize {
        self.sheet.used()
    }

    /// What the next piece will take, about.
    pub fn room(&self) -> Room {
        self.sheet.room()
    }

    /// Adds the records of a batch, which are inflated. Returns whether there was room for them, and
    /// `None` for those that are left to [`add`](Self::add).
    pub fn add_all(
        &mut self,
        kernels: Level,
        info: &BatchInfo,
        batch: &[u8],
        payload: &[u8],
    ) -> Option<bool> {
        let cost = self.sheet.cost(payload.len(), info.record_count.unwrap_or(0));
        if self.is_beyond(cost) {
            return Some(false);
        }
        let header = BatchHeader::parse(batch, 0).filter(|header| {
            cost <= MAX_PIECE_BYTES
                && !info.is_control()
                && header.last_offset_delta.checked_add(1) == Some(header.record_count)
        })?;
        self.sheet.walk(kernels, payload, &header, info, &Limits::default()).then_some(true)
    }

    /// Whether so many bytes more are left to the next piece.
    fn is_beyond(&self, cost: usize) -> bool {
        self.row_count() > 0 && self.size().saturating_add(cost) > self.piece_bytes
    }

    /// Adds the records of a batch, those whose index `is_wanted` takes, where there is one. The
    /// batch is one whose checksum is right.
    ///
    /// Returns whether there was room for all. If not, it is called for the same batch and the same
    /// `rest` once more, with the columns of the next piece.
    ///
    /// # Errors
    /// The records cannot be read as a consumer does.
    pub fn add(
        &mut self,
        checker: &mut Checker,
        info: &BatchInfo,
        batch: &[u8],
        mut is_wanted: Option<&mut dyn FnMut(u32) -> bool>,
        rest: &mut Option<RestOfBatch>,
    ) -> Result<bool, Error> {
        let is_whole = is_wanted.is_none();
        let takes =
            |index, _: &Record<'_>| is_wanted.as_mut().is_none_or(|is_wanted| is_wanted(index));
        if let Some(open) = rest {
            let payload = match &open.records {
                Ok(start) => batch.get(*start..).unwrap_or_default(),
                Err(inflated) => inflated,
            };
            let is_done = self.sheet.push_all(info, payload, &mut open.cursor, takes)?;
            if is_done {
                *rest = None;
            }
            return Ok(is_done);
        }
        let (kernels, limits) = (checker.kernels(), *checker.limits());
        let (payload, start) = match batch::payload(info, batch)? {
            Payload::Plain { bytes, start } => (bytes, Some(start)),
            Payload::Compressed { codec, reading, bytes, start } => {
                let inflated = checker.codecs().decompress(codec, reading, bytes);
                (inflated.map_err(|kind| Error::new(kind, start))?, None)
            }
        };
        let cost = self.sheet.cost(payload.len(), info.record_count.unwrap_or(0));
        if self.is_beyond(cost) {
            return Ok(false);
        }
        if is_whole && let Some(has_room) = self.add_all(kernels, info, batch, payload) {
            return Ok(has_room);
        }
        let mut cursor = RecordCursor::start(info, payload, limits)?;
        let is_done = self.sheet.push_all(info, payload, &mut cursor, takes)?;
        if !is_done {
            let records = start.ok_or_else(|| payload.to_vec());
            *rest = Some(RestOfBatch { cursor, records });
        }
        Ok(is_done)
    }

    /// Adds the records that a cursor has left, those that are wanted. Returns whether there was room
    /// for all.
    ///
    /// # Errors
    /// A record cannot be read as a consumer does; those before it are there.
    pub fn add_left(
        &mut self,
        info: &BatchInfo,
        payload: &[u8],
        cursor: &mut RecordCursor,
        mut is_wanted: impl FnMut(i64) -> bool,
    ) -> Result<bool, Error> {
        self.sheet.push_all(info, payload, cursor, |_, record| is_wanted(record.offset))
    }

    /// The columns.
    pub fn finish(self) -> RecordRows {
        self.sheet.finish()
    }
}
