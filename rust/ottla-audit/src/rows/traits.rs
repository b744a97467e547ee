//! What the batch of a record says about it, once for all records of a batch.

use ottla_format::attributes::{LOG_APPEND_TIME, TRANSACTIONAL, TimestampType};
use ottla_format::batch::BatchInfo;
use ottla_kernels::BatchHeader;

/// What a batch says that a consumer may want to know of its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // as their names say
pub struct BatchTraits {
    pub timestamp_type: TimestampType,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub is_transactional: bool,
}

impl BatchTraits {
    pub(crate) fn of(info: &BatchInfo) -> Self {
        Self {
            timestamp_type: info.timestamp_type(),
            producer_id: info.producer_id,
            producer_epoch: info.producer_epoch,
            is_transactional: info.is_transactional(),
        }
    }

    /// Of a batch of magic 2.
    pub(crate) fn of_header(header: &BatchHeader) -> Self {
        let is_appended = header.attributes & LOG_APPEND_TIME != 0;
        Self {
            timestamp_type: if is_appended {
                TimestampType::LogAppendTime
            } else {
                TimestampType::CreateTime
            },
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            is_transactional: header.attributes & TRANSACTIONAL != 0,
        }
    }

    /// Says the same of all rows before `rows` that nothing was said of.
    pub(crate) fn fill(self, runs: &mut Vec<(usize, Self)>, rows: usize) {
        match runs.last_mut() {
            Some((end, last)) if *end >= rows || *last == self => *end = rows.max(*end),
            _ if rows > 0 => runs.push((rows, self)),
            _ => {}
        }
    }
}
