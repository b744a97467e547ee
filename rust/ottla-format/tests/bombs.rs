//! Payloads that would inflate past a bound are refused fast, before memory is taken.

use std::alloc::System;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ottla_format::attributes::Compression::{self, Gzip, Lz4, Snappy, Zstd};
use ottla_format::compression::{Codecs, Reading};
use ottla_format::error::ErrorKind;
use ottla_format::limits::{KEPT_ARENA_BYTES, Limits};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The allocator counts for the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

const MIB: usize = 1 << 20;
const BYTES: Reading = Reading::Bytes { magic: 2 };

/// Zeros at a thousand to one, or what the codec can do.
fn zeros(codec: Compression, length: usize) -> Vec<u8> {
    let zeros = vec![0; length];
    Codecs::new(Limits::default()).compress(codec, None, 2, &zeros).expect("compresses")
}

/// Returns what a new set of codecs makes of a payload, and the seconds that it takes.
fn timed(codec: Compression, payload: &[u8], limits: Limits) -> (Result<usize, ErrorKind>, f64) {
    let mut codecs = Codecs::new(limits);
    let start = Instant::now();
    let outcome = codecs.decompress(codec, BYTES, payload).map(<[u8]>::len);
    (outcome, start.elapsed().as_secs_f64())
}

/// Asserts that `payload` is refused for its size, in the memory promised and in no more time than
/// an honest payload takes that inflates to the bound, or to a MiB: less is too short to time.
fn assert_refused(name: &str, codec: Compression, payload: &[u8], limits: Limits) {
    let limit = limits.decompressed(payload.len());
    let honest_size = (limit as usize).max(MIB);
    let honest = zeros(codec, honest_size);
    let honest_limits = Limits {
        decompressed_bytes: honest_size as u64,
        decompressed_ratio: u64::MAX,
        ..Limits::default()
    };
    let (mut fastest, mut base) = (f64::MAX, f64::MAX);
    // In turn, and at the best of the rounds; more of them where the machine is busy.
    for round in 0..20 {
        let region = Region::new(ALLOCATOR);
        let (outcome, seconds) = timed(codec, payload, limits);
        // All that is ever asked for, which is at least what is held at any time.
        let taken = region.change().bytes_allocated as u64;
        assert_eq!(outcome, Err(ErrorKind::DecompressedTooLarge { limit }), "{name}");
        assert!(taken <= 4 * limit, "{name}: {taken} bytes for a bound of {limit}");
        fastest = fastest.min(seconds);
        let (outcome, seconds) = timed(codec, &honest, honest_limits);
        assert_eq!(outcome, Ok(honest_size), "{name}: the honest payload");
        base = base.min(seconds);
        if round >= 2 && fastest < 2.0 * base {
            break;
        }
    }
    assert!(fastest < 2.0 * base, "{name}: {fastest} s, an honest payload {base} s");
}

