//! A batch written anew from its records: for another codec or format, or with offsets in order.

use crate::config::TopicConfig;
use crate::profiles::Difference;
use crate::validate::Request;
use crate::verdict::{Culprits, Decision, Reason, RecordError, Refusal};
use ottla_format::attributes::Compression;
use ottla_format::batch::BatchInfo;
use ottla_format::builder::{
    BatchFields, BuildError, LegacyFields, MessageSetWriter, NewRecord, RecordsWriter,
};
use ottla_format::compression::Codecs;
use ottla_format::error_code::ErrorCode;
use ottla_format::limits::Limits;

/// Records that will be one batch of magic 2 or one message set, with consecutive offsets. They
/// are written as they come, and nothing is kept of where they came from.
#[derive(Debug)]
pub(super) struct Records<'c> {
    config: &'c TopicConfig,
    request: &'c Request,
    limits: Limits,
    /// Codec and level.
    compression: (Compression, Option<i32>),
    target: Target,
    /// Records that cannot be written, in the strict profile.
    refused: Culprits,
    count: u32,
    max_timestamp: i64,
    index_of_max: u32,
}

#[derive(Debug)]
enum Target {
    Batch(RecordsWriter),
    MessageSet(MessageSetWriter),
}

/// A record set written anew.
#[derive(Debug)]
pub(super) struct Rebuilt {
    pub(super) bytes: Vec<u8>,
    pub(super) count: u32,
    /// The largest timestamp of the records, and which one has it.
    pub(super) max_timestamp: i64,
    pub(super) index_of_max: u32,
}

impl<'c> Records<'c> {
    /// `records_bytes` is about what the records take.
    pub(super) fn new(
        config: &'c TopicConfig,
        request: &'c Request,
        limits: Limits,
        compression: (Compression, Option<i32>),
        records_bytes: usize,
    ) -> Self {
        // Offsets in order may take a few bytes more than those that were sent.
        let room = records_bytes.saturating_add(records_bytes / 2);
        let target = if config.message_format >= 2 {
            Target::Batch(RecordsWriter::new(room, limits.batch_bytes))
        } else {
            let fields = LegacyFields {
                magic: config.message_format,
                base_offset: request.base_offset,
                log_append_time_ms: config.log_append_time(request.now_ms),
                compression: compression.0,
                compression_level: compression.1,
            };
            Target::MessageSet(MessageSetWriter::new(fields, room, limits.batch_bytes))
        };
        let (refused, max_timestamp) = (Culprits::default(), -1);
        Self {
            config,
            request,
            limits,
            compression,
            target,
            refused,
            count: 0,
            max_timestamp,
            index_of_max: 0,
        }
    }

    /// Adds a record. What Kafka's builder does not take is an internal error of Kafka's broker;
    /// strict goes on, to name every such record.
    pub(super) fn push(&mut self, record: &NewRecord<'_>) -> Decision<()> {
        let (timestamp, magic) = (record.timestamp, self.config.message_format);
        if timestamp < -1 {
            self.refuse(Difference::NegativeTimestamp, Reason::TimestampNegative { timestamp })?;
        } else if magic < 2 && !record.headers.is_empty() {
            self.refuse(Difference::FormatDowngrade, Reason::HeadersInOldFormat { magic })?;
        } else {
            let is_kept = self.request.profile.is_strict(Difference::HeaderKeys);
            let pushed = match &mut self.target {
                Target::Batch(writer) if is_kept || header_keys(record).all(is_text) => {
                    writer.push(record)
                }
                Target::Batch(writer) => push_as_text(writer, record),
                Target::MessageSet(writer) => writer.push(record, self.count as i32),
            };
            pushed.map_err(|error| refusal(self.config, self.request, error))?;
        }
        if timestamp > self.max_timestamp {
            (self.max_timestamp, self.index_of_max) = (timestamp, self.count);
        }
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    fn refuse(&mut self, row: Difference, reason: Reason) -> Decision<()> {
        let refusal = Refusal::leak(self.request.profile, row, reason);
        if !self.request.profile.is_strict(row) {
            return Err(refusal);
        }
        let culprit = RecordError { batch_index: self.count, error: refusal.error, reason };
        self.refused.push(culprit, &self.limits);
        Ok(())
    }

    /// Writes the set. `first` is the batch whose producer it keeps.
    pub(super) fn finish(mut self, first: &BatchInfo, codecs: &mut Codecs) -> Decision<Rebuilt> {
        if !self.refused.is_empty() {
            return Err(Refusal::records(std::mem::take(&mut self.refused)));
        }
        let log_append_time_ms = self.config.log_append_time(self.request.now_ms);
        let (compression, compression_level) = self.compression;
        let error = |error| refusal(self.config, self.request, error);
        let bytes = match self.target {
            Target::Batch(writer) => {
                let fields = BatchFields {
                    base_offset: self.request.base_offset,
                    partition_leader_epoch: self.request.leader_epoch,
                    log_append_time_ms,
                    producer_id: first.producer_id,
                    producer_epoch: first.producer_epoch,
                    base_sequence: first.base_sequence,
                    is_transactional: first.is_transactional(),
                    // Kafka forgets here that it was one.
                    is_control: false,
                    compression,
                    compression_level,
                    delete_horizon_ms: None,
                };
                let is_kafka = !self.request.profile.is_strict(Difference::Encoders);
                writer.finish(&fields, |records| {
                    if is_kafka {
                        codecs.compress_as_kafka(compression, compression_level, 2, records)
                    } else {
                        codecs.compress(compression, compression_level, 2, records)
                    }
                })
            }
            Target::MessageSet(writer) => writer.finish(codecs),
        };
        let bytes = match bytes {
            // Without records Kafka writes no batch, and goes on with an empty set.
            Err(BuildError::NoRecords) => Vec::new(),
            bytes => bytes.map_err(error)?,
        };
        let Self { count, max_timestamp, index_of_max, .. } = self;
        Ok(Rebuilt { bytes, count, max_timestamp, index_of_max })
    }
}

/// What the builder does not take.
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

/// Header keys are strings to Kafka: what is no UTF-8 comes out as replacement characters.
fn push_as_text(writer: &mut RecordsWriter, record: &NewRecord<'_>) -> Result<(), BuildError> {
    let keys: Vec<_> = header_keys(record).map(java_text).collect();
    let values = record.headers.iter().map(|&(_, value)| value);
    let headers = keys.iter().map(String::as_bytes).zip(values).collect();
    let NewRecord { timestamp, key, value, offset_delta, .. } = *record;
    writer.push(&NewRecord { timestamp, key, value, headers, offset_delta })
}

/// Bytes as Java reads them. It differs from Rust in surrogates alone, which Rust takes byte by
/// byte and Java as a whole.
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
