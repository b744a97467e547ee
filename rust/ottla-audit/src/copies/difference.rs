//! One difference between copies, and the sentences about it.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::copies::batch::ListedBatch;
use crate::copies::copy::{Copy, Loss};
use crate::segment::fingerprint::LogPosition;
use ottla_format::words;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Differences of a partition that are kept; the rest is counted.
pub const MAX_DIFFERENCES: usize = 1000;

/// In what way copies differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceKind {
    /// The copies have batches of different leader epochs at the same offsets.
    Diverged,
    /// The batches have the same offsets and epoch and different bytes, and every CRC is right.
    DifferentBytes,
    /// The batches differ only in the leader epoch, which no CRC covers.
    LeaderEpoch,
    /// A copy is damaged where another has valid batches.
    Damaged,
    /// Every copy that should have these offsets is damaged there.
    LostEverywhere,
    /// A copy lacks batches that another has.
    Missing,
    /// A copy ends before another.
    Behind,
    /// A copy begins after another.
    BeginsLater,
    /// The cleaner has reached different offsets on the copies.
    Compaction,
}

impl DifferenceKind {
    /// Stable kebab-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Diverged => "diverged",
            Self::DifferentBytes => "different-bytes",
            Self::LeaderEpoch => "leader-epoch",
            Self::Damaged => "damaged",
            Self::LostEverywhere => "lost-everywhere",
            Self::Missing => "missing",
            Self::Behind => "behind",
            Self::BeginsLater => "begins-later",
            Self::Compaction => "compaction",
        }
    }

    /// Whether replicas of a healthy cluster differ like this: it is not a finding.
    pub fn is_lawful(self) -> bool {
        matches!(self, Self::BeginsLater | Self::Compaction)
    }

    /// What to do.
    pub fn action(self) -> &'static str {
        match self {
            Self::Diverged => {
                "Save the records of the bad copy before its broker starts: as a follower it truncates them. Then produce again what is missing."
            }
            Self::DifferentBytes => {
                "Restore the bad copy from a good one: stop its broker, move its partition directory away once another broker leads the partition, and let it replicate. Check the disk."
            }
            Self::LeaderEpoch => {
                "If only one copy differs, restore it from a good one: a wrong epoch can make followers truncate their logs at the wrong offset."
            }
            Self::Damaged | Self::Missing => {
                "Restore the bad copy from a good one: stop its broker, move its partition directory away once another broker leads the partition, and let it replicate. Do not let it become leader before that."
            }
            Self::LostEverywhere => {
                "No copy has them: look for a backup or a mirror. Consumers must continue after them."
            }
            Self::Behind => {
                "Nothing while the broker is down or catching up. Do not elect this copy: what it lacks would be lost."
            }
            Self::BeginsLater | Self::Compaction => "Nothing.",
        }
    }

    fn severity(self) -> Severity {
        match self {
            Self::Diverged | Self::DifferentBytes | Self::LeaderEpoch | Self::Missing => {
                Severity::Warning
            }
            Self::LostEverywhere => Severity::Error,
            // That a batch is damaged is a finding of its own.
            Self::Damaged | Self::Behind | Self::BeginsLater | Self::Compaction => Severity::Info,
        }
    }
}

/// What one copy has at the offsets of a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaSpan {
    /// Where the first batch with these offsets begins, or the damage.
    pub place: Option<LogPosition>,
    /// Bytes from there on in the same segment.
    pub size: u64,
    /// Valid batches.
    pub batches: u64,
    /// Records in them, according to their headers.
    pub records: u64,
    /// Leader epoch of the first of them.
    pub leader_epoch: Option<i32>,
}

impl ReplicaSpan {
    /// Adds a batch to it.
    pub(crate) fn add(&mut self, batch: &ListedBatch) {
        let info = &batch.info;
        match self.place {
            None => {
                self.place = Some(batch.place());
                self.size = info.size;
                self.leader_epoch = Some(info.partition_leader_epoch).filter(|epoch| *epoch >= 0);
            }
            Some(place) if place.segment == batch.segment => {
                let end = info.position.saturating_add(info.size);
                self.size = self.size.max(end.saturating_sub(place.position));
            }
            Some(_) => {}
        }
        let records = info.record_count.map_or(1, |count| u64::from(count.max(0) as u32));
        self.batches = self.batches.saturating_add(1);
        self.records = self.records.saturating_add(records);
    }

    /// Places it at the damage, if it has no batch.
    pub(crate) fn set_damage(&mut self, loss: &Loss) {
        if self.place.is_none() {
            (self.place, self.size) = (Some(loss.place), loss.size);
        }
    }
}

/// A stretch of offsets at which copies differ in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// In what way.
    pub kind: DifferenceKind,
    /// How grave.
    pub severity: Severity,
    /// First offset.
    pub first_offset: i64,
    /// Last offset.
    pub last_offset: i64,
    /// The copies to trust, by index; none if nothing shows which.
    pub good: BTreeSet<usize>,
    /// The copies that do not have what the good ones have.
    pub bad: BTreeSet<usize>,
    /// What each copy has there.
    pub spans: Vec<ReplicaSpan>,
}

impl Difference {
    pub(crate) fn new(kind: DifferenceKind, offsets: RangeInclusive<i64>, copies: usize) -> Self {
        Self {
            kind,
            severity: kind.severity(),
            first_offset: *offsets.start(),
            last_offset: *offsets.end(),
            good: BTreeSet::new(),
            bad: BTreeSet::new(),
            spans: vec![ReplicaSpan::default(); copies],
        }
    }

