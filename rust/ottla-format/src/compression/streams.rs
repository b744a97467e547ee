//! Payloads as Kafka's Java streams read and write them, where that makes a difference.
//!
//! A broker reads a damaged payload up to the damage. How far that is depends on the steps in which
//! its streams return bytes: with LZ4 and snappy a block; with gzip what zlib makes in one call of
//! 8 KiB in and 16 KiB out; with zstd what libzstd's streaming call makes of 16 KiB out. Bytes made
//! in a call that fails are lost.

use std::io::Write;

use flate2::write::GzEncoder;
use flate2::{Crc, Decompress, FlushDecompress, GzBuilder, Status};
use lz4::block::decompress_to_buffer;
use zstd_safe::zstd_sys::ZSTD_EndDirective::{ZSTD_e_continue, ZSTD_e_end, ZSTD_e_flush};
use zstd_safe::{CCtx, CParameter, DCtx, InBuffer, OutBuffer, compress_bound};

use super::lz4::Lz4Blocks;
use super::snappy::{SnappyBlocks, declared_length};
use super::{gzip as members, zstd as zstandard};

/// Bytes that Java's gzip stream reads at a time.
const GZIP_INPUT_BYTES: usize = 8 << 10;
/// Bytes that Kafka's readers request from a stream at a time.
const OUTPUT_BYTES: usize = 16 << 10;
/// Bytes that zstd-jni reads at a time.
const ZSTD_INPUT_BYTES: usize = (128 << 10) + 3;
/// The largest window accepted in a damaged payload; Kafka's own writers use up to 8 MiB.
const MAX_WINDOW: u64 = 8 << 20;

/// The bytes that a stream returned, up to a bound.
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    limit: usize,
}

impl Output {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    /// `None` beyond the bound.
    pub(super) fn extend(&mut self, bytes: &[u8]) -> Option<()> {
        if self.bytes.len().saturating_add(bytes.len()) > self.limit {
            return None;
        }
        self.bytes.extend_from_slice(bytes);
        Some(())
    }
}

/// Java's `GZIPInputStream`; `None` where it fails.
pub(super) fn gzip(payload: &[u8], out: &mut Output) -> Option<()> {
    let (_, mut at) = members::header(payload)?;
    let mut chunk = vec![0; OUTPUT_BYTES];
    loop {
        let mut inflater = Decompress::new(false);
        let mut crc = Crc::new();
        // Once the header is read, Java has read up to here: the next step ends there.
        let mut step_end = at.next_multiple_of(GZIP_INPUT_BYTES).max(GZIP_INPUT_BYTES);
        loop {
            let input = payload.get(at..step_end.min(payload.len()))?;
            let (read, made) = (inflater.total_in(), inflater.total_out());
            let status = inflater.decompress(input, &mut chunk, FlushDecompress::Sync).ok()?;
            at = at.saturating_add(inflater.total_in().saturating_sub(read) as usize);
            let made = inflater.total_out().saturating_sub(made) as usize;
            let bytes = chunk.get(..made)?;
            crc.update(bytes);
            out.extend(bytes)?;
            if status == Status::StreamEnd {
                break;
            }
            if made == 0 {
                if step_end >= payload.len() {
                    return None;
                }
                step_end = step_end.saturating_add(GZIP_INPUT_BYTES);
            }
        }
        let trailer = payload.get(at..)?.first_chunk::<8>()?;
        let (sum, amount) = trailer.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*sum) != crc.sum()
            || u32::from_le_bytes(*amount.first_chunk()?) != crc.amount()
        {
            return None;
        }
        at = at.saturating_add(trailer.len());
        let rest = payload.get(at..)?;
        match members::header(rest) {
            Some((_, length)) if rest.len() > members::MIN_MEMBER_BYTES => {
                at = at.saturating_add(length);
            }
            _ => return Some(()),
        }
    }
}

