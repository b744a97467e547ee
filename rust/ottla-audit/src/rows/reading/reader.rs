//! The segments of a partition read one after the other.

use super::decisions::Decisions;
use super::options::{Isolation, ReadOptions};
use super::partition_walk::PartitionWalk;
use super::readable_batch::ReadableBatch;
use super::skipped::{Damage, SkippedBytes};
use super::whole_batch::{is_wrapper, wrapper_base_offset};
use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::rows::aborted::AbortedTransactions;
use crate::segment::damage_findings::{too_large_message, unreadable_message};
use crate::segment::scanner::Scanner;
use ottla_format::batch::BatchInfo;
use ottla_log::source::Source;
use std::io;

/// One step of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadStep {
    /// A batch to be read.
    Batch(ReadableBatch),
    /// Damage was passed over.
    Damage(Damage),
    /// A window of the log was read; no batch and no damage came of it yet.
    Busy,
    /// There is no more.
    End,
}

/// Reads the segments of a partition one after the other, a window at a time.
///
/// It opens nothing itself: before each step the caller has the file of [`PartitionReader::segment`]
/// open and passes it on.
///
/// # Examples
/// ```
/// use ottla_audit::{PartitionReader, ReadOptions, ReadStep, Isolation, Scanner};
/// use ottla_format::{check::Level, limits::Limits};
///
/// let options = ReadOptions {
///     isolation: Isolation::ReadCommitted,
///     start_offset: 0,
///     end_offset: i64::MAX,
///     stopped_cleanly: false,
/// };
/// let mut reader = PartitionReader::new(vec![Some(0)], options);
/// let mut scanner = Scanner::new(Level::Crc, Limits::default());
/// let empty: &[u8] = &[];
/// while reader.segment().is_some() {
///     assert!(matches!(reader.step(&mut scanner, &empty)?, ReadStep::Busy | ReadStep::End));
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PartitionReader {
    options: ReadOptions,
    /// The batches that are read.
    walk: PartitionWalk,
    /// Bytes of the segment.
    size: u64,
    /// Up to here the segment has been judged.
    judged_bytes: u64,
    /// Findings of bytes that are no batch, behind `judged_bytes`.
    findings: Vec<Finding>,
    skipped: Option<SkippedBytes>,
    /// What the markers decide; `None` before the first transactional batch.
    decisions: Option<Decisions>,
    /// The pass for markers, ahead of what is read, while it lasts.
    marker_pass: Option<PartitionWalk>,
    /// The last stable offset where a transaction is open, and its producer.
    open: Option<(i64, i64)>,
    /// Whether records have ended at `open`.
    is_stopped: bool,
    /// Whether reading has ended at the last offset asked for.
    is_cut: bool,
}

impl PartitionReader {
    /// A reader of segments with these base offsets in their names, in their order.
    pub fn new(segments: Vec<Option<i64>>, options: ReadOptions) -> Self {
        let is_at_or_before =
            |base: &Option<i64>| base.is_some_and(|base| base <= options.start_offset);
        // A transaction that begins before the first offset may be open, and end the reading there.
        let segment = match options.isolation {
            Isolation::ReadCommitted | Isolation::Decided => 0,
            Isolation::ReadUncommitted => segments.iter().rposition(is_at_or_before).unwrap_or(0),
        };
        Self {
            options,
            walk: PartitionWalk::new(segments, segment, 0),
            size: 0,
            judged_bytes: 0,
            findings: Vec::new(),
            skipped: None,
            decisions: None,
            marker_pass: None,
            open: None,
            is_stopped: false,
            is_cut: false,
        }
    }

    /// The same from a batch of the first segment on.
    #[must_use]
    pub fn from_position(self, position: u64) -> Self {
        let (segments, segment) = (self.walk.segments().to_vec(), self.walk.segment());
        let walk = PartitionWalk::new(segments, segment, position);
        Self { walk, judged_bytes: position, ..self }
    }

    /// With `read_committed`, once all markers were read: the aborted transactions, and the open one
    /// that comes first, as its offset and producer. A log without transactions never knows.
    pub fn transactions(&self) -> Option<(&AbortedTransactions, Option<(i64, i64)>)> {
        let decisions = self.decisions.as_ref().filter(|_| self.marker_pass.is_none())?;
        Some((decisions.aborted(), self.open))
    }

    /// The segment that the next step reads; `None` at the end.
    pub fn segment(&self) -> Option<usize> {
        let wanted = self.marker_pass.as_ref().unwrap_or(&self.walk);
        (!wanted.is_at_end()).then_some(wanted.segment())
    }

    /// The open transaction at which `read_committed` has stopped: the last stable offset, and the
    /// producer.
    pub fn stopped_by(&self) -> Option<(i64, i64)> {
        self.open.filter(|_| self.is_stopped)
    }

    /// The offset behind the last batch, once the whole log was read, also behind an open transaction;
    /// `None` before that, and where reading ended at the last offset that was asked for.
    pub fn log_end_offset(&self) -> Option<i64> {
        if self.is_cut || self.segment().is_some() {
            return None;
        }
        let first = self.walk.segments().last().copied().flatten();
        Some(self.walk.expected.or(first).unwrap_or(0))
    }