fn alone() -> impl Drop {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A frame of many full blocks, each declared at the largest size and filled to it.
fn lz4_of_large_blocks(blocks: usize) -> Vec<u8> {
    let body = lz4::block::compress(&vec![0; 4 * MIB], None, false).expect("compresses");
    let mut frame = vec![0x04, 0x22, 0x4d, 0x18, 0x60, 0x70];
    frame.push((twox_hash::XxHash32::oneshot(0, &frame[4..]) >> 8) as u8);
    for _ in 0..blocks {
        frame.extend_from_slice(&(body.len() as u32).to_le_bytes());
        frame.extend_from_slice(&body);
    }
    frame.extend_from_slice(&[0; 4]);
    frame
}

/// Kafka's framing around raw blocks of zeros.
fn snappy_of_large_blocks(blocks: usize) -> Vec<u8> {
    let body = snap::raw::Encoder::new().compress_vec(&vec![0; MIB]).expect("compresses");
    let mut payload = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
    for _ in 0..blocks {
        payload.extend_from_slice(&(body.len() as u32).to_be_bytes());
        payload.extend_from_slice(&body);
    }
    payload
}

#[test]
fn a_bomb_is_refused_at_the_default_bound_as_soon_as_an_honest_payload_is_inflated() {
    let _guard = alone();
    let limits = Limits::default();
    for (name, codec, payload) in [
        ("gzip", Gzip, zeros(Gzip, 65 * MIB)),
        ("zstd", Zstd, zeros(Zstd, 65 * MIB)),
        ("lz4", Lz4, zeros(Lz4, 65 * MIB)),
        ("lz4 of 4 MiB blocks", Lz4, lz4_of_large_blocks(17)),
        ("snappy", Snappy, zeros(Snappy, 65 * MIB)),
        ("snappy of 1 MiB blocks", Snappy, snappy_of_large_blocks(65)),
    ] {
        assert_refused(name, codec, &payload, limits);
    }
}

#[test]
fn a_bomb_is_refused_at_a_small_bound_with_as_little_memory() {
    let _guard = alone();
    let limits = Limits { decompressed_bytes: 64 << 10, ..Limits::default() };
    for (name, codec, payload) in [
        ("gzip", Gzip, zeros(Gzip, 65 * MIB)),
        ("zstd", Zstd, zeros(Zstd, 65 * MIB)),
        ("lz4", Lz4, zeros(Lz4, 65 * MIB)),
        ("lz4 of 4 MiB blocks", Lz4, lz4_of_large_blocks(17)),
        ("snappy of 1 MiB blocks", Snappy, snappy_of_large_blocks(65)),
    ] {
        assert_refused(name, codec, &payload, limits);
    }
}

#[test]
fn the_ratio_bounds_small_payloads_of_any_size_class() {
    let _guard = alone();
    // Runs of one byte: zstd needs four bytes for 128 KiB of them.
    let frame_of_runs = |blocks: usize| {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
        for block in 1..=blocks {
            let last = u32::from(block == blocks);
            frame.extend_from_slice(&((128u32 << 10) << 3 | 1 << 1 | last).to_le_bytes()[..3]);
            frame.push(0);
        }
        frame
    };
    // 16 MiB are always allowed, however small the payload.
    let mut codecs = Codecs::new(Limits::default());
    assert_eq!(codecs.decompress(Zstd, BYTES, &frame_of_runs(128)).map(<[u8]>::len), Ok(16 * MIB));
    assert_refused("runs", Zstd, &frame_of_runs(129), Limits::default());
    assert_refused("many runs", Zstd, &frame_of_runs(4000), Limits::default());
}

#[test]
fn a_size_that_lies_takes_no_memory() {
    let _guard = alone();
    let gzip = {
        let mut payload = zeros(Gzip, 100);
        let at = payload.len() - 4;
        payload[at..].fill(0xff);
        payload
    };
    // A single segment of 15 MiB that holds an empty block.
    let zstd =
        [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0][..], &(15u32 << 20).to_le_bytes(), &[1, 0, 0]].concat();
    let snappy = [&b"\xff\xff\xff\xff\x0f"[..], &[0; 100]].concat();
    let lz4 = {
        // Blocks of 4 MiB are announced, and one of a single literal comes.
        let mut frame = lz4_of_large_blocks(0);
        frame.truncate(7);
        frame.extend_from_slice(&[2, 0, 0, 0, 0x10, b'x', 0, 0, 0, 0]);
        frame
    };
    for (codec, payload, is_read) in
        [(Gzip, gzip, false), (Zstd, zstd, false), (Snappy, snappy, false), (Lz4, lz4, true)]
    {
        let mut codecs = Codecs::new(Limits::default());
        let region = Region::new(ALLOCATOR);
        let outcome = codecs.decompress(codec, BYTES, &payload).map(<[u8]>::len);
        let taken = region.change().bytes_allocated;
        assert_eq!(outcome.is_ok(), is_read, "{}: {outcome:?}", codec.name());
        assert!(taken <= 128 << 10, "{}: {taken} bytes", codec.name());
    }
}

