//! The producers of a partition while it is loaded, and the snapshots that lie in its directory
//! (`ProducerStateManager`).

use super::files::{Content, Files};
use super::log::Frame;
use super::rebuild::{commit, judge, producer_batch};
use super::segment::Reader;
use super::stop::Stop;
use crate::names::{SNAPSHOT, SegmentNames, file_name, offset_of};
use crate::producers::{Pending, Producers};
use crate::sidefiles::snapshot::SNAPSHOT_ENTRY_BYTES;
use std::collections::BTreeMap;

/// A snapshot of more producers is not read: a broker with a million on one partition has other
/// troubles.
const MAX_SNAPSHOT_BYTES: u64 = (SNAPSHOT_ENTRY_BYTES as u64) << 20;

/// Batches whose effects are taken over together. Kafka takes a segment's at once, which differs only
/// where a transaction begins twice at one offset.
const BATCHES_AT_ONCE: usize = 1 << 20;

/// Producers and snapshots.
pub(super) struct ProducerState {
    pub(super) producers: Producers,
    /// Names of the snapshots by offset, as of when they were listed.
    snapshots: BTreeMap<i64, Vec<u8>>,
    last_snapshot_offset: i64,
}

impl ProducerState {
    pub(super) fn empty() -> Self {
        Self { producers: Producers::new(0), snapshots: BTreeMap::new(), last_snapshot_offset: 0 }
    }

    /// Nothing known yet, of the snapshots of a directory.
    pub(super) fn new(files: &Files<'_>) -> Result<Self, Stop> {
        Ok(Self { snapshots: list(files)?, ..Self::empty() })
    }

    /// Writes a snapshot, unless the log has not grown since the last one.
    pub(super) fn take_snapshot(&mut self, files: &mut Files<'_>) {
        let end_offset = self.producers.end_offset();
        if end_offset > self.last_snapshot_offset {
            let name = file_name(end_offset, SNAPSHOT);
            files.put_snapshot(&name, self.producers.snapshot());
            self.snapshots.insert(end_offset, name);
            self.last_snapshot_offset = end_offset;
        }
    }

    /// Forgets everything and deletes every snapshot.
    pub(super) fn truncate_fully(&mut self, start_offset: i64, files: &mut Files<'_>) {
        self.producers.clear(start_offset);
        for name in std::mem::take(&mut self.snapshots).values() {
            files.remove(name);
        }
        self.last_snapshot_offset = 0;
    }

    /// Deletes the snapshot of a deleted segment.
    pub(super) fn delete(&mut self, base_offset: i64, files: &mut Files<'_>) {
        if let Some(name) = self.snapshots.remove(&base_offset) {
            files.remove(&name);
        }
    }

    /// Deletes snapshots that belong to no segment, but for one above them all. `base_offsets` is
    /// sorted.
    pub(super) fn remove_strays(
        &mut self,
        base_offsets: &[i64],
        files: &mut Files<'_>,
    ) -> Result<(), Stop> {
        self.snapshots = list(files)?;
        let mut stray: Option<i64> = None;
        let offsets: Vec<_> = self.snapshots.keys().copied().collect();
        for offset in
            offsets.into_iter().filter(|offset| base_offsets.binary_search(offset).is_err())
        {
            if let Some(before) = stray.replace(offset) {
                self.delete(before, files);
            }
        }
        if let (Some(stray), Some(&highest)) = (stray, base_offsets.last())
            && stray < highest
        {
            self.delete(stray, files);
        }
        Ok(())
    }

    /// Loads the newest snapshot that can be read, deleting those that cannot.
    fn load(&mut self, log_start_offset: i64, files: &mut Files<'_>) -> Result<(), Stop> {
        while let Some((&offset, name)) = self.snapshots.last_key_value() {
            let bytes = match files.get(name) {
                Some(Content::Snapshot(Some(bytes))) => bytes.to_vec(),
                Some(Content::Disk(origin)) => files.read(origin, MAX_SNAPSHOT_BYTES)?,
                _ => {
                    let name = String::from_utf8_lossy(name);
                    return Err(Stop::Limit(format!("{name} is no longer in memory")));
                }
            };
            // Kafka drops producers that were silent for a day; here time stands still.
            if self.producers.load(&bytes, offset, 0, i64::MAX).is_ok() {
                self.last_snapshot_offset = offset;
                return Ok(());
            }
            self.delete(offset, files);
        }
        self.producers.set_end_offset(log_start_offset);
        self.last_snapshot_offset = log_start_offset;
        Ok(())
    }

