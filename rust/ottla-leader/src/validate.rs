//! The verdict on bytes: every check of a leader, in Kafka's order (`produce-validation.md` §1–§7).
//!
//! ```text
//! gate ─▸ analysis ─▸ validator ─▸ sizes ─▸ (producers)
//!                      ├ kept as it is, a new header before it
//!                      └ rebuilt: another codec or format, or offsets to put in order
//! ```
//!
//! Nearly every set is one ordinary batch whose codec the topic keeps: the kernels prove it in one
//! pass and all that is written is its header (`Validator::quick`). Whatever they do not say yes
//! to goes through the stages, which know every rule and name every fault.

use ottla_format::error_code::ErrorCode;
use ottla_kernels::{BatchHeader, EachRecord, Level, Nothing, Record, Target, Timestamps};

use crate::analysis::{Analysis, analyze};
use crate::config::TopicConfig;
use crate::convert;
use crate::gate;
use crate::metrics::Metrics;
use crate::profiles::{Difference, Profile};
use crate::records::{Parse, Records, Seen};
use crate::rewrite::{Stamp, patched, stamp_legacy};
use crate::state::PartitionState;
use crate::verdict::{Accepted, Culprits, Decision, Reason, RecordError, Refusal, Stored, Verdict};
use ottla_format::attributes::{Compression, LOG_APPEND_TIME, TRANSACTIONAL, TimestampType};
use ottla_format::batch::{BatchInfo, Payload, payload};
use ottla_format::batches::Batches;
use ottla_format::builder::NewRecord;
use ottla_format::check::ControlRecord;
use ottla_format::compression::Codecs;
use ottla_format::error::{ErrorKind, Field};
use ottla_format::header::{LOG_OVERHEAD, RECORD_BATCH_OVERHEAD};
use ottla_format::legacy::{self, Entry, LegacyRecord};
use ottla_format::limits::Limits;
use ottla_format::record::read_record;
pub use ottla_log::producers::Origin;
use ottla_log::producers::{Appender, UnknownSequence};

/// What is known of a record set beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The broker's clock, read once.
    pub now_ms: i64,
    /// Produce version. `None` goes by the gate: what the broker itself writes, and record sets of
    /// older formats, which no Produce version of Kafka 4 carries.
    pub api_version: Option<i16>,
    /// The offset that the first record gets: the log end offset.
    pub base_offset: i64,
    /// The log start offset, for the answer.
    pub log_start_offset: i64,
    /// The leader epoch that is stored with the batch.
    pub leader_epoch: i32,
    /// Who appends.
    pub origin: Origin,
    /// The request carries a transactional id that may be written with.
    pub has_transactional_id: bool,
    /// Whose decision is asked for.
    pub profile: Profile,
}

impl Default for Request {
    /// Produce 11 of a client, at the beginning of a log, in the strict profile.
    fn default() -> Self {
        Self {
            now_ms: 0,
            api_version: Some(11),
            base_offset: 0,
            log_start_offset: 0,
            leader_epoch: 0,
            origin: Origin::Client,
            has_transactional_id: false,
            profile: Profile::Strict,
        }
    }
}

/// Decides over record sets; holds the contexts and the arena of the codecs. One per thread.
pub struct Validator {
    codecs: Codecs,
    kernels: Level,
    limits: Limits,
}

impl Default for Validator {
    fn default() -> Self {
        Self::new(Limits::default(), Level::best())
    }
}

/// What a leader would do with a record set, in a partition that knows no producer.
///
/// # Examples
/// ```
/// use ottla_format::builder::{BatchFields, NewRecord, build_batch};
/// use ottla_leader::{Request, TopicConfig, Validator, validate};
///
/// let mut validator = Validator::default();
/// let record = NewRecord { value: Some(b"hello"), timestamp: 1000, ..NewRecord::default() };
/// let batch = build_batch(&BatchFields::default(), &[record], validator.codecs())?;
/// let request = Request { now_ms: 1000, base_offset: 42, ..Request::default() };
/// let verdict = validate(&batch, &TopicConfig::default(), &request, &mut validator);
/// let accepted = verdict.outcome.expect("a right batch is taken");
/// assert_eq!((accepted.base_offset, accepted.last_offset), (42, 42));
/// # Ok::<(), ottla_format::builder::BuildError>(())
/// ```
pub fn validate<'a>(
    records: &'a [u8],
    config: &TopicConfig,
    request: &Request,
    validator: &mut Validator,
) -> Verdict<'a> {
    let mut verdict = validator.validate(records, config, request);
    let Ok(accepted) = &verdict.outcome else { return verdict };
    let header = accepted.stored.header();
    // Nothing is known of any producer: only a negative epoch or a marker can be refused.
    let is_plain = header.is_none_or(|header| {
        !header.has_producer_id() || (header.producer_epoch >= -1 && !header.is_control())
    });
    if is_plain && request.origin != Origin::Replication {
        return verdict;
    }
    let mut state = PartitionState::new(0, request.base_offset, i64::MAX);
    let by = Appender {
        origin: request.origin,
        must_be_verified: false,
        guard: None,
        unknown: UnknownSequence::Accept,
    };
    let next_offset = accepted.last_offset.saturating_add(1);
    if let Err(refusal) = state.append(&accepted.stored, next_offset, &by, validator.codecs()) {
        verdict.refuse(Refusal::producer(request.profile, refusal));
    }
    verdict
}

impl Validator {
    /// A validator with its own bounds and kernels.
    pub fn new(limits: Limits, kernels: Level) -> Self {
        Self { codecs: Codecs::new(limits), kernels, limits }
    }

    /// The codecs, for other uses on the same thread.
    pub fn codecs(&mut self) -> &mut Codecs {
        &mut self.codecs
    }

