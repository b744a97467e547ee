//! A pass that is paused and resumed: for readers that take the batches of a range piece by piece.

use crate::segment::context::SegmentContext;
use crate::segment::growth::Growth;
use crate::segment::index_check::Indexes;
use crate::segment::observation::OnBatch;
use crate::segment::pass::Pass;
use crate::segment::scanner::Scanner;
use crate::segment::segment_scan::SegmentScan;
use crate::segment::tally::{Tally, TallyMemory};
use ottla_log::resync::budget::Spending;
use ottla_log::resync::search::Search;
use ottla_log::source::{Source, Window, WindowState};
use std::io;
use std::ops::Range;

/// Nothing is known of the segment, and every timestamp has come: findings are not asked for.
fn context() -> SegmentContext {
    SegmentContext { now_ms: i64::MAX, ..SegmentContext::default() }
}

/// A pass between two pieces of its work.
pub(crate) struct PausedPass {
    position: u64,
    window: WindowState,
    memory: TallyMemory,
    spending: Spending,
    last_was_legacy: bool,
}

impl Scanner {
    /// Begins a pass over the batches of a range, which begins with a batch. `on_batch` is called
    /// for every batch that is framed correctly.
    pub(crate) fn begin_pass<'c, 'a>(
        &'c mut self,
        source: &'a dyn Source,
        range: &Range<u64>,
        progress: &'a mut dyn FnMut(u64) -> bool,
        on_batch: &'a mut OnBatch<'a>,
    ) -> io::Result<Pass<'c, 'a>> {
        let tally = Tally::new(context(), Indexes::NONE, Some(on_batch));
        let pass = self.pass(source, range.end.saturating_sub(range.start), progress, tally)?;
        Ok(Pass { position: range.start, opens_wrappers: true, ..pass })
    }

    /// Goes on where such a pass was paused.
    pub(crate) fn resume_pass<'c, 'a>(
        &'c mut self,
        source: &'a dyn Source,
        paused: PausedPass,
        progress: &'a mut dyn FnMut(u64) -> bool,
        on_batch: &'a mut OnBatch<'a>,
    ) -> Pass<'c, 'a> {
        let PausedPass { position, window, memory, spending, last_was_legacy } = paused;
        let scan = SegmentScan { context: context(), ..SegmentScan::default() };
        let mut tally = Tally::resume(scan, memory, Growth::default(), Indexes::NONE);
        tally.call_on_batch(Some(on_batch));
        let (checker, buffer) = self.parts();
        let window = Window::from_state(source, window, progress);
        Pass {
            search: Search::after(spending),
            position,
            last_was_legacy,
            opens_wrappers: true,
            ..Pass::over(checker, buffer, window, tally)
        }
    }
}

impl Pass<'_, '_> {
    /// Ends a piece of work. What was found in it is forgotten.
    pub(crate) fn pause(self) -> PausedPass {
        let Self { window, tally, search, position, last_was_legacy, .. } = self;
        let (_, memory, _) = tally.suspend();
        let (window, spending) = (window.into_state(), search.spending());
        PausedPass { position, window, memory, spending, last_was_legacy }
    }
}
