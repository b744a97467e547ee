//! What the next start of a broker makes of a partition's directory (`log-dir.md` §4–§6).
//!
//! The steps of Apache Kafka 4.1.2's `LogLoader` are played through over a listing of the directory
//! and the bytes of its files; what Kafka would write, rename or delete is only noted down. Kafka's
//! own mistakes are part of it: an index that lies decides where a log ends after a clean stop, and a
//! flipped base offset keeps the whole broker from starting.
//!
//! ```text
//! files ─▸ swaps ─▸ segments ─▸ recovery ─▸ end offset ─▸ epochs ─▸ producers ─▸ metadata
//!                     │ index missing │ after an unclean stop
//!                     └──── rebuild ──┘
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | `files` | the directory as it stands by now |
//! | `log`, `segment` | batches by framing alone, and offsets found in them |
//! | `rebuild` | the indexes and producers that a pass over a segment makes |
//! | `epochs`, `producers` | what a partition keeps beside its batches |
//! | `loader` | the steps |
//! | `exposed` | aborted transactions that consumers get all the same |

mod epochs;
mod exposed;
mod files;
mod loader;
mod log;
mod producers;
mod rebuild;
mod segment;
mod stop;

pub use files::Directory;
pub use rebuild::{Config, SideFiles, rebuild_side_files};

use crate::names::{LOG, offset_of};
use crate::producers::ProducerEntry;
use crate::sidefiles::checkpoint::LeaderEpoch;
use crate::sidefiles::transaction_index::AbortedTransaction;
use files::Files;
use loader::{Loader, Offsets};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use segment::Reader;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Under what circumstances a broker starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restart {
    /// The log directory holds `.kafka_cleanshutdown`.
    pub stopped_cleanly: bool,
    /// First offset not known to be flushed, from `recovery-point-offset-checkpoint`; 0 without one.
    pub recovery_point: i64,
    /// From `log-start-offset-checkpoint`; 0 without an entry.
    pub log_start_offset: i64,
    /// What the topic's configuration says of its indexes.
    pub config: Config,
}

/// The aborted transactions of a log, which its transaction indexes should have.
#[derive(Clone, Copy, Debug)]
pub enum Aborted<'a> {
    /// Of no interest.
    Ignored,
    /// These.
    Known(&'a [AbortedTransaction]),
    /// To be found: every segment is read.
    Sought,
}

/// An exception with which a broker gives up its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its class.
    pub class: &'static str,
    /// Its message, as the broker logs it or near to that.
    pub message: String,
}

/// What is left of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentOutcome {
    /// The name of its file.
    pub file: Vec<u8>,
    /// Bytes of that file before the start; `None` if it is new.
    pub bytes_before: Option<u64>,
    /// Bytes after it.
    pub bytes: u64,
    /// Its indexes, where the start makes them anew.
    pub rebuilt: Option<RebuiltIndexes>,
}

/// The indexes of a segment that was recovered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebuiltIndexes {
    /// Entries of `.index`.
    pub offset_entries: u64,
    /// Entries of `.timeindex`.
    pub time_entries: u64,
    /// Entries of `.txnindex`.
    pub aborted_count: u64,
    /// These entries; none where there are too many over all segments.
    pub aborted: Vec<AbortedTransaction>,
    /// Greatest timestamp, −1 for none.
    pub max_timestamp: i64,
    /// Why batches at the end were not taken.
    pub fault: Option<String>,
}

/// What a start makes of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The broker gives up; the files are as they were at that moment, and offsets, producers and
    /// epochs as far as they were known.
    pub refusal: Option<Refusal>,
    /// Offset of the first record.
    pub log_start_offset: i64,
    /// The next offset to be given out.
    pub log_end_offset: i64,
    /// First offset of the oldest open transaction.
    pub first_undecided_offset: Option<i64>,
    /// The segments, by base offset.
    pub segments: Vec<SegmentOutcome>,
    /// What is known of producers, by id.
    pub producers: Vec<ProducerEntry>,
    /// The epochs of leaders.
    pub leader_epochs: Vec<LeaderEpoch>,
    /// Files that are gone, or renamed to be deleted later.
    pub files_deleted: Vec<Vec<u8>>,
    /// Files that are new.
    pub files_created: Vec<Vec<u8>>,
    /// Aborted transactions of which the log keeps no note: `read_committed` consumers get them.
    pub exposed: Vec<AbortedTransaction>,
    /// Without `partition.metadata` the broker puts the directory aside as a stray one.
    pub is_stray: bool,
}

