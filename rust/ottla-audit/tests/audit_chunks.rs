//! A segment cut anywhere gives what one pass over it gives, whatever is wrong with it and in
//! whatever order its parts are put together.

mod logs;

use logs::{Log, NOW, Random, TIME, active, closed};
use ottla_audit::copies::copy::Copy;
use ottla_audit::partition::producers::MAX_PRODUCERS;
use ottla_audit::segment::index_check::Indexes;
use ottla_audit::{
    Chunk, ChunkError, PartitionContext, ScanError, Scanner, SegmentContext, SegmentScan,
    merge_partition,
};
use ottla_format::attributes::Compression;
use ottla_format::builder::{BatchFields, NewControlRecord, NewRecord, build_batch};
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use ottla_log::source::Source;
use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};

/// A batch with a fault that its checksum covers: `change` gets its bytes.
fn resealed(batch: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut batch = batch.to_vec();
    change(&mut batch);
    let crc = ottla_kernels::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch
}

/// A log of a few producers with everything that a walk remembers in it: gaps, transactions,
/// leader epochs, odd timestamps, captured batches in values.
fn any_log(random: &mut Random) -> (Log, SegmentContext) {
    let base = [0, 100, 1 << 33][random.below(3)];
    let mut log = Log::at(base);
    let (has_gaps, is_odd, nests, is_dull) =
        (random.below(3) == 0, random.below(4) == 0, random.below(3) == 0, random.below(3) == 0);
    if random.below(8) == 0 {
        for _ in 0..random.below(30) {
            let magic = i8::from(random.below(2) == 0);
            let codec = [Compression::None, Compression::None, Compression::Gzip][random.below(3)];
            log.legacy(magic, codec, &[&b"old"[..]; 2][..=random.below(2)]);
        }
    }
    let mut sequences = [0i32; 4];
    for _ in 0..10 + random.below(90) {
        if !is_dull && random.below(20) == 0 {
            log.epoch += 1;
        }
        if has_gaps && random.below(3) > 0 {
            log.next += 1 + random.below(3) as i64;
        }
        let producer = random.below(4);
        let fields = BatchFields {
            producer_id: 9 + producer as i64,
            producer_epoch: 0,
            base_sequence: sequences[producer],
            is_transactional: producer > 1,
            ..log.fields()
        };
        let size = [5, 50, 500][random.below(3)];
        let value = random.bytes(size);
        let values = vec![value.as_slice(); 1 + random.below(3)];
        match if is_dull { 3 + random.below(3) } else { random.below(9) } {
            0 => {
                let record = if random.below(2) == 0 {
                    NewControlRecord::Commit { coordinator_epoch: random.below(3) as i32 }
                } else {
                    NewControlRecord::Abort { coordinator_epoch: 2 }
                };
                log.marker_of(9 + producer as i64, 0, record);
            }
            1 => {
                log.compressed(Compression::Lz4, &values);
            }
            2 => {
                if random.below(4) == 0 {
                    sequences[producer] += 5;
                }
                let fields = BatchFields { compression: Compression::Gzip, ..fields };
                log.with(fields, &values);
                sequences[producer] += values.len() as i32;
            }
            3 | 4 => {
                log.with(fields, &values);
                sequences[producer] += values.len() as i32;
            }
            5 | 6 => {
                log.plain(&values);
            }
            7 if nests => {
                let mut inner = Log::at(log.next + random.below(6) as i64 - 1);
                for _ in 0..=random.below(9) {
                    inner.plain(&[b"captured"]);
                }
                log.plain(&[&inner.bytes]);
            }
            8 if is_odd => {
                let times = [TIME / 1000, TIME * 1000, 7, NOW + 7_200_000];
                let time = times[random.below(times.len())];
                for _ in 0..=random.below(6) {
                    let record = NewRecord { timestamp: time, ..NewRecord::default() };
                    let built = build_batch(&log.fields(), &[record], &mut log.codecs);
                    log.raw(&built.expect("builds"), 1);
                }
            }
            // A batch whose records the cleaner took.
            _ => {
                log.plain(&values);
                let (position, _, _) = log.batches[log.batches.len() - 1];
                let batch = log.bytes.split_off(position);
                let thin = resealed(&batch, |batch| batch[26] = batch[26].wrapping_add(2));
                log.bytes.extend_from_slice(&thin);
                log.next += 2;
            }
        }
    }
    let context = match random.below(4) {
        0 => closed(base, log.next + random.below(2) as i64),
        1 => SegmentContext { stopped_cleanly: true, ..active(base) },
        2 => SegmentContext { base_offset: None, ..active(base) },
        _ => active(base),
    };
    let context = SegmentContext { is_compared: random.below(3) == 0, ..context };
    (log, context)
}