    /// Goes on. `source` is the file of [`PartitionReader::segment`].
    ///
    /// # Errors
    /// What ended reading.
    pub fn step(&mut self, scanner: &mut Scanner, source: &dyn Source) -> io::Result<ReadStep> {
        if self.marker_pass.is_some() {
            self.read_markers(scanner, source)?;
            return Ok(ReadStep::Busy);
        }
        while !self.walk.is_at_end() {
            if let Some(position) = self.walk.unlisted() {
                self.list(position, scanner, source)?;
                return Ok(ReadStep::Busy);
            }
            let Some((info, is_valid)) = self.walk.next() else {
                self.end_segment();
                return Ok(self.take_damage(None).map_or(ReadStep::Busy, ReadStep::Damage));
            };
            if is_valid && self.needs_markers(&info) {
                self.marker_pass = Some(self.walk.clone());
                return Ok(ReadStep::Busy);
            }
            self.skip_to(info.position);
            let limit = scanner.checker().limits().batch_bytes;
            if let Some(message) = self.fault(&info, is_valid, limit) {
                self.walk.pass();
                self.judged_bytes = info.position.saturating_add(info.size);
                self.skip(info.position, info.size, Severity::Error, message);
                continue;
            }
            let base_offset = self.first_offset(&info, scanner, source)?;
            if let Some(damage) = self.take_damage(Some(base_offset)) {
                return Ok(ReadStep::Damage(damage));
            }
            if base_offset >= self.options.end_offset {
                self.is_cut = true;
                self.walk.go_to(self.walk.segments().len());
                break;
            }
            if base_offset >= self.end_offset() && !self.is_stopped {
                self.stop();
                return Ok(ReadStep::Busy);
            }
            if let Some(batch) = self.accept(info, base_offset) {
                return Ok(ReadStep::Batch(batch));
            }
        }
        Ok(self.take_damage(None).map_or(ReadStep::End, ReadStep::Damage))
    }

    /// Goes on at this segment, which may be behind the last: those before it were deleted while the
    /// log was read.
    pub fn deleted_before(&mut self, segment: usize) -> ReadStep {
        if let Some(pass) = &mut self.marker_pass {
            pass.go_to(segment);
            self.end_markers();
            return ReadStep::Busy;
        }
        self.skip(0, 0, Severity::Error, "deleted while the log was read".to_owned());
        self.go_to(segment);
        self.take_damage(None).map_or(ReadStep::Busy, ReadStep::Damage)
    }

    /// The records of a batch could not be read, from an offset on.
    pub fn unreadable(&mut self, batch: &ReadableBatch, offset: i64, fault: &str) {
        let info = &batch.info;
        let message = format!("the batch at position {}: {fault}", info.position);
        self.skip(info.position, info.size, Severity::Error, message);
        if let Some(skipped) = &mut self.skipped {
            skipped.first_offset = skipped.first_offset.min(offset);
        }
    }

    /// A record of a batch was left out, because its offset cannot be right.
    pub fn misplaced(&mut self, batch: &ReadableBatch, offset: i64) {
        let info = &batch.info;
        let message = format!(
            "the batch at position {}: a record with offset {offset} is out of order and was left out",
            info.position
        );
        self.skip(info.position, info.size, Severity::Error, message);
    }

    /// Ends reading at the open transaction. Of what is behind it only where the log ends counts.
    fn stop(&mut self) {
        self.is_stopped = true;
        let last = self.walk.segments().len().saturating_sub(1);
        if self.walk.segment() < last
            && let Some(base_offset) = self.walk.base_offset_of(last)
        {
            self.walk.expected = self.walk.expected.max(Some(base_offset));
            self.go_to(last);
        }
    }

    /// Goes on at the beginning of a segment.
    fn go_to(&mut self, segment: usize) {
        self.walk.go_to(segment);
        self.findings.clear();
        self.judged_bytes = 0;
        self.size = 0;
    }

    /// Takes a valid batch. Returns it if the consumer gets records of it.
    fn accept(&mut self, info: BatchInfo, base_offset: i64) -> Option<ReadableBatch> {
        let before = self.options.start_offset.max(self.walk.expected.unwrap_or(i64::MIN));
        let first_offset = base_offset.max(before);
        self.walk.accept(&info);
        self.judged_bytes = info.position.saturating_add(info.size);
        let is_withheld =
            || self.decisions.as_ref().is_some_and(|decisions| decisions.withholds(&info));
        let (segment, end_offset) = (self.walk.segment(), self.end_offset());
        let is_outside = info.last_offset < before || base_offset >= end_offset;
        if info.is_control() || is_outside || is_withheld() {
            return None;
        }
        Some(ReadableBatch { segment, info, first_offset, end_offset })
    }

    fn list(
        &mut self,
        position: u64,
        scanner: &mut Scanner,
        source: &dyn Source,
    ) -> io::Result<()> {
        let findings =
            self.walk.list(position, self.options.stopped_cleanly, scanner, source)?.into_iter();
        self.findings.retain(|finding| finding.position >= Some(self.judged_bytes));
        self.findings.extend(findings.filter(|found| found.kind.row().has_no_batch()));
        self.size = source.size()?;
        Ok(())
    }

