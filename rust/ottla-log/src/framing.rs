//! How far a segment that is still written holds whole batches.

use crate::source::{Source, Window};
use ottla_format::header::{Envelope, HEADER_UP_TO_MAGIC, LOG_OVERHEAD, MIN_SIZE};
use std::io;

/// A run of whole batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeBatches {
    /// Position where the last of them begins, or where the search began if there is none.
    pub last: u64,
    /// Position where the last of them ends.
    pub end: u64,
}

/// Finds the whole batches of a segment from a position on that end at `stop` or before, by their
/// sizes alone. Ends at bytes that cannot be a batch and at a batch that is not whole: both may still
/// be written. With `max_bytes`, ends with the batch that reaches it. `read_bytes` are read at once.
///
/// # Errors
/// What keeps the source from being read.
///
/// # Examples
/// ```
/// use ottla_log::framing::{WholeBatches, whole_batches};
///
/// // A size field of 14, and half of the next batch.
/// let mut log = vec![0; 40];
/// (log[11], log[37]) = (14, 14);
/// let found = whole_batches(&log.as_slice(), 0, 40, None, 4096)?;
/// assert_eq!(found, WholeBatches { last: 0, end: 26 });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn whole_batches(
    source: &dyn Source,
    position: u64,
    stop: u64,
    max_bytes: Option<u64>,
    read_bytes: u64,
) -> io::Result<WholeBatches> {
    let mut progress = |_| true;
    let mut window = Window::new(source, Vec::new(), read_bytes, &mut progress)?;
    let enough = max_bytes.map_or(u64::MAX, |max_bytes| position.saturating_add(max_bytes));
    let mut found = WholeBatches { last: position, end: position };
    while found.end < enough {
        let head = window.hold(found.end, HEADER_UP_TO_MAGIC);
        let Some(envelope) = Envelope::read(head, 0) else { break };
        let end = end_of(found.end, &envelope).filter(|&end| end <= stop);
        let Some(end) = end else { break };
        found = WholeBatches { last: found.end, end };
    }
    window.take_failure().map_or(Ok(found), Err)
}

/// Where a batch ends; `None` if its size is below that of any batch.
fn end_of(position: u64, envelope: &Envelope) -> Option<u64> {
    let size = u64::try_from(envelope.size).ok().filter(|_| envelope.size >= MIN_SIZE)?;
    position.checked_add(LOG_OVERHEAD as u64)?.checked_add(size)
}
