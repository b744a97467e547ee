//! A walk over the records of a batch of magic 2, with enough of each to judge it.
//!
//! Kafka parses in two ways that do not accept the same bytes. The *full* parse holds every record
//! to the length it declares. The *skip* parse, used where a compressed batch may be kept as it is,
//! reads the fields one after the other and never looks at that length
//! (docs/kafka/record-batch.md §4).

use ottla_format::attributes::TimestampType;
use ottla_format::batch::BatchInfo;
use ottla_format::clients::ClientFault;
use ottla_format::error::{ErrorKind, Field};
use ottla_format::limits::Limits;
use ottla_format::record::{FIRST_VARINT_OF_TWO_BYTES, read_record};
use ottla_format::varint::{VarintFault, read_varint, read_varlong};
use std::ops::RangeInclusive;

/// How records are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parse {
    /// Every field, held to the record's length.
    Full,
    /// Field after field, whatever the length says.
    Skip,
}

/// A record as far as the walk has read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkedRecord {
    pub(crate) index: u32,
    pub(crate) offset_delta: i32,
    pub(crate) timestamp_delta: i64,
    /// That of the batch, if it is of type LogAppendTime.
    pub(crate) timestamp: i64,
    pub(crate) has_key: bool,
    /// The length it declares, and the one it has; equal after a full parse.
    pub(crate) declared_length: i64,
    pub(crate) length: u64,
    /// What stops some clients if the record is kept.
    pub(crate) client_fault: Option<ClientFault>,
}

/// Walks the records of a batch of magic 2.
#[derive(Debug)]
pub(crate) struct RecordWalk<'p> {
    payload: &'p [u8],
    info: BatchInfo,
    parse: Parse,
    limits: Limits,
    position: usize,
    index: u32,
    count: u32,
    /// The lengths that a record may declare, where these are held to bounds before it is read.
    lengths: Option<RangeInclusive<i32>>,
    /// The payload is damaged behind these bytes, so that they may not be all.
    is_cut: bool,
    /// Whether the lengths of the records from here on lead to the end, once that is known.
    leads_to_end: Option<bool>,
}

impl<'p> RecordWalk<'p> {
    /// Starts before the first record of a payload.
    pub(crate) fn start(
        info: &BatchInfo,
        payload: &'p [u8],
        parse: Parse,
        limits: Limits,
    ) -> Result<Self, ErrorKind> {
        let count = info.record_count.unwrap_or(0);
        let count = u32::try_from(count).map_err(|_| ErrorKind::RecordCountNegative { count })?;
        Ok(Self {
            payload,
            info: *info,
            parse,
            limits,
            position: 0,
            index: 0,
            count,
            lengths: None,
            is_cut: false,
            leads_to_end: None,
        })
    }

    /// The same walk, which holds the lengths of records to bounds before it reads them.
    pub(crate) fn bounded(mut self, lengths: Option<RangeInclusive<i32>>) -> Self {
        self.lengths = lengths;
        self
    }

    /// The same walk over a payload that is damaged behind these bytes.
    pub(crate) fn cut(mut self) -> Self {
        self.is_cut = true;
        self
    }

    /// Returns the next record, or `None` after the last. Kafka refuses the last record if bytes
    /// follow it, and does not look at the bytes of a batch without records.
    pub(crate) fn next(&mut self) -> Result<Option<WalkedRecord>, ErrorKind> {
        if self.index >= self.count {
            return Ok(None);
        }
        let (record, end) = self.read()?;
        self.position = end;
        self.index = self.index.saturating_add(1);
        if !record.has_declared_length() {
            // The walk has left the way that the lengths lead.
            self.leads_to_end = self.leads_to_end.and(Some(false));
        }
        if self.index == self.count && end != self.payload.len() {
            let WalkedRecord { index, declared_length: declared, length: used, .. } = record;
            return Err(if record.has_declared_length() {
                ErrorKind::TrailingBytes { left: self.payload.len().saturating_sub(end) as u64 }
            } else {
                ErrorKind::RecordLengthMismatch { index, declared, used }
            });
        }
        if self.index == self.count && self.is_cut {
            return Err(ErrorKind::RecordsMissing { index: self.index, count: self.count });
        }
        Ok(Some(record))
    }