/// Hurts the bytes in one of the ways of a disk, a copy or a faulty writer.
fn hurt(bytes: &mut Vec<u8>, batches: &[(usize, usize, i64)], random: &mut Random) {
    let limit = bytes.len().min([16, 300, 3000][random.below(3)]);
    if limit < 2 {
        return;
    }
    let size = 1 + random.below(limit - 1);
    let start = random.below(bytes.len() - size);
    let (position, length, _) = batches[random.below(batches.len())];
    let whole = position..position + length;
    let batch = bytes.get(whole.clone()).map(<[u8]>::to_vec);
    let (last, more, _) = batches[random.below(batches.len())];
    let many = position.min(last)..(position + length).max(last + more);
    match (random.below(13), batch) {
        (0, _) => bytes[start] ^= 1 << random.below(8),
        (1, _) => drop(bytes.drain(start..start + size)),
        (2, _) => bytes[start..start + size].fill(0),
        (3, _) => drop(bytes.splice(start..start, random.bytes(size))),
        (4, _) => {
            let repeated = bytes[start..start + size].to_vec();
            bytes.splice(start..start, repeated);
        }
        (5, _) => bytes.truncate(start + 1),
        (6, _) => bytes.extend(vec![0; size]),
        (7, Some(_)) => drop(bytes.drain(whole)),
        (8, Some(batch)) => drop(bytes.splice(position..position, batch)),
        (9, Some(_)) if length > 16 => {
            // A field of the header: base offset, size, leader epoch, magic.
            let field = position + random.below(17);
            bytes[field] = bytes[field].wrapping_add(1 + random.below(3) as u8);
        }
        (10, Some(batch)) => {
            let end = random.below(bytes.len());
            bytes.splice(end..end, batch);
        }
        (11, _) if many.end <= bytes.len() => {
            let repeated = bytes[many].to_vec();
            bytes.splice(position..position, repeated);
        }
        (_, Some(batch)) if length > 70 && batch[16] == 2 => {
            let hurt = resealed(&batch, |batch| {
                let place = 21 + random.below(batch.len() - 21);
                batch[place] ^= 1 << random.below(8);
            });
            bytes.splice(whole, hurt);
        }
        _ => {}
    }
}

fn scanner(level: Level) -> Scanner {
    Scanner::new(level, Limits::default())
}

/// A segment, what is known of it, and how it is to be looked at.
#[derive(Clone, Copy)]
struct Case<'a> {
    source: &'a dyn Source,
    context: SegmentContext,
    indexes: &'a Indexes,
    level: Level,
}

impl<'a> Case<'a> {
    fn full(source: &'a dyn Source) -> Self {
        Self { source, context: active(0), indexes: Indexes::NONE, level: Level::Full }
    }

    fn one_pass(&self) -> SegmentScan {
        scanner(self.level)
            .scan_indexed(self.source, self.context, self.indexes, &mut |_| true, None)
            .expect("reads")
    }

    /// Scans the ranges between `cuts`.
    fn chunks(&self, cuts: &[u64]) -> Vec<Chunk> {
        let Self { source, context, indexes, level } = *self;
        let mut scanner = scanner(level);
        let ranges = cuts.windows(2).map(|cut| cut[0]..cut[1]);
        let scan = |range| scanner.scan_range(source, context, indexes, range, &mut |_| true);
        ranges.map(scan).collect::<Result<_, ScanError>>().expect("reads")
    }

