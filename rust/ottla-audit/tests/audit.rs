//! Logs damaged in known ways: what is said of each, that nothing else is said, and that the rest of
//! the log is still read.

mod logs;

use logs::{Log, NOW, Random, TIME, active, closed};
use ottla_audit::{
    Cause, Finding, FindingKind, PartitionContext, PartitionScan, ScanError, Scanner,
    SegmentContext, SegmentScan, Severity, merge_partition,
};
use ottla_format::attributes::Compression;
use ottla_format::builder::{NewControlRecord, NewRecord, build_batch};
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use ottla_log::source::{Source, WINDOW_BYTES};
use std::cell::Cell;
use std::io;

/// A source that counts what is read.
struct Counted<'a> {
    bytes: &'a [u8],
    read: Cell<u64>,
}

impl Source for Counted<'_> {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read_at(position, buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }
}

fn scan_at(level: Level, bytes: &[u8], context: SegmentContext) -> SegmentScan {
    let mut scanner = Scanner::new(level, Limits::default());
    scanner.scan(&bytes, context, &mut |_| true, None).expect("a buffer can be read")
}

fn scan(bytes: &[u8], context: SegmentContext) -> SegmentScan {
    scan_at(Level::Full, bytes, context)
}

/// Scans a single segment as the whole partition.
fn audit(bytes: &[u8], context: SegmentContext) -> PartitionScan {
    merge_partition(vec![scan(bytes, context)], &PartitionContext::default())
}

fn names(scan: &PartitionScan) -> Vec<&'static str> {
    scan.findings.iter().map(|placed| placed.finding.kind.name()).collect()
}

fn only(scan: &PartitionScan) -> &Finding {
    assert_eq!(scan.findings.len(), 1, "{:#?}", scan.findings);
    &scan.findings[0].finding
}

/// First offsets of the batches that are reported as sound.
fn sound_offsets(bytes: &[u8], context: SegmentContext) -> Vec<i64> {
    let mut offsets = Vec::new();
    let mut scanner = Scanner::new(Level::Full, Limits::default());
    let mut on_batch = |info: &ottla_format::batch::BatchInfo, is_valid: bool| {
        if is_valid {
            offsets.push(info.base_offset);
        }
    };
    scanner
        .scan(&bytes, context, &mut |_| true, Some(&mut on_batch))
        .expect("a buffer can be read");
    offsets
}

/// A log of every shape of batch a broker writes today.
fn sample() -> Log {
    let mut log = Log::at(100);
    log.plain(&[b"one", b"two", b"three"])
        .compressed(Compression::Gzip, &[b"gzip", b"gzip"])
        .produced(0, true, 2)
        .compressed(Compression::Zstd, &[&b"zstd"[..]; 20])
        .marker(NewControlRecord::Commit { coordinator_epoch: 3 })
        .compressed(Compression::Snappy, &[&b"snappy"[..]; 3])
        .compressed(Compression::Lz4, &[&b"lz4"[..]; 3])
        .plain(&[b"last"]);
    log
}

#[test]
fn a_sound_log_gives_no_finding_at_any_level() {
    let log = sample();
    for level in [Level::Crc, Level::Decode, Level::Full] {
        let scan = scan_at(level, &log.bytes, active(100));
        assert_eq!(scan.counters.batches, 8);
        assert_eq!(scan.counters.records, 35);
        assert_eq!(scan.counters.committed, 0, "the transaction began here, so the merge ends it");
        assert_eq!((scan.first_offset, scan.next_offset), (Some(100), Some(log.next)));
        let found = merge_partition(vec![scan], &PartitionContext::default());
        assert_eq!(found.findings, []);
        assert_eq!(found.counters.committed, 1);
        assert_eq!((found.log_start_offset, found.log_end_offset), (100, log.next));
        assert_eq!(found.last_stable_offset, log.next);
    }
}

#[test]
fn every_bit_flipped_in_a_batch_is_found_and_the_other_batches_are_read() {
    let log = sample();
    let all = sound_offsets(&log.bytes, active(100));
    for &(position, size, offset) in &log.batches {
        // The first eight bytes are the base offset, which the CRC does not cover; so are the leader
        // epoch and the magic, told apart by their names below.
        for byte in position + 8..position + size {
            if (12..16).contains(&(byte - position)) {
                continue;
            }
            for bit in 0..8 {
                let mut hurt = log.bytes.clone();
                hurt[byte] ^= 1 << bit;
                let found = audit(&hurt, active(100));
                let errors: Vec<&Finding> = found
                    .findings
                    .iter()
                    .map(|placed| &placed.finding)
                    .filter(|finding| finding.kind != FindingKind::OpenTransaction)
                    .collect();
                let place = format!("byte {} bit {bit}: {errors:#?}", byte - position);
                assert_eq!(errors.len(), 1, "{place}");
                let is_last = position + size == log.bytes.len();
                let expected = match byte - position {
                    8..12 => FindingKind::DamagedRange,
                    16 => FindingKind::MagicFault,
                    _ => FindingKind::CrcMismatch,
                };
                assert_eq!(errors[0].kind, expected, "{place}");
                assert_eq!(errors[0].severity, Severity::Error);
                assert_eq!(errors[0].position, Some(position as u64), "{place}");
                assert_eq!(errors[0].size, Some(size as u64), "{place}");
                if expected != FindingKind::MagicFault && !is_last {
                    let next = errors[0].last_offset.map(|last| last + 1);
                    assert_eq!(errors[0].first_offset, Some(offset), "{place}");
                    assert_eq!(errors[0].next_good_offset, next, "{place}");
                }
                let mut others = all.clone();
                if expected != FindingKind::MagicFault {
                    others.retain(|&known| known != offset);
                }
                assert_eq!(sound_offsets(&hurt, active(100)), others, "{place}");
            }
        }
    }
}

