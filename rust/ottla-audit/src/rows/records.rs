//! The records of a segment as columns, a bounded piece at a time.

use super::advance::{BUSY_BYTES, Progress, advance};
use super::open_batch::OpenBatch;
use super::range::{Piece, RowRange};
use super::sheet::{RecordParts, RecordRows, Sheet};
use crate::segment::scanner::Scanner;
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use ottla_kernels::Run;
use ottla_kernels::copies::Room;
use ottla_log::source::Source;
use std::cell::Cell;
use std::io;

/// Reads the records of a range of a segment.
pub struct RecordReader {
    scanner: Scanner,
    range: RowRange,
    parts: RecordParts,
    progress: Progress,
    /// The batch of which there was no room for all records.
    inside: Option<OpenBatch>,
    /// What the last piece took.
    room: Room,
}

impl RecordReader {
    /// Nothing is read yet.
    pub fn new(range: RowRange, parts: RecordParts, limits: Limits) -> Self {
        let (scanner, progress) = (Scanner::new(Level::Crc, limits), Progress::Begin);
        Self { scanner, range, parts, progress, inside: None, room: Room::default() }
    }

    /// The next records. `source` is the same each time.
    ///
    /// # Errors
    /// What ended reading. There is no more then.
    pub fn next(&mut self, source: &dyn Source) -> io::Result<Piece<RecordRows>> {
        let Self { scanner, range, parts, progress, inside, room } = self;
        let mut sheet = Sheet::new(range, *parts, *room);
        let goes_on = advance(scanner, progress, source, &range.positions, |pass, event, stop| {
            let until = pass.position.saturating_add(BUSY_BYTES).min(stop);
            loop {
                if let Some(batch) = inside {
                    if !sheet.read(pass, batch) {
                        return false;
                    }
                    *inside = None;
                }
                if sheet.is_full() || pass.position >= until.min(pass.window.end()) {
                    return true;
                }
                let is_full = Cell::new(false);
                let on_batch = pass.tally.call_on_batch(None);
                pass.run_kernels(until, &|| is_full.get(), |checker, data, base, tally| {
                    let run = sheet.run(checker, data, base, tally);
                    is_full.set(run.is_full);
                    Run { position: run.position, ..Run::default() }
                });
                pass.tally.call_on_batch(on_batch);
                if is_full.get() {
                    return true;
                }
                if pass.position < until.min(pass.window.end()) {
                    pass.step();
                    *inside = event
                        .take()
                        .filter(|(info, is_valid)| *is_valid && !sheet.bounds.excludes(info))
                        .and_then(|(info, _)| OpenBatch::open(pass, &info));
                }
            }
        })?;
        *room = sheet.room();
        Ok(match (sheet.copies.row_count(), goes_on) {
            (1.., _) => Piece::Rows(sheet.finish()),
            (0, true) => Piece::Busy,
            (0, false) => Piece::End,
        })
    }
}
