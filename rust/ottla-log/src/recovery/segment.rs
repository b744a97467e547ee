//! One segment as the loader opens it: its log, its offset index, and how the two find an offset.

use super::files::{Content, Files, Index};
use super::log::Log;
use super::rebuild::{Config, rebuild_indexes};
use super::stop::Stop;
use crate::names::SegmentNames;
use crate::sidefiles::offset_index::{OFFSET_ENTRY_BYTES, OffsetEntry};
use crate::source::Source;
use ottla_format::compression::Codecs;
use std::rc::Rc;

/// The largest segment file Kafka opens.
const MAX_SEGMENT_BYTES: u64 = i32::MAX as u64;

/// Entries at the end of an index that Kafka searches first.
const WARM_ENTRIES: u64 = 8192 / OFFSET_ENTRY_BYTES as u64;

/// Where the batches of a segment are: in a part of a file on disk, or nowhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Extent {
    pub(super) origin: Option<Rc<[u8]>>,
    pub(super) start: u64,
    pub(super) size: u64,
}

/// What all looking into files needs.
pub(super) struct Reader<'d> {
    pub(super) files: Files<'d>,
    pub(super) codecs: Codecs,
    pub(super) config: Config,
    /// Name of the partition's directory, for messages.
    pub(super) partition: String,
}

impl<'d> Reader<'d> {
    /// A file's name as Kafka's messages have it.
    pub(super) fn path(&self, name: &[u8]) -> String {
        format!("{}/{}", self.partition, String::from_utf8_lossy(name))
    }

    /// Where a segment's batches are; a missing file is made.
    pub(super) fn extent(&mut self, name: &[u8]) -> Result<Extent, Stop> {
        let extent = match self.files.get(name) {
            Some(Content::Log(extent)) => extent.clone(),
            Some(Content::Disk(origin)) => {
                let size = self.files.open(origin)?.size()?;
                Extent { origin: Some(Rc::clone(origin)), start: 0, size }
            }
            _ => Extent::default(),
        };
        let size = extent.size;
        if size > MAX_SEGMENT_BYTES {
            return Err(Stop::kafka(format!(
                "The size of segment {} ({size}) is larger than the maximum allowed segment size of \
                 {MAX_SEGMENT_BYTES}",
                self.path(name)
            )));
        }
        self.files.put(name, Content::Log(extent.clone()));
        Ok(extent)
    }

    pub(super) fn log(&mut self, name: &[u8]) -> Result<Log<'d>, Stop> {
        let Extent { origin, start, size } = self.extent(name)?;
        let source: Box<dyn Source + 'd> = match origin {
            Some(origin) => self.files.open(&origin)?,
            None => Box::new(&[][..]),
        };
        Ok(Log::new(source, (start, size), self.path(name)))
    }

    /// Cuts a segment's batches to a size: how many bytes that takes away.
    pub(super) fn truncate(&mut self, name: &[u8], to: u64) -> Result<u64, Stop> {
        let extent = self.extent(name)?;
        let size = extent.size;
        self.files.put(name, Content::Log(Extent { size: to.min(size), ..extent }));
        Ok(size.saturating_sub(to))
    }

    /// The offset index of a segment, opened; a missing one is made empty.
    fn index(&mut self, names: &SegmentNames) -> Result<OpenIndex<'d>, Stop> {
        let entries = match self.files.get(&names.index) {
            None => {
                self.files.put(&names.index, Content::Index(Index::Entries(Rc::default())));
                Entries::Made(Rc::default())
            }
            Some(Content::Disk(origin)) => {
                let source = self.files.open(origin)?;
                let count = source.size()? / OFFSET_ENTRY_BYTES as u64;
                Entries::Disk { source, count }
            }
            Some(Content::Index(Index::Zeros(count))) => Entries::Zeros(*count),
            Some(Content::Index(Index::Entries(entries))) => Entries::Made(Rc::clone(entries)),
            Some(Content::Index(Index::Derived { valid_bytes })) => {
                let valid_bytes = *valid_bytes;
                let mut log = self.log(&names.log)?;
                Entries::Made(rebuild_indexes(&mut log, names, valid_bytes, &self.config)?.into())
            }
            Some(_) => Entries::Zeros(0),
        };
        Ok(OpenIndex { entries, base_offset: names.base_offset })
    }

    /// Where the batch begins that holds an offset or the next above it.
    pub(super) fn translate(
        &mut self,
        names: &SegmentNames,
        offset: i64,
    ) -> Result<Option<u64>, Stop> {
        let position = self.index(names)?.lookup(offset)?;
        self.log(&names.log)?.search(offset, position, &mut self.codecs)
    }

    /// The offset that a record appended next would get.
    pub(super) fn next_offset(&mut self, names: &SegmentNames) -> Result<i64, Stop> {
        let last_offset = self.index(names)?.last_offset()?;
        match self.translate(names, last_offset)? {
            None => Ok(names.base_offset),
            Some(position) => {
                let next = self.log(&names.log)?.next_offset_from(position)?;
                Ok(next.unwrap_or(names.base_offset))
            }
        }
    }
}

