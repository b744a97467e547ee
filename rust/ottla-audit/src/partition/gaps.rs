//! Offsets that consumers do not get, and why.
//!
//! Missing offsets are normal more often than not: compaction, end markers of transactions,
//! retention. Each gap gets a [`Cause`], a confidence and the evidence in words. The ranges of one
//! segment are collected while it is scanned ([`Ranges`]); their causes follow from the whole
//! partition and the files beside it.
//!
//! ```text
//! 0 … log start │ retention, tier-boundary, delete-records
//! between batches │ compaction, missing-file, epoch-change, unexplained; damage, truncated-tail
//! inside batches │ compaction
//! whole batches │ control-records for all consumers, aborted-data for read_committed
//! ```

use crate::catalogue::causes::{Cause, Confidence};
use ottla_log::sorting::sort_by_key;
use serde::{Deserialize, Serialize};

/// Ranges of one segment that are listed; the others are added up.
pub const MAX_RANGES: usize = 64;

/// Gaps of one partition that are listed.
pub const MAX_GAPS: usize = 4096;

/// Consecutive offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffsetRange {
    /// First offset.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
    /// Position of its first batch in the file.
    pub position: u64,
}

/// Ranges that are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeSum {
    /// First offset of the first range.
    pub first_offset: i64,
    /// Last offset of the last range.
    pub last_offset: i64,
    /// Position of the first batch of the first range in the file.
    pub position: u64,
    /// How many ranges.
    pub ranges: u64,
    /// How many offsets.
    pub offsets: u64,
}

/// Ranges of offsets in the order of a file, in bounded memory and in a form that merges: the first
/// [`MAX_RANGES`] are listed, the others are added up. Adjacent ranges become one.
///
/// # Examples
/// ```
/// use ottla_audit::partition::gaps::{OffsetRange, Ranges};
///
/// let mut left = Ranges::default();
/// left.push(OffsetRange { first_offset: 4, last_offset: 4, position: 0 });
/// let mut right = Ranges::default();
/// right.push(OffsetRange { first_offset: 5, last_offset: 5, position: 78 });
/// left.append(&right);
/// assert_eq!(left.listed().len(), 1);
/// assert_eq!(left.listed()[0].last_offset, 5);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranges {
    listed: Vec<OffsetRange>,
    rest: Option<RangeSum>,
}

impl RangeSum {
    pub(crate) fn of(range: &OffsetRange) -> Self {
        Self {
            first_offset: range.first_offset,
            last_offset: range.last_offset,
            position: range.position,
            ranges: 1,
            offsets: range.offsets(),
        }
    }

    /// Adds the ranges that follow.
    fn add(&mut self, right: &Self) {
        let touches = u64::from(self.last_offset.checked_add(1) == Some(right.first_offset));
        self.ranges = self.ranges.saturating_add(right.ranges).saturating_sub(touches);
        self.offsets = self.offsets.saturating_add(right.offsets);
        self.last_offset = right.last_offset;
    }
}

impl OffsetRange {
    /// How many offsets.
    pub fn offsets(&self) -> u64 {
        span(self.first_offset, self.last_offset)
    }
}

/// Returns how many offsets there are from the first to the last, both included.
pub(crate) fn span(first: i64, last: i64) -> u64 {
    if first > last { 0 } else { last.abs_diff(first).saturating_add(1) }
}

impl Ranges {
    /// Adds the range that follows.
    pub fn push(&mut self, range: OffsetRange) {
        if let Some(rest) = &mut self.rest {
            rest.add(&RangeSum::of(&range));
            return;
        }
        if let Some(last) = self.listed.last_mut()
            && last.last_offset.checked_add(1) == Some(range.first_offset)
        {
            last.last_offset = range.last_offset;
        } else if self.listed.len() < MAX_RANGES {
            self.listed.push(range);
        } else {
            self.rest = Some(RangeSum::of(&range));
        }
    }

    /// Appends the ranges of the part to the right.
    pub fn append(&mut self, right: &Self) {
        for &range in &right.listed {
            self.push(range);
        }
        if let Some(sum) = &right.rest {
            match &mut self.rest {
                Some(rest) => rest.add(sum),
                // All listed ranges of the right part fit into this list. As the right list was full,
                // this one is full too, and the rest follows it.
                None => self.rest = Some(*sum),
            }
        }
    }

    /// The first ranges.
    pub fn listed(&self) -> &[OffsetRange] {
        &self.listed
    }

    /// The sum of the others.
    pub fn rest(&self) -> Option<&RangeSum> {
        self.rest.as_ref()
    }
}

/// Who does not get the offsets of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reader {
    /// No consumer.
    All,
    /// Consumers with `isolation.level=read_committed`.
    ReadCommitted,
}

impl Reader {
    /// `all` or `read_committed`.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::ReadCommitted => "read_committed",
        }
    }
}

/// Offsets that consumers do not get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Index of the segment among those merged; for a gap between two segments the second.
    pub segment: usize,
    /// Bytes from the start of its file, if the gap has a position there.
    pub position: Option<u64>,
    /// First offset.
    pub first_offset: i64,
    /// Last offset, inclusive.
    pub last_offset: i64,
    /// How many ranges this stands for; other offsets may be present between them.
    pub ranges: u64,
    /// How many offsets are missing.
    pub offsets: u64,
    /// Who does not get them.
    pub reader: Reader,
    /// Why they are missing.
    pub cause: Cause,
    /// How sure the cause is.
    pub confidence: Confidence,
    /// The evidence for it, in words.
    pub evidence: String,
}

/// The gaps of a partition; the [`MAX_GAPS`] with the gravest causes are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    list: Vec<Gap>,
}

impl Gaps {
    /// Adds a gap, without its offsets below the log start.
    pub(crate) fn push(&mut self, mut gap: Gap, log_start_offset: i64) {
        if gap.last_offset < log_start_offset || gap.offsets == 0 {
            return;
        }
        if gap.first_offset < log_start_offset && gap.ranges == 1 {
            gap.first_offset = log_start_offset;
            gap.offsets = gap.offsets.min(span(log_start_offset, gap.last_offset));
        }
        self.list.push(gap);
    }

    /// Adds a gap below the log start.
    pub(crate) fn push_head(&mut self, gap: Gap) {
        self.list.push(gap);
    }

    /// Returns the gaps in the order of their offsets, and how many were left out.
    pub(crate) fn finish(mut self) -> (Vec<Gap>, u64) {
        let left_out = self.list.len().saturating_sub(MAX_GAPS);
        if left_out > 0 {
            sort_by_key(&mut self.list, |gap| (std::cmp::Reverse(gap.cause), gap.first_offset));
            self.list.truncate(MAX_GAPS);
        }
        sort_by_key(&mut self.list, |gap| {
            (gap.first_offset, gap.reader, gap.last_offset, gap.cause)
        });
        (self.list, left_out as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_no_ranges_can_be_added() {
        let sum = |first_offset, last_offset| Ranges {
            listed: Vec::new(),
            rest: Some(RangeSum { first_offset, last_offset, position: 0, ranges: 0, offsets: 0 }),
        };
        let mut left = sum(0, 4);
        left.append(&sum(5, 9));
        assert_eq!(left.rest().map(|rest| (rest.ranges, rest.last_offset)), Some((0, 9)));
    }
}
