//! A topic's configuration as it decides over a produce request, under Kafka's names.

use std::fmt;
use std::ops::RangeInclusive;

use ottla_format::attributes::{Compression, TimestampType};
use ottla_format::compression::levels;
use ottla_log::kafka_version::{KafkaVersion, ReleaseDifference};

/// The codec of stored batches: `compression.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionType {
    /// Whatever the producer chose.
    Producer,
    /// This codec; [`Compression::None`] is `uncompressed`.
    Codec(Compression),
}

impl CompressionType {
    /// Kafka's name: `producer`, `uncompressed`, `gzip`, `snappy`, `lz4`, `zstd`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Codec(Compression::None) => "uncompressed",
            Self::Codec(codec) => codec.name(),
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "producer" => Some(Self::Producer),
            "uncompressed" => Some(Self::Codec(Compression::None)),
            // `none` is a value for producers, not for topics.
            "none" => None,
            name => Compression::from_name(name).map(Self::Codec),
        }
    }
}

/// How a batch is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetCompression {
    pub(crate) codec: Compression,
    /// The codec's default without one.
    pub(crate) level: Option<i32>,
}

/// A topic's configuration, as far as it decides over a produce request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicConfig {
    /// `cleanup.policy` contains `compact`: every record needs a key.
    pub is_compacted: bool,
    /// `cleanup.policy` contains `delete`.
    pub is_deleted: bool,
    /// `compression.type`.
    pub compression_type: CompressionType,
    /// `compression.gzip.level`; −1 is the codec's own.
    pub compression_gzip_level: i32,
    /// `compression.lz4.level`.
    pub compression_lz4_level: i32,
    /// `compression.zstd.level`.
    pub compression_zstd_level: i32,
    /// `max.message.bytes`.
    pub max_message_bytes: i32,
    /// `max.decompressed.message.bytes`: the longest record in a compressed batch or set, where the
    /// release has the setting.
    pub max_decompressed_message_bytes: i32,
    /// `message.timestamp.type`.
    pub message_timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub message_timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub message_timestamp_after_max_ms: i64,
    /// `segment.bytes`. Kafka 4 allows no less than 1 MiB; the check is the same.
    pub segment_bytes: i32,
    /// `producer.id.expiration.ms`, a setting of the broker.
    pub producer_id_expiration_ms: i64,
    /// The magic of the log, by `message.format.version`: 2 in every broker since 4.0. Topics of
    /// older brokers may have 0 or 1, and Kafka's code still handles them.
    pub message_format: i8,
    /// The release whose settings these are, where that is said.
    pub kafka_version: Option<KafkaVersion>,
}

impl Default for TopicConfig {
    /// Kafka 4's defaults.
    fn default() -> Self {
        Self {
            is_compacted: false,
            is_deleted: true,
            compression_type: CompressionType::Producer,
            compression_gzip_level: -1,
            compression_lz4_level: 9,
            compression_zstd_level: 3,
            max_message_bytes: 1_048_588,
            max_decompressed_message_bytes: MAX_DECOMPRESSED_MESSAGE_BYTES,
            message_timestamp_type: TimestampType::CreateTime,
            message_timestamp_before_max_ms: i64::MAX,
            message_timestamp_after_max_ms: 3_600_000,
            segment_bytes: 1 << 30,
            producer_id_expiration_ms: 86_400_000,
            message_format: 2,
            kafka_version: None,
        }
    }
}

/// The highest value of `max.decompressed.message.bytes`, and its default: the longest array that
/// every Java machine has.
const MAX_DECOMPRESSED_MESSAGE_BYTES: i32 = i32::MAX - 8;

