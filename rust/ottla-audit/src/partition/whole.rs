//! A whole log and the files beside it, judged at once.
//!
//! It says nothing of a log of which anything cannot be read, has other names than those of a broker, ends
//! before an offset that is known of it or grows meanwhile: who asks goes the long way then, which comes to
//! the same result for the others.

use crate::catalogue::finding::SideFile;
use crate::partition::merge::merge_partition_with;
use crate::partition::scan::{PartitionContext, PartitionScan};
use crate::partition::side_check::{DirectoryEntry, SideFiles, check_names, epoch_beyond_end};
use crate::segment::context::SegmentContext;
use crate::segment::index_check::{Indexes, read_index};
use crate::segment::scanner::Scanner;
use crate::segment::segment_scan::SegmentScan;
use ottla_log::names::{FileKind, FileName, FileState, PartitionState};
use ottla_log::sidefiles::checkpoint::{check_order, read_leader_epochs};
use ottla_log::sidefiles::metadata::read_partition_metadata;
use ottla_log::source::{Limited, Source, fill};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;

/// Files beside the segments that are read whole are no larger in a log that is judged at once.
const MAX_SIDE_FILE_BYTES: u64 = 1 << 20;

/// The files of a log, by name.
pub trait LogFiles: Sync {
    /// Opens one.
    ///
    /// # Errors
    /// The error of the operating system.
    fn open(&self, name: &[u8]) -> io::Result<Box<dyn Source>>;
}

/// All files of a partition's directory, as they were listed.
pub struct WholeLog<'a> {
    /// Their names, each that of a regular file.
    pub names: &'a [&'a [u8]],
    /// Their sizes.
    pub sizes: &'a [u64],
    /// What the name of the directory says.
    pub state: PartitionState,
    /// What is known of every segment.
    pub segment: SegmentContext,
    /// Where they are read.
    pub files: &'a dyn LogFiles,
}

/// What a log shows that was judged at once.
pub struct JudgedLog<'a> {
    /// The names of its segments, in order.
    pub names: Vec<&'a [u8]>,
    /// Its segments, in this order.
    pub scans: Vec<SegmentScan>,
    /// The segments together.
    pub merged: PartitionScan,
    /// What was known of it.
    pub context: PartitionContext,
    /// Of `partition.metadata`, if there is one.
    pub topic_id: Option<String>,
}

/// Judges a log; `None` if that takes more than its segments and what is beside them. `context` is what
/// is known of it but its leader epochs.
pub fn judge<'a>(
    log: &WholeLog<'a>,
    mut context: PartitionContext,
    scanner: &mut Scanner,
) -> Option<JudgedLog<'a>> {
    let entries: Vec<_> =
        log.names.iter().map(|&name| DirectoryEntry { name, is_directory: false }).collect();
    if !check_names(&entries, log.state, true).is_empty() {
        return None;
    }
    let beside = Beside::of(log)?;
    let topic_id = match beside.metadata {
        Some(file) => Some(read_partition_metadata(&file.read(log)?).ok()?.to_owned()),
        None => None,
    };
    if let Some(file) = beside.leader_epochs {
        let epochs = read_leader_epochs(&file.read(log)?).ok()?;
        check_order(&epochs).ok()?;
        context.leader_epochs = epochs.iter().map(|e| (e.epoch, e.start_offset)).collect();
    }
    let (scans, has_changed) = beside.scan(log, scanner)?;
    let opened = beside.opened(log);
    let merged = merge_partition_with(&scans, &context, &opened);
    let end = merged.log_end_offset;
    let checkpoints = [
        context.recovery_point,
        context.high_watermark,
        context.log_start_offset,
        context.first_dirty_offset,
    ];
    let is_known = !opened.has_unread.get()
        && checkpoints.into_iter().flatten().all(|known| known <= end)
        && epoch_beyond_end(&context.leader_epochs, end).is_none();
    // What is found at the end of a log that a broker writes to is looked at once more.
    let is_settled = is_known && (!has_changed || !merged.has_findings());
    let names = beside.segments.values().map(|file| file.name).collect();
    is_settled.then_some(JudgedLog { names, scans, merged, context, topic_id })
}

/// A file as it was listed.
#[derive(Clone, Copy)]
struct Listed<'a> {
    name: &'a [u8],
    size: u64,
}

impl Listed<'_> {
    /// Its bytes; `None` if it cannot be read, or is larger than usual.
    fn read(self, log: &WholeLog<'_>) -> Option<Vec<u8>> {
        read_whole(&*log.files.open(self.name).ok()?).ok()
    }
}

fn read_whole(source: &dyn Source) -> io::Result<Vec<u8>> {
    let size = source.size()?;
    if size > MAX_SIDE_FILE_BYTES {
        return Err(io::Error::other(format!("more than {MAX_SIDE_FILE_BYTES} bytes")));
    }
    let mut data = vec![0; usize::try_from(size).unwrap_or(0)];
    let filled = fill(source, 0, &mut data)?;
    data.truncate(filled);
    Ok(data)
}