    fn end_segment(&mut self) {
        self.skip_to(self.size);
        self.go_to(self.walk.segment().saturating_add(1));
    }

    /// Skips bytes up to `position`, which are no batch.
    fn skip_to(&mut self, position: u64) {
        let (start, size) = (self.judged_bytes, position.saturating_sub(self.judged_bytes));
        if size == 0 {
            return;
        }
        self.judged_bytes = position;
        let mut inside = self
            .findings
            .iter()
            .filter(|finding| finding.position.is_some_and(|at| (start..position).contains(&at)));
        let (severity, message, are_zeros) = if let Some(first) = inside.next() {
            let severity = inside.fold(first.severity, |all, found| all.max(found.severity));
            (severity, first.message.to_string(), first.kind == FindingKind::ZeroTail)
        } else {
            (Severity::Error, unreadable_message(start, size), false)
        };
        let is_new = self.skipped.is_none();
        self.skip(start, size, severity, message);
        if let Some(skipped) = &mut self.skipped {
            skipped.are_zeros = are_zeros && (is_new || skipped.are_zeros);
        }
    }

    /// Adds to what was passed over since the last valid batch.
    fn skip(&mut self, position: u64, size: u64, severity: Severity, message: String) {
        let segment = self.walk.segment();
        let base_offset = self.walk.base_offset_of(segment);
        let first_offset = self.walk.expected.or(base_offset).unwrap_or(0);
        let skipped = self.skipped.get_or_insert(SkippedBytes {
            segment,
            position,
            size: 0,
            first_offset,
            severity,
            message,
            are_zeros: false,
        });
        skipped.size = skipped.size.saturating_add(size);
        skipped.severity = skipped.severity.max(severity);
        skipped.are_zeros = false;
    }

    /// Takes what was passed over before a valid batch that begins with `next`, or before the end of
    /// the log, as far as it concerns the offsets asked for.
    fn take_damage(&mut self, next: Option<i64>) -> Option<Damage> {
        if next.is_none() && !self.walk.is_at_end() {
            return None;
        }
        let end_offset = self.end_offset();
        self.skipped.take()?.into_damage(next, &self.options, end_offset)
    }

    /// Returns why the first batch is passed over, if it is not valid or not in its place.
    fn fault(&self, info: &BatchInfo, is_valid: bool, limit: u64) -> Option<String> {
        let position = info.position;
        if !is_valid {
            return Some(format!("the batch at position {position} has a wrong CRC"));
        }
        if info.size > limit {
            return Some(too_large_message(info, limit));
        }
        let (base, last) = (self.walk.base_offset(info), info.last_offset);
        self.walk.judge(info).fault(position, base, last)
    }

    /// The first offset of a valid batch. Behind damage that of a wrapper is not the one that was
    /// expected: its records show it.
    fn first_offset(
        &self,
        info: &BatchInfo,
        scanner: &mut Scanner,
        source: &dyn Source,
    ) -> io::Result<i64> {
        let base_offset = self.walk.base_offset(info);
        if self.skipped.is_none() || !is_wrapper(info) {
            return Ok(base_offset);
        }
        let found = wrapper_base_offset(scanner, source, info)?;
        let possible = base_offset..=info.last_offset;
        Ok(found.filter(|base| possible.contains(base)).unwrap_or(base_offset))
    }

    /// Whether the pass for markers has to come before this batch.
    fn needs_markers(&self, info: &BatchInfo) -> bool {
        self.options.isolation != Isolation::ReadUncommitted
            && self.decisions.is_none()
            && info.is_transactional()
            && info.has_producer_id()
            && !info.is_control()
    }

    /// Looks for markers in one more window.
    fn read_markers(&mut self, scanner: &mut Scanner, source: &dyn Source) -> io::Result<()> {
        let Some(pass) = &mut self.marker_pass else { return Ok(()) };
        if let Some(position) = pass.unlisted() {
            pass.list(position, self.options.stopped_cleanly, scanner, source)?;
        }
        let decisions = self.decisions.get_or_insert_with(Decisions::new);
        decisions.read(pass, scanner, source)?;
        if pass.unlisted().is_none() {
            pass.go_to(pass.segment().saturating_add(1));
        }
        self.end_markers();
        Ok(())
    }

    /// Ends the pass for markers behind the last segment.
    fn end_markers(&mut self) {
        if self.marker_pass.as_ref().is_some_and(|pass| !pass.is_at_end()) {
            return;
        }
        self.marker_pass = None;
        if self.options.isolation == Isolation::ReadCommitted {
            self.open = self.decisions.as_ref().and_then(Decisions::first_open);
        }
    }

    /// The offset behind the last one to be returned.
    fn end_offset(&self) -> i64 {
        let last_stable_offset = self.open.map_or(i64::MAX, |(offset, _)| offset);
        self.options.end_offset.min(last_stable_offset)
    }
}
