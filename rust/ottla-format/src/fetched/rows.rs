//! The rows of a Fetch answer, and what they have of their batches.

use crate::attributes::TimestampType;
use crate::batch::BatchInfo;
use crate::check::Checker;
use crate::columns::{NumberColumns, PlacedNumbers, Places, RowTarget};
use crate::number_columns::HeadersPlace;
use crate::record::Headers;
use ottla_kernels::numbers::Row;
use ottla_kernels::target::EachBatch;
use ottla_kernels::{BatchHeader, Numbers, Run};
use std::ops::Range;

use super::AbortedFilter;

/// One record of an answer.
#[derive(Clone, Copy, Debug)]
pub struct FetchedRow<'a> {
    /// In the log.
    pub offset: i64,
    /// In ms; with LogAppendTime the batch's, with magic 0 −1.
    pub timestamp: i64,
    /// Who set it.
    pub timestamp_type: TimestampType,
    /// Epoch of the leader that appended it, −1 if unknown.
    pub leader_epoch: i32,
    /// `None` for null.
    pub key: Option<&'a [u8]>,
    /// `None` for null.
    pub value: Option<&'a [u8]>,
    /// With magic 0 and 1 none.
    pub headers: Headers<'a>,
}

/// Consecutive rows of batches that have these fields in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// How many rows are given before it.
    pub(super) first: usize,
    /// The first of its rows; those between spans are left out.
    pub(super) row: usize,
    pub(super) count: usize,
    pub(super) timestamp_type: TimestampType,
    pub(super) leader_epoch: i32,
}

/// Rows as they are read, and which of them are given.
pub(super) struct Rows {
    placed: PlacedNumbers,
    log: RowLog,
    /// Where the rows of the present batch begin, and whether the kernels read its payload.
    began: usize,
    is_walked: bool,
}

/// Which rows are given, and how far the partition has been read.
struct RowLog {
    spans: Vec<Span>,
    given: usize,
    next_offset: i64,
    leader_epoch: i32,
    aborted: AbortedFilter,
}

impl Rows {
    pub(super) fn new(data: &[u8], position: i64, aborted: AbortedFilter) -> Self {
        let log = RowLog {
            spans: Vec::new(),
            given: 0,
            next_offset: position,
            leader_epoch: -1,
            aborted,
        };
        Self { placed: PlacedNumbers::for_data(data), log, began: 0, is_walked: false }
    }

    /// The offset that comes next.
    pub(super) fn next_offset(&self) -> i64 {
        self.log.next_offset
    }

    pub(super) fn aborted(&mut self) -> &mut AbortedFilter {
        &mut self.log.aborted
    }

    /// The rows of a batch follow that is not an ordinary one.
    pub(super) fn begin(&mut self) {
        self.began = self.row_count();
        self.is_walked = false;
    }

    /// Its rows are complete.
    pub(super) fn end(&mut self, info: &BatchInfo) {
        let rows = self.began..self.row_count();
        let base = self.is_walked.then_some(info.base_offset);
        self.log.give(rows, base, info.timestamp_type(), info.partition_leader_epoch);
        self.log.pass(info.last_offset);
    }

    /// It cannot be read: nothing of it is given, and the next offset is the one before it.
    pub(super) fn abandon(&mut self, next_offset: i64) {
        self.placed.truncate(self.began);
        self.log.next_offset = next_offset;
    }

    /// A batch whose records are not given.
    pub(super) fn pass(&mut self, info: &BatchInfo) {
        self.log.leader_epoch = info.partition_leader_epoch;
        self.log.pass(info.last_offset);
    }

    pub(super) fn finish(self) -> FinishedRows {
        FinishedRows {
            columns: self.placed.columns,
            spans: self.log.spans,
            count: self.log.given,
            next_offset: self.log.next_offset,
            leader_epoch: self.log.leader_epoch,
        }
    }
}

impl RowLog {
    /// A batch ends at this offset. A position never goes back.
    fn pass(&mut self, last_offset: i64) {
        self.next_offset = self.next_offset.max(last_offset.saturating_add(1));
    }

    /// Rows are given: with a base offset, those from the next offset on, which are numbered without a
    /// gap.
    fn give(
        &mut self,
        rows: Range<usize>,
        base: Option<i64>,
        timestamp_type: TimestampType,
        leader_epoch: i32,
    ) {
        self.leader_epoch = leader_epoch;
        let before = base.map_or(0, |base| self.next_offset.saturating_sub(base).max(0));
        let before = usize::try_from(before).unwrap_or(usize::MAX).min(rows.len());
        let row = rows.start.saturating_add(before);
        let count = rows.end.saturating_sub(row);
        if count == 0 {
            return;
        }
        let first = self.given;
        let span = Span { first, row, count, timestamp_type, leader_epoch };
        self.given = first.saturating_add(count);
        match self.spans.last_mut() {
            Some(last) if span.continues(last) => last.count = last.count.saturating_add(count),
            _ => self.spans.push(span),
        }
    }

