//! The differences between the batches of copies, in the order of their offsets.

use crate::copies::batch::ListedBatch;
use crate::copies::copy::{Copy, Loss};
use crate::copies::difference::{Comparison, Difference, DifferenceKind, MAX_DIFFERENCES};
use crate::copies::edges;
use crate::segment::fingerprint::Fingerprint;
use ottla_log::sorting::sort_by_key;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// What a copy has at an offset where another has the beginning of a batch.
#[derive(Clone, Copy)]
enum AtOffset<'a> {
    /// A batch that begins there.
    Batch(&'a ListedBatch),
    /// Damage.
    Damage(&'a Loss),
    /// The inside of a batch, or nothing.
    Nothing,
    /// It begins later, ends earlier, or has diverged already.
    Outside,
}

/// How copies differ at an offset: in what way, which are bad, and which are good. A difference goes
/// on as long as the next batches differ in the same way.
type Pattern = (DifferenceKind, BTreeSet<usize>, BTreeSet<usize>);

/// Goes through the batches that differ, in the order of offsets.
pub(crate) struct DifferenceFinder<'a> {
    copies: &'a [Copy],
    /// The differences of the copies that diverged from the log that goes on.
    diverged: Vec<Option<Difference>>,
    /// Last offset of the last batch of each copy.
    reached: Vec<i64>,
    open: BTreeMap<Pattern, Difference>,
    /// Last offset of the blocks so far.
    last_offset: Option<i64>,
    out: Comparison,
}

impl<'a> DifferenceFinder<'a> {
    pub(crate) fn new(copies: &'a [Copy]) -> Self {
        Self {
            copies,
            diverged: vec![None; copies.len()],
            reached: vec![i64::MIN; copies.len()],
            open: BTreeMap::new(),
            last_offset: None,
            out: Comparison::default(),
        }
    }

    /// Takes the batches of each copy that begin at these offsets.
    pub(crate) fn compare_batches(
        &mut self,
        offsets: &RangeInclusive<i64>,
        listed: &[Vec<ListedBatch>],
    ) {
        if self.last_offset.and_then(|last| last.checked_add(1)) != Some(*offsets.start()) {
            self.close_others(&[]);
        }
        self.last_offset = Some(*offsets.end());
        let lists = listed.iter().zip(self.copies);
        let mut lists: Vec<_> = lists
            .map(|(batches, copy)| usable_batches(batches, copy).into_iter().peekable())
            .collect();
        loop {
            let heads: Vec<Option<&ListedBatch>> =
                lists.iter_mut().map(|list| list.peek().copied()).collect();
            let Some(offset) = heads.iter().flatten().map(|head| head.info.base_offset).min()
            else {
                break;
            };
            let copies = heads.iter().enumerate();
            let at: Vec<AtOffset<'_>> =
                copies.map(|(copy, head)| self.at_offset(copy, offset, *head)).collect();
            self.compare_offset(offset, &at);
            for (copy, list) in lists.iter_mut().enumerate() {
                let Some(head) = list.next_if(|head| head.info.base_offset == offset) else {
                    continue;
                };
                self.count_diverged(copy, head);
                if let Some(reached) = self.reached.get_mut(copy) {
                    *reached = head.info.last_offset;
                }
            }
        }
    }