    fn finish(&self, whole: Chunk) -> Result<SegmentScan, ScanError> {
        scanner(self.level).finish(whole, self.source, self.indexes, &mut |_| true)
    }

    /// Cuts the source there, and holds what the parts show together against one pass.
    fn compare(&self, cuts: &[u64], random: &mut Random, what: &str) -> Counts {
        let chunks = self.chunks(cuts);
        let cut = chunks.len() - 1;
        let whole = merged(chunks, random);
        let joined = cut + 1 - whole.pieces();
        let found = self.finish(whole).expect("reads");
        assert_same(&found, &self.one_pass(), &format!("{what}, cut at {cuts:?}"));
        let unpacked = SegmentScan::from_bytes(&found.to_bytes()).expect("as it was");
        assert_same(&unpacked, &found, &format!("{what}, through bytes"));
        Counts { cuts: cut, joined }
    }
}

/// Merges chunks pair by pair in random order, some of them through bytes.
fn merged(mut chunks: Vec<Chunk>, random: &mut Random) -> Chunk {
    while chunks.len() > 1 {
        let place = random.below(chunks.len() - 1);
        let right = chunks.remove(place + 1);
        let right = if random.below(4) == 0 {
            Chunk::from_bytes(&right.to_bytes()).expect("as it was")
        } else {
            right
        };
        chunks[place] = chunks[place].clone().merge(right).expect("they are neighbours");
    }
    chunks.remove(0)
}

fn assert_same(found: &SegmentScan, expected: &SegmentScan, what: &str) {
    if found == expected {
        return;
    }
    let (found, expected) = (format!("{found:#?}"), format!("{expected:#?}"));
    let (found, expected) = (found.lines(), expected.lines());
    let first = found.clone().zip(expected.clone()).position(|(a, b)| a != b).unwrap_or(0);
    let near = first.saturating_sub(12);
    let found: Vec<&str> = found.skip(near).take(24).collect();
    let expected: Vec<&str> = expected.skip(near).take(24).collect();
    panic!("{what}:\n{}\nand in one pass\n{}", found.join("\n"), expected.join("\n"));
}

#[derive(Debug, Default)]
struct Counts {
    cuts: usize,
    /// Cuts at which the chunks were joined without the bytes.
    joined: usize,
}

/// Index files of a log: as a broker writes them, but for an entry that may be wrong.
fn any_indexes(log: &Log, base: i64, random: &mut Random) -> Indexes {
    let mut indexes = Indexes::new(base);
    let (mut offsets, mut times) = (Vec::new(), Vec::new());
    for &(position, _, offset) in &log.batches {
        if random.below(4) == 0 {
            let relative = (offset - base) as i32;
            let (off, around) = match random.below(40) {
                0 => (random.below(5) as i32 - 2, 0),
                1 => (0, random.below(90) as i32 - 30),
                _ => (0, 0),
            };
            offsets.extend((relative + off).to_be_bytes());
            offsets.extend((position as i32 + around).to_be_bytes());
            times.extend((TIME + offset + i64::from(off)).to_be_bytes());
            times.extend((relative + around).to_be_bytes());
        }
    }
    indexes.has_offsets(offsets.len() as u64);
    indexes.has_times(times.len() as u64);
    indexes.add_offsets(&offsets);
    indexes.add_times(&times);
    indexes
}

/// Bytes with a few of them changed, behind the first.
fn changed(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    for _ in 0..random.below(4) {
        let place = 1 + random.below(bytes.len() - 1);
        if random.below(2) == 0 {
            bytes[place] = random.next() as u8;
        } else {
            // The largest number there is, or the smallest.
            let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
            let last = [largest, [0xfe; 10]][random.below(2)];
            bytes.splice(place..=place, last);
        }
    }
    bytes
}

