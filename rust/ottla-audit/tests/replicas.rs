//! Copies of a partition compared: one of three is changed in a known way, and what is said equals
//! what holding every batch against every other says.

mod logs;

use logs::{Log, NOW, Random};
use ottla_audit::copies::compare::compare;
use ottla_audit::copies::copy::Copy;
use ottla_audit::copies::difference::{Comparison, Difference, DifferenceKind};
use ottla_audit::{
    FindingKind, Fingerprint, MAX_BLOCKS, MIN_SHIFT, PartitionContext, PartitionScan, Scanner,
    SegmentContext, SegmentScan, Severity, merge_partition,
};
use ottla_format::batch::BatchInfo;
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use ottla_log::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// A batch of a copy: what it is, and its bytes.
#[derive(Clone)]
struct Batch {
    base_offset: i64,
    last_offset: i64,
    bytes: Vec<u8>,
}

/// A copy: batches, and where its segments begin.
#[derive(Clone)]
struct Replica {
    batches: Vec<Batch>,
    rolls: Vec<i64>,
}

impl Replica {
    fn new(first_offset: i64, count: usize, random: &mut Random) -> Self {
        let mut replica = Self { batches: Vec::new(), rolls: vec![first_offset] };
        replica.append(first_offset, count, 0, random);
        replica
    }

