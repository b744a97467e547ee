//! Blocks of offsets that differ, read again.

use crate::copies::batch::ListedBatch;
use crate::copies::copy::Copy;
use crate::copies::finder::DifferenceFinder;
use crate::segment::context::SegmentContext;
use crate::segment::fingerprint::{Fingerprint, LogPosition, key};
use crate::segment::scanner::Scanner;
use ottla_log::sorting::sort_by_key;
use ottla_log::source::{Limited, Source};
use std::collections::BTreeSet;
use std::io;
use std::ops::RangeInclusive;

/// Batches of one copy that are held at once. A block with more is cut into shorter ones first.
const MAX_LISTED: u64 = 1 << 16;

/// Bytes that are read at once of several blocks: a stop takes as long as reading them.
const MAX_RUN_BYTES: u64 = 32 << 20;

/// Binary logarithm of how much shorter they are.
const REFINEMENT: u32 = 8;

/// Batches listed at a time.
const LISTED_AT_ONCE: usize = 1024;

/// Opens a segment of a copy: takes the indexes of both and how many bytes are about to be read, and
/// returns its bytes. An error ends the comparison.
pub type OpenSegment<'a> = dyn FnMut(usize, u32, u64) -> io::Result<Box<dyn Source>> + 'a;

/// Reads the batches of blocks again.
pub(crate) struct BlockReader<'r, 'o> {
    pub(crate) copies: &'r [Copy],
    pub(crate) scanner: &'r mut Scanner,
    pub(crate) open: &'r mut OpenSegment<'o>,
    /// Bytes read so far.
    pub(crate) bytes: u64,
}

impl BlockReader<'_, '_> {
    /// Hands every block that differs to the finder, in order; consecutive ones go together.
    pub(crate) fn walk(
        &mut self,
        prints: &[&Fingerprint],
        finder: &mut DifferenceFinder<'_>,
    ) -> io::Result<()> {
        let shift = prints.iter().map(|print| print.shift()).max().unwrap_or(0);
        let prints: Vec<Fingerprint> = prints.iter().map(|print| print.coarsened(shift)).collect();
        let numbers: BTreeSet<i64> =
            prints.iter().flat_map(|print| print.numbers().collect::<Vec<_>>()).collect();
        let mut run: Option<RangeInclusive<i64>> = None;
        for number in numbers {
            // What diverged is read to its end, to know how much was lost.
            let differs = self.differs(&prints, number) || finder.follows_diverged(&prints, number);
            let longer = run.as_ref().map(|run| *run.start()..=number);
            let goes_on = run.as_ref().and_then(|run| run.end().checked_add(1)) == Some(number);
            if differs && goes_on && longer.as_ref().is_some_and(|run| fits(&prints, run)) {
                run = longer;
                continue;
            }
            if let Some(run) = run.take() {
                self.compare_run(&prints, run, shift, finder)?;
            }
            // The run before may have shown that copies diverged there.
            if differs || finder.follows_diverged(&prints, number) {
                run = Some(number..=number);
            }
        }
        match run {
            Some(run) => self.compare_run(&prints, run, shift, finder),
            None => Ok(()),
        }
    }

    fn compare_run(
        &mut self,
        prints: &[Fingerprint],
        run: RangeInclusive<i64>,
        shift: u32,
        finder: &mut DifferenceFinder<'_>,
    ) -> io::Result<()> {
        let offsets = block_offsets(&run, shift);
        if fits(prints, &run) || shift == 0 {
            let listed = self.list(prints, &run, &offsets)?;
            finder.compare_batches(&offsets, &listed);
            return Ok(());
        }
        let finer = self.refine(prints, &run, &offsets, shift)?;
        self.walk(&finer.iter().collect::<Vec<_>>(), finder)
    }

