//! Zstandard (RFC 8878) as zstd-jni's input stream reads it: frames one after another, skippable
//! ones among them. No frame at all is an empty payload.
//!
//! ```text
//! 28 b5 2f fd │flags│[window][dictionary][content size]│ ( header (3) │ block )… │[checksum (4)]
//! ```
//!
//! Each frame is measured by its block headers and then decoded in one go: the streaming call is no
//! faster, and takes memory for the window that a header asks for. What that call would refuse of
//! windows and block sizes is refused here.
//!
//! zstd-jni notices that a payload ends inside a frame only when it had to read on for that frame.
//! So the begin of a frame after a whole one is ignored, if both are in the same chunk read and no
//! byte comes out of it.

use zstd_safe::zstd_sys::ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall;
use zstd_safe::{CCtx, CParameter, DCtx, compress_bound};

use super::{Arena, Fault};

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The lower half of the first byte is free.
const SKIPPABLE_MAGIC: [u8; 4] = [0x50, 0x2a, 0x4d, 0x18];
const DICTIONARY: u8 = 0x03;
const CHECKSUM: u8 = 0x04;
const RESERVED: u8 = 0x08;
const SINGLE_SEGMENT: u8 = 0x20;
const MAX_BLOCK: u64 = 128 << 10;
/// The largest window zstd's streaming decoder takes unless told otherwise, as in Kafka.
const MAX_WINDOW: u64 = (1 << 27) + 1;
/// What Kafka reads at a time. zstd decodes a frame in one go, without looking at its window, where
/// it is known to fit.
const OUTPUT_CHUNK: u64 = 16 << 10;
/// What zstd-jni reads at a time: one block and its header.
const SOURCE_CHUNK: usize = MAX_BLOCK as usize + 3;

/// Kept, because a new one for each batch costs a seventh of the decoding.
pub(super) struct Contexts {
    decoder: DCtx<'static>,
    encoder: CCtx<'static>,
}

impl Contexts {
    pub(super) fn new() -> Self {
        Self { decoder: DCtx::create(), encoder: CCtx::create() }
    }

    pub(super) fn decompress(&mut self, payload: &[u8], arena: &mut Arena) -> Result<usize, Fault> {
        let (mut at, mut made) = (0, 0);
        while at < payload.len() {
            let (length, most) = match measure(&payload[at..])? {
                Frame::Whole { length, most } => (length, most),
                Frame::Cut { is_silent } => {
                    let is_unnoticed =
                        at > 0 && (at - 1) / SOURCE_CHUNK == (payload.len() - 1) / SOURCE_CHUNK;
                    return if is_silent && is_unnoticed {
                        Ok(made)
                    } else {
                        Err(Fault::Undecodable)
                    };
                }
            };
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let out = arena.room(made, most);
            let room = out.len();
            match self.decoder.decompress(out, &payload[at..at + length]) {
                Ok(written) => made += written,
                Err(code)
                    if room < most
                        && code.wrapping_neg() == ZSTD_error_dstSize_tooSmall as usize =>
                {
                    return Err(Fault::TooLarge);
                }
                Err(_) => return Err(Fault::Undecodable),
            }
            at += length;
        }
        Ok(made)
    }

    /// A frame without content size and checksum, as a stream of unknown length gets.
    pub(super) fn compress(&mut self, level: i32, payload: &[u8]) -> Option<Vec<u8>> {
        for parameter in [
            CParameter::CompressionLevel(level),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
        ] {
            self.encoder.set_parameter(parameter).ok()?;
        }
        let mut out = vec![0; compress_bound(payload.len())];
        let length = self.encoder.compress2(&mut out[..], payload).ok()?;
        out.truncate(length);
        Some(out)
    }
}

enum Frame {
    Whole {
        /// Its bytes.
        length: usize,
        /// What it can make at most.
        most: u64,
    },
    /// The payload ends inside it.
    Cut {
        /// Nothing comes out before.
        is_silent: bool,
    },
}