#[test]
fn every_bit_flipped_in_a_base_offset_between_two_batches_is_found() {
    let mut log = Log::at(0);
    log.plain(&[&b"a"[..]; 3]).plain(&[&b"b"[..]; 4]).plain(&[&b"c"[..]; 2]).plain(&[b"d"]);
    for index in [1, 2] {
        let (position, size, offset) = log.batches[index];
        for bit in 0..64 {
            let mut hurt = log.bytes.clone();
            hurt[position + 7 - bit / 8] ^= 1 << (bit % 8);
            let found = audit(&hurt, active(0));
            let finding = only(&found);
            assert_eq!(finding.kind, FindingKind::BaseOffsetWrong, "bit {bit}: {finding:?}");
            assert_eq!(finding.position, Some(position as u64));
            assert_eq!(finding.size, Some(size as u64));
            assert_eq!(finding.first_offset, Some(offset));
            assert_eq!(found.log_end_offset, log.next);
        }
    }
}

#[test]
fn a_leader_epoch_that_is_too_high_or_too_low_between_others_is_found() {
    let mut log = Log::at(0);
    log.epoch = 4;
    log.plain(&[b"a"]).plain(&[b"b"]).plain(&[b"c"]).plain(&[b"d"]);
    let (position, _, offset) = log.batches[2];
    for epoch in [3i32, 0, 5, 1 << 24] {
        let mut hurt = log.bytes.clone();
        hurt[position + 12..position + 16].copy_from_slice(&epoch.to_be_bytes());
        let found = audit(&hurt, active(0));
        let finding = only(&found);
        assert_eq!(finding.kind, FindingKind::LeaderEpochFault);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.first_offset, Some(offset), "{epoch}");
    }
}

#[test]
fn a_segment_cut_anywhere_in_its_last_batches_keeps_the_whole_ones() {
    let log = sample();
    let all = sound_offsets(&log.bytes, active(100));
    let from = log.batches[log.batches.len() - 3].0;
    for size in from..log.bytes.len() {
        let cut = &log.bytes[..size];
        let whole: Vec<&(usize, usize, i64)> =
            log.batches.iter().filter(|(position, bytes, _)| position + bytes <= size).collect();
        let end = whole.last().map_or(0, |(position, bytes, _)| position + bytes);
        assert_eq!(sound_offsets(cut, active(100)), all[..whole.len()]);
        let found = audit(cut, active(100));
        if end == size {
            assert_eq!(found.findings, []);
            continue;
        }
        let finding = only(&found);
        assert_eq!((finding.kind, finding.severity), (FindingKind::TruncatedTail, Severity::Info));
        assert_eq!(finding.position, Some(end as u64));
        assert_eq!(finding.size, Some((size - end) as u64));
        let found = audit(cut, SegmentContext { stopped_cleanly: true, ..active(100) });
        assert_eq!(only(&found).severity, Severity::Warning);
        let found = audit(cut, closed(100, log.next));
        let finding = only(&found);
        assert_eq!((finding.kind, finding.severity), (FindingKind::TruncatedTail, Severity::Error));
    }
}

/// A long log of small and large batches; some values hold whole batches of another log.
fn long(random: &mut Random, nests: bool) -> Log {
    let mut inner = Log::at(1000);
    inner.plain(&[&b"captured"[..]; 3]).plain(&[b"captured too"]).plain(&[b"and this"]);
    let mut log = Log::at(0);
    for index in 0..60 {
        let size = [20, 200, 2000][random.below(3)];
        let value = random.bytes(size);
        let nested = &inner.bytes;
        let value = if nests && index % 4 == 0 { nested.as_slice() } else { &value };
        match random.below(4) {
            0 => log.compressed(Compression::Lz4, &[value, b"x"]),
            _ => log.plain(&[value; 2][..=random.below(2)]),
        };
    }
    log
}

