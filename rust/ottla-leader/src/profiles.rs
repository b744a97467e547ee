//! The two profiles, and the one table of everything in which they differ.
//!
//! [`Profile::Kafka`] decides as Apache Kafka does, including internal errors, which reach the client
//! as −1; [`KafkaVersion`](ottla_log::kafka_version::KafkaVersion) says as which release. [`Profile::Strict`] decides as a careful broker should: it never answers −1,
//! accepts no batch that stops its consumers, and names the records to blame. The code that decides
//! asks [`Profile::is_strict`] with a row of the table, so that no difference can be without one.

/// Whose decision a verdict is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Apache Kafka's, oddities included.
    Kafka,
    /// A careful broker's.
    #[default]
    Strict,
}

impl Profile {
    /// Returns the profile of a name: `kafka` or `strict`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "kafka" => Some(Self::Kafka),
            "strict" => Some(Self::Strict),
            _ => None,
        }
    }

    /// Whether the strict side of a row applies.
    pub fn is_strict(self, _row: Difference) -> bool {
        self == Self::Strict
    }
}

macro_rules! differences {
    ($($(#[$doc:meta])* $name:ident, $id:literal, $kafka:literal, $strict:literal, $why:literal;)+) => {
        /// Where the profiles differ: the rows of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Difference {
            $($(#[$doc])* $name,)+
        }

        impl Difference {
            /// Every row.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Stable kebab-case name.
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => $id),+ }
            }

            /// What Kafka does.
            pub fn kafka(self) -> &'static str {
                match self { $(Self::$name => $kafka),+ }
            }

            /// What the strict profile does.
            pub fn strict(self) -> &'static str {
                match self { $(Self::$name => $strict),+ }
            }

            /// Why it does so.
            pub fn why(self) -> &'static str {
                match self { $(Self::$name => $why),+ }
            }
        }
    };
}

