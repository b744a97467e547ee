//! Payloads of many blocks, some of them of nothing: what the codecs make of them at once, what the
//! streams make of them request by request, and what a plain model of Kafka's reader says
//! (`record-batch.md` §7.1).

use std::collections::VecDeque;
use std::io::Write;

use lz4::block::{CompressionMode, compress_bound, compress_to_buffer};
use ottla_format::attributes::Compression::{self, Gzip, Lz4, Snappy, Zstd};
use ottla_format::batch::{BatchInfo, RecordCursor};
use ottla_format::builder::{BatchFields, NewRecord, build_batch};
use ottla_format::compression::{Codecs, Reading};
use ottla_format::error::ErrorKind;
use ottla_format::header::{Envelope, RECORD_BATCH_OVERHEAD};
use ottla_format::legacy;
use ottla_format::limits::Limits;
use ottla_format::varint::{read_varint, write_varint};
use proptest::prelude::*;

const CODECS: [Compression; 4] = [Gzip, Snappy, Lz4, Zstd];
/// Kafka's buffer in front of the streams of snappy and lz4.
const SMALL_BUFFER: usize = 2 << 10;
const LARGE_BUFFER: usize = 16 << 10;
const TIME: i64 = 1_700_000_000_000;

fn codecs() -> Codecs {
    Codecs::new(Limits::default())
}

/// A payload with each text in a block, member or frame of its own.
fn payload(codec: Compression, texts: &[Vec<u8>]) -> Vec<u8> {
    match codec {
        Gzip => texts.iter().flat_map(|text| gzip_member(text)).collect(),
        Snappy => snappy_stream(texts),
        Lz4 => lz4_frame(texts),
        _ => texts.iter().flat_map(|text| zstd_frame(text)).collect(),
    }
}

fn gzip_member(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("writes");
    encoder.finish().expect("ends")
}

fn snappy_stream(texts: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01".to_vec();
    for text in texts {
        let block = snap::raw::Encoder::new().compress_vec(text).expect("compresses");
        out.extend((block.len() as u32).to_be_bytes());
        out.extend(block);
    }
    out
}

fn lz4_frame(texts: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"\x04\x22\x4d\x18\x60\x40\x82".to_vec();
    for text in texts.iter().flat_map(|text| pieces(text, 64 << 10)) {
        let mut block = vec![0; compress_bound(text.len()).expect("small").max(1)];
        let mode = Some(CompressionMode::DEFAULT);
        let length = match text.len() {
            0 => 1,
            _ => compress_to_buffer(text, mode, false, &mut block).expect("compresses"),
        };
        out.extend((length as u32).to_le_bytes());
        out.extend(&block[..length]);
    }
    out.extend([0; 4]);
    out
}

/// A text in pieces of at most so many bytes; nothing is one piece.
fn pieces(text: &[u8], size: usize) -> Vec<&[u8]> {
    if text.is_empty() { vec![text] } else { text.chunks(size).collect() }
}

/// A frame of one raw block, and of an empty block behind it if there is no text.
fn zstd_frame(text: &[u8]) -> Vec<u8> {
    let mut out = b"\x28\xb5\x2f\xfd\0\x38".to_vec();
    let blocks = pieces(text, 100 << 10);
    for (at, block) in blocks.iter().enumerate() {
        let kind = if block.is_empty() { 2 } else { 0 };
        let header = (block.len() << 3) as u32 | kind << 1 | u32::from(at + 1 == blocks.len());
        out.extend(&header.to_le_bytes()[..3]);
        out.extend(*block);
    }
    out
}

/// Records with values of these sizes, and the records section of a plain batch with them.
fn records(sizes: &[usize]) -> (BatchInfo, Vec<u8>) {
    let values: Vec<Vec<u8>> =
        sizes.iter().enumerate().map(|(at, &size)| vec![b'a' + (at % 26) as u8; size]).collect();
    let records: Vec<_> = values
        .iter()
        .map(|value| NewRecord { value: Some(value), timestamp: TIME, ..NewRecord::default() })
        .collect();
    let batch = build_batch(&BatchFields::default(), &records, &mut codecs()).expect("builds");
    let envelope = Envelope::read(&batch, 0).expect("framed");
    let info = BatchInfo::read(&batch, 0, &envelope).expect("read");
    (info, batch[RECORD_BATCH_OVERHEAD..].to_vec())
}