#[test]
fn bytes_deleted_repeated_zeroed_or_inserted_leave_the_other_batches_readable() {
    for seed in 0..400 {
        let mut random = Random(seed);
        let log = long(&mut random, seed % 2 == 0);
        let size = 1 + random.below(8192);
        let start = random.below(log.bytes.len() - size);
        let end = start + size;
        let mut hurt = log.bytes.clone();
        // The bytes of the sound log that are no more as they were.
        let (what, touched) = match random.below(4) {
            0 => {
                hurt.drain(start..end);
                ("delete", start..end)
            }
            1 => {
                let repeated = hurt[start..end].to_vec();
                hurt.splice(end..end, repeated);
                ("repeat", end..end)
            }
            2 => {
                hurt[start..end].fill(0);
                ("zero", start..end)
            }
            _ => {
                let noise = random.bytes(size);
                hurt.splice(start..start, noise);
                ("insert", start..start)
            }
        };
        let is_touched = |&(position, bytes, _): &(usize, usize, i64)| {
            let end = position + bytes;
            if touched.is_empty() {
                position < touched.start && touched.start < end
            } else {
                position < touched.end && touched.start < end
            }
        };
        let untouched: Vec<i64> =
            log.batches.iter().filter(|batch| !is_touched(batch)).map(|batch| batch.2).collect();
        let sound = sound_offsets(&hurt, active(0));
        for offset in &untouched {
            assert!(sound.contains(offset), "seed {seed}: {what} {size} at {start}, lost {offset}");
        }
        let source = Counted { bytes: &hurt, read: Cell::new(0) };
        let mut scanner = Scanner::new(Level::Full, Limits::default());
        let found = scanner.scan(&source, active(0), &mut |_| true, None).expect("reads");
        let bound = 4 * hurt.len() as u64 + 4 * WINDOW_BYTES as u64;
        assert!(source.read.get() < bound, "seed {seed}: {} bytes read", source.read.get());
        if untouched.len() < log.batches.len() {
            assert!(!found.findings.kept().is_empty(), "seed {seed}: {what} was not seen");
        }
    }
}

#[test]
fn bytes_made_to_look_like_batches_do_not_make_the_scan_slow() {
    // Every 61 bytes a header begins that obeys all rules and has a successor; only its CRC is wrong.
    let mut log = Log::at(0);
    log.plain(&[b"good"]);
    let header = log.batch(0)[..61].to_vec();
    let count = 12 * WINDOW_BYTES as i64 / 61;
    for size in [2i32, 200, 20_000] {
        let mut bytes = log.bytes.clone();
        for index in 0..count {
            let mut fake = header.clone();
            fake[..8].copy_from_slice(&(index + 1).to_be_bytes());
            fake[8..12].copy_from_slice(&(61 * size - 12).to_be_bytes());
            bytes.extend_from_slice(&fake);
        }
        let source = Counted { bytes: &bytes, read: Cell::new(0) };
        let mut scanner = Scanner::new(Level::Full, Limits::default());
        let scan = scanner.scan(&source, active(0), &mut |_| true, None).expect("reads");
        assert_eq!(scan.counters.batches, 1);
        let times = source.read.get() / bytes.len() as u64;
        assert!(times < 24, "batches of {size} headers: every byte was read {times} times");
    }
}

#[test]
fn a_value_that_holds_batches_is_not_taken_for_the_log() {
    let mut inner = Log::at(2);
    inner.plain(&[b"captured"]).plain(&[b"captured"]).plain(&[b"captured"]);
    let mut log = Log::at(0);
    log.plain(&[b"a"]).plain(&[&inner.bytes]).plain(&[b"b"]).plain(&[b"c"]);
    let (position, size, _) = log.batches[1];
    let mut hurt = log.bytes.clone();
    hurt[position + 8] = 0x80;
    let found = audit(&hurt, active(0));
    let finding = only(&found);
    assert_eq!(finding.kind, FindingKind::DamagedRange);
    assert_eq!((finding.position, finding.size), (Some(position as u64), Some(size as u64)));
    assert_eq!((finding.first_offset, finding.next_good_offset), (Some(1), Some(2)));
    assert_eq!(sound_offsets(&hurt, active(0)), [0, 2, 3]);
}

#[test]
fn a_torn_batch_whose_value_holds_batches_is_a_truncated_tail() {
    let mut inner = Log::at(5000);
    inner.plain(&[b"captured"]).plain(&[b"captured"]).plain(&[b"captured"]);
    let mut log = Log::at(0);
    log.plain(&[b"a"]).plain(&[&inner.bytes]);
    let found = audit(&log.bytes[..log.bytes.len() - 10], active(0));
    assert_eq!(names(&found), ["truncated-tail"]);
}

#[test]
fn a_batch_whose_last_sectors_were_not_written_is_told_by_the_bytes_that_were() {
    let mut log = Log::at(0);
    log.plain(&[b"a"]).plain(&[&[b'x'; 5000]]);
    let (position, size, _) = log.batches[1];
    let mut torn = log.bytes.clone();
    torn[1024..].fill(0);
    torn.resize(log.bytes.len() + 3000, 0);
    let found = audit(&torn, active(0));
    let finding = only(&found);
    assert_eq!(finding.kind, FindingKind::TruncatedTail);
    assert_eq!(finding.position, Some(position as u64));
    assert_eq!(finding.expected, format!("{size} bytes"));
    assert_eq!(finding.found, format!("{} bytes", 1024 - position));
    assert!(finding.message.text().contains("from position 1024 on"), "{}", finding.message);
}

#[test]
fn zeros_at_the_end_are_no_damage() {
    let log = sample();
    for size in [8, 11, 12, 17, 60, 61, 4096, 100_000, 3 << 20] {
        let mut bytes = log.bytes.clone();
        bytes.resize(log.bytes.len() + size, 0);
        let found = audit(&bytes, active(100));
        let finding = only(&found);
        assert_eq!((finding.kind, finding.severity), (FindingKind::ZeroTail, Severity::Info));
        assert_eq!(finding.position, Some(log.bytes.len() as u64));
        assert_eq!(found.log_end_offset, log.next);
        let found = audit(&bytes, closed(100, log.next));
        assert_eq!(only(&found).kind, FindingKind::ZeroTail);
    }
}

