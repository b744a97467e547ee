//! Segments in a row: rolling, reading, searching, retention (`docs/kafka/log-dir.md` §2).

use super::directory::LogDirectory;
use super::epochs::EpochStarts;
use super::file::FileSegment;
use super::flush::FlushJob;
use super::indexed::IndexedSegment;
use super::memory::MemorySegment;
use super::on_disk::OnDisk;
use super::segment::{Ends, MakeSegment, Segment};
use crate::wire::TopicId;
use ottla_format::batch::BatchInfo;
use ottla_leader::PartitionState;
use ottla_log::recovery::RecoveredLog;
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// What of a topic's configuration concerns the log alone, under Kafka's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// `segment.bytes`.
    pub segment_bytes: i32,
    /// `segment.ms`.
    pub segment_ms: i64,
    /// `segment.index.bytes`.
    pub segment_index_bytes: u64,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u64,
    /// Whether `cleanup.policy` contains `delete`, without which the other two mean nothing.
    pub is_deleted: bool,
    /// `retention.ms`, −1 for ever.
    pub retention_ms: i64,
    /// `retention.bytes`, −1 for any.
    pub retention_bytes: i64,
}

/// Takes whole batches, and `None` behind those of a segment.
type EachPiece<'a, E> = dyn FnMut(Option<&[u8]>) -> Result<(), E> + 'a;

/// Batches of a log that are read: a range of one of its segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    segment: usize,
    range: Range<u64>,
    /// The offset behind the last of them.
    pub(crate) next_offset: i64,
}

impl Span {
    pub(crate) fn size(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

/// The log of a partition. Its last segment is the active one; there is always one.
pub(crate) struct PartitionLog {
    pub(super) segments: Vec<IndexedSegment>,
    make: MakeSegment,
    /// `None` in memory.
    pub(super) disk: Option<OnDisk>,
    /// Changes where segments are deleted, truncated or replaced: what was made of those before is of
    /// no use then.
    pub(super) generation: u64,
}

impl PartitionLog {
    /// An empty log in memory that begins at an offset.
    pub(crate) fn in_memory(offset: i64, now_ms: i64) -> Self {
        let active = IndexedSegment::new(offset, now_ms, Box::<MemorySegment>::default());
        let make = Box::new(|_| Ok(Box::<MemorySegment>::default() as Box<dyn Segment>));
        Self { segments: vec![active], make, disk: None, generation: 0 }
    }

    /// An empty log that begins at an offset, in a directory without segments.
    pub(crate) fn in_directory(
        directory: Arc<LogDirectory>,
        offset: i64,
        now_ms: i64,
    ) -> io::Result<Self> {
        let make = Self::make_files(&directory);
        Self::new(offset, now_ms, make, Some(OnDisk::new(directory, offset)))
    }

    fn make_files(directory: &Arc<LogDirectory>) -> MakeSegment {
        let of = Arc::clone(directory);
        Box::new(move |base_offset| {
            Ok(Box::new(FileSegment::create(&of, base_offset)?) as Box<dyn Segment>)
        })
    }

    /// A log that was recovered in its directory, and is synced up to an offset.
    pub(super) fn resume(
        directory: &Arc<LogDirectory>,
        recovered: &RecoveredLog,
        recovery_point: i64,
    ) -> io::Result<Self> {
        let last_snapshot_offset = recovered.last_snapshot_offset;
        let mut disk = OnDisk::resume(Arc::clone(directory), recovery_point, last_snapshot_offset);
        let mut segments: Vec<IndexedSegment> = Vec::with_capacity(recovered.segments.len());
        for segment in &recovered.segments {
            if let Some(before) = segments.last().filter(|_| segment.base_offset > recovery_point) {
                disk.rolled(before.base_offset);
            }
            let data = FileSegment::of(
                directory,
                segment.base_offset,
                Ends {
                    size: segment.size,
                    offset_entries: usize::try_from(segment.offset_entries).unwrap_or(0),
                    time_entries: usize::try_from(segment.time_entries).unwrap_or(0),
                },
            );
            let modified_ms = data.modified_ms()?;
            segments.push(IndexedSegment::resume(
                segment.base_offset,
                modified_ms,
                Box::new(data),
            )?);
        }
        Ok(Self { segments, make: Self::make_files(directory), disk: Some(disk), generation: 0 })
    }

    /// An empty log that begins at an offset, whose segments are made this way.
    pub(crate) fn new(
        offset: i64,
        now_ms: i64,
        make: MakeSegment,
        disk: Option<OnDisk>,
    ) -> io::Result<Self> {
        let active = IndexedSegment::new(offset, now_ms, make(offset)?);
        Ok(Self { segments: vec![active], make, disk, generation: 0 })
    }

    /// Bytes of all batches.
    pub(crate) fn size(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.tally.size))
    }

