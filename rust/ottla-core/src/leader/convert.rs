//! A batch written anew from its records: for another codec or format, or with offsets in order.

use super::config::TopicConfig;
use super::profiles::Difference;
use super::validate::Request;
use super::verdict::{Decision, ErrorCode, Reason, RecordError, Refusal};
use crate::attributes::Compression;
use crate::batch::BatchInfo;
use crate::builder::{self, BatchFields, BuildError, LegacyFields, NewRecord, RecordsWriter};
use crate::compression::Codecs;

/// Records that will be one batch of magic 2 or one message set, with consecutive offsets. They
/// are written as they come, and nothing is kept of where they came from.
#[derive(Debug)]
pub(super) struct Records<'c> {
    config: &'c TopicConfig,
    request: &'c Request,
    target: Target,
    /// Records that cannot be written, in the strict profile.
    refused: Vec<RecordError>,
    count: u32,
    max_timestamp: i64,
    index_of_max: u32,
}

#[derive(Debug)]
enum Target {
    Batch(RecordsWriter),
    /// Old formats are for tests of old brokers: their records are simply copied.
    MessageSet(Vec<OldRecord>),
}

#[derive(Debug)]
struct OldRecord {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
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
    pub(super) fn new(config: &'c TopicConfig, request: &'c Request) -> Self {
        let target = if config.message_format >= 2 {
            Target::Batch(RecordsWriter::new())
        } else {
            Target::MessageSet(Vec::new())
        };
        let (refused, max_timestamp) = (Vec::new(), -1);
        Self { config, request, target, refused, count: 0, max_timestamp, index_of_max: 0 }
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
            match &mut self.target {
                Target::Batch(writer) => {
                    let is_kept = self.request.profile.is_strict(Difference::HeaderKeys);
                    let pushed = if is_kept || header_keys(record).all(is_text) {
                        writer.push(record)
                    } else {
                        push_as_text(writer, record)
                    };
                    pushed.map_err(|error| self.error(error))?;
                }
                Target::MessageSet(records) => records.push(OldRecord {
                    timestamp,
                    key: record.key.map(<[u8]>::to_vec),
                    value: record.value.map(<[u8]>::to_vec),
                }),
            }
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
        self.refused.push(RecordError { batch_index: self.count, error: refusal.error, reason });
        Ok(())
    }

    /// Writes the set. `first` is the batch whose producer it keeps.
    pub(super) fn finish(
        mut self,
        first: &BatchInfo,
        (compression, compression_level): (Compression, Option<i32>),
        codecs: &mut Codecs,
    ) -> Decision<Rebuilt> {
        if !self.refused.is_empty() {
            return Err(Refusal::records(std::mem::take(&mut self.refused)));
        }
        let log_append_time_ms = self.config.log_append_time(self.request.now_ms);
        let target = std::mem::replace(&mut self.target, Target::MessageSet(Vec::new()));
        let bytes = match target {
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
            Target::MessageSet(records) => {
                let fields = LegacyFields {
                    magic: self.config.message_format,
                    base_offset: self.request.base_offset,
                    log_append_time_ms,
                    compression,
                    compression_level,
                };
                let records: Vec<_> = records
                    .iter()
                    .map(|record| NewRecord {
                        timestamp: record.timestamp,
                        key: record.key.as_deref(),
                        value: record.value.as_deref(),
                        ..NewRecord::default()
                    })
                    .collect();
                builder::build_legacy(&fields, &records, codecs)
            }
        };
        let bytes = match bytes {
            // Without records Kafka writes no batch, and goes on with an empty set.
            Err(BuildError::NoRecords) => Vec::new(),
            bytes => bytes.map_err(|error| self.error(error))?,
        };
        let Self { count, max_timestamp, index_of_max, .. } = self;
        Ok(Rebuilt { bytes, count, max_timestamp, index_of_max })
    }

    fn error(&self, error: BuildError) -> Box<Refusal> {
        let magic = self.config.message_format;
        let (row, reason) = match error {
            BuildError::TooLarge { size, .. } => {
                let limit = self.config.max_message_bytes;
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
        Refusal::leak(self.request.profile, row, reason)
    }
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
