//! A buffer of consecutive batches, read as Kafka's consumer reads a fetch response.

use crate::batch::BatchInfo;
use crate::error::Result;
use crate::header::{Envelope, Next};

/// The batches of a buffer, in order. A batch whose header cannot be read is an error and is skipped;
/// a fault in the framing ends the iteration. A truncated last batch is not returned: its bytes are
/// the [`Batches::tail`].
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    data: &'a [u8],
    position: usize,
    done: bool,
}

impl<'a> Batches<'a> {
    /// The batches from `position` of the buffer.
    pub fn new(data: &'a [u8], position: usize) -> Self {
        Self { data, position, done: false }
    }

    /// Where the next batch begins, or where the iteration ended.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The bytes after the last whole batch.
    pub fn tail(&self) -> &'a [u8] {
        self.data.get(self.position..).unwrap_or_default()
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<BatchInfo>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        match Envelope::next(self.data, self.position) {
            Ok(Next::End { .. }) => {
                self.done = true;
                None
            }
            Ok(Next::Batch(envelope)) => {
                let at = self.position;
                self.position = at.saturating_add(envelope.total());
                Some(BatchInfo::read(self.data, at, &envelope))
            }
            Err(error) => {
                self.done = true;
                Some(Err(error))
            }
        }
    }
}

/// Whether a buffer holds only zeros from `position`: the unused end of a preallocated file, which is
/// no damage.
pub fn is_zero_tail(data: &[u8], position: usize) -> bool {
    data.get(position..).is_some_and(|rest| rest.iter().all(|&byte| byte == 0))
}