    fn truncate_and_load(
        &mut self,
        log_start_offset: i64,
        end_offset: i64,
        files: &mut Files<'_>,
    ) -> Result<(), Stop> {
        let outside = |&offset: &i64| offset > end_offset || offset <= log_start_offset;
        let offsets: Vec<_> = self.snapshots.keys().copied().filter(outside).collect();
        for offset in offsets {
            self.delete(offset, files);
        }
        if end_offset == self.producers.end_offset() {
            self.producers.log_start_moved(log_start_offset);
            let newest = self.snapshots.last_key_value();
            self.last_snapshot_offset = newest.map_or(log_start_offset, |(&offset, _)| offset);
            return Ok(());
        }
        self.producers.clear(self.producers.end_offset());
        self.load(log_start_offset, files)
    }

    /// Brings the producers to an offset: the newest snapshot below it, and the batches behind that
    /// (`UnifiedLog.rebuildProducerState`).
    pub(super) fn rebuild(
        &mut self,
        reader: &mut Reader<'_>,
        segments: &BTreeMap<i64, SegmentNames>,
        log_start_offset: i64,
        last_offset: i64,
        stopped_cleanly: bool,
    ) -> Result<(), Stop> {
        let mut newest = segments.keys().rev().copied();
        let (last_base, base_before) = (newest.next(), newest.next());
        if self.snapshots.is_empty() && stopped_cleanly {
            // Taken for a broker of a version that wrote none.
            for offset in [base_before, last_base, Some(last_offset)].into_iter().flatten() {
                self.producers.set_end_offset(offset);
                self.take_snapshot(&mut reader.files);
            }
            return Ok(());
        }
        let was_empty = self.producers.is_empty() && self.producers.end_offset() >= last_offset;
        self.truncate_and_load(log_start_offset, last_offset, &mut reader.files)?;
        if last_offset > self.producers.end_offset() && !was_empty {
            let holds_last = segments.range(..=last_offset).next_back().map(|(&base, _)| base);
            let from = self.producers.end_offset();
            let first = segments.range(..=from).next_back().map_or(from, |(&base, _)| base);
            for (&base_offset, names) in segments.range(first..last_offset.max(first)) {
                let start = base_offset.max(self.producers.end_offset()).max(log_start_offset);
                self.producers.set_end_offset(start);
                if [base_before, last_base, Some(last_offset)].contains(&Some(base_offset)) {
                    self.take_snapshot(&mut reader.files);
                }
                let mut end = reader.log(&names.log)?.size();
                if holds_last == Some(base_offset)
                    && let Some(position) = reader.translate(names, last_offset)?
                {
                    end = position;
                }
                if let Some(position) = reader.translate(names, start)? {
                    self.replay(reader, names, position, end)?;
                }
            }
        }
        self.producers.set_end_offset(last_offset);
        self.take_snapshot(&mut reader.files);
        Ok(())
    }

    /// Takes in the batches of a part of a segment, whose checksums nobody looks at here.
    fn replay(
        &mut self,
        reader: &mut Reader<'_>,
        names: &SegmentNames,
        start: u64,
        end: u64,
    ) -> Result<(), Stop> {
        if end < start {
            let path = reader.path(&names.log);
            return Err(Stop::illegal_argument(format!(
                "Invalid size: {} in read from FileRecords(file={path})",
                end as i64 - start as i64
            )));
        }
        let mut log = reader.log(&names.log)?;
        let mut pending = Pending::default();
        let mut count = 0;
        let mut at = start;
        while let Some(frame) = log.next(at, end)? {
            at = frame.end();
            let Frame { magic, .. } = frame;
            if magic < 2 {
                continue;
            }
            let info = log.info(&frame)?;
            if let Some(batch) = producer_batch(&mut log, &frame, &info, &mut reader.codecs)? {
                judge(&self.producers, &batch, &mut pending, &reader.partition)?;
                count += 1;
                if count % BATCHES_AT_ONCE == 0 {
                    let batches = std::mem::take(&mut pending);
                    commit(&mut self.producers, batches, &reader.partition)?;
                }
            }
        }
        commit(&mut self.producers, pending, &reader.partition).map(|_| ())
    }
}

fn list(files: &Files<'_>) -> Result<BTreeMap<i64, Vec<u8>>, Stop> {
    let mut snapshots = BTreeMap::new();
    for name in files.iter().filter(|name| name.ends_with(SNAPSHOT)) {
        snapshots.insert(offset_of(name)?, name.clone());
    }
    Ok(snapshots)
}