/// Cuts `bytes` anywhere.
fn cut_and_compare(
    bytes: &[u8],
    context: SegmentContext,
    indexes: &Indexes,
    random: &mut Random,
    counts: &mut Counts,
    what: &str,
) {
    let level = [Level::Crc, Level::Decode, Level::Full][random.below(3)];
    let mut cuts = vec![0, bytes.len() as u64 + random.below(2) as u64];
    cuts.extend((0..random.below(8)).map(|_| random.below(bytes.len() + 1) as u64));
    cuts.sort_unstable();
    let found = Case { source: &bytes, context, indexes, level }.compare(&cuts, random, what);
    counts.cuts += found.cuts;
    counts.joined += found.joined;
}

fn any_case(seed: u64, counts: &mut Counts) {
    let mut random = Random(seed);
    let (log, context) = any_log(&mut random);
    let mut bytes = log.bytes.clone();
    for _ in 0..random.below(4) {
        hurt(&mut bytes, &log.batches, &mut random);
    }
    let indexes = any_indexes(&log, context.base_offset.unwrap_or(0), &mut random);
    let indexes = if random.below(2) == 0 { &indexes } else { Indexes::NONE };
    cut_and_compare(&bytes, context, indexes, &mut random, counts, &format!("seed {seed}"));
}

#[test]
fn a_segment_cut_anywhere_gives_what_one_pass_gives() {
    let mut counts = Counts::default();
    for seed in 0..400 {
        any_case(seed, &mut counts);
    }
    assert!(counts.joined * 2 > counts.cuts, "{counts:?}");
}

#[test]
#[ignore = "a minute: make test-all"]
fn twenty_thousand_segments_cut_anywhere_give_what_one_pass_gives() {
    let mut counts = Counts::default();
    for seed in 1000..21_000 {
        any_case(seed, &mut counts);
    }
    assert!(counts.joined * 2 > counts.cuts, "{counts:?}");
}

/// Segment files below a directory.
fn segments_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            segments_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "log") {
            found.push(path);
        }
    }
}

#[test]
fn segments_that_brokers_wrote_and_somebody_hurt_may_be_cut_anywhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    segments_below(&root.join("examples/data"), &mut paths);
    segments_below(&root.join("../shared/damage/segments"), &mut paths);
    segments_below(&root.join("../shared/damage/cases"), &mut paths);
    paths.sort();
    let mut random = Random(7);
    let mut counts = Counts::default();
    for path in paths {
        let bytes = std::fs::read(&path).expect("can be read");
        if bytes.len() > 1 << 20 {
            continue;
        }
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        let context = SegmentContext { base_offset: name.parse().ok(), ..active(0) };
        let what = path.display().to_string();
        cut_and_compare(&bytes, context, Indexes::NONE, &mut random, &mut counts, &what);
    }
    assert!(counts.joined > 0, "{counts:?}");
}

/// Cuts after every `size` bytes.
fn every(size: u64, bytes: &[u8]) -> Vec<u64> {
    let end = bytes.len() as u64;
    (0..end).step_by(size as usize).chain([end]).collect()
}

#[test]
fn a_sound_log_of_any_shape_is_joined_without_its_bytes() {
    let mut dense = Log::at(0);
    let mut sparse = Log::at(0);
    let mut old = Log::at(0);
    for index in 0..300 {
        let value = vec![b'v'; 300];
        dense.compressed([Compression::None, Compression::Zstd][index % 2], &[value.as_slice(); 3]);
        sparse.next += 1 + index as i64 % 3;
        sparse.plain(&[&value]);
        old.legacy(1, Compression::None, &[&value]);
    }
    for log in [dense, sparse, old] {
        let cuts = every(4000, &log.bytes);
        let counts = Case::full(&log.bytes.as_slice()).compare(&cuts, &mut Random(1), "sound");
        assert_eq!(counts.joined, counts.cuts);
    }
}

#[test]
fn a_cut_inside_a_value_that_holds_batches_fools_nobody() {
    let mut inner = Log::at(5);
    for _ in 0..200 {
        inner.plain(&[b"captured"]);
    }
    let mut log = Log::at(0);
    for _ in 0..4 {
        log.plain(&[b"a"]);
    }
    log.plain(&[&inner.bytes]);
    for _ in 0..40 {
        log.plain(&[b"z"]);
    }
    for level in [Level::Crc, Level::Decode, Level::Full] {
        for size in [500, 5000, 9000] {
            let cuts = every(size, &log.bytes);
            let bytes = log.bytes.as_slice();
            let case = Case { level, ..Case::full(&bytes) };
            case.compare(&cuts, &mut Random(size), "nested");
        }
    }
}

