//! Zstandard (RFC 8878) as zstd-jni's input stream reads it: frames one after another, skippable
//! ones among them. No frame at all is an empty payload.
//!
//! ```text
//! 28 b5 2f fd │flags│[window][dictionary][content size]│ ( header (3) │ block )… │[checksum (4)]
//! ```
//!
//! Each frame is measured by its block headers and then decoded in one call: the streaming call is no
//! faster, and allocates the window that a header asks for. What that call would refuse of windows
//! and block sizes is refused here; a frame with a compressed block of no bytes is left to it.
//!
//! zstd-jni notices that a payload ends inside a frame only if it has read on for that frame. So a
//! frame that is cut behind a whole one may be read as far as it goes, which is left to the stream, too.

use zstd_safe::zstd_sys::ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall;
use zstd_safe::{CCtx, CParameter, DCtx, compress_bound};

use super::arena::{Arena, Fault};
use crate::clients::ClientFault;

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The lower four bits of the first byte may be anything.
const SKIPPABLE_MAGIC: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];
const DICTIONARY: u8 = 0x03;
const CHECKSUM: u8 = 0x04;
const RESERVED: u8 = 0x08;
const SINGLE_SEGMENT: u8 = 0x20;
const MAX_BLOCK: u64 = 128 << 10;
/// The largest window that zstd's streaming decoder accepts by default, as in Kafka.
const MAX_WINDOW: u64 = (1 << 27) + 1;
/// Bytes that Kafka reads at a time. zstd decodes a frame that is known to fit in one call, without
/// looking at its window.
const OUTPUT_CHUNK: u64 = 16 << 10;

/// The contexts of one thread: a new one for each batch would cost a seventh of the decoding.
#[derive(Default)]
pub(super) struct ZstdCodec {
    decoder: Option<DCtx<'static>>,
    encoder: Option<CCtx<'static>>,
}

impl ZstdCodec {
    /// A new decoder, for a stream: one that was used answers otherwise to some damaged frames.
    pub(super) fn decoder(&mut self) -> &mut DCtx<'static> {
        self.decoder.insert(DCtx::create())
    }

    pub(super) fn decompress(&mut self, payload: &[u8], arena: &mut Arena) -> Result<usize, Fault> {
        let decoder = self.decoder.get_or_insert_with(DCtx::create);
        let (mut rest, mut written) = (payload, 0usize);
        while !rest.is_empty() {
            let frame = measure(rest).inspect_err(|fault| {
                if *fault == Fault::Unusual {
                    arena.note(ClientFault::ZstdEmptyBlock);
                }
            });
            let (length, max_inflated) = match frame? {
                Frame::Whole { length, max_inflated } => (length, max_inflated),
                Frame::Truncated if rest.len() < payload.len() => return Err(Fault::Unusual),
                Frame::Truncated => return Err(Fault::Undecodable),
            };
            let max_inflated = usize::try_from(max_inflated).unwrap_or(usize::MAX);
            let (frame, behind) = rest.split_at_checked(length).ok_or(Fault::Undecodable)?;
            let out = arena.room(written, max_inflated);
            let room = out.len();
            match decoder.decompress(out, frame) {
                Ok(size) => written = written.saturating_add(size),
                Err(code)
                    if room < max_inflated
                        && code.wrapping_neg() == ZSTD_error_dstSize_tooSmall as usize =>
                {
                    return Err(Fault::TooLarge);
                }
                Err(_) => return Err(Fault::Undecodable),
            }
            rest = behind;
        }
        Ok(written)
    }

    /// A frame without content size and checksum, as for a stream of unknown length.
    pub(super) fn compress(&mut self, level: i32, payload: &[u8]) -> Option<Vec<u8>> {
        let encoder = self.encoder.get_or_insert_with(CCtx::create);
        for parameter in [
            CParameter::CompressionLevel(level),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
        ] {
            encoder.set_parameter(parameter).ok()?;
        }
        let mut out = vec![0; compress_bound(payload.len())];
        let length = encoder.compress2(&mut out[..], payload).ok()?;
        out.truncate(length);
        Some(out)
    }
}

/// What the headers of a frame and its blocks say.
enum Frame {
    Whole {
        /// Bytes of the frame.
        length: usize,
        /// Bytes it can inflate to at most.
        max_inflated: u64,
    },
    /// The payload ends inside the frame.
    Truncated,
}

