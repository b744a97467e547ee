//! What Kafka's four decompressors take and refuse, bullet by bullet of `record-batch.md` §7.

use ottla_format::attributes::Compression::{self, Gzip, Lz4, None as Plain, Snappy, Zstd};
use ottla_format::compression::{Codecs, Reading, levels};
use ottla_format::error::ErrorKind;
use ottla_format::limits::Limits;
use proptest::prelude::*;

const HELLO: &[u8] = b"hello hello hello hello";
const COMPRESSED: [Compression; 4] = [Gzip, Snappy, Lz4, Zstd];

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex digits"))
        .collect()
}

fn inflate(codec: Compression, magic: i8, payload: &[u8]) -> Result<Vec<u8>, ErrorKind> {
    Codecs::new(Limits::default())
        .decompress(codec, Reading::Bytes { magic }, payload)
        .map(<[u8]>::to_vec)
}

fn deflate(codec: Compression, magic: i8, payload: &[u8]) -> Vec<u8> {
    Codecs::new(Limits::default()).compress(codec, None, magic, payload).expect("compresses")
}

fn refused(codec: Compression) -> Result<Vec<u8>, ErrorKind> {
    Err(ErrorKind::Undecodable { codec: codec as u8 })
}

/// `HELLO` as Apache Kafka 4.1.2 writes it.
fn golden(codec: Compression) -> Vec<u8> {
    hex(match codec {
        Plain => unreachable!("nothing is written"),
        Gzip => "1f8b08000000000000ffcb48cdc9c957c8402701e3513d8d17000000",
        Snappy => "82534e415050590000000001000000010000000b171468656c6c6f20420600",
        Lz4 => "04224d186040820f0000006868656c6c6f2006005068656c6c6f00000000",
        Zstd => "28b52ffd00586400003068656c6c6f200100994b11010000",
    })
}

/// `HELLO` in every codec, cut before each byte but the first.
fn every_cut(codec: Compression) -> impl Iterator<Item = Vec<u8>> {
    let whole = golden(codec);
    (1..whole.len()).map(move |end| whole[..end].to_vec())
}

#[test]
fn payloads_written_by_kafka_are_read() {
    for codec in COMPRESSED {
        assert_eq!(inflate(codec, 2, &golden(codec)).as_deref(), Ok(HELLO), "{}", codec.name());
    }
}

#[test]
fn a_payload_without_codec_comes_back_as_it_is() {
    assert_eq!(inflate(Plain, 2, b"as it is").as_deref(), Ok(&b"as it is"[..]));
    assert_eq!(deflate(Plain, 2, b"as it is"), b"as it is");
}

#[test]
fn frames_are_begun_and_ended_as_kafka_does() {
    assert!(deflate(Gzip, 2, HELLO).starts_with(&hex("1f8b080000000000")));
    assert!(deflate(Snappy, 2, HELLO).starts_with(&golden(Snappy)[..16]));
    assert!(deflate(Lz4, 2, HELLO).starts_with(&hex("04224d18604082")));
    assert!(deflate(Lz4, 1, HELLO).starts_with(&hex("04224d18604082")));
    assert!(deflate(Lz4, 0, HELLO).starts_with(&hex("04224d1860401a")));
    assert!(deflate(Lz4, 2, HELLO).ends_with(&[0; 4]));
    // No single segment, no content size, no checksum, no dictionary.
    assert!(deflate(Zstd, 2, HELLO).starts_with(&hex("28b52ffd00")));
}

#[test]
fn an_empty_payload_is_read_by_zstd_alone() {
    for codec in [Gzip, Snappy, Lz4] {
        assert_eq!(inflate(codec, 2, b""), refused(codec));
    }
    assert_eq!(inflate(Zstd, 2, b"").as_deref(), Ok(&b""[..]));
}

#[test]
fn nothing_compressed_is_read_back_as_nothing() {
    for codec in COMPRESSED {
        assert_eq!(inflate(codec, 2, &deflate(codec, 2, b"")).as_deref(), Ok(&b""[..]));
    }
}