#[test]
fn batches_that_look_sound_from_a_cut_on_are_judged_by_those_before_it() {
    let mut log = Log::at(0);
    for _ in 0..100 {
        log.plain(&[b"a"]);
    }
    let at = |index: usize| log.batches[index].0;
    // Sixty batches are there twice; the second range begins among those that repeat others.
    let bytes = [&log.bytes[..at(80)], &log.bytes[at(20)..]].concat();
    let bytes = bytes.as_slice();
    let cuts = [0, at(95) as u64, bytes.len() as u64];
    let counts = Case::full(&bytes).compare(&cuts, &mut Random(1), "stored twice");
    assert_eq!(counts.joined, 0);
    assert_eq!(Case::full(&bytes).one_pass().findings.kept()[0].kind.name(), "offset-repeat");
}

#[test]
fn a_finding_that_grows_over_many_ranges_is_one() {
    let mut log = Log::at(0);
    for _ in 0..200 {
        let record = NewRecord { timestamp: TIME * 1000, ..NewRecord::default() };
        let built = build_batch(&log.fields(), &[record], &mut log.codecs).expect("builds");
        log.raw(&built, 1);
    }
    let bytes = log.bytes.as_slice();
    let cuts = every(1500, bytes);
    let counts = Case::full(&bytes).compare(&cuts, &mut Random(1), "microseconds");
    assert_eq!(counts.joined, counts.cuts);
    assert_eq!(Case::full(&bytes).one_pass().findings.kept().len(), 1);
}

#[test]
fn more_than_is_kept_is_counted_alike() {
    // Findings of a walk and of a producer, leader epochs, and aborted transactions.
    let mut log = Log::at(0);
    for index in 0..2600 {
        log.epoch = index / 2 * 2;
        log.produced(index * 7 % 5000, true, 1);
        if index % 5 == 0 {
            log.marker(NewControlRecord::Abort { coordinator_epoch: 0 });
        }
        if index % 2 == 0 {
            log.next += 1;
        }
    }
    log.epoch = 3000;
    for _ in 0..4000 {
        log.plain(&[b"a"]).plain(&[b"b"]);
        log.epoch += 1;
    }
    let bytes = log.bytes.as_slice();
    let scan = Case::full(&bytes).one_pass();
    assert!(scan.findings.suppressed().len() > 1);
    for size in [5000, 100_000] {
        let cuts = every(size, bytes);
        Case::full(&bytes).compare(&cuts, &mut Random(size), "more than is kept");
    }
}

#[test]
fn more_producers_than_are_followed_are_left_out_alike() {
    let mut log = Log::at(0);
    log.plain(&[b"one"]);
    let mut bytes = Vec::new();
    for index in 0..MAX_PRODUCERS as i64 + 5000 {
        bytes.extend_from_slice(&resealed(log.batch(0), |batch| {
            batch[..8].copy_from_slice(&index.to_be_bytes());
            batch[43..51].copy_from_slice(&index.to_be_bytes());
            batch[51..53].copy_from_slice(&[0, 0]);
            batch[53..57].copy_from_slice(&[0, 0, 0, 0]);
        }));
    }
    let bytes = bytes.as_slice();
    let end = bytes.len() as u64;
    let cuts = [0, end / 3, end / 3 * 2, end];
    let counts = Case::full(&bytes).compare(&cuts, &mut Random(1), "producers");
    assert!(counts.joined < counts.cuts);
}

/// A source that counts what is read, and fails behind a position.
struct Disk<'a> {
    bytes: &'a [u8],
    fails_at: u64,
    read: Cell<u64>,
}

impl Source for Disk<'_> {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if position + buffer.len() as u64 > self.fails_at {
            return Err(io::Error::other("the disk gave up"));
        }
        let read = self.bytes.read_at(position, buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }
}

