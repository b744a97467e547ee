//! One segment as the loader opens it: its batches, its offset index, and how the two find an offset.

use super::epochs::LeaderEpochs;
use super::files::{Extent, FileContent, Files, NewIndex};
use super::index_builder::{IndexConfig, build_offset_index};
use super::index_lookup::{IndexEntries, OpenIndex};
use super::interruption::{Interruption, LoadError};
use super::open_file::MAX_TEXT_BYTES;
use super::segment_file::SegmentFile;
use crate::names::{LEADER_EPOCHS, MAX_SEGMENT_BYTES, SegmentNames};
use crate::sidefiles::offset_index::whole_entries;
use ottla_format::compression::Codecs;
use std::rc::Rc;

/// Opens the segments of a partition.
pub(super) struct SegmentReader<'d> {
    pub(super) files: Files<'d>,
    pub(super) codecs: Codecs,
    pub(super) config: IndexConfig,
    /// Name of the partition's directory, for messages.
    pub(super) partition: String,
}

impl<'d> SegmentReader<'d> {
    /// The path of a file as Kafka's messages show it.
    pub(super) fn path(&self, name: &[u8]) -> String {
        format!("{}/{}", self.partition, String::from_utf8_lossy(name))
    }

    /// The epochs in the directory's file, `None` without one.
    pub(super) fn read_epochs(&self) -> Result<Option<LeaderEpochs>, Interruption> {
        let Some(FileContent::Disk(origin)) = self.files.get(LEADER_EPOCHS) else {
            return Ok(None);
        };
        let data = self.files.read(origin, MAX_TEXT_BYTES)?;
        LeaderEpochs::read(&data, &self.path(LEADER_EPOCHS)).map(Some)
    }

    /// Where the batches of a file are, without a limit to their bytes.
    pub(super) fn stored(&self, name: &[u8]) -> Result<Extent, LoadError> {
        Ok(match self.files.get(name) {
            Some(FileContent::Log(extent)) => extent.clone(),
            Some(FileContent::Disk(origin)) => {
                let size = self.files.open(origin)?.size()?;
                Extent { origin: Some(Rc::clone(origin)), start: 0, size }
            }
            _ => Extent::default(),
        })
    }

    /// Where a segment's batches are; a missing file is created.
    pub(super) fn extent(&mut self, name: &[u8]) -> Result<Extent, Interruption> {
        let extent = self.stored(name)?;
        let size = extent.size;
        if size > MAX_SEGMENT_BYTES {
            return Err(Interruption::kafka(format!(
                "The size of segment {} ({size}) is larger than the maximum allowed segment size of \
                 {MAX_SEGMENT_BYTES}",
                self.path(name)
            )));
        }
        self.files.put(name, FileContent::Log(extent.clone()));
        Ok(extent)
    }

    pub(super) fn log(&mut self, name: &[u8]) -> Result<SegmentFile<'d>, Interruption> {
        let Extent { origin, start, size } = self.extent(name)?;
        let file = origin.map(|origin| self.files.open(&origin)).transpose()?;
        Ok(SegmentFile::new(file, (start, size), self.path(name)))
    }

    /// Cuts a segment's batches to a size. Returns how many bytes that takes away.
    pub(super) fn truncate(&mut self, name: &[u8], to: u64) -> Result<u64, Interruption> {
        let extent = self.extent(name)?;
        let size = extent.size;
        self.files.put(name, FileContent::Log(Extent { size: to.min(size), ..extent }));
        Ok(size.saturating_sub(to))
    }

    /// Opens the offset index of a segment; a missing one is created empty.
    fn index(&mut self, names: &SegmentNames) -> Result<OpenIndex<'d>, Interruption> {
        let entries = match self.files.get(&names.index) {
            None => {
                let empty = NewIndex::Entries(Rc::default());
                self.files.put(&names.index, FileContent::Index(empty));
                IndexEntries::New(Rc::default())
            }
            Some(FileContent::Disk(origin)) => {
                let file = self.files.open(origin)?;
                let count = whole_entries(file.size()?);
                IndexEntries::Disk { file, count }
            }
            Some(FileContent::Index(NewIndex::Zeros(count))) => IndexEntries::Zeros(*count),
            Some(FileContent::Index(NewIndex::Entries(entries))) => {
                IndexEntries::New(Rc::clone(entries))
            }
            Some(FileContent::Index(NewIndex::Derived { valid_bytes })) => {
                let valid_bytes = *valid_bytes;
                let mut log = self.log(&names.log)?;
                let entries =
                    build_offset_index(&mut log, names.base_offset, valid_bytes, &self.config)?;
                IndexEntries::New(entries.into())
            }
            Some(_) => IndexEntries::Zeros(0),
        };
        Ok(OpenIndex { entries, base_offset: names.base_offset })
    }

    /// Where the batch begins that holds an offset or the next above it.
    pub(super) fn translate(
        &mut self,
        names: &SegmentNames,
        offset: i64,
    ) -> Result<Option<u64>, Interruption> {
        let position = self.index(names)?.lookup(offset)?;
        self.log(&names.log)?.search(offset, position, &mut self.codecs)
    }

    /// Whether a segment ends with a whole batch, the last before an offset, and its last index entry is
    /// that of a batch.
    pub(super) fn is_whole(
        &mut self,
        names: &SegmentNames,
        end_offset: i64,
    ) -> Result<bool, Interruption> {
        let indexed = self.index(names)?.last_used()?;
        let mut log = self.log(&names.log)?;
        let (mut position, mut next_offset) = (0, names.base_offset);
        if let Some((_, entry)) = indexed {
            position = u64::try_from(entry.position).unwrap_or(u64::MAX);
            let Some(frame) = log.next(position, log.size())? else { return Ok(false) };
            log.check(&frame)?;
            if frame.offset > entry.offset(names.base_offset) {
                return Ok(false);
            }
        }
        while let Some(frame) = log.next(position, log.size())? {
            next_offset = log.last_offset(&frame)?.wrapping_add(1);
            position = frame.end();
        }
        Ok(position == log.size() && next_offset == end_offset)
    }

    /// Whether a batch of a segment reaches an offset, as far as its batches can be followed.
    pub(super) fn reaches(&mut self, names: &SegmentNames, offset: i64) -> Result<bool, LoadError> {
        let mut log = self.log(&names.log)?;
        let mut position = 0;
        loop {
            let next = log.next(position, log.size()).and_then(|frame| {
                frame.map(|frame| Ok((frame.end(), log.last_offset(&frame)?))).transpose()
            });
            match next {
                Ok(Some((_, last_offset))) if last_offset >= offset => return Ok(true),
                Ok(Some((end, _))) => position = end,
                Err(Interruption::Failed(error)) => return Err(error),
                _ => return Ok(false),
            }
        }
    }

    /// The offset that a record appended next would get.
    pub(super) fn next_offset(&mut self, names: &SegmentNames) -> Result<i64, Interruption> {
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
