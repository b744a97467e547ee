//! Fetch, versions 4 to 18.
//!
//! | version | adds |
//! | --- | --- |
//! | 4 | the isolation level, and aborted transactions in the answer (KIP-98) |
//! | 5 | the log start offset (KIP-107) |
//! | 7 | sessions (KIP-227) |
//! | 9 | the client's leader epoch (KIP-320) |
//! | 11 | the client's rack (KIP-392), and a replica to prefer, which is none here |
//! | 12 | flexible fields (KIP-482), the epoch fetched last and where logs diverge (KIP-595) |
//! | 13 | topics by id (KIP-516) |
//! | 15 | the replica as a tagged field (KIP-903) |
//! | 16 | where leaders are (KIP-951), which is left out here |
//! | 17 | the directory of a follower (KIP-853), which is skipped |
//! | 18 | the follower's high watermark (KIP-1166), which is skipped |
//!
//! Between Ottla's own, two private tags carry partition epochs (KIP-232): 12323 in a request's
//! partition, 12321 in an answer's.

use super::TopicKey;
use super::malformed::{MalformedFrame, MalformedKind, Wire};
use super::reader::Reader;
use super::writer::{Sink, Writer};
use ottla_log::sidefiles::transaction_index::AbortedTransaction;
use std::ops::Range;

const LOWEST: i16 = 4;
const HIGHEST: i16 = 18;
const FLEXIBLE: i16 = 12;
/// The first version with sessions.
pub(crate) const SESSIONS: i16 = 7;
/// The first version that names topics by id.
pub(crate) const BY_ID: i16 = 13;

const REPLICA_STATE_TAG: u32 = 1;
const EXPECTED_PARTITION_EPOCH_TAG: u32 = 12323;
const DIVERGING_EPOCH_TAG: u32 = 0;
const PARTITION_EPOCH_TAG: u32 = 12321;

/// A request, borrowed from its frame.
#[derive(Debug)]
pub(crate) struct FetchRequest<'a> {
    pub(crate) version: i16,
    /// −1 for a consumer.
    pub(crate) replica_id: i32,
    pub(crate) max_wait_ms: i32,
    pub(crate) min_bytes: i32,
    pub(crate) max_bytes: i32,
    pub(crate) is_read_committed: bool,
    pub(crate) session_id: i32,
    pub(crate) session_epoch: i32,
    pub(crate) topics: Vec<FetchTopic<'a>>,
    pub(crate) partitions: Vec<FetchPartition>,
    pub(crate) forgotten: Vec<(TopicKey<'a>, i32)>,
}

/// A topic and which of the partitions are its.
#[derive(Debug)]
pub(crate) struct FetchTopic<'a> {
    pub(crate) key: TopicKey<'a>,
    pub(crate) partitions: Range<usize>,
}

/// What is asked of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FetchPartition {
    pub(crate) index: i32,
    /// −1 for none.
    pub(crate) current_leader_epoch: i32,
    pub(crate) fetch_offset: i64,
    /// −1 for none.
    pub(crate) last_fetched_epoch: i32,
    pub(crate) max_bytes: i32,
    /// −1 for none.
    pub(crate) expected_partition_epoch: i32,
}

/// The fields of a partition's answer before its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchAnswer {
    pub(crate) index: i32,
    pub(crate) error_code: i16,
    pub(crate) high_watermark: i64,
    pub(crate) last_stable_offset: i64,
    pub(crate) log_start_offset: i64,
    /// Epoch and end offset.
    pub(crate) diverging_epoch: Option<(i32, i64)>,
    /// Of a reader of committed records.
    pub(crate) aborted_transactions: Option<Vec<AbortedTransaction>>,
    /// −1 for none.
    pub(crate) partition_epoch: i32,
}

impl<'a> FetchRequest<'a> {
    pub(crate) fn read(frame: &'a [u8], position: usize, version: i16) -> Wire<Self> {
        if !(LOWEST..=HIGHEST).contains(&version) {
            let kind = MalformedKind::Version { version, lowest: LOWEST, highest: HIGHEST };
            return Err(MalformedFrame { position, kind });
        }
        let mut reader = Reader::new(frame, position, version >= FLEXIBLE);
        let has_sessions = version >= SESSIONS;
        let mut request = Self {
            version,
            replica_id: if version < 15 { reader.int32()? } else { -1 },
            max_wait_ms: reader.int32()?,
            min_bytes: reader.int32()?,
            max_bytes: reader.int32()?,
            is_read_committed: reader.int8()? == 1,
            session_id: if has_sessions { reader.int32()? } else { 0 },
            session_epoch: if has_sessions { reader.int32()? } else { -1 },
            topics: Vec::new(),
            partitions: Vec::new(),
            forgotten: Vec::new(),
        };
        for _ in 0..reader.entries("topics")? {
            request.read_topic(&mut reader)?;
        }
        if has_sessions {
            for _ in 0..reader.entries("forgotten_topics_data")? {
                let key = read_key(&mut reader, version)?;
                for _ in 0..reader.entries("partitions")? {
                    request.forgotten.push((key, reader.int32()?));
                }
                reader.skip_tags()?;
            }
        }
        if version >= 11 {
            reader.string("rack_id")?;
        }
        let replica_id = &mut request.replica_id;
        reader.tags(|tag, value| {
            if tag == REPLICA_STATE_TAG && version >= 15 {
                *replica_id = value.int32()?;
            }
            Ok(())
        })?;
        Ok(request)
    }

