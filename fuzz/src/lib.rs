//! What the fuzz targets share: bounds, checksums made right, and a plain reading of a buffer.

use ottla_core::attributes::Compression;
use ottla_core::batch::{self, BatchInfo, Payload, RecordCursor};
use ottla_core::batches::{Batches, is_zero_tail};
use ottla_core::compression::Codecs;
use ottla_core::error::{Error, ErrorKind};
use ottla_core::header::{CRC_START, Envelope, LOG_OVERHEAD, Next, RECORD_BATCH_OVERHEAD};
use ottla_core::limits::Limits;

/// Bounds small enough that an input is done in a moment.
pub fn limits() -> Limits {
    Limits { decompressed_bytes: 1 << 20, ..Limits::default() }
}

/// Makes the checksum of every batch right, so that inputs come further than the first check.
pub fn mend_checksums(data: &mut [u8]) {
    let mut position = 0;
    while let Ok(Next::Batch(envelope)) = Envelope::next(data, position) {
        let batch = &mut data[position..position + envelope.total()];
        position += batch.len();
        if envelope.magic >= 2 {
            if batch.len() >= RECORD_BATCH_OVERHEAD {
                let crc = ottla_kernels::crc32c(&batch[CRC_START..]);
                batch[17..21].copy_from_slice(&crc.to_be_bytes());
            }
        } else if batch.len() >= LOG_OVERHEAD + 4 {
            let crc = crc32fast::hash(&batch[LOG_OVERHEAD + 4..]);
            batch[12..16].copy_from_slice(&crc.to_be_bytes());
        }
    }
}

/// A record with its own bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// The records of one whole batch, record by record.
pub fn records_of(
    info: &BatchInfo,
    whole: &[u8],
    codecs: &mut Codecs,
) -> Result<Vec<Owned>, Error> {
    batch::verify(whole)?;
    let payload = match batch::payload(info, whole)? {
        Payload::Plain { start } => whole.get(start..).unwrap_or_default(),
        Payload::Compressed { codec, bytes, start } => {
            codecs.decompress(codec, info.magic, bytes).map_err(|kind| Error::new(kind, start))?
        }
    };
    let mut cursor = RecordCursor::start(info, payload, limits())?;
    let mut records = Vec::new();
    let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
    while let Some(record) = cursor.next(payload)? {
        records.push(Owned {
            offset: record.offset,
            timestamp: record.timestamp,
            key: owned(record.key),
            value: owned(record.value),
            headers: record.headers.iter().map(|(k, v)| (k.to_vec(), owned(v))).collect(),
        });
    }
    Ok(records)
}

/// All batches of a buffer with their records, or the first fault. Zeros to the end are none.
pub fn records(data: &[u8], codecs: &mut Codecs) -> Result<Vec<(BatchInfo, Vec<Owned>)>, Error> {
    let mut found = Vec::new();
    for info in Batches::new(data, 0) {
        let info = match info {
            Err(error) if is_zero_tail(data, error.position as usize) => break,
            info => info?,
        };
        let start = info.position as usize;
        let whole = data.get(start..start + info.size as usize).unwrap_or_default();
        found.push((info, records_of(&info, whole, codecs)?));
    }
    Ok(found)
}

/// What must hold of a codec whatever the payload: the result depends on nothing but the payload,
/// keeps its bound, and survives being compressed again.
pub fn try_codec(codec: Compression, magic: i8, payload: &[u8]) {
    let mut fresh = Codecs::new(limits());
    let first = fresh.decompress(codec, magic, payload).map(<[u8]>::to_vec);

    // An arena full of other bytes.
    let mut used = Codecs::new(limits());
    let other = used.compress(Compression::Lz4, None, 2, &vec![0xa5; 1 << 16]).expect("compresses");
    used.decompress(Compression::Lz4, 2, &other).expect("inflates");
    assert_eq!(used.decompress(codec, magic, payload), first.as_deref().map_err(|kind| *kind));

    let Ok(inflated) = first else { return };
    let size = inflated.len() as u64;
    assert!(size <= limits().decompressed_bytes);
    if let Some(limit) = size.checked_sub(1) {
        used.set_limits(Limits { decompressed_bytes: limit, ..limits() });
        let kind = ErrorKind::DecompressedTooLarge { limit };
        assert_eq!(used.decompress(codec, magic, payload), Err(kind));
    }
    // The last bytes of an lz4 block need room that the strictest writers do not leave.
    let slack = if codec == Compression::Lz4 { 64 } else { 0 };
    used.set_limits(Limits { decompressed_bytes: size + slack, ..limits() });
    assert_eq!(used.decompress(codec, magic, payload), Ok(&inflated[..]));

    let again = used.compress(codec, None, magic, &inflated).expect("compresses");
    used.set_limits(limits());
    assert_eq!(used.decompress(codec, magic, &again), Ok(&inflated[..]));
}
