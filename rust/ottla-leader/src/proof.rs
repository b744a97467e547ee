//! The quick way: nearly every set is one ordinary batch whose codec the topic keeps. The kernels
//! prove it in one pass, and all that is written is its header.
//!
//! No proof is not a refusal: whatever the kernels do not say yes to is left to the rules, which
//! name every fault. What is within the validator's own bounds is within those of every profile.

use crate::config::TopicConfig;
use crate::request::Request;
use crate::rewrite::{Stamp, patched};
use crate::verdict::Accepted;
use ottla_format::attributes::{Compression, LOG_APPEND_TIME, TRANSACTIONAL};
use ottla_format::compression::Codecs;
use ottla_format::error::ErrorKind;
use ottla_format::header::CRC_START;
use ottla_kernels::{BatchHeader, EachRecord, Level, Nothing, Record, Target, Timestamps};
use ottla_log::producers::Origin;

/// What is proved of an ordinary batch that is kept.
pub(crate) struct Proof {
    last_offset: i64,
    max_timestamp: i64,
    index_of_max: Option<usize>,
}

impl Proof {
    /// The answer to the batch.
    #[inline(always)]
    pub(crate) fn accepted<'a>(
        &self,
        records: &'a [u8],
        header: &BatchHeader,
        config: &TopicConfig,
        request: &Request,
    ) -> Accepted<'a> {
        let Self { last_offset, max_timestamp, index_of_max } = *self;
        let stamp = Stamp {
            last_offset,
            leader_epoch: request.leader_epoch,
            timestamp_type: config.message_timestamp_type,
            max_timestamp,
        };
        let base_offset = request.base_offset;
        Accepted {
            base_offset,
            last_offset,
            max_timestamp_ms: max_timestamp,
            offset_of_max_timestamp: index_of_max
                .map_or(-1, |index| base_offset.wrapping_add(index as i64)),
            log_append_time_ms: config.log_append_time(request.now_ms).unwrap_or(-1),
            stored: patched(records, header, &stamp),
            is_rebuilt: false,
            is_duplicate: false,
            converted: 0,
        }
    }
}

/// Proves batches.
pub(crate) struct Prover<'v> {
    pub(crate) codecs: &'v mut Codecs,
    pub(crate) kernels: Level,
    pub(crate) max_headers: usize,
    /// No record of a payload of so many bytes is longer than its topic allows.
    pub(crate) max_inflated: usize,
    /// A payload whose framing stops some clients is refused.
    pub(crate) judges_framing: bool,
    /// What is known of a payload that is too large: it need not be inflated again to say so.
    pub(crate) refused: Option<ErrorKind>,
}

