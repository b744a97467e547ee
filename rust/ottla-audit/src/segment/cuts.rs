//! Where a segment can be cut without reading all of it: at batches that its `.index` names, and to
//! which the batches before them lead.
//!
//! A broker writes the last offset of what it appends into the index, and the position where that
//! begins. So the batch at the position of an entry begins at or below the offset of the entry, and
//! above that of the entry before; and the batches from one entry on end exactly where the next one
//! points. Bytes inside a value that look like a batch do not pass this test.

use crate::segment::pass::Pass;
use crate::segment::scanner::Scanner;
use ottla_format::batch::BatchInfo;
use ottla_log::sidefiles::offset_index::{OffsetEntry, entries};
use ottla_log::source::Source;
use std::io;

impl Scanner {
    /// Returns positions of valid batches that an index names, in order, at least `apart` bytes from
    /// each other and from both ends of the source. Only the bytes before those are read. `index` are
    /// the bytes of the `.index` of a segment with this base offset; a wrong entry makes no cut.
    ///
    /// # Examples
    /// ```
    /// use ottla_audit::Scanner;
    /// use ottla_format::check::Level;
    /// use ottla_format::limits::Limits;
    /// use ottla_log::sidefiles::offset_index::OffsetEntry;
    ///
    /// let mut scanner = Scanner::new(Level::Decode, Limits::default());
    /// let zeros: &[u8] = &[0; 100];
    /// let index = OffsetEntry { relative_offset: 7, position: 50 }.to_bytes();
    /// assert_eq!(scanner.cuts(&zeros, 0, &index, 10)?, []);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the source does not report its size, or what ended reading.
    pub fn cuts(
        &mut self,
        source: &dyn Source,
        base_offset: i64,
        index: &[u8],
        apart: u64,
    ) -> io::Result<Vec<u64>> {
        let size = source.size()?;
        let mut cuts = Vec::new();
        let mut last = 0;
        let mut before = OffsetEntry { relative_offset: -1, position: 0 };
        for entry in entries(index) {
            let start = std::mem::replace(&mut before, entry);
            let Ok(position) = u64::try_from(entry.position) else { continue };
            let (left, right) = (position.saturating_sub(last), size.saturating_sub(position));
            if left.min(right) >= apart.max(1) && self.leads(source, base_offset, start, entry)? {
                cuts.push(position);
                last = position;
            }
        }
        Ok(cuts)
    }

    /// Whether the batches from one entry on lead to that of another.
    fn leads(
        &mut self,
        source: &dyn Source,
        base_offset: i64,
        start: OffsetEntry,
        entry: OffsetEntry,
    ) -> io::Result<bool> {
        let (Ok(from), Ok(to)) = (u64::try_from(start.position), u64::try_from(entry.position))
        else {
            return Ok(false);
        };
        if from > to {
            return Ok(false);
        }
        let mut following = from;
        let mut are_valid = true;
        let mut first_offset = None;
        let mut on_batch = |info: &BatchInfo, is_valid: bool| {
            are_valid &= is_valid;
            if info.position == to && following == to {
                first_offset = Some(info.base_offset);
            }
            following = info.position.saturating_add(info.size);
        };
        let mut progress = |_: u64| true;
        let range = from..to.saturating_add(1);
        let mut pass = self.begin_pass(source, &range, &mut progress, &mut on_batch)?;
        pass.walk(range.end);
        let Pass { buffer, mut window, .. } = pass;
        let failure = window.take_failure();
        *buffer = window.into_buffer();
        if let Some(error) = failure {
            return Err(error);
        }
        let named = start.offset(base_offset)..entry.offset(base_offset);
        Ok(are_valid && first_offset.is_some_and(|first| first > named.start && first <= named.end))
    }
}
