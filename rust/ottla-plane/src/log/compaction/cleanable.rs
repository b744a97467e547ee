//! What of a log may be compacted, and whether it is worth it.

use super::CompactionSettings;

/// What is known of a segment without reading it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentFacts {
    pub(crate) base_offset: i64,
    pub(crate) size: u64,
    /// Timestamp of its first batch.
    pub(crate) first_timestamp: Option<i64>,
    /// The largest timestamp or, where no record has one, when a batch was added last.
    pub(crate) largest_timestamp: i64,
}

/// A log as its cleaner sees it. The last segment is the active one.
#[derive(Clone, Debug)]
pub(crate) struct LogFacts {
    pub(crate) segments: Vec<SegmentFacts>,
    pub(crate) log_start_offset: i64,
    pub(crate) last_stable_offset: i64,
    pub(crate) log_end_offset: i64,
    /// Where the last compaction ended, as `cleaner-offset-checkpoint` has it.
    pub(crate) cleaned_to: Option<i64>,
}

/// The part of a log that a compaction reads keys of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cleanable {
    pub(crate) first_dirty_offset: i64,
    /// Base offset of the first segment that is left alone.
    pub(crate) first_uncleanable_offset: i64,
    /// Whether `min.cleanable.dirty.ratio` or `max.compaction.lag.ms` ask for it.
    pub(crate) is_due: bool,
}

impl LogFacts {
    /// Where the next compaction begins.
    pub(crate) fn first_dirty_offset(&self) -> i64 {
        let is_in_log =
            |offset: &i64| (self.log_start_offset..=self.log_end_offset).contains(offset);
        self.cleaned_to.filter(is_in_log).unwrap_or(self.log_start_offset)
    }

    /// The segments below the active one.
    fn sealed(&self) -> &[SegmentFacts] {
        self.segments.split_last().map_or(&[], |(_, sealed)| sealed)
    }

    /// The sealed segments from the one on that holds an offset.
    fn sealed_from(&self, offset: i64) -> &[SegmentFacts] {
        let behind = self.segments.partition_point(|segment| segment.base_offset <= offset);
        self.sealed().get(behind.saturating_sub(1)..).unwrap_or_default()
    }

    fn active_base_offset(&self) -> i64 {
        self.segments.last().map_or(self.log_end_offset, |active| active.base_offset)
    }

    /// What may be compacted; `None` where no segment is.
    pub(crate) fn cleanable(
        &self,
        settings: &CompactionSettings,
        now_ms: i64,
    ) -> Option<Cleanable> {
        let first_dirty_offset = self.first_dirty_offset();
        let dirty = self.sealed_from(first_dirty_offset);
        let newest_ms = now_ms.saturating_sub(settings.min_compaction_lag_ms.max(0));
        let young = dirty.iter().find(|segment| {
            settings.min_compaction_lag_ms > 0 && segment.largest_timestamp > newest_ms
        });
        let limit = self
            .last_stable_offset
            .min(young.map_or(i64::MAX, |segment| segment.base_offset))
            .max(first_dirty_offset);
        let first_uncleanable_offset = self
            .sealed_from(limit)
            .first()
            .map_or_else(|| self.active_base_offset(), |segment| segment.base_offset);

        let sum = |segments: &[SegmentFacts]| {
            segments.iter().fold(0u64, |sum, segment| sum.saturating_add(segment.size))
        };
        let dirty_count =
            dirty.partition_point(|segment| segment.base_offset < first_uncleanable_offset);
        let dirty_bytes = sum(dirty.get(..dirty_count).unwrap_or_default());
        let clean_count =
            self.sealed().partition_point(|segment| segment.base_offset < first_dirty_offset);
        let clean_bytes = sum(self.sealed().get(..clean_count).unwrap_or_default());
        let bytes = clean_bytes.saturating_add(dirty_bytes);
        if bytes == 0 {
            return None;
        }
        let oldest_ms =
            dirty.iter().filter_map(|segment| segment.first_timestamp).filter(|&ms| ms > 0).min();
        let oldest_allowed_ms = now_ms.saturating_sub(settings.max_compaction_lag_ms.max(0));
        let is_late = dirty_bytes > 0 && oldest_ms.is_some_and(|oldest| oldest < oldest_allowed_ms);
        let ratio = dirty_bytes as f64 / bytes as f64;
        Some(Cleanable {
            first_dirty_offset,
            first_uncleanable_offset,
            is_due: is_late || ratio > settings.min_cleanable_dirty_ratio,
        })
    }
}
