//! What Kafka calls its files and directories, and what a name says (`docs/kafka/log-dir.md` §1).
//!
//! ```text
//! <log dir>/meta.properties                           of the log directory
//!          /orders-0/                                 a partition: topic, '-', number
//!          /orders-0.<32 hex digits>-delete/          the same, to be deleted
//!          /orders-0/00000000000000000042.log         a file of a segment: base offset, suffix
//!                   /00000000000000000042.log.swap    the same, of an operation under way
//!                   /leader-epoch-checkpoint          a file of the partition
//! ```
//!
//! There are two readings of a name. [`FileName`] and [`PartitionName`] say what a stranger may
//! believe of it: whatever does not look like Kafka's is unknown, never an error. Kafka's own loader
//! is laxer: it goes by the end of a name and reads [whatever number](offset_of) stands before the
//! first dot.

use std::fmt;

/// `meta.properties`: to which cluster and broker a log directory belongs.
pub const META_PROPERTIES: &[u8] = b"meta.properties";
/// `.kafka_cleanshutdown`: the broker stopped cleanly.
pub const CLEAN_SHUTDOWN: &[u8] = b".kafka_cleanshutdown";
/// `.lock`: held while a broker runs.
pub const LOCK: &[u8] = b".lock";
/// First offsets not known to be flushed, by partition.
pub const RECOVERY_POINTS: &[u8] = b"recovery-point-offset-checkpoint";
/// Log start offsets, by partition.
pub const LOG_START_OFFSETS: &[u8] = b"log-start-offset-checkpoint";
/// High watermarks, by partition.
pub const HIGH_WATERMARKS: &[u8] = b"replication-offset-checkpoint";
/// First offsets that the cleaner has not cleaned, by partition.
pub const CLEANER_OFFSETS: &[u8] = b"cleaner-offset-checkpoint";
/// The snapshot with which a KRaft controller begins.
pub const BOOTSTRAP_CHECKPOINT: &[u8] = b"bootstrap.checkpoint";

/// The epochs of a partition's leaders.
pub const LEADER_EPOCHS: &[u8] = b"leader-epoch-checkpoint";
/// The topic id of a partition.
pub const PARTITION_METADATA: &[u8] = b"partition.metadata";
/// What a KRaft voter knows of its quorum.
pub const QUORUM_STATE: &[u8] = b"quorum-state";

/// The topic of committed offsets.
pub const CONSUMER_OFFSETS: &str = "__consumer_offsets";
/// The topic of transactional ids.
pub const TRANSACTION_STATE: &str = "__transaction_state";
/// The topic of the KRaft quorum.
pub const CLUSTER_METADATA: &str = "__cluster_metadata";

/// Suffix of a segment's batches.
pub const LOG: &[u8] = b".log";
/// Suffix of an offset index.
pub const INDEX: &[u8] = b".index";
/// Suffix of a time index.
pub const TIME_INDEX: &[u8] = b".timeindex";
/// Suffix of a transaction index.
pub const TRANSACTION_INDEX: &[u8] = b".txnindex";
/// Suffix of a snapshot of producers.
pub const SNAPSHOT: &[u8] = b".snapshot";

/// Suffix of a file that is renamed to be deleted later.
pub const DELETED: &[u8] = b".deleted";
/// Suffix of a replacement that waits to be renamed.
pub const SWAP: &[u8] = b".swap";
/// Suffix of a replacement under construction.
pub const CLEANED: &[u8] = b".cleaned";
/// Suffix of a KRaft snapshot under construction.
const PART: &[u8] = b".part";
/// Suffix of a text file under construction.
const TEMPORARY: &[u8] = b".tmp";
/// Suffix of a KRaft snapshot.
pub const CHECKPOINT: &[u8] = b".checkpoint";

