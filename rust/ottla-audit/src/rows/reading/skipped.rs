//! What reading passed over.

use super::options::ReadOptions;
use crate::catalogue::severity::Severity;

/// What was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Index of the segment it begins in.
    pub segment: usize,
    /// Bytes from the start of that segment's file.
    pub position: u64,
    /// Bytes that could not be read.
    pub size: u64,
    /// The first offset lost, if any is.
    pub first_offset: Option<i64>,
    /// The last offset lost; `None` at the end of the log, where nothing shows it.
    pub last_offset: Option<i64>,
    /// Where reading goes on, if it does.
    pub next_good_offset: Option<i64>,
    /// The severity that the audit reports.
    pub severity: Severity,
    /// What is wrong there.
    pub message: String,
}

/// What was passed over since the last valid batch. The next one shows how far it reaches.
#[derive(Clone, Debug)]
pub(crate) struct SkippedBytes {
    pub(crate) segment: usize,
    pub(crate) position: u64,
    pub(crate) size: u64,
    /// The first offset that may be lost.
    pub(crate) first_offset: i64,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    /// Whether these are zeros at the end of a file: no damage, unless offsets are missing behind
    /// them.
    pub(crate) are_zeros: bool,
}

impl SkippedBytes {
    /// Returns the damage before a valid batch that begins with `next`, or before the end of the log,
    /// if it concerns the offsets asked for: those from `options.start_offset` to `end_offset`.
    pub(crate) fn into_damage(
        self,
        next: Option<i64>,
        options: &ReadOptions,
        end_offset: i64,
    ) -> Option<Damage> {
        let end = end_offset.min(next.unwrap_or(i64::MAX));
        let start = options.start_offset.max(self.first_offset);
        let loses = self.first_offset < next.unwrap_or(i64::MAX);
        let is_reported = match next {
            None => start < end && !self.are_zeros,
            Some(_) if loses => start < end,
            Some(next) => !self.are_zeros && (options.start_offset..end_offset).contains(&next),
        };
        is_reported.then_some(Damage {
            segment: self.segment,
            position: self.position,
            size: self.size,
            first_offset: loses.then_some(start),
            last_offset: next.filter(|_| loses).map(|_| end.saturating_sub(1)),
            next_good_offset: next,
            severity: if loses && next.is_some() { Severity::Error } else { self.severity },
            message: self.message,
        })
    }
}
