//! LZ4 frames, in the subset that Kafka's own stream classes read and write.
//!
//! ```text
//! 04 22 4d 18 │flags│block size│[size (8)]│HC│ ( length (4) │ block │[checksum] )… │ 0 │[checksum]
//! ```
//!
//! Blocks are independent. Bytes behind the end mark are ignored, a missing end mark is a fault. A
//! content checksum must be there if it is flagged, and is not verified; a content size is skipped.
//!
//! A block that inflates to nothing is left to Kafka's own stream, which pauses there.
//!
//! Producers of magic 0 computed the header checksum HC over the frame magic as well. Readers of
//! magic 0 therefore ignore it, and writers still write it so (KAFKA-3160).
//!
//! The frame is parsed here because liblz4's frame functions copy each block once more.

use lz4::block::{CompressionMode, compress_bound, compress_to_buffer, decompress_to_buffer};
use twox_hash::XxHash32;

use super::arena::{Arena, Fault};
use crate::clients::ClientFault;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const RESERVED: u8 = 0x03;
const CONTENT_CHECKSUM: u8 = 0x04;
const CONTENT_SIZE: u8 = 0x08;
const BLOCK_CHECKSUM: u8 = 0x10;
const INDEPENDENT: u8 = 0x20;
const VERSION: u8 = 0x40;
const VERSION_MASK: u8 = 0xc0;
const END_MARK: [u8; 4] = [0; 4];
const STORED: u32 = 1 << 31;

/// The size class of the blocks written, and their bytes.
const WRITTEN_BLOCKS: (u8, usize) = (0x40, 64 << 10);
/// LZ4 makes at most 255 bytes of one byte.
const MAX_RATIO: usize = 255;
/// The only level at which Kafka uses the fast compressor.
const FAST_LEVEL: i32 = 9;

pub(super) fn decompress(payload: &[u8], magic: i8, arena: &mut Arena) -> Result<usize, Fault> {
    let mut blocks = Lz4Blocks::open(payload, magic).ok_or(Fault::Undecodable)?;
    let mut bound = 0usize;
    let mut ahead = blocks.clone();
    while let Some(block) = ahead.next_block()? {
        if block.is_empty() {
            return Err(Fault::Unusual);
        }
        bound = bound.saturating_add(block.max_inflated);
    }
    arena.room(0, bound);

    let mut written = 0usize;
    while let Some(Lz4Block { bytes, is_stored, max_inflated }) = blocks.next_block()? {
        if is_stored {
            arena.exactly(written, max_inflated)?.copy_from_slice(bytes);
            written = written.saturating_add(max_inflated);
            continue;
        }
        let out = arena.room(written, max_inflated);
        let room = out.len().min(max_inflated);
        match decompress_to_buffer(bytes, Some(room as i32), out) {
            Ok(size) => written = written.saturating_add(size),
            // A block that does not fit below the bound cannot be told from a damaged one.
            Err(_) if room < max_inflated => return Err(Fault::TooLarge),
            Err(_) => return Err(Fault::Undecodable),
        }
    }
    if !blocks.rest.is_empty() {
        arena.note(ClientFault::Lz4Tail);
    }
    // None is declared by 0, too.
    if blocks.content_size > 0 && blocks.content_size != written as u64 {
        arena.note(ClientFault::Lz4Size);
    }
    let checksum = blocks.content_checksum;
    if checksum.is_some_and(|stored| stored != XxHash32::oneshot(0, arena.written(written))) {
        arena.note(ClientFault::Lz4Checksum);
    }
    Ok(written)
}

pub(super) struct Lz4Block<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) is_stored: bool,
    /// Bytes it can inflate to at most.
    pub(super) max_inflated: usize,
}

impl Lz4Block<'_> {
    /// Whether the block inflates to nothing: one token that stands for no literals ends it.
    fn is_empty(&self) -> bool {
        !self.is_stored && matches!(self.bytes, [0..=0x0f])
    }
}