/// The entries of a message set, each with a value of its size.
fn entries(sizes: &[usize]) -> Vec<u8> {
    let mut set = Vec::new();
    for (offset, &size) in sizes.iter().enumerate() {
        let mut body = vec![1, 0];
        body.extend(TIME.to_be_bytes());
        body.extend((-1i32).to_be_bytes());
        body.extend((size as i32).to_be_bytes());
        body.resize(body.len() + size, b'v');
        set.extend((offset as i64).to_be_bytes());
        set.extend((body.len() as i32 + 4).to_be_bytes());
        set.extend(crc32fast::hash(&body).to_be_bytes());
        set.extend(body);
    }
    set
}

/// Cuts a text at places, given as parts of its length; equal ones make pieces of nothing.
fn cut(text: &[u8], places: &[u16]) -> Vec<Vec<u8>> {
    let mut at: Vec<usize> = places
        .iter()
        .map(|&place| usize::from(place) * text.len() / usize::from(u16::MAX))
        .collect();
    at.sort_unstable();
    let ends = at.iter().copied().chain([text.len()]);
    let starts = [0].into_iter().chain(at.iter().copied());
    starts.zip(ends).map(|(start, end)| text[start..end].to_vec()).collect()
}

/// What the engine reads: the values of all records, or nothing where it refuses the batch.
fn values(info: &BatchInfo, payload: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut cursor = RecordCursor::start(info, payload, Limits::default()).ok()?;
    let mut found = Vec::new();
    while let Some(record) = cursor.next(payload).ok()? {
        found.push(record.value.unwrap_or_default().to_vec());
    }
    Some(found)
}

/// A model of Kafka's reader over lz4: bytes, and the places where the stream returns nothing once.
struct Model {
    bytes: Vec<u8>,
    pauses: VecDeque<usize>,
    at: usize,
}

impl Model {
    fn of(texts: &[Vec<u8>]) -> Self {
        let (mut bytes, mut pauses) = (Vec::new(), VecDeque::new());
        for text in texts {
            if text.is_empty() {
                pauses.push_back(bytes.len());
            }
            bytes.extend(text);
        }
        Self { bytes, pauses, at: 0 }
    }

    fn pauses(&mut self) -> bool {
        let is_here = self.pauses.front() == Some(&self.at);
        if is_here {
            self.pauses.pop_front();
        }
        is_here
    }

    /// One byte; −1 at a pause, which is over then, and at the end.
    fn byte(&mut self) -> i32 {
        if self.pauses() || self.at == self.bytes.len() {
            return -1;
        }
        self.at += 1;
        i32::from(self.bytes[self.at - 1])
    }

    /// So many bytes. Whoever still wants as many as the buffer holds does not notice a pause.
    fn take(&mut self, wanted: usize) -> Option<Vec<u8>> {
        let mut taken = Vec::new();
        while taken.len() < wanted {
            let left = wanted - taken.len();
            if self.pauses() {
                if left < SMALL_BUFFER {
                    return None;
                }
                continue;
            }
            if self.at == self.bytes.len() {
                return None;
            }
            taken.push(self.bytes[self.at]);
            self.at += 1;
        }
        Some(taken)
    }

    fn length(&mut self) -> Option<usize> {
        let mut bytes = Vec::new();
        while bytes.len() < 5 && bytes.last().is_none_or(|&byte: &u8| byte & 0x80 != 0) {
            bytes.push(self.byte() as u8);
        }
        read_varint(&bytes).ok().and_then(|(length, _)| usize::try_from(length).ok())
    }