#[test]
fn a_disk_that_fails_fails_at_the_same_place_for_all_ranges() {
    let mut random = Random(3);
    let mut log = Log::at(0);
    while log.bytes.len() < 3 << 20 {
        let value = random.bytes(5000);
        log.plain(&[&value]);
    }
    for fails_at in [1 << 20, (2 << 20) + 4096, 3 << 20] {
        let mut bytes = log.bytes.clone();
        bytes[(1 << 20) - 3000..(1 << 20) + 500].fill(0xee);
        let disk = Disk { bytes: &bytes, fails_at, read: Cell::new(0) };
        let cuts = every(300_000, &bytes);
        Case::full(&disk).compare(&cuts, &mut random, &format!("fails at {fails_at}"));
    }
}

#[test]
fn bytes_made_to_look_like_batches_do_not_make_ranges_slow() {
    let mut log = Log::at(0);
    log.plain(&[b"good"]);
    let header = log.batch(0)[..61].to_vec();
    let mut inner = Log::at(1);
    for _ in 0..1000 {
        inner.plain(&[b"captured"]);
    }
    let headers = |size: i32, step: i64| {
        let mut bytes = log.bytes.clone();
        for index in 0..40_000i64 {
            let mut fake = header.clone();
            fake[..8].copy_from_slice(&(1_000_000 + step * index).to_be_bytes());
            fake[8..12].copy_from_slice(&(61 * size - 12).to_be_bytes());
            bytes.extend_from_slice(&fake);
        }
        bytes
    };
    let small: Vec<u8> =
        (0..1u32 << 20).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 30) as u8).collect();
    // Sound batches whose offsets go down: behind each a search looks for higher ones.
    let mut falling = log.bytes.clone();
    for index in (0..10_000i64).rev() {
        let mut batch = log.batch(0).to_vec();
        batch[..8].copy_from_slice(&index.to_be_bytes());
        falling.extend_from_slice(&batch);
        falling.extend_from_slice(&[0xff; 150]);
    }
    let cases = [
        ("values of bytes 0 to 3", small),
        ("headers without batches", headers(2, 1)),
        ("headers of large batches", headers(20_000, 1)),
        ("headers that go back", headers(200, -1)),
        ("captured batches", inner.bytes.repeat(30)),
        ("offsets that go down", falling),
    ];
    for (what, bytes) in &cases {
        let disk = Disk { bytes, fails_at: u64::MAX, read: Cell::new(0) };
        let case = Case { level: Level::Crc, ..Case::full(&disk) };
        let expected = case.one_pass();
        let once = disk.read.replace(0);
        let size = 1 << 18;
        let cuts = every(size, bytes);
        let whole = merged(case.chunks(&cuts), &mut Random(size));
        let found = case.finish(whole).expect("reads");
        assert_same(&found, &expected, what);
        let times = (disk.read.replace(0) + once) / bytes.len() as u64;
        assert!(times < 16, "{what}: every byte was read {times} times");
    }
}

#[test]
fn a_chunk_is_small() {
    let mut random = Random(1);
    let mut log = Log::at(0);
    let mut sequences = [0i32; 100];
    for index in 0..4000 {
        let producer = random.below(100);
        let fields = BatchFields {
            producer_id: 1000 + producer as i64,
            producer_epoch: 0,
            base_sequence: sequences[producer],
            ..log.fields()
        };
        let value = [index as u8; 100];
        log.with(fields, &[value.as_slice(); 10]);
        sequences[producer] += 10;
    }
    let size = log.bytes.len() as u64;
    let cuts = [0, size / 2, size];
    let parts = Case::full(&log.bytes.as_slice()).chunks(&cuts);
    let sizes: Vec<usize> = parts.iter().map(|chunk| chunk.to_bytes().len()).collect();
    assert!(sizes.iter().all(|&size| size < 40_000), "{sizes:?}");
    let dull = Case::full(&Log::at(0).plain(&[b"a"]).bytes.as_slice()).chunks(&[0, 99]);
    assert!(dull[0].to_bytes().len() < 400, "{}", dull[0].to_bytes().len());
}

