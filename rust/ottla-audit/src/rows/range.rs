//! What of a segment is asked for, and in which pieces it comes.

use ottla_format::attributes::TimestampType;
use ottla_format::batch::BatchInfo;
use std::ops::Range;

/// Bytes of a piece at most: positions in Arrow's columns have 31 bits, and text takes up to nine
/// times the bytes that it was made of.
pub const MAX_PIECE_BYTES: usize = 64 << 20;

/// What of a segment is asked for.
#[derive(Clone, Debug)]
pub struct RowRange {
    /// The batches that begin here. The start is where a batch begins.
    pub positions: Range<u64>,
    /// Which rows.
    pub bounds: RowBounds,
    /// Bytes after which a piece ends; above [`MAX_PIECE_BYTES`] counts as that.
    pub piece_bytes: usize,
    /// Bytes of a row that do not depend on what is read, as the caller counts them.
    pub row_bytes: usize,
}

/// Bounds of offsets and timestamps, inclusive.
///
/// A record is wanted when its own offset and timestamp lie inside. A batch is wanted when its last
/// offset, its base offset and its maximum timestamp, as its header has them, do not lie outside:
/// `max_timestamp` asks nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // as their names say
pub struct RowBounds {
    pub min_offset: i64,
    pub max_offset: i64,
    pub min_timestamp: i64,
    pub max_timestamp: i64,
}

impl Default for RowBounds {
    fn default() -> Self {
        Self {
            min_offset: i64::MIN,
            max_offset: i64::MAX,
            min_timestamp: i64::MIN,
            max_timestamp: i64::MAX,
        }
    }
}

impl RowBounds {
    pub(crate) fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a record is wanted.
    pub(crate) fn takes(&self, offset: i64, timestamp: i64) -> bool {
        (self.min_offset..=self.max_offset).contains(&offset)
            && (self.min_timestamp..=self.max_timestamp).contains(&timestamp)
    }

    /// Whether a batch is wanted.
    pub(crate) fn takes_batch(&self, info: &BatchInfo) -> bool {
        info.last_offset >= self.min_offset
            && info.base_offset <= self.max_offset
            && info.max_timestamp >= self.min_timestamp
    }

    /// Whether the header of a batch says that no record of it is wanted. Those of magic 0 and 1 do
    /// not say enough. With log append time, every record has the maximum timestamp; with create
    /// time, the earliest timestamp is in no header.
    pub(crate) fn excludes(&self, info: &BatchInfo) -> bool {
        let is_later = || {
            info.timestamp_type() == TimestampType::LogAppendTime
                && info.max_timestamp > self.max_timestamp
        };
        info.magic >= 2 && (!self.takes_batch(info) || is_later())
    }
}

/// What comes next.
#[derive(Debug)]
pub enum Piece<T> {
    /// Rows, at least one.
    Rows(T),
    /// Nothing yet: a chance to stop.
    Busy,
    /// There is no more.
    End,
}