    fn append(&mut self, from: i64, count: usize, epoch: i32, random: &mut Random) {
        let mut log = Log::at(from);
        log.epoch = epoch;
        for _ in 0..count {
            let base_offset = log.next;
            let values: Vec<Vec<u8>> = (0..=random.below(4)).map(|_| random.bytes(8)).collect();
            log.plain(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let bytes = log.batch(log.batches.len() - 1).to_vec();
            self.batches.push(Batch { base_offset, last_offset: log.next - 1, bytes });
        }
    }

    fn end(&self) -> i64 {
        self.batches.last().map_or(0, |batch| batch.last_offset + 1)
    }

    fn rolled(mut self, random: &mut Random) -> Self {
        for batch in self.batches.iter().skip(1) {
            if random.below(9) == 0 {
                self.rolls.push(batch.base_offset);
            }
        }
        self
    }

    /// Segments: base offset and bytes. A batch out of order stays where it is.
    fn segments(&self) -> Vec<(i64, Vec<u8>)> {
        let mut segments: Vec<(i64, Vec<u8>)> = Vec::new();
        for batch in &self.batches {
            let is_roll = self.rolls.contains(&batch.base_offset);
            if is_roll || segments.is_empty() {
                segments.push((batch.base_offset, Vec::new()));
            }
            if let Some((_, bytes)) = segments.last_mut() {
                bytes.extend_from_slice(&batch.bytes);
            }
        }
        segments
    }

    fn batch_at(&mut self, offset: i64) -> &mut Batch {
        let mut batches = self.batches.iter_mut();
        batches.find(|batch| batch.last_offset >= offset).expect("inside the log")
    }
}

type Segments = Vec<(i64, Vec<u8>)>;

fn scan(segments: &Segments) -> PartitionScan {
    let mut scanner = Scanner::new(Level::Full, Limits::default());
    let mut scans: Vec<SegmentScan> = Vec::new();
    for (index, (base_offset, bytes)) in segments.iter().enumerate() {
        let next_base_offset = segments.get(index + 1).map(|(base, _)| *base);
        let context = SegmentContext {
            base_offset: Some(*base_offset),
            next_base_offset,
            is_active: next_base_offset.is_none(),
            stopped_cleanly: true,
            now_ms: NOW,
            is_compared: true,
            ..SegmentContext::default()
        };
        scans.push(scanner.scan(&bytes.as_slice(), context, &mut |_| true, None).expect("memory"));
    }
    merge_partition(scans, &PartitionContext::default())
}

struct Bytes(Vec<u8>);

impl Source for Bytes {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.as_slice().read_at(position, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        self.0.as_slice().size()
    }
}

fn compared(replicas: &[Replica]) -> (Vec<Copy>, Comparison) {
    compared_segments(&replicas.iter().map(Replica::segments).collect::<Vec<_>>())
}

fn compared_segments(replicas: &[Segments]) -> (Vec<Copy>, Comparison) {
    let copies: Vec<Copy> = replicas
        .iter()
        .map(|segments| Copy::of(&scan(segments), &PartitionContext::default(), None))
        .collect();
    let mut scanner = Scanner::new(Level::Crc, Limits::default());
    let mut open = |copy: usize, segment: u32, _bytes: u64| -> io::Result<Box<dyn Source>> {
        Ok(Box::new(Bytes(replicas[copy][segment as usize].1.clone())))
    };
    let comparison = compare(&copies, &mut scanner, &mut open).expect("memory");
    (copies, comparison)
}

/// Each offset of a copy with what stands there: bytes of a sound batch.
fn offsets(segments: &Segments) -> BTreeMap<i64, Vec<u8>> {
    let mut scanner = Scanner::new(Level::Crc, Limits::default());
    let mut there = BTreeMap::new();
    for (_, bytes) in segments {
        let listing = scanner
            .list(&bytes.as_slice(), SegmentContext::default(), 0, usize::MAX)
            .expect("memory");
        for (info, is_valid) in listing.batches {
            let at = info.position as usize;
            for offset in info.base_offset..=info.last_offset {
                if is_valid {
                    there.insert(offset, bytes[at..at + info.size as usize].to_vec());
                }
            }
        }
    }
    there
}

/// The offsets at which copies do not all have the same, each compared with each.
fn naive(replicas: &[Segments]) -> BTreeSet<i64> {
    let copies: Vec<_> = replicas.iter().map(offsets).collect();
    let all: BTreeSet<i64> = copies.iter().flat_map(BTreeMap::keys).copied().collect();
    let is_same =
        |offset: &i64| copies.windows(2).all(|two| two[0].get(offset) == two[1].get(offset));
    all.into_iter().filter(|offset| !is_same(offset)).collect()
}

fn told(differences: &[Difference]) -> BTreeSet<i64> {
    differences.iter().flat_map(|d| d.first_offset..=d.last_offset).collect()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Edit {
    None,
    FlipBody,
    OtherBytes,
    DropBatch,
    DropSegment,
    Cut,
    Retention,
    PartBehind,
    PartAhead,
    Epoch,
    Repeat,
    BaseOffset,
}

const EDITS: [(Edit, Option<DifferenceKind>); 12] = [
    (Edit::None, None),
    (Edit::FlipBody, Some(DifferenceKind::Damaged)),
    (Edit::OtherBytes, Some(DifferenceKind::DifferentBytes)),
    (Edit::DropBatch, Some(DifferenceKind::Missing)),
    (Edit::DropSegment, Some(DifferenceKind::Missing)),
    (Edit::Cut, Some(DifferenceKind::Behind)),
    (Edit::Retention, Some(DifferenceKind::BeginsLater)),
    (Edit::PartBehind, Some(DifferenceKind::Diverged)),
    (Edit::PartAhead, Some(DifferenceKind::Diverged)),
    (Edit::Epoch, Some(DifferenceKind::LeaderEpoch)),
    (Edit::Repeat, None),
    (Edit::BaseOffset, Some(DifferenceKind::Damaged)),
];

/// Changes a copy; gives its segments.
fn edited(mut replica: Replica, edit: Edit, random: &mut Random) -> Segments {
    let count = replica.batches.len();
    // In the epoch of the second half, or where it begins; not at the ends: they are told otherwise.
    let at = if edit == Edit::PartBehind {
        count / 2
    } else {
        count / 2 + 2 + random.below(count / 2 - 5)
    };
    let offset = replica.batches[at].base_offset;
    match edit {
        Edit::None => {}
        Edit::FlipBody => {
            let batch = &mut replica.batches[at];
            let place = 61 + random.below(batch.bytes.len() - 61);
            batch.bytes[place] ^= 1 << random.below(8);
        }
        Edit::OtherBytes => {
            let batch = &mut replica.batches[at];
            let mut log = Log::at(batch.base_offset);
            log.epoch = 5;
            let count = batch.last_offset - batch.base_offset + 1;
            let values: Vec<Vec<u8>> = (0..count).map(|_| random.bytes(9)).collect();
            log.plain(&values.iter().map(Vec::as_slice).collect::<Vec<_>>());
            batch.bytes = log.bytes;
        }
        Edit::DropBatch => {
            replica.rolls.retain(|roll| *roll != offset);
            replica.batches.remove(at);
        }
        Edit::DropSegment => {
            let next = replica.batches[at + 1].base_offset;
            replica.rolls.extend([offset, next]);
            replica.batches.remove(at);
        }
        Edit::Cut => replica.batches.truncate(at),
        Edit::Retention => {
            replica.batches.drain(..at);
            replica.rolls = vec![offset];
        }
        Edit::PartBehind | Edit::PartAhead => {
            replica.batches.truncate(at);
            replica.rolls.retain(|roll| *roll < offset);
            let epoch = if edit == Edit::PartAhead { 8 } else { 3 };
            let more = 1 + random.below(count);
            replica.append(offset, more, epoch, random);
        }
        Edit::Epoch => {
            // In the middle of epoch 5: the one before and the one behind are of it.
            replica.batches[at].bytes[12..16].copy_from_slice(&4i32.to_be_bytes());
        }
        Edit::Repeat => {
            let again = replica.batches[at].clone();
            replica.rolls.retain(|roll| *roll != offset);
            replica.batches.insert(at, again);
        }
        Edit::BaseOffset => {
            let wrong = offset + (1 << 20);
            replica.rolls.retain(|roll| *roll != offset);
            replica.batches[at].bytes[..8].copy_from_slice(&wrong.to_be_bytes());
        }
    }
    replica.segments()
}

#[test]
fn what_is_said_of_three_copies_is_what_holding_every_batch_against_every_other_says() {
    for seed in 0..240 {
        let mut random = Random(seed);
        let first_offset = random.below(3000) as i64;
        let count = 20 + random.below(60);
        let (edit, kind) = EDITS[seed as usize % EDITS.len()];
        let mut one = Replica { batches: Vec::new(), rolls: vec![first_offset] };
        one.append(first_offset, count, 2, &mut random);
        let later = one.end();
        one.append(later, count, 5, &mut random);
        let changed = random.below(3);
        let replicas: Vec<Segments> = (0..3)
            .map(|copy| {
                let replica = one.clone().rolled(&mut random);
                if copy == changed {
                    edited(replica, edit, &mut random)
                } else {
                    replica.segments()
                }
            })
            .collect();
        let (copies, comparison) = compared_segments(&replicas);
        let case =
            format!("seed {seed}, {edit:?} on copy {changed}: {:#?}", comparison.differences);
        let others: BTreeSet<usize> = (0..3).filter(|copy| *copy != changed).collect();
        let changed_only = BTreeSet::from([changed]);

        let mut different = naive(&replicas);
        if matches!(edit, Edit::PartBehind | Edit::PartAhead) {
            // Offsets beyond the end of a copy that will be cut are no difference of their own.
            let ends = |copy: usize| *offsets(&replicas[copy]).keys().last().expect("batches");
            let parted =
                if edit == Edit::PartBehind { changed_only.clone() } else { others.clone() };
            let last = parted.iter().map(|copy| ends(*copy)).max().expect("some");
            different.retain(|offset| *offset <= last);
        }
        if edit == Edit::BaseOffset {
            // That its batch is called otherwise is known, and where it belongs.
            different.retain(|offset| {
                *offset < copies_end(&replicas[others.first().copied().expect("two")])
            });
        }
        assert_eq!(told(&comparison.differences), different, "{case}");

        for difference in &comparison.differences {
            assert_eq!(Some(difference.kind), kind, "{case}");
            let (good, bad) = match edit {
                Edit::PartAhead => (&changed_only, &others),
                _ => (&others, &changed_only),
            };
            assert_eq!(&difference.good, good, "{case}");
            assert!(difference.bad.is_subset(bad) && !difference.bad.is_empty(), "{case}");
            let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
            let findings = difference.findings(&copies, &names);
            let expected = if difference.kind.is_lawful() { 0 } else { difference.bad.len() };
            assert_eq!(findings.len(), expected, "{case}");
            for (copy, finding) in findings {
                assert_eq!(finding.kind, FindingKind::ReplicaDifference);
                assert!(difference.bad.contains(&copy), "{case}");
            }
        }
    }
}

fn copies_end(segments: &Segments) -> i64 {
    offsets(segments).keys().last().map_or(0, |last| last + 1)
}

#[test]
fn an_unclean_election_loses_what_the_lower_epoch_holds_up_to_its_end() {
    let mut random = Random(1);
    let common = Replica::new(100, 10, &mut random);
    let parted_at = common.end();
    let (mut old, mut new) = (common.clone(), common);
    old.append(parted_at, 9, 0, &mut random);
    new.append(parted_at, 2, 2, &mut random);
    let old_end = old.end();
    let (_, comparison) = compared(&[new.clone(), old, new]);
    let [difference] = comparison.differences.as_slice() else { panic!("{comparison:#?}") };
    assert_eq!(difference.kind, DifferenceKind::Diverged);
    assert_eq!((difference.first_offset, difference.last_offset), (parted_at, old_end - 1));
    assert_eq!(difference.good, BTreeSet::from([0, 2]));
    assert_eq!(difference.bad, BTreeSet::from([1]));
    assert_eq!(difference.spans[1].leader_epoch, Some(0));
    assert_eq!(difference.spans[0].leader_epoch, Some(2));
    assert_eq!(difference.spans[1].batches, 9);
    assert_eq!(difference.spans[1].records, (old_end - parted_at) as u64);
    assert_eq!(difference.spans[0].batches, 2);
    assert_eq!(difference.only_copy(), Some(1));
}

#[test]
fn two_copies_of_other_bytes_leave_open_which_is_right() {
    let mut random = Random(2);
    let one = Replica::new(0, 10, &mut random);
    let mut other = one.clone();
    let batch = other.batch_at(9);
    let mut log = Log::at(batch.base_offset);
    let values = vec![b"else".as_slice(); (batch.last_offset - batch.base_offset + 1) as usize];
    batch.bytes.clone_from(&log.plain(&values).bytes);
    let (copies, comparison) = compared(&[one, other]);
    let [difference] = comparison.differences.as_slice() else { panic!("{comparison:#?}") };
    assert_eq!(difference.kind, DifferenceKind::DifferentBytes);
    assert_eq!(difference.severity, Severity::Warning);
    assert!(difference.good.is_empty());
    assert_eq!(difference.bad, BTreeSet::from([0, 1]));
    let findings = difference.findings(&copies, &["one".to_owned(), "two".to_owned()]);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].1.message.text().contains("one and two"), "{}", findings[0].1.message);
}

