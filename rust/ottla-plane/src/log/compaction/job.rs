//! A compaction: made of a log's sealed segments, done beside the broker, put in their place.

use super::cleanable::Cleanable;
use super::filter::{Filter, LastBatch, Left, RecordCounts, records_of};
use super::groups::groups;
use super::offset_map::OffsetMap;
use super::sealed::SealedSegment;
use super::transactions::CleanedTransactions;
use super::{CompactionError, CompactionFault, CompactionSettings};
use crate::log::indexed::IndexedSegment;
use crate::log::partition_log::LogSettings;
use crate::log::segment::MakeSegment;
use ottla_format::batch::{BatchInfo, RecordCursor};
use ottla_format::batches::Batches;
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes that are written at once.
const CHUNK_BYTES: usize = 1 << 20;

/// What a compaction is made of. Nothing of it changes while it runs.
pub(crate) struct Sealed {
    /// From the first segment of the log on, up to the first that is left alone.
    pub(crate) segments: Vec<SealedSegment>,
    pub(crate) cleanable: Cleanable,
    pub(crate) high_watermark: i64,
    /// The aborted transactions that the segments know of.
    pub(crate) aborted: Vec<AbortedTransaction>,
    pub(crate) producers: HashMap<i64, LastBatch>,
    pub(crate) settings: CompactionSettings,
    pub(crate) log: LogSettings,
    pub(crate) now_ms: i64,
    /// Makes room for a segment that is no part of the log yet.
    pub(crate) make: MakeSegment,
    /// Ends it before it is done.
    pub(crate) stop: Arc<AtomicBool>,
}

/// Segments that were compacted.
pub(crate) struct CompactedSegments {
    /// Their numbers in the log.
    pub(crate) replaced: Range<usize>,
    /// What takes their place; nothing where one segment stays as it is.
    pub(in crate::log) segment: Option<IndexedSegment>,
}

/// What a compaction has made.
pub(crate) struct Compacted {
    pub(crate) segments: Vec<CompactedSegments>,
    /// Aborted transactions that readers still have to know of, those with markers above left out.
    pub(crate) aborted: Vec<AbortedTransaction>,
    /// Where the compacted segments end.
    pub(crate) end_offset: i64,
    /// Up to here all keys are known to be the newest: the next compaction begins here.
    pub(crate) cleaned_to: i64,
    /// Whether all of what was to be compacted is.
    pub(crate) is_whole: bool,
    pub(crate) counts: RecordCounts,
}

impl Compacted {
    /// Nobody needs it.
    pub(crate) fn discard(self) {
        self.segments.into_iter().for_each(CompactedSegments::discard);
    }
}

impl CompactedSegments {
    fn discard(self) {
        if let Some(mut segment) = self.segment {
            // What is left of it goes with the next start, or the next compaction.
            let _ = segment.delete();
        }
    }
}

impl Sealed {
    /// Reads the segments and writes others.
    pub(crate) fn compact(&self, codecs: &mut Codecs) -> Result<Compacted, CompactionError> {
        let map = self.offset_map(codecs)?;
        let cleaned_to = map.latest_offset().saturating_add(1);
        let end = self.cleanable.first_uncleanable_offset;
        // Where the map was full, what is behind it is left for the next time.
        let is_reached = |segment: &&SealedSegment| segment.base_offset < cleaned_to;
        let count = self.segments.iter().take_while(is_reached).count();
        let segments = self.segments.get(..count).unwrap_or_default();
        let mut filter = Filter {
            map: &map,
            producers: &self.producers,
            transactions: CleanedTransactions::new(self.aborted.clone()),
            now_ms: self.now_ms,
            delete_retention_ms: self.settings.delete_retention_ms,
            keeps_legacy_tombstones: true,
            high_watermark: self.high_watermark,
            counts: RecordCounts::default(),
            verdicts: Vec::new(),
        };
        let segment_bytes = u64::from(self.log.segment_bytes.unsigned_abs());
        let (mut compacted, mut aborted) = (Vec::new(), Vec::new());
        for group in groups(segments, end, segment_bytes, self.log.segment_index_bytes) {
            let sources = segments.get(group.clone()).unwrap_or_default();
            match self.compact_group(sources, &mut filter, &mut aborted, codecs) {
                Ok(segment) => compacted.push(CompactedSegments { replaced: group, segment }),
                Err(error) => {
                    compacted.into_iter().for_each(CompactedSegments::discard);
                    return Err(error);
                }
            }
        }
        Ok(Compacted {
            segments: compacted,
            counts: filter.counts,
            aborted,
            end_offset: self.segments.get(count).map_or(end, |next| next.base_offset),
            cleaned_to,
            is_whole: cleaned_to >= end,
        })
    }

    /// The newest offsets of the keys between the first dirty and the first uncleanable offset, or of
    /// as many of them as there is room for.
    fn offset_map(&self, codecs: &mut Codecs) -> Result<OffsetMap, CompactionError> {
        let Cleanable { first_dirty_offset: first, first_uncleanable_offset: end, .. } =
            self.cleanable;
        let mut map = OffsetMap::new(first, self.settings.dedupe_buffer_size);
        let mut transactions = CleanedTransactions::new(self.aborted.clone());
        let behind = self.segments.iter().skip(1).map(|next| next.base_offset).chain([end]);
        for (segment, next_base_offset) in self.segments.iter().zip(behind) {
            if next_base_offset <= first {
                continue;
            }
            let mut is_full = false;
            segment.each_batch(&self.stop, &mut |info, batch| {
                is_full = !add(&mut map, &mut transactions, first, info, batch, codecs)?;
                Ok(!is_full)
            })?;
            if is_full {
                return Ok(map);
            }
            map.read_up_to(next_base_offset.saturating_sub(1));
        }
        Ok(map)
    }