    /// The values of the records that it reads, or nothing where it refuses the batch.
    fn values(&mut self, info: &BatchInfo) -> Option<Vec<Vec<u8>>> {
        let mut seen = Vec::new();
        for _ in 0..info.record_count.unwrap_or(0) {
            let length = self.length()?;
            write_varint(&mut seen, length as i32);
            seen.extend(self.take(length)?);
        }
        if self.byte() != -1 {
            return None;
        }
        values(info, &seen)
    }

    /// How many entries of a message set it reads.
    fn entries(&mut self) -> usize {
        let mut count = 0;
        while let Some(head) = self.take(12) {
            let size = i32::from_be_bytes([head[8], head[9], head[10], head[11]]);
            if self.take(size as usize).is_none() {
                break;
            }
            count += 1;
        }
        count
    }
}

/// Sizes of values, many at the edges of Kafka's buffers.
fn sizes(most: usize) -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![
        4 => 0..64usize,
        2 => SMALL_BUFFER - 24..SMALL_BUFFER + 24,
        1 => LARGE_BUFFER - 40..LARGE_BUFFER + 40,
    ];
    proptest::collection::vec(size, 1..most)
}

fn places() -> impl Strategy<Value = Vec<u16>> {
    // Repeated, so that there are pieces of nothing.
    proptest::collection::vec((any::<u16>(), 1..4usize), 0..12).prop_map(|places| {
        places.into_iter().flat_map(|(place, times)| std::iter::repeat_n(place, times)).collect()
    })
}

