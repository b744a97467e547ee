//! Kafka's own stream over an LZ4 frame. It inflates a block at a time, and returns nothing where a
//! block inflates to nothing.

use lz4::block::decompress_to_buffer;

use super::codec_stream::CodecStream;
use crate::compression::arena::Fault;
use crate::compression::lz4::{Lz4Block, Lz4Blocks};

pub(super) struct Lz4Stream<'p> {
    frame: Lz4Blocks<'p>,
    /// As large as the largest block so far; a block is the first `size` bytes.
    block: Vec<u8>,
    size: usize,
    position: usize,
    is_finished: bool,
}

impl<'p> Lz4Stream<'p> {
    pub(super) fn open(payload: &'p [u8], magic: i8) -> Result<Self, Fault> {
        let frame = Lz4Blocks::open(payload, magic).ok_or(Fault::Undecodable)?;
        Ok(Self { frame, block: Vec::new(), size: 0, position: 0, is_finished: false })
    }

    /// The rest of the block, after the next one was inflated if there is none. `None` at the end.
    fn rest(&mut self) -> Result<Option<&[u8]>, Fault> {
        if !self.is_finished && self.position >= self.size {
            self.next_block()?;
        }
        Ok(self.block.get(self.position..self.size).filter(|_| !self.is_finished))
    }

    fn next_block(&mut self) -> Result<(), Fault> {
        (self.position, self.size) = (0, 0);
        let Some(Lz4Block { bytes, is_stored, max_inflated }) = self.frame.next_block()? else {
            self.is_finished = true;
            return Ok(());
        };
        if self.block.len() < max_inflated {
            self.block.resize(max_inflated, 0);
        }
        let room = self.block.get_mut(..max_inflated).ok_or(Fault::Undecodable)?;
        self.size = if is_stored {
            room.copy_from_slice(bytes);
            max_inflated
        } else {
            let inflated = decompress_to_buffer(bytes, Some(max_inflated as i32), room);
            inflated.map_err(|_| Fault::Undecodable)?
        };
        Ok(())
    }
}

impl CodecStream for Lz4Stream<'_> {
    fn read(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<Option<usize>, Fault> {
        let Some(rest) = self.rest()? else { return Ok(None) };
        let bytes = rest.get(..wanted).unwrap_or(rest);
        let read = bytes.len();
        out.extend_from_slice(bytes);
        self.position = self.position.saturating_add(read);
        Ok(Some(read))
    }

    fn is_available(&mut self) -> Result<bool, Fault> {
        Ok(self.position < self.size)
    }

    fn skip(&mut self, wanted: usize) -> Result<usize, Fault> {
        let skipped = self.rest()?.map_or(0, |rest| rest.len().min(wanted));
        self.position = self.position.saturating_add(skipped);
        Ok(skipped)
    }
}
