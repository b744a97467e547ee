//! Snappy as snappy-java's streams read and write it, the framing called xerial.
//!
//! ```text
//! 82 'SNAPPY' 00 │ version (4) │ compatible (4) │ ( length (4) │ raw block )…
//! ```
//!
//! A payload that does not begin with these eight bytes is one raw block. The header may stand
//! again wherever a length may, so streams can be strung together; only there is its version looked
//! at. One to three bytes at the end are ignored.

use super::{Arena, Fault};
use crate::header::read_i32;

const MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
const HEADER_BYTES: usize = 16;
/// Version written, and the least that is read inside a stream.
const VERSION: i32 = 1;
/// What the writers put into a block.
const BLOCK_BYTES: usize = 32 << 10;
/// The best a raw block can do is a copy of 64 bytes for three.
const MAX_RATIO: usize = 64 / 3 + 1;

pub(super) struct Contexts {
    decoder: snap::raw::Decoder,
    encoder: snap::raw::Encoder,
}

impl Contexts {
    pub(super) fn new() -> Self {
        Self { decoder: snap::raw::Decoder::new(), encoder: snap::raw::Encoder::new() }
    }

    pub(super) fn decompress(&mut self, payload: &[u8], arena: &mut Arena) -> Result<usize, Fault> {
        let blocks = Blocks::open(payload);
        let mut total = 0usize;
        for block in blocks.clone() {
            total = total.saturating_add(declared_length(block?)?);
        }
        arena.exactly(0, total)?;

        let mut made = 0;
        for block in blocks {
            let block = block?;
            let out = arena.exactly(made, declared_length(block)?)?;
            made += self.decoder.decompress(block, out).map_err(|_| Fault::Undecodable)?;
        }
        Ok(made)
    }

    pub(super) fn compress(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(HEADER_BYTES + payload.len() / 2);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&VERSION.to_be_bytes());
        for block in payload.chunks(BLOCK_BYTES) {
            let start = out.len();
            out.resize(start + 4 + snap::raw::max_compress_len(block.len()), 0);
            let length = self.encoder.compress(block, &mut out[start + 4..]).ok()?;
            out[start..start + 4].copy_from_slice(&(length as u32).to_be_bytes());
            out.truncate(start + 4 + length);
        }
        Some(out)
    }
}

/// What a raw block begins with, where its bytes can make that much.
pub(super) fn declared_length(block: &[u8]) -> Result<usize, Fault> {
    snap::raw::decompress_len(block)
        .ok()
        .filter(|&length| !block.is_empty() && length <= block.len().saturating_mul(MAX_RATIO))
        .ok_or(Fault::Undecodable)
}

/// The raw blocks of a payload.
#[derive(Clone)]
pub(super) struct Blocks<'a> {
    rest: &'a [u8],
    is_raw: bool,
}

impl<'a> Blocks<'a> {
    pub(super) fn open(payload: &'a [u8]) -> Self {
        match payload.split_at_checked(HEADER_BYTES) {
            Some((header, rest)) if header.starts_with(MAGIC) => Self { rest, is_raw: false },
            _ => Self { rest: payload, is_raw: true },
        }
    }

    fn next_block(&mut self) -> Result<Option<&'a [u8]>, Fault> {
        if self.is_raw {
            self.is_raw = false;
            return Ok(Some(std::mem::take(&mut self.rest)));
        }
        while self.rest.starts_with(&MAGIC[..4]) {
            // snappy-java decides by four bytes that this is a header, then reads all of it.
            let (header, rest) =
                self.rest.split_at_checked(HEADER_BYTES).ok_or(Fault::Undecodable)?;
            if !header.starts_with(MAGIC) {
                // To it such a header is an end, but it fails when asked once more.
                return if rest.len() < 4 { Ok(None) } else { Err(Fault::Undecodable) };
            }
            if read_i32(header, MAGIC.len()).is_none_or(|version| version < VERSION) {
                return Err(Fault::Undecodable);
            }
            self.rest = rest;
        }
        let Some(length) = read_i32(self.rest, 0) else { return Ok(None) };
        let length = usize::try_from(length).map_err(|_| Fault::Undecodable)?;
        let (block, rest) = self.rest[4..].split_at_checked(length).ok_or(Fault::Undecodable)?;
        self.rest = rest;
        Ok(Some(block))
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<&'a [u8], Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_block().transpose()
    }
}