/// The blocks of one frame.
#[derive(Clone)]
pub(super) struct Lz4Blocks<'a> {
    flags: u8,
    block_bytes: usize,
    rest: &'a [u8],
    /// That in the header, which is not verified; 0 for none.
    content_size: u64,
    /// That at the end, which is not verified.
    content_checksum: Option<u32>,
}

impl<'a> Lz4Blocks<'a> {
    pub(super) fn open(payload: &'a [u8], magic: i8) -> Option<Self> {
        let descriptor = payload.strip_prefix(&MAGIC)?;
        let &[flags, sizes] = descriptor.first_chunk()?;
        if flags & VERSION_MASK != VERSION
            || flags & RESERVED != 0
            || flags & INDEPENDENT == 0
            || sizes & 0x8f != 0
            || sizes >> 4 < 4
        {
            return None;
        }
        let length = if flags & CONTENT_SIZE == 0 { 2 } else { 10 };
        let (covered, behind) = descriptor.split_at_checked(length)?;
        let (&checksum, rest) = behind.split_first()?;
        if magic > 0 && checksum != header_checksum(covered) {
            return None;
        }
        let size = covered.get(2..).and_then(|declared| declared.first_chunk());
        let content_size = size.map_or(0, |declared| u64::from_le_bytes(*declared));
        let block_bytes = match sizes >> 4 {
            4 => 64 << 10,
            5 => 256 << 10,
            6 => 1 << 20,
            _ => 4 << 20,
        };
        Some(Self { flags, block_bytes, rest, content_size, content_checksum: None })
    }

    /// The next block, or nothing at the end mark.
    pub(super) fn next_block(&mut self) -> Result<Option<Lz4Block<'a>>, Fault> {
        let word = self.word()?;
        let length = (word & !STORED) as usize;
        if length == 0 {
            if self.flags & CONTENT_CHECKSUM != 0 {
                self.content_checksum = Some(self.word()?);
            }
            return Ok(None);
        }
        if length > self.block_bytes {
            return Err(Fault::Undecodable);
        }
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Fault::Undecodable)?;
        self.rest = rest;
        if self.flags & BLOCK_CHECKSUM != 0 && self.word()? != XxHash32::oneshot(0, bytes) {
            return Err(Fault::Undecodable);
        }
        let is_stored = word & STORED != 0;
        let max_inflated =
            if is_stored { length } else { self.block_bytes.min(length.saturating_mul(MAX_RATIO)) };
        Ok(Some(Lz4Block { bytes, is_stored, max_inflated }))
    }

    fn word(&mut self) -> Result<u32, Fault> {
        let (word, rest) = self.rest.split_first_chunk().ok_or(Fault::Undecodable)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*word))
    }
}

fn header_checksum(descriptor: &[u8]) -> u8 {
    (XxHash32::oneshot(0, descriptor) >> 8) as u8
}

#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "positions in `out`, which is resized to hold each block before it is written"
)]
pub(super) fn compress(level: i32, magic: i8, payload: &[u8]) -> Option<Vec<u8>> {
    let mode = match level {
        FAST_LEVEL => CompressionMode::DEFAULT,
        _ => CompressionMode::HIGHCOMPRESSION(level),
    };
    let (size_class, block_bytes) = WRITTEN_BLOCKS;
    let mut out = Vec::with_capacity(16 + payload.len() / 2);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[VERSION | INDEPENDENT, size_class]);
    let covered = if magic > 0 { &out[MAGIC.len()..] } else { &out[..] };
    let checksum = header_checksum(covered);
    out.push(checksum);
    for block in payload.chunks(block_bytes) {
        let start = out.len();
        out.resize(start + 4 + compress_bound(block.len()).ok()?, 0);
        let body = &mut out[start + 4..];
        let length = compress_to_buffer(block, Some(mode), false, body).ok()?;
        let (length, word) = if length < block.len() {
            (length, length as u32)
        } else {
            body[..block.len()].copy_from_slice(block);
            (block.len(), block.len() as u32 | STORED)
        };
        out[start..start + 4].copy_from_slice(&word.to_le_bytes());
        out.truncate(start + 4 + length);
    }
    out.extend_from_slice(&END_MARK);
    Some(out)
}