    /// Index of the record that comes next, or that could not be read.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    fn read(&self) -> Result<(WalkedRecord, usize), ErrorKind> {
        let (index, count) = (self.index, self.count);
        if self.position == self.payload.len() {
            return Err(ErrorKind::RecordsMissing { index, count });
        }
        self.check_length()?;
        let (mut record, end) = match self.parse {
            Parse::Full => {
                let (record, end) = read_record(self.payload, self.position, index, &self.limits)
                    .map_err(|error| error.kind)?;
                let record = WalkedRecord {
                    index,
                    offset_delta: record.offset_delta,
                    timestamp_delta: record.timestamp_delta,
                    timestamp: 0,
                    has_key: record.key.is_some(),
                    declared_length: 0,
                    length: 0,
                    client_fault: record.client_fault,
                };
                (record, end)
            }
            Parse::Skip => skip_record(self.payload, self.position, index)?,
        };
        let info = &self.info;
        record.timestamp = if info.timestamp_type() == TimestampType::LogAppendTime {
            info.max_timestamp
        } else {
            info.base_timestamp.wrapping_add(record.timestamp_delta)
        };
        Ok((record, end))
    }

    /// Holds the length of the record that comes next to its bounds.
    fn check_length(&self) -> Result<(), ErrorKind> {
        let Some(lengths) = &self.lengths else { return Ok(()) };
        let rest = self.payload.get(self.position..).unwrap_or_default();
        let (index, limit) = (self.index, *lengths.end());
        match read_varint(rest) {
            Ok((declared, _)) if declared > limit => {
                Err(ErrorKind::RecordTooLarge { index, declared, limit })
            }
            Ok((declared, _)) if declared < *lengths.start() => {
                let (field, declared) = (Field::RecordLength, i64::from(declared));
                Err(ErrorKind::FieldNegative { index, field, declared })
            }
            // A length that cannot be read is a fault of its own.
            _ => Ok(()),
        }
    }

    /// Steps over a record that could not be parsed, if the lengths from it on lead exactly to the
    /// end: then the fault is inside it, and what follows can be judged. Returns whether it did.
    /// The lengths are followed once, so that many such records take no more work than few.
    pub(crate) fn step_over(&mut self) -> bool {
        let leads_to_end = self.leads_to_end.unwrap_or_else(|| {
            let end = (self.index..self.count)
                .try_fold(self.position, |position, _| self.end_by_length(position));
            end == Some(self.payload.len())
        });
        self.leads_to_end = Some(leads_to_end);
        match self.end_by_length(self.position).filter(|_| leads_to_end) {
            Some(end) => {
                self.position = end;
                self.index = self.index.saturating_add(1);
                true
            }
            None => false,
        }
    }

    /// Where the record at a position ends if its length is right.
    fn end_by_length(&self, position: usize) -> Option<usize> {
        let (length, used) = read_varint(self.payload.get(position..)?).ok()?;
        position.checked_add(used)?.checked_add(usize::try_from(length).ok()?)
    }
}

impl WalkedRecord {
    /// Whether the record takes as many bytes as it declares.
    pub(crate) fn has_declared_length(&self) -> bool {
        u64::try_from(self.declared_length) == Ok(self.length)
    }
}

/// A position in the fields of a record.
struct FieldCursor<'p> {
    payload: &'p [u8],
    position: usize,
    index: u32,
    client_fault: Option<ClientFault>,
}