#[test]
fn zstd_below_magic_2_is_refused_both_ways() {
    let mut codecs = Codecs::new(Limits::default());
    for magic in [0, 1] {
        let kind = ErrorKind::UnknownCodec { codec: 4, magic };
        assert_eq!(codecs.decompress(Zstd, Reading::Bytes { magic }, &golden(Zstd)), Err(kind));
        assert_eq!(codecs.compress(Zstd, None, magic, HELLO), Err(kind));
    }
}

// gzip

/// One member around `HELLO` with header fields of our choice.
fn gzip_member(flags: u8, fields: &[u8]) -> Vec<u8> {
    let plain = golden(Gzip);
    let mut member = plain[..10].to_vec();
    member[3] = flags;
    member.extend_from_slice(fields);
    member.extend_from_slice(&plain[10..]);
    member
}

#[test]
fn gzip_members_one_after_another_are_read() {
    let members = [golden(Gzip), golden(Gzip), golden(Gzip)].concat();
    assert_eq!(inflate(Gzip, 2, &members), Ok([HELLO, HELLO, HELLO].concat()));
}

#[test]
fn bytes_after_a_gzip_member_that_begin_no_other_are_ignored() {
    for tail in [&b"\0"[..], b"garbage of some length, longer than a member", b"\x1f\x8b\x07..."] {
        let payload = [&golden(Gzip), tail].concat();
        assert_eq!(inflate(Gzip, 2, &payload).as_deref(), Ok(HELLO));
    }
}

#[test]
fn a_gzip_member_that_is_begun_must_be_good() {
    let mut second = golden(Gzip);
    let crc_at = second.len() - 8;
    second[crc_at] ^= 1;
    assert_eq!(inflate(Gzip, 2, &[golden(Gzip), second].concat()), refused(Gzip));
    let cut = &golden(Gzip)[..19];
    assert_eq!(inflate(Gzip, 2, &[&golden(Gzip), cut].concat()), refused(Gzip));
}

#[test]
fn the_begin_of_a_gzip_member_too_short_to_hold_one_is_ignored() {
    for length in 0..=18 {
        let payload = [&golden(Gzip), &golden(Gzip)[..length]].concat();
        assert_eq!(inflate(Gzip, 2, &payload).as_deref(), Ok(HELLO), "{length}");
    }
}

#[test]
fn a_wrong_gzip_magic_or_method_is_refused() {
    for at in 0..3 {
        let mut payload = golden(Gzip);
        payload[at] ^= 1;
        assert_eq!(inflate(Gzip, 2, &payload), refused(Gzip), "byte {at}");
    }
}

#[test]
fn optional_fields_of_a_gzip_header_are_skipped() {
    let cases: [(u8, &[u8]); 5] = [
        (0x01, b""),
        (0x04, b"\x03\0abc"),
        (0x08, b"name\0"),
        (0x10, b"comment\0"),
        (0x1c, b"\x01\0xname\0comment\0"),
    ];
    for (flags, fields) in cases {
        assert_eq!(inflate(Gzip, 2, &gzip_member(flags, fields)).as_deref(), Ok(HELLO));
    }
}

#[test]
fn the_checksum_of_a_gzip_header_is_verified() {
    let mut member = gzip_member(0x02, b"\0\0");
    let sum = crc32fast::hash(&member[..10]) as u16;
    member[10..12].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(inflate(Gzip, 2, &member).as_deref(), Ok(HELLO));
    member[10] ^= 1;
    assert_eq!(inflate(Gzip, 2, &member), refused(Gzip));
}

#[test]
fn reserved_flags_of_a_gzip_header_are_not_looked_at() {
    let members = [gzip_member(0xe0, b""), golden(Gzip), gzip_member(0x88, b"name\0")].concat();
    assert_eq!(inflate(Gzip, 2, &members), Ok([HELLO, HELLO, HELLO].concat()));
}

#[test]
fn a_gzip_payload_cut_anywhere_is_refused() {
    for cut in every_cut(Gzip) {
        assert_eq!(inflate(Gzip, 2, &cut), refused(Gzip), "{} bytes", cut.len());
    }
}

#[test]
fn a_wrong_gzip_trailer_is_refused() {
    for from_end in 1..=8 {
        let mut payload = golden(Gzip);
        let at = payload.len() - from_end;
        payload[at] ^= 0x10;
        assert_eq!(inflate(Gzip, 2, &payload), refused(Gzip), "{from_end} from the end");
    }
}