differences! {
    /// Offset deltas that are not 0, 1, 2, ….
    OffsetDeltas, "offset-deltas",
        "stores them as sent in an uncompressed batch, answers -1 if a compressed batch keeps its codec, renumbers them if the codec changes",
        "87, naming each record out of place",
        "stored as sent, consumers skip or repeat records (KIP-467 asks for a refusal)";
    /// Record lengths that are not those of the records, in a compressed batch.
    RecordLengths, "record-lengths",
        "does not look at them if the codec is kept; holds the records to them if the codec changes",
        "87, naming each record whose length is wrong",
        "every consumer stops at the stored batch";
    /// Structure errors name their record.
    StructureUnnamed, "structure-unnamed",
        "87 without record errors if a record cannot be parsed; drops the errors found before it",
        "87, naming that record and the errors found before it",
        "the producer learns which record to drop";
    /// A record length whose varint has no end, in an uncompressed batch.
    LengthVarint, "length-varint",
        "-1: an internal error",
        "87, naming the record",
        "the batch is wrong, not the broker";
    /// A payload its codec refuses.
    Undecodable, "payload-undecodable",
        "-1, an internal error, unless a record before the damage is refused, or nothing behind it is read: the payload of a batch without records is only opened, or not looked at if the codec is kept",
        "87, unless the batch has no records and can be opened",
        "the batch is wrong, not the broker; where damage is met must not depend on the steps in which a payload is read";
    /// Streams that pause.
    StreamPauses, "stream-pauses",
        "skips over an lz4 block of nothing if the codec is kept, though its consumers take it for the end; and reads on wrongly behind some that they would pass",
        "decides by what its consumers read",
        "every consumer stops at the stored batch, or could have read it";
    /// Codecs 5 to 7.
    UnknownCodec, "codec-unknown",
        "-1: an internal error, which fails the whole request below Produce 7",
        "87",
        "the batch is wrong, not the broker";
    /// A payload that inflates to far more than itself.
    Bomb, "decompression-bomb",
        "inflates it, whatever the cost (this engine stops at its bound of bytes, with 87)",
        "87 past 1100 times its size, above 16 MiB",
        "consumers would have to inflate it too";
    /// More headers than a bound allows.
    HeaderCount, "header-count",
        "accepts any number (this engine rebuilds a batch only below the bound)",
        "87 above 1048576 headers, naming the record",
        "readers hold headers as objects: dozens of bytes for two bytes of the batch";
    /// A v2 batch too short for the fields Kafka reads before it checks the size.
    BatchTooShort, "batch-too-short",
        "-1 for 26 to 50 bytes: an internal error, which fails the whole request if it has a version",
        "87",
        "the batch is wrong, not the broker";
    /// A size field that overflows 32 bits.
    SizeOverflow, "size-overflow",
        "-1: an internal error",
        "87",
        "the batch is wrong, not the broker";
    /// Negative timestamps other than −1 in a batch that must be rebuilt.
    NegativeTimestamp, "negative-timestamp",
        "stores them as sent, answers -1 if the batch must be rebuilt",
        "stores them as sent; 87, naming the records, if the batch must be rebuilt",
        "the batch is wrong, not the broker";
    /// Timestamps that leave 64 bits.
    TimestampOverflow, "timestamp-overflow",
        "lets their sum wrap around",
        "87, naming the records",
        "readers disagree about such a timestamp";
    /// A batch flagged LogAppendTime, on a CreateTime topic.
    LogAppendTimeFlag, "log-append-time-flag",
        "clears the flag if the header's timestamp is in range, and so exposes timestamps of records that it did not check",
        "32, naming all records, as Kafka did up to 3.5",
        "the stored header contradicts its records, whose timestamps were never checked";
    /// A transactional batch without a producer id.
    TransactionalWithoutProducer, "transactional-without-producer",
        "stores it, answers -1 if it must be rebuilt",
        "87",
        "no marker can end that transaction";
    /// A producer id with epoch −1.
    ProducerEpoch, "producer-epoch",
        "stores it, answers -1 if it must be rebuilt",
        "87",
        "no producer has that epoch, so it cannot be fenced";
    /// A producer id below −1.
    NegativeProducerId, "negative-producer-id",
        "treats it as none, answers -1 if the batch must be rebuilt",
        "treats it as none, 87 if the batch must be rebuilt",
        "the batch is wrong, not the broker";
    /// A magic 0 or 1 record whose lengths leave it.
    LegacyLengths, "legacy-lengths",
        "-1, an internal error, if it has to read the record; stores a record unread if it keeps it as it is",
        "87, naming the record",
        "the record is wrong, not the broker; once stored, it stops every consumer";
    /// Positions within a message set of magic 0 or 1.
    LegacyPositions, "legacy-positions",
        "names position 0 of the first bad entry alone, because each entry is its own batch",
        "names every bad entry, by its position in the set",
        "position 0 does not say which record to drop";
    /// Inner records of a wrapper with a wrong checksum, compressed again, or cut.
    InnerRecords, "inner-records",
        "2 or 87 at the first, without naming it",
        "the same code, naming it and the errors found before it",
        "the producer learns which record to drop";
    /// A marker that is cut or of another type, from a coordinator.
    ControlRecord, "control-record",
        "-1, or 87 without records",
        "87, naming the record",
        "the batch is wrong, not the broker";
    /// Offset range and record count of the broker's own writes.
    CoordinatorRange, "coordinator-range",
        "does not compare record count and last offset delta of what the broker itself writes",
        "87 unless they agree, or there are no records",
        "once stored, its offsets overlap those around it";
    /// A batch without records that would get a negative offset.
    NegativeOffset, "negative-offset",
        "-1: an internal error",
        "87",
        "the batch is wrong, not the broker";
    /// Offsets that leave 64 bits.
    OffsetOverflow, "offset-overflow",
        "lets them wrap around in a batch that it keeps, answers -1 if the batch must be rebuilt",
        "87, naming the records of a batch that must be rebuilt",
        "no log has these offsets, and no reader can go on behind them";
    /// A batch without records that is rebuilt with the time of its append.
    EmptyRebuild, "empty-rebuild",
        "-1, an internal error, if a batch of its own without records must be rebuilt on a LogAppendTime topic",
        "appends nothing, as both do on a CreateTime topic",
        "there is nothing to append";
    /// Header keys that are no UTF-8.
    HeaderKeys, "header-keys",
        "stores them, replaces what is not UTF-8 in batches that are rebuilt",
        "87, naming the records",
        "aiokafka and kafka-python stop at the stored batch, and a broker changes no data";
    /// Payloads in a framing that some clients do not read.
    ClientFraming, "client-framing",
        "stores what its own reader inflates: several gzip members or snappy streams, bytes behind the end, a wrong lz4 content checksum, a zstd block of no bytes",
        "87 if the payload is kept, without records: the payload is wrong, and none of them",
        "librdkafka, aiokafka or kafka-python stop at the stored batch, or lose records without an error";
    /// Records that some clients do not read.
    ClientRecords, "client-records",
        "stores record attributes of 128 or above, and null as any negative length",
        "87 if the records are kept, naming them",
        "aiokafka and kafka-python stop at such attributes, librdkafka loses the batch at a length below -1";
    /// Who compresses a batch that is rebuilt.
    Encoders, "encoders",
        "zlib, libzstd's streaming call, libsnappy and lz4, whose sizes are compared with max.message.bytes and segment.bytes (this engine's snappy makes up to some dozen bytes more or less, its newer libzstd one)",
        "libdeflate, libzstd's single call, and the same snappy and lz4: faster, a few bytes more or less",
        "the records read from both are the same";
    /// What formats 0 and 1 cannot hold.
    FormatDowngrade, "format-downgrade",
        "-1 for headers, zstd or a transaction in a log of format 0 or 1",
        "87, naming the records with headers",
        "the batch is wrong, not the broker";
    /// Batches of a follower's fetch whose offsets do not go up.
    ReplicaOffsets, "replica-offsets",
        "-1: an internal error",
        "87",
        "the leader's batch is wrong, not this broker";
    /// `log_start_offset` of a refusal.
    LogStartOffset, "log-start-offset",
        "-1 with errors 2, 10, 17, 18, 21 and 56, and with those of the request gate",
        "the log start offset in every answer",
        "a producer needs it to distinguish lost data from deleted data";
    /// A last stable offset below the log start.
    StableOffset, "stable-offset",
        "after DeleteRecords into a batch, with a transaction open below it, returns that batch's base offset; into a gap between batches, that of the next one",
        "returns the log start offset",
        "no reader may fetch below the log start offset";
    /// A producer of which nothing is known and whose sequence is not 0.
    UnknownProducer, "unknown-producer",
        "accepts it since 2.5",
        "59 with the log start offset from Produce 8 on, unless configured otherwise",
        "its lost records would go unnoticed, and these clients recover from 59";
    /// A request with a batch that its gate cannot read.
    RequestWide, "request-wide",
        "fails every partition of a Produce request with a batch whose framing it cannot read",
        "refuses the partition of that batch",
        "the other partitions are right";
    /// The code for clients that do not know 87.
    OldClients, "old-clients",
        "87 in every version of Produce",
        "42 instead of 87 below Produce 8",
        "these clients do not know 87, and KIP-467 asks for a general code";
    /// What is told beside a code.
    ErrorMessages, "error-messages",
        "sends a message where records are blamed, and one code for all of them",
        "sends a message with every refusal, and the code of a record that is not its partition's in a field that other clients skip",
        "a client can say what was wrong, and tell bad timestamps from other faults";
}
