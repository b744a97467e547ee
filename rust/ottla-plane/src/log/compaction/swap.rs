//! The segments of a log as a compaction reads them, and others in their place.

use super::cleanable::SegmentFacts;
use super::job::CompactedSegments;
use super::sealed::SealedSegment;
use crate::log::file::FileSegment;
use crate::log::indexed::IndexedSegment;
use crate::log::memory::MemorySegment;
use crate::log::partition_log::PartitionLog;
use crate::log::segment::{Ends, MakeSegment, Segment};
use ottla_leader::PartitionState;
use ottla_log::names::SWAP;
use std::io;
use std::sync::Arc;

impl PartitionLog {
    /// What is known of the segments without reading them.
    pub(crate) fn segment_facts(&self) -> Vec<SegmentFacts> {
        let facts = |segment: &IndexedSegment| SegmentFacts {
            base_offset: segment.base_offset,
            size: segment.tally.size,
            first_timestamp: segment.tally.first_timestamp,
            largest_timestamp: segment.largest_timestamp(),
        };
        self.segments.iter().map(facts).collect()
    }

    /// The sealed segments that begin below an offset.
    pub(crate) fn sealed_below(&self, offset: i64) -> Vec<SealedSegment> {
        let sealed = self.segments.split_last().map_or(&[][..], |(_, sealed)| sealed);
        let below = sealed.iter().take_while(|segment| segment.base_offset < offset);
        let read = |segment: &IndexedSegment| {
            let Ends { size, offset_entries, time_entries } = segment.ends();
            SealedSegment {
                base_offset: segment.base_offset,
                size,
                created_ms: segment.created_ms,
                appended_ms: segment.appended_ms,
                offset_entries,
                time_entries,
                reader: segment.reader(),
            }
        };
        below.map(read).collect()
    }

    /// Makes room for segments that are no part of the log yet.
    pub(crate) fn maker_of_cleaned(&self) -> MakeSegment {
        let Some(disk) = &self.disk else {
            return Box::new(|_| Ok(Box::<MemorySegment>::default() as Box<dyn Segment>));
        };
        let directory = Arc::clone(disk.directory());
        Box::new(move |base_offset| {
            let segment = FileSegment::create_cleaned(&directory, base_offset)?;
            Ok(Box::new(segment) as Box<dyn Segment>)
        })
    }

    /// Changes where segments were deleted, truncated or replaced: what was made of those before is of
    /// no use then.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Begins a segment, unless the active one has no batch.
    pub(crate) fn roll_now(&mut self, state: &PartitionState, now_ms: i64) -> io::Result<()> {
        match self.segments.last().map(|active| active.tally) {
            Some(tally) if tally.size > 0 => self.roll(tally.next_offset, state, now_ms),
            _ => Ok(()),
        }
    }

    /// Puts compacted segments in the place of those that they were made of, as Kafka does, so that a
    /// start after a crash finds the ones or the others: `.cleaned` is removed, and `.swap` takes the
    /// place of what it covers (`docs/kafka/log-dir.md` §5). From the beginning on, since a start takes
    /// a `.swap` above a `.cleaned` for one of a split that was cut short.
    pub(crate) fn replace(&mut self, compacted: Vec<CompactedSegments>) -> io::Result<()> {
        self.generation = self.generation.saturating_add(1);
        let (mut gone, mut fewer) = (Vec::new(), 0usize);
        for CompactedSegments { replaced, segment } in compacted {
            let Some(mut segment) = segment else { continue };
            segment.rename(SWAP)?;
            let number = replaced.start.saturating_sub(fewer);
            let behind = replaced.end.saturating_sub(fewer);
            fewer = fewer.saturating_add(replaced.len().saturating_sub(1));
            let base_offset = segment.base_offset;
            let old: Vec<_> = self.segments.splice(number..behind, [segment]).collect();
            for mut old in old {
                old.delete()?;
                gone.extend((old.base_offset != base_offset).then_some(old.base_offset));
            }
            if let Some(segment) = self.segments.get_mut(number) {
                segment.rename(b"")?;
            }
        }
        self.disk.as_mut().map_or(Ok(()), |disk| disk.replaced(&gone))
    }
}
