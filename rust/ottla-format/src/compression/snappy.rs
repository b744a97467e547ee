//! Snappy as snappy-java's streams read and write it, in the framing called xerial.
//!
//! ```text
//! 82 'SNAPPY' 00 │ version (4) │ compatible (4) │ ( length (4) │ raw block )…
//! ```
//!
//! A payload that does not begin with these eight bytes is one raw block. The header may appear again
//! wherever a length may, so streams can be concatenated; its version is checked only there. One to
//! three bytes at the end are ignored.

use super::arena::{Arena, Fault};
use crate::clients::ClientFault;
use crate::header::read_i32;

const MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
const HEADER_BYTES: usize = 16;
/// The version that is written, and the lowest that is read inside a stream.
const VERSION: i32 = 1;
/// The versions in a header that is written.
const VERSIONS: [u8; 8] = [0, 0, 0, VERSION as u8, 0, 0, 0, VERSION as u8];
/// Bytes that the writers put into a block.
const BLOCK_BYTES: usize = 32 << 10;
/// At best, three bytes of a raw block stand for a copy of 64 bytes.
const MAX_RATIO: usize = 64 / 3 + 1;

/// The contexts of one thread.
#[derive(Default)]
pub(super) struct SnappyCodec {
    decoder: snap::raw::Decoder,
    /// Made when something is first compressed: it holds a table.
    encoder: Option<Box<snap::raw::Encoder>>,
}

impl SnappyCodec {
    pub(super) fn decompress(&mut self, payload: &[u8], arena: &mut Arena) -> Result<usize, Fault> {
        let mut blocks = SnappyBlocks::open(payload);
        if !blocks.is_raw() && payload.get(MAGIC.len()..HEADER_BYTES) != Some(&VERSIONS[..]) {
            arena.note(ClientFault::SnappyVersion);
        }
        let mut ahead = blocks.clone();
        let mut total = 0usize;
        while let Some(block) = ahead.next_block()? {
            total = total.saturating_add(declared_length(block)?);
        }
        if ahead.has_header_inside {
            arena.note(ClientFault::SnappyStreams);
        }
        if ahead.has_paused {
            return Err(Fault::Unusual);
        }
        if !ahead.rest.is_empty() {
            arena.note(ClientFault::SnappyTail);
        }
        arena.exactly(0, total)?;

        let mut written = 0usize;
        while let Some(block) = blocks.next_block()? {
            let out = arena.exactly(written, declared_length(block)?)?;
            let size = self.decoder.decompress(block, out).map_err(|_| Fault::Undecodable)?;
            written = written.saturating_add(size);
        }
        Ok(written)
    }

    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "positions in `out`, which is resized to hold each block before it is written"
    )]
    pub(super) fn compress(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let encoder = self.encoder.get_or_insert_with(|| Box::new(snap::raw::Encoder::new()));
        let mut out = Vec::with_capacity(HEADER_BYTES + payload.len() / 2);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&VERSION.to_be_bytes());
        for block in payload.chunks(BLOCK_BYTES) {
            let start = out.len();
            out.resize(start + 4 + snap::raw::max_compress_len(block.len()), 0);
            let length = encoder.compress(block, &mut out[start + 4..]).ok()?;
            out[start..start + 4].copy_from_slice(&(length as u32).to_be_bytes());
            out.truncate(start + 4 + length);
        }
        Some(out)
    }
}

/// The inflated length at the start of a raw block, if its bytes can make that much.
pub(super) fn declared_length(block: &[u8]) -> Result<usize, Fault> {
    snap::raw::decompress_len(block)
        .ok()
        .filter(|&length| !block.is_empty() && length <= block.len().saturating_mul(MAX_RATIO))
        .ok_or(Fault::Undecodable)
}

/// The raw blocks of a payload.
#[derive(Clone)]
pub(super) struct SnappyBlocks<'a> {
    rest: &'a [u8],
    is_raw: bool,
    /// A header was taken for the end.
    has_paused: bool,
    /// A header was read behind the first.
    has_header_inside: bool,
}

impl<'a> SnappyBlocks<'a> {
    pub(super) fn open(payload: &'a [u8]) -> Self {
        match payload.split_at_checked(HEADER_BYTES) {
            Some((header, rest)) if header.starts_with(MAGIC) => {
                Self { rest, is_raw: false, has_paused: false, has_header_inside: false }
            }
            _ => Self { rest: payload, is_raw: true, has_paused: false, has_header_inside: false },
        }
    }

    /// Whether the payload is one raw block.
    pub(super) fn is_raw(&self) -> bool {
        self.is_raw
    }

    /// The next block; `None` at the end, as it is for now.
    pub(super) fn next_block(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        if self.is_raw {
            // Nothing follows: fewer bytes than a length has.
            self.is_raw = false;
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        while self.rest.starts_with(&MAGIC[..4]) {
            self.has_header_inside = true;
            // snappy-java takes these four bytes for a header, and then reads all of it.
            let (header, rest) =
                self.rest.split_at_checked(HEADER_BYTES).ok_or(Fault::Undecodable)?;
            if !header.starts_with(MAGIC) {
                // It takes such a header for the end, and goes on behind it when it is called again.
                self.rest = rest;
                self.has_paused = true;
                return Ok(None);
            }
            if read_i32(header, MAGIC.len()).is_none_or(|version| version < VERSION) {
                return Err(Fault::Undecodable);
            }
            self.rest = rest;
        }
        let Some((length, rest)) = self.rest.split_first_chunk() else { return Ok(None) };
        let length = i32::from_be_bytes(*length);
        let length = usize::try_from(length).map_err(|_| Fault::Undecodable)?;
        let (block, rest) = rest.split_at_checked(length).ok_or(Fault::Undecodable)?;
        self.rest = rest;
        Ok(Some(block))
    }
}
