//! Zstandard (RFC 8878) as zstd-jni's input stream reads it: frames one after another, skippable
//! ones among them, and nothing else up to the last byte. No frame at all is an empty payload.
//!
//! Each frame is decoded in one go. The streaming call is no faster, and would take memory for the
//! window a header asks for.

use zstd_safe::zstd_sys::ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall;
use zstd_safe::{CCtx, CParameter, DCtx, compress_bound};
use zstd_safe::{find_frame_compressed_size, get_frame_content_size};

use super::{Arena, Fault, GROWTH};

const MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const SINGLE_SEGMENT: u8 = 0x20;
/// The largest window zstd's streaming decoder takes unless told otherwise, as Kafka uses it.
const MAX_WINDOW: u64 = (1 << 27) + 1;
/// Room taken on a frame's word, for each of its bytes. There is no ratio zstd cannot reach.
const BELIEVED_RATIO: usize = 64;
/// Room for the smallest frame, unless the bound is smaller.
const LEAST_ROOM: usize = 1 << 12;

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
        let (mut rest, mut made) = (payload, 0);
        while !rest.is_empty() {
            let length = find_frame_compressed_size(rest).map_err(|_| Fault::Undecodable)?;
            let (frame, after) = rest.split_at_checked(length).ok_or(Fault::Undecodable)?;
            made += self.frame(frame, arena, made)?;
            rest = after;
        }
        Ok(made)
    }

    fn frame(&mut self, frame: &[u8], arena: &mut Arena, made: usize) -> Result<usize, Fault> {
        if window(frame).is_some_and(|window| window > MAX_WINDOW) {
            return Err(Fault::Undecodable);
        }
        let left = arena.left(made);
        let declared = get_frame_content_size(frame).map_err(|_| Fault::Undecodable)?;
        let most = match declared.map(usize::try_from) {
            None => left,
            Some(Ok(size)) if size <= left => size,
            Some(_) => return Err(Fault::TooLarge),
        };
        let ratio = if declared.is_some() { BELIEVED_RATIO } else { GROWTH };
        let mut wanted = frame.len().saturating_mul(ratio);
        loop {
            wanted = wanted.max(LEAST_ROOM).min(most);
            let out = arena.room(made, wanted);
            let room = out.len();
            match self.decoder.decompress(out, frame) {
                Ok(written) => return Ok(written),
                Err(code) if code.wrapping_neg() != ZSTD_error_dstSize_tooSmall as usize => {
                    return Err(Fault::Undecodable);
                }
                Err(_) if room >= most && declared.is_some() => return Err(Fault::Undecodable),
                Err(_) if room >= most => return Err(Fault::TooLarge),
                Err(_) => wanted = room.saturating_mul(GROWTH),
            }
        }
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

/// The window a frame's header asks for, where it says so itself.
pub(super) fn window(frame: &[u8]) -> Option<u64> {
    let &[descriptor, window] = frame.strip_prefix(MAGIC)?.first_chunk()?;
    if descriptor & SINGLE_SEGMENT != 0 {
        return None;
    }
    let base = 1u64 << (10 + (window >> 3));
    Some(base + base / 8 * u64::from(window & 7))
}
