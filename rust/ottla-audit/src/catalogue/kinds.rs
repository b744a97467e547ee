//! The catalogue of findings: one row per kind, from which `ottla explain`, the documentation and
//! every report are made.
//!
//! A name states the fault, is kebab-case, and is never renamed or used for something else.

use crate::catalogue::row::{ByteState, ConsumerEffect, Effect, Joining, RecordState, Row};
use crate::catalogue::severity::Severity;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! catalogue {
    ($(
        $kind:ident {
            name: $name:literal,
            severity: $severity:ident,
            records: $records:ident, bytes: $bytes:ident, consumers: $consumers:ident,
            matters_to_start: $matters_to_start:literal, is_rebuildable: $is_rebuildable:literal,
            effects: [$($effect:ident),*], trace_of: [$($traced:ident),*], joins: $joins:ident,
            meaning: $meaning:literal,
            causes: $causes:literal,
            action: $action:literal,
            kafka: $kafka:literal,
        }
    )*) => {
        /// What kind of thing was found.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum FindingKind {
            $(#[doc = $meaning] $kind,)*
        }

        impl FindingKind {
            /// Every kind, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// The row of this kind.
            pub fn row(self) -> &'static Row {
                match self {
                    $(Self::$kind => &Row {
                        name: $name,
                        severity: Severity::$severity,
                        records: RecordState::$records,
                        bytes: ByteState::$bytes,
                        consumers: ConsumerEffect::$consumers,
                        matters_to_start: $matters_to_start,
                        is_rebuildable: $is_rebuildable,
                        effects: &[$(Effect::$effect,)*],
                        trace_of: &[$(Effect::$traced,)*],
                        joins: Joining::$joins,
                        meaning: $meaning,
                        causes: $causes,
                        action: $action,
                        kafka: $kafka,
                    },)*
                }
            }
        }
    };
}