    /// Decides over the bytes; what the partition knows of producers comes after it.
    pub fn validate<'a>(
        &mut self,
        records: &'a [u8],
        config: &TopicConfig,
        request: &Request,
    ) -> Verdict<'a> {
        let set_bytes = records.len();
        if let Some(header) = BatchHeader::parse(records, 0)
            && let Some(proven) = self.quick(records, &header, config, request)
        {
            let accepted = kept(records, &header, &proven, config, request);
            return Verdict::accepted(accepted, set_bytes, request);
        }
        let mut metrics = Metrics::default();
        self.codecs.set_limits(self.limits_of(request.profile));
        let outcome = self.stages(records, config, request, &mut metrics);
        self.codecs.set_limits(self.limits);
        match outcome {
            Ok(accepted) => Verdict::accepted(accepted, set_bytes, request),
            Err(refusal) => Verdict::refused(refusal, set_bytes, request, metrics),
        }
    }

    /// Kafka has no bounds of its own; what protects this engine's memory stays.
    fn limits_of(&self, profile: Profile) -> Limits {
        let mut limits = self.limits;
        if !profile.is_strict(Difference::Bomb) {
            limits.decompressed_ratio = u64::MAX;
        }
        if !profile.is_strict(Difference::HeaderCount) {
            limits.headers = u32::MAX;
        }
        limits
    }

    /// An ordinary batch of a client that is kept as it is, or `None`: the stages decide. What is
    /// within the validator's own bounds is within those of every profile.
    #[inline]
    fn quick(
        &mut self,
        records: &[u8],
        header: &BatchHeader,
        config: &TopicConfig,
        request: &Request,
    ) -> Option<Proven> {
        let (target, _) = config.target(Compression::from_id(header.codec())?);
        let by_client = request.origin == Origin::Client
            && header.base_offset == 0
            && (header.attributes & TRANSACTIONAL == 0
                || request.has_transactional_id
                || request.api_version.is_none())
            && request.api_version.is_none_or(|version| version >= 7);
        let is_kept = config.message_format == 2
            && target as u8 == header.codec()
            && header.end == records.len()
            && header.end as u64 <= u64::from(config.max_message_bytes.unsigned_abs())
            && header.end as u64 <= u64::from(config.segment_bytes.unsigned_abs());
        if !by_client || !is_kept || header.attributes & LOG_APPEND_TIME != 0 {
            return None;
        }
        let log_append_time = config.log_append_time(request.now_ms);
        let headers = self.limits.headers as usize;
        let judge = |seen: &Extremes| {
            let index_of_most = seen.index_of_most?;
            // A base of at least −1 and deltas up to the header's maximum: no sum overflows.
            let least = header.base_timestamp.checked_add(seen.least_delta)?;
            let most = header.base_timestamp.checked_add(seen.most_delta)?;
            let in_window = log_append_time.is_some()
                || (least >= -1
                    && request.now_ms.checked_sub(least)?
                        <= config.message_timestamp_before_max_ms
                    && most.checked_sub(request.now_ms)? <= config.message_timestamp_after_max_ms);
            // A header has two bytes at least.
            let may_have_too_many = seen.header_bytes / 2 > headers;
            let lacks_key = config.is_compacted && seen.has_null_key;
            (in_window && !may_have_too_many && !lacks_key).then_some((most, index_of_most))
        };
        let mut seen = Extremes::default();
        let mut proven = None;
        if !config.is_compacted {
            self.bounds(records, header, log_append_time.is_some(), &mut seen)?;
            proven = judge(&seen);
        }
        if proven.is_none() {
            self.extremes(records, header, &mut seen)?;
            proven = judge(&seen);
        }
        let (most, index_of_most) = proven?;
        let (max_timestamp, index_of_max) = match log_append_time {
            Some(time) => (time, Some(0)),
            None if most < 0 => (-1, None),
            None => (most, Some(index_of_most)),
        };
        let last_offset = request.base_offset.checked_add(i64::from(header.record_count) - 1)?;
        Some(Proven { last_offset, max_timestamp, index_of_max })
    }

    /// Bounds of the extremes, by the header and the size: what a pass finds at no cost. They are
    /// enough for nearly every batch; where they are not, the extremes are.
    fn bounds(
        &mut self,
        records: &[u8],
        header: &BatchHeader,
        is_stamped: bool,
        bounds: &mut Extremes,
    ) -> Option<()> {
        bounds.most_delta = header.max_timestamp.checked_sub(header.base_timestamp)?;
        if is_stamped {
            bounds.header_bytes = self.prove(records, header, &mut Nothing)?;
            bounds.least_delta = 0;
            bounds.index_of_most = Some(0);
        } else {
            let mut timestamps = Timestamps::default();
            bounds.header_bytes = self.prove(records, header, &mut timestamps)?;
            bounds.least_delta = timestamps.least_delta();
            bounds.index_of_most = timestamps.index_of_max();
        }
        Some(())
    }

    /// The extremes of all records.
    fn extremes(
        &mut self,
        records: &[u8],
        header: &BatchHeader,
        extremes: &mut Extremes,
    ) -> Option<()> {
        *extremes = Extremes::default();
        let mut target = EachRecord::new(|index, record| extremes.put(index, record));
        self.prove(records, header, &mut target).map(|_| ())
    }

    /// Gives the records of an ordinary batch to a target, if they are right: how many bytes they
    /// are.
    fn prove(
        &mut self,
        records: &[u8],
        header: &BatchHeader,
        target: &mut impl Target,
    ) -> Option<usize> {
        if header.codec() == 0 {
            let run = ottla_kernels::run(self.kernels, records, 0, target);
            return (run.position == header.end).then_some(header.end);
        }
        // The kernels judge the header of an uncompressed batch; this one differs in its codec.
        let codec = Compression::from_id(header.codec())?;
        let plain = BatchHeader { attributes: header.attributes & !7, ..*header };
        let is_possible = i64::from(header.record_count) == i64::from(header.last_offset_delta) + 1;
        // The count of an ordinary batch fits its bytes; that of a compressed one need not.
        let single = BatchHeader { record_count: 1, last_offset_delta: 0, ..plain };
        let room = header.end - header.records_position();
        let is_ordinary = single.is_ordinary() || room < 7;
        if !is_possible || !is_ordinary {
            return None;
        }
        let covered = records.get(header.position + 21..header.end)?;
        if ottla_kernels::crc32c_at(self.kernels, covered) != header.crc {
            return None;
        }
        let bytes = records.get(header.records_position()..header.end)?;
        let inflated = self.codecs.decompress(codec, 2, bytes).ok()?;
        ottla_kernels::walk_payload(self.kernels, inflated, &plain, target)
            .then_some(inflated.len())
    }

    fn stages<'a>(
        &mut self,
        records: &'a [u8],
        config: &TopicConfig,
        request: &Request,
        metrics: &mut Metrics,
    ) -> Decision<Accepted<'a>> {
        if let Some(api_version) = request.api_version {
            gate::check(records, request, api_version)?;
        }
        let analysis = analyze(records, config, request, metrics)?;
        if analysis.valid_bytes == 0 {
            return Ok(Accepted::nothing());
        }
        let set_bytes = records.len();
        let records = records.get(..analysis.valid_bytes).unwrap_or_default();
        let accepted = if request.origin == Origin::Replication {
            replicated(records, &analysis, request)?
        } else {
            let limits = self.limits_of(request.profile);
            let errors = Culprits::default();
            let mut pass = Pass { config, request, metrics, limits, errors, is_rebuilt: false };
            pass.validate(records, analysis.source, &mut self.codecs)?
        };
        sizes(&accepted, set_bytes, config, request, metrics)?;
        Ok(accepted)
    }
}

