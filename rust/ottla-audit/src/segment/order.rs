//! Whether a batch is in its place: the one judge of the order of offsets.
//!
//! Offsets go up through a log. The base offset of a batch is outside its CRC, so a batch that does
//! not begin where the one before it ended is judged together with the one behind it: if only
//! another base offset fits between the two, the base offset is wrong; if not, it is believed.
//!
//! ```text
//! expected 10   10–14  15–19   Accept
//!               12–14  15–19   Gap         offsets 10 and 11 are missing
//!                5–9   10–14   Repeat      as a whole
//!                5–14  15–19   Repeat      of offsets 5 to 9; 10 to 14 are new
//!               70–74  15–19   WrongBase   five offsets before 15: 10–14
//! ```

use crate::segment::context::{MAX_RELATIVE_OFFSET, SegmentContext};
use ottla_format::batch::BatchInfo;
use ottla_format::words;

/// What the order of offsets says about a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// It begins with the offset that should come next.
    Accept,
    /// It begins above that offset: those between are missing.
    Gap {
        /// Base offset of the batch behind it, if that begins before this one ends: one of both is
        /// out of place.
        contradicted_by: Option<i64>,
    },
    /// It begins below that offset.
    Repeat {
        /// Whether all of its offsets came before.
        is_whole: bool,
    },
    /// Its base offset is wrong.
    WrongBase {
        /// The base offset that fits.
        base_offset: i64,
        /// Base offset of the batch behind it, or of the next segment.
        next_base_offset: i64,
    },
    /// No batch of the segment can have its offsets.
    Stray,
}

impl Placement {
    /// Why a reader passes over a valid batch with these offsets, in words; `None` if it does not.
    pub(crate) fn fault(self, position: u64, base: i64, last: i64) -> Option<String> {
        let reason = match self {
            Placement::Accept
            | Placement::Gap { contradicted_by: None }
            | Placement::Repeat { is_whole: false } => return None,
            Placement::Gap { contradicted_by: Some(next) }
            | Placement::WrongBase { next_base_offset: next, .. } => {
                format!("but the next one starts at {next}")
            }
            Placement::Repeat { is_whole: true } => "which came before".to_owned(),
            Placement::Stray => "which its segment cannot hold".to_owned(),
        };
        let offsets = words::offsets(base, last);
        Some(format!("the batch at position {position} has {offsets}, {reason}"))
    }

    /// The base offset of a valid batch that says `base`: another where only that fits, `None` where
    /// the batch has no place.
    pub(crate) fn base_offset(self, base: i64) -> Option<i64> {
        match self {
            Placement::Accept
            | Placement::Gap { contradicted_by: None }
            | Placement::Repeat { is_whole: false } => Some(base),
            Placement::WrongBase { base_offset, .. } => Some(base_offset),
            Placement::Gap { contradicted_by: Some(_) }
            | Placement::Repeat { is_whole: true }
            | Placement::Stray => None,
        }
    }
}

/// A batch with another base offset.
pub(crate) fn moved_to(info: &BatchInfo, base_offset: i64) -> BatchInfo {
    let span = info.last_offset.saturating_sub(info.base_offset);
    BatchInfo { base_offset, last_offset: base_offset.saturating_add(span), ..*info }
}

/// Where in the order of offsets a walk over the batches of a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OffsetOrder {
    /// The offset that should come next; `i64::MIN` while any may.
    pub(crate) expected: i64,
    /// First offset that the segment may hold.
    pub(crate) lowest: i64,
    /// Last offset that the segment may hold.
    pub(crate) highest: i64,
    /// Base offset of the next segment, if there is one.
    pub(crate) next_segment: Option<i64>,
    /// Whether a batch was in its place before.
    pub(crate) has_first: bool,
    /// Whether bytes were lost behind the last batch in its place.
    pub(crate) after_damage: bool,
}

impl OffsetOrder {
    /// The order in a segment before its first batch, with `expected` as the offset to come.
    pub(crate) fn new(context: &SegmentContext, expected: i64) -> Self {
        let base = context.base_offset;
        Self {
            expected,
            lowest: base.unwrap_or(0),
            highest: base.map_or(i64::MAX, |base| base.saturating_add(MAX_RELATIVE_OFFSET)),
            next_segment: context.next_base_offset,
            has_first: false,
            after_damage: false,
        }
    }

    /// The first offset behind those seen so far.
    pub(crate) fn first_unseen(&self) -> i64 {
        self.expected.max(self.lowest)
    }

    /// The last offset that a batch may have here, by the name of the next segment too.
    pub(crate) fn last_possible(&self) -> i64 {
        let next = self.next_segment.filter(|&next| next > self.first_unseen());
        self.highest.min(next.map_or(i64::MAX, |next| next.saturating_sub(1)))
    }

    /// Whether a batch with these offsets is in its place, whatever comes behind it.
    pub(crate) fn takes(&self, base: i64, last: i64) -> bool {
        if self.expected == i64::MIN && base >= 0 {
            return true;
        }
        let fits = base == self.expected || (self.after_damage && base > self.expected);
        fits && last <= self.highest && last >= base
    }

    /// Judges a batch with these offsets. `behind` is the base offset of the batch behind it; `None`
    /// where damage or the end comes.
    pub(crate) fn judge(&self, base: i64, last: i64, behind: Option<i64>) -> Placement {
        let expected = self.first_unseen();
        let span = last.saturating_sub(base);
        let behind = behind.or(self.next_segment);
        let next = behind.filter(|&next| next > expected && span >= 0);
        if let Some(next_base_offset) = next {
            let room = next_base_offset.saturating_sub(span).saturating_sub(1);
            let conflicts = last >= next_base_offset || base < 0;
            if (conflicts && room >= expected) || (base < expected && room == expected) {
                let base_offset = if conflicts && self.has_first { expected } else { room };
                return Placement::WrongBase { base_offset, next_base_offset };
            }
        }
        if base < self.lowest || last > self.highest || span < 0 {
            Placement::Stray
        } else if base > expected {
            let contradicted_by = behind.filter(|&next| next >= expected && last >= next);
            Placement::Gap { contradicted_by }
        } else if base == expected {
            Placement::Accept
        } else {
            Placement::Repeat { is_whole: last < expected }
        }
    }

    /// A batch was accepted: the offset behind `last` comes next.
    pub(crate) fn advance(&mut self, last: i64) {
        self.expected = last.saturating_add(1);
        self.has_first = true;
        self.after_damage = false;
    }
}