/// Digits of an offset in a name.
const OFFSET_DIGITS: usize = 20;
/// Digits of an epoch or of a partition's number in a name.
const EPOCH_DIGITS: usize = 10;
/// Characters of the id in the name of a directory that is being deleted or moved.
const ID_CHARACTERS: usize = 32;

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

    fn in_partition(name: &[u8]) -> Option<Self> {
        match name {
            LEADER_EPOCHS => Some(Self::LeaderEpochCheckpoint),
            PARTITION_METADATA => Some(Self::PartitionMetadata),
            QUORUM_STATE => Some(Self::QuorumState),
            _ => None,
        }
    }

    fn in_log_directory(name: &[u8]) -> Option<Self> {
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

/// The digits a name begins with, at least one and at most so many, and the rest.
fn split_digits(name: &[u8], max_digits: usize) -> Option<(&[u8], &[u8])> {
    let end = name.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(name.len());
    if (1..=max_digits).contains(&end) { name.split_at_checked(end) } else { None }
}

/// Whether a partition's directory is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionState {
    /// It is.
    Live,
    /// It is to be deleted.
    Delete,
    /// It is being moved here from another log directory.
    Future,
    /// The broker was not assigned the partition.
    Stray,
}

impl PartitionState {
    const ALL: [Self; 4] = [Self::Live, Self::Delete, Self::Future, Self::Stray];

    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Delete => "delete",
            Self::Future => "future",
            Self::Stray => "stray",
        }
    }

    /// How the name of such a directory ends: empty for one in use.
    pub fn suffix(self) -> &'static [u8] {
        match self {
            Self::Live => b"",
            Self::Delete => b"-delete",
            Self::Future => b"-future",
            Self::Stray => b"-stray",
        }
    }
}

/// What the name of a partition's directory says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionName<'a> {
    /// The topic. In names that end in `-delete` or `-stray` Kafka cuts it so that the whole fits
    /// 255 characters.
    pub topic: &'a [u8],
    /// The number of the partition.
    pub partition: i32,
    /// Whether the directory is in use.
    pub state: PartitionState,
}

impl<'a> PartitionName<'a> {
    /// Reads a name; `None` if it is no partition's.
    ///
    /// # Examples
    /// ```
    /// use ottla_log::names::PartitionName;
    ///
    /// let name = PartitionName::parse(b"page-views-12").unwrap();
    /// assert_eq!((name.topic, name.partition), (&b"page-views"[..], 12));
    /// assert_eq!(PartitionName::parse(b"lost+found"), None);
    /// ```
    pub fn parse(name: &'a [u8]) -> Option<Self> {
        let (name, state) = split_state(name).unwrap_or((name, PartitionState::Live));
        let hyphen = name.iter().rposition(|&byte| byte == b'-')?;
        let (topic, number) = name.split_at_checked(hyphen)?;
        let (digits, rest) = split_digits(number.strip_prefix(b"-")?, EPOCH_DIGITS)?;
        if topic.is_empty() || !rest.is_empty() {
            return None;
        }
        let partition = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(Self { topic, partition, state })
    }
}

/// The name before `.<id>-delete` and its like.
fn split_state(name: &[u8]) -> Option<(&[u8], PartitionState)> {
    let with_state = |state: PartitionState| {
        let name = name.strip_suffix(state.suffix())?;
        let (name, id) = name.split_at_checked(name.len().checked_sub(ID_CHARACTERS)?)?;
        let is_id = id.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        Some((name.strip_suffix(b".").filter(|_| is_id)?, state))
    };
    PartitionState::ALL.into_iter().filter(|&s| s != PartitionState::Live).find_map(with_state)
}

/// What a directory is by the files in it. Its own name may deceive: `broker-1` can be partition 1
/// of the topic `broker` or the log directory of a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryKind {
    /// It holds files that Kafka puts into a log directory.
    LogDirectory,
    /// It holds files that Kafka puts into a partition's directory.
    Partition,
    /// It holds none of these.
    Unknown,
}

impl DirectoryKind {
    /// Stable kebab-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::LogDirectory => "log-directory",
            Self::Partition => "partition",
            Self::Unknown => "unknown",
        }
    }

    /// The kind of a directory that holds files of these names.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut kind = Self::Unknown;
        for name in names {
            if marks_log_directory(name) {
                return Self::LogDirectory;
            }
            if kind == Self::Unknown && marks_partition(name) {
                kind = Self::Partition;
            }
        }
        kind
    }
}

