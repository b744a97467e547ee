//! Copies of one partition compared, batch by batch: where they differ, why, and which are good.
//!
//! Fingerprints tell the blocks of offsets that are not the same on all copies; only their batches are
//! read again. What follows is Kafka's own rule for replicas: a follower's log is the leader's, byte
//! for byte, up to where it ends. So
//!
//! ```text
//! same offsets, other leader epochs    logs parted there; the higher epoch goes on and the other copy
//!                                      is cut back to it (KIP-101, KIP-279)
//! the same but for the epoch           sent again to the next leader, or the epoch is damaged: no CRC
//!                                      covers it
//! same offsets and epoch, other bytes  one of them changed after it was written: the majority is right
//! one copy lacks what another has      damage or loss, unless the log is compacted, or ends or begins
//!                                      there
//! ```

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::row::{ByteState, RecordState, Row};
use crate::catalogue::severity::Severity;
use crate::partition::scan::{PartitionContext, PartitionScan};
use crate::segment::context::SegmentContext;
use crate::segment::fingerprint::{Fingerprint, Place, key};
use crate::segment::scan::Scanner;
use crate::segment::segment_scan::SegmentScan;
use ottla_format::batch::BatchInfo;
use ottla_log::source::{Limited, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::RangeInclusive;

/// Differences of a partition that are kept; the rest is counted.
pub const MAX_DIFFERENCES: usize = 1000;

/// Batches of one copy that are held at once. A block with more is cut into shorter ones first.
const MAX_LISTED: u64 = 1 << 16;

/// Bytes that are read at once of several blocks: a stop takes as long as reading them.
const MAX_RUN_BYTES: u64 = 32 << 20;

/// How much shorter: binary logarithm.
const REFINEMENT: u32 = 8;

/// Batches listed at a time.
const LISTED_AT_ONCE: usize = 1024;

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
pub struct Extent {
    /// Where its first batch of them begins, or the damage.
    pub place: Option<Place>,
    /// Bytes from there on, as far as they are in the same segment.
    pub size: u64,
    /// Sound batches.
    pub batches: u64,
    /// Records in them, as their headers count.
    pub records: u64,
    /// Leader epoch of the first of them.
    pub leader_epoch: Option<i32>,
}

impl Extent {
    fn add(&mut self, batch: &Listed) {
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
        self.batches += 1;
        self.records += info.record_count.map_or(1, |count| u64::from(count.max(0) as u32));
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
    pub extents: Vec<Extent>,
}

impl Difference {
    fn new(kind: DifferenceKind, offsets: RangeInclusive<i64>, copies: usize) -> Self {
        Self {
            kind,
            severity: kind.severity(),
            first_offset: *offsets.start(),
            last_offset: *offsets.end(),
            good: BTreeSet::new(),
            bad: BTreeSet::new(),
            extents: vec![Extent::default(); copies],
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
            if let Some(Extent { place: Some(place), size, .. }) = self.extents.get(copy) {
                finding = finding.at(place.position, *size);
            }
            (copy, finding)
        };
        self.bad.iter().take(about).map(finding).collect()
    }

    /// The segment that a finding about a copy names.
    pub fn segment(&self, copy: usize, copies: &[Copy]) -> usize {
        let place = self.extents.get(copy).and_then(|extent| extent.place);
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
            let extent = copy.and_then(|copy| self.extents.get(copy));
            extent.and_then(|extent| extent.leader_epoch).unwrap_or(-1)
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

/// Offsets that a copy has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loss {
    first: i64,
    last: i64,
    place: Place,
    size: u64,
}

impl Loss {
    fn overlaps(&self, offsets: &RangeInclusive<i64>) -> bool {
        self.first <= *offsets.end() && self.last >= *offsets.start()
    }
}

/// One copy of a partition, as the audit of it leaves it behind.
#[derive(Clone, Debug, Default)]
pub struct Copy {
    fingerprint: Fingerprint,
    /// First offset each segment may hold.
    segments: Vec<i64>,
    start: i64,
    end: i64,
    high_watermark: Option<i64>,
    /// In order.
    lost: Vec<Loss>,
    /// Batches that are not where they belong, with their sizes.
    misplaced: Vec<(Place, u64)>,
    is_compacted: bool,
}

impl Copy {
    /// What is to be known of a partition that was scanned to be compared; `high_watermark` is that of
    /// `replication-offset-checkpoint`.
    pub fn of(
        scan: &PartitionScan,
        context: &PartitionContext,
        high_watermark: Option<i64>,
    ) -> Self {
        let policy = context.cleanup_policy.as_deref();
        let is_compacted = context.first_dirty_offset.is_some()
            || policy.is_some_and(|policy| policy.contains("compact"))
            || scan.counters.shows_compaction();
        let first = |segment: &SegmentScan| {
            segment.context.base_offset.or(segment.first_offset).unwrap_or(scan.log_start_offset)
        };
        let mut copy = Self {
            fingerprint: scan.fingerprint.clone().unwrap_or_default(),
            segments: scan.segments.iter().map(first).collect(),
            start: scan.log_start_offset,
            end: scan.log_end_offset,
            high_watermark,
            is_compacted,
            ..Self::default()
        };
        for placed in &scan.findings {
            let finding = &placed.finding;
            let position = finding.position.unwrap_or(0);
            let place = Place { segment: placed.segment as u32, position };
            let size = finding.size.unwrap_or(0);
            let traits = finding.kind.row();
            if is_left_out(traits) {
                copy.misplaced.push((place, size));
            }
            if let (true, Some(first), Some(last)) =
                (is_lost(traits), finding.first_offset, finding.last_offset)
                && finding.severity > Severity::Info
            {
                copy.lost.push(Loss { first, last, place, size });
            }
        }
        copy.lost.sort_by_key(|loss| (loss.first, loss.last));
        copy.misplaced.sort_unstable();
        copy
    }

    /// The segment that should hold an offset.
    pub fn segment_of(&self, offset: i64) -> usize {
        self.segments.partition_point(|&first| first <= offset).saturating_sub(1)
    }

    fn loss_at(&self, offset: i64) -> Option<&Loss> {
        // They may overlap where offsets were guessed, though not by many.
        let before = self.lost.partition_point(|loss| loss.first <= offset);
        let near = self.lost.get(before.saturating_sub(8)..before).unwrap_or_default();
        near.iter().find(|loss| loss.last >= offset)
    }

    fn is_misplaced(&self, place: Place) -> bool {
        let after = self.misplaced.partition_point(|(start, _)| *start <= place);
        after.checked_sub(1).and_then(|index| self.misplaced.get(index)).is_some_and(
            |(start, size)| {
                start.segment == place.segment
                    && place.position < start.position.saturating_add((*size).max(1))
            },
        )
    }

    /// Whether a block of offsets may hold batches of it.
    fn reaches(&self, offsets: &RangeInclusive<i64>) -> bool {
        *offsets.end() >= self.start && *offsets.start() < self.end
    }
}

/// Whether records of these offsets cannot be had from this copy, or not as they were written.
fn is_lost(traits: &Row) -> bool {
    match traits.records {
        RecordState::Unreadable | RecordState::Altered => true,
        RecordState::AsWritten | RecordState::Missing | RecordState::Unknown => false,
    }
}

/// Whether the batch at the place of such a finding is to be left out of the comparison.
fn is_left_out(traits: &Row) -> bool {
    traits.bytes == ByteState::MisplacedBatch || traits.records == RecordState::Altered
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

/// Opens the segments of the copies: copy, segment and how many bytes of it are about to be read in,
/// its bytes out. An error ends the comparison.
pub type Open<'a> = dyn FnMut(usize, u32, u64) -> io::Result<Box<dyn Source>> + 'a;

/// Compares the copies of a partition. Reads again what their fingerprints tell apart, a bounded number
/// of batches at a time.
///
/// # Errors
/// What opening or reading says.
pub fn compare(
    copies: &[Copy],
    scanner: &mut Scanner,
    open: &mut Open<'_>,
) -> io::Result<Comparison> {
    let mut judge = Judge::new(copies);
    let mut reader = Reader { copies, scanner, open, bytes: 0 };
    let prints: Vec<&Fingerprint> = copies.iter().map(|copy| &copy.fingerprint).collect();
    reader.walk(&prints, &mut judge)?;
    let bytes = reader.bytes;
    Ok(Comparison { bytes, ..judge.finish() })
}

/// A batch of a copy.
#[derive(Clone, Copy, Debug)]
struct Listed {
    info: BatchInfo,
    segment: u32,
}

impl Listed {
    fn place(&self) -> Place {
        Place { segment: self.segment, position: self.info.position }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.has_same_bytes(other)
            && self.info.partition_leader_epoch == other.info.partition_leader_epoch
    }

    /// Whether the offsets and all that the CRC covers are the same.
    fn has_same_bytes(&self, other: &Self) -> bool {
        let what = |info: &BatchInfo| (key(info), info.last_offset, info.crc);
        what(&self.info) == what(&other.info)
    }

    /// Whether the cleaner was at it: what it wrote anew has other bytes than it found.
    fn is_cleaned(&self) -> bool {
        let info = &self.info;
        let span = info.last_offset.saturating_sub(info.base_offset).saturating_add(1);
        info.magic < 2
            || info.delete_horizon_ms().is_some()
            || info.record_count.is_some_and(|count| i64::from(count) < span)
    }
}

/// Reads the batches of blocks again.
struct Reader<'r, 'o> {
    copies: &'r [Copy],
    scanner: &'r mut Scanner,
    open: &'r mut Open<'o>,
    bytes: u64,
}

impl Reader<'_, '_> {
    /// Hands every block that differs to the judge, in order, those one after the other together.
    fn walk(&mut self, prints: &[&Fingerprint], judge: &mut Judge<'_>) -> io::Result<()> {
        let shift = prints.iter().map(|print| print.shift()).max().unwrap_or(0);
        let prints: Vec<Fingerprint> = prints.iter().map(|print| print.coarsened(shift)).collect();
        let numbers: BTreeSet<i64> =
            prints.iter().flat_map(|print| print.numbers().collect::<Vec<_>>()).collect();
        let mut run: Option<RangeInclusive<i64>> = None;
        for number in numbers {
            // What parted is read to its end, to say how much was lost.
            let differs = self.differs(&prints, number) || judge.follows_parted(&prints, number);
            let longer = run.as_ref().map(|run| *run.start()..=number);
            let goes_on = run.as_ref().and_then(|run| run.end().checked_add(1)) == Some(number);
            if differs && goes_on && longer.as_ref().is_some_and(|run| fits(&prints, run)) {
                run = longer;
                continue;
            }
            if let Some(run) = run.take() {
                self.judge_run(&prints, run, shift, judge)?;
            }
            // The run before may have shown that copies parted there.
            if differs || judge.follows_parted(&prints, number) {
                run = Some(number..=number);
            }
        }
        match run {
            Some(run) => self.judge_run(&prints, run, shift, judge),
            None => Ok(()),
        }
    }

    fn judge_run(
        &mut self,
        prints: &[Fingerprint],
        run: RangeInclusive<i64>,
        shift: u32,
        judge: &mut Judge<'_>,
    ) -> io::Result<()> {
        let offsets = block_offsets(&run, shift);
        if fits(prints, &run) || shift == 0 {
            let listed = self.list(prints, &run, &offsets)?;
            judge.batches(&offsets, &listed);
            return Ok(());
        }
        let finer = self.refine(prints, &run, &offsets, shift)?;
        self.walk(&finer.iter().collect::<Vec<_>>(), judge)
    }

    /// Whether the copies that reach a block differ there.
    fn differs(&self, prints: &[Fingerprint], number: i64) -> bool {
        let shift = prints.first().map_or(0, Fingerprint::shift);
        let offsets = block_offsets(&(number..=number), shift);
        // A batch whose magic alone is wrong counts as sound and is not what the others have.
        if self.copies.iter().any(|copy| copy.lost.iter().any(|loss| loss.overlaps(&offsets))) {
            return true;
        }
        let mut there = self
            .copies
            .iter()
            .zip(prints)
            .filter(|(copy, _)| copy.reaches(&offsets))
            .map(|(_, print)| print.block(number));
        let Some(first) = there.next() else { return false };
        there.any(|other| match (first, other) {
            (Some(first), Some(other)) => !first.equals(other),
            (None, None) => false,
            _ => true,
        })
    }

    fn list(
        &mut self,
        prints: &[Fingerprint],
        run: &RangeInclusive<i64>,
        offsets: &RangeInclusive<i64>,
    ) -> io::Result<Vec<Vec<Listed>>> {
        let mut listed = Vec::with_capacity(prints.len());
        for (copy, print) in prints.iter().enumerate() {
            let mut batches: Vec<Listed> = Vec::new();
            if let Some(span) = print.span(run) {
                self.read(copy, span.start, span.end, offsets, &mut |batch| {
                    if (batches.len() as u64) < MAX_LISTED {
                        batches.push(batch);
                    }
                })?;
            }
            batches.sort_by_key(|batch| (batch.info.base_offset, batch.place()));
            listed.push(batches);
        }
        Ok(listed)
    }

    /// Fingerprints of a block alone, of shorter blocks.
    fn refine(
        &mut self,
        prints: &[Fingerprint],
        run: &RangeInclusive<i64>,
        offsets: &RangeInclusive<i64>,
        shift: u32,
    ) -> io::Result<Vec<Fingerprint>> {
        let mut finer = Vec::with_capacity(prints.len());
        for (copy, print) in prints.iter().enumerate() {
            let mut fine = Fingerprint::with_shift(shift.saturating_sub(REFINEMENT));
            if let Some(span) = print.span(run) {
                self.read(copy, span.start, span.end, offsets, &mut |batch| {
                    fine.observe_at(&batch.info, batch.segment);
                })?;
            }
            finer.push(fine);
        }
        Ok(finer)
    }

    /// The sound batches of a copy between two places that begin at these offsets.
    fn read(
        &mut self,
        copy: usize,
        start: Place,
        end: Place,
        offsets: &RangeInclusive<i64>,
        take: &mut dyn FnMut(Listed),
    ) -> io::Result<()> {
        for segment in start.segment..=end.segment {
            let first = if segment == start.segment { start.position } else { 0 };
            let stop = if segment == end.segment { end.position } else { u64::MAX };
            let bytes = if stop == u64::MAX { 0 } else { stop.saturating_sub(first) };
            let source = (self.open)(copy, segment, bytes)?;
            let source = Limited::new(source.as_ref(), stop);
            let mut next = Some(first);
            while let Some(position) = next {
                let context = SegmentContext::default();
                let listing = self.scanner.list(&source, context, position, LISTED_AT_ONCE)?;
                for (info, is_valid) in listing.batches {
                    self.bytes = self.bytes.saturating_add(info.size);
                    if is_valid && offsets.contains(&key(&info)) {
                        take(Listed { info, segment });
                    }
                }
                next = listing.next_position;
            }
        }
        Ok(())
    }
}

/// The offsets of a run of blocks of `1 << shift` offsets.
fn block_offsets(run: &RangeInclusive<i64>, shift: u32) -> RangeInclusive<i64> {
    *run.start() << shift..=*run.end() << shift | !(-1 << shift)
}

/// Whether the batches of a run are few enough to be held, and in pieces that are soon read.
fn fits(prints: &[Fingerprint], run: &RangeInclusive<i64>) -> bool {
    let is_block = run.start() == run.end();
    prints.iter().filter_map(|print| print.span(run)).all(|span| {
        let is_short = span.start.segment == span.end.segment
            && span.end.position.saturating_sub(span.start.position) <= MAX_RUN_BYTES;
        span.batches <= MAX_LISTED && (is_block || is_short)
    })
}

/// What a copy has at an offset where another has the beginning of a batch.
#[derive(Clone, Copy)]
enum Has<'a> {
    /// A batch that begins there.
    Batch(&'a Listed),
    /// The inside of a batch, or nothing.
    Else,
    /// Damage.
    Damage(&'a Loss),
    /// It begins later, ends before, or has parted already.
    Out,
}

/// A difference that goes on as long as the next batches differ in the same way.
type Way = (DifferenceKind, BTreeSet<usize>, BTreeSet<usize>);

/// Goes through the batches that differ, in the order of offsets.
struct Judge<'a> {
    copies: &'a [Copy],
    /// The differences of the copies that parted from the surviving log.
    parted: Vec<Option<Difference>>,
    /// Last offset of the last batch of each copy.
    reached: Vec<i64>,
    open: BTreeMap<Way, Difference>,
    /// Where the batches before ended.
    last_block: Option<i64>,
    out: Comparison,
}

impl<'a> Judge<'a> {
    fn new(copies: &'a [Copy]) -> Self {
        Self {
            copies,
            parted: vec![None; copies.len()],
            reached: vec![i64::MIN; copies.len()],
            open: BTreeMap::new(),
            last_block: None,
            out: Comparison::default(),
        }
    }

    /// The batches of each copy that begin at some offsets.
    fn batches(&mut self, offsets: &RangeInclusive<i64>, listed: &[Vec<Listed>]) {
        if self.last_block.and_then(|last| last.checked_add(1)) != Some(*offsets.start()) {
            self.close_but(&[]);
        }
        self.last_block = Some(*offsets.end());
        let copies = self.copies;
        let lists: Vec<Vec<&Listed>> = listed
            .iter()
            .zip(copies)
            .map(|(batches, copy)| {
                let mut reached = i64::MIN;
                let fits = |batch: &&Listed| {
                    let info = &batch.info;
                    let fits = info.base_offset > reached
                        && info.base_offset <= info.last_offset
                        && info.last_offset >= copy.start
                        && info.last_offset < copy.end
                        && !copy.is_misplaced(batch.place());
                    if fits {
                        reached = info.last_offset;
                    }
                    fits
                };
                batches.iter().filter(fits).collect()
            })
            .collect();
        let mut next = vec![0; lists.len()];
        loop {
            let heads: Vec<Option<&Listed>> =
                lists.iter().zip(&next).map(|(list, &at)| list.get(at).copied()).collect();
            let Some(offset) = heads.iter().flatten().map(|head| head.info.base_offset).min()
            else {
                break;
            };
            let has: Vec<Has<'_>> =
                (0..copies.len()).map(|copy| self.what(copy, offset, &heads)).collect();
            self.step(offset, &has);
            for (copy, at) in next.iter_mut().enumerate() {
                let head = heads.get(copy).copied().flatten();
                if let Some(head) = head.filter(|head| head.info.base_offset == offset) {
                    *at += 1;
                    self.count_parted(copy, head);
                    if let Some(reached) = self.reached.get_mut(copy) {
                        *reached = head.info.last_offset;
                    }
                }
            }
        }
    }

    fn what<'h>(&self, copy: usize, offset: i64, heads: &[Option<&'h Listed>]) -> Has<'h>
    where
        'a: 'h,
    {
        let Some(known) = self.copies.get(copy) else { return Has::Out };
        if self.has_parted(copy) {
            return Has::Out;
        }
        let head = heads.get(copy).copied().flatten();
        if let Some(head) = head.filter(|head| head.info.base_offset == offset) {
            return Has::Batch(head);
        }
        if let Some(loss) = known.loss_at(offset) {
            return Has::Damage(loss);
        }
        if offset < known.start || offset >= known.end {
            return Has::Out;
        }
        Has::Else
    }

    /// Judges the batches that begin at an offset.
    fn step(&mut self, offset: i64, has: &[Has<'_>]) {
        let batches: Vec<(usize, &Listed)> = has
            .iter()
            .enumerate()
            .filter_map(|(copy, has)| match has {
                Has::Batch(batch) => Some((copy, *batch)),
                _ => None,
            })
            .collect();
        let batches = self.part(offset, batches);
        let groups = groups(&batches);
        let Some(good) = groups.iter().max_by_key(|group| group.len()) else { return };
        let is_clear = groups.iter().filter(|group| group.len() == good.len()).count() == 1;
        let last = batches.iter().map(|(_, batch)| batch.info.last_offset).max().unwrap_or(offset);

        let damaged = copies_where(has, |has| matches!(has, Has::Damage(_)));
        let lacking = copies_where(has, |has| matches!(has, Has::Else));
        let holders: BTreeSet<usize> = groups.iter().flatten().copied().collect();
        let is_compacted = self.copies.iter().any(|copy| copy.is_compacted);
        let mut ways: Vec<Way> = Vec::new();
        if !damaged.is_empty() {
            ways.push((DifferenceKind::Damaged, damaged, good.clone()));
        }
        if groups.len() > 1 {
            let cleaned = is_compacted && batches.iter().any(|(_, batch)| batch.is_cleaned());
            let others: BTreeSet<usize> = holders.difference(good).copied().collect();
            let is_epoch = batches.windows(2).all(|two| match two {
                [(_, one), (_, other)] => one.has_same_bytes(other),
                _ => true,
            });
            let kind =
                if is_epoch { DifferenceKind::LeaderEpoch } else { DifferenceKind::DifferentBytes };
            ways.push(if cleaned && !is_epoch {
                (DifferenceKind::Compaction, BTreeSet::new(), BTreeSet::new())
            } else if is_clear {
                (kind, others, good.clone())
            } else {
                (kind, holders.clone(), BTreeSet::new())
            });
        }
        if !lacking.is_empty() {
            let is_inside =
                |copy: &usize| self.reached.get(*copy).is_some_and(|&end| end >= offset);
            ways.push(if is_compacted {
                (DifferenceKind::Compaction, BTreeSet::new(), BTreeSet::new())
            } else if lacking.iter().any(is_inside) {
                // Batches that are cut at other offsets, though their leader was the same.
                (DifferenceKind::DifferentBytes, &lacking | &holders, BTreeSet::new())
            } else {
                (DifferenceKind::Missing, lacking, holders)
            });
        }
        self.close_but(&ways);
        for way in ways {
            let new = Difference::new(way.0, offset..=last, self.copies.len());
            let difference = self.open.entry(way).or_insert(new);
            difference.last_offset = difference.last_offset.max(last);
            for (copy, has) in has.iter().enumerate() {
                let Some(extent) = difference.extents.get_mut(copy) else { continue };
                match has {
                    Has::Batch(batch) => extent.add(batch),
                    Has::Damage(loss) if extent.place.is_none() => {
                        (extent.place, extent.size) = (Some(loss.place), loss.size);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Where batches have different leader epochs the logs part; gives those of the highest. Batches
    /// that are the same but for the epoch were either sent again to the next leader, then nothing is
    /// lost, or the epoch is what is wrong with one.
    fn part<'b>(
        &mut self,
        offset: i64,
        batches: Vec<(usize, &'b Listed)>,
    ) -> Vec<(usize, &'b Listed)> {
        let epoch = |batch: &Listed| batch.info.partition_leader_epoch;
        let Some(highest) = batches.iter().map(|(_, batch)| epoch(batch)).max() else {
            return batches;
        };
        let is_highest = |batch: &Listed| epoch(batch) == highest;
        let surviving: Vec<&Listed> =
            batches.iter().map(|(_, batch)| *batch).filter(|batch| is_highest(batch)).collect();
        let (survivors, parted): (Vec<_>, Vec<_>) = batches.into_iter().partition(|(_, batch)| {
            // Older formats have no epoch.
            is_highest(batch)
                || epoch(batch) < 0
                || surviving.iter().any(|survivor| survivor.has_same_bytes(batch))
        });
        for (copy, batch) in parted {
            let Some(end) = self.copies.get(copy).map(|copy| copy.end) else { continue };
            let kind = DifferenceKind::Diverged;
            let last = end.saturating_sub(1).max(batch.info.last_offset);
            let mut difference = Difference::new(kind, offset..=last, self.copies.len());
            difference.bad.insert(copy);
            difference.good = survivors.iter().map(|(copy, _)| *copy).collect();
            for (copy, batch) in survivors.iter().chain([&(copy, batch)]) {
                if let Some(extent) = difference.extents.get_mut(*copy) {
                    extent.add(batch);
                }
            }
            if let Some(parted) = self.parted.get_mut(copy) {
                *parted = Some(difference);
            }
        }
        survivors
    }

    fn has_parted(&self, copy: usize) -> bool {
        self.parted.get(copy).is_some_and(Option::is_some)
    }

    /// Whether a copy that parted has batches in a block.
    fn follows_parted(&self, prints: &[Fingerprint], number: i64) -> bool {
        (0..prints.len()).any(|copy| {
            self.has_parted(copy) && prints.get(copy).is_some_and(|p| p.block(number).is_some())
        })
    }

    /// Counts a batch behind the one at which copies parted.
    fn count_parted(&mut self, copy: usize, batch: &Listed) {
        for (other, difference) in self.parted.iter_mut().enumerate() {
            let Some(difference) = difference else { continue };
            let base = batch.info.base_offset;
            let is_behind = base > difference.first_offset && base <= difference.last_offset;
            if is_behind
                && (other == copy || difference.good.contains(&copy))
                && let Some(extent) = difference.extents.get_mut(copy)
            {
                extent.add(batch);
            }
        }
    }

    /// Ends the differences that do not go on; those of compaction are one for the whole log.
    fn close_but(&mut self, ways: &[Way]) {
        let open = std::mem::take(&mut self.open);
        for (way, mut difference) in open {
            if way.0 == DifferenceKind::Compaction || ways.contains(&way) {
                self.open.insert(way, difference);
            } else {
                (_, difference.bad, difference.good) = way;
                self.push(difference);
            }
        }
    }

    fn push(&mut self, difference: Difference) {
        if self.out.differences.len() < MAX_DIFFERENCES {
            self.out.differences.push(difference);
        } else {
            self.out.left_out += 1;
        }
    }

    fn finish(mut self) -> Comparison {
        self.close_but(&[]);
        for (_, difference) in std::mem::take(&mut self.open) {
            self.push(difference);
        }
        self.lost_everywhere();
        self.edges();
        for difference in std::mem::take(&mut self.parted).into_iter().flatten() {
            self.push(difference);
        }
        self.out.differences.sort_by_key(|difference| {
            (difference.first_offset, difference.last_offset, difference.kind)
        });
        self.out
    }

    /// Offsets that are damaged on every copy that should have them.
    fn lost_everywhere(&mut self) {
        let Some((first, others)) = self.copies.split_first() else { return };
        let mut common: Vec<(i64, i64)> = first.lost.iter().map(|l| (l.first, l.last)).collect();
        let is_in_all =
            |offset: i64| self.copies.iter().all(|copy| (copy.start..copy.end).contains(&offset));
        for copy in others {
            common = intersection(&common, &copy.lost);
        }
        let all: BTreeSet<usize> = (0..self.copies.len()).collect();
        for (first, last) in common {
            if !(is_in_all(first) && is_in_all(last)) {
                continue;
            }
            let kind = DifferenceKind::LostEverywhere;
            let mut difference = Difference::new(kind, first..=last, self.copies.len());
            difference.bad.clone_from(&all);
            for (copy, extent) in self.copies.iter().zip(&mut difference.extents) {
                if let Some(loss) = copy.loss_at(first) {
                    (extent.place, extent.size) = (Some(loss.place), loss.size);
                }
            }
            self.push(difference);
        }
    }

    /// Where copies begin and end.
    fn edges(&mut self) {
        let standing: Vec<usize> =
            (0..self.copies.len()).filter(|&copy| !self.has_parted(copy)).collect();
        let of = |copy: &usize| self.copies.get(*copy);
        let end = standing.iter().filter_map(of).map(|copy| copy.end).max().unwrap_or(0);
        let start = self.copies.iter().map(|copy| copy.start).min().unwrap_or(0);
        let committed = self.copies.iter().filter_map(|copy| copy.high_watermark).max();
        let mut edges: BTreeMap<(DifferenceKind, i64, i64), BTreeSet<usize>> = BTreeMap::new();
        for &index in &standing {
            let Some(copy) = self.copies.get(index) else { continue };
            // Damage at its end has been told.
            if copy.end < end && copy.loss_at(copy.end).is_none() {
                let key = (DifferenceKind::Behind, copy.end, end - 1);
                edges.entry(key).or_default().insert(index);
            }
        }
        for (index, copy) in self.copies.iter().enumerate() {
            if copy.start > start {
                let key = (DifferenceKind::BeginsLater, start, copy.start - 1);
                edges.entry(key).or_default().insert(index);
            }
        }
        for ((kind, first, last), bad) in edges {
            let mut difference = Difference::new(kind, first..=last, self.copies.len());
            difference.good = (0..self.copies.len())
                .filter(|index| {
                    self.copies.get(*index).is_some_and(|copy| match kind {
                        DifferenceKind::Behind => standing.contains(index) && copy.end > last,
                        _ => copy.start <= first,
                    })
                })
                .collect();
            difference.bad = bad;
            if kind == DifferenceKind::Behind
                && difference.only_copy().is_some()
                && committed.is_some_and(|committed| committed > first)
            {
                // Consumers may have read them, and one disk holds them.
                difference.severity = Severity::Warning;
            }
            self.push(difference);
        }
    }
}

/// The copies with the same batch, each in one group.
fn groups(batches: &[(usize, &Listed)]) -> Vec<BTreeSet<usize>> {
    let mut groups: Vec<(&Listed, BTreeSet<usize>)> = Vec::new();
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

fn copies_where(has: &[Has<'_>], holds: impl Fn(&Has<'_>) -> bool) -> BTreeSet<usize> {
    has.iter().enumerate().filter(|(_, has)| holds(has)).map(|(copy, _)| copy).collect()
}

/// What is in both; the losses of a copy do not overlap, as far as it matters here.
fn intersection(ranges: &[(i64, i64)], losses: &[Loss]) -> Vec<(i64, i64)> {
    let mut out = Vec::new();
    let mut at = 0;
    for &(first, last) in ranges {
        while losses.get(at).is_some_and(|loss| loss.last < first) {
            at += 1;
        }
        for loss in losses.get(at..).unwrap_or_default() {
            if loss.first > last {
                break;
            }
            out.push((first.max(loss.first), last.min(loss.last)));
        }
    }
    out
}
