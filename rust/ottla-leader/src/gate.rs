//! What a broker asks of a Produce request before the log sees it (KIP-98, KIP-110): one batch of
//! magic 2 a partition, zstd from version 7 on, a transactional id for a transaction.

use crate::profiles::Difference;
use crate::validate::Request;
use crate::verdict::{Decision, Reason, Refusal};
use ottla_format::attributes::{CODEC_MASK, Compression, TRANSACTIONAL};
use ottla_format::error::{Error, ErrorKind};
use ottla_format::error_code::ErrorCode;
use ottla_format::header::{Envelope, Next, RECORD_BATCH_OVERHEAD, read_i16, read_i32, read_i64};

/// Since this version a partition has one batch, of magic 2.
const ONE_BATCH_VERSION: i16 = 3;
/// Since this version it may be compressed with zstd.
const ZSTD_VERSION: i16 = 7;
/// Where the fields of a magic 2 header begin that the gate reads.
const ATTRIBUTES: usize = 21;
const PRODUCER_ID: usize = 43;
const PRODUCER_EPOCH: usize = 51;
const BASE_SEQUENCE: usize = 53;

/// Judges a record set as the request of `api_version` that carries it.
pub(super) fn check(records: &[u8], request: &Request, api_version: i16) -> Decision<()> {
    one_partition(records, request, api_version).map_err(|mut refusal| {
        refusal.is_of_gate = true;
        refusal
    })
}

fn one_partition(records: &[u8], request: &Request, api_version: i16) -> Decision<()> {
    let first = envelope(records, 0, request).map_err(Refusal::request_wide)?;
    if first.is_some_and(|batch| is_transactional(records, &batch)) && !request.has_transactional_id
    {
        let error = ErrorCode::TransactionalIdAuthorizationFailed;
        return Err(Refusal::new(error, Reason::TransactionalIdMissing).request_wide());
    }
    if api_version >= ONE_BATCH_VERSION {
        one_batch(records, first, request, api_version)?;
    }
    producers(records, request).map_err(Refusal::request_wide)
}

fn one_batch(
    records: &[u8],
    first: Option<Envelope>,
    request: &Request,
    api_version: i16,
) -> Decision<()> {
    let Some(first) = first else { return Err(Refusal::invalid(Reason::NoBatch)) };
    if first.magic < 2 {
        return Err(Refusal::invalid(Reason::MagicTooOld { magic: first.magic }));
    }
    let codec = (attributes(records, 0) & CODEC_MASK) as u8;
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
fn producers(records: &[u8], request: &Request) -> Decision<()> {
    let short = |size: usize| {
        let minimum = ottla_format::header::MIN_SIZE_V2;
        let declared = size as i32 - ottla_format::header::LOG_OVERHEAD as i32;
        let reason = Reason::Format(ErrorKind::SizeTooSmall { declared, minimum });
        Refusal::leak(request.profile, Difference::BatchTooShort, reason)
    };
    let mut found = None;
    let mut at = 0;
    while let Some(batch) = envelope(records, at, request)? {
        let end = at.saturating_add(batch.total());
        if batch.magic >= 2 {
            let size = batch.total();
            let head = records.get(at..end.min(at + RECORD_BATCH_OVERHEAD)).unwrap_or_default();
            let producer_id = read_i64(head, PRODUCER_ID).ok_or_else(|| short(size))?;
            if producer_id > -1 && is_transactional(head, &batch) {
                let epoch = read_i16(head, PRODUCER_EPOCH).ok_or_else(|| short(size))?;
                read_i32(head, BASE_SEQUENCE).ok_or_else(|| short(size))?;
                let producer = (producer_id, epoch);
                if found.is_some_and(|other| other != producer) {
                    let error = ErrorCode::InvalidProducerIdMapping;
                    return Err(Refusal::new(error, Reason::SeveralProducers));
                }
                found = Some(producer);
            }
        }
        at = end;
    }
    Ok(())
}

/// The batch that begins at `at`, if it lies whole in the set.
pub(super) fn envelope(records: &[u8], at: usize, request: &Request) -> Decision<Option<Envelope>> {
    match Envelope::next(records, at) {
        Ok(Next::Batch(envelope)) => Ok(Some(envelope)),
        Ok(Next::End { .. }) => Ok(None),
        Err(Error { kind: kind @ ErrorKind::SizeTooLarge { .. }, .. }) => {
            Err(Refusal::leak(request.profile, Difference::SizeOverflow, Reason::Format(kind)))
        }
        Err(error) => Err(Refusal::corrupt(error.kind)),
    }
}

fn attributes(batch: &[u8], at: usize) -> u16 {
    read_i16(batch, at + ATTRIBUTES).unwrap_or(0) as u16
}

fn is_transactional(batch: &[u8], envelope: &Envelope) -> bool {
    envelope.magic >= 2 && attributes(batch, 0) & TRANSACTIONAL != 0
}
