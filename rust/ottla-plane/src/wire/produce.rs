//! Produce, versions 3 to 13.
//!
//! | version | adds |
//! | --- | --- |
//! | 3 | the transactional id (KIP-98) |
//! | 5 | the log start offset in the answer (KIP-192) |
//! | 7 | batches of zstd (KIP-110) |
//! | 8 | record errors and a message in the answer (KIP-467) |
//! | 9 | flexible fields (KIP-482) |
//! | 10 | the leader in the answer, tagged (KIP-951), which is left out here |
//! | 11 | clients understand `TRANSACTION_ABORTABLE` (KIP-890) |
//! | 12 | the partition joins the transaction by itself (KIP-890) |
//! | 13 | topics by id (KIP-516) |

use super::TopicKey;
use super::malformed::{MalformedFrame, MalformedKind, Wire};
use super::reader::Reader;
use super::writer::Writer;
use crate::limits::MAX_RECORD_MESSAGES;
use ottla_leader::RecordError;
use std::ops::Range;

const LOWEST: i16 = 3;
const HIGHEST: i16 = 13;
const FLEXIBLE: i16 = 9;
const BY_ID: i16 = 13;
/// The first version with record errors.
pub(crate) const RECORD_ERRORS: i16 = 8;

/// The private tag of a record's own error code, where it is not the partition's.
const ERROR_CODE_TAG: u32 = 14670;

/// A request, borrowed from its frame.
#[derive(Debug)]
pub(crate) struct ProduceRequest<'a> {
    pub(crate) version: i16,
    pub(crate) transactional_id: Option<&'a [u8]>,
    pub(crate) acks: i16,
    pub(crate) topics: Vec<ProduceTopic<'a>>,
    pub(crate) partitions: Vec<ProducePartition<'a>>,
}

/// A topic and which of the partitions are its.
#[derive(Debug)]
pub(crate) struct ProduceTopic<'a> {
    pub(crate) key: TopicKey<'a>,
    pub(crate) partitions: Range<usize>,
}

/// A record set for a partition.
#[derive(Debug)]
pub(crate) struct ProducePartition<'a> {
    pub(crate) index: i32,
    pub(crate) records: Option<&'a [u8]>,
}

/// The answer for a partition.
#[derive(Debug)]
pub(crate) struct ProduceAnswer<'a> {
    pub(crate) index: i32,
    pub(crate) error_code: i16,
    pub(crate) base_offset: i64,
    pub(crate) log_append_time_ms: i64,
    pub(crate) log_start_offset: i64,
    pub(crate) record_errors: &'a [RecordError],
    /// Whether errors that are not the partition's are told one by one.
    pub(crate) has_record_codes: bool,
    pub(crate) error_message: Option<&'a str>,
}

impl<'a> ProduceRequest<'a> {
    pub(crate) fn read(frame: &'a [u8], position: usize, version: i16) -> Wire<Self> {
        if !(LOWEST..=HIGHEST).contains(&version) {
            let kind = MalformedKind::Version { version, lowest: LOWEST, highest: HIGHEST };
            return Err(MalformedFrame { position, kind });
        }
        let mut reader = Reader::new(frame, position, version >= FLEXIBLE);
        let transactional_id = reader.nullable_string("transactional_id")?;
        let acks = reader.int16()?;
        // How long to wait for replicas.
        reader.int32()?;
        let mut request =
            Self { version, transactional_id, acks, topics: Vec::new(), partitions: Vec::new() };
        for _ in 0..reader.entries("topic_data")? {
            request.read_topic(&mut reader)?;
        }
        reader.skip_tags()?;
        Ok(request)
    }

    fn read_topic(&mut self, reader: &mut Reader<'a>) -> Wire<()> {
        let key = if self.version >= BY_ID {
            TopicKey::Id(reader.uuid()?)
        } else {
            TopicKey::Name(reader.string("name")?)
        };
        let start = self.partitions.len();
        for _ in 0..reader.entries("partition_data")? {
            let (index, records) = (reader.int32()?, reader.nullable_bytes()?);
            reader.skip_tags()?;
            self.partitions.push(ProducePartition { index, records });
        }
        reader.skip_tags()?;
        self.topics.push(ProduceTopic { key, partitions: start..self.partitions.len() });
        Ok(())
    }

    /// The partitions of a topic.
    pub(crate) fn of(&self, topic: &ProduceTopic<'_>) -> &[ProducePartition<'a>] {
        self.partitions.get(topic.partitions.clone()).unwrap_or_default()
    }
}

/// Writes answers to a request in its order.
pub(crate) struct ProduceWriter<'a> {
    writer: Writer<'a>,
    version: i16,
}

impl<'a> ProduceWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, version: i16, topics: usize) -> Self {
        let mut writer = Writer::new(out, version >= FLEXIBLE);
        writer.length(topics);
        Self { writer, version }
    }

    pub(crate) fn begin_topic(&mut self, topic: &ProduceTopic<'_>) {
        match topic.key {
            TopicKey::Name(name) => self.writer.string(name),
            TopicKey::Id(id) => self.writer.raw(&id),
        }
        self.writer.length(topic.partitions.len());
    }

    pub(crate) fn end_topic(&mut self) {
        self.writer.tags(&[]);
    }

    pub(crate) fn partition(&mut self, answer: &ProduceAnswer<'_>) {
        let writer = &mut self.writer;
        writer.int32(answer.index);
        writer.int16(answer.error_code);
        writer.int64(answer.base_offset);
        writer.int64(answer.log_append_time_ms);
        if self.version >= 5 {
            writer.int64(answer.log_start_offset);
        }
        if self.version >= RECORD_ERRORS {
            writer.length(answer.record_errors.len());
            for (number, error) in answer.record_errors.iter().enumerate() {
                writer.int32(error.batch_index as i32);
                let message = (number < MAX_RECORD_MESSAGES).then(|| error.message());
                writer.nullable_string(message.as_deref());
                let code = error.error.code();
                let bytes = code.to_be_bytes();
                let tag = [(ERROR_CODE_TAG, &bytes[..])];
                let is_told = answer.has_record_codes && code != answer.error_code;
                writer.tags(if is_told { &tag } else { &[] });
            }
            writer.nullable_string(answer.error_message);
        }
        writer.tags(&[]);
    }

    pub(crate) fn finish(mut self) {
        // Nobody is throttled.
        self.writer.int32(0);
        self.writer.tags(&[]);
    }
}