    /// One segment of what is left of several; `None` where that is the only one as it is. The aborted
    /// transactions whose markers are in it are added to `aborted`.
    fn compact_group(
        &self,
        sources: &[SealedSegment],
        filter: &mut Filter<'_>,
        aborted: &mut Vec<AbortedTransaction>,
        codecs: &mut Codecs,
    ) -> Result<Option<IndexedSegment>, CompactionError> {
        let (Some(first), Some(last)) = (sources.first(), sources.last()) else { return Ok(None) };
        let segment = first.base_offset;
        let at_the_end =
            |fault: CompactionFault| CompactionError { segment, position: last.size, fault };
        let data = (self.make)(segment).map_err(|error| at_the_end(error.into()))?;
        let mut output = Output {
            segment: IndexedSegment::new(segment, first.created_ms, data),
            bytes: Vec::new(),
            index_interval_bytes: self.log.index_interval_bytes,
            appended_ms: last.appended_ms,
            is_changed: sources.len() > 1,
        };
        let written = sources.iter().try_for_each(|source| {
            filter.keeps_legacy_tombstones = source.appended_ms > self.legacy_horizon_ms();
            source.each_batch(&self.stop, &mut |info, batch| {
                match filter.left_of(info, batch, codecs)? {
                    Left::Nothing => output.is_changed = true,
                    Left::Everything => output.add(batch)?,
                    Left::Rewritten(left) => {
                        output.is_changed = true;
                        output.add(&left)?;
                    }
                }
                Ok(true)
            })
        });
        let met = filter.transactions.take_met();
        let finished = written.and_then(|()| output.finish(&met).map_err(at_the_end));
        aborted.extend(met);
        if finished.is_err() || !output.is_changed {
            // What is left of it goes with the next start, or the next compaction.
            let _ = output.segment.delete();
        }
        finished.map(|()| output.is_changed.then_some(output.segment))
    }

    /// Segments of magic 0 and 1 that are older than this have lost their tombstones: these formats
    /// have no place for a horizon.
    fn legacy_horizon_ms(&self) -> i64 {
        let clean = self
            .segments
            .iter()
            .take_while(|segment| segment.base_offset < self.cleanable.first_dirty_offset);
        clean
            .last()
            .map_or(0, |last| last.appended_ms.saturating_sub(self.settings.delete_retention_ms))
    }
}

/// Adds the keys of a batch to a map. Returns whether there was room for them.
fn add(
    map: &mut OffsetMap,
    transactions: &mut CleanedTransactions,
    first_dirty_offset: i64,
    info: &BatchInfo,
    batch: &[u8],
    codecs: &mut Codecs,
) -> Result<bool, CompactionFault> {
    // What ends a transaction plays no part here: its index tells where it ends.
    let counts = !info.is_control() && !transactions.on_records(info);
    if counts && info.last_offset >= first_dirty_offset {
        let records = records_of(info, batch, codecs)?;
        let mut cursor = RecordCursor::start(info, records, Limits::default())?;
        while let Some(record) = cursor.next(records)? {
            if let Some(key) = record.key
                && record.offset >= first_dirty_offset
                && !map.put(key, record.offset)
            {
                return Ok(false);
            }
        }
    }
    map.read_up_to(info.last_offset);
    Ok(true)
}

/// A segment as it is written.
struct Output {
    segment: IndexedSegment,
    /// Batches that are not written yet.
    bytes: Vec<u8>,
    index_interval_bytes: u64,
    appended_ms: i64,
    /// Whether it holds another thing than the one segment that it is made of.
    is_changed: bool,
}

impl Output {
    fn add(&mut self, batch: &[u8]) -> Result<(), CompactionFault> {
        self.bytes.extend_from_slice(batch);
        if self.bytes.len() < CHUNK_BYTES { Ok(()) } else { Ok(self.write()?) }
    }

    fn write(&mut self) -> io::Result<()> {
        let batches: Vec<_> = Batches::new(&self.bytes, 0).flatten().collect();
        if !batches.is_empty() {
            let interval = self.index_interval_bytes;
            self.segment.append(&[&self.bytes], &batches, interval, self.appended_ms)?;
        }
        self.bytes.clear();
        Ok(())
    }

    /// Nothing more comes: it survives a crash before it takes the place of others.
    fn finish(&mut self, aborted: &[AbortedTransaction]) -> Result<(), CompactionFault> {
        self.write()?;
        if !aborted.is_empty() {
            self.segment.add_aborted(aborted)?;
        }
        // Also of one without a batch.
        self.segment.appended_ms = self.appended_ms;
        self.segment.seal()?;
        if self.is_changed {
            self.segment.set_modified()?;
            self.segment.close();
            self.segment.sync()?;
        }
        Ok(())
    }
}