#[test]
fn noise_at_the_end_is_garbage() {
    let log = sample();
    let mut random = Random(1);
    for size in [1, 20, 61, 700, 5000] {
        let mut bytes = log.bytes.clone();
        bytes.push(0xff);
        bytes.extend(random.bytes(size - 1));
        let found = audit(&bytes, active(100));
        let finding = only(&found);
        // One byte may be the first of an offset, but none begins with 255.
        let kind = if size < 8 { FindingKind::TruncatedTail } else { FindingKind::GarbageTail };
        assert_eq!((finding.kind, finding.severity), (kind, Severity::Info), "{size}");
        assert_eq!(finding.size, Some(size as u64));
        let clean = SegmentContext { stopped_cleanly: true, ..active(100) };
        assert_eq!(only(&audit(&bytes, clean)).severity, Severity::Warning);
    }
}

#[test]
fn a_size_field_that_spans_the_next_batch_hides_nothing() {
    let mut log = Log::at(0);
    log.plain(&[b"a"]).plain(&[b"b"]).plain(&[b"c"]).plain(&[b"d"]);
    let (position, size, _) = log.batches[1];
    let (_, next_size, _) = log.batches[2];
    let mut hurt = log.bytes.clone();
    let spans = (size + next_size - 12) as i32;
    hurt[position + 8..position + 12].copy_from_slice(&spans.to_be_bytes());
    let found = audit(&hurt, active(0));
    let finding = only(&found);
    assert_eq!(finding.kind, FindingKind::DamagedRange);
    assert_eq!((finding.size, finding.next_good_offset), (Some(size as u64), Some(2)));
    assert_eq!(sound_offsets(&hurt, active(0)), [0, 2, 3]);
}

#[test]
fn batches_of_stale_bytes_inside_damage_are_not_taken() {
    let mut random = Random(3);
    let mut log = Log::at(0);
    let value = random.bytes(300);
    for _ in 0..30 {
        log.plain(&[&value]);
    }
    let mut hurt = log.bytes.clone();
    let stale = hurt[512..4608].to_vec();
    hurt[6144..6144 + 4096].copy_from_slice(&stale);
    let found = audit(&hurt, active(0));
    assert!(names(&found).iter().all(|name| ["crc-mismatch", "damaged-range"].contains(name)));
    let sound = sound_offsets(&hurt, active(0));
    let mut rising = sound.clone();
    rising.dedup();
    rising.sort_unstable();
    assert_eq!(sound, rising, "no offset comes twice");
}

#[test]
fn a_batch_stored_twice_is_an_offset_repeat_and_counts_once_for_its_producer() {
    let mut log = Log::at(0);
    log.produced(0, false, 2).produced(2, false, 2).produced(4, false, 1);
    let mut bytes = log.bytes.clone();
    let second = log.batch(1).to_vec();
    let place = log.batches[2].0;
    bytes.splice(place..place, second);
    let found = audit(&bytes, active(0));
    let finding = only(&found);
    assert_eq!(finding.kind, FindingKind::OffsetRepeat);
    assert_eq!((finding.first_offset, finding.last_offset), (Some(2), Some(3)));
    assert_eq!(finding.position, Some(place as u64));
}

#[test]
fn batches_taken_out_leave_a_gap_and_explain_the_missing_sequences() {
    let mut log = Log::at(0);
    log.produced(0, false, 2).produced(2, false, 2).produced(4, false, 1).plain(&[b"x"]);
    let mut bytes = log.bytes.clone();
    let (position, size, _) = log.batches[1];
    bytes.drain(position..position + size);
    let found = audit(&bytes, active(0));
    let finding = only(&found);
    assert_eq!((finding.kind, finding.severity), (FindingKind::OffsetGap, Severity::Warning));
    assert_eq!((finding.first_offset, finding.last_offset), (Some(2), Some(3)));
    assert_eq!(finding.next_good_offset, Some(4));
    assert_eq!(finding.cause, Some(Cause::Unexplained));
    assert_eq!(found.holes, 2);
}

#[test]
fn gaps_of_a_log_with_thin_batches_are_compaction() {
    let mut log = Log::at(0);
    log.plain(&[b"a"]);
    let records = [0, 3].map(|delta| NewRecord {
        timestamp: TIME,
        offset_delta: Some(delta),
        ..NewRecord::default()
    });
    let batch = build_batch(&log.fields(), &records, &mut log.codecs).expect("builds");
    log.raw(&batch, 4);
    log.next += 10;
    log.plain(&[b"b"]).plain(&[b"c"]);
    let found = audit(&log.bytes, active(0));
    let finding = only(&found);
    assert_eq!((finding.kind, finding.severity), (FindingKind::OffsetGap, Severity::Info));
    assert_eq!(finding.cause, Some(Cause::Compaction));
    assert_eq!(found.counters.thin_batches, 1);
}