    fn at_offset<'h>(&self, copy: usize, offset: i64, head: Option<&'h ListedBatch>) -> AtOffset<'h>
    where
        'a: 'h,
    {
        let Some(known) = self.copies.get(copy) else { return AtOffset::Outside };
        if self.has_diverged(copy) {
            return AtOffset::Outside;
        }
        if let Some(head) = head.filter(|head| head.info.base_offset == offset) {
            return AtOffset::Batch(head);
        }
        match known.loss_at(offset) {
            Some(loss) => AtOffset::Damage(loss),
            None if known.holds(offset) => AtOffset::Nothing,
            None => AtOffset::Outside,
        }
    }

    /// Compares the batches that begin at an offset.
    fn compare_offset(&mut self, offset: i64, at: &[AtOffset<'_>]) {
        let copies = at.iter().enumerate();
        let batches = copies.filter_map(|(copy, at)| match at {
            AtOffset::Batch(batch) => Some((copy, *batch)),
            _ => None,
        });
        let batches = self.part_diverged(offset, batches.collect());
        let Some(patterns) = self.patterns(offset, at, &batches) else { return };
        let last = batches.iter().map(|(_, batch)| batch.info.last_offset).max().unwrap_or(offset);
        self.close_others(&patterns);
        for pattern in patterns {
            let new = Difference::new(pattern.0, offset..=last, self.copies.len());
            let difference = self.open.entry(pattern).or_insert(new);
            difference.last_offset = difference.last_offset.max(last);
            for (span, at) in difference.spans.iter_mut().zip(at) {
                match at {
                    AtOffset::Batch(batch) => span.add(batch),
                    AtOffset::Damage(loss) => span.set_damage(loss),
                    AtOffset::Nothing | AtOffset::Outside => {}
                }
            }
        }
    }

    /// Returns the ways in which copies differ at an offset where `batches` begin.
    fn patterns(
        &self,
        offset: i64,
        at: &[AtOffset<'_>],
        batches: &[(usize, &ListedBatch)],
    ) -> Option<Vec<Pattern>> {
        let groups = groups(batches);
        let good = groups.iter().max_by_key(|group| group.len())?;
        let damaged = copies_where(at, |at| matches!(at, AtOffset::Damage(_)));
        let lacking = copies_where(at, |at| matches!(at, AtOffset::Nothing));
        let holders: BTreeSet<usize> = groups.iter().flatten().copied().collect();
        let is_compacted = self.copies.iter().any(|copy| copy.is_compacted);
        let compaction = || (DifferenceKind::Compaction, BTreeSet::new(), BTreeSet::new());
        let mut patterns: Vec<Pattern> = Vec::new();
        if !damaged.is_empty() {
            patterns.push((DifferenceKind::Damaged, damaged, good.clone()));
        }
        if groups.len() > 1 {
            let is_cleaned = is_compacted && batches.iter().any(|(_, batch)| batch.is_cleaned());
            let mut pairs = batches.iter().zip(batches.iter().skip(1));
            let has_same_bytes = pairs.all(|((_, one), (_, other))| one.has_same_bytes(other));
            let kind = if has_same_bytes {
                DifferenceKind::LeaderEpoch
            } else {
                DifferenceKind::DifferentBytes
            };
            let is_majority = groups.iter().filter(|group| group.len() == good.len()).count() == 1;
            patterns.push(if is_cleaned && !has_same_bytes {
                compaction()
            } else if is_majority {
                (kind, holders.difference(good).copied().collect(), good.clone())
            } else {
                (kind, holders.clone(), BTreeSet::new())
            });
        }
        if !lacking.is_empty() {
            let is_inside =
                |copy: &usize| self.reached.get(*copy).is_some_and(|&end| end >= offset);
            patterns.push(if is_compacted {
                compaction()
            } else if lacking.iter().any(is_inside) {
                // Batches that are cut at other offsets, though their leader was the same.
                (DifferenceKind::DifferentBytes, &lacking | &holders, BTreeSet::new())
            } else {
                (DifferenceKind::Missing, lacking, holders)
            });
        }
        Some(patterns)
    }

    /// Records where logs diverge, which is where batches have different leader epochs; returns the
    /// batches of the highest epoch.
    /// Batches that are the same except for the epoch were either sent again to the next leader, then
    /// nothing is lost, or the epoch is what is wrong with one.
    fn part_diverged<'b>(
        &mut self,
        offset: i64,
        batches: Vec<(usize, &'b ListedBatch)>,
    ) -> Vec<(usize, &'b ListedBatch)> {
        let epoch = |batch: &ListedBatch| batch.info.partition_leader_epoch;
        let Some(highest) = batches.iter().map(|(_, batch)| epoch(batch)).max() else {
            return batches;
        };
        let is_highest = |batch: &ListedBatch| epoch(batch) == highest;
        let surviving: Vec<&ListedBatch> =
            batches.iter().map(|(_, batch)| *batch).filter(|batch| is_highest(batch)).collect();
        let (survivors, diverged): (Vec<_>, Vec<_>) =
            batches.into_iter().partition(|(_, batch)| {
                // Older formats have no epoch.
                is_highest(batch)
                    || epoch(batch) < 0
                    || surviving.iter().any(|survivor| survivor.has_same_bytes(batch))
            });
        for (copy, batch) in diverged {
            let Some(end) = self.copies.get(copy).map(|copy| copy.end) else { continue };
            let kind = DifferenceKind::Diverged;
            let last = end.saturating_sub(1).max(batch.info.last_offset);
            let mut difference = Difference::new(kind, offset..=last, self.copies.len());
            difference.bad.insert(copy);
            difference.good = survivors.iter().map(|(copy, _)| *copy).collect();
            for (copy, batch) in survivors.iter().chain([&(copy, batch)]) {
                if let Some(span) = difference.spans.get_mut(*copy) {
                    span.add(batch);
                }
            }
            if let Some(slot) = self.diverged.get_mut(copy) {
                *slot = Some(difference);
            }
        }
        survivors
    }

    fn has_diverged(&self, copy: usize) -> bool {
        self.diverged.get(copy).is_some_and(Option::is_some)
    }

    /// Whether a copy that diverged has batches in a block: all of it is read, to know how much was
    /// lost.
    pub(crate) fn follows_diverged(&self, prints: &[Fingerprint], number: i64) -> bool {
        let copies = self.diverged.iter().zip(prints);
        copies.into_iter().any(|(diverged, p)| diverged.is_some() && p.block(number).is_some())
    }

    /// Counts a batch after the one at which copies diverged.
    fn count_diverged(&mut self, copy: usize, batch: &ListedBatch) {
        for (other, difference) in self.diverged.iter_mut().enumerate() {
            let Some(difference) = difference else { continue };
            let base = batch.info.base_offset;
            let is_after = base > difference.first_offset && base <= difference.last_offset;
            if is_after
                && (other == copy || difference.good.contains(&copy))
                && let Some(span) = difference.spans.get_mut(copy)
            {
                span.add(batch);
            }
        }
    }

    /// Ends the differences that do not go on; those of compaction are one for the whole log.
    fn close_others(&mut self, patterns: &[Pattern]) {
        let open = std::mem::take(&mut self.open);
        for (pattern, mut difference) in open {
            if pattern.0 == DifferenceKind::Compaction || patterns.contains(&pattern) {
                self.open.insert(pattern, difference);
            } else {
                (_, difference.bad, difference.good) = pattern;
                self.push(difference);
            }
        }
    }

    fn push(&mut self, difference: Difference) {
        if self.out.differences.len() < MAX_DIFFERENCES {
            self.out.differences.push(difference);
        } else {
            self.out.left_out = self.out.left_out.saturating_add(1);
        }
    }

    /// Returns the differences by offset, with those that are not between batches.
    pub(crate) fn finish(mut self) -> Comparison {
        self.close_others(&[]);
        let diverged = (0..self.copies.len()).filter(|&copy| self.has_diverged(copy)).collect();
        let open = std::mem::take(&mut self.open).into_values();
        let rest = open
            .chain(edges::lost_everywhere(self.copies))
            .chain(edges::edges(self.copies, &diverged))
            .chain(std::mem::take(&mut self.diverged).into_iter().flatten());
        for difference in rest {
            self.push(difference);
        }
        sort_by_key(&mut self.out.differences, |difference| {
            (difference.first_offset, difference.last_offset, difference.kind)
        });
        self.out
    }
}

/// Returns the batches of a copy that can be compared: inside its log, in order and in their place.
fn usable_batches<'b>(batches: &'b [ListedBatch], copy: &Copy) -> Vec<&'b ListedBatch> {
    let mut reached = i64::MIN;
    let is_usable = |batch: &&ListedBatch| {
        let info = &batch.info;
        let is_usable = info.base_offset > reached
            && info.base_offset <= info.last_offset
            && copy.holds(info.last_offset)
            && !copy.is_left_out(batch.place());
        if is_usable {
            reached = info.last_offset;
        }
        is_usable
    };
    batches.iter().filter(is_usable).collect()
}

/// Returns the copies with the same batch, each in one group.
fn groups(batches: &[(usize, &ListedBatch)]) -> Vec<BTreeSet<usize>> {
    let mut groups: Vec<(&ListedBatch, BTreeSet<usize>)> = Vec::new();
    for (copy, batch) in batches {
        match groups.iter_mut().find(|(known, _)| known.is_same(batch)) {
            Some((_, group)) => {
                group.insert(*copy);
            }
            None => groups.push((batch, BTreeSet::from([*copy]))),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn copies_where(at: &[AtOffset<'_>], holds: impl Fn(&AtOffset<'_>) -> bool) -> BTreeSet<usize> {
    at.iter().enumerate().filter(|(_, at)| holds(at)).map(|(copy, _)| copy).collect()
}
