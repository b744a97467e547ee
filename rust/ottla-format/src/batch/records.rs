//! The records of a batch, one by one.

use super::BatchInfo;
use crate::attributes::{CODEC_MASK, Compression, TimestampType};
use crate::clients::ClientFault;
use crate::error::{Error, ErrorKind, Result};
use crate::legacy::{self, Entry};
use crate::limits::Limits;
use crate::record::{Headers, read_record};
use crate::sequence::increment_sequence;

/// One record of any magic, as a consumer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct Record<'a> {
    pub offset: i64,
    /// In ms; with LogAppendTime the batch's, with magic 0 −1.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Headers<'a>,
    /// −1 without a producer id.
    pub sequence: i32,
    /// The offset minus the base offset; with magic 2 as it is stored.
    pub offset_delta: i32,
    /// What stops some clients.
    pub client_fault: Option<ClientFault>,
}

/// Walks the records of one batch through its payload: for magic 2 the bytes of the records section
/// (in place or inflated), for a plain record of magic 0 or 1 its body, for a wrapper the inflated
/// message set.
#[derive(Clone, Debug)]
pub struct RecordCursor {
    info: BatchInfo,
    limits: Limits,
    index: u32,
    state: CursorState,
}

#[derive(Clone, Debug)]
enum CursorState {
    V2 { position: usize, count: u32 },
    Legacy { entries: Vec<Entry>, base: i64, relative: bool, is_wrapper: bool },
    Done,
}

impl RecordCursor {
    /// A cursor before the first record.
    ///
    /// # Errors
    /// [`ErrorKind::RecordCountNegative`], and what is wrong with a wrapper as a whole.
    pub fn start(info: &BatchInfo, payload: &[u8], limits: Limits) -> Result<Self> {
        let state = match info.record_count {
            Some(count) => {
                let count = u32::try_from(count)
                    .map_err(|_| Error::new(ErrorKind::RecordCountNegative { count }, 0))?;
                CursorState::V2 { position: 0, count }
            }
            None if info.compression()? == Compression::None => {
                let whole = Entry { offset: info.last_offset, start: 0, end: payload.len() };
                let entries = vec![whole];
                CursorState::Legacy { entries, base: 0, relative: false, is_wrapper: false }
            }
            None => {
                let entries = legacy::entries(payload)?;
                let base = legacy::absolute_base(info.magic, info.last_offset, &entries)?;
                for (index, entry) in entries.iter().enumerate() {
                    let at = entry.start.saturating_add(legacy::ATTRIBUTES);
                    let attributes = payload.get(at).copied().unwrap_or(0);
                    if u16::from(attributes) & CODEC_MASK != 0 {
                        let kind = ErrorKind::WrapperNested { index: index as u32 };
                        return Err(Error::new(kind, entry.start));
                    }
                }
                CursorState::Legacy { entries, base, relative: info.magic == 1, is_wrapper: true }
            }
        };
        Ok(Self { info: *info, limits, index: 0, state })
    }

    /// The index of the next record.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// How many records are left, as far as is known.
    pub fn remaining(&self) -> usize {
        match &self.state {
            CursorState::V2 { count, .. } => count.saturating_sub(self.index) as usize,
            CursorState::Legacy { entries, .. } => {
                entries.len().saturating_sub(self.index as usize)
            }
            CursorState::Done => 0,
        }
    }

    /// The next record, or `None` after the last one and after an error.
    ///
    /// # Errors
    /// What Kafka's consumer refuses; positions count from the start of the payload.
    pub fn next<'a>(&mut self, payload: &'a [u8]) -> Result<Option<Record<'a>>> {
        let result = match self.state {
            CursorState::V2 { position, count } => self.next_v2(payload, position, count),
            CursorState::Legacy { .. } => self.next_legacy(payload),
            CursorState::Done => Ok(None),
        };
        if !matches!(result, Ok(Some(_))) {
            self.state = CursorState::Done;
        }
        result
    }

    fn next_v2<'a>(
        &mut self,
        payload: &'a [u8],
        position: usize,
        count: u32,
    ) -> Result<Option<Record<'a>>> {
        let index = self.index;
        if index >= count {
            // Like Kafka, does not look into an emptied batch (count 0).
            let left = payload.len().saturating_sub(position) as u64;
            return if left == 0 || count == 0 {
                Ok(None)
            } else {
                Err(Error::new(ErrorKind::TrailingBytes { left }, position))
            };
        }
        if position == payload.len() {
            let kind = ErrorKind::RecordsMissing { index, count };
            return Err(Error::new(kind, position));
        }
        let (raw, end) = read_record(payload, position, index, &self.limits)?;
        let info = &self.info;
        let timestamp = if info.timestamp_type() == TimestampType::LogAppendTime {
            info.max_timestamp
        } else {
            info.base_timestamp.wrapping_add(raw.timestamp_delta)
        };
        let sequence = if info.base_sequence >= 0 {
            increment_sequence(info.base_sequence, raw.offset_delta)
        } else {
            -1
        };
        let record = Record {
            offset: info.base_offset.wrapping_add(i64::from(raw.offset_delta)),
            timestamp,
            key: raw.key,
            value: raw.value,
            headers: raw.headers,
            sequence,
            offset_delta: raw.offset_delta,
            client_fault: raw.client_fault,
        };
        self.index = index.saturating_add(1);
        // Bytes behind the last record already make Kafka refuse that record.
        if self.index == count && end != payload.len() {
            let left = payload.len().saturating_sub(end) as u64;
            return Err(Error::new(ErrorKind::TrailingBytes { left }, end));
        }
        self.state = CursorState::V2 { position: end, count };
        Ok(Some(record))
    }

    fn next_legacy<'a>(&mut self, payload: &'a [u8]) -> Result<Option<Record<'a>>> {
        let CursorState::Legacy { ref entries, base, relative, is_wrapper } = self.state else {
            return Ok(None);
        };
        let index = self.index;
        let Some(&entry) = entries.get(index as usize) else { return Ok(None) };
        let count = entries.len() as u32;
        let missing = || Error::new(ErrorKind::RecordsMissing { index, count }, entry.start);
        let body = entry.body(payload).ok_or_else(missing)?;
        legacy::verify_body(body).map_err(|error| match error.kind {
            ErrorKind::CrcMismatch { stored, computed } if is_wrapper => {
                Error::new(ErrorKind::InnerCrcMismatch { index, stored, computed }, entry.start)
            }
            _ => error.within(entry.start),
        })?;
        let record = legacy::read_body(body).map_err(|error| error.within(entry.start))?;
        let wrapped_append_time =
            is_wrapper && self.info.timestamp_type() == TimestampType::LogAppendTime;
        let timestamp = if record.magic != 0 && wrapped_append_time {
            self.info.max_timestamp
        } else {
            record.timestamp
        };
        let offset = if relative { base.wrapping_add(entry.offset) } else { entry.offset };
        self.index = index.saturating_add(1);
        Ok(Some(Record {
            offset,
            timestamp,
            key: record.key,
            value: record.value,
            headers: Headers::default(),
            sequence: -1,
            offset_delta: offset.wrapping_sub(self.info.base_offset) as i32,
            client_fault: None,
        }))
    }
}