    fn read_topic(&mut self, reader: &mut Reader<'a>) -> Wire<()> {
        let version = self.version;
        let key = read_key(reader, version)?;
        let start = self.partitions.len();
        for _ in 0..reader.entries("partitions")? {
            let index = reader.int32()?;
            let current_leader_epoch = if version >= 9 { reader.int32()? } else { -1 };
            let fetch_offset = reader.int64()?;
            let last_fetched_epoch = if version >= 12 { reader.int32()? } else { -1 };
            if version >= 5 {
                // The follower's log start offset.
                reader.int64()?;
            }
            let max_bytes = reader.int32()?;
            let mut expected_partition_epoch = -1;
            reader.tags(|tag, value| {
                if tag == EXPECTED_PARTITION_EPOCH_TAG {
                    expected_partition_epoch = value.int32()?;
                }
                Ok(())
            })?;
            self.partitions.push(FetchPartition {
                index,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                max_bytes,
                expected_partition_epoch,
            });
        }
        reader.skip_tags()?;
        self.topics.push(FetchTopic { key, partitions: start..self.partitions.len() });
        Ok(())
    }

    /// The partitions of a topic.
    pub(crate) fn of(&self, topic: &FetchTopic<'_>) -> &[FetchPartition] {
        self.partitions.get(topic.partitions.clone()).unwrap_or_default()
    }
}

fn read_key<'a>(reader: &mut Reader<'a>, version: i16) -> Wire<TopicKey<'a>> {
    if version >= BY_ID {
        return reader.uuid().map(TopicKey::Id);
    }
    reader.string("topic").map(TopicKey::Name)
}

/// Writes an answer field by field.
pub(crate) struct FetchWriter<'s, S> {
    sink: &'s mut S,
    version: i16,
}

impl<'s, S: Sink> FetchWriter<'s, S> {
    pub(crate) fn new(
        sink: &'s mut S,
        version: i16,
        error_code: i16,
        session_id: i32,
        topics: usize,
    ) -> Self {
        let mut answer = Self { sink, version };
        let mut writer = answer.writer();
        // Nobody is throttled.
        writer.int32(0);
        if version >= SESSIONS {
            writer.int16(error_code);
            writer.int32(session_id);
        }
        writer.length(topics);
        answer
    }

    fn writer(&mut self) -> Writer<'_> {
        Writer::new(self.sink.buffer(), self.version >= FLEXIBLE)
    }

    pub(crate) fn begin_topic(&mut self, key: TopicKey<'_>, partitions: usize) {
        let mut writer = self.writer();
        match key {
            TopicKey::Name(name) => writer.string(name),
            TopicKey::Id(id) => writer.raw(&id),
        }
        writer.length(partitions);
    }

    pub(crate) fn end_topic(&mut self) {
        self.writer().tags(&[]);
    }

    /// Everything of a partition before the bytes of its records.
    pub(crate) fn begin_partition(&mut self, answer: &FetchAnswer, records: u64) {
        let version = self.version;
        let mut writer = self.writer();
        writer.int32(answer.index);
        writer.int16(answer.error_code);
        writer.int64(answer.high_watermark);
        writer.int64(answer.last_stable_offset);
        if version >= 5 {
            writer.int64(answer.log_start_offset);
        }
        match &answer.aborted_transactions {
            None => writer.null_array(),
            Some(aborted) => {
                writer.length(aborted.len());
                for transaction in aborted {
                    writer.int64(transaction.producer_id);
                    writer.int64(transaction.first_offset);
                    writer.tags(&[]);
                }
            }
        }
        if version >= 11 {
            // No other replica is preferred.
            writer.int32(-1);
        }
        writer.length(records as usize);
    }

    pub(crate) fn sink(&mut self) -> &mut S {
        self.sink
    }

    /// The tagged fields behind the records.
    pub(crate) fn end_partition(&mut self, answer: &FetchAnswer) {
        let mut diverging = [0; 13];
        let epoch = answer.partition_epoch.to_be_bytes();
        let mut tags: [(u32, &[u8]); 2] = [(0, &[]); 2];
        let mut used = 0usize;
        if let Some((epoch, end_offset)) = answer.diverging_epoch {
            // A struct: two fields and its own tags.
            diverging[..4].copy_from_slice(&epoch.to_be_bytes());
            diverging[4..12].copy_from_slice(&end_offset.to_be_bytes());
            tags[0] = (DIVERGING_EPOCH_TAG, &diverging);
            used = 1;
        }
        if answer.partition_epoch >= 0
            && let Some(tag) = tags.get_mut(used)
        {
            *tag = (PARTITION_EPOCH_TAG, &epoch);
            used = used.saturating_add(1);
        }
        self.writer().tags(tags.get(..used).unwrap_or_default());
    }

    pub(crate) fn finish(mut self) {
        self.writer().tags(&[]);
    }
}
