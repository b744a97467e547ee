//! A buffer of consecutive batches, walked as Kafka's consumer walks a fetch response.

use crate::batch::BatchInfo;
use crate::error::Result;
use crate::header::{Envelope, Next};

/// The batches of a buffer, in order. A batch whose header cannot be read is an error and is
/// stepped over; a fault in the framing ends the walk. A last batch that the buffer cuts is not
/// given: [`Batches::tail`] tells.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    data: &'a [u8],
    position: usize,
    done: bool,
}

impl<'a> Batches<'a> {
    /// Starts at a position of the buffer.
    pub fn new(data: &'a [u8], position: usize) -> Self {
        Self { data, position, done: false }
    }

    /// Where the next batch begins, or where the walk ended.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes after the last whole batch.
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

/// Whether a buffer from `position` on holds nothing but zeros: the unused end of a preallocated
/// file, and no damage.
pub fn is_zero_tail(data: &[u8], position: usize) -> bool {
    data.get(position..).is_some_and(|rest| rest.iter().all(|&byte| byte == 0))
}
