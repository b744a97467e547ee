//! What the batches of a segment amount to: counts, order of offsets, epochs, timestamps and
//! producers. A batch out of order is held back until the next one shows which of them is wrong.
//!
//! Every batch goes through one of these:
//!
//! | verb | batch |
//! | --- | --- |
//! | [`Tally::on_plain_batch`] | verified by the kernels; if it is in its place, it is counted at full speed |
//! | [`Tally::on_valid_batch`] | any other with a correct CRC |
//! | [`Tally::on_misplaced_batch`] | framed, but with no place in the log |
//! | [`Tally::on_damage`] | bytes that are none |

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::partition::gaps::OffsetRange;
use crate::partition::producers::MAX_PRODUCERS;
use crate::segment::context::SegmentContext;
use crate::segment::counters::MAX_COUNT;
use crate::segment::epochs::{EpochRun, MAX_EPOCHS, SETTLED_BATCHES, track_epoch};
use crate::segment::growth::{Growth, SharedFault};
use crate::segment::index_check::{IndexedBatch, Indexes};
use crate::segment::losses::UnboundedLoss;
use crate::segment::observation::{BatchObservation, OnBatch};
use crate::segment::order::{OffsetOrder, Placement, moved_to};
use crate::segment::producer_events::{VerdictSink, producer_event, unknown_marker};
use crate::segment::segment_scan::SegmentScan;
use crate::segment::tail::Tail;
use crate::segment::timestamps::{self, MIN_MILLISECONDS, TIMESTAMP_AFTER_MAX_MS, TimeRange};
use ottla_format::attributes::TimestampType;
use ottla_format::batch::BatchInfo;
use ottla_format::words;
use ottla_kernels::BatchHeader;
use serde::{Deserialize, Serialize};

/// What a tally remembers of the batches before: all that its judgement of the next ones needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TallyMemory {
    /// The offset that should come next; `i64::MIN` while any may.
    expected: i64,
    epoch: i32,
    /// Whether the batches before leave no doubt about the leader epoch.
    is_epoch_settled: bool,
    pending: Option<BatchObservation>,
    after_damage: bool,
    has_first: bool,
}

impl TallyMemory {
    /// Before the first batch of a segment with this base offset, if that is known.
    pub(crate) fn new(base_offset: Option<i64>) -> Self {
        Self {
            expected: base_offset.unwrap_or(i64::MIN),
            epoch: i32::MIN,
            is_epoch_settled: false,
            pending: None,
            after_damage: false,
            has_first: false,
        }
    }

    /// Whether a walk can remember this; bytes from elsewhere may claim anything.
    pub(crate) fn is_possible(&self) -> bool {
        let is_offset = self.expected >= 0 || self.expected == i64::MIN;
        is_offset && self.pending.is_none_or(|pending| pending.records < MAX_COUNT)
    }
}

/// An offset that no plain batch has: every batch takes the careful way.
const NO_FAST_OFFSET: i64 = i64::MIN;

/// The sum of the batches of a walk.
pub(crate) struct Tally<'a> {
    scan: SegmentScan,
    on_batch: Option<&'a mut OnBatch<'a>>,
    indexes: &'a Indexes,
    order: OffsetOrder,
    /// A batch out of order, until the one behind it is there.
    pending: Option<BatchObservation>,
    /// Leader epoch of the last batch in its place.
    epoch: i32,
    growth: Growth,
    times: TimeRange,
    /// The latest time that a clock may show.
    latest_ms: i64,
    /// `order.expected` while a plain batch with this base offset only has to be counted;
    /// [`NO_FAST_OFFSET`] otherwise.
    fast_offset: i64,
    /// Plain batches and their records since `fast_offset` was armed; not in `scan` yet.
    fast_batches: u64,
    fast_records: u64,
}

