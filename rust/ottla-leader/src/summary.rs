//! What the records of a set come to, and the answer that follows from it.

use crate::config::TopicConfig;
use crate::request::Request;
use crate::rewrite::{Stamp, patched};
use crate::stored::Stored;
use crate::verdict::Accepted;
use ottla_kernels::BatchHeader;

/// What the records of one or more batches come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    /// Records, or the place of the next one.
    pub(crate) count: u64,
    /// The largest timestamp, −1 for none, and the place of the first record that has it.
    pub(crate) max_timestamp: i64,
    pub(crate) index_of_max: u64,
    /// Offsets are 0, 1, 2, ….
    pub(crate) is_dense: bool,
}

impl Default for Summary {
    fn default() -> Self {
        Self { count: 0, max_timestamp: -1, index_of_max: 0, is_dense: true }
    }
}

impl Summary {
    /// Adds a record that is right.
    pub(crate) fn add(&mut self, timestamp: i64, is_in_place: bool) {
        if timestamp > self.max_timestamp {
            (self.max_timestamp, self.index_of_max) = (timestamp, self.count);
        }
        self.is_dense &= is_in_place;
        self.skip();
    }

    /// Adds a record of which nothing is known but its place.
    pub(crate) fn skip(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// Offset of the last record.
    pub(crate) fn last_offset(&self, request: &Request) -> i64 {
        request.base_offset.wrapping_add(self.count as i64).wrapping_sub(1)
    }

    /// The answer to a set whose batches are stored as they are, but for their headers.
    pub(crate) fn kept<'a>(
        &self,
        config: &TopicConfig,
        request: &Request,
        stored: Stored<'a>,
    ) -> Accepted<'a> {
        let base_offset = request.base_offset;
        let log_append_time = config.log_append_time(request.now_ms);
        let has_timestamps = config.message_format > 0;
        let (max_timestamp, index) = match log_append_time {
            Some(time) if has_timestamps => (time, Some(0)),
            _ if self.max_timestamp < 0 => (-1, None),
            _ => (self.max_timestamp, Some(self.index_of_max)),
        };
        Accepted {
            base_offset,
            last_offset: self.last_offset(request),
            max_timestamp_ms: max_timestamp,
            offset_of_max_timestamp: index.map_or(-1, |at| base_offset.wrapping_add(at as i64)),
            log_append_time_ms: log_append_time.unwrap_or(-1),
            stored,
            is_rebuilt: false,
            is_duplicate: false,
            converted: 0,
        }
    }

    /// The answer to a set that is written anew.
    pub(crate) fn rebuilt(
        &self,
        config: &TopicConfig,
        request: &Request,
        bytes: Vec<u8>,
    ) -> Accepted<'static> {
        let stored = Stored::Owned(bytes);
        let kept = self.kept(config, request, stored);
        Accepted { is_rebuilt: true, converted: self.count, ..kept }
    }

    /// The answer to one batch of magic 2 that is kept.
    pub(crate) fn kept_batch<'a>(
        &self,
        config: &TopicConfig,
        request: &Request,
        records: &'a [u8],
    ) -> Accepted<'a> {
        let stored = match BatchHeader::parse(records, 0) {
            Some(header) => patched(records, &header, &self.stamp(config, request)),
            None => Stored::AsReceived(records),
        };
        self.kept(config, request, stored)
    }

    /// What is written into the header of a batch with these records as its last ones.
    pub(crate) fn stamp(&self, config: &TopicConfig, request: &Request) -> Stamp {
        Stamp {
            last_offset: self.last_offset(request),
            leader_epoch: request.leader_epoch,
            timestamp_type: config.message_timestamp_type,
            max_timestamp: config.log_append_time(request.now_ms).unwrap_or(self.max_timestamp),
        }
    }
}