impl Prover<'_> {
    /// Proves an ordinary batch of a client that is kept as it is; `None` leaves it to the rules.
    #[inline(always)]
    pub(crate) fn prove(
        &mut self,
        records: &[u8],
        header: &BatchHeader,
        config: &TopicConfig,
        request: &Request,
    ) -> Option<Proof> {
        let target = config.target(Compression::from_id(header.codec())?);
        let by_client = request.origin == Origin::Client
            && header.base_offset == 0
            && (header.attributes & TRANSACTIONAL == 0
                || request.has_transactional_id
                || request.api_version.is_none())
            && request.api_version.is_none_or(|version| version >= 7);
        let is_kept = config.message_format == 2
            && target.codec as u8 == header.codec()
            && header.end == records.len()
            && header.end as u64 <= u64::from(config.max_message_bytes.unsigned_abs())
            && header.end as u64 <= u64::from(config.segment_bytes.unsigned_abs());
        if !by_client || !is_kept || header.attributes & LOG_APPEND_TIME != 0 {
            return None;
        }
        let log_append_time = config.log_append_time(request.now_ms);
        let mut found = None;
        if !config.is_compacted {
            let bounds = self.bounds(records, header, log_append_time.is_some())?;
            found = bounds.judge(header, config, request, self.max_headers);
        }
        let (latest, index_of_latest) = match found {
            Some(found) => found,
            None => self.judge_extremes(records, header, config, request)?,
        };
        let (max_timestamp, index_of_max) = match log_append_time {
            Some(time) => (time, Some(0)),
            None if latest < 0 => (-1, None),
            None => (latest, Some(index_of_latest)),
        };
        let last_offset_delta = i64::from(header.record_count).checked_sub(1)?;
        let last_offset = request.base_offset.checked_add(last_offset_delta)?;
        Some(Proof { last_offset, max_timestamp, index_of_max })
    }

    /// Bounds of the extremes, by the header and the size, which a pass finds at no cost. They are
    /// enough for nearly every batch; where they are not, the extremes are.
    #[inline(always)]
    fn bounds(
        &mut self,
        records: &[u8],
        header: &BatchHeader,
        is_stamped: bool,
    ) -> Option<Extremes> {
        let max_delta = header.max_timestamp.checked_sub(header.base_timestamp)?;
        let mut timestamps = Timestamps::default();
        let header_bytes = if is_stamped {
            self.walk(records, header, &mut Nothing)?
        } else {
            self.walk(records, header, &mut timestamps)?
        };
        Some(Extremes {
            min_delta: timestamps.min_delta(),
            max_delta,
            index_of_max: if is_stamped { Some(0) } else { timestamps.index_of_max() },
            has_null_key: false,
            header_bytes,
        })
    }

    /// Judges the extremes of all records.
    #[inline(never)]
    fn judge_extremes(
        &mut self,
        records: &[u8],
        header: &BatchHeader,
        config: &TopicConfig,
        request: &Request,
    ) -> Option<(i64, usize)> {
        let mut extremes = Extremes::default();
        let mut target = EachRecord::new(|index, record| extremes.add(index, record));
        self.walk(records, header, &mut target)?;
        extremes.judge(header, config, request, self.max_headers)
    }

    /// Passes the records of an ordinary batch to a target. Returns how many bytes they are, or
    /// `None` if one is not right.
    #[inline(always)]
    fn walk(
        &mut self,
        records: &[u8],
        header: &BatchHeader,
        target: &mut impl Target,
    ) -> Option<usize> {
        if header.codec() == 0 {
            let is_right = ottla_kernels::is_right(self.kernels, records, header, target);
            return is_right.then_some(header.end);
        }
        self.walk_compressed(records, header, target)
    }

    /// As [`walk`](Self::walk), of a compressed batch.
    #[inline(never)]
    fn walk_compressed(
        &mut self,
        records: &[u8],
        header: &BatchHeader,
        target: &mut impl Target,
    ) -> Option<usize> {
        // The kernels judge the header of an uncompressed batch; this one differs in its codec.
        let codec = Compression::from_id(header.codec())?;
        let plain = BatchHeader { attributes: header.attributes & !7, ..*header };
        let is_possible =
            i64::from(header.record_count) == i64::from(header.last_offset_delta).wrapping_add(1);
        // The count of an ordinary batch fits its bytes; that of a compressed one need not.
        let single = BatchHeader { record_count: 1, last_offset_delta: 0, ..plain };
        let room = header.end.checked_sub(header.records_position())?;
        let is_ordinary = single.is_ordinary() || room < 7;
        if !is_possible || !is_ordinary {
            return None;
        }
        let covered = records.get(header.position.checked_add(CRC_START)?..header.end)?;
        if ottla_kernels::crc32c_at(self.kernels, covered) != header.crc {
            return None;
        }
        let bytes = records.get(header.records_position()..header.end)?;
        let inflated = self.codecs.decompress_at_once(codec, 2, bytes);
        let size = match inflated.map(<[u8]>::len) {
            Ok(size) => size,
            Err(refused) => {
                self.refused = refused;
                return None;
            }
        };
        let stops_clients = self.judges_framing && self.codecs.client_fault().is_some();
        if size > self.max_inflated || stops_clients {
            return None;
        }
        let inflated = self.codecs.inflated();
        ottla_kernels::walk_payload(self.kernels, inflated, &plain, target)
            .then_some(inflated.len())
    }
}

/// What a pass of the kernels finds of all records, or bounds of it.
struct Extremes {
    min_delta: i64,
    max_delta: i64,
    /// The first record with the largest delta, where it is known.
    index_of_max: Option<usize>,
    has_null_key: bool,
    /// Bytes of all headers with their counts, joined by OR: at least those of the longest.
    header_bytes: usize,
}

impl Default for Extremes {
    fn default() -> Self {
        Self {
            min_delta: i64::MAX,
            max_delta: i64::MIN,
            index_of_max: None,
            has_null_key: false,
            header_bytes: 0,
        }
    }
}

impl Extremes {
    #[inline]
    fn add(&mut self, index: usize, record: Record) {
        let delta = record.timestamp_delta;
        self.min_delta = self.min_delta.min(delta);
        if delta > self.max_delta {
            (self.max_delta, self.index_of_max) = (delta, Some(index));
        }
        self.has_null_key |= record.key_length < 0;
        self.header_bytes |= record.end.wrapping_sub(record.headers_position);
    }

    /// The largest timestamp and the first record that has it, if every record keeps the topic's
    /// rules.
    #[inline(always)]
    fn judge(
        &self,
        header: &BatchHeader,
        config: &TopicConfig,
        request: &Request,
        max_headers: usize,
    ) -> Option<(i64, usize)> {
        let index_of_latest = self.index_of_max?;
        // A base of at least −1 and deltas up to the header's maximum: no sum overflows.
        let earliest = header.base_timestamp.checked_add(self.min_delta)?;
        let latest = header.base_timestamp.checked_add(self.max_delta)?;
        let in_window = config.log_append_time(request.now_ms).is_some()
            || (earliest >= -1
                && request.now_ms.checked_sub(earliest)? <= config.message_timestamp_before_max_ms
                && latest.checked_sub(request.now_ms)? <= config.message_timestamp_after_max_ms);
        // A header has two bytes at least.
        let may_have_too_many = self.header_bytes / 2 > max_headers;
        let lacks_key = config.is_compacted && self.has_null_key;
        (in_window && !may_have_too_many && !lacks_key).then_some((latest, index_of_latest))
    }
}
