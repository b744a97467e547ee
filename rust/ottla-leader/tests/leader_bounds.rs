//! What a verdict takes of memory and time, at its worst: records of seven bytes, each with something to say.

use ottla_format::attributes::Compression;
use ottla_format::compression::{Codecs, Reading};
use ottla_format::error::ErrorKind;
use ottla_format::error_code::ErrorCode;
use ottla_format::header::CRC_START;
use ottla_format::limits::Limits;
use ottla_leader::{Profile, Reason, Request, TopicConfig, Validator, validate};
use peak_alloc::PeakAlloc;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The allocator counts for the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> impl Drop {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const BOUND: usize = 1 << 17;
const TIME: i64 = 1000;
/// Attributes, timestamp delta, offset delta 0, no key, no value, no headers.
const RECORD: [u8; 7] = [12, 0, 0, 0, 1, 1, 0];
/// The same with −1 headers.
const BROKEN_RECORD: [u8; 7] = [12, 0, 0, 0, 1, 1, 1];
const COUNT: usize = BOUND / RECORD.len();

/// As in the engine's own bounds, where a million may be blamed in 64 MiB.
fn limits() -> Limits {
    let (batch_bytes, decompressed_bytes) = (BOUND as u64, BOUND as u64);
    Limits { batch_bytes, decompressed_bytes, culprits: BOUND as u32 >> 6, ..Limits::default() }
}

/// A batch of records that are all the same.
fn batch(codec: Compression, record: [u8; 7], count: usize) -> Vec<u8> {
    let records = record.repeat(count);
    let mut codecs = Codecs::new(Limits::default());
    let payload = codecs.compress(codec, None, 2, &records).expect("compresses");
    let mut batch = vec![0; 61];
    batch.extend_from_slice(&payload);
    let size = batch.len() as i32 - 12;
    batch[8..12].copy_from_slice(&size.to_be_bytes());
    batch[16] = 2;
    batch[22] = codec as u8;
    batch[23..27].copy_from_slice(&(count as i32 - 1).to_be_bytes());
    batch[27..35].copy_from_slice(&TIME.to_be_bytes());
    batch[35..43].copy_from_slice(&TIME.to_be_bytes());
    batch[43..57].fill(0xff);
    batch[57..61].copy_from_slice(&(count as i32).to_be_bytes());
    let crc = ottla_kernels::crc32c(&batch[CRC_START..]);
    batch[17..CRC_START].copy_from_slice(&crc.to_be_bytes());
    batch
}

#[test]
fn a_verdict_takes_at_most_four_times_the_bound_whatever_is_to_be_written_or_said() {
    let _guard = alone();
    let mut outcomes = Vec::new();
    for codec in Compression::ALL {
        let batch = batch(codec, RECORD, COUNT);
        for target in ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"] {
            for (policy, format) in [("delete", "3.0"), ("compact", "3.0"), ("delete", "0.9.0")] {
                let mut config = TopicConfig::default();
                config.set("compression.type", target).expect("a codec");
                config.set("cleanup.policy", policy).expect("a policy");
                config.set("message.format.version", format).expect("a version");
                for profile in [Profile::Strict, Profile::Kafka] {
                    let mut validator = Validator::new(limits(), ottla_kernels::Level::best());
                    let request =
                        Request { now_ms: TIME, api_version: None, profile, ..Request::default() };
                    let before = ALLOCATOR.current_usage();
                    ALLOCATOR.reset_peak_usage();
                    let verdict = validate(&batch, &config, &request, &mut validator);
                    let taken = ALLOCATOR.peak_usage() - before;
                    let name = format!("{codec:?} {target} {policy} {format} {profile:?}");
                    assert!(taken <= 4 * BOUND, "{name}: {taken} bytes");
                    outcomes.push((verdict.error(), verdict.record_errors().len()));
                }
            }
        }
    }
    let most = limits().culprits as usize;
    for expected in [
        (ErrorCode::None, 0),
        (ErrorCode::UnknownServerError, 0),
        (ErrorCode::MessageTooLarge, 0),
        (ErrorCode::InvalidRecord, most),
    ] {
        assert!(outcomes.contains(&expected), "{expected:?} is one of the ways tried");
    }
}

