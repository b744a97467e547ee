//! Batches of a log that is read again, as the rules of producers see them: those of a follower, and
//! the exceptions with which Kafka meets what they refuse.

use super::interruption::Interruption;
use super::segment_file::{Frame, SegmentFile};
use crate::producers::{
    Appender, Pending, ProducerBatch, ProducerRefusal, Producers, control_record,
};
use crate::sidefiles::transaction_index::AbortedTransaction;
use ottla_format::batch::BatchInfo;
use ottla_format::compression::Codecs;
use ottla_format::error::{Error, ErrorKind, Family};

/// The batch as the rules of producers see it; `None` without a producer id.
pub(super) fn producer_batch(
    log: &mut SegmentFile<'_>,
    frame: &Frame,
    info: &BatchInfo,
    codecs: &mut Codecs,
) -> Result<Option<ProducerBatch>, Interruption> {
    if !info.has_producer_id() {
        return Ok(None);
    }
    if !info.is_control() {
        return Ok(Some(ProducerBatch::of_records(info)));
    }
    let whole = log.whole(frame)?;
    let here = BatchInfo { position: 0, size: frame.total, ..*info };
    ProducerBatch::read(whole, &here, codecs).map_err(|error| match error.kind {
        ErrorKind::ControlBatch { .. } => {
            let record = control_record(whole, &here, codecs);
            let name = record.ok().flatten().map_or("UNKNOWN", |(control, _)| control.name());
            Interruption::illegal_argument(format!(
                "Invalid control record type for end transaction marker {name}"
            ))
        }
        _ => marker_exception(&error),
    })
}

/// The exception with which Kafka meets a marker it cannot read.
fn marker_exception(error: &Error) -> Interruption {
    let message = error.kind.to_string();
    match error.kind {
        ErrorKind::ControlKey { size: -1, .. } | ErrorKind::ControlValue { size: -1, .. } => {
            Interruption::other("java.lang.NullPointerException", message)
        }
        ErrorKind::ControlValue { size: ..=5, .. } => {
            Interruption::other("java.nio.BufferUnderflowException", message)
        }
        ErrorKind::UnknownCodec { .. } => Interruption::illegal_argument(message),
        kind => match kind.family() {
            Family::Compression => Interruption::kafka(message),
            Family::Limit => Interruption::limit(message),
            _ => Interruption::InvalidRecord(message),
        },
    }
}

/// Adds a batch to what is pending.
pub(super) fn judge(
    producers: &Producers,
    batch: &ProducerBatch,
    pending: &mut Pending,
    partition: &str,
) -> Result<(), Interruption> {
    let judged = producers.judge(batch, &Appender::REPLICATION, pending);
    judged.map(|_| ()).map_err(|refusal| match refusal {
        ProducerRefusal::PlainInTransaction { producer_id, .. } => Interruption::other(
            "org.apache.kafka.common.errors.InvalidTxnStateException",
            format!(
                "Expected transactional write from producer {producer_id} at offset (offset={}, \
                 segment=[-1:-1]) in partition {partition}",
                batch.base_offset
            ),
        ),
        refusal => Interruption::kafka(refusal.to_string()),
    })
}

/// Commits what is pending; `changed` gets the producers. Returns the transactions it aborts.
pub(super) fn commit(
    producers: &mut Producers,
    pending: Pending,
    changed: &mut Vec<i64>,
    partition: &str,
) -> Result<Vec<AbortedTransaction>, Interruption> {
    changed.extend(pending.producer_ids());
    producers.commit(pending).map_err(|not_begun| {
        let transaction = not_begun.transaction;
        Interruption::illegal_argument(format!(
            "Attempted to complete transaction CompletedTxn(producerId={}, firstOffset={}, \
             lastOffset={}, isAborted={}) on partition {partition} which was not started",
            transaction.producer_id,
            transaction.first_offset,
            transaction.last_offset,
            !transaction.is_commit
        ))
    })
}