impl<'p> FieldCursor<'p> {
    /// What is left of the payload: nothing past its end.
    fn rest(&self) -> &'p [u8] {
        self.payload.get(self.position..).unwrap_or_default()
    }

    fn step(&mut self, size: usize) {
        self.position = self.position.saturating_add(size);
    }

    fn fault(&self, field: Field, fault: VarintFault) -> ErrorKind {
        let index = self.index;
        match fault {
            VarintFault::End => ErrorKind::FieldOverrun { index, field, declared: 1, left: 0 },
            VarintFault::TooLong => ErrorKind::VarintTooLong { index, field },
        }
    }

    fn int(&mut self, field: Field) -> Result<i32, ErrorKind> {
        let (value, used) = read_varint(self.rest()).map_err(|fault| self.fault(field, fault))?;
        self.step(used);
        Ok(value)
    }

    fn long(&mut self, field: Field) -> Result<i64, ErrorKind> {
        let (value, used) = read_varlong(self.rest()).map_err(|fault| self.fault(field, fault))?;
        self.step(used);
        Ok(value)
    }

    fn note(&mut self, fault: ClientFault) {
        self.client_fault.get_or_insert(fault);
    }

    /// Steps over a length and as many bytes, none for a negative length; returns the length.
    fn sized(&mut self, field: Field) -> Result<i32, ErrorKind> {
        let declared = self.int(field)?;
        let left = self.rest().len();
        let length = usize::try_from(declared).unwrap_or(0);
        if declared < -1 {
            self.note(ClientFault::NullLength);
        }
        if length > left {
            let (index, declared, left) = (self.index, i64::from(declared), left as u64);
            return Err(ErrorKind::FieldOverrun { index, field, declared, left });
        }
        self.step(length);
        Ok(declared)
    }
}

/// Whether the last `length` bytes are UTF-8.
fn ends_with_text(bytes: Option<&[u8]>, length: i32) -> bool {
    let length = usize::try_from(length).unwrap_or(0);
    let text = bytes.and_then(|bytes| bytes.get(bytes.len().checked_sub(length)?..));
    text.is_some_and(|text| std::str::from_utf8(text).is_ok())
}

/// Reads a record field by field, whatever its length says.
fn skip_record(
    payload: &[u8],
    position: usize,
    index: u32,
) -> Result<(WalkedRecord, usize), ErrorKind> {
    let mut cursor = FieldCursor { payload, position, index, client_fault: None };
    let declared_length = i64::from(cursor.int(Field::RecordLength)?);
    let start = cursor.position;
    let Some(&attributes) = cursor.rest().first() else {
        return Err(cursor.fault(Field::Attributes, VarintFault::End));
    };
    if attributes >= FIRST_VARINT_OF_TWO_BYTES {
        cursor.note(ClientFault::RecordAttributes);
    }
    cursor.step(1);
    let timestamp_delta = cursor.long(Field::TimestampDelta)?;
    let offset_delta = cursor.int(Field::OffsetDelta)?;
    let has_key = cursor.sized(Field::Key)? >= 0;
    cursor.sized(Field::Value)?;
    let header_count = cursor.int(Field::HeaderCount)?;
    if header_count < 0 {
        let (field, declared) = (Field::HeaderCount, i64::from(header_count));
        return Err(ErrorKind::FieldNegative { index, field, declared });
    }
    for _ in 0..header_count {
        let key_length = cursor.sized(Field::HeaderKey)?;
        if key_length < 0 {
            let (field, declared) = (Field::HeaderKey, i64::from(key_length));
            return Err(ErrorKind::FieldNegative { index, field, declared });
        }
        if !ends_with_text(payload.get(..cursor.position), key_length) {
            cursor.note(ClientFault::HeaderKey);
        }
        cursor.sized(Field::HeaderValue)?;
    }
    let length = cursor.position.saturating_sub(start) as u64;
    let record = WalkedRecord {
        index,
        offset_delta,
        timestamp_delta,
        timestamp: 0,
        has_key,
        declared_length,
        length,
        client_fault: cursor.client_fault,
    };
    Ok((record, cursor.position))
}