/// snappy-java's stream; `None` where it fails.
pub(super) fn snappy(payload: &[u8], out: &mut Output) -> Option<()> {
    let mut decoder = snap::raw::Decoder::new();
    for block in SnappyBlocks::open(payload) {
        let block = block.ok()?;
        let mut bytes = vec![0; declared_length(block).ok()?.min(out.limit)];
        let made = decoder.decompress(block, &mut bytes).ok()?;
        out.extend(bytes.get(..made)?)?;
    }
    Some(())
}

/// Kafka's own LZ4 stream; `None` where it fails.
pub(super) fn lz4(payload: &[u8], magic: i8, out: &mut Output) -> Option<()> {
    let mut frame = Lz4Blocks::open(payload, magic)?;
    while let Some(block) = frame.next_block().ok()? {
        if block.is_stored {
            out.extend(block.bytes)?;
            continue;
        }
        let mut bytes = vec![0; block.max_inflated];
        let made =
            decompress_to_buffer(block.bytes, Some(block.max_inflated as i32), &mut bytes).ok()?;
        out.extend(bytes.get(..made)?)?;
    }
    Some(())
}

/// zstd-jni's stream; `None` where it fails.
pub(super) fn zstd(payload: &[u8], out: &mut Output) -> Option<()> {
    if zstandard::frame_window(payload).is_some_and(|window| window > MAX_WINDOW) {
        return None;
    }
    let mut decoder = DCtx::try_create()?;
    let mut chunk = vec![0; OUTPUT_BYTES];
    let mut steps = payload.chunks(ZSTD_INPUT_BYTES);
    let mut input = InBuffer::around(&[]);
    let (mut needs_input, mut is_frame_done) = (true, true);
    loop {
        let mut made = 0;
        let mut before = None;
        while made < OUTPUT_BYTES && before.is_none_or(|before| before < made) {
            if needs_input && (steps.len() > 0 || made == 0) {
                match steps.next() {
                    Some(step) => input = InBuffer::around(step),
                    None if is_frame_done => return Some(()),
                    None => return None,
                }
                is_frame_done = false;
            }
            before = Some(made);
            let mut output = OutBuffer::around_pos(&mut chunk[..], made);
            let hint = decoder.decompress_stream(&mut output, &mut input).ok()?;
            made = output.pos();
            if hint == 0 {
                is_frame_done = true;
                needs_input = input.pos() == input.src.len();
                break;
            }
            needs_input = made < OUTPUT_BYTES;
        }
        out.extend(chunk.get(..made)?)?;
    }
}

/// A gzip member as Java's `GZIPOutputStream` writes it, by zlib.
pub(super) fn gzip_written(level: i32, payload: &[u8]) -> Option<Vec<u8>> {
    let level = flate2::Compression::new(u32::try_from(level).ok()?);
    let mut encoder: GzEncoder<Vec<u8>> =
        GzBuilder::new().operating_system(255).write(Vec::new(), level);
    encoder.write_all(payload).ok()?;
    encoder.finish().ok()
}

/// A frame as zstd-jni's stream writes it, without a content size.
pub(super) fn zstd_written(level: i32, payload: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = CCtx::try_create()?;
    encoder.set_parameter(CParameter::CompressionLevel(level)).ok()?;
    let mut bytes = vec![0; compress_bound(payload.len()).saturating_add(64)];
    let mut output = OutBuffer::around(&mut bytes[..]);
    let mut input = InBuffer::around(payload);
    while input.pos() < payload.len() {
        encoder.compress_stream2(&mut output, &mut input, ZSTD_e_continue).ok()?;
    }
    // Java flushes before it closes: the last block is empty.
    encoder.compress_stream2(&mut output, &mut input, ZSTD_e_flush).ok()?;
    let left = encoder.compress_stream2(&mut output, &mut input, ZSTD_e_end).ok()?;
    let length = output.pos();
    bytes.truncate(length);
    (left == 0).then_some(bytes)
}
