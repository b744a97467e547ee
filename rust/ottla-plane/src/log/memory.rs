//! A segment in memory: buffers that never move, the first of 4 KiB, each four times the one before
//! it, up to 1 MiB. So a partition with one record takes little, and a large one wastes little.

use super::segment::{Ends, Segment, SegmentReader};
use ottla_format::header::RECORD_BATCH_OVERHEAD;
use ottla_log::sidefiles::offset_index::OffsetEntry;
use ottla_log::sidefiles::time_index::TimeEntry;
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

const KIB: u64 = 1 << 10;
/// Where the growing buffers begin, and the first of those of 1 MiB.
const STARTS: [u64; 5] = [0, 4 * KIB, 20 * KIB, 84 * KIB, 340 * KIB];
const LAST_START: u64 = STARTS[4];
const MOST_BITS: u32 = 20;

/// A segment in memory.
#[derive(Debug, Default)]
pub(crate) struct MemorySegment {
    buffers: Arc<Buffers>,
    size: u64,
    offsets: Vec<OffsetEntry>,
    times: Vec<TimeEntry>,
}

/// All but the last are full. Those of a sealed segment have readers on other threads.
#[derive(Clone, Debug, Default)]
struct Buffers(Vec<Vec<u8>>);

/// Where a buffer begins and ends.
fn range_of(number: usize) -> Range<u64> {
    let equal = |number: usize| {
        let before = number.saturating_sub(STARTS.len().saturating_sub(1)) as u64;
        LAST_START.saturating_add(before << MOST_BITS)
    };
    let start = |number: usize| STARTS.get(number).copied().unwrap_or_else(|| equal(number));
    start(number)..start(number.saturating_add(1))
}

/// The number of the buffer that holds a position.
fn number_of(position: u64) -> usize {
    if position >= LAST_START {
        let further = (position.saturating_sub(LAST_START)) >> MOST_BITS;
        return (STARTS.len().saturating_sub(1)).saturating_add(further as usize);
    }
    STARTS.partition_point(|&start| start <= position).saturating_sub(1)
}

impl MemorySegment {
    fn add(&mut self, mut bytes: &[u8]) {
        let Buffers(buffers) = Arc::make_mut(&mut self.buffers);
        while !bytes.is_empty() {
            let last = buffers.len().saturating_sub(1);
            let range = range_of(last);
            let size = range.end.saturating_sub(range.start) as usize;
            let used = buffers.last().map_or(size, Vec::len);
            let room = size.saturating_sub(used);
            if room == 0 {
                let range = range_of(buffers.len());
                let size = range.end.saturating_sub(range.start) as usize;
                buffers.push(Vec::with_capacity(size));
                continue;
            }
            let (added, rest) = bytes.split_at(room.min(bytes.len()));
            if let Some(buffer) = buffers.last_mut() {
                buffer.extend_from_slice(added);
            }
            bytes = rest;
        }
    }
}

impl Segment for MemorySegment {
    fn append(
        &mut self,
        parts: &[&[u8]],
        offsets: &[OffsetEntry],
        times: &[TimeEntry],
    ) -> io::Result<()> {
        for part in parts {
            self.add(part);
            self.size = self.size.saturating_add(part.len() as u64);
        }
        self.offsets.extend_from_slice(offsets);
        self.times.extend_from_slice(times);
        Ok(())
    }

    fn add_aborted(&mut self, _: &[AbortedTransaction]) -> io::Result<()> {
        Ok(())
    }

    fn read(&self, range: Range<u64>, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.buffers.give(range, each);
        Ok(())
    }

    fn read_ahead(&self) -> usize {
        RECORD_BATCH_OVERHEAD
    }

    fn ends(&self) -> Ends {
        let (offset_entries, time_entries) = (self.offsets.len(), self.times.len());
        Ends { size: self.size, offset_entries, time_entries }
    }

    fn offset_entry(&self, number: usize) -> io::Result<Option<OffsetEntry>> {
        Ok(self.offsets.get(number).copied())
    }

    fn time_entry(&self, number: usize) -> io::Result<Option<TimeEntry>> {
        Ok(self.times.get(number).copied())
    }

    fn truncate(&mut self, ends: Ends, _: i64) -> io::Result<()> {
        let Buffers(buffers) = Arc::make_mut(&mut self.buffers);
        let number = number_of(ends.size);
        buffers.truncate(number.saturating_add(1));
        let left = ends.size.saturating_sub(range_of(number).start) as usize;
        if let Some(last) = buffers.get_mut(number) {
            last.truncate(left);
        }
        if left == 0 {
            buffers.truncate(number);
        }
        self.size = self.size.min(ends.size);
        self.offsets.truncate(ends.offset_entries);
        self.times.truncate(ends.time_entries);
        Ok(())
    }

    fn seal(&mut self) {
        let Buffers(buffers) = Arc::make_mut(&mut self.buffers);
        if let Some(last) = buffers.last_mut() {
            last.shrink_to_fit();
        }
        self.offsets.shrink_to_fit();
        self.times.shrink_to_fit();
    }

    fn file(&self) -> io::Result<Option<Arc<File>>> {
        Ok(None)
    }

    fn paths(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn delete(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reader(&self) -> Box<dyn SegmentReader> {
        Box::new(Arc::clone(&self.buffers))
    }

    fn rename(&mut self, _: &'static [u8]) -> io::Result<()> {
        Ok(())
    }

    fn set_modified(&self, _: i64) -> io::Result<()> {
        Ok(())
    }
}

impl Buffers {
    fn give(&self, range: Range<u64>, each: &mut dyn FnMut(&[u8])) {
        let mut position = range.start;
        for (number, buffer) in self.0.iter().enumerate().skip(number_of(range.start)) {
            let start = range_of(number).start;
            let from = position.saturating_sub(start) as usize;
            let to = (range.end.saturating_sub(start)).min(buffer.len() as u64) as usize;
            let Some(slice) = buffer.get(from..to).filter(|slice| !slice.is_empty()) else { break };
            each(slice);
            position = position.saturating_add(slice.len() as u64);
        }
    }
}

impl SegmentReader for Arc<Buffers> {
    fn read(&self, range: Range<u64>, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.give(range, each);
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_in_pieces_is_read_back_from_anywhere() {
        let bytes: Vec<u8> = (0..3_000_000u32).map(|number| (number % 251) as u8).collect();
        let mut segment = MemorySegment::default();
        let mut rest = &bytes[..];
        for size in (1..).map(|step: usize| step * 997) {
            let (piece, behind) = rest.split_at(size.min(rest.len()));
            segment.append(&[piece], &[], &[]).unwrap();
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        let edges = [0, 1, 4095, 4096, 20_479, 20_480, 348_159, 348_160, 1_396_736, 2_999_999];
        for start in edges {
            for end in edges.into_iter().filter(|end| *end >= start) {
                let mut read = Vec::new();
                segment.read(start..end, &mut |slice| read.extend_from_slice(slice)).unwrap();
                assert!(read == bytes[start as usize..end as usize], "{start}..{end}");
            }
        }
        for size in edges.into_iter().rev() {
            segment.truncate(Ends { size, ..Ends::default() }, 0).unwrap();
            segment.append(&[b"end"], &[], &[]).unwrap();
            let mut read = Vec::new();
            segment.read(0..size + 9, &mut |slice| read.extend_from_slice(slice)).unwrap();
            assert!(read[..size as usize] == bytes[..size as usize] && read.ends_with(b"end"));
            assert_eq!(read.len() as u64, size + 3);
        }
    }
}
