//! Why a batch cannot be built.

use std::fmt;

use crate::attributes::Compression;
use crate::compression::levels;

/// Why a batch cannot be built. `index` is the place of the record at fault, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields say what they are
pub enum BuildError {
    /// Kafka writes no batch without records.
    NoRecords,
    /// The record count has 31 bits.
    TooManyRecords { count: u64 },
    /// The size field has 31 bits.
    TooLarge { size: u64, limit: u64 },
    /// Offsets increase from the base offset.
    OffsetDelta { index: usize, delta: i64, minimum: i64 },
    /// Timestamps are 0 or more, or −1 for none.
    Timestamp { index: usize, timestamp: i64 },
    /// A delete horizon is 0 or more; −1 is none.
    DeleteHorizon { delete_horizon_ms: i64 },
    /// Columns have no place for a delete horizon: only the cleaner sets one.
    DeleteHorizonOfColumns,
    /// Headers came with magic 2.
    Headers { index: usize, magic: i8 },
    /// A message set has magic 0 or 1.
    Magic { magic: i8 },
    /// A transaction has a producer.
    TransactionalWithoutProducer,
    /// An end-transaction marker has a producer.
    MarkerWithoutProducer,
    /// A producer has an epoch.
    ProducerEpoch { producer_id: i64, producer_epoch: i16 },
    /// Batches of a producer are numbered, unless they are control batches.
    BaseSequence { producer_id: i64, base_sequence: i32 },
    /// The codec has no such level.
    CompressionLevel { codec: Compression, level: i32 },
    /// The codec does not exist with this magic.
    Codec { codec: Compression, magic: i8 },
    /// The columns do not fit together.
    Columns(ottla_kernels::build::BuildError),
    /// A column ends before this row.
    Row { row: usize, rows: usize },
    /// The offsets of this row are outside the data.
    RowOffset { row: usize, from: i64, to: i64, size: usize },
    /// The memory provided does not have the size of the batch.
    BufferSize { expected: usize, found: usize },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX: i32 = i32::MAX;
        match *self {
            Self::NoRecords => write!(f, "no records; a batch holds at least one"),
            Self::TooManyRecords { count } => write!(f, "{count} records, expected at most {MAX}"),
            Self::TooLarge { size, limit } => {
                write!(f, "batch of {size} bytes, expected at most {limit}")
            }
            Self::OffsetDelta { index, delta, minimum } => {
                write!(f, "record {index}: offset delta {delta}, expected {minimum} to {MAX}")
            }
            Self::Timestamp { index, timestamp } => {
                let expected = "0 or more, or -1 for none";
                write!(f, "record {index}: timestamp {timestamp}, expected {expected}")
            }
            Self::Headers { index, magic } => {
                write!(f, "record {index}: headers with magic {magic}, which has none; use magic 2")
            }
            Self::DeleteHorizon { delete_horizon_ms: ms } => {
                write!(f, "delete horizon {ms}, expected 0 or more")
            }
            Self::DeleteHorizonOfColumns => {
                write!(f, "a delete horizon with columns; build the batch from records")
            }
            Self::Magic { magic } => write!(f, "magic {magic}, expected 0 or 1"),
            Self::TransactionalWithoutProducer => {
                write!(f, "a transactional batch without a producer id")
            }
            Self::MarkerWithoutProducer => {
                write!(f, "an end-transaction marker without a producer id")
            }
            Self::ProducerEpoch { producer_id: id, producer_epoch: epoch } => {
                write!(f, "producer id {id} with producer epoch {epoch}, expected 0 or more")
            }
            Self::BaseSequence { producer_id: id, base_sequence: sequence } => {
                write!(f, "producer id {id} with base sequence {sequence}, expected 0 or more")
            }
            Self::CompressionLevel { codec, level } => fmt_level(f, codec, level),
            Self::Codec { codec, magic } => {
                write!(f, "{} with magic {magic}, expected magic 2", codec.name())
            }
            Self::Columns(error) => error.fmt(f),
            Self::Row { row, rows } => write!(f, "row {row} of a column that has {rows}"),
            Self::RowOffset { row, from, to, size } => {
                write!(f, "row {row} from {from} to {to}, expected within {size} bytes of data")
            }
            Self::BufferSize { expected, found } => {
                write!(f, "memory of {found} bytes for a batch of {expected}")
            }
        }
    }
}

fn fmt_level(f: &mut fmt::Formatter<'_>, codec: Compression, level: i32) -> fmt::Result {
    let name = codec.name();
    match levels(codec) {
        None => write!(f, "level {level} for {name}, which has no levels"),
        Some((range, _)) => {
            let (start, end) = range.into_inner();
            write!(f, "level {level} for {name}, expected {start} to {end}")
        }
    }
}

impl BuildError {
    /// The error of a row of columns, of which the batch has others before it.
    pub(super) fn of_row(self, row: usize) -> Self {
        match self {
            Self::Timestamp { timestamp, .. } => Self::Timestamp { index: row, timestamp },
            error => error,
        }
    }
}

impl std::error::Error for BuildError {}

impl From<ottla_kernels::build::BuildError> for BuildError {
    fn from(error: ottla_kernels::build::BuildError) -> Self {
        match error {
            ottla_kernels::build::BuildError::RecordCount { count: 0 } => Self::NoRecords,
            ottla_kernels::build::BuildError::RecordCount { count } => {
                Self::TooManyRecords { count: count as u64 }
            }
            error => Self::Columns(error),
        }
    }
}
