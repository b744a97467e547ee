//! gzip (RFC 1952) as Java's `GZIPInputStream` reads it.
//!
//! ```text
//! 1f 8b │ 08 │flags│ mtime (4) │xfl│os│[extra][name 0][comment 0][crc16]│ deflate… │crc32│size│
//! ```
//!
//! Members may follow one another. Bytes that follow a complete member and are no header are ignored;
//! after a valid header the member must be valid too. Header checksums are verified, reserved flags
//! are ignored. libdeflate does the reverse of both, so headers are read here.

use std::borrow::Cow;

use ottla_kernels::gzip::{Decompressor, GzipError, Member, crc32};

use super::arena::{Arena, Fault};
use crate::clients::ClientFault;
use crate::limits::KEPT_ARENA_BYTES;

/// Deflate makes at most 258 bytes of two bits.
const MAX_RATIO: usize = 1032;
/// A header and a trailer: of bytes that it has read, Java does not look for another member in this
/// many or fewer.
pub(super) const MIN_MEMBER_BYTES: usize = 18;
/// The smallest room that a member is given.
const MIN_ROOM: usize = 256;

/// A declared size up to this part of the bound, or that the arena keeps, is tried. What does not fit
/// is tried again with all of the bound, so that a size that lies costs little.
const TRIED_PART: usize = 8;

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
    let likely = declared.min(payload.len().saturating_mul(MAX_RATIO)).max(MIN_ROOM);

    let mut payload = Cow::Borrowed(payload);
    let (mut at, mut written) = (0usize, 0usize);
    let (mut flags, _) = header(&payload).ok_or(Fault::Undecodable)?;
    loop {
        if flags & RESERVED != 0 {
            arena.note(ClientFault::GzipFlags);
            // libdeflate refuses these. The copy is made once, whatever the number of members.
            let byte = payload.to_mut().get_mut(at.saturating_add(FLAGS_AT));
            *byte.ok_or(Fault::Undecodable)? &= !RESERVED;
        }
        let input = payload.get(at..).ok_or(Fault::Undecodable)?;
        let member = member(decompressor, input, arena, written, likely)?;
        at = at.saturating_add(member.used);
        written = written.saturating_add(member.written);
        let rest = payload.get(at..).ok_or(Fault::Undecodable)?;
        match header(rest) {
            Some((next, _)) if rest.len() > MIN_MEMBER_BYTES => {
                arena.note(ClientFault::GzipMembers);
                flags = next;
            }
            // Java looks for another member here only if it has not read these bytes so far.
            Some(_) => {
                arena.note(ClientFault::GzipTail);
                return Err(Fault::Unusual);
            }
            None => {
                if rest.iter().any(|&byte| byte != 0) {
                    arena.note(ClientFault::GzipTail);
                }
                return Ok(written);
            }
        }
    }
}

/// Inflates one member behind the first `written` bytes of the arena.
fn member(
    decompressor: &mut Decompressor,
    input: &[u8],
    arena: &mut Arena,
    written: usize,
    likely: usize,
) -> Result<Member, Fault> {
    // Memory that nothing was written to costs nothing.
    let left = arena.left(written);
    let is_tried = likely <= KEPT_ARENA_BYTES.max(left / TRIED_PART);
    let mut wanted = if is_tried { likely } else { left };
    loop {
        let out = arena.room(written, wanted);
        let room = out.len();
        match decompressor.member(input, out) {
            Ok(member) => return Ok(member),
            Err(GzipError::BadData) => return Err(Fault::Undecodable),
            Err(GzipError::InsufficientSpace) if room == left => return Err(Fault::TooLarge),
            Err(GzipError::InsufficientSpace) => wanted = left,
        }
    }
}

/// The flags of a member whose header Java accepts, and the bytes of that header.
pub(super) fn header(input: &[u8]) -> Option<(u8, usize)> {
    let (&[0x1f, 0x8b, 8, flags, _, _, _, _, _, _], mut rest) = input.split_first_chunk::<10>()?
    else {
        return None;
    };
    if flags & EXTRA != 0 {
        let (length, behind) = rest.split_first_chunk()?;
        rest = behind.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let (_, behind) = rest.split_at(rest.iter().position(|&byte| byte == 0)?);
            rest = behind.get(1..)?;
        }
    }
    if flags & HEADER_CRC != 0 {
        let covered = input.get(..input.len().checked_sub(rest.len())?)?;
        let (stored, behind) = rest.split_first_chunk()?;
        (u16::from_le_bytes(*stored) == crc32(0, covered) as u16).then_some(())?;
        rest = behind;
    }
    Some((flags, input.len().checked_sub(rest.len())?))
}
