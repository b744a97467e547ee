//! The bounds on what input may ask for, each with its reason. What exceeds one is refused before
//! memory is allocated.
//!
//! What a format itself limits stands beside its reader: the ratios, blocks and windows of a codec in
//! [`compression`](crate::compression), the bytes of a varint in [`varint`](crate::varint).

/// Bytes of one batch, envelope included. Kafka's own bound is the 32-bit size field; brokers accept
/// 1 MiB unless `message.max.bytes` is raised, seldom above ten. 64 MiB leaves room for exceptions,
/// and keeps a wrong size field from exhausting the machine.
pub const MAX_BATCH_BYTES: u64 = 64 << 20;
/// The kernels accept no batch that the rules refuse.
const _: () = assert!(ottla_kernels::header::MAX_ORDINARY_BYTES as u64 <= MAX_BATCH_BYTES);

/// Bytes of a batch that is built, envelope included: the size field has 31 bits, and Kafka's own
/// 32-bit sum of it and the envelope must not overflow.
pub const MAX_BUILT_BYTES: u64 = i32::MAX as u64;

/// Bytes a compressed payload may inflate to. As many as a batch may have: what would be refused
/// uncompressed is refused compressed.
pub const MAX_DECOMPRESSED_BYTES: u64 = 64 << 20;

/// Bytes inflated per byte of payload, above [`ALWAYS_DECOMPRESSED_BYTES`]. Deflate cannot exceed
/// 1032:1; zstd reaches more only on runs of one text, and no long payload is one.
pub const MAX_DECOMPRESSED_RATIO: u64 = 1100;

/// Inflated bytes that are always allowed, so that small payloads of repeated text are read.
pub const ALWAYS_DECOMPRESSED_BYTES: u64 = 16 << 20;

/// Bytes of the arena that payloads are inflated into, between two payloads. Brokers accept batches
/// of 1 MiB by default, and text seldom shrinks below an eighth.
pub const KEPT_ARENA_BYTES: usize = 8 << 20;

/// Bytes of source and inflated payloads together that the columns of one call may refer to:
/// positions in Arrow's views have 31 bits.
pub const MAX_COLUMN_BYTES: u64 = i32::MAX as u64;

/// Inflated payloads of one partition of a Fetch answer behind which a consumer reads no further batch:
/// it fetches what is left again. Answers have a MiB a partition by default.
pub const MAX_FETCHED_INFLATED_BYTES: usize = 64 << 20;

/// Headers of one record. Kafka has no bound beyond the record's bytes; a million is far above any
/// use, and keeps a record of two-byte headers from becoming gigabytes of objects.
pub const MAX_HEADERS: u32 = 1 << 20;

/// Partitions of a topic that rows are sorted into: each takes eight bytes. Clusters of a few hundred
/// thousand partitions in all are the largest there are.
pub const MAX_PARTITIONS: u32 = 1 << 20;

/// Faults named per batch. A batch with a million wrong deltas is one fault to its reader.
pub const MAX_FAULTS_PER_BATCH: usize = 100;

/// Records that a refusal names. A broker's response has a message for each; for more than a million
/// wrong records in a batch that inflates to 64 MiB it would take gigabytes.
pub const MAX_CULPRITS: u32 = 1 << 20;

/// The bounds in force for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// See [`MAX_BATCH_BYTES`].
    pub batch_bytes: u64,
    /// See [`MAX_DECOMPRESSED_BYTES`].
    pub decompressed_bytes: u64,
    /// See [`MAX_DECOMPRESSED_RATIO`].
    pub decompressed_ratio: u64,
    /// See [`MAX_HEADERS`].
    pub headers: u32,
    /// See [`MAX_CULPRITS`].
    pub culprits: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch_bytes: MAX_BATCH_BYTES,
            decompressed_bytes: MAX_DECOMPRESSED_BYTES,
            decompressed_ratio: MAX_DECOMPRESSED_RATIO,
            headers: MAX_HEADERS,
            culprits: MAX_CULPRITS,
        }
    }
}

impl Limits {
    /// Bytes that a payload of `payload_bytes` may inflate to.
    pub fn decompressed(&self, payload_bytes: usize) -> u64 {
        (payload_bytes as u64)
            .saturating_mul(self.decompressed_ratio)
            .max(ALWAYS_DECOMPRESSED_BYTES)
            .min(self.decompressed_bytes)
    }
}
