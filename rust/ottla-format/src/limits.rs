//! Every bound, with its reason. What input asks for beyond one is refused before memory is taken.

/// Bytes of one batch, envelope included. Kafka's own bound is the 32-bit size field; brokers take
/// 1 MiB unless `message.max.bytes` is raised, seldom past ten. 64 MiB leaves room for the odd, and
/// keeps a size field that lies from taking the machine.
pub const MAX_BATCH_BYTES: u64 = 64 << 20;

/// Bytes of a batch that is built: its size field has 31 bits, and Kafka's own arithmetic on the sum
/// with the envelope must not overflow.
pub const MAX_BUILT_BYTES: u64 = i32::MAX as u64;

/// Bytes a compressed payload may inflate to. Equals the batch bound: what would be refused plain
/// is refused compressed.
pub const MAX_DECOMPRESSED_BYTES: u64 = 64 << 20;

/// Bytes inflated for each payload byte, above [`ALWAYS_DECOMPRESSED_BYTES`]. Deflate cannot exceed
/// 1032:1; zstd reaches more only on runs of one text, which no long payload is.
pub const MAX_DECOMPRESSED_RATIO: u64 = 1100;

/// Inflated bytes that are always allowed, so that small payloads of repeated text are read.
pub const ALWAYS_DECOMPRESSED_BYTES: u64 = 16 << 20;

/// Headers of one record. Kafka has no bound beyond the record's bytes; a million is far above any
/// use, and keeps a record of two-byte headers from becoming gigabytes of objects.
pub const MAX_HEADERS: u32 = 1 << 20;

/// Faults named of one batch. A batch of a million wrong deltas is one fault to its reader.
pub const MAX_FAULTS_PER_BATCH: usize = 100;

/// Records that a refusal names. A broker's answer holds each with its message; more than a million
/// wrong records in a batch that inflates to 64 MiB would take gigabytes to say so.
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
    /// How far a payload of `payload_bytes` may inflate.
    pub fn decompressed(&self, payload_bytes: usize) -> u64 {
        (payload_bytes as u64)
            .saturating_mul(self.decompressed_ratio)
            .max(ALWAYS_DECOMPRESSED_BYTES)
            .min(self.decompressed_bytes)
    }
}
