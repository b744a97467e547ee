//! A set written anew from its records: with another codec, in another format, or with offsets in
//! order.

use crate::config::{TargetCompression, TopicConfig};
use crate::profiles::Difference;
use crate::reason::Reason;
use crate::refusal::{Decision, RecordError, RecordErrors, Refusal};
use crate::request::Request;
use crate::summary::Summary;
use crate::validation::Validation;
use crate::verdict::Accepted;
use ottla_format::batch::BatchInfo;
use ottla_format::builder::{
    BatchFields, BuildError, LegacyFields, MessageSetWriter, NewRecord, RecordsWriter,
};
use ottla_format::compression::Codecs;
use ottla_format::error_code::ErrorCode;
use ottla_format::limits::Limits;

/// Writes records into one batch of magic 2 or one message set, with consecutive offsets. They are
/// written as they come, and nothing is kept of where they came from.
#[derive(Debug)]
pub(crate) struct SetWriter<'c> {
    config: &'c TopicConfig,
    request: &'c Request,
    limits: Limits,
    compression: TargetCompression,
    format: FormatWriter,
    /// Records that cannot be written, in the strict profile.
    refused: RecordErrors,
    written: Summary,
}

#[derive(Debug)]
enum FormatWriter {
    Batch(RecordsWriter),
    MessageSet(MessageSetWriter),
}

impl<'c> SetWriter<'c> {
    /// A writer for the records of a set, which take about `records_bytes`.
    pub(crate) fn new(
        validation: &Validation<'c>,
        compression: TargetCompression,
        records_bytes: usize,
    ) -> Self {
        let Validation { config, request, limits, .. } = *validation;
        // Consecutive offsets may take a few bytes more than those that were sent.
        let room = records_bytes.saturating_add(records_bytes / 2);
        let format = if config.message_format >= 2 {
            FormatWriter::Batch(RecordsWriter::new(room, limits.batch_bytes))
        } else {
            let fields = LegacyFields {
                magic: config.message_format,
                base_offset: request.base_offset,
                log_append_time_ms: config.log_append_time(request.now_ms),
                compression: compression.codec,
                compression_level: compression.level,
            };
            FormatWriter::MessageSet(MessageSetWriter::new(fields, room, limits.batch_bytes))
        };
        let (refused, written) = (RecordErrors::default(), Summary::default());
        Self { config, request, limits, compression, format, refused, written }
    }

    /// Adds a record. One that Kafka's builder refuses is an internal error of Kafka's broker;
    /// strict goes on, to name every such record.
    pub(crate) fn push(&mut self, record: &NewRecord<'_>) -> Decision<()> {
        let (timestamp, magic) = (record.timestamp, self.config.message_format);
        let (base_offset, count) = (self.request.base_offset, self.written.count);
        if base_offset.checked_add_unsigned(count).is_none() {
            self.refuse(Difference::OffsetOverflow, Reason::OffsetOverflow { base_offset })?;
        } else if timestamp < -1 {
            self.refuse(Difference::NegativeTimestamp, Reason::TimestampNegative { timestamp })?;
        } else if magic < 2 && !record.headers.is_empty() {
            self.refuse(Difference::FormatDowngrade, Reason::HeadersInOldFormat { magic })?;
        } else {
            let keeps_keys = self.request.is_strict(Difference::HeaderKeys);
            let pushed = match &mut self.format {
                FormatWriter::Batch(writer) if keeps_keys || header_keys(record).all(is_text) => {
                    writer.push(record)
                }
                FormatWriter::Batch(writer) => push_as_text(writer, record),
                FormatWriter::MessageSet(writer) => writer.push(record, self.written.count as i32),
            };
            pushed.map_err(|error| refusal(self.config, self.request, error))?;
        }
        self.written.add(timestamp, true);
        Ok(())
    }

    fn refuse(&mut self, row: Difference, reason: Reason) -> Decision<()> {
        let refusal = Refusal::leak(self.request.profile, row, reason);
        if !self.request.is_strict(row) {
            return Err(refusal);
        }
        let batch_index = self.written.count as u32;
        self.refused.push(RecordError { batch_index, error: refusal.error, reason }, &self.limits);
        Ok(())
    }

    /// Writes the set. It keeps the producer of `first`.
    pub(crate) fn finish(
        self,
        first: &BatchInfo,
        codecs: &mut Codecs,
    ) -> Decision<Accepted<'static>> {
        let Self { config, request, compression, format, refused, written, .. } = self;
        if !refused.is_empty() {
            return Err(Refusal::records(refused));
        }
        let bytes = match format {
            FormatWriter::Batch(writer) => {
                let is_kafka = !request.is_strict(Difference::Encoders);
                let TargetCompression { codec, level } = compression;
                writer.finish(&batch_fields(config, request, compression, first), |records| {
                    if is_kafka {
                        codecs.compress_as_kafka(codec, level, 2, records)
                    } else {
                        codecs.compress(codec, level, 2, records)
                    }
                })
            }
            FormatWriter::MessageSet(writer) => writer.finish(codecs),
        };
        let bytes = match bytes {
            // Without records Kafka writes no batch. It goes on with an empty set, but for a time of
            // append looks for the last offset.
            Err(BuildError::NoRecords) => {
                let is_kafka = !request.is_strict(Difference::EmptyRebuild);
                if is_kafka && config.log_append_time(request.now_ms).is_some() {
                    let row = Difference::EmptyRebuild;
                    return Err(Refusal::leak(request.profile, row, Reason::NothingToRebuild));
                }
                Vec::new()
            }
            bytes => bytes.map_err(|error| refusal(config, request, error))?,
        };
        Ok(written.rebuilt(config, request, bytes))
    }
}