/// A setting that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// No such key.
    UnknownKey {
        /// The key as given.
        key: String,
    },
    /// A value that the key does not allow.
    Value {
        /// Kafka's name.
        key: &'static str,
        /// The value as given.
        found: String,
        /// The values it allows.
        expected: String,
    },
    /// A setting that the release does not have.
    NotInRelease {
        /// Kafka's name.
        key: &'static str,
        /// The release asked for.
        version: KafkaVersion,
        /// The row of the table that says which releases have it.
        row: ReleaseDifference,
    },
    /// Another release than the one whose settings these are.
    OtherRelease {
        /// The release asked for.
        found: KafkaVersion,
        /// That of the configuration.
        expected: KafkaVersion,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey { key } => {
                write!(f, "unknown topic setting '{key}', expected one of {}", KEYS.join(", "))
            }
            Self::Value { key, found, expected } => {
                write!(f, "{key} is '{found}', expected {expected}")
            }
            Self::NotInRelease { key, version, row } => {
                let releases: Vec<_> =
                    KafkaVersion::RELEASES.iter().filter(|release| release.has(*row)).collect();
                write!(f, "Kafka {version} has no setting {key}, which is one of Kafka")?;
                for (index, release) in releases.iter().enumerate() {
                    let before = match index {
                        0 => " ",
                        _ if index.saturating_add(1) == releases.len() => " and ",
                        _ => ", ",
                    };
                    write!(f, "{before}{release}")?;
                }
                Ok(())
            }
            Self::OtherRelease { found, expected } => {
                write!(
                    f,
                    "kafka_version is {found}, but the TopicConfig is one of Kafka {expected}"
                )
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// Every key, by Kafka's name.
const KEYS: [&str; 13] = [
    "cleanup.policy",
    "compression.type",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "max.message.bytes",
    MAX_DECOMPRESSED,
    "message.timestamp.type",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "segment.bytes",
    "producer.id.expiration.ms",
    "message.format.version",
];

const MAX_DECOMPRESSED: &str = "max.decompressed.message.bytes";

impl TopicConfig {
    /// Sets one key, named as Kafka does or with underscores, from its text.
    ///
    /// # Errors
    /// [`ConfigError`], which names the key; nothing is set then.
    ///
    /// # Examples
    /// ```
    /// use ottla_leader::TopicConfig;
    ///
    /// let mut config = TopicConfig::default();
    /// config.set("cleanup.policy", "compact")?;
    /// assert!(config.is_compacted);
    /// assert!(config.set("segment.bytes", "many").is_err());
    /// # Ok::<(), ottla_leader::ConfigError>(())
    /// ```
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let dotted = key.replace('_', ".");
        let Some(&key) = KEYS.iter().find(|&&known| known == dotted) else {
            return Err(ConfigError::UnknownKey { key: key.to_owned() });
        };
        let refused = |expected: String| ConfigError::Value { key, found: value.into(), expected };
        let int = |range: RangeInclusive<i32>| number(value, &range).map_err(refused);
        let long = || number(value, &(0..=i64::MAX)).map_err(refused);
        let level = |codec| match levels(codec) {
            // gzip alone has a value for the codec's default.
            Some((range, _)) if codec != Compression::Gzip => int(range.clone()),
            Some((range, _)) if value != "-1" => int(range.clone()),
            _ => Ok(-1),
        };
        match key {
            "cleanup.policy" => {
                let (compact, delete) =
                    cleanup_policy(value).ok_or_else(|| refused(CLEANUP_POLICIES.into()))?;
                (self.is_compacted, self.is_deleted) = (compact, delete);
            }
            "compression.type" => {
                self.compression_type = CompressionType::from_name(value).ok_or_else(|| {
                    refused("producer, uncompressed, gzip, snappy, lz4 or zstd".into())
                })?;
            }
            "compression.gzip.level" => self.compression_gzip_level = level(Compression::Gzip)?,
            "compression.lz4.level" => self.compression_lz4_level = level(Compression::Lz4)?,
            "compression.zstd.level" => self.compression_zstd_level = level(Compression::Zstd)?,
            "max.message.bytes" => self.max_message_bytes = int(0..=i32::MAX)?,
            MAX_DECOMPRESSED => {
                self.max_decompressed_message_bytes = int(0..=MAX_DECOMPRESSED_MESSAGE_BYTES)?;
            }
            "message.timestamp.type" => {
                self.message_timestamp_type = match value {
                    "CreateTime" => TimestampType::CreateTime,
                    "LogAppendTime" => TimestampType::LogAppendTime,
                    _ => return Err(refused("CreateTime or LogAppendTime".into())),
                };
            }
            "message.timestamp.before.max.ms" => self.message_timestamp_before_max_ms = long()?,
            "message.timestamp.after.max.ms" => self.message_timestamp_after_max_ms = long()?,
            "segment.bytes" => self.segment_bytes = int(14..=i32::MAX)?,
            "producer.id.expiration.ms" => self.producer_id_expiration_ms = long()?,
            _ => {
                self.message_format = message_format(value)
                    .ok_or_else(|| refused("a release of Kafka, such as 0.10.0 or 3.0".into()))?;
            }
        }
        Ok(())
    }

    /// The release whose rules hold: the one asked for, that of these settings, or the newest.
    ///
    /// # Errors
    /// [`ConfigError`] for a release that contradicts that of the settings, or lacks one of them.
    pub fn release(&self, asked: Option<KafkaVersion>) -> Result<KafkaVersion, ConfigError> {
        let version = asked.or(self.kafka_version).unwrap_or_default();
        if let Some(expected) = self.kafka_version.filter(|&expected| expected != version) {
            return Err(ConfigError::OtherRelease { found: version, expected });
        }
        let row = ReleaseDifference::RecordBounds;
        let is_set = self.max_decompressed_message_bytes != MAX_DECOMPRESSED_MESSAGE_BYTES;
        if is_set && !version.has(row) {
            return Err(ConfigError::NotInRelease { key: MAX_DECOMPRESSED, version, row });
        }
        Ok(version)
    }

    /// The compression of the stored batch, for batches that were sent with `source`.
    pub(crate) fn target(&self, source: Compression) -> TargetCompression {
        let CompressionType::Codec(codec) = self.compression_type else {
            // A producer's codec is kept at its default level.
            return TargetCompression { codec: source, level: None };
        };
        let level = match codec {
            Compression::Gzip => Some(self.compression_gzip_level).filter(|&level| level != -1),
            Compression::Lz4 => Some(self.compression_lz4_level),
            Compression::Zstd => Some(self.compression_zstd_level),
            Compression::None | Compression::Snappy => None,
        };
        TargetCompression { codec, level }
    }

    /// The time of the append, where the topic stamps it.
    pub(crate) fn log_append_time(&self, now_ms: i64) -> Option<i64> {
        (self.message_timestamp_type == TimestampType::LogAppendTime).then_some(now_ms)
    }
}

const CLEANUP_POLICIES: &str = "delete, compact or both, separated by a comma";

/// Whether the policy compacts, and whether it deletes.
fn cleanup_policy(value: &str) -> Option<(bool, bool)> {
    let (mut compact, mut delete) = (false, false);
    for word in value.split(',') {
        match word.trim() {
            "compact" => compact = true,
            "delete" => delete = true,
            _ => return None,
        }
    }
    Some((compact, delete))
}

/// The magic that a release of Kafka wrote: 0 before 0.10, 1 before 0.11, then 2.
fn message_format(release: &str) -> Option<i8> {
    let mut parts = release.split(['.', '-']);
    let major: u32 = parts.next()?.parse().ok()?;
    let minor: u32 = parts.next()?.parse().ok()?;
    Some(match (major, minor) {
        (0, ..10) => 0,
        (0, 10) => 1,
        _ => 2,
    })
}

fn number<T>(value: &str, range: &RangeInclusive<T>) -> Result<T, String>
where
    T: std::str::FromStr + PartialOrd + fmt::Display + Copy,
{
    value
        .parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
}
