//! Where the records of a batch are.

use super::BatchInfo;
use crate::attributes::Compression;
use crate::compression::Reading;
use crate::error::{Error, ErrorKind, Result};
use crate::header::{LOG_OVERHEAD, RECORD_BATCH_OVERHEAD};
use crate::legacy;

/// Where the records of a batch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// In the batch itself, up to its end.
    Plain {
        /// The records; nothing of a batch that ends inside its header.
        bytes: &'a [u8],
        /// Bytes from the start of the batch.
        start: usize,
    },
    /// Compressed.
    Compressed {
        /// The codec.
        codec: Compression,
        /// What consumers read of it.
        reading: Reading,
        /// The compressed bytes.
        bytes: &'a [u8],
        /// Bytes from the start of the batch.
        start: usize,
    },
}

/// Finds the records section of one whole batch.
///
/// # Errors
/// [`ErrorKind::UnknownCodec`], [`ErrorKind::WrapperWithoutValue`], and what is wrong with the fields
/// of a wrapper.
pub fn payload<'a>(info: &BatchInfo, batch: &'a [u8]) -> Result<Payload<'a>> {
    let codec = info.compression()?;
    if info.magic >= 2 {
        let start = RECORD_BATCH_OVERHEAD;
        // A batch of 43 to 60 bytes ends before its records.
        let bytes = batch.get(start..).unwrap_or_default();
        return Ok(match codec {
            Compression::None => Payload::Plain { bytes, start },
            codec => {
                let reading = Reading::records(info.record_count.unwrap_or(0));
                Payload::Compressed { codec, reading, bytes, start }
            }
        });
    }
    let body = batch.get(LOG_OVERHEAD..).unwrap_or_default();
    if codec == Compression::None {
        return Ok(Payload::Plain { bytes: body, start: LOG_OVERHEAD });
    }
    let wrapper = legacy::read_body(body).map_err(|error| error.within(LOG_OVERHEAD))?;
    let bytes =
        wrapper.value.ok_or_else(|| Error::new(ErrorKind::WrapperWithoutValue, LOG_OVERHEAD))?;
    let start = LOG_OVERHEAD
        .saturating_add(legacy::min_body_bytes(info.magic))
        .saturating_add(wrapper.key.map_or(0, <[u8]>::len));
    let reading = Reading::Entries { magic: info.magic };
    Ok(Payload::Compressed { codec, reading, bytes, start })
}