// snappy

fn xerial(version: i32, blocks: &[&[u8]]) -> Vec<u8> {
    let mut payload = b"\x82SNAPPY\0".to_vec();
    payload.extend_from_slice(&version.to_be_bytes());
    payload.extend_from_slice(&1i32.to_be_bytes());
    for block in blocks {
        payload.extend_from_slice(&(block.len() as i32).to_be_bytes());
        payload.extend_from_slice(block);
    }
    payload
}

fn raw_snappy() -> Vec<u8> {
    golden(Snappy)[20..].to_vec()
}

#[test]
fn a_snappy_payload_without_header_is_one_raw_block() {
    assert_eq!(inflate(Snappy, 2, &raw_snappy()).as_deref(), Ok(HELLO));
    // Sixteen bytes and more, too.
    let long = deflate(Snappy, 2, &HELLO.repeat(100)[..1000]);
    assert_eq!(inflate(Snappy, 2, &long[20..]).map(|bytes| bytes.len()), Ok(1000));
}

#[test]
fn a_snappy_header_with_one_wrong_byte_makes_it_a_raw_block_that_fails() {
    for at in 0..8 {
        let mut payload = golden(Snappy);
        payload[at] ^= 1;
        assert_eq!(inflate(Snappy, 2, &payload), refused(Snappy), "byte {at}");
    }
}

#[test]
fn the_version_of_a_snappy_header_counts_only_inside_the_stream() {
    for (version, is_read) in [(1, true), (2, true), (i32::MAX, true), (0, false), (-1, false)] {
        let stream = xerial(version, &[&raw_snappy()]);
        assert_eq!(inflate(Snappy, 2, &stream).as_deref(), Ok(HELLO), "version {version}");
        let second = inflate(Snappy, 2, &[golden(Snappy), stream].concat());
        assert_eq!(second.is_ok(), is_read, "version {version}");
    }
}

#[test]
fn half_a_snappy_header_inside_the_stream_ends_it() {
    let mut header = xerial(1, &[]);
    header[5] = b'x';
    let payload = [golden(Snappy), header].concat();
    assert_eq!(inflate(Snappy, 2, &payload).as_deref(), Ok(HELLO));
    assert_eq!(inflate(Snappy, 2, &[payload, vec![0; 4]].concat()), refused(Snappy));
}

#[test]
fn a_snappy_header_alone_is_empty() {
    assert_eq!(inflate(Snappy, 2, &xerial(1, &[])).as_deref(), Ok(&b""[..]));
}

#[test]
fn one_to_three_bytes_after_a_snappy_stream_are_ignored() {
    for tail in [&b"x"[..], b"xx", b"xxx"] {
        let payload = [&golden(Snappy), tail].concat();
        assert_eq!(inflate(Snappy, 2, &payload).as_deref(), Ok(HELLO));
    }
}

#[test]
fn four_bytes_after_a_snappy_stream_are_the_length_of_a_block() {
    for tail in [&b"xxxx"[..], b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\x09short"] {
        assert_eq!(inflate(Snappy, 2, &[&golden(Snappy), tail].concat()), refused(Snappy));
    }
}

#[test]
fn snappy_streams_one_after_another_are_read() {
    let streams = [golden(Snappy), golden(Snappy)].concat();
    assert_eq!(inflate(Snappy, 2, &streams), Ok([HELLO, HELLO].concat()));
    let cut = [&golden(Snappy), &golden(Snappy)[..15]].concat();
    assert_eq!(inflate(Snappy, 2, &cut), refused(Snappy));
}

#[test]
fn a_snappy_block_must_make_what_it_declares() {
    let mut block = raw_snappy();
    for declared in [0, HELLO.len() as u8 - 1, HELLO.len() as u8 + 1, 127] {
        block[0] = declared;
        assert_eq!(inflate(Snappy, 2, &xerial(1, &[&block])), refused(Snappy), "{declared}");
    }
}

