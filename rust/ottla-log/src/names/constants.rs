//! Names that are fixed, and the suffixes of others.

/// `meta.properties`: to which cluster and broker a log directory belongs.
pub const META_PROPERTIES: &[u8] = b"meta.properties";
/// `remote-log-index-cache`: a directory of tiered storage beside those of partitions.
pub const REMOTE_INDEX_CACHE: &[u8] = b"remote-log-index-cache";
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
/// The topic of the share coordinators (KIP-932).
pub const SHARE_GROUP_STATE: &str = "__share_group_state";
/// The topic of the KRaft quorum.
pub const CLUSTER_METADATA: &str = "__cluster_metadata";

/// Suffix of a segment's batches.
pub const LOG: &[u8] = b".log";
/// The largest segment that Kafka opens, in bytes.
pub const MAX_SEGMENT_BYTES: u64 = i32::MAX as u64;
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
pub const PART: &[u8] = b".part";
/// Suffix of a text file under construction.
pub const TEMPORARY: &[u8] = b".tmp";
/// Suffix of a KRaft snapshot.
pub const CHECKPOINT: &[u8] = b".checkpoint";
