//! Reads the batches of a Fetch answer, whatever their magic.

use super::AbortedFilter;
use super::rows::{FetchedRow, FinishedRows, Rows};
use crate::batch::{self, BatchInfo, Payload, RecordCursor};
use crate::check::Checker;
use crate::columns::{Places, Reader, RowTarget};
use crate::control_record::{control_type, kind_of};
use crate::error::{Error, ErrorKind, Result};
use crate::header::{Envelope, Next};
use crate::limits::{MAX_COLUMN_BYTES, MAX_FETCHED_INFLATED_BYTES};
use std::ops::Range;

/// What a consumer gets of one partition of a Fetch answer: records in order, and where the partition
/// goes on. The bytes of the answer are the caller's.
pub struct Fetched {
    rows: FinishedRows,
    inflated: Vec<u8>,
    position: i64,
    fault: Option<Stop>,
}

/// A batch that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Where the partition stands still.
    pub offset: i64,
    /// What is wrong, with its position in the bytes of the answer.
    pub error: Error,
}

/// Reads the answer of one partition from an offset on. `aborted` lists the aborted transactions, by
/// producer and first offset, and is `None` with `read_uncommitted`.
///
/// # Examples
/// ```
/// use ottla_format::builder::{BatchFields, NewRecord, build_batch};
/// use ottla_format::check::{Checker, Level};
/// use ottla_format::limits::Limits;
///
/// let mut checker = Checker::new(Level::Decode, Limits::default());
/// let records = [NewRecord::default(), NewRecord { value: Some(b"v"), ..NewRecord::default() }];
/// let fields = BatchFields { base_offset: 7, ..BatchFields::default() };
/// let data = build_batch(&fields, &records, checker.codecs())?;
/// let fetched = ottla_format::fetched::read(&mut checker, &data, 8, None, true);
/// assert_eq!((fetched.count(), fetched.next_offset(1)), (1, 9));
/// # Ok::<(), ottla_format::builder::BuildError>(())
/// ```
pub fn read(
    checker: &mut Checker,
    data: &[u8],
    position: i64,
    aborted: Option<Vec<(i64, i64)>>,
    check_crcs: bool,
) -> Fetched {
    let aborted = AbortedFilter::new(aborted.unwrap_or_default());
    let mut reading = AnswerPass {
        reader: Reader { checker, inflated: Vec::new() },
        rows: Rows::new(data, position, aborted),
        check_crcs,
    };
    let fault = reading.read(data).err();
    let inflated = std::mem::take(&mut reading.reader.inflated);
    Fetched { rows: reading.rows.finish(), inflated, position, fault }
}

impl Fetched {
    /// How many records there are.
    pub fn count(&self) -> usize {
        self.rows.count
    }

    /// Some of the records; `data` are the bytes of the answer.
    #[inline]
    pub fn rows<'a>(
        &'a self,
        data: &'a [u8],
        range: Range<usize>,
    ) -> impl Iterator<Item = FetchedRow<'a>> + 'a {
        self.rows.rows(range, self.places(data))
    }

    /// The rows.
    pub(super) fn finished(&self) -> &FinishedRows {
        &self.rows
    }

    /// What their positions count through.
    pub(super) fn places<'a>(&'a self, data: &'a [u8]) -> Places<'a> {
        Places { data, inflated: &self.inflated }
    }

    /// Where the partition goes on behind the first records; behind all of them it is behind the last
    /// batch, whatever of it was left out.
    pub fn next_offset(&self, behind: usize) -> i64 {
        if behind >= self.count() {
            return self.rows.next_offset;
        }
        let last = behind.checked_sub(1).and_then(|last| self.rows.offset(last));
        last.map_or(self.position, |(offset, _)| offset.saturating_add(1))
    }

    /// The leader epoch of the batch before that place; -1 where it is not known, or there is none.
    pub fn leader_epoch(&self, behind: usize) -> i32 {
        if behind >= self.count() {
            return self.rows.leader_epoch;
        }
        behind.checked_sub(1).and_then(|last| self.rows.offset(last)).map_or(-1, |(_, epoch)| epoch)
    }

    /// The batch behind all records that cannot be read.
    pub fn fault(&self) -> Option<&Stop> {
        self.fault.as_ref()
    }
}

