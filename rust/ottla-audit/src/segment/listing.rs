//! The batches of a part of a segment, listed.

use crate::catalogue::finding::Finding;
use crate::segment::context::SegmentContext;
use crate::segment::index_check::Indexes;
use crate::segment::pass::Pass;
use crate::segment::scanner::Scanner;
use crate::segment::tail::Tail;
use crate::segment::tally::Tally;
use ottla_format::batch::BatchInfo;
use ottla_log::source::Source;
use std::cell::Cell;
use std::io;

/// Batches of a part of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Every batch that is framed correctly, and whether its CRC is correct.
    pub batches: Vec<(BatchInfo, bool)>,
    /// What was found on the way, at most [`crate::MAX_FINDINGS_PER_KIND`] of each kind.
    pub findings: Vec<Finding>,
    /// What stands behind the last batch, once the end is reached.
    pub tail: Option<Tail>,
    /// Where to go on; `None` at the end.
    pub next_position: Option<u64>,
}

impl Scanner {
    /// Lists the batches of a segment from a batch at `position` on, damage left out: at least
    /// `limit` of them where there are so many, and then up to the end of the window.
    ///
    /// # Errors
    /// When the source does not report its size, or what ended reading.
    pub fn list(
        &mut self,
        source: &dyn Source,
        context: SegmentContext,
        position: u64,
        limit: usize,
    ) -> io::Result<Listing> {
        let mut batches = Vec::new();
        let count = Cell::new(0);
        let mut on_batch = |info: &BatchInfo, is_valid: bool| {
            batches.push((*info, is_valid));
            count.set(batches.len());
        };
        let mut progress = |_: u64| true;
        let tally = Tally::new(context, Indexes::NONE, Some(&mut on_batch));
        let mut pass = self.pass(source, u64::MAX, &mut progress, tally)?;
        pass.position = position;
        pass.walk_until(u64::MAX, &|| count.get() >= limit);
        let Pass { buffer, mut window, tally, position, .. } = pass;
        let (findings, tail) = tally.into_findings();
        let next_position = (position < window.end()).then_some(position);
        if let Some(error) = window.take_failure() {
            return Err(error);
        }
        *buffer = window.into_buffer();
        Ok(Listing { batches, findings, tail, next_position })
    }
}
