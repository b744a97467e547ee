//! What consumers of a partition cannot read any more, by event.

use super::told::Told;
use crate::catalogue::causes::Cause;
use crate::catalogue::severity::Severity;
use crate::traces::{Fault, Group};
use ottla_log::sorting::sort_by_key;
use std::collections::{HashMap, HashSet};

/// What consumers of a partition cannot read any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostOffsets {
    /// Ranges of offsets, first and last, in order and apart.
    pub offsets: Vec<(i64, i64)>,
    /// Whether each offset of the partition has a record.
    pub is_dense: bool,
}

impl LostOffsets {
    /// How many offsets.
    pub fn offset_count(&self) -> i128 {
        let sizes = self.offsets.iter().map(|&(first, last)| {
            i128::from(last).saturating_sub(i128::from(first)).saturating_add(1)
        });
        sizes.fold(0, i128::saturating_add)
    }
}

/// What is lost by each group of findings.
#[derive(Debug)]
pub struct Losses<'a> {
    ranges: Vec<Vec<(i64, i64)>>,
    /// Groups that lose records, by the file and the position of a finding.
    at: HashMap<(Option<&'a [u8]>, Option<u64>), usize>,
    /// Directories of partitions in which offsets lawfully have no record.
    sparse: HashSet<Vec<u8>>,
}

impl<'a> Losses<'a> {
    /// As far as findings tell.
    pub fn new(told: &[Told<'a>], groups: &[Group]) -> Self {
        let mut losses = Self { ranges: Vec::new(), at: HashMap::new(), sparse: HashSet::new() };
        for (number, group) in groups.iter().enumerate() {
            let mut ranges: Vec<(i64, i64)> = group.lost_end.into_iter().collect();
            let head = told.get(group.head).map(|head| head.fault.kind);
            for &member in &group.members {
                // A gap that is a trace of a repeated batch, say, is none: its records are elsewhere.
                let fault = told.get(member).map(|told| &told.fault);
                let Some(fault) = fault.filter(|fault| Some(fault.kind) == head && loses(fault))
                else {
                    continue;
                };
                losses.at.insert((fault.path, fault.position), number);
                ranges.extend(fault.first_offset.zip(fault.last_offset));
            }
            losses.ranges.push(ranges);
        }
        losses
    }

    /// Whether gaps may tell more.
    pub fn asks_for_gaps(&self) -> bool {
        !self.at.is_empty() || self.ranges.iter().any(|ranges| !ranges.is_empty())
    }

    /// Takes a gap of every consumer into account.
    pub fn add_gap(
        &mut self,
        directory: &[u8],
        place: (&[u8], Option<u64>),
        offsets: (i64, i64),
        cause: Cause,
    ) {
        let (path, position) = place;
        if cause.row().is_lawful {
            if position.is_some() && !self.sparse.contains(directory) {
                self.sparse.insert(directory.to_vec());
            }
            return;
        }
        let number = self.at.get(&(Some(path), position));
        if let Some(ranges) = number.and_then(|number| self.ranges.get_mut(*number)) {
            ranges.push(offsets);
        }
    }

    /// What a group loses, whose head is about a directory.
    pub fn of_group(&self, number: usize, directory: Option<&[u8]>) -> LostOffsets {
        LostOffsets {
            offsets: self.ranges.get(number).map(|ranges| united(ranges)).unwrap_or_default(),
            is_dense: directory.is_none_or(|directory| !self.sparse.contains(directory)),
        }
    }
}

/// Whether records that were there cannot be read any more.
fn loses(fault: &Fault<'_>) -> bool {
    fault.severity > Severity::Info && !fault.is_lawful() && fault.kind.row().loses_records()
}

/// Ranges in order, those that overlap or touch as one; without those that are empty.
fn united(ranges: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut sorted: Vec<_> = ranges.iter().copied().filter(|(first, last)| first <= last).collect();
    sort_by_key(&mut sorted, |range| *range);
    let mut united: Vec<(i64, i64)> = Vec::with_capacity(sorted.len());
    for (first, last) in sorted {
        match united.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => united.push((first, last)),
        }
    }
    united
}
