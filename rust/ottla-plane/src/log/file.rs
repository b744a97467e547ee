//! A segment in files, as Kafka has it: batches and three indexes (`docs/kafka/log-dir.md` §3).
//!
//! The indexes are as long as their entries. Kafka makes them longer while a segment is active, and
//! takes both.

use super::directory::LogDirectory;
use super::headers::READ_AHEAD_BYTES;
use super::segment::{Ends, Segment, SegmentReader};
use crate::limits::MAX_READ_BYTES;
use ottla_log::names::{CLEANED, DELETED, INDEX, LOG, TIME_INDEX, TRANSACTION_INDEX, file_name};
use ottla_log::sidefiles::offset_index::{OFFSET_ENTRY_BYTES, OffsetEntry};
use ottla_log::sidefiles::time_index::{TIME_ENTRY_BYTES, TimeEntry};
use ottla_log::sidefiles::transaction_index::{ABORTED_TRANSACTION_BYTES, AbortedTransaction};
use ottla_log::source::fill;
use std::fs::{self, File};
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What every segment has.
const ALWAYS: [&[u8]; 3] = [LOG, INDEX, TIME_INDEX];
const ALL: [&[u8]; 4] = [LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX];
/// In the order of a rename. Where it is cut short, a start finds no offset index, and makes all three
/// of them anew from the batches.
const RENAMED: [&[u8]; 4] = [LOG, TRANSACTION_INDEX, TIME_INDEX, INDEX];

/// A read of so many bytes, such as some headers of batches, takes no memory of its own.
const SHORT_READ: usize = READ_AHEAD_BYTES;

/// A segment in files. It holds none of them open.
#[derive(Debug)]
pub(crate) struct FileSegment {
    directory: Arc<LogDirectory>,
    base_offset: i64,
    /// Of its files while it is no part of the log.
    suffix: &'static [u8],
    /// Under which its files are found that are open.
    number: u64,
    ends: Ends,
}

impl FileSegment {
    /// The files of a segment, without anything in them.
    pub(crate) fn create(directory: &Arc<LogDirectory>, base_offset: i64) -> io::Result<Self> {
        Self::of(directory, base_offset, Ends::default()).emptied()
    }

    /// The same of one that is no part of the log yet: a start removes what is left of it.
    pub(crate) fn create_cleaned(
        directory: &Arc<LogDirectory>,
        base_offset: i64,
    ) -> io::Result<Self> {
        let segment = Self::of(directory, base_offset, Ends::default());
        Self { suffix: CLEANED, ..segment }.emptied()
    }

    fn emptied(self) -> io::Result<Self> {
        let mut segment = self;
        segment.directory.require_room()?;
        // An earlier attempt may have left some of them.
        let made = ALWAYS.into_iter().try_for_each(|kind| segment.open_or_make(kind)?.set_len(0));
        match made.and_then(|()| remove_if_there(segment.path(TRANSACTION_INDEX))) {
            Ok(()) => Ok(segment),
            Err(error) => {
                // What is there is no segment. The first error counts.
                let _ = segment.delete();
                Err(error)
            }
        }
    }

    /// A segment whose files are there and end here.
    pub(crate) fn of(directory: &Arc<LogDirectory>, base_offset: i64, ends: Ends) -> Self {
        let number = directory.open_files().number();
        Self { directory: Arc::clone(directory), base_offset, suffix: b"", number, ends }
    }