#[test]
fn a_sequence_lost_and_a_sequence_stored_twice_are_found() {
    let mut log = Log::at(0);
    log.produced(0, false, 2).produced(5, false, 2).produced(5, false, 2);
    let found = audit(&log.bytes, active(0));
    assert_eq!(names(&found), ["sequence-gap", "sequence-repeat"]);
    let gap = &found.findings[0].finding;
    assert_eq!((gap.producer_id, gap.first_offset), (Some(9), Some(2)));
    assert_eq!((gap.expected.as_str(), gap.found.as_str()), ("2", "5"));
    let lawful = SegmentContext { is_consumer_offsets: true, ..active(0) };
    let context = PartitionContext { is_consumer_offsets: true, ..PartitionContext::default() };
    assert_eq!(merge_partition(vec![scan(&log.bytes, lawful)], &context).findings, []);
}

#[test]
fn a_transaction_without_a_marker_holds_the_last_stable_offset() {
    let mut log = Log::at(0);
    log.plain(&[b"a"]).produced(0, true, 2).plain(&[b"b"]);
    let found = audit(&log.bytes, active(0));
    let finding = only(&found);
    assert_eq!((finding.kind, finding.severity), (FindingKind::OpenTransaction, Severity::Info));
    assert_eq!((finding.first_offset, finding.producer_id), (Some(1), Some(9)));
    assert_eq!(found.last_stable_offset, 1);
    // Time goes on, and nobody ends it.
    let late = NewRecord { timestamp: TIME + 3_600_000, ..NewRecord::default() };
    let batch = build_batch(&log.fields(), &[late], &mut log.codecs).expect("builds");
    log.raw(&batch, 1);
    assert_eq!(only(&audit(&log.bytes, active(0))).severity, Severity::Warning);
    // An abort ends it.
    log.marker(NewControlRecord::Abort { coordinator_epoch: 0 });
    let found = audit(&log.bytes, active(0));
    assert_eq!(found.findings, []);
    assert_eq!((found.counters.aborted, found.ended.aborted.len()), (1, 1));
}

#[test]
fn plain_data_inside_a_transaction_and_an_old_coordinator_are_transaction_faults() {
    let mut log = Log::at(0);
    log.produced(0, true, 1)
        .produced(1, false, 1)
        .marker(NewControlRecord::Commit { coordinator_epoch: 5 })
        .produced(2, true, 1)
        .marker(NewControlRecord::Commit { coordinator_epoch: 4 });
    let found = audit(&log.bytes, active(0));
    assert_eq!(names(&found), ["transaction-fault", "transaction-fault"]);
    assert_eq!(found.findings[0].finding.severity, Severity::Error);
    assert_eq!(found.findings[0].finding.first_offset, Some(1));
    assert_eq!(found.findings[1].finding.severity, Severity::Warning);
    assert_eq!(found.findings[1].finding.first_offset, Some(4));
}

#[test]
fn timestamps_in_another_unit_or_the_future_or_before_1970_are_suspect() {
    for timestamp in [TIME / 1000, TIME * 1000, TIME * 1_000_000, NOW + 7_200_000, -5] {
        let mut log = Log::at(0);
        log.plain(&[b"a"]);
        let mut batch = log.batch(0).to_vec();
        batch[27..35].copy_from_slice(&timestamp.to_be_bytes());
        batch[35..43].copy_from_slice(&timestamp.to_be_bytes());
        let crc = ottla_kernels::crc32c(&batch[21..]);
        batch[17..21].copy_from_slice(&crc.to_be_bytes());
        batch[..8].copy_from_slice(&1i64.to_be_bytes());
        log.raw(&batch, 1).plain(&[b"c"]);
        let found = audit(&log.bytes, active(0));
        let finding = only(&found);
        assert_eq!(finding.kind, FindingKind::TimestampSuspect, "{timestamp}");
        assert_eq!(finding.first_offset, Some(1));
    }
}

#[test]
fn records_that_contradict_their_header_name_the_record() {
    let mut log = Log::at(0);
    log.plain(&[b"a", b"b"]).plain(&[b"c"]);
    // The offset delta of the second record: length, attributes and timestamp delta come before it.
    let mut hurt = log.bytes.clone();
    let record = 61 + (log.batch(0).len() - 61) / 2;
    hurt[record + 3] = 6;
    let size = log.batch(0).len();
    let crc = ottla_kernels::crc32c(&hurt[21..size]);
    hurt[17..21].copy_from_slice(&crc.to_be_bytes());
    let found = audit(&hurt, active(0));
    let finding = only(&found);
    assert_eq!((finding.kind, finding.record_index), (FindingKind::RecordFault, Some(1)));
    assert_eq!(scan_at(Level::Crc, &hurt, active(0)).findings.kept(), []);
}

#[test]
fn a_payload_its_codec_refuses_is_undecodable() {
    let mut log = Log::at(0);
    log.compressed(Compression::Gzip, &[b"a", b"b"]).plain(&[b"c"]);
    let size = log.batch(0).len();
    let mut hurt = log.bytes.clone();
    hurt[61] = 0;
    let crc = ottla_kernels::crc32c(&hurt[21..size]);
    hurt[17..21].copy_from_slice(&crc.to_be_bytes());
    let found = audit(&hurt, active(0));
    assert_eq!(only(&found).kind, FindingKind::Undecodable);
    assert_eq!(found.counters.batches, 2);
}