/// What is proven of an ordinary batch that is kept.
struct Proven {
    last_offset: i64,
    max_timestamp: i64,
    index_of_max: Option<usize>,
}

#[inline]
fn kept<'a>(
    records: &'a [u8],
    header: &BatchHeader,
    proven: &Proven,
    config: &TopicConfig,
    request: &Request,
) -> Accepted<'a> {
    let Proven { last_offset, max_timestamp, index_of_max } = *proven;
    let stamp = Stamp {
        last_offset,
        leader_epoch: request.leader_epoch,
        timestamp_type: config.message_timestamp_type,
        max_timestamp,
    };
    Accepted {
        base_offset: request.base_offset,
        last_offset,
        max_timestamp_ms: max_timestamp,
        offset_of_max_timestamp: index_of_max.map_or(-1, |at| request.base_offset + at as i64),
        log_append_time_ms: config.log_append_time(request.now_ms).unwrap_or(-1),
        stored: patched(records, header, &stamp),
        is_rebuilt: false,
        is_duplicate: false,
        converted: 0,
    }
}

/// What a follower appends as it is.
fn replicated<'a>(
    records: &'a [u8],
    analysis: &Analysis,
    request: &Request,
) -> Decision<Accepted<'a>> {
    if analysis.first_offset < request.base_offset {
        let (offset, log_end_offset) = (analysis.first_offset, request.base_offset);
        let reason = Reason::OffsetBelowEnd { offset, log_end_offset };
        return Err(Refusal::leak(request.profile, Difference::ReplicaOffsets, reason));
    }
    let (max_timestamp_ms, offset_of_max_timestamp) = analysis.max_timestamp;
    Ok(Accepted {
        base_offset: analysis.first_offset,
        last_offset: analysis.last_offset,
        max_timestamp_ms,
        offset_of_max_timestamp,
        stored: Stored::AsReceived(records),
        ..Accepted::nothing()
    })
}

/// What the stored bytes must keep (`produce-validation.md` §7).
fn sizes(
    accepted: &Accepted<'_>,
    set_bytes: usize,
    config: &TopicConfig,
    request: &Request,
    metrics: &mut Metrics,
) -> Decision<()> {
    if let (true, Stored::Owned(bytes)) = (accepted.is_rebuilt, &accepted.stored) {
        let limit = config.max_message_bytes;
        for batch in Batches::new(bytes, 0).flatten() {
            if batch.size > u64::from(limit.unsigned_abs()) {
                metrics.bytes_rejected += set_bytes as u64;
                let reason = Reason::RebuiltBatchTooLarge { size: batch.size, limit };
                return Err(Refusal::new(ErrorCode::MessageTooLarge, reason));
            }
        }
    }
    if let Some(header) = accepted.stored.header().filter(|header| header.base_offset < 0) {
        let reason = Reason::OffsetNegative { base_offset: header.base_offset };
        return Err(Refusal::leak(request.profile, Difference::NegativeOffset, reason));
    }
    let (size, limit) = (accepted.stored.len() as u64, config.segment_bytes);
    if size > u64::from(limit.unsigned_abs()) {
        let reason = Reason::SetTooLarge { size, limit };
        return Err(Refusal::new(ErrorCode::RecordListTooLarge, reason));
    }
    Ok(())
}

/// What a pass of the kernels sees of all records.
struct Extremes {
    least_delta: i64,
    most_delta: i64,
    /// The first with the most, where it is known.
    index_of_most: Option<usize>,
    has_null_key: bool,
    /// Bytes of all headers with their counts, joined by OR: at least those of the longest.
    header_bytes: usize,
}

impl Default for Extremes {
    fn default() -> Self {
        Self {
            least_delta: i64::MAX,
            most_delta: i64::MIN,
            index_of_most: None,
            has_null_key: false,
            header_bytes: 0,
        }
    }
}

impl Extremes {
    #[inline]
    fn put(&mut self, index: usize, record: Record) {
        let delta = record.timestamp_delta;
        self.least_delta = self.least_delta.min(delta);
        if delta > self.most_delta {
            (self.most_delta, self.index_of_most) = (delta, Some(index));
        }
        self.has_null_key |= record.key_length < 0;
        self.header_bytes |= record.end.wrapping_sub(record.headers_position);
    }
}

/// What the records of one or more batches came to.
#[derive(Clone, Copy, Debug)]
struct Summary {
    count: u64,
    max_timestamp: i64,
    index_of_max: u64,
    /// Offsets are 0, 1, 2, ….
    is_dense: bool,
}

impl Default for Summary {
    fn default() -> Self {
        Self { count: 0, max_timestamp: -1, index_of_max: 0, is_dense: true }
    }
}

impl Summary {
    fn add(&mut self, timestamp: i64, is_in_place: bool) {
        if timestamp > self.max_timestamp {
            (self.max_timestamp, self.index_of_max) = (timestamp, self.count);
        }
        self.is_dense &= is_in_place;
        self.count += 1;
    }
}

/// What a record is judged by, whatever its format.
#[derive(Clone, Copy, Debug)]
struct Facts {
    index: u32,
    has_key: bool,
    timestamp: i64,
}

/// One way through the validator.
struct Pass<'p> {
    config: &'p TopicConfig,
    request: &'p Request,
    metrics: &'p mut Metrics,
    limits: Limits,
    errors: Culprits,
    /// Records will be written anew, as far as is known before they are read.
    is_rebuilt: bool,
}

impl<'p> Pass<'p> {
    fn is_strict(&self, row: Difference) -> bool {
        self.request.profile.is_strict(row)
    }

    fn leak(&self, row: Difference, reason: Reason) -> Box<Refusal> {
        Refusal::leak(self.request.profile, row, reason)
    }

