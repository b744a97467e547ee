//! The batches of a segment, a bounded piece at a time.

use super::advance::{BUSY_BYTES, Progress, advance};
use super::range::{MAX_PIECE_BYTES, Piece, RowRange};
use crate::segment::scanner::Scanner;
use ottla_format::batch::BatchInfo;
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use ottla_log::source::Source;
use std::cell::Cell;
use std::io;

/// A batch, and whether its checksum is right.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // as their names say
pub struct BatchRow {
    pub info: BatchInfo,
    pub is_valid: bool,
}

/// Reads the batches of a range of a segment.
pub struct BatchReader {
    scanner: Scanner,
    range: RowRange,
    progress: Progress,
}

impl BatchReader {
    /// Nothing is read yet.
    pub fn new(range: RowRange, limits: Limits) -> Self {
        Self { scanner: Scanner::new(Level::Crc, limits), range, progress: Progress::Begin }
    }

    /// Returns the next batches. `source` is the same each time.
    ///
    /// # Errors
    /// What ended reading. There is no more then.
    pub fn next(&mut self, source: &dyn Source) -> io::Result<Piece<Vec<BatchRow>>> {
        let Self { scanner, range, progress } = self;
        let bounds = range.bounds;
        let row_bytes = range.row_bytes.max(size_of::<BatchRow>());
        let most =
            range.piece_bytes.min(MAX_PIECE_BYTES).checked_div(row_bytes).unwrap_or(1).max(1);
        let mut rows = Vec::new();
        let goes_on = advance(scanner, progress, source, &range.positions, |pass, event, stop| {
            let until = pass.position.saturating_add(BUSY_BYTES).min(stop);
            while rows.len() < most && pass.position < until.min(pass.window.end()) {
                let is_full = Cell::new(false);
                let on_batch = pass.tally.call_on_batch(None);
                pass.run_kernels(until, &|| is_full.get(), |checker, data, base, tally| {
                    ottla_kernels::crc_only_run(checker.kernels(), data, 0, &mut |header| {
                        is_full.set(rows.len() >= most);
                        let is_taken = header.is_ordinary() && !is_full.get();
                        if is_taken {
                            tally.on_plain_batch(header, base, None);
                            let info = BatchInfo::from_kernel(header, base);
                            if bounds.takes_batch(&info) {
                                rows.push(BatchRow { info, is_valid: true });
                            }
                        }
                        is_taken
                    })
                });
                pass.tally.call_on_batch(on_batch);
                if !is_full.get() && pass.position < until.min(pass.window.end()) {
                    pass.step();
                    if let Some((info, is_valid)) = event.take()
                        && bounds.takes_batch(&info)
                    {
                        rows.push(BatchRow { info, is_valid });
                    }
                }
            }
            true
        })?;
        Ok(match (rows.is_empty(), goes_on) {
            (false, _) => Piece::Rows(rows),
            (true, true) => Piece::Busy,
            (true, false) => Piece::End,
        })
    }
}
