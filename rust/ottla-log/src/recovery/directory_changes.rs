//! What a start does to the files of a directory.
//!
//! A start may be stopped at any moment, and is then made again, as after an unclean stop. So the
//! files change in an order that leaves the next start the same log at each step:
//!
//! - What the log no longer has goes first, the highest offsets before others: a segment that is cut
//!   before those behind it are gone would look sound, and the log would have a hole.
//! - Of an operation that did not end, the swaps go before what tells that it did not end.
//! - The parts of a split segment take its place as those of a cleaner do, by way of `.cleaned` and
//!   `.swap`.
//! - An `.index` comes last of the files beside a segment: one that is missing has its segment
//!   recovered.

use super::files::{Directory, Extent, FileContent, Files, NewIndex};
use super::index_builder::{IndexBuilder, build_indexes};
use super::interruption::{Interruption, LoadError};
use super::partition_log::PartitionLog;
use super::segment_file::SegmentFile;
use super::sound_entries::RecoveredSegment;
use crate::names::{
    CLEANED, FileKind, FileName, LEADER_EPOCHS, LOG, SWAP, SegmentNames, TEMPORARY, file_name,
    offset_of,
};
use crate::producers::Producers;
use crate::sidefiles::checkpoint::write_leader_epochs;
use crate::sidefiles::offset_index::{OFFSET_ENTRY_BYTES, OffsetEntry};
use crate::sidefiles::time_index::{TIME_ENTRY_BYTES, TimeEntry};
use crate::sidefiles::transaction_index::AbortedTransaction;
use crate::sorting::{sort_by, sort_by_key};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::Range;

/// A directory whose files can be changed.
pub trait MutableDirectory: Directory {
    /// Removes a file.
    ///
    /// # Errors
    /// What the operating system reports, as all of these do.
    fn remove(&self, name: &[u8]) -> io::Result<()>;

    /// Gives a file another name, that of another file too.
    ///
    /// # Errors
    /// See [`remove`](Self::remove).
    fn rename(&self, from: &[u8], to: &[u8]) -> io::Result<()>;

    /// Cuts a file to a size.
    ///
    /// # Errors
    /// See [`remove`](Self::remove).
    fn truncate(&self, name: &[u8], size: u64) -> io::Result<()>;

    /// Copies a part of a file into a new one, which survives a crash.
    ///
    /// # Errors
    /// See [`remove`](Self::remove).
    fn copy(&self, from: &[u8], range: Range<u64>, to: &[u8]) -> io::Result<()>;

    /// Writes a file, in place of one of its name: whole or not at all, also after a crash.
    ///
    /// # Errors
    /// See [`remove`](Self::remove).
    fn write(&self, name: &[u8], bytes: &[u8]) -> io::Result<()>;

    /// Makes the names survive a crash.
    ///
    /// # Errors
    /// See [`remove`](Self::remove).
    fn sync(&self) -> io::Result<()>;
}

/// Something that a start has done to a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub enum DirectoryChange {
    Removed { name: Vec<u8> },
    Renamed { from: Vec<u8>, to: Vec<u8> },
    Truncated { name: Vec<u8>, from: u64, to: u64 },
    Copied { from: Vec<u8>, range: Range<u64>, to: Vec<u8> },
    Written { name: Vec<u8> },
}

impl fmt::Display for DirectoryChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = String::from_utf8_lossy;
        match self {
            Self::Removed { name } => write!(f, "removed {}", shown(name)),
            Self::Renamed { from, to } => write!(f, "renamed {} to {}", shown(from), shown(to)),
            Self::Truncated { name, from, to } => {
                write!(f, "cut {} from {from} to {to} bytes", shown(name))
            }
            Self::Copied { from, range, to } => write!(
                f,
                "copied bytes {} to {} of {} to {}",
                range.start,
                range.end,
                shown(from),
                shown(to)
            ),
            Self::Written { name } => write!(f, "wrote {}", shown(name)),
        }
    }
}

/// A segment's batches, from a part of a file that was there.
struct FilePart {
    name: Vec<u8>,
    start: u64,
    size: u64,
}