    /// Returns the copy that has batches or offsets which no other copy has.
    pub fn only_copy(&self) -> Option<usize> {
        let is_alone = |set: &BTreeSet<usize>| (set.len() == 1).then(|| set.first().copied())?;
        match self.kind {
            DifferenceKind::Diverged => is_alone(&self.bad),
            DifferenceKind::Damaged | DifferenceKind::Missing | DifferenceKind::Behind => {
                is_alone(&self.good)
            }
            _ => None,
        }
    }
}

impl Difference {
    /// Returns the findings about it, each with the index of its copy: none if it is lawful, and one
    /// if no copy is good.
    pub fn findings(&self, copies: &[Copy], names: &[String]) -> Vec<(usize, Finding)> {
        let about = if self.kind.is_lawful() {
            0
        } else if self.good.is_empty() {
            1
        } else {
            self.bad.len()
        };
        let finding = |&copy: &usize| {
            let mut finding =
                Finding::new(FindingKind::ReplicaDifference, self.message(copy, copies, names))
                    .offsets(self.first_offset, self.last_offset)
                    .graded(self.severity);
            if let Some(ReplicaSpan { place: Some(place), size, .. }) = self.spans.get(copy) {
                finding = finding.at(place.position, *size);
            }
            (copy, finding)
        };
        self.bad.iter().take(about).map(finding).collect()
    }

    /// Returns the segment of a copy that a finding about it is in.
    pub fn segment(&self, copy: usize, copies: &[Copy]) -> usize {
        let place = self.spans.get(copy).and_then(|span| span.place);
        place.map_or_else(
            || copies.get(copy).map_or(0, |copy| copy.segment_of(self.first_offset)),
            |place| place.segment as usize,
        )
    }

    fn offsets(&self) -> String {
        words::offsets(self.first_offset, self.last_offset)
    }

    /// Returns the difference in a sentence; `copy` is the one it is about.
    pub fn message(&self, copy: usize, copies: &[Copy], names: &[String]) -> String {
        let epoch = |copy: Option<usize>| {
            let span = copy.and_then(|copy| self.spans.get(copy));
            span.and_then(|span| span.leader_epoch).unwrap_or(-1)
        };
        let this = names.get(copy).map_or("", String::as_str);
        let (good, bad) = (joined(names, &self.good), joined(names, &self.bad));
        let offsets = self.offsets();
        match self.kind {
            DifferenceKind::Diverged => format!(
                "{this} diverged from {good} at offset {}: its {offsets} are of leader epoch {}, theirs continue with epoch {}. An unclean election lost what is here; Kafka truncates this copy to offset {} when it follows again",
                self.first_offset,
                epoch(Some(copy)),
                epoch(self.good.first().copied()),
                self.first_offset
            ),
            DifferenceKind::DifferentBytes if self.good.is_empty() => format!(
                "{offsets}: the batches on {bad} differ although every CRC is right; nothing shows which are as they were written"
            ),
            DifferenceKind::DifferentBytes => format!(
                "{offsets}: the bytes on {this} differ from those on {good}, although every CRC is right and the leader epoch is the same"
            ),
            DifferenceKind::LeaderEpoch if self.good.is_empty() => format!(
                "{offsets}: the leader epochs of the batches on {bad} differ; everything that their CRC covers is the same"
            ),
            DifferenceKind::LeaderEpoch => format!(
                "{offsets}: the leader epoch is {} on {this} and {} on {good}; everything that the CRC covers is the same",
                epoch(Some(copy)),
                epoch(self.good.first().copied())
            ),
            DifferenceKind::Damaged => {
                format!("{offsets}: damaged on {this}, intact on {good}")
            }
            DifferenceKind::LostEverywhere => format!("{offsets}: damaged on every copy"),
            DifferenceKind::Missing => format!("{offsets}: missing on {this}, present on {good}"),
            DifferenceKind::Behind => {
                let only = if self.good.len() == 1 { " alone" } else { "" };
                let acknowledged = if self.severity == Severity::Error {
                    "; a high watermark shows that they were acknowledged"
                } else {
                    ""
                };
                format!(
                    "{this} ends at offset {}, and {offsets} are on {good}{only}: it lags behind, or was truncated{acknowledged}",
                    copies.get(copy).map_or(self.first_offset, |copy| copy.end)
                )
            }
            DifferenceKind::BeginsLater => {
                format!("{offsets}: already deleted on {this}, still present on {good}")
            }
            DifferenceKind::Compaction => format!("{offsets}: compacted at different times"),
        }
    }
}

/// Returns the names of copies in a sentence.
fn joined(names: &[String], copies: &BTreeSet<usize>) -> String {
    let names: Vec<&str> =
        copies.iter().filter_map(|&copy| names.get(copy)).map(String::as_str).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => (*last).to_owned(),
        None => String::new(),
    }
}

/// What the comparison of copies has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// By first offset.
    pub differences: Vec<Difference>,
    /// Differences beyond [`MAX_DIFFERENCES`].
    pub left_out: u64,
    /// Bytes that were read again.
    pub bytes: u64,
}

impl Comparison {
    /// Returns the finding about the differences that are not kept.
    pub fn left_out_finding(&self) -> Option<Finding> {
        let message = format!("and {} more differences between the copies", self.left_out);
        (self.left_out > 0).then(|| Finding::new(FindingKind::ReplicaDifference, message))
    }
}
