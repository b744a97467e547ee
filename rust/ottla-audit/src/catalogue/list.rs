//! Findings of one segment, in bounded memory.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use ottla_log::sorting::sort_by;
use serde::{Deserialize, Serialize};

/// Findings of one kind that a segment keeps; the rest is counted. Enough to see a pattern, and a
/// bound on the memory that a hostile file can take.
pub const MAX_FINDINGS_PER_KIND: u64 = 1000;

/// Findings of one segment that are held before those beyond the bound are dropped.
const MAX_UNTRIMMED: usize = 2 * FindingKind::ALL.len() * MAX_FINDINGS_PER_KIND as usize;

/// Findings of one segment, at most [`MAX_FINDINGS_PER_KIND`] of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    kept: Vec<Finding>,
    counts: Vec<u64>,
}

impl Findings {
    /// Adds a finding and returns its index; beyond the bound it is only counted.
    pub fn push(&mut self, finding: Finding) -> Option<usize> {
        let count = count_of(&mut self.counts, finding.kind)?;
        *count = count.saturating_add(1);
        if *count > MAX_FINDINGS_PER_KIND {
            return None;
        }
        let index = self.kept.len();
        self.kept.push(finding);
        Some(index)
    }

    /// Appends the findings of the part to the right; returns the new index of each, if it is kept.
    /// `same` is the kind, and the index if it was kept, of one that continues a finding of this part
    /// and so is not a new one.
    pub(crate) fn append(
        &mut self,
        mut right: Self,
        same: Option<(FindingKind, Option<usize>)>,
    ) -> Vec<Option<usize>> {
        if let Some(count) = same.and_then(|(kind, _)| count_of(&mut right.counts, kind)) {
            *count = count.saturating_sub(1);
        }
        let same = same.and_then(|(_, index)| index);
        let mut counts = self.counts.clone();
        let mut places = Vec::with_capacity(right.kept.len());
        for (index, finding) in right.kept.into_iter().enumerate() {
            let has_room = Some(index) != same
                && count_of(&mut counts, finding.kind).is_some_and(|count| {
                    *count = count.saturating_add(1);
                    *count <= MAX_FINDINGS_PER_KIND
                });
            places.push(has_room.then_some(self.kept.len()));
            self.kept.extend(has_room.then_some(finding));
        }
        self.add_counts(&right.counts);
        places
    }

    fn add_counts(&mut self, added: &[u64]) {
        for (kind, added) in FindingKind::ALL.iter().zip(added) {
            if let Some(count) = count_of(&mut self.counts, *kind) {
                *count = count.saturating_add(*added);
            }
        }
    }

    /// The findings that are kept, in the order in which they were added.
    pub fn kept(&self) -> &[Finding] {
        &self.kept
    }

    /// The findings that are kept, to be changed.
    pub(crate) fn kept_mut(&mut self) -> &mut Vec<Finding> {
        &mut self.kept
    }

    /// How many of each kind were counted but not kept.
    pub fn suppressed(&self) -> Vec<(FindingKind, u64)> {
        let over = |kind: &FindingKind| {
            let count = self.counts.get(*kind as usize).copied().unwrap_or(0);
            count.checked_sub(MAX_FINDINGS_PER_KIND).filter(|&rest| rest > 0)
        };
        FindingKind::ALL.iter().filter_map(|kind| Some((*kind, over(kind)?))).collect()
    }
}

/// Findings of one segment whose order depends on the ranges in which it is read: of each kind the
/// [`MAX_FINDINGS_PER_KIND`] with the lowest positions are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FirstFindings(Findings);

impl FirstFindings {
    pub(crate) fn push(&mut self, finding: Finding) {
        let Findings { kept, counts } = &mut self.0;
        let Some(count) = count_of(counts, finding.kind) else { return };
        *count = count.saturating_add(1);
        kept.push(finding);
        if kept.len() > MAX_UNTRIMMED {
            self.trim();
        }
    }

    /// Adds the findings of another part.
    pub(crate) fn append(&mut self, other: Self) {
        self.0.add_counts(&other.0.counts);
        self.0.kept.extend(other.0.kept);
    }

    /// Sorts the findings, and drops those beyond the bound.
    pub(crate) fn trim(&mut self) {
        sort_by(&mut self.0.kept, |a, b| order(a).cmp(&order(b)));
        let mut kept = Vec::new();
        self.0.kept.retain(|finding| {
            count_of(&mut kept, finding.kind).is_some_and(|count| {
                *count = count.saturating_add(1);
                *count <= MAX_FINDINGS_PER_KIND
            })
        });
    }

    /// Returns the findings in order.
    pub(crate) fn into_findings(mut self) -> Findings {
        self.trim();
        self.0
    }
}

/// Returns what findings are sorted by: the position, then everything else in which they differ.
fn order(finding: &Finding) -> impl Ord + '_ {
    let Finding { position, kind, producer_id, first_offset, last_offset, .. } = finding;
    let texts = (&finding.expected, &finding.found, finding.message.text());
    (position, kind, producer_id, first_offset, last_offset, texts)
}

/// The count of a kind.
fn count_of(counts: &mut Vec<u64>, kind: FindingKind) -> Option<&mut u64> {
    if counts.len() < FindingKind::ALL.len() {
        counts.resize(FindingKind::ALL.len(), 0);
    }
    counts.get_mut(kind as usize)
}