#[test]
fn legacy_formats_are_read_through_every_kind_of_damage() {
    for magic in [0, 1] {
        let mut log = Log::at(10);
        log.legacy(magic, Compression::None, &[b"a plain record"])
            .legacy(magic, Compression::Gzip, &[b"x", b"y", b"z"])
            .legacy(magic, Compression::None, &[b"another"])
            .legacy(magic, Compression::Lz4, &[b"1", b"2"])
            .legacy(magic, Compression::None, &[b"the end"]);
        assert_eq!(audit(&log.bytes, active(10)).findings, []);
        assert_eq!(sound_offsets(&log.bytes, active(10)), [10, 11, 14, 15, 17]);
        let (position, size, _) = log.batches[1];
        // A bit of the body, and of the size.
        for (byte, kind) in [(30, FindingKind::CrcMismatch), (11, FindingKind::DamagedRange)] {
            let mut hurt = log.bytes.clone();
            hurt[position + byte] ^= 4;
            let found = audit(&hurt, active(10));
            let finding = only(&found);
            assert_eq!(finding.kind, kind, "magic {magic}");
            assert_eq!(
                (finding.position, finding.size),
                (Some(position as u64), Some(size as u64))
            );
            assert_eq!((finding.first_offset, finding.last_offset), (Some(11), Some(13)));
            assert_eq!(finding.next_good_offset, Some(14));
            assert_eq!(sound_offsets(&hurt, active(10)), [10, 14, 15, 17]);
        }
        let cut = &log.bytes[..log.bytes.len() - 5];
        assert_eq!(names(&audit(cut, active(10))), ["truncated-tail"]);
    }
}

#[test]
fn a_log_that_changed_its_format_is_read_through() {
    let mut log = Log::at(0);
    log.legacy(0, Compression::None, &[b"zero"])
        .legacy(1, Compression::Gzip, &[b"one", b"one"])
        .plain(&[b"two"]);
    let found = audit(&log.bytes, active(0));
    assert_eq!(found.findings, []);
    assert_eq!(found.counters.magics, [1, 1, 1]);
}

#[test]
fn a_file_under_a_wrong_name_is_out_of_its_segment() {
    let mut log = Log::at(0);
    log.plain(&[b"a"]).plain(&[b"b"]).plain(&[b"c"]);
    let found = audit(&log.bytes, active(500));
    let finding = only(&found);
    assert_eq!(finding.kind, FindingKind::OutOfSegment);
    assert_eq!((finding.first_offset, finding.last_offset), (Some(0), Some(2)));
    assert_eq!(finding.size, Some(log.bytes.len() as u64));
}

fn partition(logs: &[(i64, &[u8])], context: &PartitionContext) -> PartitionScan {
    let scans = logs
        .iter()
        .enumerate()
        .map(|(index, &(base, bytes))| {
            let context = match logs.get(index + 1) {
                Some(&(next, _)) => closed(base, next),
                None => active(base),
            };
            scan(bytes, context)
        })
        .collect();
    merge_partition(scans, context)
}

/// Three files of one log: two batches each.
fn three() -> [Log; 3] {
    [0, 4, 8].map(|base| {
        let mut log = Log::at(base);
        log.produced(base as i32, false, 2).produced(base as i32 + 2, false, 2);
        log
    })
}

#[test]
fn a_partition_of_several_files_is_one_log() {
    let logs = three();
    let files: Vec<(i64, &[u8])> =
        [0, 4, 8].into_iter().zip(logs.iter().map(|log| &*log.bytes)).collect();
    let found = partition(&files, &PartitionContext::default());
    assert_eq!(found.findings, []);
    assert_eq!((found.log_start_offset, found.log_end_offset), (0, 12));
    assert_eq!(found.counters.records, 12);
    let producer = &found.producers[0];
    assert_eq!((producer.producer_id, producer.last_sequence, producer.last_offset), (9, 11, 11));
    assert_eq!(producer.last_offset_delta, 1);
}

#[test]
fn a_missing_file_is_a_missing_segment_and_explains_the_sequences() {
    let [first, _, third] = three();
    let files = [(0, &*first.bytes), (8, &*third.bytes)];
    let found = partition(&files, &PartitionContext::default());
    let finding = only(&found);
    assert_eq!((finding.kind, finding.severity), (FindingKind::MissingSegment, Severity::Warning));
    assert_eq!((finding.first_offset, finding.last_offset), (Some(4), Some(7)));
    assert_eq!((finding.next_good_offset, finding.cause), (Some(8), None));
    let context = PartitionContext { orphans: vec![4], ..PartitionContext::default() };
    assert_eq!(only(&partition(&files, &context)).cause, Some(Cause::MissingFile));
    let files = [(0, &*first.bytes), (4, &[]), (8, &*third.bytes)];
    assert_eq!(names(&partition(&files, &PartitionContext::default())), ["missing-segment"]);
}

#[test]
fn the_first_file_missing_is_retention() {
    let [_, second, third] = three();
    let files = [(4, &*second.bytes), (8, &*third.bytes)];
    let found = partition(&files, &PartitionContext::default());
    assert_eq!(found.findings, []);
    assert_eq!(found.log_start_offset, 4);
}

