//! What a broker counts while it decides (KIP-467), under Kafka's names.

use std::ops::AddAssign;

/// Counters of one decision, or of many added up. Kafka's meters are their rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// `NoKeyCompactedTopicRecordsPerSec`: records without a key for a compacted topic.
    pub no_key_compacted_topic_records: u64,
    /// `InvalidMagicNumberRecordsPerSec`: records, or batches, whose magic differs from what they
    /// are in.
    pub invalid_magic_number_records: u64,
    /// `InvalidMessageCrcRecordsPerSec`: batches, or inner records, with a wrong checksum.
    pub invalid_message_crc_records: u64,
    /// `InvalidOffsetOrSequenceRecordsPerSec`: batches with an impossible offset range, count or
    /// sequence, and control batches of clients.
    pub invalid_offset_or_sequence_records: u64,
    /// `NonIncreasingOffsetRecordsPerSec`, the meter's first name: those of them that are about
    /// offsets.
    pub non_increasing_offset_records: u64,
    /// `ProduceMessageConversionsPerSec`: records of rebuilt batches.
    pub produce_message_conversions: u64,
    /// `TotalProduceRequestsPerSec`: attempts to append to the partition.
    pub total_produce_requests: u64,
    /// `FailedProduceRequestsPerSec`: those refused for a reason not the producer's size, checksum
    /// or leader.
    pub failed_produce_requests: u64,
    /// `BytesInPerSec`: bytes of accepted record sets, as received.
    pub bytes_in: u64,
    /// `MessagesInPerSec`: records of accepted record sets.
    pub messages_in: u64,
    /// `BytesRejectedPerSec`: bytes of record sets refused for their size.
    pub bytes_rejected: u64,
}

impl Metrics {
    /// Those of a set that is taken: its bytes, its records, and how many of them were rebuilt.
    #[inline]
    pub fn accepted(set_bytes: usize, messages: u64, converted: u64) -> Self {
        Self {
            total_produce_requests: 1,
            bytes_in: set_bytes as u64,
            messages_in: messages,
            produce_message_conversions: converted,
            ..Self::default()
        }
    }

    /// Every counter with Kafka's name for its meter.
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("NoKeyCompactedTopicRecordsPerSec", self.no_key_compacted_topic_records),
            ("InvalidMagicNumberRecordsPerSec", self.invalid_magic_number_records),
            ("InvalidMessageCrcRecordsPerSec", self.invalid_message_crc_records),
            ("InvalidOffsetOrSequenceRecordsPerSec", self.invalid_offset_or_sequence_records),
            ("NonIncreasingOffsetRecordsPerSec", self.non_increasing_offset_records),
            ("ProduceMessageConversionsPerSec", self.produce_message_conversions),
            ("TotalProduceRequestsPerSec", self.total_produce_requests),
            ("FailedProduceRequestsPerSec", self.failed_produce_requests),
            ("BytesInPerSec", self.bytes_in),
            ("MessagesInPerSec", self.messages_in),
            ("BytesRejectedPerSec", self.bytes_rejected),
        ]
    }
}

impl AddAssign for Metrics {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.no_key_compacted_topic_records += other.no_key_compacted_topic_records;
        self.invalid_magic_number_records += other.invalid_magic_number_records;
        self.invalid_message_crc_records += other.invalid_message_crc_records;
        self.invalid_offset_or_sequence_records += other.invalid_offset_or_sequence_records;
        self.non_increasing_offset_records += other.non_increasing_offset_records;
        self.produce_message_conversions += other.produce_message_conversions;
        self.total_produce_requests += other.total_produce_requests;
        self.failed_produce_requests += other.failed_produce_requests;
        self.bytes_in += other.bytes_in;
        self.messages_in += other.messages_in;
        self.bytes_rejected += other.bytes_rejected;
    }
}