fn batch_fields(
    config: &TopicConfig,
    request: &Request,
    compression: TargetCompression,
    first: &BatchInfo,
) -> BatchFields {
    BatchFields {
        base_offset: request.base_offset,
        partition_leader_epoch: request.leader_epoch,
        log_append_time_ms: config.log_append_time(request.now_ms),
        producer_id: first.producer_id,
        producer_epoch: first.producer_epoch,
        base_sequence: first.base_sequence,
        is_transactional: first.is_transactional(),
        // Kafka does not write the flag here.
        is_control: false,
        compression: compression.codec,
        compression_level: compression.level,
        delete_horizon_ms: None,
    }
}

/// The refusal of what the builder cannot write.
fn refusal(config: &TopicConfig, request: &Request, error: BuildError) -> Box<Refusal> {
    let magic = config.message_format;
    let (row, reason) = match error {
        BuildError::TooLarge { size, .. } => {
            let limit = config.max_message_bytes;
            let reason = Reason::RebuiltBatchTooLarge { size, limit };
            return Refusal::new(ErrorCode::MessageTooLarge, reason);
        }
        BuildError::ProducerEpoch { producer_id, producer_epoch } => {
            (Difference::ProducerEpoch, Reason::ProducerEpoch { producer_id, producer_epoch })
        }
        BuildError::BaseSequence { producer_id, base_sequence } => (
            Difference::NegativeProducerId,
            Reason::ProducerSequence { producer_id, base_sequence },
        ),
        BuildError::Codec { codec, .. } => {
            (Difference::FormatDowngrade, Reason::CodecInOldFormat { codec, magic })
        }
        // The fields and records given here leave no other cause.
        _ => (Difference::TransactionalWithoutProducer, Reason::TransactionalWithoutProducer),
    };
    Refusal::leak(request.profile, row, reason)
}

fn header_keys<'a>(record: &NewRecord<'a>) -> impl Iterator<Item = &'a [u8]> {
    record.headers.iter().map(|&(key, _)| key)
}

fn is_text(key: &[u8]) -> bool {
    std::str::from_utf8(key).is_ok()
}

/// Writes header keys as Kafka does, to which they are strings: what is not UTF-8 becomes
/// replacement characters.
fn push_as_text(writer: &mut RecordsWriter, record: &NewRecord<'_>) -> Result<(), BuildError> {
    let keys: Vec<_> = header_keys(record).map(java_text).collect();
    let values = record.headers.iter().map(|&(_, value)| value);
    let headers = keys.iter().map(String::as_bytes).zip(values).collect();
    let NewRecord { timestamp, key, value, offset_delta, .. } = *record;
    writer.push(&NewRecord { timestamp, key, value, headers, offset_delta })
}

/// Decodes bytes as Java does. It differs from Rust in surrogates alone, which Rust replaces byte
/// by byte and Java as a whole.
fn java_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut surrogate_bytes = 0;
    for chunk in bytes.utf8_chunks() {
        if !chunk.valid().is_empty() {
            surrogate_bytes = 0;
            text.push_str(chunk.valid());
        }
        match *chunk.invalid() {
            [] => {}
            [0x80..=0xbf] if surrogate_bytes == 2 => surrogate_bytes = 1,
            [0x80..=0xbf] if surrogate_bytes == 1 => surrogate_bytes = 0,
            ref invalid => {
                surrogate_bytes = 0;
                text.push(char::REPLACEMENT_CHARACTER);
                if *invalid == [0xed] {
                    surrogate_bytes = 2;
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_keys_that_are_no_text_come_out_as_java_writes_them() {
        for (bytes, text) in [
            (&b"key"[..], "key"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
            (b"a\xe2\x82", "a\u{fffd}"),
            (b"\xed\xa0\x80b", "\u{fffd}b"),
            (b"\xed\xa0", "\u{fffd}"),
            (b"\xed\xa0A", "\u{fffd}A"),
            (b"\xed\xa0\x80\x80", "\u{fffd}\u{fffd}"),
            (b"\xedA", "\u{fffd}A"),
            (b"\xf0\x9f\x98", "\u{fffd}"),
            (b"\xc0\x80", "\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(java_text(bytes), text, "{bytes:02x?}");
        }
    }
}
