//! LZ4 frames, in the subset Kafka's own stream classes speak.
//!
//! ```text
//! 04 22 4d 18 │flags│block size│[size (8)]│HC│ ( length (4) │ block │[checksum] )… │ 0 │[checksum]
//! ```
//!
//! Blocks are independent. What follows the end mark is ignored, a missing end mark is a fault. A
//! content checksum must be there if flagged and is not verified; a content size is skipped.
//!
//! Producers of magic 0 computed the header checksum HC over the frame magic too. Readers of
//! magic 0 therefore skip it, and writers go on writing it wrong (KAFKA-3160).
//!
//! The frame is read by hand because liblz4's frame functions copy each block once more.

use lz4::block::{CompressionMode, compress_bound, compress_to_buffer, decompress_to_buffer};
use twox_hash::XxHash32;

use super::{Arena, Fault};

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

/// The size class and bytes of the blocks written.
const WRITTEN_BLOCKS: (u8, usize) = (0x40, 64 << 10);
/// LZ4 makes at most 255 bytes of one.
const MAX_RATIO: usize = 255;
/// The one level at which Kafka takes the fast compressor.
const FAST_LEVEL: i32 = 9;

pub(super) fn decompress(payload: &[u8], magic: i8, arena: &mut Arena) -> Result<usize, Fault> {
    let mut blocks = Blocks::open(payload, magic).ok_or(Fault::Undecodable)?;
    let mut bound = 0usize;
    let mut ahead = blocks.clone();
    while let Some(block) = ahead.next_block()? {
        bound = bound.saturating_add(block.most);
    }
    arena.room(0, bound);

    let mut made = 0;
    while let Some(Block { bytes, is_stored, most }) = blocks.next_block()? {
        if is_stored {
            arena.exactly(made, most)?.copy_from_slice(bytes);
            made += most;
            continue;
        }
        let out = arena.room(made, most);
        let room = out.len().min(most);
        match decompress_to_buffer(bytes, Some(room as i32), out) {
            Ok(written) => made += written,
            // A block that does not fit below the bound cannot be told from a damaged one.
            Err(_) if room < most => return Err(Fault::TooLarge),
            Err(_) => return Err(Fault::Undecodable),
        }
    }
    Ok(made)
}

pub(super) struct Block<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) is_stored: bool,
    /// What it can inflate to at most.
    pub(super) most: usize,
}

/// The blocks of one frame.
#[derive(Clone)]
pub(super) struct Blocks<'a> {
    flags: u8,
    block_bytes: usize,
    rest: &'a [u8],
}

impl<'a> Blocks<'a> {
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
        let checksum = *descriptor.get(length)?;
        if magic > 0 && checksum != header_checksum(&descriptor[..length]) {
            return None;
        }
        let block_bytes = 1 << (2 * (sizes >> 4) + 8);
        Some(Self { flags, block_bytes, rest: &descriptor[length + 1..] })
    }

    /// The next block, or nothing at the end mark.
    pub(super) fn next_block(&mut self) -> Result<Option<Block<'a>>, Fault> {
        let word = self.word()?;
        let length = (word & !STORED) as usize;
        if length == 0 {
            if self.flags & CONTENT_CHECKSUM != 0 {
                self.word()?;
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
        let most = if is_stored { length } else { self.block_bytes.min(length * MAX_RATIO) };
        Ok(Some(Block { bytes, is_stored, most }))
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
