//! Why a batch or a record is refused: each reason with the sentence that states it.

use ottla_format::attributes::Compression;
use ottla_format::clients::ClientFault;
use ottla_format::error::ErrorKind;
use ottla_log::producers::ProducerRefusal;
use std::fmt;

macro_rules! reasons {
    ($(
        $(#[$doc:meta])*
        $name:ident $({ $($field:ident: $type:ty),+ })? => $sentence:literal $(, $value:expr)*;
    )+) => {
        /// Why a batch or a record is refused: what was found and what was expected.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the sentence beside each says what it is")]
        pub enum Reason {
            /// The format itself.
            Format(ErrorKind),
            /// What the partition knows of the producer.
            Producer(ProducerRefusal),
            /// What stops the consumers of some clients.
            Clients(ClientFault),
            $($(#[$doc])* $name $({ $($field: $type),+ })?,)+
        }

        impl fmt::Display for Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    Self::Format(kind) => kind.fmt(f),
                    Self::Producer(refusal) => refusal.fmt(f),
                    Self::Clients(fault) => fault.fmt(f),
                    $(Self::$name $({ $($field),+ })? => write!(f, $sentence $(, $value)*),)+
                }
            }
        }
    };
}

reasons! {
    // Of the request.
    NoBatch => "no whole record batch, expected one";
    SecondBatch => "more than one record batch, expected one";
    MagicTooOld { magic: i8 } => "record batch of magic {magic}, expected 2";
    ZstdTooEarly { api_version: i16 } => "zstd in Produce version {api_version}, expected 7 or newer";
    TransactionalIdMissing => "transactional batch in a request without a transactional id";
    SeveralProducers => "transactional batches of more than one producer id and epoch";
    // Of sizes and offsets.
    BaseOffsetNotZero { base_offset: i64 } =>
        "base offset {base_offset} from a client, expected 0";
    BatchTooLarge { size: u64, limit: i32 } =>
        "batch of {size} bytes, expected at most {limit} (max.message.bytes)";
    RebuiltBatchTooLarge { size: u64, limit: i32 } =>
        "batch of {size} bytes once rebuilt, expected at most {limit} (max.message.bytes)";
    SetTooLarge { size: u64, limit: i32 } =>
        "record set of {size} bytes, expected at most {limit} (segment.bytes)";
    OffsetNegative { base_offset: i64 } =>
        "assigned base offset {base_offset}, expected 0 or more";
    OffsetOverflow { base_offset: i64 } =>
        "offsets from base offset {base_offset} on, expected at most 9223372036854775807";
    ReplicaOffsets { previous: i64, last_offset: i64 } =>
        "last offset {last_offset} after {previous}, expected a larger one";
    OffsetBelowEnd { offset: i64, log_end_offset: i64 } =>
        "offset {offset}, expected the log end offset {log_end_offset} or more";
    // Of a batch.
    MagicDiffers { magic: i8, first: i8 } =>
        "batch of magic {magic} after a first batch of magic {first}";
    OffsetRange { base_offset: i64, last_offset: i64 } =>
        "offsets {base_offset} to {last_offset}, expected at least one offset";
    RecordCount { count: i32 } => "record count {count}, expected 1 or more";
    CountDiffers { count: i32, offsets: i64 } =>
        "record count {count}, but the offsets are those of {offsets} records";
    ControlFromClient => "control batch from a client; only brokers write them";
    SequenceMissing { producer_id: i64, base_sequence: i32 } =>
        "base sequence {base_sequence} with producer id {producer_id}, expected 0 or more";
    TransactionalWithoutProducer => "transactional batch without a producer id";
    ProducerEpoch { producer_id: i64, producer_epoch: i16 } =>
        "producer epoch {producer_epoch} with producer id {producer_id}, expected 0 or more";
    ProducerSequence { producer_id: i64, base_sequence: i32 } =>
        "base sequence {base_sequence} with producer id {producer_id} in a batch to be rebuilt, \
         expected 0 or more";
    /// The batch has to be rebuilt, but records were skipped that this takes.
    SkippedRecords => "offset deltas that are not 0, 1, 2, … in a compressed batch";
    /// A batch without records is written anew, and there is nothing to write.
    NothingToRebuild => "no records in a batch to be rebuilt, expected 1 or more";
    // Of what formats 0 and 1 cannot hold.
    ProducerInOldFormat { magic: i8 } => "producer id in a log of format {magic}, which has no producer ids";
    TransactionInOldFormat { magic: i8 } =>
        "transactional batch in a log of format {magic}, which has no transactions";
    HeadersInOldFormat { magic: i8 } => "headers in a log of format {magic}, which has no headers";
    CodecInOldFormat { codec: Compression, magic: i8 } =>
        "{} in a log of format {magic}, which has no such codec", codec.name();
    // Of records.
    /// Records with an error each.
    Records { count: usize } => "{count} record{} refused", if count == 1 { "" } else { "s" };
    KeyMissing => "no key, but the topic is compacted";
    RecordMagic { magic: i8, batch: i8 } => "magic {magic} in a batch of magic {batch}";
    TimestampOutOfRange { timestamp: i64, earliest: i64, latest: i64 } =>
        "timestamp {timestamp}, expected {earliest} to {latest}";
    TimestampType => "timestamp type LogAppendTime, which only brokers may set";
    TimestampNegative { timestamp: i64 } =>
        "timestamp {timestamp} in a batch to be rebuilt, expected 0 or more, or -1 for none";
    TimestampOverflow { base_timestamp: i64, delta: i64 } =>
        "base timestamp {base_timestamp} plus timestamp delta {delta} overflows 64 bits";
}