/// An offset is within the reach of a segment's indexes.
pub(super) fn is_in_range(base_offset: i64, offset: i64) -> bool {
    (0..=i64::from(i32::MAX)).contains(&offset.wrapping_sub(base_offset))
}

enum Entries<'d> {
    Disk { source: Box<dyn Source + 'd>, count: u64 },
    Zeros(u64),
    Made(Rc<[OffsetEntry]>),
}

struct OpenIndex<'d> {
    entries: Entries<'d>,
    base_offset: i64,
}

impl OpenIndex<'_> {
    fn count(&self) -> u64 {
        match &self.entries {
            Entries::Disk { count, .. } | Entries::Zeros(count) => *count,
            Entries::Made(entries) => entries.len() as u64,
        }
    }

    fn entry(&self, number: u64) -> Result<OffsetEntry, Stop> {
        let zeros = OffsetEntry { relative_offset: 0, position: 0 };
        Ok(match &self.entries {
            Entries::Disk { source, .. } => {
                let mut bytes = [0; OFFSET_ENTRY_BYTES];
                crate::source::fill(&**source, number * OFFSET_ENTRY_BYTES as u64, &mut bytes)?;
                OffsetEntry::read(&bytes, 0).unwrap_or(zeros)
            }
            Entries::Zeros(_) => zeros,
            Entries::Made(entries) => usize::try_from(number)
                .ok()
                .and_then(|at| entries.get(at))
                .copied()
                .unwrap_or(zeros),
        })
    }

    fn offset(&self, number: u64) -> Result<i64, Stop> {
        Ok(self.entry(number)?.offset(self.base_offset))
    }

    fn last_offset(&self) -> Result<i64, Stop> {
        match self.count().checked_sub(1) {
            None => Ok(self.base_offset),
            Some(last) => self.offset(last),
        }
    }

    /// Position of the greatest entry at or below an offset, as Kafka's search finds it: over
    /// entries that do not increase that may be any.
    fn lookup(&self, target: i64) -> Result<u64, Stop> {
        let Some(last) = self.count().checked_sub(1) else { return Ok(0) };
        let first_warm = last.saturating_sub(WARM_ENTRIES);
        let (mut low, mut high) = if self.offset(first_warm)? < target {
            (first_warm, last)
        } else if self.offset(0)? > target {
            return Ok(0);
        } else {
            (0, first_warm)
        };
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match self.offset(middle)?.cmp(&target) {
                std::cmp::Ordering::Greater => high = middle - 1,
                std::cmp::Ordering::Less => low = middle,
                std::cmp::Ordering::Equal => {
                    low = middle;
                    break;
                }
            }
        }
        Ok(u64::try_from(self.entry(low)?.position).unwrap_or(0))
    }
}