impl<'a> Tally<'a> {
    /// The tally of a segment before its first batch.
    pub(crate) fn new(
        context: SegmentContext,
        indexes: &'a Indexes,
        on_batch: Option<&'a mut OnBatch<'a>>,
    ) -> Self {
        let scan = SegmentScan { context, ..SegmentScan::default() };
        let memory = TallyMemory::new(context.base_offset);
        Self { on_batch, ..Self::resume(scan, memory, Growth::default(), indexes) }
    }

    /// A tally that knows nothing of the batches before.
    pub(crate) fn open(context: SegmentContext, indexes: &'a Indexes) -> Self {
        let scan = SegmentScan { context, ..SegmentScan::default() };
        Self::resume(scan, TallyMemory::new(None), Growth::open(), indexes)
    }

    /// Goes on where another tally was [suspended](Self::suspend).
    pub(crate) fn resume(
        mut scan: SegmentScan,
        memory: TallyMemory,
        growth: Growth,
        indexes: &'a Indexes,
    ) -> Self {
        scan.index_check.resume(indexes);
        if scan.context.is_compared {
            scan.fingerprint.get_or_insert_default();
        }
        let TallyMemory { expected, epoch, pending, after_damage, has_first, .. } = memory;
        let order =
            OffsetOrder { has_first, after_damage, ..OffsetOrder::new(&scan.context, expected) };
        let times = TimeRange::new(scan.oldest, scan.newest);
        let latest_ms = scan.context.now_ms.saturating_add(TIMESTAMP_AFTER_MAX_MS);
        Self {
            scan,
            on_batch: None,
            indexes,
            order,
            pending,
            epoch,
            growth,
            times,
            latest_ms,
            fast_offset: NO_FAST_OFFSET,
            fast_batches: 0,
            fast_records: 0,
        }
    }

    fn memory(&self) -> TallyMemory {
        TallyMemory {
            expected: self.order.expected,
            epoch: self.epoch,
            is_epoch_settled: match self.scan.leader_epochs.last() {
                Some(run) => run.epoch == self.epoch && run.batches >= SETTLED_BATCHES,
                None => true,
            },
            pending: self.pending,
            after_damage: self.order.after_damage,
            has_first: self.order.has_first,
        }
    }

    /// Forgets everything but its memory: what follows is a part of its own. Returns the memory, or
    /// `None` where the next batches are judged by more than that.
    pub(crate) fn begin_part(&mut self) -> Option<TallyMemory> {
        let memory = self.memory();
        if !memory.is_epoch_settled || memory.after_damage || !memory.has_first {
            return None;
        }
        let mut scan = SegmentScan { context: self.scan.context, ..SegmentScan::default() };
        let run = self.scan.leader_epochs.last();
        scan.leader_epochs.extend(run.map(|run| EpochRun::settled(run.epoch)));
        *self = Self::resume(scan, memory, Growth::open(), self.indexes);
        Some(memory)
    }

    /// Returns the part that ends here, and what the next one has to know.
    pub(crate) fn suspend(mut self) -> (SegmentScan, TallyMemory, Growth) {
        self.flush_fast_counts();
        (self.scan.oldest, self.scan.newest) = self.times.ends();
        self.scan.producer_findings.trim();
        self.scan.ended.sort();
        self.scan.index_check.suspend(self.indexes);
        let memory = self.memory();
        (self.scan, memory, self.growth)
    }

    /// What was known about the segment before.
    pub(crate) fn context(&self) -> &SegmentContext {
        &self.scan.context
    }

    /// Where in the order of offsets the walk is.
    pub(crate) fn order(&self) -> &OffsetOrder {
        &self.order
    }

    /// Sets what is called for every batch that is framed correctly. Returns what was called before.
    pub(crate) fn call_on_batch(
        &mut self,
        on_batch: Option<&'a mut OnBatch<'a>>,
    ) -> Option<&'a mut OnBatch<'a>> {
        std::mem::replace(&mut self.on_batch, on_batch)
    }

