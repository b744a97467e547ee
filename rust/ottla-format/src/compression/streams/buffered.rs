//! Kafka's buffer in front of the stream of a codec.

use super::codec_stream::CodecStream;
use super::{gzip::GzipStream, lz4::Lz4Stream, snappy::SnappyStream, zstd::ZstdStream};
use crate::attributes::Compression;
use crate::compression::arena::Fault;
use zstd_safe::DCtx;

/// Bytes that Kafka's buffer asks the streams of gzip and zstd for at a time.
pub(super) const LARGE_BUFFER_BYTES: usize = 16 << 10;
/// Bytes that it asks those of snappy and lz4 for, which have buffers of their own.
const SMALL_BUFFER_BYTES: usize = 2 << 10;

/// Kafka's `ChunkedBytesStream`. It takes a request that returns nothing for the end, and asks again
/// at the next one; a request of at least its own size it passes on.
pub(super) struct BufferedStream<'p> {
    source: Box<dyn CodecStream + 'p>,
    buffer: Vec<u8>,
    position: usize,
    size: usize,
    /// Whether skipping is left to the codec's stream.
    is_skipped_at_source: bool,
}

impl<'p> BufferedStream<'p> {
    /// Opens the stream of a payload, which may inflate to `limit` bytes. `zstd` is the context of
    /// that codec, which costs more to make than a small payload to read.
    pub(super) fn open(
        codec: Compression,
        magic: i8,
        payload: &'p [u8],
        limit: usize,
        zstd: &'p mut DCtx<'static>,
    ) -> Result<Self, Fault> {
        let (source, size): (Box<dyn CodecStream + 'p>, _) = match codec {
            Compression::Gzip => (Box::new(GzipStream::open(payload)?), LARGE_BUFFER_BYTES),
            Compression::Snappy => {
                (Box::new(SnappyStream::open(payload, limit)?), SMALL_BUFFER_BYTES)
            }
            Compression::Lz4 => (Box::new(Lz4Stream::open(payload, magic)?), SMALL_BUFFER_BYTES),
            Compression::Zstd if magic >= 2 => {
                (Box::new(ZstdStream::open(payload, limit, zstd)?), LARGE_BUFFER_BYTES)
            }
            Compression::None | Compression::Zstd => return Err(Fault::Undecodable),
        };
        let is_skipped_at_source = codec == Compression::Lz4;
        Ok(Self { source, buffer: Vec::new(), position: 0, size, is_skipped_at_source })
    }

    fn buffered(&self) -> &[u8] {
        self.buffer.get(self.position..).unwrap_or_default()
    }

    /// Asks for the next bytes. Returns whether there are any.
    fn fill(&mut self) -> Result<bool, Fault> {
        self.position = 0;
        self.buffer.clear();
        self.source.read(self.size, &mut self.buffer)?;
        Ok(!self.buffer.is_empty())
    }

    /// The next byte; `None` at the end, as it is for now.
    pub(super) fn next_byte(&mut self) -> Result<Option<u8>, Fault> {
        if self.buffered().is_empty() && !self.fill()? {
            return Ok(None);
        }
        let byte = self.buffered().first().copied();
        self.position = self.position.saturating_add(1);
        Ok(byte)
    }

    /// Appends `wanted` bytes, or as many as there are before the end as it is for now. Returns
    /// whether all of them were there.
    pub(super) fn read_fully(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<bool, Fault> {
        let end = out.len().saturating_add(wanted);
        while out.len() < end {
            if self.read(end.saturating_sub(out.len()), out)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn read(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<Option<usize>, Fault> {
        let mut done = 0usize;
        loop {
            match self.read_once(wanted.saturating_sub(done), out)? {
                None | Some(0) if done > 0 => return Ok(Some(done)),
                None => return Ok(None),
                Some(0) => return Ok(Some(0)),
                Some(read) => done = done.saturating_add(read),
            }
            if done >= wanted || !self.source.is_available()? {
                return Ok(Some(done));
            }
        }
    }

    fn read_once(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<Option<usize>, Fault> {
        if self.buffered().is_empty() {
            if wanted >= self.size {
                return self.source.read(wanted, out);
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
        let bytes = self.buffered();
        let bytes = bytes.get(..wanted).unwrap_or(bytes);
        let read = bytes.len();
        out.extend_from_slice(bytes);
        self.position = self.position.saturating_add(read);
        Ok(Some(read))
    }

    /// Skips `wanted` bytes. Returns whether they were there.
    pub(super) fn skip_fully(&mut self, wanted: usize) -> Result<bool, Fault> {
        let mut left = wanted;
        while left > 0 {
            let skipped = self.skip(left)?;
            left = left.saturating_sub(skipped);
            if skipped == 0 {
                if self.next_byte()?.is_none() {
                    return Ok(false);
                }
                left = left.saturating_sub(1);
            }
        }
        Ok(true)
    }

    fn skip(&mut self, wanted: usize) -> Result<usize, Fault> {
        let mut left = wanted.saturating_sub(self.skip_buffered(wanted));
        while left > 0 {
            let skipped = if self.is_skipped_at_source {
                // What the one byte below leaves in the buffer is not skipped, but read later on.
                match self.source.skip(left)? {
                    0 if self.next_byte()?.is_none() => break,
                    0 => 1,
                    skipped => skipped,
                }
            } else {
                if self.buffered().is_empty() && !self.fill()? {
                    break;
                }
                self.skip_buffered(left)
            };
            left = left.saturating_sub(skipped);
        }
        Ok(wanted.saturating_sub(left))
    }

    fn skip_buffered(&mut self, wanted: usize) -> usize {
        let skipped = self.buffered().len().min(wanted);
        self.position = self.position.saturating_add(skipped);
        skipped
    }
}
