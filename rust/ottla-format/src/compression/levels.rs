//! The compression levels of codecs.

use std::ops::RangeInclusive;

use crate::attributes::Compression;

/// The levels of a codec in Kafka (KIP-390), and its default; `None` for a codec without levels.
pub fn levels(codec: Compression) -> Option<(RangeInclusive<i32>, i32)> {
    match codec {
        Compression::None | Compression::Snappy => None,
        Compression::Gzip => Some((1..=9, 6)),
        Compression::Lz4 => Some((1..=17, 9)),
        Compression::Zstd => Some((-131_072..=22, 3)),
    }
}

/// The level to compress at: the nearest in range, or the default; 0 for a codec without levels.
pub(super) fn level_in_range(codec: Compression, level: Option<i32>) -> i32 {
    levels(codec)
        .map_or(0, |(range, default)| level.unwrap_or(default).clamp(*range.start(), *range.end()))
}