    /// A plain batch, verified by the kernels; `base` is the position of their buffer in the file,
    /// `earliest_timestamp` that of a record where it is known.
    #[inline]
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "the kernels have checked the header against the buffer: its offsets fit, its count \
                  is not negative, and positions and counts are below the size of a file"
    )]
    pub(crate) fn on_plain_batch(
        &mut self,
        header: &BatchHeader,
        base: u64,
        earliest_timestamp: Option<i64>,
    ) {
        let last_offset = header.base_offset + i64::from(header.last_offset_delta);
        let oldest =
            if header.is_log_append_time() { header.max_timestamp } else { header.base_timestamp };
        let (position, end) = (base + header.position as u64, base + header.end as u64);
        let is_fast = header.base_offset == self.fast_offset
            && last_offset <= self.order.highest
            && header.partition_leader_epoch == self.epoch
            && oldest >= MIN_MILLISECONDS
            && earliest_timestamp.is_none_or(|earliest| earliest >= MIN_MILLISECONDS)
            && header.max_timestamp >= MIN_MILLISECONDS
            && header.max_timestamp <= self.latest_ms
            && !self.scan.index_check.is_due(position, header.base_offset);
        if !is_fast {
            self.flush_fast_counts();
            let seen = BatchObservation::of_header(header, base);
            self.on_valid_batch(BatchObservation { earliest_timestamp, ..seen });
            self.arm_fast_path();
            return;
        }
        self.scan.index_check.pass(position, end, header.max_timestamp);
        self.scan.largest_batch = self.scan.largest_batch.max(end.saturating_sub(position));
        if let Some(fingerprint) = &mut self.scan.fingerprint {
            fingerprint.observe(&BatchObservation::of_header(header, base).info);
        }
        self.fast_batches += 1;
        self.fast_records += header.record_count as u64;
        self.fast_offset = last_offset.saturating_add(1);
        if !self.times.covers(oldest, header.max_timestamp) {
            self.times.extend(oldest, header.base_offset, position);
            self.times.extend(header.max_timestamp, header.base_offset, position);
        }
        if header.producer_id >= 0 {
            let seen = BatchObservation::of_header(header, base);
            self.scan.counters.count_producer(&seen.info);
            self.track_producer(&seen);
        }
    }

    /// Adds what was counted at full speed. To be called before anything but a plain batch in its
    /// place.
    pub(crate) fn flush_fast_counts(&mut self) {
        let batches = std::mem::take(&mut self.fast_batches);
        if batches > 0 {
            let records = std::mem::take(&mut self.fast_records);
            self.scan.counters.count_plain(batches, records);
            self.order.expected = self.fast_offset;
            if let Some(run) = self.scan.leader_epochs.last_mut() {
                run.extend(batches);
            }
        }
        self.fast_offset = NO_FAST_OFFSET;
    }

    /// From now on a plain batch in its place only has to be counted, if nothing waits for a batch.
    pub(crate) fn arm_fast_path(&mut self) {
        let is_idle = self.pending.is_none() && !self.order.after_damage && self.on_batch.is_none();
        self.fast_offset = if is_idle { self.order.expected } else { NO_FAST_OFFSET };
    }

    /// A batch with a correct CRC.
    pub(crate) fn on_valid_batch(&mut self, seen: BatchObservation) {
        if let Some(on_batch) = &mut self.on_batch {
            on_batch(&seen.info, true);
        }
        if let Some(fingerprint) = &mut self.scan.fingerprint {
            fingerprint.observe(&seen.info);
        }
        if let Some(pending) = self.pending.take() {
            self.place(&pending, Some(seen.info.base_offset));
        }
        let base = seen.base_offset(self.order.first_unseen());
        if self.order.takes(base, seen.info.last_offset) {
            self.accept(&seen, base);
        } else {
            self.pending = Some(seen);
        }
    }

    /// Decides about a batch out of order, with the base offset of the one `behind` it.
    fn place(&mut self, seen: &BatchObservation, behind: Option<i64>) {
        let info = &seen.info;
        let expected = self.order.first_unseen();
        let base = seen.base_offset(expected);
        match self.order.judge(base, info.last_offset, behind) {
            Placement::Accept => self.accept(seen, base),
            Placement::Gap { .. } => {
                if self.order.has_first && !self.order.after_damage {
                    self.push(gap(info, expected, base));
                }
                self.accept(seen, base);
            }
            Placement::Repeat { is_whole } => {
                self.grow(SharedFault::Repeat, info, || {
                    (format!("at least {expected}"), info.base_offset.to_string())
                });
                if is_whole {
                    self.on_misplaced_batch(info);
                    self.scan.counters.count(seen);
                } else {
                    self.accept(seen, base);
                }
            }
            Placement::WrongBase { base_offset, next_base_offset } => {
                let (finding, info) = wrong_base(info, base_offset, next_base_offset);
                self.push(finding);
                self.accept(&BatchObservation { info, ..*seen }, base_offset);
            }
            Placement::Stray => {
                let OffsetOrder { lowest, highest, .. } = self.order;
                self.grow(SharedFault::OutOfSegment, info, || {
                    (format!("{lowest} to {highest}"), info.base_offset.to_string())
                });
                self.on_misplaced_batch(info);
            }
        }
    }

    /// A batch in its place.
    fn accept(&mut self, seen: &BatchObservation, base: i64) {
        let info = &seen.info;
        if self.order.has_first {
            let missing = base.saturating_sub(self.order.expected).max(0);
            self.scan.holes = self.scan.holes.saturating_add(missing);
        } else {
            self.scan.first_offset = Some(base);
        }
        self.scan.bound_losses(base);
        self.scan.largest_batch = self.scan.largest_batch.max(info.size);
        self.order.advance(info.last_offset);
        let (position, last_offset) = (info.position, info.last_offset);
        if info.is_control() {
            self.scan.control.push(OffsetRange { first_offset: base, last_offset, position });
        } else {
            let removed = &mut self.scan.counters.removed_offsets;
            *removed = removed.saturating_add(seen.removed_offsets(base));
        }
        let indexed = IndexedBatch {
            position,
            end: position.saturating_add(info.size),
            base_offset: base,
            timestamp: (info.magic > 0).then_some(info.max_timestamp),
        };
        self.scan.index_check.at(self.indexes, &indexed);
        self.scan.counters.count(seen);
        if info.partition_leader_epoch >= 0 {
            self.epoch = info.partition_leader_epoch;
            if let Some(fault) = track_epoch(&mut self.scan.leader_epochs, info, base) {
                self.push(fault);
            }
        }
        self.track_timestamps(seen);
        if info.has_producer_id() {
            self.track_producer(seen);
        }
    }

    fn track_timestamps(&mut self, seen: &BatchObservation) {
        let info = &seen.info;
        let kind = info.timestamp_type();
        if kind == TimestampType::None || info.record_count == Some(0) {
            return;
        }
        let has_base = kind == TimestampType::CreateTime && info.delete_horizon_ms().is_none();
        let base = has_base.then_some(info.base_timestamp);
        for timestamp in base.into_iter().chain([info.max_timestamp]).filter(|&time| time != -1) {
            self.times.extend(timestamp, info.base_offset, info.position);
            if self.has_suspect(timestamp, info) {
                return;
            }
        }
        // A header names the first and the latest timestamp: what is between them is judged, too.
        if let Some(earliest) = seen.earliest_timestamp {
            self.has_suspect(earliest, info);
        }
    }

    /// Reports a timestamp of a batch that no clock shows. Returns whether it is one.
    fn has_suspect(&mut self, timestamp: i64, info: &BatchInfo) -> bool {
        let Some(fault) = timestamps::find_fault(timestamp, self.latest_ms) else { return false };
        self.grow(fault, info, || {
            ("milliseconds, and not in the future".to_owned(), timestamp.to_string())
        });
        true
    }

    fn track_producer(&mut self, seen: &BatchObservation) {
        let info = &seen.info;
        let event = match producer_event(seen, self.scan.holes) {
            Ok(Some(event)) => event,
            Ok(None) => return,
            Err(control) => {
                self.push(unknown_marker(info, control));
                return;
            }
        };
        let is_consumer_offsets = self.scan.context.is_consumer_offsets;
        let SegmentScan { producers, producer_findings, counters, ended, .. } = &mut self.scan;
        let mut sink = VerdictSink { is_consumer_offsets, counters, producer_findings, ended };
        producers.observe(info.producer_id, event, &mut |id, verdict| sink.take(id, &verdict));
    }

    fn grow(
        &mut self,
        fault: SharedFault,
        info: &BatchInfo,
        values: impl FnOnce() -> (String, String),
    ) {
        self.growth.grow(&mut self.scan.findings, fault, info, values);
    }

    /// A batch that is framed, but has no place in the log.
    fn on_misplaced_batch(&mut self, info: &BatchInfo) {
        let end = info.position.saturating_add(info.size);
        self.scan.index_check.stray(self.indexes, info.position, end);
    }

    /// A batch with a wrong CRC.
    pub(crate) fn on_bad_batch(&mut self, info: &BatchInfo) {
        if let Some(on_batch) = &mut self.on_batch {
            on_batch(info, false);
        }
        self.on_misplaced_batch(info);
    }

    /// Counts a batch of `bytes` bytes with a wrong CRC.
    pub(crate) fn count_bad_batch(&mut self, bytes: u64) {
        self.scan.counters.count_bad_batch(bytes);
    }

    /// Counts bytes that are no valid batch.
    pub(crate) fn count_damaged_bytes(&mut self, bytes: u64) {
        self.scan.counters.count_damaged_bytes(bytes);
    }

    /// The source ends with these bytes, which are no batch.
    pub(crate) fn on_tail(&mut self, tail: Tail) {
        self.scan.tail = Some(tail);
    }

    /// The last valid batch ends at `position`.
    pub(crate) fn on_valid_bytes(&mut self, position: u64) {
        self.scan.valid_bytes = position;
    }

    /// Bytes that are lost begin: a batch that was held back is decided without one behind it.
    pub(crate) fn before_damage(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.place(&pending, None);
        }
        self.growth.end();
    }

    /// Bytes are lost; their offsets are known when the next valid batch is. `offsets` are those in
    /// their header, where that is to be believed.
    pub(crate) fn on_damage(&mut self, finding: Finding, offsets: Option<(i64, i64)>) {
        let lowest = self.order.first_unseen();
        let finding = match offsets {
            Some((first, last)) => finding.offsets(first, last),
            None => finding,
        };
        let has_offsets = offsets.is_some_and(|(first, _)| first >= lowest);
        self.order.after_damage = true;
        self.scan.index_check.lost();
        if let Some(finding) = self.scan.findings.push(finding) {
            self.scan.unbounded_losses.push(UnboundedLoss { finding, has_offsets, lowest });
        }
    }

    /// No record of a batch has the max timestamp in its header.
    #[cold]
    pub(crate) fn on_unreached_max_timestamp(&mut self, info: &BatchInfo) {
        let message = format!(
            "the batch at position {} has {} as max timestamp in its header, later than any of its records: lookups by time and retention by time use the header",
            info.position,
            words::moment(info.max_timestamp)
        );
        self.push(
            Finding::new(FindingKind::TimestampSuspect, message)
                .at(info.position, info.size)
                .offsets(info.base_offset, info.last_offset)
                .values("the timestamp of a record", info.max_timestamp),
        );
    }

    /// Reading failed at `position`.
    pub(crate) fn on_read_failure(&mut self, position: u64, failure: &str) {
        let message = format!("reading failed at position {position}: {failure}");
        self.push(Finding::new(FindingKind::Unreadable, message).at(position, 0));
    }

    /// Adds a finding as it is.
    pub(crate) fn push(&mut self, finding: Finding) {
        self.scan.findings.push(finding);
    }

    /// Returns the findings so far and the tail, and forgets everything else.
    pub(crate) fn into_findings(mut self) -> (Vec<Finding>, Option<Tail>) {
        (std::mem::take(self.scan.findings.kept_mut()), self.scan.tail)
    }

    /// Returns the scan of the segment, which ends here.
    pub(crate) fn finish(mut self) -> SegmentScan {
        self.before_damage();
        if self.order.has_first {
            self.scan.next_offset = Some(self.order.expected);
        }
        (self.scan.oldest, self.scan.newest) = self.times.ends();
        self.scan.ended.sort();
        if self.order.after_damage || self.scan.valid_bytes < self.scan.counters.bytes {
            self.scan.index_check.lost_end();
        }
        self.scan.index_check.suspend(self.indexes);
        let producer_findings = std::mem::take(&mut self.scan.producer_findings);
        self.scan.findings.append(producer_findings.into_findings(), None);
        let left_out = self.scan.producers.left_out();
        if left_out > 0 {
            let message = format!(
                "{} {} to producers beyond the first {MAX_PRODUCERS}: their sequences and transactions were not checked",
                words::count(left_out, "batch"),
                if left_out == 1 { "belongs" } else { "belong" }
            );
            let finding = Finding::new(FindingKind::LimitExceeded, message);
            self.push(finding.values(format!("at most {MAX_PRODUCERS} producers"), "more"));
        }
        if self.scan.leader_epochs.len() >= MAX_EPOCHS {
            let message = format!(
                "the leader epoch changes {MAX_EPOCHS} times and more: later changes were not followed"
            );
            let finding = Finding::new(FindingKind::LimitExceeded, message);
            self.push(finding.values(format!("less than {MAX_EPOCHS} changes"), "more"));
        }
        self.scan
    }
}

