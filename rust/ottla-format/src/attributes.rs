//! The attribute bits of a batch: codec, timestamp type, transactional, control, delete horizon.

/// A compression codec, by its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Compression {
    /// Not compressed.
    None = 0,
    /// gzip (RFC 1952).
    Gzip = 1,
    /// Snappy, raw or in the framing called xerial.
    Snappy = 2,
    /// One LZ4 frame.
    Lz4 = 3,
    /// Zstandard frames (magic 2 only; KIP-110).
    Zstd = 4,
}

impl Compression {
    /// All codecs, by number.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec with this number, if there is one.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.get(usize::from(id)).copied()
    }

    /// The codec with this name in Kafka, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }

    /// Kafka's name: `none`, `gzip`, `snappy`, `lz4`, `zstd`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// Who set the timestamp of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// Magic 0 has no timestamps.
    None,
    /// The producer.
    CreateTime,
    /// The broker, when it appended the batch.
    LogAppendTime,
}

impl TimestampType {
    /// `no_timestamp_type`, `create_time` or `log_append_time`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no_timestamp_type",
            Self::CreateTime => "create_time",
            Self::LogAppendTime => "log_append_time",
        }
    }
}

/// Bits 0 to 2: the codec.
pub const CODEC_MASK: u16 = 0x07;
/// Bit 3: LogAppendTime.
pub const LOG_APPEND_TIME: u16 = 0x08;
/// Bit 4: transactional (magic 2).
pub const TRANSACTIONAL: u16 = 0x10;
/// Bit 5: control (magic 2).
pub const CONTROL: u16 = 0x20;
/// Bit 6: the base timestamp holds the delete horizon (magic 2, KIP-534).
pub const DELETE_HORIZON: u16 = 0x40;
