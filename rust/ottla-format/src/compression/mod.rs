//! The four codecs: what Kafka's readers take is inflated, what they refuse is refused, and both
//! within a bound.
//!
//! Kafka's readers differ in what they forgive, and producers in many languages have come to rely
//! on it. Each module says what its codec forgives, after `record-batch.md` §7.
//!
//! | codec | after the end | a second stream | an empty payload |
//! | --- | --- | --- | --- |
//! | gzip | ignored | read on | refused |
//! | snappy | up to three bytes ignored | read on | refused |
//! | lz4 | ignored | ignored | refused |
//! | zstd | refused, but for the begin of a frame | read on | read as empty |
//!
//! Payloads are inflated into one arena that is kept, because fresh pages cost more than most
//! decoders. No codec may write past [`Limits::decompressed`], and what a payload says about its
//! own size is believed only as far as its codec could make true.

mod gzip;
mod lz4;
mod snappy;
mod streams;
mod zstd;

use std::ops::RangeInclusive;

use crate::attributes::Compression;
use crate::error::ErrorKind;
use crate::limits::Limits;

/// Bytes the arena keeps for the next payload. Brokers take batches of 1 MiB unless told otherwise,
/// and text seldom shrinks below an eighth.
pub const ARENA_KEPT_BYTES: usize = 8 << 20;

/// The levels a codec has in Kafka (KIP-390), and the one it takes by itself; nothing where a codec
/// has none.
pub fn levels(codec: Compression) -> Option<(RangeInclusive<i32>, i32)> {
    match codec {
        Compression::None | Compression::Snappy => None,
        Compression::Gzip => Some((1..=9, 6)),
        Compression::Lz4 => Some((1..=17, 9)),
        Compression::Zstd => Some((-131_072..=22, 3)),
    }
}

/// Contexts and arena of one thread, used again for every payload.
///
/// # Examples
/// ```
/// use ottla_format::{attributes::Compression, compression::Codecs, limits::Limits};
///
/// let mut codecs = Codecs::new(Limits::default());
/// let payload = codecs.compress(Compression::Zstd, None, 2, b"to be or not to be")?;
/// assert_eq!(codecs.decompress(Compression::Zstd, 2, &payload)?, b"to be or not to be");
/// # Ok::<(), ottla_format::error::ErrorKind>(())
/// ```
pub struct Codecs {
    limits: Limits,
    arena: Arena,
    /// Bytes of the arena that the last payload took.
    inflated: usize,
    gzip: ottla_kernels::gzip::Decompressor,
    snappy: snappy::Contexts,
    zstd: zstd::Contexts,
}