#[test]
fn chunks_that_do_not_belong_together_are_refused() {
    let mut log = Log::at(0);
    log.plain(&[b"a"]).plain(&[b"b"]).plain(&[b"c"]);
    let bytes = log.bytes.as_slice();
    let end = bytes.len() as u64;
    let case = Case::full(&bytes);
    let parts = case.chunks(&[0, 50, 100, end]);
    let [first, second, third] = parts.try_into().expect("three");
    let refused = first.clone().merge(third.clone()).expect_err("the second is missing");
    assert_eq!(refused, ChunkError::NotAdjacent { stop: 50, start: 100 });
    let other = Case { level: Level::Crc, ..case }.chunks(&[50, 100]).remove(0);
    assert_eq!(first.clone().merge(other), Err(ChunkError::Foreign));
    let other = Case { context: active(7), ..case }.chunks(&[50, 100]).remove(0);
    assert_eq!(first.merge(other), Err(ChunkError::Foreign));
    let rest = second.merge(third).expect("they are neighbours");
    let error = case.finish(rest.clone());
    assert!(matches!(error, Err(ScanError::NotAnchored)), "{error:?}");
    let error = Case { level: Level::Crc, ..case }.finish(rest);
    assert!(matches!(error, Err(ScanError::WrongLevel)), "{error:?}");
}

#[test]
fn a_whole_chunk_gives_its_scan_without_the_bytes() {
    let mut log = Log::at(0);
    for _ in 0..50 {
        log.plain(&[b"a"]);
    }
    let bytes = log.bytes.as_slice();
    let cuts = every(1000, bytes);
    let parts = Case::full(&bytes).chunks(&cuts);
    let right = parts[1].clone();
    let whole = merged(parts, &mut Random(1));
    let found = whole.into_scan(Indexes::NONE).expect("is whole");
    assert_same(&found, &Case::full(&bytes).one_pass(), "whole");
    assert_eq!(right.clone().into_scan(Indexes::NONE), Err(right));
}

#[test]
fn bytes_that_are_no_chunk_are_refused_or_at_least_harmless() {
    let mut counts = Counts::default();
    for seed in 0..40 {
        let mut random = Random(seed);
        let (log, context) = any_log(&mut random);
        let bytes = log.bytes.as_slice();
        let end = bytes.len() as u64;
        let case = Case { context, ..Case::full(&bytes) };
        let parts = case.chunks(&[0, end / 2, end]);
        let sound = parts[1].to_bytes();
        for cut in 0..sound.len().min(60) {
            assert_eq!(Chunk::from_bytes(&sound[..cut]), Err(ChunkError::Malformed));
        }
        assert_eq!(Chunk::from_bytes(&[&[9], &sound[1..]].concat()), Err(ChunkError::Malformed));
        for _ in 0..100 {
            let pair = [parts[0].to_bytes(), sound.clone()];
            let [left, right] = pair.map(|bytes| Chunk::from_bytes(&changed(bytes, &mut random)));
            let (Ok(left), Ok(right)) = (left, right) else { continue };
            counts.cuts += 1;
            let Ok(whole) = left.merge(right) else { continue };
            counts.joined += 1;
            if let Ok(scan) = case.finish(whole) {
                merge_partition(vec![scan], &PartitionContext::default());
            }
        }
    }
    assert!(counts.joined > 0, "{counts:?}");
}

#[test]
fn bytes_that_are_no_scan_are_refused_or_at_least_harmless() {
    let mut taken = 0;
    for seed in 0..40 {
        let mut random = Random(seed);
        let (log, context) = any_log(&mut random);
        let bytes = log.bytes.as_slice();
        let context = SegmentContext { is_compared: true, ..context };
        let scan = Case { context, ..Case::full(&bytes) }.one_pass();
        let sound = scan.to_bytes();
        for cut in 0..sound.len().min(60) {
            assert_eq!(SegmentScan::from_bytes(&sound[..cut]), Err(ChunkError::Malformed));
        }
        let other = [&[9], &sound[1..]].concat();
        assert_eq!(SegmentScan::from_bytes(&other), Err(ChunkError::Malformed));
        assert_eq!(Chunk::from_bytes(&sound), Err(ChunkError::Malformed));
        for _ in 0..100 {
            let found = SegmentScan::from_bytes(&changed(sound.clone(), &mut random));
            let Ok(found) = found else { continue };
            taken += 1;
            let both = merge_partition(vec![found, scan.clone()], &PartitionContext::default());
            Copy::of(&both, &PartitionContext::default(), None);
        }
    }
    assert!(taken > 0);
}

