//! What a broker counts while it decides (KIP-467), under Kafka's names.

/// Counters of one decision, or of many. Kafka's meters are their rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// `NoKeyCompactedTopicRecordsPerSec`: records without a key for a compacted topic.
    pub no_key_compacted_topic_records: u64,
    /// `InvalidMagicNumberRecordsPerSec`: records whose magic differs from that of their batch, and
    /// batches whose magic differs from that of the first.
    pub invalid_magic_number_records: u64,
    /// `InvalidMessageCrcRecordsPerSec`: batches, or inner records, with a wrong checksum.
    pub invalid_message_crc_records: u64,
    /// `InvalidOffsetOrSequenceRecordsPerSec`: batches with an impossible offset range, count or
    /// sequence, and control batches of clients.
    pub invalid_offset_or_sequence_records: u64,
    /// `NonIncreasingOffsetRecordsPerSec`, the first name of that meter: those of them that have an
    /// impossible offset range or count.
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
    /// The counters of a set that is accepted: its bytes, its records, and those rebuilt of them.
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

    /// The counters by what each has, in the order of [`Metrics::named`].
    pub fn of_counts(counts: [u64; 11]) -> Self {
        let [
            no_key_compacted_topic_records,
            invalid_magic_number_records,
            invalid_message_crc_records,
            invalid_offset_or_sequence_records,
            non_increasing_offset_records,
            produce_message_conversions,
            total_produce_requests,
            failed_produce_requests,
            bytes_in,
            messages_in,
            bytes_rejected,
        ] = counts;
        Self {
            no_key_compacted_topic_records,
            invalid_magic_number_records,
            invalid_message_crc_records,
            invalid_offset_or_sequence_records,
            non_increasing_offset_records,
            produce_message_conversions,
            total_produce_requests,
            failed_produce_requests,
            bytes_in,
            messages_in,
            bytes_rejected,
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

    /// Adds the counters of another decision.
    #[inline(always)]
    pub fn add(&mut self, other: &Self) {
        let Self {
            no_key_compacted_topic_records,
            invalid_magic_number_records,
            invalid_message_crc_records,
            invalid_offset_or_sequence_records,
            non_increasing_offset_records,
            produce_message_conversions,
            total_produce_requests,
            failed_produce_requests,
            bytes_in,
            messages_in,
            bytes_rejected,
        } = *other;
        count(&mut self.no_key_compacted_topic_records, no_key_compacted_topic_records);
        count(&mut self.invalid_magic_number_records, invalid_magic_number_records);
        count(&mut self.invalid_message_crc_records, invalid_message_crc_records);
        count(&mut self.invalid_offset_or_sequence_records, invalid_offset_or_sequence_records);
        count(&mut self.non_increasing_offset_records, non_increasing_offset_records);
        count(&mut self.produce_message_conversions, produce_message_conversions);
        count(&mut self.total_produce_requests, total_produce_requests);
        count(&mut self.failed_produce_requests, failed_produce_requests);
        count(&mut self.bytes_in, bytes_in);
        count(&mut self.messages_in, messages_in);
        count(&mut self.bytes_rejected, bytes_rejected);
    }
}

/// Adds to a counter.
#[inline]
pub(crate) fn count(counter: &mut u64, by: u64) {
    *counter = counter.saturating_add(by);
}