#[test]
fn snappy_is_written_in_blocks_of_32_kib() {
    let payload = deflate(Snappy, 2, &vec![7; 100_000]);
    let (mut at, mut sizes) = (16, Vec::new());
    while at < payload.len() {
        let length = u32::from_be_bytes(payload[at..at + 4].try_into().expect("four")) as usize;
        at += 4;
        let block = inflate(Snappy, 2, &payload[at..at + length]).expect("a raw block");
        sizes.push(block.len());
        at += length;
    }
    assert_eq!(sizes, [32_768, 32_768, 32_768, 1696]);
}

// lz4

const LZ4_BLOCK: &[u8] = b"\x68hello \x06\0\x50hello";

/// A frame with a right header checksum: flags besides version and independence, fields between
/// the flags and the checksum, what follows it.
fn lz4_frame(flags: u8, sizes: u8, fields: &[u8], body: &[&[u8]]) -> Vec<u8> {
    let descriptor = [&[flags, sizes], fields].concat();
    let sum = (twox_hash::XxHash32::oneshot(0, &descriptor) >> 8) as u8;
    [&hex("04224d18"), &descriptor, &[sum][..], &body.concat()].concat()
}

fn lz4_length(length: usize) -> [u8; 4] {
    (length as u32).to_le_bytes()
}

fn hello_block() -> Vec<u8> {
    [&lz4_length(LZ4_BLOCK.len())[..], LZ4_BLOCK].concat()
}

#[test]
fn the_header_checksum_of_lz4_counts_from_magic_1_on() {
    for checksum in [0x82, 0x1a, 0x00] {
        let mut payload = golden(Lz4);
        payload[6] = checksum;
        assert_eq!(inflate(Lz4, 0, &payload).as_deref(), Ok(HELLO), "{checksum:02x}");
        for magic in [1, 2] {
            assert_eq!(inflate(Lz4, magic, &payload).is_ok(), checksum == 0x82, "{checksum:02x}");
        }
    }
}

#[test]
fn lz4_flags_outside_kafkas_subset_are_refused() {
    let end = &[0; 4][..];
    for flags in 0..=u8::MAX {
        let content_size = if flags & 0x08 == 0 { &[][..] } else { &[9; 8] };
        let content_sum = if flags & 0x04 == 0 { &[][..] } else { &[9; 4] };
        let frame = lz4_frame(flags, 0x40, content_size, &[end, content_sum]);
        let is_kafkas = flags & 0b1110_0011 == 0b0110_0000;
        assert_eq!(inflate(Lz4, 2, &frame).is_ok(), is_kafkas, "flags {flags:08b}");
    }
}

#[test]
fn lz4_block_sizes_are_64_kib_to_4_mib() {
    for sizes in 0..=u8::MAX {
        let frame = lz4_frame(0x60, sizes, &[], &[&hello_block(), &[0; 4]]);
        let is_kafkas = [0x40, 0x50, 0x60, 0x70].contains(&sizes);
        assert_eq!(inflate(Lz4, 2, &frame).is_ok(), is_kafkas, "block size byte {sizes:02x}");
    }
}

#[test]
fn an_lz4_block_longer_than_its_frame_allows_is_refused() {
    for (length, is_read) in [(65_536, true), (65_537, false)] {
        let stored = (lz4_length(length).map(u32::from), vec![7; length]);
        let word = (stored.0[0] | stored.0[1] << 8 | stored.0[2] << 16 | 1 << 31).to_le_bytes();
        let frame = lz4_frame(0x60, 0x40, &[], &[&word, &stored.1, &[0; 4]]);
        assert_eq!(inflate(Lz4, 2, &frame).is_ok(), is_read, "{length}");
    }
    // A block that would inflate past the maximum: one literal and a match of 70,000.
    let body = lz4::block::compress(&vec![7; 70_000], None, false).expect("compresses");
    let frame = lz4_frame(0x60, 0x40, &[], &[&lz4_length(body.len()), &body, &[0; 4]]);
    assert_eq!(inflate(Lz4, 2, &frame), refused(Lz4));
    let frame = lz4_frame(0x60, 0x50, &[], &[&lz4_length(body.len()), &body, &[0; 4]]);
    assert_eq!(inflate(Lz4, 2, &frame), Ok(vec![7; 70_000]));
}