#[test]
fn a_closed_file_cut_inside_a_batch_loses_offsets_up_to_the_next_file() {
    let [first, second, third] = three();
    let cut = &second.bytes[..second.bytes.len() - 5];
    let files = [(0, &*first.bytes), (4, cut), (8, &*third.bytes)];
    let found = partition(&files, &PartitionContext::default());
    let finding = only(&found);
    assert_eq!((finding.kind, finding.severity), (FindingKind::TruncatedTail, Severity::Error));
    assert_eq!((finding.first_offset, finding.last_offset), (Some(6), Some(7)));
    assert_eq!(finding.next_good_offset, Some(8));
    assert_eq!(found.findings[0].segment, 1);
}

#[test]
fn a_file_stored_again_under_its_own_offsets_repeats_them() {
    let [first, second, third] = three();
    let inside = &first.bytes[first.batches[1].0..];
    let files = [(0, &*first.bytes), (2, inside), (4, &*second.bytes), (8, &*third.bytes)];
    let found = partition(&files, &PartitionContext::default());
    let finding = only(&found);
    assert_eq!(finding.kind, FindingKind::OffsetRepeat);
    assert_eq!((found.findings[0].segment, finding.first_offset), (1, Some(2)));
    assert_eq!(found.log_end_offset, 12);
}

#[test]
fn sequences_and_transactions_go_on_over_files() {
    let mut first = Log::at(0);
    first.produced(0, true, 2);
    let mut second = Log::at(2);
    second.produced(5, true, 1).marker(NewControlRecord::Commit { coordinator_epoch: 1 });
    let files = [(0, &*first.bytes), (2, &*second.bytes)];
    let found = partition(&files, &PartitionContext::default());
    let finding = only(&found);
    assert_eq!((finding.kind, finding.first_offset), (FindingKind::SequenceGap, Some(2)));
    assert_eq!(found.findings[0].segment, 1);
    assert_eq!((found.counters.committed, found.last_stable_offset), (1, 4));
}

#[test]
fn a_first_batch_missing_is_told_unless_records_were_deleted() {
    let mut log = Log::at(3);
    log.plain(&[b"a"]).plain(&[b"b"]);
    let found = audit(&log.bytes, active(0));
    let finding = only(&found);
    assert_eq!((finding.kind, finding.severity), (FindingKind::OffsetGap, Severity::Info));
    let context = PartitionContext { log_start_offset: Some(3), ..PartitionContext::default() };
    assert_eq!(merge_partition(vec![scan(&log.bytes, active(0))], &context).findings, []);
}

#[test]
fn a_batch_above_the_bound_is_stepped_over_and_said_so() {
    let mut log = Log::at(0);
    let large = vec![7; 2 * WINDOW_BYTES];
    log.plain(&[b"a"]).plain(&[&large]).plain(&[b"b"]);
    let limits = Limits { batch_bytes: WINDOW_BYTES as u64, ..Limits::default() };
    let mut scanner = Scanner::new(Level::Full, limits);
    let bytes = log.bytes.as_slice();
    let scan = scanner.scan(&bytes, active(0), &mut |_| true, None).expect("reads");
    let found = merge_partition(vec![scan], &PartitionContext::default());
    let finding = only(&found);
    assert_eq!(finding.kind, FindingKind::LimitExceeded);
    assert_eq!((finding.first_offset, found.log_end_offset), (Some(1), 3));
}

#[test]
fn a_batch_larger_than_the_window_is_read_whole() {
    let mut log = Log::at(0);
    let large = vec![7; 3 * WINDOW_BYTES];
    for _ in 0..3 {
        log.plain(&[b"a"]).plain(&[&large]);
    }
    let found = audit(&log.bytes, active(0));
    assert_eq!(found.findings, []);
    assert_eq!(found.counters.batches, 6);
}

#[test]
fn findings_of_one_kind_are_bounded_and_the_rest_is_counted() {
    let mut log = Log::at(0);
    for _ in 0..1500 {
        log.plain(&[b"a"]);
        log.next += 1;
    }
    let scan = scan(&log.bytes, active(0));
    assert_eq!(scan.findings.kept().len(), 1000);
    assert_eq!(scan.findings.suppressed(), [(FindingKind::OffsetGap, 499)]);
    let found = merge_partition(vec![scan], &PartitionContext::default());
    assert_eq!(found.suppressed, [(0, FindingKind::OffsetGap, 499)]);
}

/// A source that says more than it has, or fails on the way.
struct Broken {
    bytes: Vec<u8>,
    claimed: u64,
    fails: bool,
}

impl Source for Broken {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if position >= self.bytes.len() as u64 && self.fails {
            return Err(io::Error::other("the disk gave up"));
        }
        // In small pieces, as a network may.
        let size = buffer.len().min(1000);
        self.bytes.as_slice().read_at(position, &mut buffer[..size])
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.claimed)
    }
}

#[test]
fn a_file_truncated_while_it_is_read_ends_where_it_ends() {
    let log = sample();
    let cut = log.batches[5].0 + 20;
    let source = Broken { bytes: log.bytes[..cut].to_vec(), claimed: 1 << 30, fails: false };
    let mut scanner = Scanner::new(Level::Full, Limits::default());
    let scan = scanner.scan(&source, active(100), &mut |_| true, None).expect("reads");
    assert_eq!(scan.counters.batches, 5);
    assert_eq!(scan.counters.bytes, cut as u64);
    let found = merge_partition(vec![scan], &PartitionContext::default());
    assert_eq!(names(&found), ["truncated-tail"]);
}

