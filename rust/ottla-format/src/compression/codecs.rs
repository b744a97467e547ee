//! The codecs of one thread.

use super::arena::{Arena, Fault};
use super::levels::level_in_range;
use super::reading::Reading;
use super::streams::StreamedPayload;
use super::{gzip, lz4, snappy, streams, zstd};
use crate::attributes::Compression;
use crate::clients::ClientFault;
use crate::error::ErrorKind;
use crate::limits::{Limits, MAX_BUILT_BYTES};

/// The contexts and the arena of one thread, made with the first payload that needs them and reused
/// for every other: most logs have one codec, and many none.
///
/// # Examples
/// ```
/// use ottla_format::attributes::Compression;
/// use ottla_format::compression::{Codecs, Reading};
/// use ottla_format::limits::Limits;
///
/// let mut codecs = Codecs::new(Limits::default());
/// let payload = codecs.compress(Compression::Zstd, None, 2, b"to be or not to be")?;
/// let bytes = codecs.decompress(Compression::Zstd, Reading::Bytes { magic: 2 }, &payload)?;
/// assert_eq!(bytes, b"to be or not to be");
/// # Ok::<(), ottla_format::error::ErrorKind>(())
/// ```
pub struct Codecs {
    limits: Limits,
    arena: Arena,
    /// Bytes of the arena that hold the last payload.
    inflated: usize,
    gzip: Option<ottla_kernels::gzip::Decompressor>,
    snappy: snappy::SnappyCodec,
    zstd: zstd::ZstdCodec,
}

impl Codecs {
    /// No context yet, and an empty arena.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            arena: Arena::default(),
            inflated: 0,
            gzip: None,
            snappy: snappy::SnappyCodec::default(),
            zstd: zstd::ZstdCodec::default(),
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

    /// Returns the inflated payload of a batch or wrapper, as far as it is read, valid until the next
    /// call. A payload that is not compressed is returned as it is.
    ///
    /// # Errors
    /// [`ErrorKind::Undecodable`] where Kafka's reader fails, [`ErrorKind::DecompressedTooLarge`]
    /// beyond the bound, [`ErrorKind::UnknownCodec`] for zstd below magic 2.
    pub fn decompress<'a>(
        &'a mut self,
        codec: Compression,
        reading: Reading,
        payload: &'a [u8],
    ) -> Result<&'a [u8], ErrorKind> {
        let magic = reading.magic();
        self.inflated = 0;
        self.arena.start(self.limits.decompressed(payload.len()));
        let inflated = match codec {
            Compression::None => return Ok(payload),
            Compression::Zstd if magic < 2 => return Err(unknown_codec(codec, magic)),
            _ if reading == (Reading::Records { count: 0 }) => {
                let (limit, zstd) = (self.arena.limit(), self.zstd.decoder());
                streams::is_opened(codec, magic, payload, limit, zstd).map(|()| 0)
            }
            _ => match self.at_once(codec, magic, payload) {
                Err(Fault::Unusual) => self.stream(codec, reading, payload),
                inflated => inflated,
            },
        };
        let length = inflated.map_err(|fault| match fault {
            Fault::TooLarge => self.too_large(),
            Fault::Undecodable | Fault::Unusual => ErrorKind::Undecodable { codec: codec as u8 },
        })?;
        self.arena.inflated(length);
        self.inflated = length;
        Ok(self.inflated())
    }

    /// Returns the inflated payload, as [`Self::decompress`] does, if it is the same however it is
    /// read.
    ///
    /// # Errors
    /// [`ErrorKind::DecompressedTooLarge`], as [`Self::decompress`] answers with the same bounds; `None`
    /// where its answer is not known.
    pub fn decompress_at_once<'a>(
        &'a mut self,
        codec: Compression,
        magic: i8,
        payload: &'a [u8],
    ) -> Result<&'a [u8], Option<ErrorKind>> {
        self.inflated = 0;
        self.arena.start(self.limits.decompressed(payload.len()));
        if codec == Compression::None {
            return Ok(payload);
        }
        self.inflated = self
            .at_once(codec, magic, payload)
            .map_err(|fault| (fault == Fault::TooLarge).then(|| self.too_large()))?;
        self.arena.inflated(self.inflated);
        Ok(self.inflated())
    }

    /// A payload was refused beyond the bound.
    fn too_large(&mut self) -> ErrorKind {
        self.arena.refused();
        ErrorKind::DecompressedTooLarge { limit: self.arena.limit() as u64 }
    }

    /// Inflates a payload into the arena.
    fn at_once(&mut self, codec: Compression, magic: i8, payload: &[u8]) -> Result<usize, Fault> {
        let arena = &mut self.arena;
        match codec {
            Compression::Gzip => {
                gzip::decompress(self.gzip.get_or_insert_default(), payload, arena)
            }
            Compression::Snappy => self.snappy.decompress(payload, arena),
            Compression::Lz4 => lz4::decompress(payload, magic, arena),
            Compression::Zstd if magic >= 2 => self.zstd.decompress(payload, arena),
            Compression::None | Compression::Zstd => Err(Fault::Undecodable),
        }
    }

    /// Reads a payload as Kafka's own stream returns it.
    #[cold]
    fn stream(
        &mut self,
        codec: Compression,
        reading: Reading,
        payload: &[u8],
    ) -> Result<usize, Fault> {
        let (limit, zstd) = (self.arena.limit(), self.zstd.decoder());
        let StreamedPayload { bytes, fault } =
            streams::read(codec, reading, payload, limit, zstd, self.arena.lend());
        let copied = match fault {
            Some(fault) => Err(fault),
            None => self.arena.exactly(0, bytes.len()).map(|room| room.copy_from_slice(&bytes)),
        };
        let length = bytes.len();
        self.arena.take_back(bytes);
        copied.map(|()| length)
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

    /// Returns the bytes that Kafka's own stream returns of a payload that [`Self::decompress`]
    /// refuses, and whether it fails behind them: a broker sees the records before the damage, and may
    /// refuse these first, or not need what is damaged.
    pub fn decompress_before_damage(
        &mut self,
        codec: Compression,
        reading: Reading,
        payload: &[u8],
    ) -> (Vec<u8>, bool) {
        let limit = usize::try_from(self.limits.decompressed(payload.len())).unwrap_or(usize::MAX);
        let streamed =
            streams::read(codec, reading, payload, limit, self.zstd.decoder(), Vec::new());
        (streamed.bytes, streamed.fault.is_some())
    }

    /// What stops some clients in the framing of the payload that the last call of
    /// [`Self::decompress`] has inflated.
    pub fn client_fault(&self) -> Option<ClientFault> {
        self.arena.client_fault()
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

    /// Frees what the arena holds above [`KEPT_ARENA_BYTES`](crate::limits::KEPT_ARENA_BYTES), as
    /// calls of [`Self::decompress`] do first, but for those that follow on a payload refused beyond
    /// the bound. For a thread that goes idle after a large payload.
    pub fn trim(&mut self) {
        self.arena.trim();
    }
}

fn unknown_codec(codec: Compression, magic: i8) -> ErrorKind {
    ErrorKind::UnknownCodec { codec: codec as u8, magic }
}