    fn validate<'a>(
        &mut self,
        records: &'a [u8],
        source: Compression,
        codecs: &mut Codecs,
    ) -> Decision<Accepted<'a>> {
        let target = self.config.target(source);
        let format = self.config.message_format;
        if source != Compression::None || target.0 != Compression::None {
            return self.compressed(records, source, target, codecs);
        }
        if batches(records).all(|(info, _)| info.magic == format) {
            self.in_place(records)
        } else {
            self.converted(records, target, codecs)
        }
    }

    /// Uncompressed and of the log's format: kept, with another header.
    fn in_place<'a>(&mut self, records: &'a [u8]) -> Decision<Accepted<'a>> {
        let first = first_batch(records, Compression::None)?;
        let (mut summary, mut index) = (Summary::default(), 0);
        let mut old_format = (first.magic < 2).then(|| records.to_vec());
        for (info, whole) in batches(records) {
            self.batch(&first, &info)?;
            let mut of_batch = Summary::default();
            if info.magic >= 2 {
                let payload = whole.get(RECORD_BATCH_OVERHEAD..).unwrap_or_default();
                of_batch = self.records(&info, payload, Parse::Full, false)?;
                summary = of_batch;
            } else {
                let timestamp = self.plain_record(&info, whole, index)?;
                of_batch.add(timestamp, true);
                summary.add(if info.magic > 0 { timestamp } else { -1 }, true);
                index += 1;
            }
            self.end_of_batch(info.magic < 2)?;
            if let Some(set) = &mut old_format {
                let end = (info.position + info.size) as usize;
                let entry = set.get_mut(info.position as usize..end).unwrap_or_default();
                let offset = self.request.base_offset.wrapping_add(summary.count as i64 - 1);
                stamp_legacy(entry, &self.stamp(offset, of_batch.max_timestamp));
            }
        }
        self.end_of_set()?;
        let last_offset = self.request.base_offset.wrapping_add(summary.count as i64 - 1);
        let stored = match old_format {
            Some(set) => Stored::Owned(set),
            None => self.patched(records, last_offset, summary.max_timestamp),
        };
        Ok(self.accepted(&summary, stored, false))
    }

    /// Uncompressed and of another format than the log's: written anew.
    fn converted<'a>(
        &mut self,
        records: &'a [u8],
        target: (Compression, Option<i32>),
        codecs: &mut Codecs,
    ) -> Decision<Accepted<'a>> {
        if !self.is_strict(Difference::StructureUnnamed) {
            self.estimated(records)?;
        }
        self.is_rebuilt = true;
        let first = first_batch(records, Compression::None)?;
        if first.is_transactional() && self.config.message_format < 2 {
            let reason = Reason::TransactionInOldFormat { magic: self.config.message_format };
            return Err(self.leak(Difference::FormatDowngrade, reason));
        }
        let mut writer = self.writer(target, records.len());
        let (mut summary, mut index) = (Summary::default(), 0);
        for (info, whole) in batches(records) {
            self.batch(&first, &info)?;
            if info.magic >= 2 {
                let payload = whole.get(RECORD_BATCH_OVERHEAD..).unwrap_or_default();
                summary = self.records(&info, payload, Parse::Full, false)?;
                self.rewritten(&info, payload, &mut writer)?;
            } else {
                let timestamp = self.plain_record(&info, whole, index)?;
                if self.errors.is_empty() {
                    let body = whole.get(LOG_OVERHEAD..).unwrap_or_default();
                    let record = legacy::read_body(body)
                        .map_err(|error| self.legacy_broken(error.kind, Some(index)))?;
                    writer.push(&old_record(&record, timestamp))?;
                }
                summary.add(timestamp, true);
                index += 1;
            }
            self.end_of_batch(info.magic < 2)?;
        }
        self.end_of_set()?;
        self.rebuilt(writer, &first, codecs)
    }

    /// Kafka estimates the new size first, and so meets every unreadable record before all else.
    fn estimated(&mut self, records: &[u8]) -> Decision<()> {
        for (info, whole) in batches(records) {
            if info.magic >= 2 {
                let payload = whole.get(RECORD_BATCH_OVERHEAD..).unwrap_or_default();
                let mut walk = Records::start(&info, payload, Parse::Full, self.limits)
                    .map_err(|kind| self.broken(kind, true, None))?;
                while walk.next().map_err(|kind| self.broken(kind, true, None))?.is_some() {}
            } else {
                let body = whole.get(LOG_OVERHEAD..).unwrap_or_default();
                legacy::read_body(body).map_err(|error| self.legacy_broken(error.kind, None))?;
            }
        }
        Ok(())
    }

    /// Compressed before or after.
    fn compressed<'a>(
        &mut self,
        records: &'a [u8],
        source: Compression,
        target: (Compression, Option<i32>),
        codecs: &mut Codecs,
    ) -> Decision<Accepted<'a>> {
        let format = self.config.message_format;
        let first = first_batch(records, source)?;
        let mut is_kept = source == target.0 && first.magic == format && format != 0;
        // Control records are not compressed.
        is_kept |= source == Compression::None && first.is_control();
        self.is_rebuilt = !is_kept;
        if first.magic >= 2 {
            return self.compressed_batch(records, &first, is_kept, target, codecs);
        }
        let mut summary = Summary::default();
        if source == Compression::None {
            for (index, (info, whole)) in (0..).zip(batches(records)) {
                self.batch(&first, &info)?;
                let timestamp = self.plain_record(&info, whole, index)?;
                summary.add(timestamp, true);
                self.end_of_batch(true)?;
            }
            self.end_of_set()?;
            let mut writer = self.writer(target, records.len());
            for (index, (info, whole)) in batches(records).enumerate() {
                let body = whole.get(LOG_OVERHEAD..).unwrap_or_default();
                let record = legacy::read_body(body)
                    .map_err(|error| self.legacy_broken(error.kind, Some(index as u32)))?;
                writer.push(&old_record(&record, info.max_timestamp))?;
            }
            return self.rebuilt(writer, &first, codecs);
        }
        self.batch(&first, &first)?;
        let rest;
        let set = match payload(&first, records) {
            Ok(Payload::Compressed { codec, bytes, .. }) => {
                match codecs.decompress(codec, first.magic, bytes).map(<[u8]>::len) {
                    Ok(_) => codecs.inflated(),
                    Err(kind) => {
                        rest = self.entries_before_damage(&first, kind, (codec, bytes), codecs)?;
                        &rest
                    }
                }
            }
            Ok(Payload::Plain { .. }) => &[],
            Err(error) => return Err(self.legacy_broken(error.kind, None)),
        };
        let wrapper = Wrapper::open(&first, set).map_err(|kind| self.legacy_broken(kind, None))?;
        let summary = self.inner_records(&wrapper)?;
        if is_kept && summary.is_dense {
            let last_offset = self.request.base_offset.wrapping_add(summary.count as i64 - 1);
            let mut set = records.to_vec();
            stamp_legacy(&mut set, &self.stamp(last_offset, summary.max_timestamp));
            return Ok(self.accepted(&summary, Stored::Owned(set), false));
        }
        let mut writer = self.writer(target, set.len());
        for (index, entry) in wrapper.entries.iter().enumerate() {
            let record = legacy::read_body(wrapper.body(entry))
                .map_err(|error| self.legacy_broken(error.kind, Some(index as u32)))?;
            writer.push(&old_record(&record, wrapper.timestamp(record.timestamp)))?;
        }
        self.rebuilt(writer, &first, codecs)
    }

    /// One batch of magic 2.
    fn compressed_batch<'a>(
        &mut self,
        records: &'a [u8],
        info: &BatchInfo,
        is_kept: bool,
        target: (Compression, Option<i32>),
        codecs: &mut Codecs,
    ) -> Decision<Accepted<'a>> {
        self.batch(info, info)?;
        let is_compressed = info.codec() != 0;
        // Kafka does not even open the payload of an empty batch that it keeps.
        let is_unopened =
            is_kept && info.record_count == Some(0) && !self.is_strict(Difference::Undecodable);
        let parse = if is_kept && is_compressed { Parse::Skip } else { Parse::Full };
        let rest;
        let payload = match payload(info, records) {
            Ok(Payload::Compressed { codec, bytes, .. }) if !is_unopened => {
                // Two calls, because the first borrows the codecs for as long as its bytes live.
                match codecs.decompress(codec, info.magic, bytes).map(<[u8]>::len) {
                    Ok(_) => codecs.inflated(),
                    Err(kind) => {
                        rest = self.before_damage(info, kind, (codec, bytes), parse, codecs)?;
                        &rest
                    }
                }
            }
            Ok(Payload::Compressed { .. }) => &[],
            Ok(Payload::Plain { start }) => records.get(start..).unwrap_or_default(),
            Err(error) => return Err(self.broken(error.kind, false, None)),
        };
        let summary = self.records(info, payload, parse, is_compressed)?;
        self.end_of_batch(false)?;
        if is_kept && summary.is_dense {
            let last_offset = self.request.base_offset.wrapping_add(summary.count as i64 - 1);
            let stored = self.patched(records, last_offset, summary.max_timestamp);
            return Ok(self.accepted(&summary, stored, false));
        }
        if parse == Parse::Skip {
            // Kafka has skipped the keys and values that it needs now.
            let reason = Reason::SkippedRecords;
            return Err(self.leak(Difference::OffsetDeltas, reason));
        }
        let mut writer = self.writer(target, payload.len());
        self.rewritten(info, payload, &mut writer)?;
        self.rebuilt(writer, info, codecs)
    }

    /// A payload that its codec refuses: Kafka sees the records before the damage, and refuses these
    /// first. Gives the payload where Kafka's own streams take it.
    fn before_damage(
        &mut self,
        info: &BatchInfo,
        kind: ErrorKind,
        (codec, bytes): (Compression, &[u8]),
        parse: Parse,
        codecs: &Codecs,
    ) -> Decision<Vec<u8>> {
        if self.is_strict(Difference::Undecodable) || !matches!(kind, ErrorKind::Undecodable { .. })
        {
            return Err(self.broken(kind, false, None));
        }
        let (payload, is_damaged) = codecs.decompress_before_damage(codec, info.magic, bytes);
        if !is_damaged {
            return Ok(payload);
        }
        let walked = Records::start(info, &payload, parse, self.limits)
            .map_err(|kind| self.broken(kind, false, None))
            .and_then(|walk| self.walk(info, walk.cut(), parse, true));
        match walked {
            Err(refusal) if !meets_end(&refusal.reason, parse) => Err(refusal),
            _ => Err(self.broken(kind, false, None)),
        }
    }

    /// The same of a wrapper, whose entries Kafka takes apart before it looks at any.
    fn entries_before_damage(
        &mut self,
        info: &BatchInfo,
        kind: ErrorKind,
        (codec, bytes): (Compression, &[u8]),
        codecs: &Codecs,
    ) -> Decision<Vec<u8>> {
        if self.is_strict(Difference::Undecodable) || !matches!(kind, ErrorKind::Undecodable { .. })
        {
            return Err(self.legacy_broken(kind, None));
        }
        let (set, is_damaged) = codecs.decompress_before_damage(codec, info.magic, bytes);
        if !is_damaged {
            return Ok(set);
        }
        match legacy::entries(&set) {
            Err(error) if matches!(error.kind, ErrorKind::SizeTooSmall { .. }) => {
                Err(self.legacy_broken(error.kind, None))
            }
            _ => Err(self.legacy_broken(kind, None)),
        }
    }

    /// What a batch must keep as a whole (`produce-validation.md` §5.5).
    fn batch(&mut self, first: &BatchInfo, info: &BatchInfo) -> Decision<()> {
        let format = self.config.message_format;
        let refused = |reason| Err(Refusal::invalid(reason));
        if first.magic != info.magic {
            self.metrics.invalid_magic_number_records += 1;
            return refused(Reason::MagicDiffers { magic: info.magic, first: first.magic });
        }
        if self.request.origin == Origin::Client {
            let reason =
                client_range(info).or(info.is_control().then_some(Reason::ControlFromClient));
            if let Some(reason) = reason {
                self.metrics.invalid_offset_or_sequence_records += 1;
                self.metrics.non_increasing_offset_records +=
                    u64::from(reason != Reason::ControlFromClient);
                return refused(reason);
            }
            let BatchInfo { producer_id, base_sequence, .. } = *info;
            if info.has_producer_id() && base_sequence < 0 {
                self.metrics.invalid_offset_or_sequence_records += 1;
                return refused(Reason::SequenceMissing { producer_id, base_sequence });
            }
        } else if self.is_strict(Difference::CoordinatorRange)
            && info.record_count != Some(0)
            && let Some(reason) = client_range(info)
        {
            return refused(reason);
        }
        let old_format = if format >= 2 {
            None
        } else if info.is_transactional() {
            Some(Reason::TransactionInOldFormat { magic: format })
        } else {
            info.has_producer_id().then_some(Reason::ProducerInOldFormat { magic: format })
        };
        if let Some(reason) = old_format {
            return Err(Refusal::new(ErrorCode::UnsupportedForMessageFormat, reason));
        }
        if info.magic >= 2 {
            let BatchInfo { producer_id, producer_epoch, .. } = *info;
            if self.is_strict(Difference::TransactionalWithoutProducer)
                && info.is_transactional()
                && !info.has_producer_id()
            {
                return refused(Reason::TransactionalWithoutProducer);
            }
            if self.is_strict(Difference::ProducerEpoch)
                && info.has_producer_id()
                && producer_epoch == -1
            {
                return refused(Reason::ProducerEpoch { producer_id, producer_epoch });
            }
        }
        Ok(())
    }

    /// Every record of a batch of magic 2.
    fn records(
        &mut self,
        info: &BatchInfo,
        payload: &[u8],
        parse: Parse,
        is_compressed: bool,
    ) -> Decision<Summary> {
        let walk = Records::start(info, payload, parse, self.limits)
            .map_err(|kind| self.broken(kind, !is_compressed, None))?;
        let summary = self.walk(info, walk, parse, is_compressed)?;
        if info.is_control() && self.is_strict(Difference::ControlRecord) {
            self.control_records(info, payload)?;
        }
        Ok(summary)
    }

    fn walk(
        &mut self,
        info: &BatchInfo,
        mut walk: Records<'_>,
        parse: Parse,
        is_compressed: bool,
    ) -> Decision<Summary> {
        let mut summary = Summary::default();
        loop {
            match walk.next() {
                Ok(Some(seen)) => {
                    let facts = Facts {
                        index: seen.index,
                        has_key: seen.has_key,
                        timestamp: seen.timestamp,
                    };
                    let is_right =
                        self.strict_record(info, &seen, parse) && self.record(info, facts);
                    // The offset, not the delta, is what Kafka holds against the place.
                    let offset = info.base_offset.wrapping_add(i64::from(seen.offset_delta));
                    let in_place = offset == summary.count as i64;
                    if is_right {
                        summary.add(seen.timestamp, in_place);
                    } else {
                        summary.count += 1;
                    }
                }
                Ok(None) => break,
                Err(kind) => {
                    let index = match kind {
                        ErrorKind::TooMany { .. } => Some(walk.index()),
                        kind => kind.record_index(),
                    };
                    let refusal = self.broken(kind, !is_compressed, index);
                    let can_go_on = self.is_strict(Difference::StructureUnnamed)
                        && index.is_some()
                        && walk.step_over();
                    if !can_go_on {
                        return Err(refusal);
                    }
                    // Named already; the other records are still to be judged.
                    self.errors = Culprits::of(*refusal);
                    summary.count += 1;
                }
            }
        }
        Ok(summary)
    }

    /// What only the strict profile asks of a record; the first broken rule names it.
    fn strict_record(&mut self, info: &BatchInfo, seen: &Seen, parse: Parse) -> bool {
        if self.request.profile != Profile::Strict {
            return true;
        }
        let Seen { index, offset_delta, timestamp_delta, .. } = *seen;
        let length_lies = parse == Parse::Skip
            && self.is_strict(Difference::RecordLengths)
            && u64::try_from(seen.declared_length) != Ok(seen.length);
        let out_of_place =
            self.is_strict(Difference::OffsetDeltas) && i64::from(offset_delta) != i64::from(index);
        let overflows = self.is_strict(Difference::TimestampOverflow)
            && info.timestamp_type() == TimestampType::CreateTime
            && info.base_timestamp.checked_add(timestamp_delta).is_none();
        let reason = if length_lies {
            let (declared, used) = (seen.declared_length, seen.length);
            Reason::Format(ErrorKind::RecordLengthMismatch { index, declared, used })
        } else if out_of_place {
            let expected = index as i32;
            Reason::Format(ErrorKind::OffsetDeltaMismatch { index, delta: offset_delta, expected })
        } else if overflows {
            let base_timestamp = info.base_timestamp;
            Reason::TimestampOverflow { base_timestamp, delta: timestamp_delta }
        } else {
            return true;
        };
        self.blame(index, ErrorCode::InvalidRecord, reason);
        false
    }

    /// The rules of a record: key, then timestamp. Whether it keeps them.
    fn record(&mut self, info: &BatchInfo, facts: Facts) -> bool {
        let Facts { index, has_key, timestamp } = facts;
        if self.config.is_compacted && !has_key {
            self.metrics.no_key_compacted_topic_records += 1;
            self.blame(index, ErrorCode::InvalidRecord, Reason::KeyMissing);
            return false;
        }
        let is_flagged = info.timestamp_type() == TimestampType::LogAppendTime;
        let is_judged = self.config.message_timestamp_type == TimestampType::CreateTime
            && timestamp != -1
            && !(is_flagged && self.is_strict(Difference::LogAppendTimeFlag));
        let reason = if is_judged {
            self.outside_window(timestamp)
        } else {
            is_flagged.then_some(Reason::TimestampType)
        };
        if let Some(reason) = reason {
            self.blame(index, ErrorCode::InvalidTimestamp, reason);
            return false;
        }
        let cannot_be_written =
            self.is_rebuilt && timestamp < -1 && self.is_strict(Difference::NegativeTimestamp);
        if cannot_be_written {
            let reason = Reason::TimestampNegative { timestamp };
            self.blame(index, ErrorCode::InvalidRecord, reason);
        }
        !cannot_be_written
    }

    /// Kafka's arithmetic wraps, and so lets some timestamps near the ends of 64 bits pass.
    fn outside_window(&self, timestamp: i64) -> Option<Reason> {
        let now = self.request.now_ms;
        let before = self.config.message_timestamp_before_max_ms;
        let after = self.config.message_timestamp_after_max_ms;
        let age = now.wrapping_sub(timestamp);
        (age > before || age.wrapping_neg() > after).then(|| Reason::TimestampOutOfRange {
            timestamp,
            earliest: now.saturating_sub(before),
            latest: now.saturating_add(after),
        })
    }

    fn blame(&mut self, batch_index: u32, error: ErrorCode, reason: Reason) {
        self.errors.push(RecordError { batch_index, error, reason }, &self.limits);
    }

    /// The control records of a broker's own batch, as those who read them need them.
    fn control_records(&mut self, info: &BatchInfo, payload: &[u8]) -> Decision<()> {
        let mut at = 0;
        for index in 0..info.record_count.unwrap_or(0).max(0) as u32 {
            let Ok((record, end)) = read_record(payload, at, index, &self.limits) else { break };
            if let Err(kind) = ControlRecord::read(index, record.key, record.value) {
                self.blame(index, ErrorCode::InvalidRecord, Reason::Format(kind));
            }
            at = end;
        }
        self.end_of_set()
    }

    /// A plain record of magic 0 or 1: its timestamp.
    fn plain_record(&mut self, info: &BatchInfo, whole: &[u8], index: u32) -> Decision<i64> {
        let body = whole.get(LOG_OVERHEAD..).unwrap_or_default();
        let key_at = if info.magic == 0 { 6 } else { 14 };
        let key_length = ottla_format::header::read_i32(body, key_at);
        // Kafka reads a key's length where it asks for a key, and no sooner.
        let has_key = match key_length {
            Some(length) => length >= 0,
            None if self.config.is_compacted => {
                let (size, minimum) = (body.len() as u64, key_at as u64 + 4);
                let kind = ErrorKind::LegacyTooShort { size, minimum };
                return Err(self.legacy_broken(kind, Some(index)));
            }
            None => true,
        };
        if let Some(kind) = self.unreadable(body) {
            self.blame(index, ErrorCode::InvalidRecord, Reason::Format(kind));
            return Ok(info.max_timestamp);
        }
        let in_kafka = if self.is_strict(Difference::LegacyPositions) { index } else { 0 };
        self.record(info, Facts { index: in_kafka, has_key, timestamp: info.max_timestamp });
        Ok(info.max_timestamp)
    }

    /// Why a record of magic 0 or 1 stops its readers. Kafka keeps one whose lengths it had no need
    /// to look at.
    fn unreadable(&self, body: &[u8]) -> Option<ErrorKind> {
        if !self.is_strict(Difference::LegacyLengths) {
            return None;
        }
        legacy::read_body(body).err().map(|error| error.kind)
    }

    /// The records inside a compressed wrapper.
    fn inner_records(&mut self, wrapper: &Wrapper<'_>) -> Decision<Summary> {
        let info = &wrapper.info;
        let names = self.is_strict(Difference::InnerRecords);
        let mut summary = Summary::default();
        for (index, entry) in (0u32..).zip(&wrapper.entries) {
            let body = wrapper.body(entry);
            let (magic, attributes) = (body[4] as i8, body[5]);
            let fatal = if attributes & 7 != 0 {
                Some((ErrorCode::InvalidRecord, ErrorKind::WrapperNested { index }))
            } else if magic != info.magic {
                self.metrics.invalid_magic_number_records += 1;
                let reason = Reason::RecordMagic { magic, batch: info.magic };
                self.blame(index, ErrorCode::InvalidRecord, reason);
                summary.count += 1;
                continue;
            } else {
                match legacy::checksums(body) {
                    Some((stored, computed)) if stored != computed => {
                        self.metrics.invalid_message_crc_records += 1;
                        let kind = ErrorKind::InnerCrcMismatch { index, stored, computed };
                        Some((ErrorCode::CorruptMessage, kind))
                    }
                    _ => self.unreadable(body).map(|kind| (ErrorCode::InvalidRecord, kind)),
                }
            };
            if let Some((error, kind)) = fatal {
                let reason = Reason::Format(kind);
                if !names {
                    return Err(Refusal::new(error, reason));
                }
                self.blame(index, error, reason);
                summary.count += 1;
                continue;
            }
            let key_at = if magic == 0 { 6 } else { 14 };
            let key_length = ottla_format::header::read_i32(body, key_at);
            if key_length.is_none() && self.config.is_compacted {
                let (size, minimum) = (body.len() as u64, key_at as u64 + 4);
                let kind = ErrorKind::LegacyTooShort { size, minimum };
                return Err(self.legacy_broken(kind, Some(index)));
            }
            let own =
                if magic == 0 { -1 } else { ottla_format::header::read_i64(body, 6).unwrap_or(-1) };
            let timestamp = wrapper.timestamp(own);
            let has_key = key_length.is_none_or(|length| length >= 0);
            let is_right = self.record(info, Facts { index, has_key, timestamp });
            let can_be_kept = info.magic > 0 && self.config.message_format > 0;
            if is_right && can_be_kept {
                summary.add(timestamp, wrapper.offset(entry) == summary.count as i64);
            } else {
                summary.count += 1;
            }
        }
        self.end_of_set()?;
        Ok(summary)
    }

    /// A batch of magic 2 whose records cannot be read; `index` blames one of them.
    fn broken(&mut self, kind: ErrorKind, is_plain: bool, index: Option<u32>) -> Box<Refusal> {
        let reason = Reason::Format(kind);
        let row = match kind {
            ErrorKind::VarintTooLong { field: Field::RecordLength, .. } if is_plain => {
                Some(Difference::LengthVarint)
            }
            ErrorKind::Undecodable { .. } => Some(Difference::Undecodable),
            ErrorKind::UnknownCodec { .. } => Some(Difference::UnknownCodec),
            _ => None,
        };
        self.refusal(row, reason, index)
    }

    /// A set of magic 0 or 1 that cannot be read.
    fn legacy_broken(&mut self, kind: ErrorKind, index: Option<u32>) -> Box<Refusal> {
        let reason = Reason::Format(kind);
        let row = match kind {
            ErrorKind::LegacyOverrun { .. } | ErrorKind::LegacyTooShort { .. } => {
                Some(Difference::LegacyLengths)
            }
            ErrorKind::Undecodable { .. } => Some(Difference::Undecodable),
            ErrorKind::SizeTooSmall { .. } => return Refusal::corrupt(kind),
            _ => None,
        };
        self.refusal(row, reason, index)
    }

    fn refusal(
        &mut self,
        row: Option<Difference>,
        reason: Reason,
        index: Option<u32>,
    ) -> Box<Refusal> {
        let refusal = match row {
            Some(row) => self.leak(row, reason),
            None => Refusal::invalid(reason),
        };
        if !self.is_strict(Difference::StructureUnnamed) {
            return refusal;
        }
        if let Some(index) = index {
            self.blame(index, refusal.error, reason);
        }
        if self.errors.is_empty() {
            refusal
        } else {
            Refusal::records(std::mem::take(&mut self.errors))
        }
    }

    /// Kafka raises what it has found at the end of each batch; strict waits for the set, where each
    /// record is a batch.
    fn end_of_batch(&mut self, is_legacy: bool) -> Decision<()> {
        if is_legacy && self.is_strict(Difference::LegacyPositions) {
            return Ok(());
        }
        self.end_of_set()
    }

    fn end_of_set(&mut self) -> Decision<()> {
        if self.errors.is_empty() {
            return Ok(());
        }
        Err(Refusal::records(std::mem::take(&mut self.errors)))
    }

    /// For a set written anew, whose records take about so many bytes.
    fn writer(&self, target: (Compression, Option<i32>), bytes: usize) -> convert::Records<'p> {
        convert::Records::new(self.config, self.request, self.limits, target, bytes)
    }

    /// Gives the records of a batch of magic 2, which are right, to a writer.
    fn rewritten(
        &mut self,
        info: &BatchInfo,
        payload: &[u8],
        writer: &mut convert::Records<'_>,
    ) -> Decision<()> {
        let is_stamped = info.timestamp_type() == TimestampType::LogAppendTime;
        // Headers are held one record at a time, dozens of bytes for each two of theirs.
        let limits = Limits::default();
        let mut at = 0;
        for index in 0..info.record_count.unwrap_or(0).max(0) as u32 {
            let (record, end) = read_record(payload, at, index, &limits)
                .map_err(|error| self.broken(error.kind, false, Some(index)))?;
            let own = info.base_timestamp.wrapping_add(record.timestamp_delta);
            writer.push(&NewRecord {
                timestamp: if is_stamped { info.max_timestamp } else { own },
                key: record.key,
                value: record.value,
                headers: record.headers.iter().collect(),
                offset_delta: None,
            })?;
            at = end;
        }
        Ok(())
    }

    fn rebuilt<'a>(
        &self,
        writer: convert::Records<'_>,
        first: &BatchInfo,
        codecs: &mut Codecs,
    ) -> Decision<Accepted<'a>> {
        let rebuilt = writer.finish(first, codecs)?;
        let summary = Summary {
            count: u64::from(rebuilt.count),
            max_timestamp: rebuilt.max_timestamp,
            index_of_max: u64::from(rebuilt.index_of_max),
            is_dense: true,
        };
        Ok(self.accepted(&summary, Stored::Owned(rebuilt.bytes), true))
    }

    fn accepted<'a>(
        &self,
        summary: &Summary,
        stored: Stored<'a>,
        is_rebuilt: bool,
    ) -> Accepted<'a> {
        let base_offset = self.request.base_offset;
        let log_append_time = self.config.log_append_time(self.request.now_ms);
        let has_timestamps = self.config.message_format > 0;
        let (max_timestamp, at) = match log_append_time {
            Some(time) if has_timestamps => (time, Some(0)),
            _ if summary.max_timestamp < 0 => (-1, None),
            _ => (summary.max_timestamp, Some(summary.index_of_max)),
        };
        Accepted {
            base_offset,
            last_offset: base_offset.wrapping_add(summary.count as i64 - 1),
            max_timestamp_ms: max_timestamp,
            offset_of_max_timestamp: at.map_or(-1, |at| base_offset.wrapping_add(at as i64)),
            log_append_time_ms: log_append_time.unwrap_or(-1),
            stored,
            is_rebuilt,
            is_duplicate: false,
            converted: if is_rebuilt { summary.count } else { 0 },
        }
    }

    fn stamp(&self, last_offset: i64, max_timestamp: i64) -> Stamp {
        let time = self.config.log_append_time(self.request.now_ms);
        Stamp {
            last_offset,
            leader_epoch: self.request.leader_epoch,
            timestamp_type: self.config.message_timestamp_type,
            max_timestamp: time.unwrap_or(max_timestamp),
        }
    }

    fn patched<'a>(&self, records: &'a [u8], last_offset: i64, max_timestamp: i64) -> Stored<'a> {
        match BatchHeader::parse(records, 0) {
            Some(header) => patched(records, &header, &self.stamp(last_offset, max_timestamp)),
            None => Stored::AsReceived(records),
        }
    }
}

