//! One difference between copies, and what is said about it.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::copies::batch::ListedBatch;
use crate::copies::copy::{Copy, Loss};
use crate::segment::fingerprint::LogPosition;
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
    /// The batches are the same but for the leader epoch, which no CRC covers.
    LeaderEpoch,
    /// A copy has damage where another has sound batches.
    Damaged,
    /// Every copy that should have these offsets has damage there.
    LostEverywhere,
    /// A copy lacks batches that another has.
    Missing,
    /// A copy ends before another.
    Behind,
    /// A copy begins after another.
    BeginsLater,
    /// The cleaner went further on one copy than on another.
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

    /// Whether replicas differ so in a healthy cluster, and nothing has to be said of it.
    pub fn is_lawful(self) -> bool {
        matches!(self, Self::BeginsLater | Self::Compaction)
    }

    /// What to do.
    pub fn action(self) -> &'static str {
        match self {
            Self::Diverged => {
                "Save the offsets of the bad copy before its broker starts: following the leader it cuts them off. Then send again what is missing."
            }
            Self::DifferentBytes => {
                "Restore the bad copy from a good one: with its broker stopped, move its partition directory away and let it fetch anew. Check the disk."
            }
            Self::LeaderEpoch => {
                "Restore the bad copy from a good one if one copy alone differs: a wrong epoch can make followers cut their logs at the wrong place."
            }
            Self::Damaged | Self::Missing => {
                "Restore the bad copy from a good one: with its broker stopped, move its partition directory away and let it fetch anew. Never let it become leader before."
            }
            Self::LostEverywhere => {
                "No copy has them: look for a backup or a mirror; consumers must go on behind them."
            }
            Self::Behind => {
                "Nothing while the broker is down or catches up. Do not elect this copy: what it lacks would be lost."
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

/// What one copy has of the offsets of a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaSpan {
    /// Where its first batch of them begins, or the damage.
    pub place: Option<LogPosition>,
    /// Bytes from there on, as far as they are in the same segment.
    pub size: u64,
    /// Sound batches.
    pub batches: u64,
    /// Records in them, as their headers count.
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
    /// The copies to trust, by index; none where nothing tells.
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

    /// The copy whose batches or offsets no other copy has, if they are on one copy only.
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
    /// What is said of it: findings and the copies they are about, which have these names. Nothing of
    /// what is lawful; one finding where no copy is good.
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

    /// The segment that a finding about a copy names.
    pub fn segment(&self, copy: usize, copies: &[Copy]) -> usize {
        let place = self.spans.get(copy).and_then(|span| span.place);
        place.map_or_else(
            || copies.get(copy).map_or(0, |copy| copy.segment_of(self.first_offset)),
            |place| place.segment as usize,
        )
    }

    /// The difference in a sentence; `copy` is the one it is about.
    pub fn message(&self, copy: usize, copies: &[Copy], names: &[String]) -> String {
        let name = |copy: usize| names.get(copy).map_or("", String::as_str);
        let list = |set: &BTreeSet<usize>| {
            let names: Vec<&str> = set.iter().map(|&copy| name(copy)).collect();
            match names.split_last() {
                Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
                Some((last, _)) => (*last).to_owned(),
                None => String::new(),
            }
        };
        let epoch = |copy: Option<usize>| {
            let span = copy.and_then(|copy| self.spans.get(copy));
            span.and_then(|span| span.leader_epoch).unwrap_or(-1)
        };
        let (this, good) = (name(copy), list(&self.good));
        let offsets = if self.first_offset == self.last_offset {
            format!("offset {}", self.first_offset)
        } else {
            format!("offsets {} to {}", self.first_offset, self.last_offset)
        };
        match self.kind {
            DifferenceKind::Diverged => format!(
                "{this} parted from {good} at offset {}: its {offsets} are of leader epoch {}, theirs go on with epoch {}. An unclean election lost what is here; Kafka cuts this copy to offset {} when it follows again",
                self.first_offset,
                epoch(Some(copy)),
                epoch(self.good.first().copied()),
                self.first_offset
            ),
            DifferenceKind::DifferentBytes if self.good.is_empty() => format!(
                "{offsets}: the batches on {} differ although every CRC is right; nothing tells which are as they were written",
                list(&self.bad)
            ),
            DifferenceKind::DifferentBytes => format!(
                "{offsets}: the bytes on {this} are not those on {good}, although every CRC is right and the leader epoch is the same"
            ),
            DifferenceKind::LeaderEpoch if self.good.is_empty() => format!(
                "{offsets}: the leader epochs of the batches on {} differ, all that their CRC covers is the same",
                list(&self.bad)
            ),
            DifferenceKind::LeaderEpoch => format!(
                "{offsets}: the leader epoch is {} on {this} and {} on {good}, all that the CRC covers is the same",
                epoch(Some(copy)),
                epoch(self.good.first().copied())
            ),
            DifferenceKind::Damaged => {
                format!("{offsets}: damaged on {this}, sound on {good}")
            }
            DifferenceKind::LostEverywhere => format!("{offsets}: damaged on every copy"),
            DifferenceKind::Missing => format!("{offsets}: missing on {this}, there on {good}"),
            DifferenceKind::Behind => {
                let only = if self.good.len() == 1 { " alone" } else { "" };
                format!(
                    "{this} ends at offset {}, and {offsets} are on {good}{only}: it lags behind, or was cut",
                    copies.get(copy).map_or(self.first_offset, |copy| copy.end)
                )
            }
            DifferenceKind::BeginsLater => {
                format!("{offsets}: deleted on {this} already, still there on {good}")
            }
            DifferenceKind::Compaction => format!("{offsets}: compacted at different times"),
        }
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