/// Reads the headers of the frame at the start of `input` and of its blocks.
fn measure(input: &[u8]) -> Result<Frame, Fault> {
    const CUT_IN_HEADER: Frame = Frame::Cut { is_silent: true };
    let known = input.len().min(4);
    if input[..known] != MAGIC[..known] {
        return measure_skippable(input);
    }
    let Some(&flags) = input.get(4) else { return Ok(CUT_IN_HEADER) };
    let is_single = flags & SINGLE_SEGMENT != 0;
    let window_at = 5;
    let dictionary_at = window_at + usize::from(!is_single);
    let size_at = dictionary_at + [0, 1, 2, 4][usize::from(flags & DICTIONARY)];
    let size_bytes = [usize::from(is_single), 2, 4, 8][usize::from(flags >> 6)];
    let mut at = size_at + size_bytes;
    if input.len() < at {
        return Ok(CUT_IN_HEADER);
    }
    let has_dictionary = input[dictionary_at..size_at].iter().any(|&byte| byte != 0);
    if flags & RESERVED != 0 || has_dictionary {
        return Err(Fault::Undecodable);
    }
    let mut size = [0; 8];
    size[..size_bytes].copy_from_slice(&input[size_at..at]);
    let size = u64::from_le_bytes(size) + if size_bytes == 2 { 256 } else { 0 };
    let declared = (size_bytes > 0).then_some(size);
    let window = if is_single { size } else { window(input[window_at]) };
    let max_block = window.min(MAX_BLOCK);
    let mut is_streamable = window <= MAX_WINDOW;
    let mut most = 0u64;
    let mut made_some = false;
    loop {
        let Some(&[a, b, c]) = input[at..].first_chunk() else {
            return Ok(Frame::Cut { is_silent: is_streamable && !made_some });
        };
        at += 3;
        let header = u32::from_le_bytes([a, b, c, 0]);
        let (is_last, kind, size) = (header & 1 != 0, header >> 1 & 3, u64::from(header >> 3));
        let (stored, made) = match kind {
            0 => (size, size),
            1 => (1, size),
            2 => (size, max_block),
            _ => return Err(Fault::Undecodable),
        };
        is_streamable &= size <= max_block;
        let left = (input.len() - at) as u64;
        if left < stored {
            // A raw block comes out as far as it is there.
            let is_silent = is_streamable && !made_some && (kind != 0 || left == 0);
            return Ok(Frame::Cut { is_silent });
        }
        at += stored as usize;
        most += made;
        made_some |= made > 0;
        if is_last {
            break;
        }
    }
    at += if flags & CHECKSUM == 0 { 0 } else { 4 };
    if at > input.len() {
        return Ok(Frame::Cut { is_silent: is_streamable && !made_some });
    }
    if !is_streamable && declared.is_none_or(|size| size > OUTPUT_CHUNK) {
        return Err(Fault::Undecodable);
    }
    Ok(Frame::Whole { length: at, most: declared.map_or(most, |size| size.min(most)) })
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
    let size = input.get(4..).and_then(|rest| rest.first_chunk());
    let length = size.map(|size| 8 + u64::from(u32::from_le_bytes(*size)));
    Ok(match length {
        Some(length) if length <= input.len() as u64 => {
            Frame::Whole { length: length as usize, most: 0 }
        }
        _ => Frame::Cut { is_silent: true },
    })
}

/// The window of a frame that is not a single segment: an exponent and an eighth's multiple.
fn window(descriptor: u8) -> u64 {
    let base = 1u64 << (10 + (descriptor >> 3));
    base + base / 8 * u64::from(descriptor & 7)
}

/// The window a frame's header asks for, where it says so itself.
pub(super) fn frame_window(frame: &[u8]) -> Option<u64> {
    let &[descriptor, size] = frame.strip_prefix(&MAGIC)?.first_chunk()?;
    (descriptor & SINGLE_SEGMENT == 0).then(|| window(size))
}
