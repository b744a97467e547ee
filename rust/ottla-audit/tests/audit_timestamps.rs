//! The maximum timestamp of a header against those of its records.

use ottla_audit::{Finding, FindingKind, Scanner, SegmentContext, Severity};
use ottla_format::attributes::Compression;
use ottla_format::builder::{BatchFields, NewRecord, build_batch};
use ottla_format::check::Level;
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;

const TIME: i64 = 1_700_000_000_000;
const CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

fn batch(fields: BatchFields, timestamps: &[i64]) -> Vec<u8> {
    let records: Vec<NewRecord<'_>> = timestamps
        .iter()
        .map(|&timestamp| NewRecord { timestamp, value: Some(b"value"), ..NewRecord::default() })
        .collect();
    let mut codecs = Codecs::new(Limits::default());
    build_batch(&fields, &records, &mut codecs).expect("builds")
}

/// The batch with another base or maximum timestamp, and the checksum of that.
fn with_timestamp(mut batch: Vec<u8>, position: usize, timestamp: i64) -> Vec<u8> {
    batch[position..position + 8].copy_from_slice(&timestamp.to_be_bytes());
    let crc = ottla_kernels::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch
}

const BASE: usize = 27;
const MAXIMUM: usize = 35;

fn audit(level: Level, bytes: &[u8]) -> Vec<Finding> {
    let context = SegmentContext {
        base_offset: Some(0),
        now_ms: TIME + 86_400_000,
        ..SegmentContext::default()
    };
    let mut scanner = Scanner::new(level, Limits::default());
    let scan = scanner.scan(&bytes, context, &mut |_| true, None).expect("scans");
    scan.findings.kept().to_vec()
}

#[test]
fn a_maximum_later_than_any_record_is_suspect_whatever_the_codec() {
    for compression in CODECS {
        let fields = BatchFields { compression, ..BatchFields::default() };
        let right = batch(fields, &[TIME, TIME + 5, TIME + 3]);
        assert_eq!(audit(Level::Full, &right), [], "{compression:?}");
        let wrong = with_timestamp(right, MAXIMUM, TIME + 6);
        let found = audit(Level::Full, &wrong);
        assert_eq!(found.len(), 1, "{compression:?} {found:?}");
        assert_eq!(found[0].kind, FindingKind::TimestampSuspect);
        assert_eq!(found[0].severity, Severity::Warning);
        assert_eq!((found[0].first_offset, found[0].last_offset), (Some(0), Some(2)));
        assert_eq!((found[0].position, found[0].size), (Some(0), Some(wrong.len() as u64)));
        for level in [Level::Crc, Level::Decode] {
            assert_eq!(audit(level, &wrong), [], "records are not compared at {level:?}");
        }
    }
}

#[test]
fn the_time_of_the_append_is_the_time_of_no_record() {
    for compression in CODECS {
        let log_append_time_ms = Some(TIME + 9);
        let fields = BatchFields { compression, log_append_time_ms, ..BatchFields::default() };
        assert_eq!(audit(Level::Full, &batch(fields, &[TIME, TIME + 5])), [], "{compression:?}");
    }
}

#[test]
fn a_suspect_timestamp_of_one_record_in_the_middle_is_found_whatever_the_codec() {
    let seconds = TIME / 1000;
    for compression in CODECS {
        let fields = BatchFields { compression, ..BatchFields::default() };
        for (times, suspect) in [
            ([TIME, -5000, TIME + 3], Some(-5000)),
            ([TIME, seconds, TIME + 3], Some(seconds)),
            ([TIME, TIME - 86_400_000, TIME + 3], None),
            // A record without a timestamp is not suspect, and does not hide one that is.
            ([TIME, -1, TIME + 3], None),
            ([-1, seconds, TIME], Some(seconds)),
            ([-1, TIME, TIME + 3], None),
        ] {
            // The builder takes no timestamp before 1970: the base is moved under the deltas.
            let moved = times.map(|time| time.saturating_add(10_000));
            let base = moved[0] - 10_000;
            let data = with_timestamp(batch(fields, &moved), BASE, base);
            let latest = times.into_iter().max().expect("three");
            let data = with_timestamp(data, MAXIMUM, latest);
            let found = audit(Level::Full, &data);
            let kinds: Vec<_> = found.iter().map(|finding| finding.kind).collect();
            let expected = suspect.map(|_| FindingKind::TimestampSuspect);
            assert_eq!(kinds, Vec::from_iter(expected), "{compression:?} {times:?} {found:?}");
            if let Some(suspect) = suspect {
                assert_eq!(found[0].found, suspect.to_string());
                assert_eq!((found[0].first_offset, found[0].last_offset), (Some(0), Some(2)));
            }
            for level in [Level::Crc, Level::Decode] {
                assert_eq!(audit(level, &data), [], "records are not looked at, at {level:?}");
            }
        }
    }
}

#[test]
fn batches_with_the_same_suspect_records_are_one_finding() {
    let fields = |base_offset| BatchFields { base_offset, ..BatchFields::default() };
    let odd = |at| batch(fields(at), &[TIME, TIME / 1000, TIME + 1]);
    let good = |at| batch(fields(at), &[TIME, TIME + 1, TIME + 1]);
    let log = [good(0), odd(3), odd(6), good(9), odd(12)].concat();
    let found = audit(Level::Full, &log);
    let offsets: Vec<_> = found.iter().map(|f| (f.first_offset, f.last_offset)).collect();
    assert_eq!(offsets, [(Some(3), Some(8)), (Some(12), Some(14))]);
}

#[test]
fn a_delete_horizon_is_no_timestamp_of_a_record() {
    for compression in CODECS {
        let horizon = Some(5);
        let fields = BatchFields { compression, delete_horizon_ms: horizon, ..Default::default() };
        let data = batch(fields, &[TIME, TIME + 1]);
        assert_eq!(audit(Level::Full, &data), [], "{compression:?}");
        let seconds = batch(fields, &[TIME, TIME / 1000]);
        assert_eq!(audit(Level::Full, &seconds).len(), 1, "{compression:?}");
    }
}

#[test]
fn no_maximum_is_below_no_timestamp() {
    for compression in CODECS {
        let fields = BatchFields { compression, ..BatchFields::default() };
        let early = with_timestamp(batch(fields, &[-1, -1]), BASE, -5000);
        let found = audit(Level::Full, &early);
        let told = found.iter().any(|finding| finding.message.text().contains("later than any"));
        assert!(!told, "{compression:?} {found:?}");
    }
}