catalogue! {
    CrcMismatch {
        name: "crc-mismatch",
        severity: Error,
        records: Unreadable, bytes: FaultyBatch, consumers: StopAtDamage,
        matters_to_start: true, is_rebuildable: false,
        effects: [HidesOffsets, LosesMarkers, LosesEnd, ChangesBytes],
        trace_of: [],
        joins: Nothing,
        meaning: "The bytes of a batch do not match its CRC.",
        causes: "Bits changed on disk, in memory or while a file was copied, after the producer had computed the checksum.",
        action: "Restore the batch from another replica: stop the broker, move the partition directory away and let the partition replicate. If no replica has it, consumers must seek to the next good offset; the records in between are lost.",
        kafka: "DefaultRecordBatch.ensureValid; consumers stop with CorruptRecordException unless check.crcs is off",
    }
    DamagedRange {
        name: "damaged-range",
        severity: Error,
        records: Unreadable, bytes: NoBatch, consumers: StopAtDamage,
        matters_to_start: true, is_rebuildable: false,
        effects: [RemovesOffsets, LosesMarkers, LosesEnd, MovesBatches, ChangesBytes],
        trace_of: [],
        joins: Nothing,
        meaning: "A range of bytes inside a segment cannot be read as batches.",
        causes: "A wrong size field, lost or inserted bytes, or a sector that was never written or was written elsewhere.",
        action: "Restore the partition from another replica. If there is none, consumers must seek to the next good offset. Kafka cannot read anything after the damage, and a recovery truncates the log here.",
        kafka: "FileLogInputStream; LogSegment.recover truncates at the first batch it cannot read",
    }
    TruncatedTail {
        name: "truncated-tail",
        severity: Error,
        records: Unreadable, bytes: NoBatch, consumers: StopAtDamage,
        matters_to_start: true, is_rebuildable: false,
        effects: [RemovesOffsets, LosesMarkers, LosesEnd],
        trace_of: [],
        joins: Nothing,
        meaning: "A segment ends in the middle of a batch.",
        causes: "Active segment: the broker was killed while it was writing, or is still writing. Closed segment: the file was cut short by a full disk or an incomplete copy.",
        action: "Active segment after a kill, as info: nothing, the next start removes the partial batch. As an error: records were behind it; compare the end of the log with another replica before the broker starts. Closed segment: restore it from another replica before any restart.",
        kafka: "LogSegment.recover; LogLoader.recoverSegment",
    }
    GarbageTail {
        name: "garbage-tail",
        severity: Error,
        records: AsWritten, bytes: NoBatch, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [LosesMarkers, LosesEnd],
        trace_of: [],
        joins: Nothing,
        meaning: "The bytes after the last batch of a segment are neither a batch nor zeros.",
        causes: "A torn page after an unclean stop, or foreign bytes appended to the file.",
        action: "Active segment after an unclean stop, as info: nothing, recovery removes them. As an error: records were there; compare the end of the log with another replica before the broker starts, since the start removes these bytes. After a clean stop the broker may refuse to start: the report of ottla audit says what was tried, and what it costs.",
        kafka: "LogSegment.recover; a clean start raises CorruptRecordException here",
    }
    ZeroTail {
        name: "zero-tail",
        severity: Info,
        records: AsWritten, bytes: Zeros, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [LosesEnd],
        trace_of: [],
        joins: Nothing,
        meaning: "A segment ends with zeros after its last batch.",
        causes: "The file was preallocated (preallocate=true), or extents were allocated but not written before a crash.",
        action: "Active segment, as info: nothing. As an error: records were there; compare the end of the log with another replica before the broker starts. Closed segment: no record is lost, but a recovery that reaches it deletes every later segment: restore the segment from another replica.",
        kafka: "FileRecords.open with preallocate; LogLoader.recoverLog",
    }
    MagicFault {
        name: "magic-fault",
        severity: Error,
        records: Altered, bytes: FaultyBatch, consumers: StopAtDamage,
        matters_to_start: true, is_rebuildable: false,
        effects: [HidesOffsets, LosesMarkers, ChangesBytes],
        trace_of: [],
        joins: Nothing,
        meaning: "The magic byte of a batch is wrong although everything else matches the CRC.",
        causes: "One flipped byte: the CRC of magic 2 does not cover the magic byte.",
        action: "Restore the batch from another replica, or write the correct byte back: the records themselves are intact.",
        kafka: "ByteBufferLogInputStream: CorruptRecordException for an unknown magic; recovery keeps such a batch",
    }
    BaseOffsetWrong {
        name: "base-offset-wrong",
        severity: Error,
        records: Altered, bytes: MisplacedBatch, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [ChangesBytes],
        trace_of: [],
        joins: Nothing,
        meaning: "The base offset of a batch does not fit between its neighbours although its CRC is right.",
        causes: "A flipped bit: the CRC does not cover the base offset.",
        action: "Restore the batch from another replica. The records are intact; only their offsets are wrong.",
        kafka: "The base offset is outside the CRC of DefaultRecordBatch",
    }
    LeaderEpochFault {
        name: "leader-epoch-fault",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [ChangesEpochs, ChangesBytes],
        trace_of: [],
        joins: Nothing,
        meaning: "The partition leader epoch decreases from one batch to the next.",
        causes: "A flipped bit (the CRC does not cover the epoch), or batches of a deposed leader.",
        action: "Compare with leader-epoch-checkpoint and with another replica. Followers truncate their logs by these epochs (KIP-101).",
        kafka: "KIP-101, KIP-279; LeaderEpochFileCache",
    }
    OffsetGap {
        name: "offset-gap",
        severity: Warning,
        records: Missing, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [RemovesOffsets, LosesMarkers, MovesBatches],
        trace_of: [MisplacesBatches, MiscountsOffsets],
        joins: SameLawfulCause,
        meaning: "Offsets are missing between two batches.",
        causes: "Normal in a compacted topic: the cleaner removed the records. Otherwise batches were removed or lost.",
        action: "Compacted topic: nothing. Otherwise compare with another replica.",
        kafka: "LogCleaner; consumers skip gaps silently",
    }
    OffsetRepeat {
        name: "offset-repeat",
        severity: Error,
        records: AsWritten, bytes: MisplacedBatch, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [MisplacesBatches, MovesBatches, ChangesBytes, RepeatsSequences],
        trace_of: [MiscountsOffsets],
        joins: Nothing,
        meaning: "A batch begins at or below the last offset of the batch before it.",
        causes: "A segment or batch was copied twice, a write went to the wrong place, or there were two leaders at once.",
        action: "Restore the partition from another replica. Followers stop at this batch, and a recovery that rebuilds the index here deletes the contents of the segment.",
        kafka: "LocalLog.append checks monotonic offsets on followers; OffsetIndex.append refuses offsets that go back",
    }
    OutOfSegment {
        name: "out-of-segment",
        severity: Error,
        records: AsWritten, bytes: MisplacedBatch, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [MisplacesBatches, MovesBatches, LosesEnd, ChangesBytes],
        trace_of: [],
        joins: Nothing,
        meaning: "A batch has offsets that do not belong in a file of this name.",
        causes: "The file was renamed or copied under another name, or a base offset is wrong.",
        action: "Find out where the file belongs. Move it away while the broker is stopped, and let the partition replicate.",
        kafka: "LogSegment.canConvertToRelativeOffset; LogLoader splits or refuses such segments",
    }
    OversizedSegment {
        name: "oversized-segment",
        severity: Error,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: Nothing,
        meaning: "A segment has more than 2,147,483,647 bytes: Kafka opens no such file.",
        causes: "No broker writes one, as segment.bytes is at most that: another program joined segments, or wrote into the file.",
        action: "Do not start the broker: it does not open the partition, and ends. Move the partition's directory out of the log directory, and let the partition replicate; without another replica, ottla read gets its records out of the copy.",
        kafka: "FileRecords refuses a file above Integer.MAX_VALUE bytes; LogLoader.load does not catch that",
    }
    MissingSegment {
        name: "missing-segment",
        severity: Warning,
        records: Missing, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [RemovesOffsets, LosesMarkers],
        trace_of: [],
        joins: SameLawfulCause,
        meaning: "Offsets between two segment files, or before the first one, are missing.",
        causes: "A segment file was deleted or not copied. In a compacted topic all its records may have been removed.",
        action: "Look for the file in backups, in lost+found and on the other replicas. Consumers skip these offsets silently.",
        kafka: "LogSegments; Kafka does not check for it",
    }
    Undecodable {
        name: "undecodable",
        severity: Error,
        records: AsWritten, bytes: FaultyBatch, consumers: StopAtBatch,
        matters_to_start: true, is_rebuildable: false,
        effects: [MovesBatches, MiscountsOffsets, ChangesBytes],
        trace_of: [],
        joins: Nothing,
        meaning: "The CRC is right, but the codec is unknown or Kafka's own consumer cannot decompress the payload.",
        causes: "Damage before the checksum was computed: a faulty producer, proxy or codec library.",
        action: "Find the producer by its id. Java consumers stop here and must seek past the batch; those of other clients may read it, as they read lz4 blocks that inflate to nothing. The log cleaner marks the partition as uncleanable.",
        kafka: "CompressionType, Compression.wrapForInput; LogCleanerManager.uncleanablePartitions",
    }
    RecordFault {
        name: "record-fault",
        severity: Error,
        records: AsWritten, bytes: FaultyBatch, consumers: StopAtBatch,
        matters_to_start: true, is_rebuildable: false,
        effects: [MovesBatches, MiscountsOffsets, ChangesBytes],
        trace_of: [],
        joins: SameBatch,
        meaning: "The CRC is right, but the records contradict each other or the batch header.",
        causes: "A faulty producer or proxy, or a bug in the broker's recompression or conversion.",
        action: "Find the producer by its id. Consumers may stop here and must then seek past the batch.",
        kafka: "DefaultRecord.readFrom, LogValidator",
    }
    ConsumersDiffer {
        name: "consumers-differ",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: SameFile,
        meaning: "Kafka's Java consumer reads the batch, but consumers of the clients that are named stop there or lose records.",
        causes: "A producer or proxy whose encoder writes what the format does not foresee: several gzip members or snappy streams, bytes behind the end of a payload, a wrong lz4 content checksum, header keys that are not UTF-8. Brokers store what their own reader accepts.",
        action: "Read these offsets with the Java client, or let consumers of the clients named seek past them. Find the producer by its id; a leader of the profile strict refuses such batches.",
        kafka: "Compression.wrapForInput, DefaultRecord.readFrom; DefaultRecord gives attributes no meaning and takes any negative length for null",
    }
    TimestampSuspect {
        name: "timestamp-suspect",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        effects: [ChangesTimestamps],
        trace_of: [],
        joins: Nothing,
        meaning: "Timestamps of a header or of single records are in the future, before or at the beginning of 1970 or in the wrong unit, or the header contradicts its records.",
        causes: "A producer with a wrong clock, as of a machine that never set it, or one that sends seconds, microseconds or nanoseconds instead of milliseconds.",
        action: "Correct the producer. Retention by time uses the largest timestamp of a segment: a timestamp in the future keeps this segment and every later one until it has passed, very old timestamps get the segment deleted at the next check, and without a positive timestamp the modification time of the file counts. Limit timestamps with message.timestamp.after.max.ms and message.timestamp.before.max.ms (KIP-937).",
        kafka: "KIP-32, KIP-937; UnifiedLog.deleteRetentionMsBreachedSegments",
    }
    SequenceGap {
        name: "sequence-gap",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        effects: [],
        trace_of: [DisturbsProducer],
        joins: Nothing,
        meaning: "Sequence numbers of a producer are missing although no offset is: records were lost before they got an offset.",
        causes: "An unclean leader election or a truncated leader; or the broker forgot the producer (producer.id.expiration.ms) and accepted whatever came next.",
        action: "Ask the owners of the producing application what it sent at that time. Keep unclean.leader.election.enable off.",
        kafka: "KIP-98; ProducerAppendInfo.checkSequence: OutOfOrderSequenceException",
    }
    SequenceRepeat {
        name: "sequence-repeat",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        effects: [],
        trace_of: [DisturbsProducer, RepeatsSequences],
        joins: Nothing,
        meaning: "A sequence number occurs again, or goes back: records may be stored twice.",
        causes: "A retry was accepted as new because the broker had lost the producer's state.",
        action: "Consumers of this range read records twice; remove duplicates by key or by producer sequence.",
        kafka: "KIP-98; ProducerStateEntry.findDuplicateBatch",
    }
    UnknownStart {
        name: "unknown-start",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: Nothing,
        meaning: "The first sequence number of a producer in the log is not 0 although nothing before it was deleted.",
        causes: "Its earlier records went to a log that was lost, or deleted and created again; or its state had expired.",
        action: "If the topic was created again: nothing. Otherwise proceed as for sequence-gap.",
        kafka: "KIP-360: brokers since 2.5 accept such a batch",
    }
    EpochRegression {
        name: "epoch-regression",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        effects: [DisturbsProducer],
        trace_of: [],
        joins: Nothing,
        meaning: "A producer epoch is lower than an earlier one.",
        causes: "A zombie producer whose batches were accepted by a leader that had lost the producer's state.",
        action: "Check the records of both epochs with the owners of the application: both instances wrote.",
        kafka: "KIP-98, KIP-360; ProducerAppendInfo.checkProducerEpoch: InvalidProducerEpochException",
    }
    OpenTransaction {
        name: "open-transaction",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: WaitForEnd,
        matters_to_start: false, is_rebuildable: false,
        effects: [],
        trace_of: [DisturbsProducer, LosesMarkers, LosesEnd],
        joins: Nothing,
        meaning: "A transaction has no end marker.",
        causes: "The transaction is in progress; or its producer died, and the coordinator has not aborted it yet or has forgotten it (a hanging transaction).",
        action: "read_committed consumers stop at its first offset. If its producer is gone, end the transaction by its transactional id. If the coordinator has moved on (kafka-transactions.sh find-hanging), abort it in this partition.",
        kafka: "KIP-664, KIP-890; ProducerStateManager.firstUnstableOffset",
    }
    MarkerMissing {
        name: "marker-missing",
        severity: Error,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        effects: [],
        trace_of: [DisturbsProducer, LosesMarkers],
        joins: Nothing,
        meaning: "A transaction has no end marker although its producer has begun another one: the marker of that one decides about the records of both.",
        causes: "The coordinator ended the transaction without writing its marker here, or an unclean leader election lost it. Coordinators of Kafka 4.3 and 4.4 skip it where the partition has no leader at that moment, as when a broker has crashed and starts again: they take the partition for deleted. Or, before KIP-890, records came in after their transaction had ended.",
        action: "Find out from the owners of the producing application, or in __transaction_state, how the transaction ended: read_committed consumers may have read records here that were aborted, or have missed some that were committed. The marker cannot be written any more: records that were committed have to be sent again, and what was made of aborted ones undone.",
        kafka: "KIP-98, KIP-890; TransactionMarkerChannelManager skips partitions for which KRaftMetadataCache.getPartitionLeaderEndpoint has no node",
    }
    TransactionFault {
        name: "transaction-fault",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [DisturbsProducer, RepeatsSequences],
        trace_of: [],
        joins: Nothing,
        meaning: "A batch breaks the rules of transactions: plain data inside a transaction of the same producer, an unreadable marker, or a decreasing coordinator epoch.",
        causes: "A faulty client, a deposed coordinator, or damage before the checksum was computed.",
        action: "A broker that replays such data, or a marker that it cannot read, does not start: restore the partition from another replica before a restart.",
        kafka: "KIP-98; ProducerAppendInfo, EndTransactionMarker",
    }
    LimitExceeded {
        name: "limit-exceeded",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: SamePartition,
        meaning: "Something was not followed because it exceeds a limit of this program, which Kafka's own consumer does not have: a batch that was not decoded, producers, transactions or leader epochs beyond those that are tracked.",
        causes: "A very large batch or a payload made to inflate without end; or far more producers, aborted transactions or elections than brokers usually have in one partition.",
        action: "Read in the message what was not followed: nothing is known of it. If it is genuine, audit the segments one by one, or raise the limit.",
        kafka: "message.max.bytes limits what brokers accept; nothing limits what it inflates to",
    }
    Unreadable {
        name: "unreadable",
        severity: Error,
        records: Unknown, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: Nothing,
        meaning: "Something that was to be audited could not be read.",
        causes: "Missing permission, an I/O error, or not a regular file.",
        action: "Check the path, and run the audit as the broker's user. After I/O errors check the kernel log and replace the disk.",
        kafka: "LogDirFailureChannel takes the whole log directory offline on I/O errors",
    }
    UnknownFile {
        name: "unknown-file",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: Nothing,
        meaning: "A file or directory that Kafka does not put there.",
        causes: "An operator or another program left it.",
        action: "A directory whose name is not a topic and a partition keeps the broker from starting. Files inside a partition directory are ignored.",
        kafka: "LogManager.loadLogs, UnifiedLog.parseTopicPartitionName",
    }
    LeftoverFile {
        name: "leftover-file",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: SamePartition,
        meaning: "A file of an operation that was not completed: .cleaned, .swap, .deleted or .tmp.",
        causes: "The broker was stopped during compaction, a split, a deletion or the writing of a checkpoint.",
        action: "Nothing, where no offset is missing: the next start completes the operation or removes the file. Copy it first where some are.",
        kafka: "LogLoader.removeTempFilesAndCollectSwapFiles",
    }
    IndexMissing {
        name: "index-missing",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: SamePartition,
        meaning: "A segment has no .index or no .timeindex.",
        causes: "The file was deleted, often on purpose to have it rebuilt, or not copied.",
        action: "Nothing: the next start recovers the segment, which rebuilds the .index and creates an empty .timeindex.",
        kafka: "LogLoader.loadSegmentFiles, LogSegment.sanityCheck",
    }
    IndexMismatch {
        name: "index-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: true,
        effects: [],
        trace_of: [RemovesOffsets, MisplacesBatches, MovesBatches, LosesEnd],
        joins: SameFile,
        meaning: "The entries or the size of an .index contradict the segment.",
        causes: "The segment was damaged, truncated or copied without its index; or the index was damaged, by a disk that lost writes or in a copy of a running broker.",
        action: "After a clean stop Kafka takes the end of the log from the .index of the last segment without checking it, and may begin at offset 0 again. If the .index is deleted, the next start rebuilds all indexes of the segment, but truncates it at the first batch that it cannot read: the report of ottla audit says whether that costs records. ottla rebuild writes the files elsewhere.",
        kafka: "OffsetIndex, LogSegment.readNextOffset; LogLoader recovers a segment without an .index",
    }
    TimeindexMismatch {
        name: "timeindex-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: true,
        effects: [],
        trace_of: [RemovesOffsets, MisplacesBatches, ChangesTimestamps, LosesEnd],
        joins: SameFile,
        meaning: "The entries or the size of a .timeindex contradict the segment.",
        causes: "As for index-mismatch; or only the .timeindex was deleted, and it grew again with later batches.",
        action: "offsetsForTimes may skip records, and retention by time uses a wrong age. If the .index and the .timeindex are deleted, the next start rebuilds both, but truncates the segment at the first batch that it cannot read: the report of ottla audit says whether that costs records. If only the .timeindex is deleted, it stays empty. ottla rebuild writes the files elsewhere.",
        kafka: "TimeIndex, LogSegment.findOffsetByTimestamp, LogSegment.largestTimestamp",
    }
    TxnindexMismatch {
        name: "txnindex-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: true,
        effects: [],
        trace_of: [DisturbsProducer, RemovesOffsets, HidesOffsets, MisplacesBatches, LosesEnd],
        joins: SameFile,
        meaning: "A .txnindex does not list exactly the aborted transactions whose markers are in its segment.",
        causes: "The file was deleted, left out of a copy, or damaged.",
        action: "read_committed consumers get records of aborted transactions that are not listed, and miss committed records that are listed by mistake. If the .index of the segment is deleted, the next start rebuilds the .txnindex, but truncates the segment at the first batch that it cannot read: the report of ottla audit says whether that costs records. ottla rebuild writes the files elsewhere.",
        kafka: "KIP-98; TransactionIndex, AbortedTxn, LogSegment.collectAbortedTxns",
    }
    SnapshotMismatch {
        name: "snapshot-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: true,
        effects: [],
        trace_of: [RemovesOffsets, HidesOffsets, LosesEnd],
        joins: SameFile,
        meaning: "A producer snapshot cannot be read, or contradicts the log before its offset.",
        causes: "The file was damaged, belongs to another offset or log, or the end of the log was lost.",
        action: "If the file is deleted, Kafka uses the previous snapshot, or reads the log from its start: the report of ottla audit says whether that costs records. A wrong snapshot that can be read makes the broker reject a producer's next batch, or miss a gap in its sequence numbers.",
        kafka: "KIP-98, KIP-360; ProducerStateManager.loadFromSnapshot, truncateAndReload",
    }
    CheckpointMismatch {
        name: "checkpoint-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [LosesEnd],
        joins: Nothing,
        meaning: "A recovery point, log start offset or high watermark contradicts the log, or its file cannot be read.",
        causes: "Records at the end of the log were lost after they had been acknowledged: a torn write, a missing last segment, a restored copy. Or the file itself was damaged or edited.",
        action: "Compare the end of the log with another replica before the broker starts: what is missing here may exist there. From a file that it cannot read Kafka learns nothing: it recovers all segments, or begins logs with their first file.",
        kafka: "CheckpointFile, OffsetCheckpointFile; LogManager.loadLogs",
    }
    UnexplainedLogStart {
        name: "unexplained-log-start",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: Nothing,
        meaning: "The log start offset is above where the first leader epoch begins: no broker has deleted the records below it.",
        causes: "log-start-offset-checkpoint was edited, mixed up with another checkpoint, or copied from elsewhere: a broker that deletes records moves the start of the first leader epoch up first. Or the machine lost power just after it had.",
        action: "Copy the directory before the broker starts: consumers do not get these records, and the broker deletes segments of which nothing is above the log start offset. Compare the log start offset with that of the other replicas. If the records were not deleted on purpose, remove the line of this partition from log-start-offset-checkpoint while the broker is stopped, and lower the count in the second line by one: the log then begins with its first file.",
        kafka: "UnifiedLog.maybeIncrementLogStartOffset, LeaderEpochFileCache.truncateFromStart; KIP-107",
    }
    EpochCheckpointMismatch {
        name: "epoch-checkpoint-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: true,
        effects: [],
        trace_of: [ChangesEpochs, LosesEnd],
        joins: SameFile,
        meaning: "leader-epoch-checkpoint cannot be read, is out of order, or contradicts the log.",
        causes: "The file was damaged or edited, or the end of the log was lost.",
        action: "A broker that cannot read the file does not start, or takes the log directory offline: the report of ottla audit says what was tried. Epochs beyond the end of the log are dropped at the next start.",
        kafka: "KIP-101; LeaderEpochCheckpointFile, LeaderEpochFileCache",
    }
    MetadataMismatch {
        name: "metadata-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: SameFile,
        meaning: "partition.metadata or meta.properties cannot be read, or the partition has another topic id than the other partitions of its topic.",
        causes: "The file was damaged or edited, or a directory was copied from another cluster or from an earlier topic of the same name.",
        action: "Find out where the directory came from. A broker rejects a partition with a foreign topic id, and does not start with a meta.properties that it cannot read.",
        kafka: "KIP-516; PartitionMetadataFile, MetaPropertiesEnsemble",
    }
    DuplicatePartition {
        name: "duplicate-partition",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: Nothing,
        meaning: "Two log directories of one broker hold the same partition.",
        causes: "A directory was copied or moved by hand, or a disk came back after its partitions had been moved to another one.",
        action: "Compare the ends of both logs to find out which one is in use, and move the other away before the broker starts.",
        kafka: "LogManager.loadLogs: IllegalStateException, duplicate log directories; KIP-113",
    }
    ReplicaDifference {
        name: "replica-difference",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [RemovesOffsets, HidesOffsets, ChangesBytes, LosesEnd],
        joins: Nothing,
        meaning: "Copies of one partition have different bytes at the same offsets, or do not have the same offsets.",
        causes: "Damage or loss on one copy, an unclean leader election, a follower that lags behind, or a disk that changed bytes.",
        action: "Before any broker starts, save what only one replica has (table `differences`). Then let Kafka copy from a good replica: stop the broker of a bad one, move its partition directory away, and start it.",
        kafka: "KIP-101, KIP-279, KIP-966; ReplicaFetcherThread.truncate, OffsetsForLeaderEpoch",
    }
    CommitBeyondEnd {
        name: "commit-beyond-end",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [LosesEnd],
        joins: Nothing,
        meaning: "A group has committed an offset beyond the end of the partition's log.",
        causes: "Records at the end of the log were lost after the group had read them: an unclean leader election, a torn write, a restored copy. Or the topic was deleted and created again under the same name.",
        action: "Look for a replica whose log ends later. If there is none, the group resets its position according to auto.offset.reset, or stops if that is none: set its offset with kafka-consumer-groups.sh --reset-offsets before it reads, while it has no running members.",
        kafka: "OffsetOutOfRangeException; KIP-320",
    }
    CommitBelowStart {
        name: "commit-below-start",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: Nothing,
        meaning: "A group has committed an offset below the log start offset: the record is deleted.",
        causes: "The group has read nothing for longer than retention keeps records, or DeleteRecords overtook it.",
        action: "If the group is in use, it has missed the records in between and continues according to auto.offset.reset. If it is not, delete it with kafka-consumer-groups.sh --delete.",
        kafka: "OffsetOutOfRangeException; auto.offset.reset",
    }
    CommitInDamage {
        name: "commit-in-damage",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [RemovesOffsets, HidesOffsets, ChangesBytes],
        joins: Nothing,
        meaning: "A group has committed an offset whose record is damaged, and will resume there.",
        causes: "The group read up to the damage and stopped.",
        action: "Restore the partition from another replica. If there is none, stop all members of the group and set its offset to the next good one with kafka-consumer-groups.sh --reset-offsets; the records in between are lost.",
        kafka: "CorruptRecordException in the consumer",
    }
    UndecodedRecord {
        name: "undecoded-record",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: SamePartition,
        meaning: "A record of a coordinator's topic, with committed offsets or a transactional id, cannot be decoded.",
        causes: "It was written by a later release of Kafka than this tool knows, or by another program, or was damaged before its checksum was computed.",
        action: "Read it with the kafka-dump-log.sh of the broker's release, with --offsets-decoder or --transaction-log-decoder. A coordinator that cannot decode a record does not load its partition.",
        kafka: "GroupMetadataManager, TransactionStateManager",
    }
    DeletedMeanwhile {
        name: "deleted-meanwhile",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: SamePartition,
        meaning: "A segment at the start of a log was deleted while it was audited.",
        causes: "The broker runs: retention or DeleteRecords.",
        action: "Nothing: the log starts behind it now. For one moment of everything, audit a snapshot of the file system, or stop the broker.",
        kafka: "UnifiedLog.deleteOldSegments",
    }
    MissingPartition {
        name: "missing-partition",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        effects: [],
        trace_of: [],
        joins: Nothing,
        meaning: "A checkpoint has high watermarks of partitions that have no directory.",
        causes: "The directory was deleted, renamed or moved away, or was never copied. Or the broker was killed moments after a topic was deleted or a partition was moved to another disk.",
        action: "If nobody deleted or moved it, look for the directory before the broker starts: under another name, in lost+found, in backups and on the other replicas. A broker that starts as leader without it begins the log anew at offset 0.",
        kafka: "ReplicaManager.checkpointHighWatermarks, LogManager.getOrCreateLog",
    }
}

impl FindingKind {
    /// The stable name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The kind of a name, if there is one.
    ///
    /// # Examples
    /// ```
    /// use ottla_audit::FindingKind;
    ///
    /// assert_eq!(FindingKind::from_name("crc-mismatch"), Some(FindingKind::CrcMismatch));
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