/// Makes the files of a directory those of a log that is loaded. Returns what was done.
pub(super) fn change_directory(
    log: &mut PartitionLog<'_>,
    directory: &dyn MutableDirectory,
    log_end_offset: i64,
) -> Result<Vec<DirectoryChange>, LoadError> {
    let mut changes = Changes { directory, done: Vec::new() };
    let parts = parts_by_origin(&log.reader.files);
    changes.remove_gone(&log.reader.files)?;
    changes.finish_swaps(&log.reader.files)?;
    for (origin, parts) in &parts {
        let file = origin.strip_suffix(SWAP).unwrap_or(origin);
        match parts.as_slice() {
            [FilePart { name, start: 0, size }] => {
                if name != file {
                    changes.rename(file, name)?;
                }
                changes.truncate(name, *size)?;
            }
            parts => changes.split(file, parts)?,
        }
    }
    changes.create_segments(&log.reader.files)?;
    let segments: Vec<_> = log.segments.values().cloned().collect();
    for names in &segments {
        changes.write_indexes(log, names)?;
    }
    changes.write_snapshots(&log.reader.files)?;
    if !log.has_epochs_on_disk(log_end_offset)? {
        changes.write(LEADER_EPOCHS, &write_leader_epochs(&log.epochs.entries()))?;
    }
    if !changes.done.is_empty() {
        changes.sync()?;
    }
    Ok(changes.done)
}

/// Cuts the indexes of the last segment where what can be believed of them ends: what is added to them
/// follows there.
pub(super) fn trim_indexes(
    last: &RecoveredSegment,
    directory: &dyn MutableDirectory,
) -> Result<Vec<DirectoryChange>, LoadError> {
    let mut changes = Changes { directory, done: Vec::new() };
    let names = SegmentNames::of(last.base_offset);
    let bytes = |entries: u64, size: usize| entries.saturating_mul(size as u64);
    changes.truncate(&names.index, bytes(last.offset_entries, OFFSET_ENTRY_BYTES))?;
    changes.truncate(&names.time_index, bytes(last.time_entries, TIME_ENTRY_BYTES))?;
    Ok(changes.done)
}

/// Which segments hold batches of each file that was there.
fn parts_by_origin(files: &Files<'_>) -> BTreeMap<Vec<u8>, Vec<FilePart>> {
    let mut parts: BTreeMap<Vec<u8>, Vec<FilePart>> = BTreeMap::new();
    for (name, content) in files.contents() {
        if let FileContent::Log(Extent { origin: Some(origin), start, size }) = content {
            let part = FilePart { name: name.clone(), start: *start, size: *size };
            parts.entry(origin.to_vec()).or_default().push(part);
        }
    }
    parts
}

/// The file that holds now what a file has.
fn origin_of(content: &FileContent) -> Option<&[u8]> {
    match content {
        FileContent::Disk(origin) => Some(origin),
        FileContent::Log(extent) => extent.origin.as_deref(),
        _ => None,
    }
}

/// Whether a file stands beside a segment whose batches come from another file.
fn is_beside_another(name: &[u8], files: &Files<'_>) -> bool {
    let kind = FileName::parse(name).kind;
    let is_index =
        matches!(kind, FileKind::OffsetIndex | FileKind::TimeIndex | FileKind::TransactionIndex);
    let Some(offset) = offset_of(name).ok().filter(|_| is_index) else { return false };
    let segment = file_name(offset, LOG);
    files.get(&segment).and_then(origin_of).is_some_and(|origin| origin != segment)
}

/// Whether a start that was stopped has left a file behind: brokers give such names to no file.
fn is_left_behind(name: &[u8]) -> bool {
    let stem = name.strip_suffix(TEMPORARY);
    stem.is_some_and(|stem| FileName::parse(stem).base_offset.is_some())
}

/// Changes a directory, and takes down what is done.
struct Changes<'a> {
    directory: &'a dyn MutableDirectory,
    done: Vec<DirectoryChange>,
}

