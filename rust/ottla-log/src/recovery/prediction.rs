//! One start of a broker over one partition, played through.

use super::exposed::{Aborted, find_exposed};
use super::files::{Directory, Files};
use super::interruption::{LoadError, Refusal};
use super::loader::{LogBounds, load};
use super::open_file::Progress;
use super::partition_log::{PartitionLog, RebuiltIndexes};
use super::restart::Restart;
use crate::names::{LOG, PARTITION_METADATA, offset_of};
use crate::sidefiles::checkpoint::LeaderEpoch;
use crate::sidefiles::snapshot::SnapshotEntry;
use crate::sidefiles::transaction_index::AbortedTransaction;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What is left of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentOutcome {
    /// The name of its file.
    pub file: Vec<u8>,
    /// Bytes after the start.
    pub bytes: u64,
    /// Its indexes, where the start makes them anew.
    pub rebuilt: Option<RebuiltIndexes>,
}

/// What a start makes of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The broker gives up; the files are as they were at that moment, and offsets, producers and
    /// epochs as far as they were known.
    pub refusal: Option<Refusal>,
    /// Offset of the first record.
    pub log_start_offset: i64,
    /// The offset that the next record gets.
    pub log_end_offset: i64,
    /// First offset of the oldest open transaction.
    pub first_undecided_offset: Option<i64>,
    /// The segments, by base offset.
    pub segments: Vec<SegmentOutcome>,
    /// Bytes of each segment file before the start.
    pub bytes_before: BTreeMap<Vec<u8>, u64>,
    /// What is known of producers, as a snapshot keeps it, by id.
    pub producers: Vec<SnapshotEntry>,
    /// The epochs of leaders.
    pub leader_epochs: Vec<LeaderEpoch>,
    /// Files that are gone, or renamed to be deleted later.
    pub files_deleted: Vec<Vec<u8>>,
    /// Files that are new.
    pub files_created: Vec<Vec<u8>>,
    /// Snapshots that were there, could not be read, and are written anew.
    pub snapshots_rewritten: Vec<Vec<u8>>,
    /// Aborted transactions that no transaction index has: `read_committed` consumers get them.
    pub exposed: Vec<AbortedTransaction>,
    /// Without `partition.metadata` the broker puts the directory aside as a stray one.
    pub is_stray: bool,
}

impl Recovery {
    /// Whether the broker opens the log.
    pub fn opens(&self) -> bool {
        self.refusal.is_none()
    }

    /// Bytes of segments that the start takes away, whole segments included.
    pub fn bytes_cut(&self) -> u64 {
        let kept = self.segments.iter().map(|segment| {
            let before = self.bytes_before.get(&segment.file).copied();
            segment.bytes.min(before.unwrap_or(0))
        });
        self.bytes_before.values().sum::<u64>().saturating_sub(kept.sum())
    }
}

/// Plays through the start of a broker over one partition's directory, `partition` by name. Reads,
/// writes nothing. `progress` is called after each read with the bytes read so far, and stops it by
/// returning `false`.
///
/// # Errors
/// A directory or file that cannot be read, what would take too much memory, and
/// [`LoadError::Stopped`].
///
/// # Examples
/// ```
/// use ottla_log::recovery::{Aborted, Restart, predict_recovery};
/// use std::collections::BTreeMap;
///
/// let zeros = BTreeMap::from([(b"00000000000000000000.log".to_vec(), vec![0; 100])]);
/// let restart = Restart::default();
/// let after = predict_recovery(&zeros, "orders-0", &restart, Aborted::Ignored, &|_| true)?;
/// assert_eq!((after.log_end_offset, after.segments[0].bytes), (0, 0));
/// # Ok::<(), ottla_log::recovery::LoadError>(())
/// ```
pub fn predict_recovery(
    directory: &dyn Directory,
    partition: &str,
    restart: &Restart,
    aborted: Aborted<'_>,
    progress: &dyn Fn(u64) -> bool,
) -> Result<Recovery, LoadError> {
    predict(directory, partition, restart, aborted, &Progress::new(progress))
}

/// The same, with bytes counted on from an earlier one.
pub(super) fn predict<'d>(
    directory: &'d dyn Directory,
    partition: &str,
    restart: &Restart,
    aborted: Aborted<'_>,
    progress: &Rc<Progress<'d>>,
) -> Result<Recovery, LoadError> {
    let log_start_offset = restart.log_start_offset;
    let mut log = PartitionLog::begin(directory, partition, restart, progress)?;
    let (refusal, bounds) = match load(&mut log, restart) {
        Ok(bounds) => (None, bounds),
        Err(interruption) => {
            (Some(interruption.refusal()?), LogBounds { log_start_offset, log_end_offset: 0 })
        }
    };
    let first_undecided_offset = log.state.producers.transactions().first_undecided_offset();
    // Before transactions are sought: two tables of many producers are not held at once.
    let producers = log.take_producers();
    let exposed = match refusal {
        None => find_exposed(&mut log, bounds, aborted)?,
        Some(_) => Vec::new(),
    };
    let segments = segments_of(&mut log, refusal.is_some())?;
    let files = &log.reader.files;
    Ok(Recovery {
        refusal,
        log_start_offset: bounds.log_start_offset,
        log_end_offset: bounds.log_end_offset,
        first_undecided_offset,
        segments,
        bytes_before: bytes_before(files)?,
        producers,
        leader_epochs: log.epochs.entries(),
        files_deleted: files.deleted(),
        files_created: files.created(),
        snapshots_rewritten: files.snapshots_rewritten(),
        exposed,
        is_stray: !files.exists(PARTITION_METADATA),
    })
}

fn segments_of(
    log: &mut PartitionLog<'_>,
    is_refused: bool,
) -> Result<Vec<SegmentOutcome>, LoadError> {
    let names: BTreeMap<i64, Vec<u8>> = if is_refused {
        let names = log.reader.files.iter().filter(|name| name.ends_with(LOG));
        names.filter_map(|name| Some((offset_of(name).ok()?, name.clone()))).collect()
    } else {
        log.segments.iter().map(|(&base, names)| (base, names.log.clone())).collect()
    };
    let mut outcomes = Vec::new();
    for (base_offset, file) in names {
        let bytes = log.reader.stored(&file)?.size;
        let rebuilt = log.rebuilt.remove(&base_offset);
        outcomes.push(SegmentOutcome { file, bytes, rebuilt });
    }
    Ok(outcomes)
}

fn bytes_before(files: &Files<'_>) -> Result<BTreeMap<Vec<u8>, u64>, LoadError> {
    let names = files.before().iter().filter(|name| name.ends_with(LOG));
    names.map(|name| Ok((name.clone(), files.open(name)?.size()?))).collect()
}
