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

impl Remainder {
    fn holds(&self, batch: &ReadableBatch) -> bool {
        let end = batch.info.position.saturating_add(batch.info.size);
        self.segment_bytes.get(batch.segment).is_some_and(|&bytes| end <= bytes)
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
    /// Remainders that a batch is partly in, which each of its records is held against.
    partial: Vec<usize>,
    bytes: Vec<u8>,
}

impl ReadableOffsets {
    /// Counts what a reader has yet to read.
    pub fn new(reader: PartitionReader, remainders: Vec<Remainder>) -> Self {
        let kept = vec![0; remainders.len()];
        Self { reader, remainders, total: 0, kept, partial: Vec::new(), bytes: Vec::new() }
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
        self.partial.clear();
        let mut whole = Vec::new();
        for (number, remainder) in self.remainders.iter().enumerate() {
            let offsets = remainder.start_offset..remainder.end_offset;
            if !remainder.holds(batch) {
                continue;
            }
            if offsets.contains(&batch.first_offset) && offsets.contains(&batch.info.last_offset) {
                whole.push(number);
            } else {
                self.partial.push(number);
            }
        }
        let (remainders, partial, kept) = (&self.remainders, &self.partial, &mut self.kept);
        let mut found: u64 = 0;
        let mut next_offset = batch.first_offset;
        let mut misplaced = None;
        let read = each_offset(batch, &self.bytes, scanner, |offset| {
            match batch.place(offset, next_offset) {
                RecordPlace::Unwanted => return,
                RecordPlace::Wrong => {
                    misplaced = misplaced.or(Some(offset));
                    return;
                }
                RecordPlace::Wanted => {}
            }
            next_offset = offset.saturating_add(1);
            found = found.saturating_add(1);
            for &number in partial {
                let is_kept = remainders
                    .get(number)
                    .is_some_and(|left| (left.start_offset..left.end_offset).contains(&offset));
                if let Some(count) = kept.get_mut(number).filter(|_| is_kept) {
                    *count = count.saturating_add(1);
                }
            }
        });
        for number in whole {
            if let Some(count) = kept.get_mut(number) {
                *count = count.saturating_add(found);
            }
        }
        self.total = self.total.saturating_add(found);
        if let Err(error) = read {
            self.reader.unreadable(batch, next_offset, &error.kind.to_string());
        } else if let Some(offset) = misplaced {
            self.reader.misplaced(batch, offset);
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
