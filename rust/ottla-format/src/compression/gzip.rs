//! gzip (RFC 1952) as Java's `GZIPInputStream` reads it.
//!
//! ```text
//! 1f 8b │ 08 │flags│ mtime (4) │xfl│os│[extra][name 0][comment 0][crc16]│ deflate… │crc32│size│
//! ```
//!
//! Members may follow one another. What comes after a complete member and is no header is ignored;
//! after a good header the member must be good too. Header checksums are verified, reserved flags
//! are not looked at. libdeflate does both the other way round, so headers are read here.

use std::borrow::Cow;

use ottla_kernels::gzip::{Decompressor, GzipError};

use super::{Arena, Fault};

/// Deflate makes at most 258 bytes of two bits.
const MAX_RATIO: usize = 1032;
/// A header and a trailer: Java does not look for a member in what is no longer than both.
pub(super) const LEAST_MEMBER: usize = 18;

/// A member that does not fit is tried again with this times the room, so that all tries together
/// cost a third more than the last.
const GROWTH: usize = 4;

const HEADER_CRC: u8 = 0x02;
const EXTRA: u8 = 0x04;
const NAME: u8 = 0x08;
const COMMENT: u8 = 0x10;
const RESERVED: u8 = 0xe0;
const FLAGS_AT: usize = 3;

pub(super) fn decompress(
    decompressor: &mut Decompressor,
    payload: &[u8],
    arena: &mut Arena,
) -> Result<usize, Fault> {
    // The last four bytes hold the size, unless something follows the member.
    let declared = payload.last_chunk().map_or(0, |size| u32::from_le_bytes(*size) as usize);
    let likely = declared.min(payload.len().saturating_mul(MAX_RATIO)).max(256);

    let mut payload = Cow::Borrowed(payload);
    let (mut at, mut made) = (0, 0);
    let (mut flags, _) = header(&payload).ok_or(Fault::Undecodable)?;
    loop {
        if flags & RESERVED != 0 {
            // libdeflate refuses these. The copy is made once, whatever the number of members.
            payload.to_mut()[at + FLAGS_AT] &= !RESERVED;
        }
        let (used, written) = member(decompressor, &payload[at..], arena, made, likely)?;
        at += used;
        made += written;
        let rest = &payload[at..];
        match header(rest) {
            Some((next, _)) if rest.len() > LEAST_MEMBER => flags = next,
            _ => return Ok(made),
        }
    }
}

fn member(
    decompressor: &mut Decompressor,
    input: &[u8],
    arena: &mut Arena,
    made: usize,
    likely: usize,
) -> Result<(usize, usize), Fault> {
    let mut wanted = likely;
    loop {
        let out = arena.room(made, wanted);
        let room = out.len();
        match decompressor.member(input, out) {
            Ok(done) => return Ok((done.used, done.written)),
            Err(GzipError::BadData) => return Err(Fault::Undecodable),
            Err(GzipError::InsufficientSpace) if room == arena.left(made) => {
                return Err(Fault::TooLarge);
            }
            Err(GzipError::InsufficientSpace) => wanted = room.max(256).saturating_mul(GROWTH),
        }
    }
}

/// The flags of a member whose header Java takes, and the bytes of that header.
pub(super) fn header(input: &[u8]) -> Option<(u8, usize)> {
    let &[0x1f, 0x8b, 8, flags, _, _, _, _, _, _] = input.first_chunk::<10>()? else {
        return None;
    };
    let mut at = 10;
    if flags & EXTRA != 0 {
        let length = input.get(at..)?.first_chunk()?;
        at += 2 + usize::from(u16::from_le_bytes(*length));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            at += 1 + input.get(at..)?.iter().position(|&byte| byte == 0)?;
        }
    }
    if flags & HEADER_CRC != 0 {
        let stored = u16::from_le_bytes(*input.get(at..)?.first_chunk()?);
        (stored == crc32fast::hash(&input[..at]) as u16).then_some(())?;
        at += 2;
    }
    (at <= input.len()).then_some((flags, at))
}