/// Whether a parser went past the bytes it was given.
fn meets_end(reason: &Reason, parse: Parse) -> bool {
    match reason {
        Reason::Format(ErrorKind::RecordsMissing { .. }) => true,
        // A full parse takes a whole record before it looks at its fields.
        Reason::Format(ErrorKind::FieldOverrun { field, .. }) => {
            parse == Parse::Skip || *field == Field::RecordLength
        }
        _ => false,
    }
}

/// What a client's header says of its offsets and records, where it cannot be.
fn client_range(info: &BatchInfo) -> Option<Reason> {
    let count = info.record_count?;
    let BatchInfo { base_offset, last_offset, .. } = *info;
    let offsets = last_offset.wrapping_sub(base_offset).wrapping_add(1);
    if offsets <= 0 {
        Some(Reason::OffsetRange { base_offset, last_offset })
    } else if count <= 0 {
        Some(Reason::RecordCount { count })
    } else if offsets != i64::from(count) {
        Some(Reason::CountDiffers { count, offsets })
    } else {
        None
    }
}

/// The batches of a set that was analysed, with their bytes.
fn batches(records: &[u8]) -> impl Iterator<Item = (BatchInfo, &[u8])> {
    Batches::new(records, 0).map_while(|info| {
        let info = info.ok()?;
        let start = info.position as usize;
        Some((info, records.get(start..start.checked_add(info.size as usize)?)?))
    })
}