/// The finding of offsets that are missing before a batch.
fn gap(info: &BatchInfo, expected: i64, base: i64) -> Finding {
    let last = base.saturating_sub(1);
    let message = format!(
        "{} before the batch at position {}",
        words::offsets_are(expected, last, "missing"),
        info.position
    );
    let finding = Finding::new(FindingKind::OffsetGap, message)
        .at(info.position, info.size)
        .offsets(expected, last)
        .values(expected, base);
    Finding { next_good_offset: Some(base), ..finding }
}

/// The finding of a wrong base offset, and the batch with the one that fits.
fn wrong_base(info: &BatchInfo, base_offset: i64, next_base_offset: i64) -> (Finding, BatchInfo) {
    let found = info.base_offset;
    let message = format!(
        "the batch at position {} has base offset {found}, but the next one starts at {next_base_offset}: only base offset {base_offset} fits",
        info.position
    );
    let moved = moved_to(info, base_offset);
    let finding = Finding::new(FindingKind::BaseOffsetWrong, message)
        .at(info.position, info.size)
        .offsets(base_offset, moved.last_offset)
        .values(base_offset, found);
    (finding, moved)
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use ottla_format::header::{Header, RECORD_BATCH_OVERHEAD};

    #[test]
    fn a_batch_held_back_has_no_more_records_than_a_log() {
        let header = Header::read(&[0; RECORD_BATCH_OVERHEAD], 0).expect("long enough");
        let info = BatchInfo::from_header(&header, 0);
        let seen = |records| BatchObservation {
            info,
            records,
            control: None,
            has_base_offset: true,
            is_readable: true,
            earliest_timestamp: None,
        };
        let memory =
            |records| TallyMemory { pending: Some(seen(records)), ..TallyMemory::new(Some(0)) };
        assert!(memory(7).is_possible());
        assert!(!memory(u64::MAX).is_possible());
    }
}