#[test]
fn an_lz4_content_size_is_skipped() {
    let frame = lz4_frame(0x68, 0x40, &[0xff; 8], &[&hello_block(), &[0; 4]]);
    assert_eq!(inflate(Lz4, 2, &frame).as_deref(), Ok(HELLO));
}

#[test]
fn an_lz4_content_checksum_must_be_there_and_may_be_wrong() {
    let frame = lz4_frame(0x64, 0x40, &[], &[&hello_block(), &[0; 4], b"sum!"]);
    assert_eq!(inflate(Lz4, 2, &frame).as_deref(), Ok(HELLO));
    assert_eq!(inflate(Lz4, 2, &frame[..frame.len() - 1]), refused(Lz4));
}

#[test]
fn lz4_block_checksums_are_verified() {
    let sum = twox_hash::XxHash32::oneshot(0, LZ4_BLOCK).to_le_bytes();
    let good = lz4_frame(0x70, 0x40, &[], &[&hello_block(), &sum, &[0; 4]]);
    assert_eq!(inflate(Lz4, 2, &good).as_deref(), Ok(HELLO));
    let bad = lz4_frame(0x70, 0x40, &[], &[&hello_block(), b"sum!", &[0; 4]]);
    assert_eq!(inflate(Lz4, 2, &bad), refused(Lz4));
}

#[test]
fn bytes_after_the_lz4_end_mark_are_ignored_a_second_frame_too() {
    for tail in [&b"garbage"[..], &golden(Lz4)] {
        assert_eq!(inflate(Lz4, 2, &[&golden(Lz4), tail].concat()).as_deref(), Ok(HELLO));
    }
}

#[test]
fn an_lz4_end_mark_with_the_stored_bit_is_an_end_mark() {
    let frame = lz4_frame(0x60, 0x40, &[], &[&hello_block(), &[0, 0, 0, 0x80]]);
    assert_eq!(inflate(Lz4, 2, &frame).as_deref(), Ok(HELLO));
}

#[test]
fn an_lz4_frame_cut_anywhere_is_refused() {
    for cut in every_cut(Lz4) {
        assert_eq!(inflate(Lz4, 2, &cut), refused(Lz4), "{} bytes", cut.len());
    }
}

#[test]
fn an_lz4_block_never_looks_back_into_the_one_before() {
    // A match six bytes back, though its own block has written one literal only.
    let far = [&lz4_length(9)[..], b"\x10h\x06\0\x50hello"].concat();
    let frame = lz4_frame(0x60, 0x40, &[], &[&hello_block(), &far, &[0; 4]]);
    assert_eq!(inflate(Lz4, 2, &frame), refused(Lz4));
}

#[test]
fn what_lz4_cannot_shrink_is_stored() {
    let mut state = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(70_000)
    .collect();
    let payload = deflate(Lz4, 2, &noise);
    assert_eq!(payload[7..11], [0, 0, 1, 0x80]);
    assert_eq!(inflate(Lz4, 2, &payload), Ok(noise));
}

#[test]
fn lz4_takes_its_fast_compressor_at_level_9_and_no_other() {
    use lz4::block::{CompressionMode, compress};
    let text: Vec<u8> =
        (0..20_000u32).flat_map(|n| (n * n % 977).to_string().into_bytes()).collect();
    let text = &text[..50_000];
    let block = |level| {
        let payload = Codecs::new(Limits::default()).compress(Lz4, level, 2, text);
        let payload = payload.expect("compresses");
        payload[11..payload.len() - 4].to_vec()
    };
    let fast = compress(text, None, false).expect("compresses");
    assert_eq!(block(None), fast);
    assert_eq!(block(Some(9)), fast);
    for level in [8, 10] {
        let mode = Some(CompressionMode::HIGHCOMPRESSION(level));
        let small = compress(text, mode, false).expect("compresses");
        assert_ne!(small, fast);
        assert_eq!(block(Some(level)), small);
    }
}

// zstd

#[test]
fn zstd_frames_one_after_another_are_read() {
    let skippable = hex("502a4d1804000000deadbeef");
    let frames = [golden(Zstd), skippable, golden(Zstd)].concat();
    assert_eq!(inflate(Zstd, 2, &frames), Ok([HELLO, HELLO].concat()));
}