#[test]
fn damage_at_the_same_offsets_of_every_copy_is_lost_everywhere() {
    let mut random = Random(3);
    let mut one = Replica::new(0, 30, &mut random);
    let batch = one.batch_at(20);
    let (first, last) = (batch.base_offset, batch.last_offset);
    *batch.bytes.last_mut().expect("bytes") ^= 1;
    let (_, comparison) = compared(&[one.clone(), one.clone(), one]);
    let [difference] = comparison.differences.as_slice() else { panic!("{comparison:#?}") };
    assert_eq!(difference.kind, DifferenceKind::LostEverywhere);
    assert_eq!((difference.first_offset, difference.last_offset), (first, last));
    assert!(difference.good.is_empty());
}

#[test]
fn damage_at_the_end_of_a_copy_is_not_told_as_lagging_too() {
    let mut random = Random(6);
    let one = Replica::new(0, 30, &mut random);
    let mut other = one.clone();
    let last = other.batches.last_mut().expect("some");
    let (first, end) = (last.base_offset, last.last_offset);
    *last.bytes.last_mut().expect("bytes") ^= 1;
    let (_, comparison) = compared(&[one.clone(), other, one]);
    let [difference] = comparison.differences.as_slice() else { panic!("{comparison:#?}") };
    assert_eq!(difference.kind, DifferenceKind::Damaged);
    assert_eq!((difference.first_offset, difference.last_offset), (first, end));
}

