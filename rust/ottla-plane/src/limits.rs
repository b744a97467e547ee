//! Every bound of the plane, with its reason.

/// Topics and partitions of one request, together: a hundred times what a large client names, and
/// some 60 MB of answer.
pub const MAX_REQUEST_ENTRIES: usize = 1 << 20;

/// Record errors of a partition that carry a message of their own. The others are named by index
/// and code, so that a batch of a million bad records is not answered with 100 MB.
pub const MAX_RECORD_MESSAGES: usize = 1000;

/// The most bytes of records in one answer to Fetch, whatever the client asks for: Kafka's default
/// of `fetch.max.bytes`.
pub const MAX_FETCH_BYTES: u64 = 55 << 20;

/// Fetch sessions that are kept: Kafka's default of `max.incremental.fetch.session.cache.slots`.
pub const MAX_FETCH_SESSIONS: usize = 1000;

/// Partitions of all fetch sessions together.
pub const MAX_SESSION_PARTITIONS: usize = 1 << 20;

/// A session that was idle for so long may be evicted: Kafka's
/// `min.incremental.fetch.session.eviction.ms`.
pub const MIN_SESSION_EVICTION_MS: i64 = 120_000;

/// Files of logs that are open at once: a quarter of what a process may open by default, so that
/// most are left for connections.
pub const MAX_OPEN_FILES: usize = 256;

/// The most bytes of a file that are read at once: few calls for a large answer, and little memory.
pub const MAX_READ_BYTES: usize = 256 << 10;

/// Bytes of the largest snapshot of the cluster's metadata that is read: a start holds one in memory.
pub const MAX_METADATA_SNAPSHOT_BYTES: u64 = 1 << 30;
