//! Rules about the records of a batch, one by one.

use super::{CheckResult, Level};
use crate::attributes::{Compression, TimestampType};
use crate::batch::{BatchInfo, Record, RecordCursor};
use crate::control_record::ControlRecord;
use crate::error::{Error, ErrorKind, Result};
use crate::header::{LOG_OVERHEAD, NONE, field};
use crate::legacy;
use crate::limits::{Limits, MAX_FAULTS_PER_BATCH};

/// Parses record by record, and at level `full` appends what breaks a rule.
pub(super) fn check_records(
    info: &BatchInfo,
    payload: &[u8],
    (level, limits): (Level, Limits),
    faults: &mut Vec<Error>,
    checked: &mut CheckResult,
) -> Result<()> {
    let full = level == Level::Full;
    let mut named = FaultList { known: faults.len(), faults };
    let mut cursor = RecordCursor::start(info, payload, limits)?;
    let mut rules = RecordRules::new(info);
    loop {
        let index = cursor.index();
        let Some(record) = cursor.next(payload)? else { break };
        checked.records = checked.records.saturating_add(1);
        if full && record.timestamp != NONE && info.timestamp_type() == TimestampType::CreateTime {
            let earliest = checked.earliest_timestamp.unwrap_or(record.timestamp);
            checked.earliest_timestamp = Some(earliest.min(record.timestamp));
        }
        if let Some(fault) = record.client_fault {
            checked.client_fault.get_or_insert((fault, Some(index)));
        }
        if index == 0 && info.magic < 2 {
            checked.base_offset = Some(record.offset);
        }
        let mut broken = None;
        if info.is_control() && index == 0 {
            match ControlRecord::read(index, record.key, record.value) {
                Ok(control) => checked.control = Some(control),
                Err(kind) => broken = Some(kind),
            }
        }
        if full && let Some(kind) = broken.or_else(|| rules.broken_by(index, &record)) {
            named.push(kind, 0);
        }
    }
    checked.maximum_unreached = full && rules.is_maximum_unreached();
    if full && info.is_control() && info.has_producer_id() {
        let count = info.record_count.unwrap_or(0);
        if count > 1 {
            let fault = Error::new(ErrorKind::ControlBatch { count }, field::RECORD_COUNT);
            named.faults.push(fault);
        }
    }
    if full && info.magic < 2 && info.compression()? != Compression::None {
        check_inner_records(info, payload, named.faults)?;
    }
    Ok(())
}

/// The faults of a batch, as many as are named.
struct FaultList<'a> {
    faults: &'a mut Vec<Error>,
    /// How many there were before.
    known: usize,
}

impl FaultList<'_> {
    fn push(&mut self, kind: ErrorKind, position: usize) {
        if self.faults.len().saturating_sub(self.known) < MAX_FAULTS_PER_BATCH {
            self.faults.push(Error::new(kind, position));
        }
    }
}

/// Offset deltas and timestamps against the header.
struct RecordRules {
    is_dense: bool,
    previous: i64,
    last: i64,
    base_timestamp: i64,
    max_timestamp: i64,
    checks_timestamps: bool,
    /// The latest timestamp so far.
    latest: Option<i64>,
    is_legacy: bool,
}

impl RecordRules {
    fn new(info: &BatchInfo) -> Self {
        let last = i64::from(info.last_offset_delta());
        Self {
            is_dense: i64::from(info.record_count.unwrap_or(0)) == last.saturating_add(1),
            previous: if info.magic < 2 { i64::MIN } else { -1 },
            last,
            base_timestamp: info.base_timestamp,
            max_timestamp: info.max_timestamp,
            checks_timestamps: info.magic >= 2
                && info.timestamp_type() == TimestampType::CreateTime,
            latest: None,
            is_legacy: info.magic < 2,
        }
    }

    fn is_maximum_unreached(&self) -> bool {
        self.checks_timestamps
            && self.max_timestamp != NONE
            && self.latest.is_some_and(|latest| latest < self.max_timestamp)
    }

    fn broken_by(&mut self, index: u32, record: &Record<'_>) -> Option<ErrorKind> {
        if self.is_legacy {
            return None;
        }
        self.latest = self.latest.max(Some(record.timestamp));
        let delta = record.offset_delta;
        let wide = i64::from(delta);
        let (previous, last) = (self.previous, self.last);
        self.previous = wide;
        if self.is_dense && wide != i64::from(index) {
            return Some(ErrorKind::OffsetDeltaMismatch { index, delta, expected: index as i32 });
        }
        if wide <= previous || wide > last {
            let (previous, last) = (previous as i32, last as i32);
            return Some(ErrorKind::OffsetDeltaOutOfOrder { index, delta, previous, last });
        }
        // In exact arithmetic: the deltas that Kafka writes between extreme timestamps wrap.
        let delta = i128::from(record.timestamp.wrapping_sub(self.base_timestamp));
        let timestamp = i128::from(self.base_timestamp).saturating_add(delta);
        if self.checks_timestamps && timestamp > i128::from(self.max_timestamp) {
            let (timestamp, maximum) = (record.timestamp, self.max_timestamp);
            return Some(ErrorKind::TimestampAboveMaximum { index, timestamp, maximum });
        }
        None
    }
}

/// Inner records have the magic of their wrapper, which a conversion bug of old brokers broke
/// (KAFKA-4298), and increasing offsets.
fn check_inner_records(info: &BatchInfo, set: &[u8], faults: &mut Vec<Error>) -> Result<()> {
    let mut named = FaultList { known: faults.len(), faults };
    let mut previous = None;
    for (index, entry) in legacy::entries(set)?.iter().enumerate() {
        let index = index as u32;
        let magic = entry.body(set).map_or(0, legacy::magic_of);
        if magic != info.magic {
            let kind = ErrorKind::InnerMagicMismatch { index, magic, wrapper: info.magic };
            named.push(kind, LOG_OVERHEAD);
        } else if let Some(before) = previous.filter(|&before| entry.offset <= before) {
            let (delta, previous) = (entry.offset as i32, before as i32);
            let last = info.last_offset as i32;
            let kind = ErrorKind::OffsetDeltaOutOfOrder { index, delta, previous, last };
            named.push(kind, LOG_OVERHEAD);
        }
        previous = Some(entry.offset);
    }
    Ok(())
}