/// A log with all that a scan takes down, hurt in its middle and at its end.
fn small_log() -> (Log, Vec<u8>) {
    let mut log = Log::at(0);
    for number in 0..6 {
        log.produced(number * 2, number > 1, 2);
        log.plain(&[b"plain"]);
        log.next += i64::from(number == 4);
        log.epoch += i32::from(number == 3);
    }
    log.marker(NewControlRecord::Abort { coordinator_epoch: 3 });
    log.produced(12, true, 1).plain(&[b"plain"]).produced(20, true, 1).plain(&[b"plain"]);
    let mut bytes = log.bytes.clone();
    let (hurt, ..) = log.batches[5];
    bytes[hurt + 65] ^= 1;
    bytes.extend_from_slice(&log.batch(0)[..70]);
    (log, bytes)
}

/// The same bytes with one of their varints changed, each to each of some of the greatest numbers.
fn with_great_numbers(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    // The greatest and the least of 64 bits and of 32, and the greatest count that a scan may have.
    let numbers: [&[u8]; 5] = [
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0xfe, 0xff, 0xff, 0xff, 0x0f],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f],
    ];
    let begins = (1..bytes.len()).filter(|&place| place == 1 || bytes[place - 1] < 0x80);
    begins.flat_map(move |place| {
        let end = bytes[place..].iter().position(|&byte| byte < 0x80).map(|at| place + at + 1);
        let rest = &bytes[end.unwrap_or(bytes.len())..];
        numbers.into_iter().map(move |number| [&bytes[..place], number, rest].concat())
    })
}

#[test]
fn no_number_of_a_chunk_or_scan_is_so_great_that_it_does_harm() {
    let (log, bytes) = small_log();
    let indexes = any_indexes(&log, 0, &mut Random(1));
    let source = bytes.as_slice();
    let context = SegmentContext { is_compared: true, ..active(0) };
    let case = Case { context, indexes: &indexes, ..Case::full(&source) };
    let end = bytes.len() as u64;
    let judge = |scans: Vec<SegmentScan>| {
        let log = merge_partition(scans, &PartitionContext::default());
        log.transactions_left_out();
        Copy::of(&log, &PartitionContext::default(), None)
    };
    let mut taken = 0;

    let chunks = case.chunks(&[0, end / 2, end]);
    let [left, right] = chunks.as_slice() else { panic!("two ranges") };
    for left in with_great_numbers(&left.to_bytes()).map(|bytes| Chunk::from_bytes(&bytes)) {
        let Some(whole) = left.ok().and_then(|left| left.merge(right.clone()).ok()) else {
            continue;
        };
        taken += 1;
        case.finish(whole).into_iter().for_each(|scan| drop(judge(vec![scan])));
    }
    for right in with_great_numbers(&right.to_bytes()).map(|bytes| Chunk::from_bytes(&bytes)) {
        let Some(whole) = right.ok().and_then(|right| left.clone().merge(right).ok()) else {
            continue;
        };
        taken += 1;
        case.finish(whole).into_iter().for_each(|scan| drop(judge(vec![scan])));
    }

    let scan = case.one_pass();
    for found in with_great_numbers(&scan.to_bytes()).map(|bytes| SegmentScan::from_bytes(&bytes)) {
        let Ok(found) = found else { continue };
        taken += 1;
        judge(vec![found.clone(), scan.clone()]);
        judge(vec![scan.clone(), found]);
    }
    assert!(taken > 500, "{taken}");
}
