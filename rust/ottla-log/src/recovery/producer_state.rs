//! The producers of a partition while it is loaded, and the snapshots in its directory
//! (`ProducerStateManager`).

use super::files::{FileContent, Files};
use super::interruption::{Interruption, LoadError};
use super::journal::{Journals, NewSnapshot};
use super::replay::{commit, judge, producer_batch};
use super::segment::SegmentReader;
use crate::names::{SNAPSHOT, SegmentNames, file_name, offset_of};
use crate::producers::{Pending, Producers};
use crate::sidefiles::snapshot::{SNAPSHOT_ENTRY_BYTES, SNAPSHOT_OVERHEAD, SnapshotEntry};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

/// Bytes of the largest snapshot that is read: of a million producers on one partition.
const MAX_SNAPSHOT_BYTES: u64 = (SNAPSHOT_ENTRY_BYTES as u64) << 20;

/// Batches that are committed together. Kafka commits those of a segment together, which differs only
/// where a transaction begins twice at one offset.
const MAX_PENDING_BATCHES: usize = 1 << 20;

/// A prediction has no clock: none are silent for so long that Kafka drops them.
const NOW_MS: i64 = 0;
const EXPIRATION_MS: i64 = i64::MAX;

/// Producers and snapshots.
pub(super) struct ProducerStateManager {
    pub(super) producers: Producers,
    /// Producers that have changed since they were loaded; those that a snapshot has stand before others.
    pub(super) changed: Vec<i64>,
    /// The newest snapshot that was loaded or taken, and how many of the changes it has.
    newest: Option<NewSnapshot>,
    stored: usize,
    /// The state that the newest snapshot is of, from before this one began anew.
    retained: Option<Retained>,
    /// Names of the snapshots by offset, when they were last listed.
    snapshots: BTreeMap<i64, Vec<u8>>,
    last_snapshot_offset: i64,
    /// Whether the newest batches of a producer stay known where a snapshot keeps one of them alone.
    keeps_batches: bool,
}

/// The state that a snapshot is of.
struct Retained {
    snapshot: NewSnapshot,
    producers: Producers,
    changed: Vec<i64>,
}

impl ProducerStateManager {
    pub(super) fn empty() -> Self {
        Self {
            producers: Producers::new(0),
            changed: Vec::new(),
            newest: None,
            stored: 0,
            retained: None,
            snapshots: BTreeMap::new(),
            last_snapshot_offset: 0,
            keeps_batches: false,
        }
    }

    /// No producers yet, and the snapshots of a directory.
    pub(super) fn new(files: &Files<'_>, keeps_batches: bool) -> Result<Self, Interruption> {
        Ok(Self { snapshots: list(files)?, keeps_batches, ..Self::empty() })
    }

    /// The same for the next segment: no producers, and the snapshots that there are by now.
    pub(super) fn anew(self) -> Self {
        let Self { producers, changed, newest, stored, snapshots, keeps_batches, .. } = self;
        let retained = newest.filter(|_| stored == changed.len()).map(|snapshot| Retained {
            snapshot,
            producers,
            changed,
        });
        Self { retained, snapshots, keeps_batches, ..Self::empty() }
    }

    /// The offset of the newest snapshot, or where the log begins.
    pub(super) fn last_snapshot_offset(&self) -> i64 {
        self.last_snapshot_offset
    }

    /// The producers, to go on with.
    pub(super) fn into_producers(self) -> Producers {
        self.producers
    }

    /// The producers by id.
    pub(super) fn into_by_id(mut self) -> Vec<SnapshotEntry> {
        let producers = std::mem::replace(&mut self.producers, Producers::new(0));
        drop(self);
        producers.into_by_id()
    }

    /// Takes over the state that the newest snapshot of another is of, to be gone on with where that is
    /// loaded.
    pub(super) fn retain(&mut self, other: Self) {
        self.retained = other.anew().retained;
    }

    /// Writes a snapshot, unless the log has not grown since the last one.
    pub(super) fn take_snapshot(&mut self, files: &mut Files<'_>) -> Result<(), Interruption> {
        let end_offset = self.producers.end_offset();
        if end_offset > self.last_snapshot_offset {
            let name = file_name(end_offset, SNAPSHOT);
            // The one in its place is not held beside it.
            files.remove(&name);
            let changed = self.changed.get_mut(self.stored..).unwrap_or_default();
            changed.sort_unstable();
            let ids = changed.chunk_by(|id, next| id == next).filter_map(<[i64]>::first);
            let mut entries = Vec::with_capacity(ids.clone().count());
            entries.extend(ids.filter_map(|&id| self.producers.snapshot_entry(id)));
            let snapshot = match &self.newest {
                Some(newest) => files.journals.append(newest, entries)?,
                None => Journals::begin(entries),
            };
            files.put(&name, FileContent::Snapshot(snapshot.clone()));
            self.set_newest(snapshot);
            self.snapshots.insert(end_offset, name);
            self.last_snapshot_offset = end_offset;
        }
        Ok(())
    }

