//! snappy-java's stream. A request is answered from as many blocks as it takes, and what it has got
//! is lost if one of them fails.

use super::codec_stream::CodecStream;
use crate::compression::arena::Fault;
use crate::compression::snappy::{SnappyBlocks, declared_length};

pub(super) struct SnappyStream<'p> {
    blocks: SnappyBlocks<'p>,
    decoder: snap::raw::Decoder,
    block: Vec<u8>,
    position: usize,
    limit: usize,
}

impl<'p> SnappyStream<'p> {
    /// Opens a payload; one that is a single raw block is inflated then.
    pub(super) fn open(payload: &'p [u8], limit: usize) -> Result<Self, Fault> {
        let blocks = SnappyBlocks::open(payload);
        let is_raw = blocks.is_raw();
        let decoder = snap::raw::Decoder::new();
        let mut stream = Self { blocks, decoder, block: Vec::new(), position: 0, limit };
        if is_raw {
            stream.next_block()?;
        }
        Ok(stream)
    }

    /// Inflates the next block. Returns whether there is one, as it is for now.
    fn next_block(&mut self) -> Result<bool, Fault> {
        self.position = 0;
        self.block.clear();
        let Some(block) = self.blocks.next_block()? else { return Ok(false) };
        let length = declared_length(block)?;
        if length > self.limit {
            return Err(Fault::TooLarge);
        }
        self.block.resize(length, 0);
        let size = self.decoder.decompress(block, &mut self.block);
        self.block.truncate(size.map_err(|_| Fault::Undecodable)?);
        Ok(true)
    }
}

impl CodecStream for SnappyStream<'_> {
    fn read(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<Option<usize>, Fault> {
        let start = out.len();
        let mut done = 0usize;
        while done < wanted {
            if self.position >= self.block.len() {
                match self.next_block() {
                    Ok(true) => continue,
                    Ok(false) => return Ok((done > 0).then_some(done)),
                    Err(fault) => {
                        out.truncate(start);
                        return Err(fault);
                    }
                }
            }
            let rest = self.block.get(self.position..).unwrap_or_default();
            let bytes = rest.get(..wanted.saturating_sub(done)).unwrap_or(rest);
            out.extend_from_slice(bytes);
            done = done.saturating_add(bytes.len());
            self.position = self.position.saturating_add(bytes.len());
        }
        Ok(Some(done))
    }

    fn is_available(&mut self) -> Result<bool, Fault> {
        // An inflated block of nothing counts as one that is not there.
        Ok(self.position < self.block.len() || self.next_block()? && !self.block.is_empty())
    }
}