/// Lines of JSON, which shrink as records do.
fn ordinary(codec: Compression, length: usize) -> Vec<u8> {
    let mut lines = Vec::with_capacity(length + 64);
    let mut number: u64 = 0;
    while lines.len() < length {
        let (user, amount) = (number.wrapping_mul(number) % 1_000_003, number % 977);
        let line =
            format!("{{\"id\":{},\"user\":\"u{user}\",\"amount\":{amount}}}\n", number * 7919);
        lines.extend_from_slice(line.as_bytes());
        number += 1;
    }
    lines.truncate(length);
    Codecs::new(Limits::default()).compress(codec, None, 2, &lines).expect("compresses")
}

/// Bombs of a payload or of several blocks, by their codec.
fn bombs() -> [(&'static str, Compression, Vec<u8>); 5] {
    [
        ("gzip", Gzip, zeros(Gzip, 65 * MIB)),
        ("zstd", Zstd, zeros(Zstd, 65 * MIB)),
        ("lz4", Lz4, zeros(Lz4, 65 * MIB)),
        ("lz4 of 4 MiB blocks", Lz4, lz4_of_large_blocks(17)),
        ("snappy of 1 MiB blocks", Snappy, snappy_of_large_blocks(65)),
    ]
}

/// Bombs that are left to the streams that do as Kafka's own.
fn bombs_that_pause() -> [(&'static str, Compression, Vec<u8>); 2] {
    // A block of one token, which inflates to nothing.
    let mut lz4 = lz4_of_large_blocks(17);
    lz4.splice(7..7, [1, 0, 0, 0, 0]);
    // Behind the frame's header, a compressed block of no bytes.
    let mut zstd = zeros(Zstd, 65 * MIB);
    zstd.splice(6..6, [4, 0, 0]);
    [("lz4 behind an empty block", Lz4, lz4), ("zstd behind an empty block", Zstd, zstd)]
}

#[test]
fn one_bomb_after_the_other_takes_no_memory_anew() {
    let _guard = alone();
    for (name, codec, bomb) in bombs() {
        let small = zeros(codec, 100);
        let mut codecs = Codecs::new(Limits::default());
        assert!(codecs.decompress(codec, Reading::Bytes { magic: 2 }, &bomb).is_err(), "{name}");
        let region = Region::new(ALLOCATOR);
        for _ in 0..8 {
            assert!(
                codecs.decompress(codec, Reading::Bytes { magic: 2 }, &bomb).is_err(),
                "{name}"
            );
            assert_eq!(
                codecs.decompress(codec, Reading::Bytes { magic: 2 }, &small).map(<[u8]>::len),
                Ok(100),
                "{name}"
            );
        }
        let taken = region.change().bytes_allocated;
        assert!(taken < MIB, "{name}: {taken} bytes");
    }
}

#[test]
fn what_a_bomb_has_filled_is_given_back_once_others_have_made_twice_as_much() {
    let _guard = alone();
    for (name, codec, bomb) in bombs().into_iter().chain(bombs_that_pause()) {
        let honest = zeros(codec, 4 * MIB);
        let region = Region::new(ALLOCATOR);
        let held = || region.change().bytes_allocated - region.change().bytes_deallocated;
        let mut codecs = Codecs::new(Limits::default());
        assert!(codecs.decompress(codec, Reading::Bytes { magic: 2 }, &bomb).is_err(), "{name}");
        for _ in 0..33 {
            assert_eq!(
                codecs.decompress(codec, Reading::Bytes { magic: 2 }, &honest).map(<[u8]>::len),
                Ok(4 * MIB)
            );
        }
        assert!(held() <= KEPT_ARENA_BYTES + MIB, "{name}: {} bytes", held());
    }
}

#[test]
fn a_bomb_costs_no_more_than_as_many_ordinary_bytes_as_the_bound() {
    let _guard = alone();
    for (name, codec, bomb) in bombs().into_iter().chain(bombs_that_pause()) {
        let bound = Limits::default().decompressed(bomb.len()) as usize;
        let piece = ordinary(codec, 4 * MIB);
        let mut codecs = Codecs::new(Limits::default());
        let (mut refused, mut inflated) = (f64::MAX, f64::MAX);
        // In turn, and at the best of the rounds; more of them where the machine is busy.
        for round in 0..20 {
            let start = Instant::now();
            for _ in 0..3 {
                let outcome = codecs.decompress(codec, BYTES, &bomb).map(<[u8]>::len);
                let limit = bound as u64;
                assert_eq!(outcome, Err(ErrorKind::DecompressedTooLarge { limit }), "{name}");
            }
            refused = refused.min(start.elapsed().as_secs_f64() / 3.0);
            let start = Instant::now();
            for _ in 0..bound.div_ceil(4 * MIB) {
                assert_eq!(
                    codecs.decompress(codec, Reading::Bytes { magic: 2 }, &piece).map(<[u8]>::len),
                    Ok(4 * MIB)
                );
            }
            inflated = inflated.min(start.elapsed().as_secs_f64());
            if round >= 2 && refused <= 1.3 * inflated {
                break;
            }
        }
        assert!(refused <= 1.3 * inflated, "{name}: {refused} s, ordinary bytes {inflated} s");
    }
}

#[test]
fn a_size_that_lies_makes_a_bomb_little_dearer_than_what_the_bound_lets_through() {
    let _guard = alone();
    // Rooms are powers of two: this bound is just above one.
    let bound = 32 * MIB + 1;
    let limits = Limits { decompressed_bytes: bound as u64, ..Limits::default() };
    let honest = ordinary(Gzip, bound);
    let mut bomb = ordinary(Gzip, bound + MIB);
    for declared in [0, 8 * MIB, 8 * MIB + 1, 31 * MIB] {
        let trailer = bomb.last_chunk_mut().expect("a trailer");
        *trailer = (declared as u32).to_le_bytes();
        let (mut refused, mut inflated) = (f64::MAX, f64::MAX);
        for round in 0..20 {
            let (outcome, seconds) = timed(Gzip, &bomb, limits);
            assert!(matches!(outcome, Err(ErrorKind::DecompressedTooLarge { .. })), "{declared}");
            refused = refused.min(seconds);
            let (outcome, seconds) = timed(Gzip, &honest, limits);
            assert_eq!(outcome, Ok(bound));
            inflated = inflated.min(seconds);
            if round >= 1 && refused <= 1.3 * inflated {
                break;
            }
        }
        assert!(
            refused <= 1.3 * inflated,
            "{declared}: {refused} s, an honest payload {inflated} s"
        );
    }
}

#[test]
fn a_huge_payload_leaves_no_more_than_the_arena_keeps() {
    let _guard = alone();
    let (huge, small) = (zeros(Lz4, 50 * MIB), zeros(Zstd, 100));
    let mut codecs = Codecs::new(Limits::default());
    let region = Region::new(ALLOCATOR);
    let held = || region.change().bytes_allocated - region.change().bytes_deallocated;
    assert_eq!(codecs.decompress(Lz4, BYTES, &huge).map(<[u8]>::len), Ok(50 * MIB));
    assert!(held() >= 50 * MIB);
    assert_eq!(codecs.decompress(Zstd, BYTES, &small).map(<[u8]>::len), Ok(100));
    assert!(held() <= KEPT_ARENA_BYTES);
    assert_eq!(codecs.decompress(Lz4, BYTES, &huge).map(<[u8]>::len), Ok(50 * MIB));
    codecs.trim();
    assert!(held() <= KEPT_ARENA_BYTES);
}
