//! The differences between where copies begin, end and have damage.

use crate::catalogue::severity::Severity;
use crate::copies::copy::{Copy, Loss};
use crate::copies::difference::{Difference, DifferenceKind};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the offsets that are damaged on every copy that should have them.
pub(crate) fn lost_everywhere(copies: &[Copy]) -> Vec<Difference> {
    let Some((first, others)) = copies.split_first() else { return Vec::new() };
    let mut common: Vec<(i64, i64)> = first.lost.iter().map(|l| (l.first, l.last)).collect();
    for copy in others {
        common = intersection(&common, &copy.lost);
    }
    let is_in_all = |offset: i64| copies.iter().all(|copy| copy.holds(offset));
    common.retain(|&(first, last)| is_in_all(first) && is_in_all(last));
    let difference = |(first, last): (i64, i64)| {
        let kind = DifferenceKind::LostEverywhere;
        let mut difference = Difference::new(kind, first..=last, copies.len());
        difference.bad = (0..copies.len()).collect();
        for (copy, span) in copies.iter().zip(&mut difference.spans) {
            if let Some(loss) = copy.loss_at(first) {
                span.set_damage(loss);
            }
        }
        difference
    };
    common.into_iter().map(difference).collect()
}

/// Returns the differences between where copies begin and end. Those of `diverged` end where they
/// left the log that goes on.
pub(crate) fn edges(copies: &[Copy], diverged: &BTreeSet<usize>) -> Vec<Difference> {
    let standing = || copies.iter().enumerate().filter(|(index, _)| !diverged.contains(index));
    let end = standing().map(|(_, copy)| copy.end).max().unwrap_or(0);
    let start = copies.iter().map(|copy| copy.start).min().unwrap_or(0);
    let mut edges: BTreeMap<(DifferenceKind, i64, i64), BTreeSet<usize>> = BTreeMap::new();
    for (index, copy) in standing() {
        // Damage at its end is a difference of its own.
        if copy.end < end && copy.loss_at(copy.end).is_none() {
            let key = (DifferenceKind::Behind, copy.end, end.saturating_sub(1));
            edges.entry(key).or_default().insert(index);
        }
    }
    for (index, copy) in copies.iter().enumerate().filter(|(_, copy)| copy.start > start) {
        let key = (DifferenceKind::BeginsLater, start, copy.start.saturating_sub(1));
        edges.entry(key).or_default().insert(index);
    }
    let committed = copies.iter().filter_map(|copy| copy.high_watermark).max();
    let difference = |((kind, first, last), bad)| {
        let mut difference = Difference::new(kind, first..=last, copies.len());
        difference.good = if kind == DifferenceKind::Behind {
            standing().filter(|(_, copy)| copy.end > last).map(|(index, _)| index).collect()
        } else {
            let early = copies.iter().enumerate().filter(|(_, copy)| copy.start <= first);
            early.map(|(index, _)| index).collect()
        };
        difference.bad = bad;
        if kind == DifferenceKind::Behind
            && difference.only_copy().is_some()
            && committed.is_some_and(|committed| committed > first)
        {
            // Consumers may have read them, and one disk holds them.
            difference.severity = Severity::Error;
        }
        difference
    };
    edges.into_iter().map(difference).collect()
}

/// Returns the offsets that are in a range and in a loss; the losses of a copy do not overlap, as far
/// as it matters here.
fn intersection(ranges: &[(i64, i64)], losses: &[Loss]) -> Vec<(i64, i64)> {
    let mut out = Vec::new();
    let mut losses = losses;
    for &(first, last) in ranges {
        let behind = losses.iter().take_while(|loss| loss.last < first).count();
        losses = losses.split_at_checked(behind).map_or(losses, |(_, rest)| rest);
        let overlapping = losses.iter().take_while(|loss| loss.first <= last);
        out.extend(overlapping.map(|loss| (first.max(loss.first), last.min(loss.last))));
    }
    out
}
