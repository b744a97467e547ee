//! The files of a partition's directory as they stand while a start is played through: what is on
//! disk, and what the start has made of it so far. Nothing is written.

use super::interruption::LoadError;
use super::journal::{Journals, NewSnapshot};
use super::open_file::{OpenFile, Progress};
use crate::sidefiles::offset_index::OffsetEntry;
use crate::source::Source;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Bound;
use std::rc::Rc;

/// A directory that can be listed and whose files can be read.
pub trait Directory {
    /// The names of its regular files, in any order.
    ///
    /// # Errors
    /// What the operating system reports.
    fn names(&self) -> io::Result<Vec<Vec<u8>>>;

    /// Opens one of them.
    ///
    /// # Errors
    /// What the operating system reports.
    fn open(&self, name: &[u8]) -> io::Result<Box<dyn Source + '_>>;
}

/// Files by name: a directory in memory.
impl Directory for BTreeMap<Vec<u8>, Vec<u8>> {
    fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        Ok(self.keys().cloned().collect())
    }

    fn open(&self, name: &[u8]) -> io::Result<Box<dyn Source + '_>> {
        let data = self.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(data.as_slice()))
    }
}

/// Opening a file takes as long as reading so many bytes, by order of magnitude.
pub(super) const OPENING_BYTES: u64 = 4096;

/// What a file holds.
#[derive(Clone, Debug)]
pub(super) enum FileContent {
    /// What is on disk under this name.
    Disk(Rc<[u8]>),
    /// Batches, as far as the start has left them.
    Log(Extent),
    /// An offset index the start has made.
    Index(NewIndex),
    /// A snapshot the start has made.
    Snapshot(NewSnapshot),
    /// A file whose content decides nothing.
    Other,
}

/// Where the batches of a segment are: in a part of a file on disk, or nowhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Extent {
    pub(super) origin: Option<Rc<[u8]>>,
    pub(super) start: u64,
    pub(super) size: u64,
}

/// An offset index the start has made.
#[derive(Clone, Debug)]
pub(super) enum NewIndex {
    /// This many entries of zeros: a file preallocated and taken for full.
    Zeros(u64),
    /// These.
    Entries(Rc<[OffsetEntry]>),
    /// Those that a recovery makes of the first `valid_bytes` of the segment.
    Derived { valid_bytes: u64 },
}

/// Every file there is by now.
pub(super) struct Files<'d> {
    directory: &'d dyn Directory,
    progress: Rc<Progress<'d>>,
    now: BTreeMap<Vec<u8>, FileContent>,
    before: BTreeSet<Vec<u8>>,
    /// New snapshots, as they are read.
    pub(super) journals: Journals,
    /// How many files were opened.
    opened: Cell<u64>,
}

impl<'d> Files<'d> {
    pub(super) fn new(
        directory: &'d dyn Directory,
        progress: &Rc<Progress<'d>>,
    ) -> Result<Self, LoadError> {
        let names = directory.names().map_err(|error| LoadError::Io { file: None, error })?;
        let before: BTreeSet<_> = names.into_iter().collect();
        let disk = |name: &Vec<u8>| (name.clone(), FileContent::Disk(name.as_slice().into()));
        let now = before.iter().map(disk).collect();
        let progress = Rc::clone(progress);
        Ok(Self {
            directory,
            progress,
            now,
            before,
            journals: Journals::default(),
            opened: Cell::new(0),
        })
    }

    /// Names as Java sorts paths.
    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        self.now.keys().cloned().collect()
    }

    /// The same, borrowed.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.now.keys()
    }

    /// What each file holds.
    pub(super) fn contents(&self) -> impl Iterator<Item = (&Vec<u8>, &FileContent)> {
        self.now.iter()
    }

    /// The names before the start.
    pub(super) fn before(&self) -> &BTreeSet<Vec<u8>> {
        &self.before
    }

    pub(super) fn exists(&self, name: &[u8]) -> bool {
        self.now.contains_key(name)
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&FileContent> {
        self.now.get(name)
    }

    pub(super) fn put(&mut self, name: &[u8], content: FileContent) {
        self.now.insert(name.to_vec(), content);
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        self.now.remove(name);
    }

    pub(super) fn rename(&mut self, from: &[u8], to: &[u8]) {
        if let Some(content) = self.now.remove(from) {
            self.now.insert(to.to_vec(), content);
        }
    }

    /// Opens what is on disk under a name.
    pub(super) fn open(&self, origin: &[u8]) -> Result<OpenFile<'d>, LoadError> {
        self.opened.set(self.opened.get().saturating_add(1));
        let source = self.directory.open(origin);
        let source = source.map_err(|error| LoadError::of_file(origin, error))?;
        Ok(OpenFile::new(source, origin, &self.progress))
    }

    /// How much was read: bytes, and for each file that was opened what opening it costs.
    pub(super) fn work(&self) -> u64 {
        let opening = self.opened.get().saturating_mul(OPENING_BYTES);
        self.progress.read_bytes().saturating_add(opening)
    }

    /// The first name after another.
    pub(super) fn name_after(&self, name: &[u8]) -> Option<Vec<u8>> {
        let after = (Bound::Excluded(name), Bound::Unbounded);
        self.now.range::<[u8], _>(after).next().map(|(name, _)| name.clone())
    }

    /// The bytes of a file on disk.
    pub(super) fn read(&self, origin: &[u8], max_bytes: u64) -> Result<Vec<u8>, LoadError> {
        self.open(origin)?.read_whole(max_bytes)
    }

    /// What new snapshots hold decides nothing any more.
    pub(super) fn forget_snapshots(&mut self) {
        for content in self.now.values_mut() {
            if let FileContent::Snapshot(snapshot) = content {
                *snapshot = NewSnapshot::default();
            }
        }
    }

    pub(super) fn deleted(&self) -> Vec<Vec<u8>> {
        self.before.iter().filter(|&name| !self.now.contains_key(name)).cloned().collect()
    }

    pub(super) fn snapshots_rewritten(&self) -> Vec<Vec<u8>> {
        let is_new = |name: &Vec<u8>| matches!(self.now.get(name), Some(FileContent::Snapshot(_)));
        self.before.iter().filter(|&name| is_new(name)).cloned().collect()
    }

    pub(super) fn created(&self) -> Vec<Vec<u8>> {
        self.now.keys().filter(|&name| !self.before.contains(name)).cloned().collect()
    }
}