impl Changes<'_> {
    fn remove(&mut self, name: &[u8]) -> Result<(), LoadError> {
        let removed = self.directory.remove(name);
        removed.map_err(|error| LoadError::of_file(name, error))?;
        self.done.push(DirectoryChange::Removed { name: name.to_vec() });
        Ok(())
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), LoadError> {
        let renamed = self.directory.rename(from, to);
        renamed.map_err(|error| LoadError::of_file(from, error))?;
        self.done.push(DirectoryChange::Renamed { from: from.to_vec(), to: to.to_vec() });
        Ok(())
    }

    fn size(&self, name: &[u8]) -> Result<u64, LoadError> {
        let size = self.directory.open(name).and_then(|file| file.size());
        size.map_err(|error| LoadError::of_file(name, error))
    }

    /// Cuts a file that is longer.
    fn truncate(&mut self, name: &[u8], to: u64) -> Result<(), LoadError> {
        let from = self.size(name)?;
        if from > to {
            let cut = self.directory.truncate(name, to);
            cut.map_err(|error| LoadError::of_file(name, error))?;
            self.done.push(DirectoryChange::Truncated { name: name.to_vec(), from, to });
        }
        Ok(())
    }

    /// Writes a file, unless it has these bytes.
    fn write(&mut self, name: &[u8], bytes: &[u8]) -> Result<(), LoadError> {
        let of_file = |error| LoadError::of_file(name, error);
        if self.has(name, bytes).map_err(of_file)? {
            return Ok(());
        }
        self.directory.write(name, bytes).map_err(of_file)?;
        self.done.push(DirectoryChange::Written { name: name.to_vec() });
        Ok(())
    }

    /// Whether there is a file with these bytes.
    fn has(&self, name: &[u8], bytes: &[u8]) -> io::Result<bool> {
        let file = match self.directory.open(name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        if file.size()? != bytes.len() as u64 {
            return Ok(false);
        }
        let mut found = vec![0; bytes.len()];
        let filled = crate::source::fill(&*file, 0, &mut found)?;
        Ok(filled == bytes.len() && found == bytes)
    }

    fn sync(&self) -> Result<(), LoadError> {
        self.directory.sync().map_err(|error| LoadError::Io { file: None, error })
    }

    /// Removes the files that the log no longer has.
    fn remove_gone(&mut self, files: &Files<'_>) -> Result<(), LoadError> {
        let origins: BTreeSet<_> =
            files.contents().filter_map(|(_, file)| origin_of(file)).collect();
        let is_gone = |name: &&Vec<u8>| {
            let is_kept = files.exists(name) && !is_beside_another(name, files);
            !is_kept && !origins.contains(name.as_slice()) || is_left_behind(name)
        };
        let mut gone: Vec<_> = files.before().iter().rev().filter(is_gone).collect();
        sort_by_key(&mut gone, |name| (!name.ends_with(SWAP), !name.ends_with(CLEANED)));
        for name in &gone {
            self.remove(name)?;
        }
        if gone.is_empty() { Ok(()) } else { self.sync() }
    }

    /// Gives the files of a swap their names.
    fn finish_swaps(&mut self, files: &Files<'_>) -> Result<(), LoadError> {
        let origins = files.contents().filter_map(|(_, file)| origin_of(file));
        let mut swaps: Vec<_> = origins.filter_map(|origin| origin.strip_suffix(SWAP)).collect();
        sort_by(&mut swaps, Ord::cmp);
        swaps.dedup();
        // Segments first: an index whose segment is not there yet would be taken for the old one's.
        sort_by_key(&mut swaps, |name| !name.ends_with(LOG));
        for name in &swaps {
            self.rename(&[name, SWAP].concat(), name)?;
        }
        if swaps.is_empty() { Ok(()) } else { self.sync() }
    }

    /// Puts parts of a file in its place.
    fn split(&mut self, file: &[u8], parts: &[FilePart]) -> Result<(), LoadError> {
        let size = self.size(file)?;
        let is_whole = |part: &&FilePart| part.name == file && part.start == 0 && part.size == size;
        let is_kept = parts.iter().any(|part| is_whole(&part));
        let parts: Vec<_> = parts.iter().filter(|part| !is_whole(part)).collect();
        for part in &parts {
            let to = [&part.name, CLEANED].concat();
            let range = part.start..part.start.saturating_add(part.size);
            let copied = self.directory.copy(file, range.clone(), &to);
            copied.map_err(|error| LoadError::of_file(file, error))?;
            self.done.push(DirectoryChange::Copied { from: file.to_vec(), range, to });
        }
        self.sync()?;
        // From the last on: where one is still being cleaned, those above it do not count.
        for part in parts.iter().rev() {
            self.rename(&[&part.name, CLEANED].concat(), &[&part.name, SWAP].concat())?;
        }
        self.sync()?;
        if !is_kept && parts.iter().all(|part| part.name != file) {
            self.remove(file)?;
        }
        for part in parts {
            self.rename(&[&part.name, SWAP].concat(), &part.name)?;
        }
        self.sync()
    }

    /// Makes segments without batches.
    fn create_segments(&mut self, files: &Files<'_>) -> Result<(), LoadError> {
        for (name, content) in files.contents() {
            if let FileContent::Log(Extent { origin: None, .. }) = content {
                self.write(name, &[])?;
            }
        }
        Ok(())
    }

    /// Writes the indexes of a segment that are new.
    fn write_indexes(
        &mut self,
        log: &PartitionLog<'_>,
        names: &SegmentNames,
    ) -> Result<(), LoadError> {
        let files = &log.reader.files;
        let is_new = |name| files.get(name).is_some_and(|file| origin_of(file).is_none());
        let has_new_index = is_new(&names.index);
        let has_new_times = is_new(&names.time_index);
        if is_new(&names.transaction_index) {
            let rebuilt = log.rebuilt.get(&names.base_offset);
            let aborted = rebuilt.map_or(&[][..], |rebuilt| &rebuilt.aborted);
            let bytes: Vec<u8> = aborted.iter().flat_map(AbortedTransaction::to_bytes).collect();
            self.write(&names.transaction_index, &bytes)?;
        }
        if !has_new_index && !has_new_times {
            return Ok(());
        }
        let built = self.build(log, names)?;
        if has_new_times {
            let bytes: Vec<u8> = built.time_index.iter().flat_map(TimeEntry::to_bytes).collect();
            self.write(&names.time_index, &bytes)?;
        }
        if has_new_index {
            let entries = match files.get(&names.index) {
                Some(FileContent::Index(NewIndex::Entries(entries))) => entries,
                // Zeros are searched as no entries are.
                Some(FileContent::Index(NewIndex::Zeros(_))) => &[][..],
                _ => &built.index,
            };
            let bytes: Vec<u8> = entries.iter().flat_map(OffsetEntry::to_bytes).collect();
            self.write(&names.index, &bytes)?;
        }
        Ok(())
    }

    /// The indexes of a segment from its batches, where the start has read them.
    fn build(
        &self,
        log: &PartitionLog<'_>,
        names: &SegmentNames,
    ) -> Result<IndexBuilder, LoadError> {
        let empty = IndexBuilder::new(names.base_offset);
        let was_read = match log.rebuilt.get(&names.base_offset) {
            Some(rebuilt) => rebuilt.offset_entries > 0 || rebuilt.time_entries > 0,
            None => matches!(
                log.reader.files.get(&names.index),
                Some(FileContent::Index(NewIndex::Entries(entries))) if !entries.is_empty()
            ),
        };
        if !was_read {
            return Ok(empty);
        }
        let size = self.size(&names.log)?;
        let file = log.reader.files.open(&names.log)?;
        let mut segment = SegmentFile::new(Some(file), (0, size), log.reader.path(&names.log));
        match build_indexes(&mut segment, names.base_offset, &log.reader.config) {
            Ok(built) => Ok(built),
            Err(Interruption::Failed(error)) => Err(error),
            // Of a part of a segment, whose batches nothing has checked.
            Err(_) => Ok(empty),
        }
    }

    fn write_snapshots(&mut self, files: &Files<'_>) -> Result<(), LoadError> {
        for (name, content) in files.contents() {
            if let FileContent::Snapshot(snapshot) = content {
                let mut producers = Producers::new(0);
                snapshot.give(&mut |entries| producers.adopt(entries));
                self.write(name, &producers.snapshot())?;
            }
        }
        Ok(())
    }
}
