//! What a batch must keep as a whole (docs/kafka/produce-validation.md §5.5).

use crate::metrics::count;
use crate::profiles::Difference;
use crate::reason::Reason;
use crate::refusal::{Decision, Refusal};
use crate::validation::Validation;
use ottla_format::batch::BatchInfo;
use ottla_format::error_code::ErrorCode;
use ottla_log::producers::Origin;

/// Judges a batch, in a set that begins with `first`.
pub(crate) fn judge_batch(
    validation: &mut Validation<'_>,
    first: &BatchInfo,
    info: &BatchInfo,
) -> Decision<()> {
    if first.magic != info.magic {
        count(&mut validation.metrics.invalid_magic_number_records, 1);
        let reason = Reason::MagicDiffers { magic: info.magic, first: first.magic };
        return Err(Refusal::invalid(reason));
    }
    if validation.request.origin == Origin::Client {
        of_client(validation, info)?;
    } else if validation.is_strict(Difference::CoordinatorRange)
        && info.record_count != Some(0)
        && let Some(reason) = impossible_range(info)
    {
        return Err(Refusal::invalid(reason));
    }
    of_old_format(validation.config.message_format, info)?;
    of_producer(validation, info)
}

/// The offsets, the count and the sequence of a client's batch.
fn of_client(validation: &mut Validation<'_>, info: &BatchInfo) -> Decision<()> {
    let metrics = &mut *validation.metrics;
    if let Some(reason) = impossible_range(info) {
        count(&mut metrics.invalid_offset_or_sequence_records, 1);
        count(&mut metrics.non_increasing_offset_records, 1);
        return Err(Refusal::invalid(reason));
    }
    if info.is_control() {
        count(&mut metrics.invalid_offset_or_sequence_records, 1);
        return Err(Refusal::invalid(Reason::ControlFromClient));
    }
    let BatchInfo { producer_id, base_sequence, .. } = *info;
    if info.has_producer_id() && base_sequence < 0 {
        count(&mut metrics.invalid_offset_or_sequence_records, 1);
        return Err(Refusal::invalid(Reason::SequenceMissing { producer_id, base_sequence }));
    }
    Ok(())
}

/// What a header says of its offsets and records, where it cannot be.
fn impossible_range(info: &BatchInfo) -> Option<Reason> {
    let count = info.record_count?;
    let BatchInfo { base_offset, last_offset, .. } = *info;
    let offsets = last_offset.wrapping_sub(base_offset).wrapping_add(1);
    if offsets <= 0 {
        Some(Reason::OffsetRange { base_offset, last_offset })
    } else if count <= 0 {
        Some(Reason::RecordCount { count })
    } else if offsets != i64::from(count) {
        Some(Reason::CountDiffers { count, offsets })
    } else {
        None
    }
}

/// What a log of format 0 or 1 has no place for.
fn of_old_format(magic: i8, info: &BatchInfo) -> Decision<()> {
    let reason = if magic >= 2 {
        return Ok(());
    } else if info.is_transactional() {
        Reason::TransactionInOldFormat { magic }
    } else if info.has_producer_id() {
        Reason::ProducerInOldFormat { magic }
    } else {
        return Ok(());
    };
    Err(Refusal::new(ErrorCode::UnsupportedForMessageFormat, reason))
}

/// What only the strict profile asks of the producer's fields.
fn of_producer(validation: &Validation<'_>, info: &BatchInfo) -> Decision<()> {
    let BatchInfo { producer_id, producer_epoch, .. } = *info;
    if validation.is_strict(Difference::TransactionalWithoutProducer)
        && info.is_transactional()
        && !info.has_producer_id()
    {
        return Err(Refusal::invalid(Reason::TransactionalWithoutProducer));
    }
    if validation.is_strict(Difference::ProducerEpoch)
        && info.has_producer_id()
        && producer_epoch == -1
    {
        return Err(Refusal::invalid(Reason::ProducerEpoch { producer_id, producer_epoch }));
    }
    Ok(())
}