/// Whether a file is found in log directories alone. A `.lock` says nothing: other programs leave
/// such files, too.
fn marks_log_directory(name: &[u8]) -> bool {
    FileKind::in_log_directory(name).is_some_and(|kind| kind != FileKind::Lock)
}

/// Whether a file is found in partitions alone. Of a number the digits count that Kafka writes: a
/// `2024.log` is nobody's segment.
fn marks_partition(name: &[u8]) -> bool {
    if FileKind::in_partition(name).is_some() {
        return true;
    }
    let all_digits = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    let Some((offset, rest)) = name.split_at_checked(OFFSET_DIGITS) else { return false };
    let rest = rest
        .strip_prefix(b"-")
        .and_then(|rest| rest.split_at_checked(EPOCH_DIGITS))
        .filter(|(epoch, _)| all_digits(epoch))
        .map_or(rest, |(_, rest)| rest);
    all_digits(offset) && matches!(rest, [b'.', b'a'..=b'z', ..])
}

/// The name of a file as Kafka builds it: an offset of 20 digits and a suffix, such as [`SWAP`].
pub fn file_name(offset: i64, suffix: &[u8]) -> Vec<u8> {
    let sign = if offset < 0 { "-" } else { "" };
    let mut name = format!("{sign}{:020}", offset.unsigned_abs()).into_bytes();
    name.extend_from_slice(suffix);
    name
}

/// Why Kafka's loader reads no offset in a name; Java's exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OffsetError {
    /// The name has no dot: `StringIndexOutOfBoundsException`.
    NoDot {
        /// Bytes of the name.
        size: usize,
    },
    /// What stands before the dot is no number: `NumberFormatException`.
    NotANumber {
        /// What stands there.
        found: String,
    },
}

impl OffsetError {
    /// The class of Java's exception.
    pub fn class(&self) -> &'static str {
        match self {
            Self::NoDot { .. } => "java.lang.StringIndexOutOfBoundsException",
            Self::NotANumber { .. } => "java.lang.NumberFormatException",
        }
    }
}

impl fmt::Display for OffsetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDot { size } => write!(f, "Range [0, -1) out of bounds for length {size}"),
            Self::NotANumber { found } => write!(f, "For input string: \"{found}\""),
        }
    }
}

impl std::error::Error for OffsetError {}

/// The number before the first dot of a name, as Kafka's loader reads it
/// (`LogFileUtils.offsetFromFileName`): with a sign, and of any number of digits.
///
/// # Errors
/// [`OffsetError`], with which a broker gives up its start.
pub fn offset_of(name: &[u8]) -> Result<i64, OffsetError> {
    let dot = name.iter().position(|&byte| byte == b'.');
    let Some((digits, _)) = dot.and_then(|dot| name.split_at_checked(dot)) else {
        return Err(OffsetError::NoDot { size: name.len() });
    };
    let digits = String::from_utf8_lossy(digits);
    digits.parse().map_err(|_| OffsetError::NotANumber { found: digits.into_owned() })
}

/// The names of a segment's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentNames {
    /// The offset in them.
    pub base_offset: i64,
    /// The batches.
    pub log: Vec<u8>,
    /// The offset index.
    pub index: Vec<u8>,
    /// The time index.
    pub time_index: Vec<u8>,
    /// The transaction index.
    pub transaction_index: Vec<u8>,
}

impl SegmentNames {
    /// Those of a segment in use.
    pub fn of(base_offset: i64) -> Self {
        Self::with_suffix(base_offset, b"")
    }

    /// Those of a segment of an operation under way, as [`SWAP`].
    pub fn with_suffix(base_offset: i64, suffix: &[u8]) -> Self {
        let name = |kind: &[u8]| file_name(base_offset, &[kind, suffix].concat());
        Self {
            base_offset,
            log: name(LOG),
            index: name(INDEX),
            time_index: name(TIME_INDEX),
            transaction_index: name(TRANSACTION_INDEX),
        }
    }

    /// All four.
    pub fn all(&self) -> [&Vec<u8>; 4] {
        [&self.log, &self.index, &self.time_index, &self.transaction_index]
    }
}