/// Reads the headers of the frame at the start of `input` and of its blocks.
fn measure(input: &[u8]) -> Result<Frame, Fault> {
    if input.iter().zip(MAGIC).any(|(&byte, magic)| byte != magic) {
        return measure_skippable(input);
    }
    let Some(header) = FrameHeader::read(input)? else {
        return Ok(Frame::Truncated);
    };
    let max_block = header.window.min(MAX_BLOCK);
    let mut is_streamable = header.window <= MAX_WINDOW;
    let mut rest = header.blocks;
    let mut max_inflated = 0u64;
    loop {
        let Some((block, bytes)) = Block::read(rest, max_block)? else {
            return Ok(Frame::Truncated);
        };
        if block.is_empty() {
            return Err(Fault::Unusual);
        }
        is_streamable &= block.size <= max_block;
        let Some((_, behind)) = bytes.split_at_checked(block.stored as usize) else {
            return Ok(Frame::Truncated);
        };
        rest = behind;
        max_inflated = max_inflated.saturating_add(block.max_inflated);
        if block.is_last {
            break;
        }
    }
    let checksum_bytes = if header.has_checksum { size_of::<u32>() } else { 0 };
    let Some((_, behind)) = rest.split_at_checked(checksum_bytes) else {
        return Ok(Frame::Truncated);
    };
    if !is_streamable && header.content_size.is_none_or(|size| size > OUTPUT_CHUNK) {
        return Err(Fault::Undecodable);
    }
    let max_inflated = header.content_size.map_or(max_inflated, |size| size.min(max_inflated));
    Ok(Frame::Whole { length: input.len().saturating_sub(behind.len()), max_inflated })
}

/// The header of a frame.
struct FrameHeader<'a> {
    window: u64,
    content_size: Option<u64>,
    has_checksum: bool,
    /// The bytes behind the header.
    blocks: &'a [u8],
}

impl<'a> FrameHeader<'a> {
    /// `None` if the input, which begins with the magic, ends inside the header.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "sums of at most 18 bytes; a size of two bytes, and 256"
    )]
    fn read(input: &'a [u8]) -> Result<Option<Self>, Fault> {
        let Some(&flags) = input.get(MAGIC.len()) else { return Ok(None) };
        let is_single = flags & SINGLE_SEGMENT != 0;
        let window_at = MAGIC.len() + 1;
        let dictionary_at = window_at + usize::from(!is_single);
        let dictionary_bytes = match flags & DICTIONARY {
            3 => 4,
            bytes => usize::from(bytes),
        };
        let size_bytes = match flags >> 6 {
            0 => usize::from(is_single),
            exponent => 1 << exponent,
        };
        let size_at = dictionary_at + dictionary_bytes;
        let (Some(dictionary), Some(&descriptor), Some((size, blocks))) = (
            input.get(dictionary_at..size_at),
            input.get(window_at),
            input.get(size_at..).and_then(|rest| rest.split_at_checked(size_bytes)),
        ) else {
            return Ok(None);
        };
        if flags & RESERVED != 0 || dictionary.iter().any(|&byte| byte != 0) {
            return Err(Fault::Undecodable);
        }
        let base = if size_bytes == 2 { 256 } else { 0 };
        let size = base + size.iter().rfold(0, |size, &byte| size << 8 | u64::from(byte));
        Ok(Some(Self {
            window: if is_single { size } else { window(descriptor) },
            content_size: (size_bytes > 0).then_some(size),
            has_checksum: flags & CHECKSUM != 0,
            blocks,
        }))
    }
}

/// The header of a block.
struct Block {
    is_last: bool,
    is_compressed: bool,
    /// As the header says.
    size: u64,
    /// Bytes behind the header.
    stored: u64,
    /// Bytes it can inflate to at most.
    max_inflated: u64,
}

impl Block {
    const HEADER_BYTES: usize = 3;

    /// The header at the start of `input` and what follows it; `None` if the input is too short.
    fn read(input: &[u8], max_block: u64) -> Result<Option<(Self, &[u8])>, Fault> {
        let Some((&[a, b, c], rest)) = input.split_first_chunk::<{ Self::HEADER_BYTES }>() else {
            return Ok(None);
        };
        let header = u32::from_le_bytes([a, b, c, 0]);
        let (is_last, kind, size) = (header & 1 != 0, header >> 1 & 3, u64::from(header >> 3));
        let (stored, max_inflated) = match kind {
            0 => (size, size),
            1 => (1, size),
            2 => (size, max_block),
            _ => return Err(Fault::Undecodable),
        };
        Ok(Some((Self { is_last, is_compressed: kind == 2, size, stored, max_inflated }, rest)))
    }

    /// Whether this is a compressed block of no bytes. The format has none; the streaming call skips
    /// it, unless it decodes the whole frame in one call.
    fn is_empty(&self) -> bool {
        self.is_compressed && self.size == 0
    }
}

fn measure_skippable(input: &[u8]) -> Result<Frame, Fault> {
    let is_skippable = input
        .iter()
        .zip(SKIPPABLE_MAGIC)
        .enumerate()
        .all(|(at, (&byte, magic))| byte == magic || at == 0 && byte & 0xf0 == magic);
    if !is_skippable {
        return Err(Fault::Undecodable);
    }
    let size = input.get(MAGIC.len()..).and_then(|rest| rest.first_chunk());
    let length = size.map(|size| u64::from(u32::from_le_bytes(*size)).saturating_add(8));
    Ok(match length {
        Some(length) if length <= input.len() as u64 => {
            Frame::Whole { length: length as usize, max_inflated: 0 }
        }
        _ => Frame::Truncated,
    })
}

/// The window of a frame that is not a single segment: an exponent, and eighths to add.
#[allow(clippy::arithmetic_side_effects, reason = "the exponent is at most 41")]
fn window(descriptor: u8) -> u64 {
    let base = 1u64 << (10 + (descriptor >> 3));
    base + base / 8 * u64::from(descriptor & 7)
}