proptest! {
    #[test]
    fn blocks_however_many_and_of_nothing_inflate_to_the_text_where_no_stream_pauses(
        sizes in sizes(20), places in places(),
    ) {
        let (info, text) = records(&sizes);
        for codec in CODECS {
            let mut texts = cut(&text, &places);
            if codec == Lz4 {
                texts.retain(|text| !text.is_empty());
            }
            let payload = payload(codec, &texts);
            let reading = Reading::records(info.record_count.unwrap_or(0));
            for reading in [reading, Reading::Bytes { magic: 2 }] {
                let mut codecs = codecs();
                prop_assert_eq!(codecs.decompress(codec, reading, &payload), Ok(&text[..]));
            }
        }
    }

    #[test]
    fn a_stream_reads_request_by_request_what_a_codec_inflates_at_once(
        sizes in sizes(20), places in places(),
    ) {
        let (info, text) = records(&sizes);
        let reading = Reading::records(info.record_count.unwrap_or(0));
        for codec in CODECS {
            let mut texts = cut(&text, &places);
            texts.retain(|text| !text.is_empty());
            let payload = payload(codec, &texts);
            let mut codecs = codecs();
            let at_once = codecs.decompress_at_once(codec, 2, &payload).map(<[u8]>::to_vec);
            prop_assert_eq!(at_once.as_ref(), Ok(&text));
            let (bytes, is_damaged) = codecs.decompress_before_damage(codec, reading, &payload);
            prop_assert_eq!((&bytes, is_damaged), (&text, false));
            // What is skipped is not looked at, and takes as many bytes.
            let skipped = codecs.decompress_before_damage(codec, reading.skipping(), &payload);
            prop_assert_eq!((skipped.0.len(), skipped.1), (text.len(), false));
        }
    }

    #[test]
    fn lz4_blocks_of_nothing_end_a_batch_where_the_model_says(
        sizes in sizes(8), places in places(),
    ) {
        let (info, text) = records(&sizes);
        let texts = cut(&text, &places);
        let payload = payload(Lz4, &texts);
        let reading = Reading::records(info.record_count.unwrap_or(0));
        let mut codecs = codecs();
        let read = codecs.decompress(Lz4, reading, &payload).ok();
        let read = read.and_then(|bytes| values(&info, bytes));
        prop_assert_eq!(read, Model::of(&texts).values(&info));
    }

    #[test]
    fn lz4_blocks_of_nothing_end_a_message_set_where_the_model_says(
        sizes in sizes(220), places in places(),
    ) {
        let sizes: Vec<_> = sizes.into_iter().map(|size| size.min(3000)).collect();
        let set = entries(&sizes);
        let texts = cut(&set, &places);
        let payload = payload(Lz4, &texts);
        let mut codecs = codecs();
        let reading = Reading::Entries { magic: 1 };
        let read = codecs.decompress(Lz4, reading, &payload).expect("is not damaged");
        let found = legacy::entries(read).map_or(0, |entries| entries.len());
        prop_assert_eq!(found, Model::of(&texts).entries());
    }

    #[test]
    fn wrappers_of_up_to_220_records_inflate_whole_in_every_other_codec(
        sizes in sizes(220), places in places(),
    ) {
        let sizes: Vec<_> = sizes.into_iter().map(|size| size.min(3000)).collect();
        let set = entries(&sizes);
        for codec in [Gzip, Snappy] {
            let payload = payload(codec, &cut(&set, &places));
            let mut codecs = codecs();
            let reading = Reading::Entries { magic: 1 };
            prop_assert_eq!(codecs.decompress(codec, reading, &payload), Ok(&set[..]));
            let (bytes, is_damaged) = codecs.decompress_before_damage(codec, reading, &payload);
            prop_assert_eq!((&bytes, is_damaged), (&set, false));
        }
    }

    #[test]
    fn what_comes_before_damage_is_a_beginning_of_the_text(
        sizes in sizes(12), places in places(), at in any::<u16>(),
    ) {
        let (info, text) = records(&sizes);
        for codec in CODECS {
            let mut texts = cut(&text, &places);
            texts.retain(|text| !text.is_empty());
            let mut payload = payload(codec, &texts);
            payload.truncate(usize::from(at) * payload.len() / usize::from(u16::MAX));
            let reading = Reading::records(info.record_count.unwrap_or(0));
            let (bytes, is_damaged) = codecs().decompress_before_damage(codec, reading, &payload);
            prop_assert!(text.starts_with(&bytes), "{codec:?}");
            let whole = codecs().decompress(codec, reading, &payload).is_ok();
            prop_assert_eq!(whole, !is_damaged, "{:?}", codec);
        }
    }

    #[test]
    fn any_bytes_read_by_a_stream_stay_within_the_bound_and_never_panic(
        codec in 0..4usize, bytes: Vec<u8>, count in 0..9u32, at in any::<u16>(),
    ) {
        let codec = CODECS[codec];
        let mut damaged = payload(codec, &[b"text".to_vec(), Vec::new(), b"more".repeat(999)]);
        let at = usize::from(at) % damaged.len();
        damaged.splice(at..at, bytes.iter().copied());
        let limits = Limits { decompressed_bytes: 3000, ..Limits::default() };
        for payload in [&bytes, &damaged] {
            for reading in [
                Reading::Records { count },
                Reading::SkippedRecords { count },
                Reading::Entries { magic: 1 },
                Reading::Bytes { magic: 2 },
            ] {
                let mut codecs = Codecs::new(limits);
                let (read, _) = codecs.decompress_before_damage(codec, reading, payload);
                prop_assert!(read.len() <= 3001 + 12, "{} bytes", read.len());
                let _ = codecs.decompress(codec, reading, payload);
            }
        }
    }
}

#[test]
fn a_bound_within_a_buffer_of_a_pause_is_exceeded_all_the_same() {
    for codec in CODECS {
        for first in [0, 1, 100, SMALL_BUFFER] {
            let texts = [vec![b'a'; first], Vec::new(), b"b".to_vec()];
            let payload = payload(codec, &texts);
            let reading = Reading::Bytes { magic: 2 };
            let whole = codecs().decompress(codec, reading, &payload).map(<[u8]>::len);
            assert_eq!(whole, Ok(first + 1), "{codec:?}");
            let limit = first as u64;
            let limits = Limits { decompressed_bytes: limit, ..Limits::default() };
            let bounded = Codecs::new(limits).decompress(codec, reading, &payload).map(<[u8]>::len);
            assert_eq!(
                bounded,
                Err(ErrorKind::DecompressedTooLarge { limit }),
                "{codec:?} {first}"
            );
        }
    }
}