    /// Base offsets of the segments.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (i64, u64)> {
        self.segments.iter().map(|segment| (segment.base_offset, segment.tally.size))
    }

    /// The segments from the one that holds an offset on.
    pub(super) fn segments_from(&self, offset: i64) -> impl Iterator<Item = &IndexedSegment> {
        self.segments.iter().skip(self.segment_of(offset))
    }

    /// Where it is, and how far it is synced; `None` in memory.
    pub(crate) fn disk(&self) -> Option<&OnDisk> {
        self.disk.as_ref()
    }

    /// Adds batches whose bytes are these parts, to the state that is known of the partition. Where
    /// the active segment has no room for them, or is too old, a new one begins.
    pub(crate) fn append(
        &mut self,
        parts: &[&[u8]],
        batches: &[BatchInfo],
        settings: &LogSettings,
        state: &PartitionState,
        now_ms: i64,
    ) -> io::Result<()> {
        let (Some(first), Some(last)) = (batches.first(), batches.last()) else { return Ok(()) };
        if let Some(active) = self.segments.last()
            && must_roll(active, batches, last.last_offset, settings, now_ms)
        {
            // Of a wrapper of magic 0 or 1 only the last offset is known.
            let next_offset = active.tally.next_offset;
            let base = if first.magic < 2 { next_offset } else { first.base_offset };
            self.roll(base.max(next_offset), state, now_ms)?;
        }
        match self.segments.last_mut() {
            Some(active) => active.append(parts, batches, settings.index_interval_bytes, now_ms),
            None => Ok(()),
        }
    }

    /// Begins a segment, whose files say what is known of the producers.
    pub(super) fn roll(
        &mut self,
        base_offset: i64,
        state: &PartitionState,
        now_ms: i64,
    ) -> io::Result<()> {
        let Some(active) = self.segments.last_mut() else { return Ok(()) };
        active.seal()?;
        if self.disk.as_ref().is_some_and(|disk| disk.recovery_point() >= base_offset) {
            // It was synced while it grew, without its indexes, which no start builds anew from now on.
            active.sync()?;
        }
        let sealed = active.base_offset;
        if let Some(disk) = &mut self.disk {
            disk.take_snapshot(state, base_offset)?;
        }
        let data = (self.make)(base_offset)?;
        self.segments.push(IndexedSegment::new(base_offset, now_ms, data));
        if let Some(disk) = &mut self.disk {
            disk.rolled(sealed);
        }
        Ok(())
    }

    /// Adds transactions that markers have aborted which were appended last.
    pub(crate) fn add_aborted(&mut self, aborted: &[AbortedTransaction]) -> io::Result<()> {
        match self.segments.last_mut() {
            Some(active) if !aborted.is_empty() => active.add_aborted(aborted),
            _ => Ok(()),
        }
    }

    /// Stores where the leader epochs begin.
    pub(crate) fn keep_epochs(&self, epochs: &EpochStarts) -> io::Result<()> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.write_epochs(epochs))
    }

    /// The segment that holds an offset, by its number, or the one before it.
    fn segment_of(&self, offset: i64) -> usize {
        let behind = self.segments.partition_point(|segment| segment.base_offset <= offset);
        behind.saturating_sub(1)
    }

    /// The batch that holds an offset, or the next one, and the number of its segment.
    fn find(&self, offset: i64) -> io::Result<Option<(usize, BatchInfo)>> {
        for (number, segment) in self.segments.iter().enumerate().skip(self.segment_of(offset)) {
            if let Some(batch) = segment.find_offset(offset)? {
                return Ok(Some((number, batch)));
            }
        }
        Ok(None)
    }

    /// Base offset of the batch that holds an offset, or of the next one.
    pub(crate) fn base_offset_of(&self, offset: i64) -> io::Result<Option<i64>> {
        Ok(self.find(offset)?.map(|(_, batch)| batch.base_offset))
    }

    /// The whole batches from the one that holds an offset on, of which none begins at
    /// `before_offset` or behind, in at most `max_bytes`; where `must_progress`, the first of them
    /// even if it is larger (KIP-74).
    pub(crate) fn read(
        &self,
        offset: i64,
        before_offset: i64,
        max_bytes: u64,
        must_progress: bool,
    ) -> io::Result<Span> {
        if offset >= before_offset || max_bytes == 0 && !must_progress {
            return Ok(Span { next_offset: offset, ..Span::default() });
        }
        let Some((number, first)) = self.find(offset)? else {
            return Ok(Span { next_offset: offset, ..Span::default() });
        };
        let max_bytes = if must_progress { max_bytes.max(first.size) } else { max_bytes };
        let Some(segment) = self.segments.get(number) else { return Ok(Span::default()) };
        let (end, next_offset) = segment.end_of_read(&first, before_offset, max_bytes)?;
        Ok(Span { segment: number, range: first.position..end, next_offset })
    }

    /// Gives the bytes of what was read to `each`.
    pub(crate) fn give(&self, span: &Span, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        match self.segments.get(span.segment) {
            Some(segment) if span.size() > 0 => segment.read(span.range.clone(), each),
            _ => Ok(()),
        }
    }

    /// Gives the whole batches from the one that holds an offset on to `each`, in pieces of a bounded
    /// size, and `None` behind those of a segment, for who reads the log again.
    pub(crate) fn each_piece_from<E: From<io::Error>>(
        &self,
        offset: i64,
        each: &mut EachPiece<'_, E>,
    ) -> Result<(), E> {
        for segment in self.segments_from(offset) {
            segment.each_piece(offset, &mut |piece| each(Some(piece)))?;
            each(None)?;
        }
        Ok(())
    }

    /// Deletes the segments that `retention.ms`, `retention.bytes` or the log start allow, oldest
    /// first, and of those that are wholly replicated. Returns the offset at which the log begins.
    pub(crate) fn delete_old(
        &mut self,
        settings: &LogSettings,
        state: &PartitionState,
        now_ms: i64,
    ) -> io::Result<i64> {
        let (log_start_offset, high_watermark) = (state.log_start_offset(), state.high_watermark());
        let mut gone = 0usize;
        let mut size = self.size();
        for (number, segment) in self.segments.iter().enumerate() {
            let next = self.segments.get(number.saturating_add(1));
            let end = next.map_or(segment.tally.next_offset, |next| next.base_offset);
            let is_empty_end = next.is_none() && segment.tally.size == 0;
            if is_empty_end || high_watermark < end {
                break;
            }
            let age_ms = now_ms.saturating_sub(segment.largest_timestamp());
            let is_old = (0..age_ms).contains(&settings.retention_ms);
            let left = size.saturating_sub(segment.tally.size);
            let is_too_much =
                u64::try_from(settings.retention_bytes).is_ok_and(|limit| left >= limit);
            let is_below = next.is_some() && end <= log_start_offset;
            if !(is_below || settings.is_deleted && (is_old || is_too_much)) {
                break;
            }
            size = left;
            gone = number.saturating_add(1);
        }
        if gone == self.segments.len()
            && let Some(active) = self.segments.last()
        {
            self.roll(active.tally.next_offset, state, now_ms)?;
        }
        let deleted: Vec<_> = self.segments.drain(..gone).collect();
        self.delete(deleted)?;
        let first = self.segments.first().map_or(log_start_offset, |first| first.base_offset);
        Ok(if gone > 0 { first.max(log_start_offset) } else { log_start_offset })
    }

    /// Deletes the files of segments that are in the log no more.
    fn delete(&mut self, segments: Vec<IndexedSegment>) -> io::Result<()> {
        for mut segment in segments {
            self.generation = self.generation.saturating_add(1);
            segment.delete()?;
            if let Some(disk) = &mut self.disk {
                disk.deleted(segment.base_offset)?;
            }
        }
        Ok(())
    }

    /// Drops the batches that reach an offset. Returns the offset of the newest snapshot that is left.
    pub(crate) fn truncate(&mut self, offset: i64) -> io::Result<Option<i64>> {
        self.generation = self.generation.saturating_add(1);
        let kept = self.segment_of(offset).saturating_add(1);
        let deleted = self.segments.split_off(kept.min(self.segments.len()));
        self.delete(deleted)?;
        let Some(active) = self.segments.last_mut() else { return Ok(None) };
        active.truncate(offset)?;
        let base_offset = active.base_offset;
        self.disk.as_mut().map_or(Ok(None), |disk| disk.truncated(offset, base_offset))
    }

    /// Stores what is known of the producers at the log end.
    pub(crate) fn take_snapshot(&mut self, state: &PartitionState) -> io::Result<()> {
        let offset = state.log_end_offset();
        self.disk.as_mut().map_or(Ok(()), |disk| disk.take_snapshot(state, offset))
    }

    /// What makes it survive a crash as it is; `None` where nothing is to be done.
    pub(crate) fn flush_job(&self) -> io::Result<Option<FlushJob>> {
        let end = self.segments.last().map_or(0, |active| active.tally.next_offset);
        self.disk.as_ref().map_or(Ok(None), |disk| disk.flush_job(&self.segments, end))
    }

    /// A job is done.
    pub(crate) fn flushed(&mut self, job: &FlushJob) {
        if let Some(disk) = &mut self.disk {
            disk.flushed(job);
        }
    }

    /// Makes it survive a crash as it is.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if let Some(job) = self.flush_job()? {
            job.run()?;
            self.flushed(&job);
        }
        Ok(())
    }

    /// Closes its files.
    pub(crate) fn close(&mut self) {
        self.segments.iter_mut().for_each(IndexedSegment::close);
    }

    /// Removes its directory, where it has one.
    pub(crate) fn remove(self, topic: &[u8], index: i32, topic_id: TopicId) -> io::Result<()> {
        let disk = self.disk.as_ref();
        disk.map_or(Ok(()), |disk| disk.directory().remove(topic, index, topic_id))
    }

    /// Leaves it as a clean stop does: a start has to read nothing of it.
    pub(crate) fn shut_down(&mut self, state: &PartitionState) -> io::Result<()> {
        self.take_snapshot(state)?;
        let Some(disk) = &mut self.disk else { return Ok(()) };
        if let Some(active) = self.segments.last_mut() {
            active.seal()?;
            disk.rolled(active.base_offset);
        }
        self.flush()?;
        self.close();
        Ok(())
    }
}

/// Whether batches begin a new segment.
fn must_roll(
    active: &IndexedSegment,
    batches: &[BatchInfo],
    last_offset: i64,
    settings: &LogSettings,
    now_ms: i64,
) -> bool {
    if last_offset.saturating_sub(active.base_offset) > i64::from(i32::MAX) {
        return true;
    }
    let tally = &active.tally;
    if tally.size == 0 {
        return false;
    }
    let size = batches.iter().fold(0u64, |sum, batch| sum.saturating_add(batch.size));
    let is_full =
        tally.size.saturating_add(size) > u64::from(settings.segment_bytes.unsigned_abs());
    // By the records' own time, or by the clock where they have none.
    let max_timestamp = batches.iter().map(|batch| batch.max_timestamp).max().unwrap_or(-1);
    let waited_ms = match tally.first_timestamp.filter(|&first| first >= 0) {
        Some(first) => max_timestamp.saturating_sub(first),
        None => now_ms.saturating_sub(active.created_ms),
    };
    is_full || waited_ms > settings.segment_ms || active.is_index_full(settings.segment_index_bytes)
}