/// The live files of a log, by what they are.
#[derive(Default)]
struct Beside<'a> {
    segments: BTreeMap<i64, Listed<'a>>,
    offset_indexes: BTreeMap<i64, Listed<'a>>,
    time_indexes: BTreeMap<i64, Listed<'a>>,
    transaction_indexes: BTreeMap<i64, Listed<'a>>,
    snapshots: BTreeMap<i64, Listed<'a>>,
    leader_epochs: Option<Listed<'a>>,
    metadata: Option<Listed<'a>>,
}

impl<'a> Beside<'a> {
    /// Sorts the files of a log; `None` if two of them are the same, or an index has no segment.
    fn of(log: &WholeLog<'a>) -> Option<Self> {
        let mut found = Self::default();
        for (&name, &size) in log.names.iter().zip(log.sizes) {
            let said = FileName::parse(name);
            if said.state != FileState::Live {
                continue;
            }
            let file = Listed { name, size };
            let by_offset = match said.kind {
                FileKind::Segment => &mut found.segments,
                FileKind::OffsetIndex => &mut found.offset_indexes,
                FileKind::TimeIndex => &mut found.time_indexes,
                FileKind::TransactionIndex => &mut found.transaction_indexes,
                FileKind::ProducerSnapshot => &mut found.snapshots,
                FileKind::LeaderEpochCheckpoint => {
                    found.leader_epochs = Some(file);
                    continue;
                }
                FileKind::PartitionMetadata => {
                    found.metadata = Some(file);
                    continue;
                }
                _ => continue,
            };
            if by_offset.insert(said.base_offset?, file).is_some() {
                return None;
            }
        }
        let indexes = [&found.offset_indexes, &found.time_indexes, &found.transaction_indexes];
        let is_whole = indexes.iter().all(|of_kind| {
            of_kind.keys().all(|base_offset| found.segments.contains_key(base_offset))
        });
        (is_whole && !found.segments.is_empty()).then_some(found)
    }

    /// Scans the segments in order. Returns also whether one of them has another size than listed.
    fn scan(&self, log: &WholeLog<'_>, scanner: &mut Scanner) -> Option<(Vec<SegmentScan>, bool)> {
        let mut scans = Vec::with_capacity(self.segments.len());
        let mut has_changed = false;
        let mut after = self.segments.keys().skip(1);
        for (&base_offset, file) in &self.segments {
            let next_base_offset = after.next().copied();
            let context = SegmentContext {
                base_offset: Some(base_offset),
                next_base_offset,
                is_active: next_base_offset.is_none(),
                ..log.segment
            };
            let indexes = self.indexes(log, base_offset)?;
            let source = log.files.open(file.name).ok()?;
            let size = source.size().ok()?;
            has_changed |= size != file.size;
            let source = Limited::new(&*source, file.size.min(size));
            scans.push(scanner.scan_indexed(&source, context, &indexes, &mut |_| true, None).ok()?);
        }
        Some((scans, has_changed))
    }

    fn indexes(&self, log: &WholeLog<'_>, base_offset: i64) -> Option<Indexes> {
        let mut indexes = Indexes::new(base_offset);
        let has_bytes = |file: &&Listed<'_>| file.size > 0;
        if let Some(file) = self.offset_indexes.get(&base_offset).filter(has_bytes) {
            let source = log.files.open(file.name).ok()?;
            let size = read_index(&*source, |data| indexes.add_offsets(data)).ok()?;
            indexes.has_offsets(size);
        }
        if let Some(file) = self.time_indexes.get(&base_offset).filter(has_bytes) {
            let source = log.files.open(file.name).ok()?;
            let size = read_index(&*source, |data| indexes.add_times(data)).ok()?;
            indexes.has_times(size);
        }
        Some(indexes)
    }

    fn opened<'b>(&'b self, log: &'b WholeLog<'b>) -> OpenedBeside<'b> {
        let by_segment = self.segments.keys();
        OpenedBeside {
            log,
            offsets: self.snapshots.keys().copied().collect(),
            snapshots: &self.snapshots,
            transaction_indexes: by_segment
                .map(|base_offset| self.transaction_indexes.get(base_offset).copied())
                .collect(),
            has_unread: Cell::new(false),
        }
    }
}

/// The files that a merge compares with the log.
struct OpenedBeside<'a> {
    log: &'a WholeLog<'a>,
    offsets: Vec<i64>,
    snapshots: &'a BTreeMap<i64, Listed<'a>>,
    transaction_indexes: Vec<Option<Listed<'a>>>,
    /// Whether one of them could not be read.
    has_unread: Cell<bool>,
}

impl SideFiles for OpenedBeside<'_> {
    fn snapshots(&self) -> &[i64] {
        &self.offsets
    }

    fn read(&self, file: SideFile, segment: usize) -> io::Result<Option<Vec<u8>>> {
        let listed = match file {
            SideFile::Snapshot(offset) => self.snapshots.get(&offset),
            SideFile::TransactionIndex => {
                self.transaction_indexes.get(segment).and_then(Option::as_ref)
            }
            _ => None,
        };
        let read = listed.map(|listed| read_whole(&*self.log.files.open(listed.name)?)).transpose();
        self.has_unread.set(self.has_unread.get() || read.is_err());
        read
    }

    fn is_known(&self) -> bool {
        true
    }
}
