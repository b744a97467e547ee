//! The records of one batch as the validator sees them: enough of each to judge it.
//!
//! Kafka parses in two ways that do not take the same bytes. The *full* parse holds every record to
//! the length it declares. The *skip* parse, used where a compressed batch may be kept as it is,
//! reads the fields one after the other and never looks at that length (`record-batch.md` §4).

use ottla_format::attributes::TimestampType;
use ottla_format::batch::BatchInfo;
use ottla_format::error::{ErrorKind, Field};
use ottla_format::limits::Limits;
use ottla_format::record::read_record;
use ottla_format::varint::{VarintFault, read_varint, read_varlong};

/// How records are parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parse {
    /// Every field, held to the record's length.
    Full,
    /// Field after field, whatever the length says.
    Skip,
}

/// What is seen of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) index: u32,
    pub(super) offset_delta: i32,
    pub(super) timestamp_delta: i64,
    /// LogAppendTime: the batch's.
    pub(super) timestamp: i64,
    pub(super) has_key: bool,
    /// The length it declares, and the one it has; equal after a full parse.
    pub(super) declared_length: i64,
    pub(super) length: u64,
}

/// Walks the records of a magic 2 batch.
#[derive(Debug)]
pub(super) struct Records<'p> {
    payload: &'p [u8],
    info: BatchInfo,
    parse: Parse,
    limits: Limits,
    position: usize,
    index: u32,
    count: u32,
    /// The payload fails behind these bytes: nothing tells that they are all.
    is_cut: bool,
    /// Whether the lengths of the records from here on lead to the end, once that was asked.
    leads_to_end: Option<bool>,
}

impl<'p> Records<'p> {
    /// Starts before the first record of a payload.
    pub(super) fn start(
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
            is_cut: false,
            leads_to_end: None,
        })
    }

    /// The payload is damaged behind these bytes.
    pub(super) fn cut(mut self) -> Self {
        self.is_cut = true;
        self
    }

    /// The next record, or `None` after the last. Bytes behind the last record make Kafka refuse
    /// that record already; those of a batch without records are not looked at.
    pub(super) fn next(&mut self) -> Result<Option<Seen>, ErrorKind> {
        if self.index >= self.count {
            return Ok(None);
        }
        let (seen, end) = self.read()?;
        self.position = end;
        self.index += 1;
        if u64::try_from(seen.declared_length) != Ok(seen.length) {
            // Another way through the payload than that of the lengths.
            self.leads_to_end = self.leads_to_end.and(Some(false));
        }
        if self.index == self.count && end != self.payload.len() {
            let (index, used) = (seen.index, seen.length);
            return Err(match seen.declared_length {
                declared if u64::try_from(declared) != Ok(used) => {
                    ErrorKind::RecordLengthMismatch { index, declared, used }
                }
                _ => ErrorKind::TrailingBytes { left: (self.payload.len() - end) as u64 },
            });
        }
        if self.index == self.count && self.is_cut {
            return Err(ErrorKind::RecordsMissing { index: self.index, count: self.count });
        }
        Ok(Some(seen))
    }

    /// Index of the record that comes next, or could not be read.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    fn read(&self) -> Result<(Seen, usize), ErrorKind> {
        let (index, count) = (self.index, self.count);
        if self.position == self.payload.len() {
            return Err(ErrorKind::RecordsMissing { index, count });
        }
        let (skipped, end) = match self.parse {
            Parse::Full => {
                let (record, end) = read_record(self.payload, self.position, index, &self.limits)
                    .map_err(|error| error.kind)?;
                let skipped = Skipped {
                    timestamp_delta: record.timestamp_delta,
                    offset_delta: record.offset_delta,
                    has_key: record.key.is_some(),
                    declared_length: 0,
                    length: 0,
                };
                (skipped, end)
            }
            Parse::Skip => skip_record(self.payload, self.position, index)?,
        };
        let info = &self.info;
        let timestamp = if info.timestamp_type() == TimestampType::LogAppendTime {
            info.max_timestamp
        } else {
            info.base_timestamp.wrapping_add(skipped.timestamp_delta)
        };
        let Skipped { timestamp_delta, offset_delta, has_key, declared_length, length } = skipped;
        let seen = Seen {
            index,
            offset_delta,
            timestamp_delta,
            timestamp,
            has_key,
            declared_length,
            length,
        };
        Ok((seen, end))
    }

    /// Steps over a record that could not be parsed, if the lengths from it on lead exactly to the
    /// end: then the fault is inside it, and what follows can be judged. Whether it did. The lengths
    /// are followed once: a payload of many such records is no more work than one of few.
    pub(super) fn step_over(&mut self) -> bool {
        let leads_to_end = self.leads_to_end.unwrap_or_else(|| {
            let end = (self.index..self.count)
                .try_fold(self.position, |position, _| self.end_by_length(position));
            end == Some(self.payload.len())
        });
        self.leads_to_end = Some(leads_to_end);
        match self.end_by_length(self.position).filter(|_| leads_to_end) {
            Some(end) => {
                self.position = end;
                self.index += 1;
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

struct Skipped {
    timestamp_delta: i64,
    offset_delta: i32,
    has_key: bool,
    declared_length: i64,
    length: u64,
}

struct Cursor<'p> {
    payload: &'p [u8],
    at: usize,
    index: u32,
}

impl<'p> Cursor<'p> {
    fn rest(&self) -> &'p [u8] {
        self.payload.get(self.at..).unwrap_or_default()
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
        self.at += used;
        Ok(value)
    }

    fn long(&mut self, field: Field) -> Result<i64, ErrorKind> {
        let (value, used) = read_varlong(self.rest()).map_err(|fault| self.fault(field, fault))?;
        self.at += used;
        Ok(value)
    }

    /// Steps over a length and as many bytes, none for a negative one; gives the length.
    fn sized(&mut self, field: Field) -> Result<i32, ErrorKind> {
        let declared = self.int(field)?;
        let left = self.rest().len();
        let length = usize::try_from(declared).unwrap_or(0);
        if length > left {
            let (index, declared, left) = (self.index, i64::from(declared), left as u64);
            return Err(ErrorKind::FieldOverrun { index, field, declared, left });
        }
        self.at += length;
        Ok(declared)
    }
}

fn skip_record(payload: &[u8], at: usize, index: u32) -> Result<(Skipped, usize), ErrorKind> {
    let mut cursor = Cursor { payload, at, index };
    let declared_length = i64::from(cursor.int(Field::RecordLength)?);
    let start = cursor.at;
    if cursor.rest().is_empty() {
        return Err(cursor.fault(Field::Attributes, VarintFault::End));
    }
    cursor.at += 1;
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
        cursor.sized(Field::HeaderValue)?;
    }
    let length = (cursor.at - start) as u64;
    let skipped = Skipped { timestamp_delta, offset_delta, has_key, declared_length, length };
    Ok((skipped, cursor.at))
}
