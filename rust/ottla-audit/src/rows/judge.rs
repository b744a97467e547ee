//! Which batches of a segment a consumer gets records of, and what is passed over: the rules of
//! `reading` for a reader of one segment.

use super::aborted::AbortedTransactions;
use super::range::RowBounds;
use super::reading::{Damage, Isolation, ReadOptions, SkippedBytes};
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::segment::context::SegmentContext;
use crate::segment::damage_findings::{too_large_message, unreadable_message};
use crate::segment::order::OffsetOrder;
use crate::segment::pass::Pass;
use crate::segment::scanner::Scanner;
use ottla_format::batch::{self, BatchInfo};
use ottla_format::header::{Envelope, MIN_SIZE, RECORD_BATCH_OVERHEAD};
use ottla_kernels::BatchHeader;
use ottla_log::source::Source;
use std::io;

/// Which records of a segment are rows, beside bounds of offsets and timestamps.
#[derive(Clone, Debug, Default)]
pub struct RecordRules {
    /// Where the segment is in its log: then records out of their place are left out. Without it
    /// every batch is believed.
    pub place: Option<SegmentContext>,
    /// The offset behind the records before the range, if that is known.
    pub expected: Option<i64>,
    /// Whether control records are left out.
    pub without_controls: bool,
    /// Transactions whose records are left out.
    pub aborted: AbortedTransactions,
}

/// Bytes that were passed over, until it is known what they are.
struct Passed {
    bytes: SkippedBytes,
    /// Whether they begin with what is no batch.
    is_no_batch: bool,
    /// Where reading goes on.
    next: Option<i64>,
}

/// What is known of a segment while its records are read.
pub(crate) struct Judge {
    rules: RecordRules,
    order: Option<OffsetOrder>,
    /// Up to here the segment has been judged.
    judged_bytes: u64,
    skipped: Option<Passed>,
    passed: Vec<Passed>,
}

impl Judge {
    pub(crate) fn new(rules: RecordRules, start: u64) -> Self {
        let order =
            rules.place.map(|place| OffsetOrder::new(&place, rules.expected.unwrap_or(i64::MIN)));
        Self { rules, order, judged_bytes: start, skipped: None, passed: Vec::new() }
    }

    /// The offset behind the last record in its place, if there was one.
    pub(crate) fn next_offset(&self) -> Option<i64> {
        self.order.map(|order| order.expected).filter(|&expected| expected != i64::MIN)
    }

    /// Whether records out of their place are left out.
    pub(crate) fn has_order(&self) -> bool {
        self.order.is_some()
    }

    /// The offset that should come next, for [`Judge::takes_plain`].
    pub(crate) fn expected(&self) -> i64 {
        self.order.map_or(i64::MIN, |order| order.first_unseen())
    }

    /// Whether an ordinary batch is in its place, whatever the rules say of the one behind it.
    /// `false` leaves it to [`Judge::admit`].
    pub(crate) fn takes_plain(&self, expected: i64, header: &BatchHeader, data: &[u8]) -> bool {
        let Some(order) = &self.order else { return true };
        let last = last_offset(header);
        if header.base_offset == expected {
            return last <= order.highest;
        }
        let is_before = |next: i64| last < next;
        header.base_offset > expected
            && last <= order.last_possible()
            && BatchHeader::parse(data, header.end).is_some_and(|next| is_before(next.base_offset))
    }

    /// Whether the records of an ordinary batch are left out.
    pub(crate) fn withholds(&self, info: &BatchInfo) -> bool {
        (self.rules.without_controls && info.is_control()) || self.rules.aborted.has(info)
    }

    /// Whether [`Judge::withholds`] has something to say.
    pub(crate) fn is_withholding(&self) -> bool {
        !self.rules.aborted.is_empty()
    }

    /// An ordinary batch was taken.
    pub(crate) fn on_plain(&mut self, header: &BatchHeader, base: u64) {
        self.skip_to(base.saturating_add(header.position as u64));
        let end = base.saturating_add(header.end as u64);
        self.accept(header.base_offset, last_offset(header), end);
    }

    fn accept(&mut self, base_offset: i64, last_offset: i64, end: u64) {
        if let Some(skipped) = self.skipped.take() {
            self.passed.push(Passed { next: Some(base_offset), ..skipped });
        }
        if let Some(order) = &mut self.order {
            order.advance(last_offset.max(order.expected.saturating_sub(1)));
        }
        self.judged_bytes = end;
    }

    /// Judges any other batch. Returns the lowest offset of the records to read of it; `None` if
    /// there are none.
    pub(crate) fn admit(
        &mut self,
        pass: &mut Pass<'_, '_>,
        info: &BatchInfo,
        is_valid: bool,
    ) -> Option<i64> {
        self.skip_to(info.position);
        let end = info.position.saturating_add(info.size);
        let limit = pass.checker.limits().batch_bytes;
        let position = info.position;
        let message = if !is_valid {
            Some(format!("the batch at position {position} has a wrong CRC"))
        } else if info.size > limit {
            Some(too_large_message(info, limit))
        } else {
            self.misplacement(pass, info)
        };
        if let Some(message) = message {
            self.skip(position, info.size, message, false);
            self.judged_bytes = end;
            return None;
        }
        let first_offset = self.next_offset().map_or(i64::MIN, |next| next.max(info.base_offset));
        self.accept(info.base_offset, info.last_offset, end);
        (!self.withholds(info)).then_some(first_offset)
    }