/// Plays through the start of a broker over one partition's directory, `partition` by name. Reads,
/// writes nothing.
///
/// # Errors
/// A directory or file that cannot be read, and what would take more memory than is right.
///
/// # Examples
/// ```
/// use ottla_log::recovery::{Aborted, Restart, predict_recovery};
/// use std::collections::BTreeMap;
///
/// let zeros = BTreeMap::from([(b"00000000000000000000.log".to_vec(), vec![0; 100])]);
/// let after = predict_recovery(&zeros, "orders-0", Restart::default(), Aborted::Ignored)?;
/// assert_eq!((after.log_end_offset, after.segments[0].bytes), (0, 0));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn predict_recovery(
    directory: &dyn Directory,
    partition: &str,
    restart: Restart,
    aborted: Aborted<'_>,
) -> io::Result<Recovery> {
    let told = |stop: stop::Stop| match stop.refusal() {
        Ok(refusal) => io::Error::other(refusal.message),
        Err(error) => error,
    };
    let reader = Reader {
        files: Files::new(directory).map_err(told)?,
        codecs: Codecs::new(Limits::default()),
        config: restart.config,
        partition: partition.to_owned(),
    };
    let mut loader = Loader::new(reader, restart);
    let (refusal, offsets) = match loader.load() {
        Ok(offsets) => (None, offsets),
        Err(stop) => {
            let log_start_offset = restart.log_start_offset;
            (Some(stop.refusal()?), Offsets { log_start_offset, log_end_offset: 0 })
        }
    };
    let exposed = match refusal {
        None => exposed::exposed(&mut loader, &offsets, aborted).map_err(told)?,
        Some(_) => Vec::new(),
    };
    let segments = segments_of(&mut loader, directory, refusal.is_some()).map_err(told)?;
    Ok(Recovery {
        refusal,
        log_start_offset: offsets.log_start_offset,
        log_end_offset: offsets.log_end_offset,
        first_undecided_offset: loader.state.producers.transactions().first_undecided_offset(),
        segments,
        producers: loader.state.producers.by_id().into_iter().cloned().collect(),
        leader_epochs: loader.epochs.entries(),
        files_deleted: loader.reader.files.deleted(),
        files_created: loader.reader.files.created(),
        exposed,
        is_stray: !loader.has_metadata(),
    })
}

fn segments_of(
    loader: &mut Loader<'_>,
    directory: &dyn Directory,
    is_refused: bool,
) -> Result<Vec<SegmentOutcome>, stop::Stop> {
    let names: BTreeMap<i64, Vec<u8>> = if is_refused {
        let files = loader.reader.files.names();
        let logs = files.into_iter().filter(|name| name.ends_with(LOG));
        logs.filter_map(|name| Some((offset_of(&name).ok()?, name))).collect()
    } else {
        loader.segments.iter().map(|(&base, names)| (base, names.log.clone())).collect()
    };
    let before: BTreeSet<_> = directory.names()?.into_iter().collect();
    let mut outcomes = Vec::new();
    for (base_offset, file) in names {
        let bytes = loader.reader.extent(&file)?.size;
        let bytes_before = before
            .contains(&file)
            .then(|| directory.open(&file).and_then(|source| source.size()))
            .transpose()?;
        let rebuilt = loader.rebuilt.remove(&base_offset);
        outcomes.push(SegmentOutcome { file, bytes_before, bytes, rebuilt });
    }
    Ok(outcomes)
}
