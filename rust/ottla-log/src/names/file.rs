//! What the name of a file says.

use super::constants::{
    BOOTSTRAP_CHECKPOINT, CHECKPOINT, CLEAN_SHUTDOWN, CLEANED, CLEANER_OFFSETS, DELETED,
    HIGH_WATERMARKS, INDEX, LEADER_EPOCHS, LOCK, LOG, LOG_START_OFFSETS, META_PROPERTIES, PART,
    PARTITION_METADATA, QUORUM_STATE, RECOVERY_POINTS, SNAPSHOT, SWAP, TEMPORARY, TIME_INDEX,
    TRANSACTION_INDEX,
};
use super::digits::{EPOCH_DIGITS, OFFSET_DIGITS, split_digits};

/// What a file is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum FileKind {
    Segment,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    ProducerSnapshot,
    LeaderEpochCheckpoint,
    PartitionMetadata,
    /// A snapshot of the cluster's metadata.
    MetadataSnapshot,
    QuorumState,
    OffsetCheckpoint,
    MetaProperties,
    CleanShutdown,
    Lock,
    Unknown,
}

impl FileKind {
    /// Those named by an offset alone.
    const BY_OFFSET: [Self; 5] = [
        Self::Segment,
        Self::OffsetIndex,
        Self::TimeIndex,
        Self::TransactionIndex,
        Self::ProducerSnapshot,
    ];

    /// Stable kebab-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Segment => "segment",
            Self::OffsetIndex => "offset-index",
            Self::TimeIndex => "time-index",
            Self::TransactionIndex => "transaction-index",
            Self::ProducerSnapshot => "producer-snapshot",
            Self::LeaderEpochCheckpoint => "leader-epoch-checkpoint",
            Self::PartitionMetadata => "partition-metadata",
            Self::MetadataSnapshot => "metadata-snapshot",
            Self::QuorumState => "quorum-state",
            Self::OffsetCheckpoint => "offset-checkpoint",
            Self::MetaProperties => "meta-properties",
            Self::CleanShutdown => "clean-shutdown",
            Self::Lock => "lock",
            Self::Unknown => "unknown",
        }
    }

    /// The kind of a name such as `segment`, among those named by an offset alone.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::BY_OFFSET.into_iter().find(|kind| kind.name() == name)
    }

    /// What follows the offset in the name of such a file; `None` for a file that is named
    /// otherwise.
    pub fn suffix(self) -> Option<&'static [u8]> {
        match self {
            Self::Segment => Some(LOG),
            Self::OffsetIndex => Some(INDEX),
            Self::TimeIndex => Some(TIME_INDEX),
            Self::TransactionIndex => Some(TRANSACTION_INDEX),
            Self::ProducerSnapshot => Some(SNAPSHOT),
            _ => None,
        }
    }

    /// The files of fixed names, in a partition and in a log directory.
    fn of_fixed_name(name: &[u8]) -> Option<Self> {
        Self::in_partition(name).or_else(|| Self::in_log_directory(name))
    }

    pub(super) fn in_partition(name: &[u8]) -> Option<Self> {
        match name {
            LEADER_EPOCHS => Some(Self::LeaderEpochCheckpoint),
            PARTITION_METADATA => Some(Self::PartitionMetadata),
            QUORUM_STATE => Some(Self::QuorumState),
            _ => None,
        }
    }

    pub(super) fn in_log_directory(name: &[u8]) -> Option<Self> {
        match name {
            META_PROPERTIES => Some(Self::MetaProperties),
            CLEAN_SHUTDOWN => Some(Self::CleanShutdown),
            RECOVERY_POINTS | LOG_START_OFFSETS | HIGH_WATERMARKS | CLEANER_OFFSETS => {
                Some(Self::OffsetCheckpoint)
            }
            BOOTSTRAP_CHECKPOINT => Some(Self::MetadataSnapshot),
            LOCK => Some(Self::Lock),
            _ => None,
        }
    }
}

/// Whether a file is in use, or belongs to an operation that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum FileState {
    Live,
    Deleted,
    Swap,
    Cleaned,
    Temporary,
}

impl FileState {
    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Deleted => "deleted",
            Self::Swap => "swap",
            Self::Cleaned => "cleaned",
            Self::Temporary => "temporary",
        }
    }
}

/// What the name of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName {
    /// What it is.
    pub kind: FileKind,
    /// Whether it is in use.
    pub state: FileState,
    /// The offset in its name.
    pub base_offset: Option<i64>,
}

impl FileName {
    /// Reads a name. Kafka writes 20 digits of an offset; fewer are read all the same.
    ///
    /// # Examples
    /// ```
    /// use ottla_log::names::{FileKind, FileName, FileState};
    ///
    /// let name = FileName::parse(b"00000000000000000042.log.deleted");
    /// assert_eq!((name.kind, name.state), (FileKind::Segment, FileState::Deleted));
    /// assert_eq!(name.base_offset, Some(42));
    /// ```
    pub fn parse(name: &[u8]) -> Self {
        if let Some(parsed) = Self::by_offset(name) {
            return parsed;
        }
        let stem = name.strip_suffix(TEMPORARY);
        let state = if stem.is_some() { FileState::Temporary } else { FileState::Live };
        let kind = FileKind::of_fixed_name(stem.unwrap_or(name));
        Self { kind: kind.unwrap_or(FileKind::Unknown), state, base_offset: None }
    }

    fn by_offset(name: &[u8]) -> Option<Self> {
        let (digits, rest) = split_digits(name, OFFSET_DIGITS)?;
        let base_offset = std::str::from_utf8(digits).ok()?.parse().ok()?;
        let (kind, state) = segment_suffix(rest).or_else(|| snapshot_suffix(rest))?;
        Some(Self { kind, state, base_offset: Some(base_offset) })
    }
}

/// What follows the offset in the name of a segment's file.
fn segment_suffix(rest: &[u8]) -> Option<(FileKind, FileState)> {
    let with_state = |kind: FileKind| {
        let state = match rest.strip_prefix(kind.suffix()?)? {
            b"" => FileState::Live,
            DELETED => FileState::Deleted,
            SWAP => FileState::Swap,
            CLEANED => FileState::Cleaned,
            _ => return None,
        };
        Some((kind, state))
    };
    FileKind::BY_OFFSET.into_iter().find_map(with_state)
}

/// What follows the offset in the name of a KRaft snapshot.
fn snapshot_suffix(rest: &[u8]) -> Option<(FileKind, FileState)> {
    let (_, rest) = split_digits(rest.strip_prefix(b"-")?, EPOCH_DIGITS)?;
    let state = match rest.strip_prefix(CHECKPOINT)? {
        b"" => FileState::Live,
        DELETED => FileState::Deleted,
        PART => FileState::Temporary,
        _ => return None,
    };
    Some((FileKind::MetadataSnapshot, state))
}