    /// Returns why a valid batch is not in its place, if it is not.
    fn misplacement(&self, pass: &mut Pass<'_, '_>, info: &BatchInfo) -> Option<String> {
        let order = self.order.as_ref()?;
        let (base, last) = (info.base_offset, info.last_offset);
        if base == order.first_unseen() && last <= order.highest {
            return None;
        }
        order.judge(base, last, base_offset_behind(pass, info)).fault(info.position, base, last)
    }

    /// The records of a batch cannot be read, from an offset on.
    pub(crate) fn unreadable(&mut self, info: &BatchInfo, offset: i64, fault: &str) {
        let message = format!("the batch at position {}: {fault}", info.position);
        self.skip(info.position, info.size, message, false);
        if let Some(skipped) = &mut self.skipped {
            skipped.bytes.first_offset =
                skipped.bytes.first_offset.min(offset.max(info.base_offset));
        }
    }

    fn skip_to(&mut self, position: u64) {
        let (start, size) = (self.judged_bytes, position.saturating_sub(self.judged_bytes));
        if size > 0 {
            self.judged_bytes = position;
            self.skip(start, size, unreadable_message(start, size), true);
        }
    }

    fn skip(&mut self, position: u64, size: u64, message: String, is_no_batch: bool) {
        let base = self.rules.place.and_then(|place| place.base_offset);
        let first_offset = self.next_offset().max(base).unwrap_or(0);
        let new = || Passed {
            bytes: SkippedBytes {
                segment: 0,
                position,
                size: 0,
                first_offset,
                severity: Severity::Error,
                message,
                are_zeros: false,
            },
            is_no_batch,
            next: None,
        };
        let skipped = self.skipped.get_or_insert_with(new);
        skipped.bytes.size = skipped.bytes.size.saturating_add(size);
        // A batch among them is no end that a broker leaves.
        skipped.is_no_batch &= is_no_batch;
    }

    /// The range ends here: at the end of the file, or where the next range begins.
    pub(crate) fn end(&mut self, end: u64, is_cut: bool) {
        self.skip_to(end);
        if let Some(skipped) = self.skipped.take() {
            let next_segment = self.rules.place.and_then(|place| place.next_base_offset);
            let next = if is_cut { self.next_offset() } else { next_segment };
            self.passed.push(Passed { next, ..skipped });
        }
    }

    /// Takes what was passed over since the last call, as far as it concerns the offsets asked for.
    pub(crate) fn take_damage(
        &mut self,
        scanner: &mut Scanner,
        source: &dyn Source,
        bounds: &RowBounds,
    ) -> io::Result<Vec<Damage>> {
        let end_offset = bounds.max_offset.saturating_add(1);
        let options = ReadOptions {
            isolation: Isolation::ReadUncommitted,
            start_offset: bounds.min_offset,
            end_offset,
            stopped_cleanly: false,
        };
        let mut damages = Vec::new();
        for Passed { mut bytes, is_no_batch, next } in std::mem::take(&mut self.passed) {
            if is_no_batch {
                explain(&mut bytes, self.rules.place, scanner, source)?;
            }
            damages.extend(bytes.into_damage(next, &options, end_offset));
        }
        Ok(damages)
    }
}

/// Fills in what the audit says of bytes that are no batch.
fn explain(
    bytes: &mut SkippedBytes,
    place: Option<SegmentContext>,
    scanner: &mut Scanner,
    source: &dyn Source,
) -> io::Result<()> {
    let context = SegmentContext {
        base_offset: Some(bytes.first_offset),
        now_ms: i64::MAX,
        ..place.unwrap_or_default()
    };
    let listing = scanner.list(source, context, bytes.position, 1)?;
    let range = bytes.position..bytes.position.saturating_add(bytes.size);
    let mut inside = listing.findings.into_iter().filter(|finding| {
        finding.kind.row().has_no_batch() && finding.position.is_some_and(|at| range.contains(&at))
    });
    if let Some(first) = inside.next() {
        bytes.severity = inside.fold(first.severity, |all, found| all.max(found.severity));
        bytes.are_zeros = first.kind == FindingKind::ZeroTail;
        bytes.message = first.message.to_string();
    }
    Ok(())
}

fn last_offset(header: &BatchHeader) -> i64 {
    header.base_offset.saturating_add(header.last_offset_delta.into())
}

/// The base offset of the batch behind another one, if there is a valid one.
fn base_offset_behind(pass: &mut Pass<'_, '_>, info: &BatchInfo) -> Option<i64> {
    let size = usize::try_from(info.size).ok()?;
    let limit = pass.checker.limits().batch_bytes;
    let held = pass.window.hold(info.position, size.saturating_add(RECORD_BATCH_OVERHEAD));
    let envelope = Envelope::read(held, size)?;
    if envelope.size < MIN_SIZE || envelope.total() as u64 > limit {
        return None;
    }
    let whole = size.saturating_add(envelope.total());
    let behind = pass.window.hold(info.position, whole).get(size..whole)?;
    batch::verify(behind).ok()?;
    let envelope = Envelope::read(behind, 0)?;
    BatchInfo::read(behind, 0, &envelope).ok().map(|info| info.base_offset)
}
