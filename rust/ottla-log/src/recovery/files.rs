//! The files of a partition's directory as they stand while a start is played through: what is on
//! disk, and what the start has made of it so far. Nothing is written.

use super::segment::Extent;
use super::stop::Stop;
use crate::sidefiles::offset_index::OffsetEntry;
use crate::source::{Source, fill};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;

/// A directory that can be listed and whose files can be read.
pub trait Directory {
    /// The names of its regular files, in any order.
    ///
    /// # Errors
    /// What the operating system says.
    fn names(&self) -> io::Result<Vec<Vec<u8>>>;

    /// Opens one of them.
    ///
    /// # Errors
    /// What the operating system says.
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

/// Bytes of snapshots the start has made that are kept at once. Kafka goes back to the newest alone,
/// but for logs whose offsets contradict themselves.
const KEPT_SNAPSHOT_BYTES: usize = 64 << 20;

/// What a file holds.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// What is on disk under this name.
    Disk(Rc<[u8]>),
    /// Batches, as far as the start has left them.
    Log(Extent),
    /// An offset index the start has made.
    Index(Index),
    /// A snapshot the start has made; its bytes, while they are kept.
    Snapshot(Option<Rc<[u8]>>),
    /// A file whose content decides nothing.
    Other,
}

/// An offset index the start has made.
#[derive(Clone, Debug)]
pub(super) enum Index {
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
    now: BTreeMap<Vec<u8>, Content>,
    before: BTreeSet<Vec<u8>>,
    /// Snapshots made whose bytes are kept, oldest first.
    kept: Vec<(Vec<u8>, usize)>,
}

impl<'d> Files<'d> {
    pub(super) fn new(directory: &'d dyn Directory) -> Result<Self, Stop> {
        let before: BTreeSet<_> = directory.names()?.into_iter().collect();
        let disk = |name: &Vec<u8>| (name.clone(), Content::Disk(name.as_slice().into()));
        let now = before.iter().map(disk).collect();
        Ok(Self { directory, now, before, kept: Vec::new() })
    }

    /// Names as Java sorts paths.
    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        self.now.keys().cloned().collect()
    }

    /// The same, borrowed.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.now.keys()
    }

    pub(super) fn exists(&self, name: &[u8]) -> bool {
        self.now.contains_key(name)
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&Content> {
        self.now.get(name)
    }

    pub(super) fn put(&mut self, name: &[u8], content: Content) {
        self.now.insert(name.to_vec(), content);
    }

    pub(super) fn put_snapshot(&mut self, name: &[u8], bytes: Vec<u8>) {
        self.kept.push((name.to_vec(), bytes.len()));
        self.put(name, Content::Snapshot(Some(bytes.into())));
        let mut total: usize = self.kept.iter().map(|(_, size)| size).sum();
        while total > KEPT_SNAPSHOT_BYTES && self.kept.len() > 1 {
            let (oldest, size) = self.kept.remove(0);
            total -= size;
            if let Some(content @ Content::Snapshot(_)) = self.now.get_mut(&oldest) {
                *content = Content::Snapshot(None);
            }
        }
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<Content> {
        self.now.remove(name)
    }

    pub(super) fn rename(&mut self, from: &[u8], to: &[u8]) {
        if let Some(content) = self.now.remove(from) {
            self.now.insert(to.to_vec(), content);
        }
    }

    /// Opens what is on disk under a name.
    pub(super) fn open(&self, origin: &[u8]) -> Result<Box<dyn Source + 'd>, Stop> {
        Ok(self.directory.open(origin)?)
    }

    /// The bytes of a file on disk.
    pub(super) fn read(&self, origin: &[u8], limit: u64) -> Result<Vec<u8>, Stop> {
        let source = self.open(origin)?;
        let size = source.size()?;
        if size > limit {
            let name = String::from_utf8_lossy(origin);
            return Err(Stop::Limit(format!("{name} has {size} bytes, more than {limit}")));
        }
        read_part(&*source, 0, size as usize)
    }

    pub(super) fn deleted(&self) -> Vec<Vec<u8>> {
        self.before.iter().filter(|&name| !self.now.contains_key(name)).cloned().collect()
    }

    pub(super) fn created(&self) -> Vec<Vec<u8>> {
        self.now.keys().filter(|&name| !self.before.contains(name)).cloned().collect()
    }
}

/// Bytes of a source from a position on, fewer at its end.
pub(super) fn read_part(source: &dyn Source, position: u64, size: usize) -> Result<Vec<u8>, Stop> {
    let mut data = vec![0; size];
    let filled = fill(source, position, &mut data)?;
    data.truncate(filled);
    Ok(data)
}
