//! Runs that are compiled here, once and for speed. A generic function is compiled in each crate that calls
//! it, and as that crate is: some are made for size.

use crate::copies::Copies;
use crate::header::BatchHeader;
use crate::level::Level;
use crate::run::{Run, run};
use crate::target::{EachBatch, Nothing};
use crate::timestamps::Timestamps;

/// [`run`] that calls a function with the header of every correct batch.
pub fn header_run(level: Level, data: &[u8], on_batch: &mut dyn FnMut(&BatchHeader)) -> Run {
    let on_batch = |header: &BatchHeader, _: &Nothing| on_batch(header);
    run(level, data, 0, &mut EachBatch::new(&mut Nothing, on_batch))
}

/// [`run`] that calls a function with the header and the timestamps of every correct batch.
pub fn timestamp_run(
    level: Level,
    data: &[u8],
    on_batch: &mut dyn FnMut(&BatchHeader, &Timestamps),
) -> Run {
    run(level, data, 0, &mut EachBatch::new(&mut Timestamps::default(), on_batch))
}

/// [`run`] to copies, that calls a function with the header of every correct batch.
pub fn copy_run(
    level: Level,
    data: &[u8],
    from: usize,
    copies: &mut Copies,
    on_batch: &mut dyn FnMut(&BatchHeader),
) -> Run {
    let on_batch = |header: &BatchHeader, _: &Copies| on_batch(header);
    run(level, data, from, &mut EachBatch::new(copies, on_batch))
}
