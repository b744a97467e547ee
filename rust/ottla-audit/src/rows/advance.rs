//! How a range is read in pieces: the pass over the segment, paused between them.

use crate::segment::pass::Pass;
use crate::segment::row_pass::PausedPass;
use crate::segment::scanner::Scanner;
use ottla_format::batch::BatchInfo;
use ottla_log::source::Source;
use std::cell::Cell;
use std::io;
use std::ops::Range;

/// Bytes read before the caller gets a say, where no rows are found.
pub(crate) const BUSY_BYTES: u64 = 64 << 20;

/// Where the reading of a range is.
pub(crate) enum Progress {
    Begin,
    Paused(Box<PausedPass>),
    EndedTransactions,
}

/// A batch that was seen, and whether its checksum is right.
pub(crate) type Event = Cell<Option<(BatchInfo, bool)>>;

/// Works on the next piece, unless there is none: whether there is more. `work` says whether it is
/// done with what it has read.
pub(crate) fn advance(
    scanner: &mut Scanner,
    progress: &mut Progress,
    source: &dyn Source,
    range: &Range<u64>,
    work: impl FnOnce(&mut Pass<'_, '_>, &Event, u64) -> bool,
) -> io::Result<bool> {
    let event = Event::default();
    let mut on_batch = |info: &BatchInfo, is_valid: bool| event.set(Some((*info, is_valid)));
    let mut on_read = |_: u64| true;
    let mut pass = match std::mem::replace(progress, Progress::EndedTransactions) {
        Progress::EndedTransactions => return Ok(false),
        Progress::Begin => scanner.begin_pass(source, range, &mut on_read, &mut on_batch)?,
        Progress::Paused(paused) => {
            scanner.resume_pass(source, *paused, &mut on_read, &mut on_batch)
        }
    };
    let is_done = work(&mut pass, &event, range.end);
    if let Some(error) = pass.window.take_failure() {
        return Err(error);
    }
    let goes_on = !is_done || pass.position < range.end.min(pass.window.end());
    if goes_on {
        *progress = Progress::Paused(Box::new(pass.pause()));
    }
    Ok(goes_on)
}
