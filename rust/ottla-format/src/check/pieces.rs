//! Checking bytes that are not all in one place: piece by piece, with the result of the whole.

use super::Checker;
use super::checker::Ending;
use crate::batches::is_zero_tail;
use crate::error::{Error, ErrorKind, Result};
use std::ops::Range;

/// Bytes of a piece: they stay in a core's cache from where they are copied to where they are checked.
const PIECE_BYTES: usize = 128 << 10;

/// Up to here all bytes are one piece: they stay in a cache as well, and to begin a piece takes time.
const UNDIVIDED_BYTES: usize = 512 << 10;

/// A check of `size` bytes that takes pieces of them, each beginning with the first batch that is not
/// checked yet.
///
/// # Examples
///
/// ```
/// use ottla_format::check::{Checker, Level, Pieces};
/// use ottla_format::limits::Limits;
///
/// let data = vec![0; 900_000]; // zeros are no fault
/// let mut checker = Checker::new(Level::Full, Limits::default());
/// let mut pieces = Pieces::new(data.len());
/// while let Some(range) = pieces.next_range() {
///     pieces.check(&mut checker, &data[range])?;
/// }
/// assert_eq!(pieces.records(), 0);
/// # Ok::<(), ottla_format::error::Error>(())
/// ```
#[derive(Debug)]
pub struct Pieces {
    size: usize,
    piece_bytes: usize,
    position: usize,
    /// How many bytes the batch at `position` has at least.
    needed: usize,
    records: u64,
    /// Why no batch begins where there have been zeros since: no fault, if they go on up to the end.
    before_zeros: Option<Error>,
}

impl Pieces {
    /// A check of so many bytes.
    pub fn new(size: usize) -> Self {
        Self::of(size, if size <= UNDIVIDED_BYTES { size } else { PIECE_BYTES })
    }

    /// The same in pieces of another size, for tests.
    pub fn of(size: usize, piece_bytes: usize) -> Self {
        Self { size, piece_bytes, position: 0, needed: 0, records: 0, before_zeros: None }
    }

    /// Which bytes are checked next; `None` when all are.
    pub fn next_range(&self) -> Option<Range<usize>> {
        let wanted = self.piece_bytes.max(self.needed).max(1);
        let end = self.size.min(self.position.saturating_add(wanted));
        (self.position < end).then_some(self.position..end)
    }

    /// How many bytes there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many records have been found.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Checks the bytes of [`next_range`](Self::next_range).
    ///
    /// # Errors
    /// As [`Checker::check_all`] of all bytes.
    pub fn check(&mut self, checker: &mut Checker, piece: &[u8]) -> Result<()> {
        let begin = self.position;
        if self.before_zeros.is_none() {
            let found = checker.check_whole_batches(piece).map_err(|fault| fault.within(begin))?;
            self.records = self.records.saturating_add(found.records);
            self.position = begin.saturating_add(found.position);
            self.needed = 0;
            match found.ending {
                None => return Ok(()),
                Some(Ending::Cut { needed }) => {
                    let left = self.size.saturating_sub(self.position);
                    if needed <= left {
                        self.needed = needed;
                        return Ok(());
                    }
                    let (needed, left) = (needed as u64, left as u64);
                    let kind = ErrorKind::TruncatedBatch { needed, left };
                    self.before_zeros = Some(Error::new(kind, self.position));
                }
                Some(Ending::Fault(fault)) => self.before_zeros = Some(fault.within(begin)),
            }
        }
        let zeros_from = self.position.saturating_sub(begin);
        match self.before_zeros {
            Some(fault) if !is_zero_tail(piece, zeros_from) => Err(fault),
            _ => {
                self.position = begin.saturating_add(piece.len());
                Ok(())
            }
        }
    }
}
