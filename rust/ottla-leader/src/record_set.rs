//! The ways through the validator: a set is kept as it is, or written anew
//! (docs/kafka/produce-validation.md §5.1).

use crate::convert::SetWriter;
use crate::framing::{batches, first_batch};
use crate::profiles::Difference;
use crate::reason::Reason;
use crate::refusal::Decision;
use crate::validation::Validation;
use crate::verdict::Accepted;
use crate::{batch_set, legacy_set};
use ottla_format::attributes::Compression;
use ottla_format::compression::Codecs;

/// Judges a set that was analysed, whose last compressed batch is of codec `source`.
pub(crate) fn judge_set<'a>(
    validation: &mut Validation<'_>,
    records: &'a [u8],
    source: Compression,
    codecs: &mut Codecs,
) -> Decision<Accepted<'a>> {
    let target = validation.config.target(source);
    if source != Compression::None || target.codec != Compression::None {
        return compressed(validation, records, source, codecs);
    }
    let format = validation.config.message_format;
    if !batches(records).all(|(info, _)| info.magic == format) {
        return converted(validation, records, codecs);
    }
    let first = first_batch(records, source)?;
    if first.magic >= 2 {
        batch_set::in_place(validation, &first, records)
    } else {
        legacy_set::in_place(validation, &first, records)
    }
}

/// Uncompressed and of another format than the log's.
fn converted<'a>(
    validation: &mut Validation<'_>,
    records: &[u8],
    codecs: &mut Codecs,
) -> Decision<Accepted<'a>> {
    if !validation.is_strict(Difference::StructureUnnamed) {
        for (info, whole) in batches(records) {
            if info.magic >= 2 {
                batch_set::estimate(validation, &info, whole)?;
            } else {
                legacy_set::estimate(validation, whole)?;
            }
        }
    }
    validation.is_rebuilt = true;
    let first = first_batch(records, Compression::None)?;
    let magic = validation.config.message_format;
    if first.is_transactional() && magic < 2 {
        let reason = Reason::TransactionInOldFormat { magic };
        return Err(validation.leak(Difference::FormatDowngrade, reason));
    }
    let target = validation.config.target(Compression::None);
    let writer = SetWriter::new(validation, target, records.len());
    if first.magic >= 2 {
        batch_set::converted(validation, &first, records, writer, codecs)
    } else {
        legacy_set::converted(validation, &first, records, writer, codecs)
    }
}

/// Compressed before or after.
fn compressed<'a>(
    validation: &mut Validation<'_>,
    records: &'a [u8],
    source: Compression,
    codecs: &mut Codecs,
) -> Decision<Accepted<'a>> {
    let target = validation.config.target(source);
    let format = validation.config.message_format;
    let first = first_batch(records, source)?;
    // Control records are not compressed.
    let is_kept = source == target.codec && first.magic == format && format != 0
        || source == Compression::None && first.is_control();
    validation.is_rebuilt = !is_kept;
    if first.magic >= 2 {
        batch_set::compressed(validation, &first, records, is_kept, target, codecs)
    } else if source == Compression::None {
        legacy_set::compressed(validation, &first, records, target, codecs)
    } else {
        legacy_set::wrapper(validation, &first, records, is_kept, target, codecs)
    }
}