#[test]
fn bytes_after_the_last_zstd_frame_that_begin_no_other_are_refused() {
    for tail in [&b"\0"[..], b")", b"garbage", &hex("28b52ffc"), &hex("28b52ffd0858640000")] {
        assert_eq!(inflate(Zstd, 2, &[&golden(Zstd), tail].concat()), refused(Zstd));
    }
}

/// zstd-jni takes a source for ended if it has not read on since a frame ended.
#[test]
fn the_begin_of_a_zstd_frame_after_a_whole_one_is_read_as_far_as_it_goes() {
    let first_block_ends = 21;
    for cut in 1..golden(Zstd).len() {
        let payload = [&golden(Zstd), &golden(Zstd)[..cut]].concat();
        let outcome = inflate(Zstd, 2, &payload);
        if cut < first_block_ends {
            assert_eq!(outcome.as_deref(), Ok(HELLO), "{cut} bytes");
        } else {
            assert_eq!(outcome, Ok([HELLO, HELLO].concat()), "{cut} bytes");
        }
    }
    let skippable = hex("502a4d1804000000deadbeef");
    for cut in 1..skippable.len() {
        let payload = [&golden(Zstd), &skippable[..cut]].concat();
        assert_eq!(inflate(Zstd, 2, &payload).as_deref(), Ok(HELLO), "{cut} bytes");
    }
}

#[test]
fn the_begin_of_a_zstd_frame_in_a_chunk_of_its_own_is_refused() {
    let chunk = 131_075;
    let begin = &golden(Zstd)[..5];
    for (first_frame, is_read) in [
        (chunk - 6, true),
        (chunk - 5, true),
        (chunk - 4, false),
        (chunk, false),
        (chunk + 1, true),
    ] {
        let mut payload = hex("502a4d18");
        payload.extend_from_slice(&(first_frame as u32 - 8).to_le_bytes());
        payload.resize(first_frame, 0);
        payload.extend_from_slice(begin);
        assert_eq!(inflate(Zstd, 2, &payload).is_ok(), is_read, "{first_frame} bytes before");
    }
}

#[test]
fn a_zstd_block_larger_than_its_window_is_refused() {
    // A window of 1 KiB, then a raw block: the last one, of so many bytes.
    for (size, is_read) in [(1024u32, true), (1025, false)] {
        let header = (size << 3 | 1).to_le_bytes();
        let payload = [&hex("28b52ffd0000"), &header[..3], &vec![7; size as usize]].concat();
        assert_eq!(inflate(Zstd, 2, &payload).is_ok(), is_read, "{size}");
    }
}

#[test]
fn a_zstd_frame_with_a_dictionary_is_refused() {
    let with_dictionary = |id: u8| [&hex("28b52ffd0158"), &[id][..], &golden(Zstd)[6..]].concat();
    assert_eq!(inflate(Zstd, 2, &with_dictionary(9)), refused(Zstd));
    assert_eq!(inflate(Zstd, 2, &with_dictionary(0)).as_deref(), Ok(HELLO));
}

#[test]
fn a_zstd_payload_cut_anywhere_is_refused() {
    for cut in every_cut(Zstd) {
        assert_eq!(inflate(Zstd, 2, &cut), refused(Zstd), "{} bytes", cut.len());
    }
}

#[test]
fn a_zstd_window_above_128_mib_is_refused() {
    // The window's exponent stands in the five upper bits: 17 is 2^27.
    for (window, is_read) in [(17 << 3, true), (17 << 3 | 1, false), (31 << 3, false)] {
        let mut payload = golden(Zstd);
        payload[5] = window;
        assert_eq!(inflate(Zstd, 2, &payload).is_ok(), is_read, "window {window:02x}");
    }
}

#[test]
fn a_zstd_frame_that_tells_its_size_must_tell_it_right() {
    // Single segment with a content size of one byte, then the golden frame's block.
    let frame = |size: u8| [&hex("28b52ffd20"), &[size][..], &golden(Zstd)[6..]].concat();
    assert_eq!(inflate(Zstd, 2, &frame(23)).as_deref(), Ok(HELLO));
    assert_eq!(inflate(Zstd, 2, &frame(22)), refused(Zstd));
    assert_eq!(inflate(Zstd, 2, &frame(24)), refused(Zstd));
    assert_eq!(inflate(Zstd, 2, &frame(0)), refused(Zstd));
}