#[test]
fn copies_that_were_compacted_at_different_times_differ_lawfully() {
    let mut random = Random(4);
    let one = Replica::new(0, 60, &mut random);
    let mut cleaned = one.clone();
    for offset in [20, 40, 60] {
        // As long as the one behind it is to go.
        let after = cleaned.batches.iter().position(|b| b.base_offset > offset).expect("inside");
        cleaned.batches.remove(after);
        let batch = cleaned.batch_at(offset);
        let delta = (batch.last_offset - batch.base_offset + 1) as i32;
        let mut log = Log::at(batch.base_offset);
        log.plain(&[b"left"]);
        log.bytes[23..27].copy_from_slice(&delta.to_be_bytes());
        let crc = ottla_kernels::crc32c(&log.bytes[21..]);
        log.bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        batch.bytes = log.bytes;
        batch.last_offset += 1;
    }
    cleaned.batches.retain(|batch| batch.base_offset % 7 != 3);
    let (copies, comparison) = compared(&[one.clone(), cleaned, one]);
    let kinds: BTreeSet<&str> = comparison.differences.iter().map(|d| d.kind.name()).collect();
    assert_eq!(kinds, BTreeSet::from(["compaction"]), "{comparison:#?}");
    assert_eq!(comparison.differences.len(), 1);
    assert!(comparison.differences[0].findings(&copies, &[]).is_empty());
}

