//! The records of a segment as columns, a bounded piece at a time.

use super::advance::{BUSY_BYTES, Progress, advance};
use super::judge::{Judge, RecordRules};
use super::open_batch::OpenBatch;
use super::range::{Piece, RowRange};
use super::reading::Damage;
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
    judge: Judge,
    damages: Vec<Damage>,
}

impl RecordReader {
    /// Nothing is read yet.
    pub fn new(range: RowRange, parts: RecordParts, rules: RecordRules, limits: Limits) -> Self {
        let (scanner, progress) = (Scanner::new(Level::Crc, limits), Progress::Begin);
        let judge = Judge::new(rules, range.positions.start);
        let (inside, room, damages) = (None, Room::default(), Vec::new());
        Self { scanner, range, parts, progress, inside, room, judge, damages }
    }

    /// Takes what was passed over since the last call; after the end, all of it.
    pub fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damages)
    }

    /// The offset behind the last record in its place, where [`RecordRules::place`] is known and
    /// there was one.
    pub fn next_offset(&self) -> Option<i64> {
        self.judge.next_offset()
    }

    /// The next records. `source` is the same each time.
    ///
    /// # Errors
    /// What ended reading. There is no more then.
    pub fn next(&mut self, source: &dyn Source) -> io::Result<Piece<RecordRows>> {
        let Self { scanner, range, parts, progress, inside, room, judge, damages } = self;
        let has_order = judge.has_order();
        let mut reached = None;
        let mut sheet = Sheet::new(range, *parts, *room);
        let goes_on = advance(scanner, progress, source, &range.positions, |pass, event, stop| {
            let until = pass.position.saturating_add(BUSY_BYTES).min(stop);
            loop {
                if let Some(batch) = inside {
                    if !sheet.read(pass, batch) {
                        return false;
                    }
                    if let Some(fault) = &batch.fault {
                        judge.unreadable(&batch.info, batch.next_offset.unwrap_or(0), fault);
                    }
                    *inside = None;
                }
                reached = Some((pass.position, pass.window.end()));
                if sheet.is_full() || pass.position >= until.min(pass.window.end()) {
                    return true;
                }
                let is_full = Cell::new(false);
                let on_batch = pass.tally.call_on_batch(None);
                pass.run_kernels(until, &|| is_full.get(), |checker, data, base, tally| {
                    let run = sheet.run(checker, data, base, tally, judge);
                    is_full.set(run.is_full);
                    Run { position: run.position, ..Run::default() }
                });
                pass.tally.call_on_batch(on_batch);
                reached = Some((pass.position, pass.window.end()));
                if is_full.get() {
                    return true;
                }
                if pass.position < until.min(pass.window.end()) {
                    pass.step();
                    let Some((info, is_valid)) = event.take() else { continue };
                    let Some(first_offset) = judge.admit(pass, &info, is_valid) else { continue };
                    if sheet.bounds.excludes(&info) {
                        continue;
                    }
                    let next_offset = has_order.then_some(first_offset);
                    match OpenBatch::open(pass, &info, next_offset) {
                        Ok(batch) => *inside = Some(batch),
                        Err(fault) => judge.unreadable(&info, first_offset, &fault),
                    }
                }
            }
        })?;
        if !goes_on && let Some((_, end)) = reached {
            let stop = range.positions.end;
            judge.end(end.min(stop), stop < end);
        }
        damages.extend(judge.take_damage(scanner, source, &range.bounds)?);
        *room = sheet.room();
        Ok(match (sheet.copies.row_count(), goes_on) {
            (1.., _) => Piece::Rows(sheet.finish()),
            (0, true) => Piece::Busy,
            (0, false) => Piece::End,
        })
    }
}