// all

#[test]
fn every_level_can_be_read_and_levels_beyond_are_taken_as_the_nearest() {
    let mut codecs = Codecs::new(Limits::default());
    for codec in COMPRESSED {
        let (range, _) = levels(codec).unwrap_or((0..=0, 0));
        let (least, most) = (*range.start(), *range.end());
        for level in [i32::MIN, least, -7, 0, 1, 5, 6, 9, most, i32::MAX] {
            let payload = codecs.compress(codec, Some(level), 2, HELLO).expect("compresses");
            let nearest = level.clamp(least, most);
            assert_eq!(Ok(&payload), codecs.compress(codec, Some(nearest), 2, HELLO).as_ref());
            assert_eq!(codecs.decompress(codec, Reading::Bytes { magic: 2 }, &payload), Ok(HELLO));
        }
    }
}

#[test]
fn a_flipped_bit_never_panics_and_never_passes_a_checksum() {
    let mut codecs = Codecs::new(Limits::default());
    for codec in COMPRESSED {
        let whole = golden(codec);
        for bit in 0..whole.len() * 8 {
            let mut payload = whole.clone();
            payload[bit / 8] ^= 1 << (bit % 8);
            let outcome = codecs.decompress(codec, Reading::Bytes { magic: 2 }, &payload);
            if codec == Gzip && bit >= 80 {
                assert!(outcome.is_err(), "bit {bit}");
            }
        }
    }
}

/// Text that compresses, in pieces of repeats and noise.
fn payloads() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        (any::<u8>(), 1..90_000usize).prop_map(|(byte, times)| vec![byte; times]),
        (proptest::collection::vec(any::<u8>(), 1..40), 1..200usize)
            .prop_map(|(text, times)| text.repeat(times)),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn codec() -> impl Strategy<Value = (Compression, i8)> {
    prop_oneof![(prop::sample::select(&[Plain, Gzip, Snappy, Lz4][..]), 0..=2i8), Just((Zstd, 2)),]
}

proptest! {
    #[test]
    fn what_is_compressed_inflates_to_itself(
        texts in proptest::collection::vec(
            (codec(), payloads(), proptest::option::of(1..=12i32)),
            1..4,
        ),
    ) {
        let mut codecs = Codecs::new(Limits::default());
        for ((codec, magic), text, level) in texts {
            let payload = codecs.compress(codec, level, magic, &text).expect("compresses");
            prop_assert_eq!(codecs.decompress(codec, Reading::Bytes { magic }, &payload), Ok(&text[..]));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic((codec, magic) in codec(), bytes: Vec<u8>) {
        let _ = inflate(codec, magic, &bytes);
    }

    #[test]
    fn damaged_payloads_never_panic_and_stay_within_the_bound(
        (codec, magic) in codec(),
        text in payloads(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        bound in 1..200_000u64,
    ) {
        let mut codecs = Codecs::new(Limits { decompressed_bytes: bound, ..Limits::default() });
        let mut payload = codecs.compress(codec, None, magic, &text).expect("compresses");
        for (at, byte) in edits {
            if !payload.is_empty() {
                let at = at.index(payload.len());
                payload[at] = byte;
            }
        }
        if let Ok(inflated) = codecs.decompress(codec, Reading::Bytes { magic }, &payload) {
            prop_assert!(codec == Plain || inflated.len() as u64 <= bound);
        }
    }

    #[test]
    fn a_bound_is_kept_to_the_byte((codec, magic) in codec(), text in payloads()) {
        prop_assume!(codec != Plain && !text.is_empty());
        let payload = deflate(codec, magic, &text);
        let bounded = |decompressed_bytes| {
            Codecs::new(Limits { decompressed_bytes, ..Limits::default() })
                .decompress(codec, Reading::Bytes { magic }, &payload)
                .map(<[u8]>::len)
        };
        let size = text.len() as u64;
        prop_assert_eq!(bounded(size), Ok(text.len()));
        let limit = size - 1;
        prop_assert_eq!(bounded(limit), Err(ErrorKind::DecompressedTooLarge { limit }));
    }
}