#[test]
fn equal_copies_are_not_read_again() {
    let mut random = Random(5);
    let one = Replica::new(0, 200, &mut random);
    let (_, comparison) =
        compared(&[one.clone().rolled(&mut random), one.clone().rolled(&mut random), one]);
    assert_eq!(comparison, Comparison::default());
}

#[test]
fn a_block_of_more_batches_than_are_held_is_compared_in_parts() {
    let mut log = Log::at(0);
    for _ in 0..1000 {
        log.plain(&[b"one"]);
    }
    let batches: Vec<&[u8]> = (0..1000).map(|index| log.batch(index)).collect();
    let repeated = [batches[..6].concat(), batches[5].repeat(70_000)].concat();
    let rest: Vec<u8> = (6..1000).filter(|i| *i != 900).flat_map(|i| batches[i]).copied().collect();
    let other = vec![(0, [repeated, rest].concat())];
    let one = vec![(0, log.bytes.clone())];
    let (_, comparison) = compared_segments(&[one.clone(), other, one]);
    let [difference] = comparison.differences.as_slice() else { panic!("{comparison:#?}") };
    assert_eq!(difference.kind, DifferenceKind::Missing);
    assert_eq!((difference.first_offset, difference.last_offset), (900, 900));
    assert_eq!(difference.bad, BTreeSet::from([1]));
}

fn batch(base_offset: i64, crc: u32) -> BatchInfo {
    BatchInfo {
        position: base_offset.unsigned_abs() << 7,
        size: 100,
        magic: 2,
        base_offset,
        last_offset: base_offset,
        partition_leader_epoch: 0,
        crc,
        attributes: 0,
        base_timestamp: 0,
        max_timestamp: 0,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: Some(1),
    }
}

fn print(batches: &[BatchInfo]) -> Fingerprint {
    let mut print = Fingerprint::default();
    for batch in batches {
        print.observe(batch);
    }
    print
}

#[test]
fn parts_of_a_log_add_up_to_its_fingerprint_in_any_grouping() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let spread = 1 << (MIN_SHIFT as usize + random.below(30));
        let batches: Vec<BatchInfo> = (0..random.below(6000))
            .map(|_| batch(random.below(spread) as i64 - 100, random.next() as u32))
            .collect();
        let whole = print(&batches);
        assert!(whole.block_count() <= MAX_BLOCKS);
        let mut parts: Vec<Fingerprint> = Vec::new();
        let mut rest = batches.as_slice();
        while !rest.is_empty() {
            let (part, after) = rest.split_at(1 + random.below(rest.len()));
            parts.push(print(part));
            rest = after;
        }
        while parts.len() > 1 {
            let at = random.below(parts.len() - 1);
            let right = parts.remove(at + 1);
            parts[at].append(right);
        }
        assert!(parts.pop().unwrap_or_default() == whole, "seed {seed}");
    }
}

#[test]
fn offsets_as_far_apart_as_they_can_be_stay_within_the_bound() {
    let mut print = Fingerprint::default();
    for shift in 0..63 {
        for number in 0..40 {
            print.observe(&batch(i64::MIN >> shift, number));
            print.observe(&batch((i64::MAX >> shift) - i64::from(number), number));
        }
    }
    assert!(print.block_count() <= MAX_BLOCKS);
}