    /// When a batch was added last.
    pub(super) fn modified_ms(&self) -> io::Result<i64> {
        let modified = fs::metadata(self.path(LOG))?.modified()?;
        let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn path(&self, kind: &[u8]) -> PathBuf {
        self.path_with(kind, self.suffix)
    }

    fn path_with(&self, kind: &[u8], suffix: &[u8]) -> PathBuf {
        self.directory.file(&file_name(self.base_offset, &[kind, suffix].concat()))
    }

    fn open(&self, kind: &'static [u8]) -> io::Result<Arc<File>> {
        self.directory.open_files().get((self.number, kind), false, || self.path(kind))
    }

    fn open_or_make(&self, kind: &'static [u8]) -> io::Result<Arc<File>> {
        self.directory.open_files().get((self.number, kind), true, || self.path(kind))
    }

    fn write(
        &self,
        parts: &[&[u8]],
        offsets: &[OffsetEntry],
        times: &[TimeEntry],
    ) -> io::Result<()> {
        self.directory.require_room()?;
        write_all(&*self.open(LOG)?, parts)?;
        if !offsets.is_empty() {
            let bytes: Vec<u8> = offsets.iter().flat_map(OffsetEntry::to_bytes).collect();
            write_all(&*self.open(INDEX)?, &[&bytes])?;
        }
        if !times.is_empty() {
            let bytes: Vec<u8> = times.iter().flat_map(TimeEntry::to_bytes).collect();
            write_all(&*self.open(TIME_INDEX)?, &[&bytes])?;
        }
        Ok(())
    }

    /// Cuts the files off where they end.
    fn cut(&self) -> io::Result<()> {
        let Ends { size, offset_entries, time_entries } = self.ends;
        self.open(LOG)?.set_len(size)?;
        self.open(INDEX)?.set_len(bytes_of(offset_entries, OFFSET_ENTRY_BYTES))?;
        self.open(TIME_INDEX)?.set_len(bytes_of(time_entries, TIME_ENTRY_BYTES))
    }

    /// The bytes of an entry of an index.
    fn entry<const SIZE: usize>(
        &self,
        kind: &'static [u8],
        number: usize,
    ) -> io::Result<[u8; SIZE]> {
        let mut entry = [0; SIZE];
        read_exactly(&*self.open(kind)?, bytes_of(number, SIZE), &mut entry)?;
        Ok(entry)
    }
}

impl Segment for FileSegment {
    fn append(
        &mut self,
        parts: &[&[u8]],
        offsets: &[OffsetEntry],
        times: &[TimeEntry],
    ) -> io::Result<()> {
        if let Err(error) = self.write(parts, offsets, times) {
            self.cut().map_err(|cut| not_cut(&error, &cut))?;
            return Err(error);
        }
        let size = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.len() as u64));
        self.ends = Ends {
            size: self.ends.size.saturating_add(size),
            offset_entries: self.ends.offset_entries.saturating_add(offsets.len()),
            time_entries: self.ends.time_entries.saturating_add(times.len()),
        };
        Ok(())
    }

    fn add_aborted(&mut self, aborted: &[AbortedTransaction]) -> io::Result<()> {
        self.directory.require_room()?;
        let bytes: Vec<u8> = aborted.iter().flat_map(AbortedTransaction::to_bytes).collect();
        let file = self.open_or_make(TRANSACTION_INDEX)?;
        let size = file.metadata()?.len();
        write_all(&file, &[&bytes]).or_else(|error| {
            file.set_len(size).map_err(|cut| not_cut(&error, &cut))?;
            Err(error)
        })
    }

    fn read(&self, range: Range<u64>, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        read_pieces(&*self.open(LOG)?, range.start..range.end.min(self.ends.size), each)
    }

    fn read_ahead(&self) -> usize {
        READ_AHEAD_BYTES
    }

    fn ends(&self) -> Ends {
        self.ends
    }

    fn offset_entry(&self, number: usize) -> io::Result<Option<OffsetEntry>> {
        if number >= self.ends.offset_entries {
            return Ok(None);
        }
        self.entry::<OFFSET_ENTRY_BYTES>(INDEX, number).map(|entry| OffsetEntry::read(&entry, 0))
    }

    fn time_entry(&self, number: usize) -> io::Result<Option<TimeEntry>> {
        if number >= self.ends.time_entries {
            return Ok(None);
        }
        self.entry::<TIME_ENTRY_BYTES>(TIME_INDEX, number).map(|entry| TimeEntry::read(&entry, 0))
    }

    fn truncate(&mut self, ends: Ends, offset: i64) -> io::Result<()> {
        self.ends = ends;
        self.cut()?;
        let path = self.path(TRANSACTION_INDEX);
        if !path.try_exists()? {
            return Ok(());
        }
        let file = self.open(TRANSACTION_INDEX)?;
        let mut kept = 0u64;
        let mut entry = [0; ABORTED_TRANSACTION_BYTES];
        while fill(&*file, kept, &mut entry)? == entry.len()
            && AbortedTransaction::read(&entry, 0).is_some_and(|found| found.last_offset < offset)
        {
            kept = kept.saturating_add(entry.len() as u64);
        }
        file.set_len(kept)
    }

    fn seal(&mut self) {
        self.directory.open_files().close(self.number);
    }

    fn file(&self) -> io::Result<Option<Arc<File>>> {
        self.open(LOG).map(Some)
    }

    fn paths(&self) -> Vec<PathBuf> {
        ALL.into_iter().map(|kind| self.path(kind)).collect()
    }

    fn delete(&mut self) -> io::Result<()> {
        self.directory.open_files().close(self.number);
        // As in Kafka, a start after a crash in between finds whole segments alone.
        let mut renamed = Vec::new();
        for kind in ALL {
            let path = self.path(kind);
            let to = self.path_with(kind, DELETED);
            match fs::rename(path, &to) {
                Ok(()) => renamed.push(to),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        renamed.into_iter().try_for_each(remove_if_there)
    }

    fn reader(&self) -> Box<dyn SegmentReader> {
        Box::new(FileReader { path: self.path(LOG), size: self.ends.size })
    }

    fn rename(&mut self, suffix: &'static [u8]) -> io::Result<()> {
        self.directory.open_files().close(self.number);
        for kind in RENAMED {
            match fs::rename(self.path(kind), self.path_with(kind, suffix)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.suffix = suffix;
        Ok(())
    }

    fn set_modified(&self, modified_ms: i64) -> io::Result<()> {
        let since = Duration::from_millis(u64::try_from(modified_ms).unwrap_or(0));
        let modified = SystemTime::UNIX_EPOCH.checked_add(since);
        self.open(LOG)?.set_modified(modified.unwrap_or(SystemTime::UNIX_EPOCH))
    }
}

/// A sealed segment. A job reads it in large pieces, and holds none of its files open.
struct FileReader {
    path: PathBuf,
    size: u64,
}

impl SegmentReader for FileReader {
    fn read(&self, range: Range<u64>, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        read_pieces(&File::open(&self.path)?, range.start..range.end.min(self.size), each)
    }
}

/// Gives a range of a file to `each`, in pieces of a bounded size.
fn read_pieces(file: &File, range: Range<u64>, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let (mut short, mut long);
    let wanted = range.end.saturating_sub(range.start).min(MAX_READ_BYTES as u64) as usize;
    let buffer: &mut [u8] = if wanted <= SHORT_READ {
        short = [0; SHORT_READ];
        &mut short
    } else {
        long = vec![0; wanted];
        &mut long
    };
    let mut position = range.start;
    while position < range.end {
        let wanted = range.end.saturating_sub(position).min(buffer.len() as u64) as usize;
        let Some(piece) = buffer.get_mut(..wanted) else { break };
        read_exactly(file, position, piece)?;
        each(piece);
        position = position.saturating_add(wanted as u64);
    }
    Ok(())
}

fn bytes_of(entries: usize, size: usize) -> u64 {
    (entries as u64).saturating_mul(size as u64)
}

fn not_cut(error: &io::Error, cut: &io::Error) -> io::Error {
    io::Error::other(format!("{error}; what was written of it cannot be taken back: {cut}"))
}

fn remove_if_there(path: PathBuf) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn read_exactly(file: &File, position: u64, buffer: &mut [u8]) -> io::Result<()> {
    let wanted = buffer.len();
    let found = fill(file, position, buffer)?;
    if found == wanted {
        return Ok(());
    }
    let message = format!("{found} bytes at position {position}, expected {wanted}");
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, message))
}

/// Writes parts one behind the other at the end of a file.
fn write_all(mut file: &File, parts: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut left = &mut slices[..];
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match file.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
