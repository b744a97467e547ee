//! gzip members.

mod common;

use common::Random;
use ottla_kernels::gzip::{Decompressor, GzipError, Member, compress, crc32};

/// What Kafka wrote for "hello hello hello hello".
const GOLDEN: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xcbH\xcd\xc9\xc9W\xc8@'\x01\xe3Q=\x8d\x17\x00\x00\x00";
const TEXT: &[u8] = b"hello hello hello hello";

#[test]
fn a_member_of_kafka_is_read_and_what_follows_it_is_left() {
    let mut out = [0; 64];
    let mut decompressor = Decompressor::new();
    let two = [GOLDEN, GOLDEN].concat();
    let wanted = Member { used: GOLDEN.len(), written: TEXT.len() };
    assert_eq!(decompressor.member(&two, &mut out), Ok(wanted));
    assert_eq!(&out[..TEXT.len()], TEXT);
    assert_eq!(decompressor.member(&two[wanted.used..], &mut out), Ok(wanted));
}

#[test]
fn every_cut_and_every_flipped_bit_of_content_or_trailer_is_bad_data() {
    let mut decompressor = Decompressor::default();
    let mut out = [0; 64];
    for size in 0..GOLDEN.len() {
        assert_eq!(
            decompressor.member(&GOLDEN[..size], &mut out),
            Err(GzipError::BadData),
            "{size} bytes"
        );
    }
    for bit in 10 * 8..GOLDEN.len() * 8 {
        let mut damaged = GOLDEN.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(
            decompressor.member(&damaged, &mut out).map(|_| &out[..TEXT.len()] == TEXT),
            Ok(false),
            "bit {bit}"
        );
    }
}

#[test]
fn a_member_larger_than_the_room_is_told_apart_from_damage() {
    let member = compress(6, &vec![0; 1 << 20]).expect("level 6");
    let mut out = vec![0; (1 << 20) - 1];
    assert_eq!(Decompressor::new().member(&member, &mut out), Err(GzipError::InsufficientSpace));
    assert_eq!(Decompressor::new().member(&member, &mut []), Err(GzipError::InsufficientSpace));
}

#[test]
fn what_every_level_compresses_reads_back() {
    let mut random = Random::new(41);
    let mut text = random.bytes(5000);
    text.extend(vec![7; 20_000]);
    for level in 1..=12 {
        for size in [0, 1, 100, text.len()] {
            let member = compress(level, &text[..size]).expect("a level");
            let mut out = vec![0; size];
            let found = Decompressor::new().member(&member, &mut out);
            assert_eq!(found, Ok(Member { used: member.len(), written: size }), "level {level}");
            assert_eq!(out, text[..size]);
        }
    }
    assert_eq!((compress(0, b""), compress(13, b"")), (None, None));
}

/// By its definition, bit by bit.
fn naive_crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            if crc & 1 == 0 { crc >> 1 } else { (crc >> 1) ^ 0xedb8_8320 }
        })
    })
}

#[test]
fn the_checksum_is_that_of_the_definition_at_every_length_and_in_any_two_pieces() {
    let mut random = Random::new(11);
    for size in (0..=600).chain([4095, 70_001]) {
        let data = random.bytes(size);
        let wanted = naive_crc32(&data);
        assert_eq!(crc32(0, &data), wanted, "{size} bytes");
        let (first, rest) = data.split_at(random.below(size as u64 + 1) as usize);
        assert_eq!(crc32(crc32(0, first), rest), wanted, "{size} bytes in two pieces");
    }
}