    /// Whether the copies that reach a block differ there.
    fn differs(&self, prints: &[Fingerprint], number: i64) -> bool {
        let shift = prints.first().map_or(0, Fingerprint::shift);
        let offsets = block_offsets(&(number..=number), shift);
        // A batch of which only the magic byte is wrong counts as valid, and differs from the others.
        if self.copies.iter().any(|copy| copy.lost.iter().any(|loss| loss.overlaps(&offsets))) {
            return true;
        }
        let mut there = self
            .copies
            .iter()
            .zip(prints)
            .filter(|(copy, _)| copy.reaches(&offsets))
            .map(|(_, print)| print.block(number));
        let Some(first) = there.next() else { return false };
        there.any(|other| match (first, other) {
            (Some(first), Some(other)) => !first.equals(other),
            (None, None) => false,
            _ => true,
        })
    }

    fn list(
        &mut self,
        prints: &[Fingerprint],
        run: &RangeInclusive<i64>,
        offsets: &RangeInclusive<i64>,
    ) -> io::Result<Vec<Vec<ListedBatch>>> {
        let mut listed = Vec::with_capacity(prints.len());
        for (copy, print) in prints.iter().enumerate() {
            let mut batches: Vec<ListedBatch> = Vec::new();
            if let Some(span) = print.span(run) {
                self.read(copy, span.start, span.end, offsets, &mut |batch| {
                    if (batches.len() as u64) < MAX_LISTED {
                        batches.push(batch);
                    }
                })?;
            }
            sort_by_key(&mut batches, |batch| (batch.info.base_offset, batch.place()));
            listed.push(batches);
        }
        Ok(listed)
    }

    /// Returns the fingerprints of a run of blocks, in shorter blocks.
    fn refine(
        &mut self,
        prints: &[Fingerprint],
        run: &RangeInclusive<i64>,
        offsets: &RangeInclusive<i64>,
        shift: u32,
    ) -> io::Result<Vec<Fingerprint>> {
        let mut finer = Vec::with_capacity(prints.len());
        for (copy, print) in prints.iter().enumerate() {
            let mut fine = Fingerprint::with_shift(shift.saturating_sub(REFINEMENT));
            if let Some(span) = print.span(run) {
                self.read(copy, span.start, span.end, offsets, &mut |batch| {
                    fine.observe_at(&batch.info, batch.segment);
                })?;
            }
            finer.push(fine);
        }
        Ok(finer)
    }

    /// Reads the valid batches of a copy between two places that begin at these offsets.
    fn read(
        &mut self,
        copy: usize,
        start: LogPosition,
        end: LogPosition,
        offsets: &RangeInclusive<i64>,
        take: &mut dyn FnMut(ListedBatch),
    ) -> io::Result<()> {
        for segment in start.segment..=end.segment {
            let first = if segment == start.segment { start.position } else { 0 };
            let stop = if segment == end.segment { end.position } else { u64::MAX };
            let bytes = if stop == u64::MAX { 0 } else { stop.saturating_sub(first) };
            let source = (self.open)(copy, segment, bytes)?;
            let source = Limited::new(source.as_ref(), stop);
            let mut next = Some(first);
            while let Some(position) = next {
                let context = SegmentContext::default();
                let listing = self.scanner.list(&source, context, position, LISTED_AT_ONCE)?;
                for (info, is_valid) in listing.batches {
                    self.bytes = self.bytes.saturating_add(info.size);
                    if is_valid && offsets.contains(&key(&info)) {
                        take(ListedBatch { info, segment });
                    }
                }
                next = listing.next_position;
            }
        }
        Ok(())
    }
}

/// Returns the offsets of a run of blocks of `1 << shift` offsets.
fn block_offsets(run: &RangeInclusive<i64>, shift: u32) -> RangeInclusive<i64> {
    *run.start() << shift..=*run.end() << shift | !(-1 << shift)
}

/// Whether the batches of a run are few enough to be held at once, and its bytes few enough to be
/// read at once.
fn fits(prints: &[Fingerprint], run: &RangeInclusive<i64>) -> bool {
    let is_block = run.start() == run.end();
    prints.iter().filter_map(|print| print.span(run)).all(|span| {
        let is_short = span.start.segment == span.end.segment
            && span.end.position.saturating_sub(span.start.position) <= MAX_RUN_BYTES;
        span.batches <= MAX_LISTED && (is_block || is_short)
    })
}