/// The first batch, after which no other may come unless all are plain records of magic 0 or 1.
fn first_batch(records: &[u8], source: Compression) -> Decision<BatchInfo> {
    let mut all = batches(records);
    let Some((first, _)) = all.next() else { return Err(Refusal::invalid(Reason::NoBatch)) };
    if (first.magic >= 2 || source != Compression::None) && all.next().is_some() {
        return Err(Refusal::invalid(Reason::SecondBatch));
    }
    Ok(first)
}

fn old_record<'a>(record: &LegacyRecord<'a>, timestamp: i64) -> NewRecord<'a> {
    NewRecord { timestamp, key: record.key, value: record.value, ..NewRecord::default() }
}

/// A compressed wrapper of magic 0 or 1, inflated.
struct Wrapper<'s> {
    info: BatchInfo,
    set: &'s [u8],
    entries: Vec<Entry>,
    base: i64,
}

impl<'s> Wrapper<'s> {
    fn open(info: &BatchInfo, set: &'s [u8]) -> Result<Self, ErrorKind> {
        let entries = legacy::entries(set).map_err(|error| error.kind)?;
        let base = legacy::absolute_base(info.magic, info.last_offset, &entries)
            .map_err(|error| error.kind)?;
        Ok(Self { info: *info, set, entries, base })
    }

    fn body(&self, entry: &Entry) -> &'s [u8] {
        self.set.get(entry.start..entry.end).unwrap_or_default()
    }

    fn offset(&self, entry: &Entry) -> i64 {
        if self.info.magic == 0 { entry.offset } else { self.base.wrapping_add(entry.offset) }
    }

    /// Of an inner record with its own timestamp.
    fn timestamp(&self, own: i64) -> i64 {
        match self.info.timestamp_type() {
            TimestampType::LogAppendTime => self.info.max_timestamp,
            _ => own,
        }
    }
}