    /// The producers are those of a snapshot.
    fn set_newest(&mut self, snapshot: NewSnapshot) {
        self.newest = Some(snapshot);
        self.stored = self.changed.len();
    }

    /// Forgets the producers.
    fn clear(&mut self, end_offset: i64) {
        self.producers.clear(end_offset);
        self.changed.clear();
        (self.newest, self.stored) = (None, 0);
    }

    /// Forgets everything and deletes every snapshot.
    pub(super) fn truncate_fully(&mut self, start_offset: i64, files: &mut Files<'_>) {
        self.clear(start_offset);
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
    ) -> Result<(), Interruption> {
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
    fn load(&mut self, log_start_offset: i64, files: &mut Files<'_>) -> Result<(), Interruption> {
        while let Some((&offset, name)) = self.snapshots.last_key_value() {
            let is_loaded = match files.get(name) {
                Some(FileContent::Snapshot(snapshot)) => {
                    let snapshot = snapshot.clone();
                    self.load_new(snapshot, offset, files)?;
                    true
                }
                Some(FileContent::Disk(origin)) => {
                    let origin = Rc::clone(origin);
                    self.load_from_disk(&origin, offset, files)?
                }
                _ => false,
            };
            if is_loaded {
                self.last_snapshot_offset = offset;
                return Ok(());
            }
            self.delete(offset, files);
        }
        self.producers.set_end_offset(log_start_offset);
        self.last_snapshot_offset = log_start_offset;
        Ok(())
    }

    /// Loads a snapshot that the start has made; nearly always its state is at hand.
    fn load_new(
        &mut self,
        snapshot: NewSnapshot,
        offset: i64,
        files: &mut Files<'_>,
    ) -> Result<(), Interruption> {
        let retained = self.retained.take().filter(|retained| retained.snapshot == snapshot);
        let reloaded = retained.and_then(|Retained { mut producers, changed, .. }| {
            let is_reloaded = if self.keeps_batches {
                producers.go_on_at(offset)
            } else {
                producers.reload(&changed, offset, NOW_MS, EXPIRATION_MS)
            };
            is_reloaded.then_some(producers)
        });
        if let Some(producers) = reloaded {
            self.producers = producers;
        } else {
            let mut written = Producers::new(0);
            written.adopt(&files.journals.read(&snapshot)?);
            let bytes = written.snapshot();
            let loaded = self.producers.load(&bytes, offset, NOW_MS, EXPIRATION_MS);
            loaded.map_err(LoadError::Snapshot)?;
        }
        self.set_newest(snapshot);
        Ok(())
    }

    /// Loads a snapshot that was there before the start. Returns whether it can be read.
    fn load_from_disk(
        &mut self,
        origin: &[u8],
        offset: i64,
        files: &mut Files<'_>,
    ) -> Result<bool, Interruption> {
        let bytes = files.read(origin, MAX_SNAPSHOT_BYTES)?;
        let entries = bytes.len().saturating_sub(SNAPSHOT_OVERHEAD) / SNAPSHOT_ENTRY_BYTES;
        files.journals.read_from_disk(origin, entries)?;
        if self.producers.load(&bytes, offset, NOW_MS, EXPIRATION_MS).is_err() {
            return Ok(false);
        }
        let entries = self.producers.by_id().into_iter().map(SnapshotEntry::from).collect();
        let snapshot = Journals::begin(entries);
        self.set_newest(snapshot);
        Ok(true)
    }

    fn truncate_and_load(
        &mut self,
        log_start_offset: i64,
        end_offset: i64,
        files: &mut Files<'_>,
    ) -> Result<(), Interruption> {
        let below = self.snapshots.range(..=log_start_offset);
        let above = self.snapshots.range((Bound::Excluded(end_offset), Bound::Unbounded));
        let outside: Vec<_> = below.chain(above).map(|(&offset, _)| offset).collect();
        for offset in outside {
            self.delete(offset, files);
        }
        if end_offset == self.producers.end_offset() {
            self.producers.log_start_moved(log_start_offset);
            let newest = self.snapshots.last_key_value();
            self.last_snapshot_offset = newest.map_or(log_start_offset, |(&offset, _)| offset);
            return Ok(());
        }
        self.clear(self.producers.end_offset());
        self.load(log_start_offset, files)
    }

    /// Brings the producers to an offset: the newest snapshot below it, and the batches after that
    /// (`UnifiedLog.rebuildProducerState`).
    pub(super) fn rebuild(
        &mut self,
        reader: &mut SegmentReader<'_>,
        segments: &BTreeMap<i64, SegmentNames>,
        log_start_offset: i64,
        last_offset: i64,
        stopped_cleanly: bool,
    ) -> Result<(), Interruption> {
        let mut newest = segments.keys().rev().copied();
        let (last_base, base_before) = (newest.next(), newest.next());
        let snapshot_at = [base_before, last_base, Some(last_offset)];
        if self.snapshots.is_empty() && stopped_cleanly {
            // Kafka takes this for the log of a version that wrote no snapshots.
            for offset in snapshot_at.into_iter().flatten() {
                self.producers.set_end_offset(offset);
                self.take_snapshot(&mut reader.files)?;
            }
            return Ok(());
        }
        let was_empty = self.producers.is_empty() && self.producers.end_offset() >= last_offset;
        self.truncate_and_load(log_start_offset, last_offset, &mut reader.files)?;
        // What was not loaded now never is: two states of many producers are not held at once.
        self.retained = None;
        let from = self.producers.end_offset();
        if last_offset > from && !was_empty {
            let first = segments.range(..=from).next_back().map_or(from, |(&base, _)| base);
            let holds_last = segments.range(..=last_offset).next_back().map(|(&base, _)| base);
            for (&base_offset, names) in segments.range(first..last_offset.max(first)) {
                let start = base_offset.max(self.producers.end_offset()).max(log_start_offset);
                self.producers.set_end_offset(start);
                if snapshot_at.contains(&Some(base_offset)) {
                    self.take_snapshot(&mut reader.files)?;
                }
                let end = (holds_last == Some(base_offset)).then_some(last_offset);
                self.replay_offsets(reader, names, start, end)?;
            }
        }
        self.producers.set_end_offset(last_offset);
        self.take_snapshot(&mut reader.files)?;
        Ok(())
    }

    /// Replays the batches of a segment from an offset on, up to one or to its end.
    fn replay_offsets(
        &mut self,
        reader: &mut SegmentReader<'_>,
        names: &SegmentNames,
        start: i64,
        end: Option<i64>,
    ) -> Result<(), Interruption> {
        let size = reader.log(&names.log)?.size();
        let end = match end {
            Some(offset) => reader.translate(names, offset)?.unwrap_or(size),
            None => size,
        };
        match reader.translate(names, start)? {
            Some(position) => self.replay(reader, names, position, end),
            None => Ok(()),
        }
    }

    /// Replays the batches of a part of a segment. Their checksums are not verified here.
    fn replay(
        &mut self,
        reader: &mut SegmentReader<'_>,
        names: &SegmentNames,
        start: u64,
        end: u64,
    ) -> Result<(), Interruption> {
        if end < start {
            let path = reader.path(&names.log);
            return Err(Interruption::illegal_argument(format!(
                "Invalid size: {} in read from FileRecords(file={path})",
                (end as i64).wrapping_sub(start as i64)
            )));
        }
        let mut log = reader.log(&names.log)?;
        let mut pending = Pending::default();
        let mut count: usize = 0;
        let mut at = start;
        while let Some(frame) = log.next(at, end)? {
            at = frame.end();
            if frame.magic < 2 {
                continue;
            }
            let info = log.info(&frame)?;
            if let Some(batch) = producer_batch(&mut log, &frame, &info, &mut reader.codecs)? {
                judge(&self.producers, &batch, &mut pending, &reader.partition)?;
                count = count.saturating_add(1);
                if count.is_multiple_of(MAX_PENDING_BATCHES) {
                    let batches = std::mem::take(&mut pending);
                    commit(&mut self.producers, batches, &mut self.changed, &reader.partition)?;
                }
            }
        }
        commit(&mut self.producers, pending, &mut self.changed, &reader.partition).map(|_| ())
    }
}

fn list(files: &Files<'_>) -> Result<BTreeMap<i64, Vec<u8>>, Interruption> {
    let mut snapshots = BTreeMap::new();
    for name in files.iter().filter(|name| name.ends_with(SNAPSHOT)) {
        snapshots.insert(offset_of(name)?, name.clone());
    }
    Ok(snapshots)
}
