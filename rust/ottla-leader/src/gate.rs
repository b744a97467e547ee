//! What a broker asks of a Produce request before the log sees it (KIP-98, KIP-110): one batch of
//! magic 2 a partition, zstd from version 7 on, a transactional id for a transaction
//! (docs/kafka/produce-validation.md §2).

use crate::framing::envelope;
use crate::profiles::Difference;
use crate::reason::Reason;
use crate::refusal::{Decision, Refusal};
use crate::request::Request;
use ottla_format::attributes::{CODEC_MASK, Compression, TRANSACTIONAL};
use ottla_format::error::ErrorKind;
use ottla_format::error_code::ErrorCode;
use ottla_format::header::{
    Envelope, LOG_OVERHEAD, MIN_SIZE_V2, RECORD_BATCH_OVERHEAD, field, read_i16, read_i32, read_i64,
};

/// Since this version of Produce a batch may be compressed with zstd (KIP-110).
const ZSTD_VERSION: i16 = 7;

/// Judges the record set of a Produce request as the broker does before its partition sees it; what
/// has no version passes.
///
/// # Errors
/// [`Refusal`], which may be one of the whole request.
pub fn check_request(records: &[u8], request: &Request) -> Result<(), Box<Refusal>> {
    request.api_version.map_or(Ok(()), |api_version| check(records, request, api_version))
}

/// Judges a record set by the version of the request that carries it.
pub(crate) fn check(records: &[u8], request: &Request, api_version: i16) -> Decision<()> {
    judge_set(records, request, api_version).map_err(|mut refusal| {
        refusal.is_of_gate = true;
        refusal
    })
}

fn judge_set(records: &[u8], request: &Request, api_version: i16) -> Decision<()> {
    let first = envelope(records, 0, request).map_err(Refusal::request_wide)?;
    if first.is_some_and(|batch| is_transactional(records, &batch)) && !request.has_transactional_id
    {
        let error = ErrorCode::TransactionalIdAuthorizationFailed;
        return Err(Refusal::new(error, Reason::TransactionalIdMissing).request_wide());
    }
    if !request.allows_several_batches() {
        let Some(first) = first else { return Err(Refusal::invalid(Reason::NoBatch)) };
        judge_single(records, first, request, api_version)?;
    }
    judge_producers(records, request).map_err(Refusal::request_wide)
}

/// Judges the one batch of a set.
fn judge_single(
    records: &[u8],
    first: Envelope,
    request: &Request,
    api_version: i16,
) -> Decision<()> {
    if first.magic < 2 {
        return Err(Refusal::invalid(Reason::MagicTooOld { magic: first.magic }));
    }
    let codec = (attributes(records) & CODEC_MASK) as u8;
    if api_version < ZSTD_VERSION {
        match Compression::from_id(codec) {
            Some(Compression::Zstd) => {
                let error = ErrorCode::UnsupportedCompressionType;
                return Err(Refusal::new(error, Reason::ZstdTooEarly { api_version }));
            }
            Some(_) => {}
            None => {
                let reason = Reason::Format(ErrorKind::UnknownCodec { codec, magic: first.magic });
                let row = Difference::UnknownCodec;
                return Err(Refusal::leak(request.profile, row, reason).request_wide());
            }
        }
    }
    match envelope(records, first.total(), request) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(Refusal::invalid(Reason::SecondBatch)),
        // Kafka knows the error of a damaged batch, and answers it for the partition.
        Err(refusal) if refusal.error == ErrorCode::CorruptMessage => Err(refusal),
        Err(refusal) => Err(refusal.request_wide()),
    }
}

/// Looks for the producers of all batches, as the broker does to verify their transactions.
fn judge_producers(records: &[u8], request: &Request) -> Decision<()> {
    let mut found = None;
    let mut rest = records;
    while let Some(batch) = envelope(rest, 0, request)? {
        let Some(whole) = rest.split_off(..batch.total()) else { break };
        if batch.magic < 2 {
            continue;
        }
        let Some(producer) = transactional_producer(whole, &batch).map_err(|kind| {
            Refusal::leak(request.profile, Difference::BatchTooShort, Reason::Format(kind))
        })?
        else {
            continue;
        };
        if found.is_some_and(|other| other != producer) {
            let error = ErrorCode::InvalidProducerIdMapping;
            return Err(Refusal::new(error, Reason::SeveralProducers));
        }
        found = Some(producer);
    }
    Ok(())
}

/// Producer id and epoch of a batch of a transaction.
fn transactional_producer(
    whole: &[u8],
    envelope: &Envelope,
) -> Result<Option<(i64, i16)>, ErrorKind> {
    let header = whole.get(..RECORD_BATCH_OVERHEAD).unwrap_or(whole);
    let too_short = || {
        let declared = whole.len().saturating_sub(LOG_OVERHEAD) as i32;
        ErrorKind::SizeTooSmall { declared, minimum: MIN_SIZE_V2 }
    };
    let producer_id = read_i64(header, field::PRODUCER_ID).ok_or_else(too_short)?;
    if producer_id < 0 || !is_transactional(header, envelope) {
        return Ok(None);
    }
    let producer_epoch = read_i16(header, field::PRODUCER_EPOCH).ok_or_else(too_short)?;
    read_i32(header, field::BASE_SEQUENCE).ok_or_else(too_short)?;
    Ok(Some((producer_id, producer_epoch)))
}

fn attributes(batch: &[u8]) -> u16 {
    read_i16(batch, field::ATTRIBUTES).unwrap_or(0) as u16
}

fn is_transactional(batch: &[u8], envelope: &Envelope) -> bool {
    envelope.magic >= 2 && attributes(batch) & TRANSACTIONAL != 0
}