impl Codecs {
    /// Contexts with an empty arena.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            arena: Arena::default(),
            inflated: 0,
            gzip: ottla_kernels::gzip::Decompressor::new(),
            snappy: snappy::Contexts::new(),
            zstd: zstd::Contexts::new(),
        }
    }

    /// The bounds in force.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Other bounds for what follows.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The inflated payload of a batch (or wrapper) of this magic, valid until the next call. A
    /// payload that is not compressed comes back as it is.
    ///
    /// # Errors
    /// [`ErrorKind::Undecodable`] where Kafka's reader fails, [`ErrorKind::DecompressedTooLarge`]
    /// past the bound, [`ErrorKind::UnknownCodec`] for zstd below magic 2.
    pub fn decompress<'a>(
        &'a mut self,
        codec: Compression,
        magic: i8,
        payload: &'a [u8],
    ) -> Result<&'a [u8], ErrorKind> {
        self.inflated = 0;
        self.arena.start(self.limits.decompressed(payload.len()));
        let arena = &mut self.arena;
        let length = match codec {
            Compression::None => return Ok(payload),
            Compression::Gzip => gzip::decompress(&mut self.gzip, payload, arena),
            Compression::Snappy => self.snappy.decompress(payload, arena),
            Compression::Lz4 => lz4::decompress(payload, magic, arena),
            Compression::Zstd if magic < 2 => return Err(unknown_codec(codec, magic)),
            Compression::Zstd => self.zstd.decompress(payload, arena),
        }
        .map_err(|fault| match fault {
            Fault::Undecodable => ErrorKind::Undecodable { codec: codec as u8 },
            Fault::TooLarge => ErrorKind::DecompressedTooLarge { limit: self.arena.limit as u64 },
        })?;
        self.inflated = length;
        Ok(&self.arena.bytes[..length])
    }

    /// The payload as Kafka's writers frame it. A level outside [`levels`] counts as the nearest
    /// inside; none is the codec's own.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownCodec`] for zstd below magic 2, [`ErrorKind::BatchTooLarge`] for a
    /// payload that no batch could hold.
    pub fn compress(
        &mut self,
        codec: Compression,
        level: Option<i32>,
        magic: i8,
        payload: &[u8],
    ) -> Result<Vec<u8>, ErrorKind> {
        let too_large =
            || ErrorKind::BatchTooLarge { declared: payload.len() as u64, limit: i32::MAX as u64 };
        if payload.len() > i32::MAX as usize {
            return Err(too_large());
        }
        let level = levels(codec).map_or(0, |(range, default)| {
            level.unwrap_or(default).clamp(*range.start(), *range.end())
        });
        match codec {
            Compression::None => Some(payload.to_vec()),
            Compression::Gzip => ottla_kernels::gzip::compress(level as u8, payload),
            Compression::Snappy => self.snappy.compress(payload),
            Compression::Lz4 => lz4::compress(level, magic, payload),
            Compression::Zstd if magic < 2 => return Err(unknown_codec(codec, magic)),
            Compression::Zstd => self.zstd.compress(level, payload),
        }
        .ok_or_else(too_large)
    }

    /// What the last call of [`Self::decompress`] has inflated.
    pub fn inflated(&self) -> &[u8] {
        &self.arena.bytes[..self.inflated]
    }

    /// What Kafka's own streams hand out of a payload that [`Self::decompress`] refuses, and whether
    /// they fail behind it: a broker sees the records before the damage, and may refuse these first.
    pub fn decompress_before_damage(
        &self,
        codec: Compression,
        magic: i8,
        payload: &[u8],
    ) -> (Vec<u8>, bool) {
        let limit = usize::try_from(self.limits.decompressed(payload.len())).unwrap_or(usize::MAX);
        let mut out = streams::Output::new(limit);
        let is_whole = match codec {
            Compression::None => out.extend(payload),
            Compression::Gzip => streams::gzip(payload, &mut out),
            Compression::Snappy => streams::snappy(payload, &mut out),
            Compression::Lz4 => streams::lz4(payload, magic, &mut out),
            Compression::Zstd if magic < 2 => None,
            Compression::Zstd => streams::zstd(payload, &mut out),
        };
        (out.bytes, is_whole.is_none())
    }

    /// The payload as Kafka's own encoders write it, which [`Self::compress`] need not: some are
    /// faster and have another size. Errors are the same.
    ///
    /// # Errors
    /// As [`Self::compress`].
    pub fn compress_as_kafka(
        &mut self,
        codec: Compression,
        level: Option<i32>,
        magic: i8,
        payload: &[u8],
    ) -> Result<Vec<u8>, ErrorKind> {
        let level_of = |level: Option<i32>| {
            levels(codec).map_or(0, |(range, default)| {
                level.unwrap_or(default).clamp(*range.start(), *range.end())
            })
        };
        let written = match codec {
            Compression::Gzip => streams::gzip_written(level_of(level), payload),
            Compression::Zstd if magic >= 2 => streams::zstd_written(level_of(level), payload),
            _ => None,
        };
        match written {
            Some(bytes) => Ok(bytes),
            None => self.compress(codec, level, magic, payload),
        }
    }

    /// Gives back what the arena holds above [`ARENA_KEPT_BYTES`]. Every call begins with it; a
    /// thread that goes idle after a large payload may ask for it.
    pub fn trim(&mut self) {
        self.arena.trim();
    }
}

fn unknown_codec(codec: Compression, magic: i8) -> ErrorKind {
    ErrorKind::UnknownCodec { codec: codec as u8, magic }
}

/// Why a payload is refused; the codec is known to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Undecodable,
    TooLarge,
}

/// Where payloads are inflated. Its length is what has been zeroed once; a codec overwrites it.
#[derive(Default)]
struct Arena {
    bytes: Vec<u8>,
    limit: usize,
}

impl Arena {
    fn start(&mut self, limit: u64) {
        self.limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.trim();
    }

    fn trim(&mut self) {
        if self.bytes.len() > ARENA_KEPT_BYTES {
            self.bytes.truncate(ARENA_KEPT_BYTES);
            self.bytes.shrink_to_fit();
        }
    }

    /// What may be written behind the first `used` bytes: at least `wanted`, or all the bound
    /// leaves.
    fn room(&mut self, used: usize, wanted: usize) -> &mut [u8] {
        let end = used.saturating_add(wanted).min(self.limit);
        if self.bytes.len() < end {
            let length = end.checked_next_power_of_two().unwrap_or(end).min(self.limit);
            if used == 0 {
                // Nothing to carry over: fresh zeroed pages, which cost nothing until written.
                self.bytes = Vec::new();
                self.bytes = vec![0; length];
            } else {
                self.bytes.reserve_exact(length - self.bytes.len());
                self.bytes.resize(length, 0);
            }
        }
        let top = self.bytes.len().min(self.limit);
        &mut self.bytes[used..top]
    }

    /// Exactly `length` bytes behind the first `used`.
    fn exactly(&mut self, used: usize, length: usize) -> Result<&mut [u8], Fault> {
        if length > self.left(used) {
            return Err(Fault::TooLarge);
        }
        Ok(&mut self.room(used, length)[..length])
    }

    /// How many bytes the bound leaves behind the first `used`.
    fn left(&self, used: usize) -> usize {
        self.limit - used
    }
}