    /// A batch that the kernels read.
    fn on_batch(&mut self, header: &BatchHeader, rows: usize) {
        let info = BatchInfo::from_kernel(header, 0);
        if self.aborted.withholds_batch(&info) {
            self.leader_epoch = info.partition_leader_epoch;
        } else {
            let count = info.record_count.unwrap_or(0).max(0) as usize;
            let rows = rows.saturating_sub(count)..rows;
            let (base, epoch) = (Some(info.base_offset), info.partition_leader_epoch);
            self.give(rows, base, info.timestamp_type(), epoch);
        }
        self.pass(info.last_offset);
    }
}

impl Span {
    fn continues(&self, before: &Self) -> bool {
        let end = before.row.saturating_add(before.count);
        *self == Self { first: self.first, row: end, count: self.count, ..*before }
    }
}

impl RowTarget for Rows {
    fn run(&mut self, checker: &Checker, data: &[u8], from: usize) -> Run {
        let log = &mut self.log;
        let on_batch = |header: &BatchHeader, numbers: &Numbers| {
            log.on_batch(header, numbers.row_count());
        };
        let mut each = EachBatch::new(self.placed.columns.numbers_mut(), on_batch);
        ottla_kernels::run(checker.kernels(), data, from, &mut each)
    }

    fn walk(&mut self, checker: &Checker, payload: &[u8], header: &BatchHeader) -> bool {
        self.is_walked = self.placed.walk(checker, payload, header);
        self.is_walked
    }

    fn set_place(&mut self, source_size: usize, inflated_position: Option<usize>) {
        self.placed.set_place(source_size, inflated_position);
    }

    fn push(&mut self, data: &[u8], row: Row, headers: HeadersPlace) {
        if row.offset < self.log.next_offset {
            return;
        }
        self.log.next_offset = row.offset.saturating_add(1);
        self.placed.push(data, row, headers);
    }

    fn truncate(&mut self, rows: usize) {
        self.placed.truncate(rows);
    }

    fn row_count(&self) -> usize {
        self.placed.row_count()
    }
}

/// All rows of an answer.
pub(super) struct FinishedRows {
    columns: NumberColumns,
    spans: Vec<Span>,
    pub(super) count: usize,
    pub(super) next_offset: i64,
    pub(super) leader_epoch: i32,
}

impl FinishedRows {
    /// Some of the rows that are given.
    #[inline]
    pub(super) fn rows<'a>(
        &'a self,
        range: Range<usize>,
        places: Places<'a>,
    ) -> impl Iterator<Item = FetchedRow<'a>> + 'a {
        self.pieces(range)
            .flat_map(move |(span, rows)| rows.filter_map(move |row| self.row(span, row, places)))
    }

    /// Where some of the rows that are given stand.
    pub(super) fn pieces(
        &self,
        range: Range<usize>,
    ) -> impl Iterator<Item = (&Span, Range<usize>)> + '_ {
        let end = |span: &Span| span.first.saturating_add(span.count);
        let start = self.spans.partition_point(|span| end(span) <= range.start);
        let spans = self.spans.get(start..).unwrap_or_default().iter();
        spans.take_while(move |span| span.first < range.end).map(move |span| {
            let from = range.start.saturating_sub(span.first);
            let to = range.end.saturating_sub(span.first).min(span.count);
            (span, span.row.saturating_add(from)..span.row.saturating_add(to))
        })
    }

    pub(super) fn numbers(&self) -> &Numbers {
        self.columns.numbers()
    }

    /// The span of a row that is given, and where the row is.
    fn find(&self, index: usize) -> Option<(&Span, usize)> {
        let at = self.spans.partition_point(|span| span.first <= index).checked_sub(1)?;
        let span = self.spans.get(at)?;
        let within = index.checked_sub(span.first).filter(|&within| within < span.count)?;
        Some((span, span.row.saturating_add(within)))
    }

    /// The offset of a row that is given, and the leader epoch of its batch.
    pub(super) fn offset(&self, index: usize) -> Option<(i64, i32)> {
        let (span, row) = self.find(index)?;
        Some((*self.numbers().offsets().get(row)?, span.leader_epoch))
    }

    #[inline]
    fn row<'a>(&'a self, span: &Span, at: usize, places: Places<'a>) -> Option<FetchedRow<'a>> {
        let row = self.columns.row(at)?;
        Some(FetchedRow {
            offset: row.offset,
            timestamp: row.timestamp,
            timestamp_type: span.timestamp_type,
            leader_epoch: span.leader_epoch,
            key: places.part(row.key_position, row.key_length),
            value: places.part(row.value_position, row.value_length),
            headers: self.columns.headers(at, &row, places),
        })
    }
}