/// One answer.
struct AnswerPass<'a> {
    reader: Reader<'a>,
    rows: Rows,
    check_crcs: bool,
}

impl AnswerPass<'_> {
    fn read(&mut self, data: &[u8]) -> std::result::Result<(), Stop> {
        let size = data.len() as u64;
        if size > MAX_COLUMN_BYTES {
            let kind = ErrorKind::BufferTooLarge { size, limit: MAX_COLUMN_BYTES };
            return Err(self.fault(Error::new(kind, 0)));
        }
        let mut position = 0;
        loop {
            self.rows.set_place(data.len(), None);
            position = self.rows.run(self.reader.checker, data, position).position;
            let next = Envelope::next(data, position).map_err(|error| self.fault(error))?;
            let Next::Batch(envelope) = next else { return Ok(()) };
            // What is left is fetched again, once there is memory for it.
            if self.reader.inflated.len() >= MAX_FETCHED_INFLATED_BYTES {
                return Ok(());
            }
            let next_offset = self.rows.next_offset();
            self.rows.begin();
            position = self.batch(data, position, &envelope).map_err(|error| {
                self.rows.abandon(next_offset);
                self.fault(error)
            })?;
        }
    }

    fn fault(&self, error: Error) -> Stop {
        Stop { offset: self.rows.next_offset(), error }
    }

    /// Reads a batch that the kernels did not accept. Returns the position behind it.
    fn batch(&mut self, data: &[u8], position: usize, envelope: &Envelope) -> Result<usize> {
        let whole = envelope.batch(data, position)?;
        let end = position.saturating_add(whole.len());
        self.whole_batch(data, whole, position, envelope)
            .map_err(|error| error.within(position))?;
        Ok(end)
    }

    fn whole_batch(
        &mut self,
        data: &[u8],
        whole: &[u8],
        position: usize,
        envelope: &Envelope,
    ) -> Result<()> {
        let info = BatchInfo::read(whole, 0, envelope)?;
        if self.check_crcs {
            batch::verify(whole)?;
        }
        let is_withheld = self.rows.aborted().withholds_batch(&info);
        if info.is_control() {
            if !self.rows.aborted().is_over() && self.is_abort_marker(&info, whole)? {
                self.rows.aborted().end(info.producer_id);
            }
            self.rows.pass(&info);
        } else if is_withheld || info.last_offset < self.rows.next_offset() {
            self.rows.pass(&info);
        } else {
            self.reader.rows(&info, data, whole, position, &mut self.rows)?;
            self.rows.end(&info);
        }
        Ok(())
    }

    /// Whether a control batch ends a transaction that was aborted: its first record says so, if
    /// compaction has left one.
    fn is_abort_marker(&mut self, info: &BatchInfo, whole: &[u8]) -> Result<bool> {
        let limits = *self.reader.checker.limits();
        let (records, start) = match batch::payload(info, whole)? {
            Payload::Plain { bytes, start } => (bytes, start),
            Payload::Compressed { codec, reading, bytes, start } => {
                let inflated = self.reader.checker.codecs().decompress(codec, reading, bytes);
                (inflated.map_err(|kind| Error::new(kind, start))?, start)
            }
        };
        let mut cursor = RecordCursor::start(info, records, limits)?;
        let first = cursor.next(records).map_err(|error| error.within(start))?;
        let Some(record) = first else { return Ok(false) };
        let kind = kind_of(0, record.key).map_err(|kind| Error::new(kind, start))?;
        Ok(kind == control_type::ABORT)
    }
}
