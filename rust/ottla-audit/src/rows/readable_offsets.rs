//! How many of the offsets that a consumer gets are left of a log when it begins and ends elsewhere,
//! or when bytes of its segments are gone.

use super::reading::{PartitionReader, ReadStep, ReadableBatch, RecordPlace};
use crate::segment::scanner::Scanner;
use ottla_format::batch::{Payload, RecordCursor, payload};
use ottla_format::error::{Error, ErrorKind};
use ottla_log::source::{Source, fill};
use std::io;

/// What is left of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remainder {
    /// Its first offset.
    pub start_offset: i64,
    /// The offset behind its last.
    pub end_offset: i64,
    /// Bytes left of each segment; a segment beyond this list is gone.
    pub segment_bytes: Vec<u64>,
}

/// Runs that are remembered, 32 bytes each: those of 16 GiB in batches of 16 KiB.
const MAX_RUNS: usize = 1 << 20;

/// Offsets of a batch that follow each other without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    segment: usize,
    /// Where the batch ends in it.
    batch_end: u64,
    first_offset: i64,
    count: u64,
}

impl Run {
    /// How many of its offsets a remainder has.
    fn kept_by(&self, left: &Remainder) -> u64 {
        if left.segment_bytes.get(self.segment).is_none_or(|&bytes| self.batch_end > bytes) {
            return 0;
        }
        let end = self.first_offset.saturating_add_unsigned(self.count).min(left.end_offset);
        let first = self.first_offset.max(left.start_offset);
        if first < end { end.abs_diff(first) } else { 0 }
    }
}

/// The offsets that reading gives, by the batches that they are in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownOffsets {
    runs: Vec<Run>,
    is_complete: bool,
}

impl KnownOffsets {
    /// How many of them a remainder has; `None` where there are too many to remember, so that they
    /// have to be read again.
    pub fn kept_by(&self, remainder: &Remainder) -> Option<u64> {
        let kept = || self.runs.iter().map(|run| run.kept_by(remainder)).sum();
        self.is_complete.then(kept)
    }
}

/// Counts the offsets a [`PartitionReader`] finds, and those that each of several remainders has.
/// Offsets that are read increase, so none is counted twice and none has to be remembered.
///
/// # Examples
/// ```
/// use ottla_audit::{Isolation, PartitionReader, ReadOptions, ReadableOffsets, Remainder, Scanner};
/// use ottla_format::{check::Level, limits::Limits};
///
/// let options = ReadOptions {
///     isolation: Isolation::ReadUncommitted,
///     start_offset: 0,
///     end_offset: i64::MAX,
///     stopped_cleanly: false,
/// };
/// let reader = PartitionReader::new(vec![Some(0)], options);
/// let all = Remainder { start_offset: 0, end_offset: i64::MAX, segment_bytes: vec![0] };
/// let mut offsets = ReadableOffsets::new(reader, vec![all]);
/// let mut scanner = Scanner::new(Level::Crc, Limits::default());
/// let empty: &[u8] = &[];
/// while offsets.segment().is_some() {
///     offsets.step(&mut scanner, &empty)?;
/// }
/// assert_eq!((offsets.total(), offsets.kept()), (0, &[0][..]));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ReadableOffsets {
    reader: PartitionReader,
    remainders: Vec<Remainder>,
    total: u64,
    kept: Vec<u64>,
    known: KnownOffsets,
    bytes: Vec<u8>,
}

impl ReadableOffsets {
    /// Counts what a reader has yet to read.
    pub fn new(reader: PartitionReader, remainders: Vec<Remainder>) -> Self {
        let kept = vec![0; remainders.len()];
        let known = KnownOffsets { runs: Vec::new(), is_complete: true };
        Self { reader, remainders, total: 0, kept, known, bytes: Vec::new() }
    }

    /// The segment that the next step reads; `None` at the end.
    pub fn segment(&self) -> Option<usize> {
        self.reader.segment()
    }

    /// Offsets found so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Of these, the offsets that each remainder has.
    pub fn kept(&self) -> &[u64] {
        &self.kept
    }

    /// The offsets themselves, for remainders that come later; complete at the end.
    pub fn into_known(self) -> KnownOffsets {
        self.known
    }

    /// Goes on. `source` is the file of [`ReadableOffsets::segment`].
    ///
    /// # Errors
    /// What ended reading.
    pub fn step(&mut self, scanner: &mut Scanner, source: &dyn Source) -> io::Result<()> {
        let ReadStep::Batch(batch) = self.reader.step(scanner, source)? else { return Ok(()) };
        let size = usize::try_from(batch.info.size).unwrap_or(usize::MAX);
        if batch.info.size > scanner.checker().limits().batch_bytes {
            return Ok(());
        }
        self.bytes.resize(size, 0);
        if fill(source, batch.info.position, &mut self.bytes)? < size {
            self.reader.unreadable(&batch, batch.first_offset, "its bytes are gone");
            return Ok(());
        }
        self.count(&batch, scanner);
        Ok(())
    }

    fn count(&mut self, batch: &ReadableBatch, scanner: &mut Scanner) {
        let batch_end = batch.info.position.saturating_add(batch.info.size);
        let empty = Run { segment: batch.segment, batch_end, first_offset: 0, count: 0 };
        let mut run = empty;
        let mut next_offset = batch.first_offset;
        let mut misplaced = None;
        let bytes = std::mem::take(&mut self.bytes);
        let read = each_offset(batch, &bytes, scanner, |offset| {
            match batch.place(offset, next_offset) {
                RecordPlace::Unwanted => return,
                RecordPlace::Wrong => {
                    misplaced = misplaced.or(Some(offset));
                    return;
                }
                RecordPlace::Wanted => {}
            }
            if offset != next_offset || run.count == 0 {
                self.add(run);
                run = Run { first_offset: offset, ..empty };
            }
            run.count = run.count.saturating_add(1);
            next_offset = offset.saturating_add(1);
        });
        self.add(run);
        self.bytes = bytes;
        if let Err(error) = read {
            self.reader.unreadable(batch, next_offset, &error.kind.to_string());
        } else if let Some(offset) = misplaced {
            self.reader.misplaced(batch, offset);
        }
    }

    fn add(&mut self, run: Run) {
        if run.count == 0 {
            return;
        }
        self.total = self.total.saturating_add(run.count);
        for (kept, remainder) in self.kept.iter_mut().zip(&self.remainders) {
            *kept = kept.saturating_add(run.kept_by(remainder));
        }
        if self.known.runs.len() == MAX_RUNS {
            self.known = KnownOffsets::default();
        } else if self.known.is_complete {
            self.known.runs.push(run);
        }
    }
}

/// Shows the offset of each record of a batch, up to the first that cannot be read.
fn each_offset(
    batch: &ReadableBatch,
    bytes: &[u8],
    scanner: &mut Scanner,
    mut show: impl FnMut(i64),
) -> Result<(), Error> {
    let checker = scanner.checker();
    let limits = *checker.limits();
    let records = match payload(&batch.info, bytes)? {
        Payload::Plain { bytes, .. } => bytes,
        Payload::Compressed { codec, bytes, start, reading } => {
            let inflate = |kind: ErrorKind| Error::new(kind, start);
            checker.codecs().decompress(codec, reading, bytes).map_err(inflate)?
        }
    };
    let mut cursor = RecordCursor::start(&batch.info, records, limits)?;
    while let Some(record) = cursor.next(records)? {
        show(record.offset);
    }
    Ok(())
}