#[test]
fn a_refusal_counts_every_culprit_and_names_as_many_as_the_bound_allows() {
    let _guard = alone();
    let mut validator = Validator::new(limits(), ottla_kernels::Level::best());
    let batch = batch(Compression::None, RECORD, COUNT);
    let request = Request { now_ms: TIME, ..Request::default() };
    let verdict = validate(&batch, &TopicConfig::default(), &request, &mut validator);
    let refusal = verdict.outcome.expect_err("offset deltas that are all 0");
    assert_eq!(refusal.reason, Reason::Records { count: COUNT - 1 });
    assert_eq!(refusal.record_errors.len(), limits().culprits as usize);
    assert_eq!(refusal.record_errors[0].batch_index, 1);
}

/// Returns the seconds that a verdict takes which names `count` records.
fn seconds(batch: &[u8], count: usize) -> f64 {
    let mut validator = Validator::default();
    let request = Request { now_ms: TIME, ..Request::default() };
    let start = Instant::now();
    let verdict = validate(batch, &TopicConfig::default(), &request, &mut validator);
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(verdict.record_errors().len(), count, "{:?}", verdict.outcome.err());
    seconds
}

/// The lengths of records must be followed to the end to know that one can be stepped over; to do
/// so again for each takes thousands of times as long here.
#[test]
fn a_batch_whose_every_record_is_broken_takes_no_longer_than_another() {
    let _guard = alone();
    let count = 1 << 17;
    for codec in [Compression::None, Compression::Zstd] {
        // Of the other, every offset delta but the first is wrong.
        let (broken, other) = (batch(codec, BROKEN_RECORD, count), batch(codec, RECORD, count));
        let (mut fastest, mut base) = (f64::MAX, f64::MAX);
        for _ in 0..3 {
            fastest = fastest.min(seconds(&broken, count));
            base = base.min(seconds(&other, count - 1));
        }
        assert!(fastest < 10.0 * base, "{codec:?}: {fastest} s, the other {base} s");
    }
}

#[test]
fn a_bomb_is_refused_by_a_verdict_as_soon_as_the_bound_is_inflated() {
    let _guard = alone();
    let bound = 8 << 20;
    let limits = Limits { decompressed_bytes: bound as u64, ..Limits::default() };
    let config = TopicConfig::default();
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let bomb = batch(codec, RECORD, bound / 7 + 1000);
        let honest = RECORD.repeat(bound / 7);
        let mut codecs = Codecs::new(limits);
        let honest = codecs.compress(codec, None, 2, &honest).expect("compresses");
        let mut validator = Validator::new(limits, ottla_kernels::Level::best());
        let request = Request { now_ms: TIME, ..Request::default() };
        let (mut refused, mut inflated) = (f64::MAX, f64::MAX);
        // In turn, and at the best of the rounds; more of them where the machine is busy.
        for round in 0..20 {
            let start = Instant::now();
            let verdict = validate(&bomb, &config, &request, &mut validator);
            refused = refused.min(start.elapsed().as_secs_f64());
            let refusal = verdict.outcome.expect_err("it is too large");
            let is_bomb =
                matches!(refusal.reason, Reason::Format(ErrorKind::DecompressedTooLarge { .. }));
            assert!(is_bomb, "{codec:?}: {:?}", refusal.reason);
            let start = Instant::now();
            let inflate = codecs.decompress(codec, Reading::Bytes { magic: 2 }, &honest);
            assert_eq!(inflate.map(<[u8]>::len), Ok(bound / 7 * 7));
            inflated = inflated.min(start.elapsed().as_secs_f64());
            if round >= 2 && refused <= 1.3 * inflated {
                break;
            }
        }
        // Inflating it twice would be twice as long.
        assert!(refused <= 1.3 * inflated, "{codec:?}: {refused} s, inflating {inflated} s");
    }
}
