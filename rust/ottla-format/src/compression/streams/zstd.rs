//! zstd-jni's stream: libzstd's streaming call over 128 KiB of the payload at a time. It returns what
//! one frame makes of a request, and what is made in a call that fails is lost.
//!
//! The call allocates the window that a frame asks for, up to 128 MiB as in Kafka. Pages of it are
//! used only as far as the frame inflates, which is bounded.

use zstd_safe::{DCtx, InBuffer, OutBuffer, ResetDirective};

use super::codec_stream::CodecStream;
use crate::compression::arena::Fault;

/// Bytes that the stream reads at a time.
const INPUT_BYTES: usize = (128 << 10) + 3;

pub(super) struct ZstdStream<'p> {
    decoder: &'p mut DCtx<'static>,
    steps: std::slice::Chunks<'p, u8>,
    input: InBuffer<'p>,
    needs_input: bool,
    is_frame_done: bool,
    /// Where a request is written to; its capacity is the size of the request, at most `limit`.
    room: Vec<u8>,
    limit: usize,
}

impl<'p> ZstdStream<'p> {
    pub(super) fn open(
        payload: &'p [u8],
        limit: usize,
        decoder: &'p mut DCtx<'static>,
    ) -> Result<Self, Fault> {
        // Whatever the last stream left undone is forgotten.
        decoder.reset(ResetDirective::SessionOnly).map_err(|_| Fault::Undecodable)?;
        Ok(Self {
            decoder,
            steps: payload.chunks(INPUT_BYTES),
            input: InBuffer::around(&[]),
            needs_input: true,
            is_frame_done: true,
            room: Vec::new(),
            limit,
        })
    }

    /// Answers a request once; with 0 where a frame or a step of the input ends.
    fn read_once(&mut self, wanted: usize) -> Result<Option<usize>, Fault> {
        let mut made = 0;
        let mut before = None;
        while made < wanted && before.is_none_or(|before| before < made) {
            if self.needs_input && (self.steps.len() > 0 || made == 0) {
                match self.steps.next() {
                    Some(step) => self.input = InBuffer::around(step),
                    None if self.is_frame_done => return Ok(None),
                    None => return Err(Fault::Undecodable),
                }
                self.is_frame_done = false;
            }
            before = Some(made);
            let mut output = OutBuffer::around_pos(&mut self.room, made);
            let hint = self.decoder.decompress_stream(&mut output, &mut self.input);
            let hint = hint.map_err(|_| Fault::Undecodable)?;
            made = output.pos();
            if hint == 0 {
                self.is_frame_done = true;
                self.needs_input = self.input.pos() == self.input.src.len();
                break;
            }
            self.needs_input = made < wanted;
        }
        Ok(Some(made))
    }
}

impl CodecStream for ZstdStream<'_> {
    fn read(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<Option<usize>, Fault> {
        let wanted = wanted.min(self.limit).max(1);
        if self.room.capacity() != wanted {
            // A record may claim any length: what is not written to is not zeroed, either.
            self.room = Vec::with_capacity(wanted);
        }
        loop {
            match self.read_once(wanted)? {
                Some(0) => {}
                Some(made) => {
                    out.extend_from_slice(self.room.get(..made).unwrap_or_default());
                    return Ok(Some(made));
                }
                None => return Ok(None),
            }
        }
    }

    fn is_available(&mut self) -> Result<bool, Fault> {
        Ok(!self.needs_input || self.steps.len() > 0)
    }
}