#[test]
fn a_disk_that_fails_gives_what_was_read_before() {
    let log = sample();
    // Between two batches, inside a header, inside a body.
    for extra in [0, 30, 70] {
        let end = log.batches[5].0 + extra;
        let source = Broken { bytes: log.bytes[..end].to_vec(), claimed: 1 << 30, fails: true };
        let mut scanner = Scanner::new(Level::Full, Limits::default());
        let context = closed(100, log.next);
        let scan = scanner.scan(&source, context, &mut |_| true, None).expect("reads");
        assert_eq!(scan.counters.batches, 5);
        let found = merge_partition(vec![scan], &PartitionContext::default());
        let finding = only(&found);
        assert_eq!((finding.kind, finding.position), (FindingKind::Unreadable, Some(end as u64)));
    }
}

#[test]
fn what_a_disk_did_not_give_is_no_gap_before_the_next_file() {
    let [first, second, third] = three();
    let source =
        Broken { bytes: second.bytes[..second.batches[1].0].to_vec(), claimed: 900, fails: true };
    let mut scanner = Scanner::new(Level::Full, Limits::default());
    let middle = scanner.scan(&source, closed(4, 8), &mut |_| true, None).expect("reads");
    let scans = vec![scan(&first.bytes, closed(0, 4)), middle, scan(&third.bytes, active(8))];
    assert_eq!(names(&merge_partition(scans, &PartitionContext::default())), ["unreadable"]);
}

#[test]
fn progress_tells_every_byte_and_can_stop_the_scan() {
    let log = sample();
    let bytes = log.bytes.as_slice();
    let mut scanner = Scanner::new(Level::Full, Limits::default());
    let mut read = 0;
    let mut count = |bytes: u64| {
        read += bytes;
        true
    };
    scanner.scan(&bytes, active(100), &mut count, None).expect("reads");
    assert_eq!(read, bytes.len() as u64);
    let error = scanner.scan(&bytes, active(100), &mut |_| false, None).expect_err("was stopped");
    assert!(matches!(error, ScanError::Stopped), "{error:?}");
}

#[test]
fn an_empty_file_has_nothing_to_say() {
    let found = audit(&[], active(7));
    assert_eq!(found.findings, []);
    assert_eq!(found.log_end_offset, 7);
}

#[test]
fn no_bytes_make_the_scan_panic() {
    let mut random = Random(99);
    let log = sample();
    for _ in 0..2000 {
        let mut bytes = log.bytes.clone();
        for _ in 0..=random.below(6) {
            let place = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[place] = random.next() as u8,
                1 => bytes.truncate(place + 1),
                // Extreme values where fields are.
                _ => {
                    let value = [0, 0x7f, 0x80, 0xff][random.below(4)];
                    let end = bytes.len().min(place + 8);
                    bytes[place..end].fill(value);
                }
            }
        }
        let context =
            SegmentContext { base_offset: (random.below(2) == 0).then_some(100), ..active(0) };
        for level in [Level::Crc, Level::Decode, Level::Full] {
            merge_partition(vec![scan_at(level, &bytes, context)], &PartitionContext::default());
        }
    }
}

#[test]
fn the_catalogue_has_one_name_a_kind_and_a_text_for_each_field() {
    let mut names: Vec<&str> = FindingKind::ALL.iter().map(|kind| kind.name()).collect();
    for kind in FindingKind::ALL {
        let row = kind.row();
        assert_eq!(FindingKind::from_name(row.name), Some(*kind));
        assert!(row.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
        for text in [row.meaning, row.causes, row.action] {
            assert!(text.ends_with('.'), "{text}");
        }
        assert!(!row.kafka.is_empty());
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), FindingKind::ALL.len());
}

#[test]
fn a_listing_ends_with_the_window_that_holds_enough() {
    let value = vec![b'v'; 1000];
    for compression in [Compression::None, Compression::Lz4] {
        let mut log = Log::at(0);
        while log.bytes.len() < 3 * WINDOW_BYTES {
            let values: Vec<Vec<u8>> = (0..100).map(|_| Random(1).bytes(1000)).collect();
            let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            log.compressed(compression, &values).plain(&[&value]);
        }
        let source = Counted { bytes: &log.bytes, read: Cell::new(0) };
        let mut scanner = Scanner::new(Level::Crc, Limits::default());
        let (mut listed, mut position, mut calls) = (Vec::new(), Some(0), 0u64);
        while let Some(from) = position {
            let listing = scanner.list(&source, active(0), from, 1).expect("a buffer can be read");
            listed.extend(listing.batches.iter().map(|(info, _)| info.position as usize));
            position = listing.next_position;
            calls += 1;
        }
        let positions: Vec<usize> = log.batches.iter().map(|(position, _, _)| *position).collect();
        assert_eq!(listed, positions);
        assert!(calls >= 3, "{calls}");
        assert!(source.read.get() <= (calls + 1) * WINDOW_BYTES as u64, "{calls} calls");
    }
}
