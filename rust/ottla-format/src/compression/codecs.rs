//! The codecs of one thread.

use super::arena::{Arena, Fault};
use super::levels::level_in_range;
use super::{gzip, lz4, snappy, streams, zstd};
use crate::attributes::Compression;
use crate::error::ErrorKind;
use crate::limits::{Limits, MAX_BUILT_BYTES};

/// The contexts and the arena of one thread, reused for every payload.
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
    /// Bytes of the arena that hold the last payload.
    inflated: usize,
    gzip: ottla_kernels::gzip::Decompressor,
    snappy: snappy::SnappyCodec,
    zstd: zstd::ZstdCodec,
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
            snappy: snappy::SnappyCodec::new(),
            zstd: zstd::ZstdCodec::new(),
        }
    }

    /// The bounds in force.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Sets the bounds for the calls that follow.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Returns the inflated payload of a batch (or wrapper) of this magic, valid until the next call.
    /// A payload that is not compressed is returned as it is.
    ///
    /// # Errors
    /// [`ErrorKind::Undecodable`] where Kafka's reader fails, [`ErrorKind::DecompressedTooLarge`]
    /// beyond the bound, [`ErrorKind::UnknownCodec`] for zstd below magic 2.
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
            Fault::TooLarge => ErrorKind::DecompressedTooLarge { limit: self.arena.limit() as u64 },
        })?;
        self.inflated = length;
        Ok(self.inflated())
    }

    /// Compresses a payload as Kafka's writers frame it, at the level nearest to `level` that the
    /// codec has ([`levels`](super::levels)), or at its default.
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
            || ErrorKind::BatchTooLarge { declared: payload.len() as u64, limit: MAX_BUILT_BYTES };
        if payload.len() as u64 > MAX_BUILT_BYTES {
            return Err(too_large());
        }
        let level = level_in_range(codec, level);
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

    /// The payload that the last call of [`Self::decompress`] inflated.
    pub fn inflated(&self) -> &[u8] {
        self.arena.written(self.inflated)
    }

    /// Returns the bytes that Kafka's own streams return of a payload that [`Self::decompress`] refuses,
    /// and whether they fail behind them: a broker sees the records before the damage, and may refuse
    /// these first.
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

    /// Compresses a payload byte for byte as Kafka's own encoders do. [`Self::compress`] need not: some
    /// of its encoders are faster and write another size.
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
        let in_range = level_in_range(codec, level);
        let written = match codec {
            Compression::Gzip => streams::gzip_written(in_range, payload),
            Compression::Zstd if magic >= 2 => streams::zstd_written(in_range, payload),
            _ => None,
        };
        match written {
            Some(bytes) => Ok(bytes),
            None => self.compress(codec, level, magic, payload),
        }
    }

    /// Frees what the arena holds above [`KEPT_ARENA_BYTES`](crate::limits::KEPT_ARENA_BYTES), as every call of [`Self::decompress`]
    /// does first. For a thread that goes idle after a large payload.
    pub fn trim(&mut self) {
        self.arena.trim();
    }
}

fn unknown_codec(codec: Compression, magic: i8) -> ErrorKind {
    ErrorKind::UnknownCodec { codec: codec as u8, magic }
}
