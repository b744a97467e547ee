//! The catalogue of findings: one row per kind, from which `ottla explain`, the documentation and
//! every report are made.
//!
//! A name states the fault, is kebab-case, and is never renamed or used for something else.

use crate::catalogue::row::{ByteState, ConsumerEffect, RecordState, Row};
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
        meaning: "A batch is framed rightly, but its bytes do not have the stored CRC.",
        causes: "Bits changed on disk, in memory, or on the way of a copy, after the producer took the checksum.",
        action: "Restore the batch from another replica: stop the broker, move the partition directory away and let it replicate. Without one, consumers must seek to the next good offset; the records between are lost.",
        kafka: "DefaultRecordBatch.ensureValid; consumers stop with CorruptRecordException unless check.crcs is off",
    }
    DamagedRange {
        name: "damaged-range",
        severity: Error,
        records: Unreadable, bytes: NoBatch, consumers: StopAtDamage,
        matters_to_start: true, is_rebuildable: false,
        meaning: "Bytes inside a segment cannot be read as batches, up to the next sound batch.",
        causes: "A wrong size field, lost or inserted bytes, a sector that was never written or written elsewhere.",
        action: "Restore the partition from another replica. Without one, consumers must seek to the next good offset; Kafka itself cannot read anything behind the damage, so do not restart uncleanly: recovery cuts the log here.",
        kafka: "FileLogInputStream; LogSegment.recover truncates at the first batch it cannot read",
    }
    TruncatedTail {
        name: "truncated-tail",
        severity: Error,
        records: Unreadable, bytes: NoBatch, consumers: StopAtDamage,
        matters_to_start: true, is_rebuildable: false,
        meaning: "A segment ends inside a batch.",
        causes: "Active segment: the broker was killed while writing, or still writes. Closed segment: the file was cut, by a full disk or a broken copy.",
        action: "Active segment after a kill: nothing, the next start cuts the partial batch off. Closed segment: restore it from another replica before any restart.",
        kafka: "LogSegment.recover; LogLoader.recoverSegment",
    }
    GarbageTail {
        name: "garbage-tail",
        severity: Error,
        records: AsWritten, bytes: NoBatch, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "Bytes after the last batch of a segment are neither a batch nor zeros.",
        causes: "A torn page of an unclean stop, or foreign bytes appended to the file.",
        action: "Active segment after an unclean stop: nothing, recovery cuts them off. After a clean stop the broker may refuse to start: remove .kafka_cleanshutdown so that it recovers, or cut the file at this position.",
        kafka: "LogSegment.recover; a clean start raises CorruptRecordException here",
    }
    ZeroTail {
        name: "zero-tail",
        severity: Info,
        records: AsWritten, bytes: Zeros, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "Zeros stand after the last batch of a segment.",
        causes: "The file was preallocated (preallocate=true), or extents were allocated but not written before a crash.",
        action: "Active segment: nothing. Closed segment: no record is lost, but a recovery that reaches it deletes every later segment; cut the file at this position while the broker is stopped.",
        kafka: "FileRecords.open with preallocate; LogLoader.recoverLog",
    }
    MagicFault {
        name: "magic-fault",
        severity: Error,
        records: Altered, bytes: FaultyBatch, consumers: StopAtDamage,
        matters_to_start: true, is_rebuildable: false,
        meaning: "The magic byte of a batch is wrong although the rest agrees with its CRC.",
        causes: "One flipped byte: the CRC of magic 2 does not cover the magic byte.",
        action: "Restore from another replica; the records themselves are whole, and writing the byte back repairs them.",
        kafka: "ByteBufferLogInputStream: CorruptRecordException for an unknown magic; recovery keeps such a batch",
    }
    BaseOffsetWrong {
        name: "base-offset-wrong",
        severity: Error,
        records: Altered, bytes: MisplacedBatch, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "The base offset of a batch does not fit between its neighbours although its CRC is right.",
        causes: "A flipped bit: the CRC does not cover the base offset.",
        action: "Restore from another replica; the records are whole, only their offsets are wrong.",
        kafka: "The base offset is outside the CRC of DefaultRecordBatch",
    }
    LeaderEpochFault {
        name: "leader-epoch-fault",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "The partition leader epoch goes back from one batch to the next.",
        causes: "A flipped bit (the CRC does not cover the epoch), or batches of a deposed leader.",
        action: "Compare with leader-epoch-checkpoint and another replica. Followers truncate by these epochs (KIP-101).",
        kafka: "KIP-101, KIP-279; LeaderEpochFileCache",
    }
    OffsetGap {
        name: "offset-gap",
        severity: Warning,
        records: Missing, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "Offsets are missing between two batches.",
        causes: "Lawful: compaction, and aborted or control records it removed. Otherwise batches were taken out or lost.",
        action: "In a compacted topic nothing. Elsewhere compare with another replica.",
        kafka: "LogCleaner; consumers skip gaps silently",
    }
    OffsetRepeat {
        name: "offset-repeat",
        severity: Error,
        records: AsWritten, bytes: MisplacedBatch, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "Offsets were already there: a batch begins at or below the end of the one before it.",
        causes: "A segment or batch copied twice, a write that went to the wrong place, two leaders at once.",
        action: "Restore from another replica. Followers stop at this batch, and a recovery that indexes it empties the segment.",
        kafka: "LocalLog.append checks monotonic offsets on followers; OffsetIndex.append refuses offsets that go back",
    }
    OutOfSegment {
        name: "out-of-segment",
        severity: Error,
        records: AsWritten, bytes: MisplacedBatch, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "A batch has offsets that the name of its file does not allow.",
        causes: "A file that was renamed or copied under another name, or a wrong base offset.",
        action: "Find out where the file belongs; move it away while the broker is stopped, and let the partition replicate.",
        kafka: "LogSegment.canConvertToRelativeOffset; LogLoader splits or refuses such segments",
    }
    MissingSegment {
        name: "missing-segment",
        severity: Warning,
        records: Missing, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "Between two segment files offsets are missing that a whole file should hold.",
        causes: "A segment file was deleted or not copied; in a compacted topic all its records may have been removed.",
        action: "Look for the file in backups, lost+found and the other replicas. Consumers skip these offsets silently.",
        kafka: "LogSegments; no class of Kafka checks it",
    }
    Undecodable {
        name: "undecodable",
        severity: Error,
        records: AsWritten, bytes: FaultyBatch, consumers: StopAtBatch,
        matters_to_start: true, is_rebuildable: false,
        meaning: "The CRC is right, but the codec is unknown or refuses the payload.",
        causes: "Damage before the checksum was taken: a faulty producer, proxy or codec library.",
        action: "Find the producer by its id. Consumers stop here and must seek past the batch; the cleaner marks the partition uncleanable.",
        kafka: "CompressionType, Compression.wrapForInput; LogCleanerManager.uncleanablePartitions",
    }
    RecordFault {
        name: "record-fault",
        severity: Error,
        records: AsWritten, bytes: FaultyBatch, consumers: StopAtBatch,
        matters_to_start: true, is_rebuildable: false,
        meaning: "The CRC is right, but records contradict themselves or their batch header.",
        causes: "A faulty producer or proxy, or a broker bug in recompression or conversion.",
        action: "Find the producer by its id. Consumers may stop here and must then seek past the batch.",
        kafka: "DefaultRecord.readFrom, LogValidator",
    }
    TimestampSuspect {
        name: "timestamp-suspect",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        meaning: "Timestamps lie in the future, before 1970 or in another unit, or the header contradicts its records.",
        causes: "A producer with a wrong clock, or one that gives seconds, microseconds or nanoseconds for milliseconds.",
        action: "Correct the producer. Retention by time goes by the largest timestamp of a segment: one in the future keeps this and every later segment until it has passed, old ones have the segment deleted at once, and without a positive one the time of the file counts. Bound them with message.timestamp.after.max.ms and message.timestamp.before.max.ms (KIP-937).",
        kafka: "KIP-32, KIP-937; UnifiedLog.deleteRetentionMsBreachedSegments",
    }
    SequenceGap {
        name: "sequence-gap",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        meaning: "Sequence numbers of a producer are missing although no offset is: records were lost before the log numbered them.",
        causes: "An unclean leader election or a truncated leader; or the broker forgot the producer (producer.id.expiration.ms) and took what came.",
        action: "Ask the producing application what it sent then. Keep unclean.leader.election.enable off.",
        kafka: "KIP-98; ProducerAppendInfo.checkSequence: OutOfOrderSequenceException",
    }
    SequenceRepeat {
        name: "sequence-repeat",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        meaning: "Sequence numbers were already stored: records are there twice, or a sequence goes back.",
        causes: "A retry that was taken for new because the broker had lost the producer's state.",
        action: "Consumers of this range see records twice; remove duplicates there by key or producer sequence.",
        kafka: "KIP-98; ProducerStateEntry.findDuplicateBatch",
    }
    UnknownStart {
        name: "unknown-start",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        meaning: "The first sequence of a producer in the log is not 0 although nothing before it was deleted.",
        causes: "Its earlier records went to a log that was lost or deleted and created again, or its state had expired.",
        action: "Nothing if the topic was created anew; otherwise as for sequence-gap.",
        kafka: "KIP-360: brokers since 2.5 take such a batch",
    }
    EpochRegression {
        name: "epoch-regression",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        meaning: "A producer epoch is lower than one before it.",
        causes: "A zombie producer that a leader without its state took.",
        action: "Check the records of both epochs with the application: both instances wrote.",
        kafka: "KIP-98, KIP-360; ProducerAppendInfo.checkProducerEpoch: InvalidProducerEpochException",
    }
    OpenTransaction {
        name: "open-transaction",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        meaning: "A transaction has no end marker.",
        causes: "It is in progress; or its producer died and the coordinator has not aborted it yet, or has forgotten it (a hanging transaction).",
        action: "read_committed consumers stop at its first offset. If its producer is gone, end it by its transactional id; if its coordinator has moved on (kafka-transactions.sh find-hanging), abort it in this partition.",
        kafka: "KIP-664, KIP-890; ProducerStateManager.firstUnstableOffset",
    }
    TransactionFault {
        name: "transaction-fault",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "A batch breaks the rules of transactions: plain data inside a transaction of the same producer, an unreadable marker, or a coordinator epoch that goes back.",
        causes: "A faulty client, a deposed coordinator, or damage before the checksum was taken.",
        action: "A broker that replays plain data inside a transaction, or a marker it cannot read, gives up starting: restore from another replica before a restart.",
        kafka: "KIP-98; ProducerAppendInfo, EndTransactionMarker",
    }
    LimitExceeded {
        name: "limit-exceeded",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "A batch was not looked into because it exceeds a bound of this program.",
        causes: "Very large batches, or a payload made to inflate without end.",
        action: "Raise the bound and audit again if the batch is genuine.",
        kafka: "message.max.bytes bounds what brokers take; nothing bounds what it inflates to",
    }
    Unreadable {
        name: "unreadable",
        severity: Error,
        records: Unknown, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "Something asked for could not be read.",
        causes: "No permission, an I/O error of the disk, or not a file.",
        action: "Read as the user of the broker; on I/O errors look into the kernel log and replace the disk.",
        kafka: "LogDirFailureChannel takes the whole log directory offline on I/O errors",
    }
    UnknownFile {
        name: "unknown-file",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "A file or directory that Kafka does not put there.",
        causes: "Left by an operator or another program.",
        action: "A directory whose name is no topic and partition keeps a broker from starting; files inside a partition are ignored.",
        kafka: "LogManager.loadLogs, UnifiedLog.parseTopicPartitionName",
    }
    LeftoverFile {
        name: "leftover-file",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "A file of an operation that did not end: .cleaned, .swap, .deleted or .tmp.",
        causes: "The broker was stopped during compaction, a split, a deletion or the writing of a checkpoint.",
        action: "Nothing: the next start completes the operation or removes the file.",
        kafka: "LogLoader.removeTempFilesAndCollectSwapFiles",
    }
    IndexMissing {
        name: "index-missing",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: false, is_rebuildable: false,
        meaning: "A segment has no .index or no .timeindex.",
        causes: "The file was deleted, often on purpose to have it built anew, or not copied.",
        action: "Nothing: the next start builds the .index anew by recovering the segment, and an empty .timeindex.",
        kafka: "LogLoader.loadSegmentFiles, LogSegment.sanityCheck",
    }
    IndexMismatch {
        name: "index-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: true,
        meaning: "An entry or the size of an .index contradicts the segment.",
        causes: "The segment was damaged, cut or copied without its index; or the index itself was, on a disk that lost writes or in a copy of a running broker.",
        action: "Delete the .index while the broker is stopped: the next start recovers the segment and builds all its indexes anew; or copy there what ottla rebuild makes. For the last segment do it before the next start: after a clean stop Kafka takes the end of the log from this file, unchecked, and may begin at offset 0 again.",
        kafka: "OffsetIndex, LogSegment.readNextOffset; LogLoader recovers a segment without an .index",
    }
    TimeindexMismatch {
        name: "timeindex-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: true,
        meaning: "An entry or the size of a .timeindex contradicts the segment.",
        causes: "As for index-mismatch; or the .timeindex was deleted alone, and grew again with what came later.",
        action: "Delete the .index and the .timeindex while the broker is stopped: the next start builds both anew; or copy there what ottla rebuild makes. Without the .index gone the .timeindex stays empty. Until then offsetsForTimes may skip records, and retention by time goes by a wrong age.",
        kafka: "TimeIndex, LogSegment.findOffsetByTimestamp, LogSegment.largestTimestamp",
    }
    TxnindexMismatch {
        name: "txnindex-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: true,
        meaning: "A .txnindex does not list exactly the aborted transactions whose markers are in its segment.",
        causes: "The file was deleted, left out of a copy, or damaged.",
        action: "read_committed consumers get records of aborted transactions that are not listed, and miss committed ones that are listed wrongly. Delete the .index of the segment while the broker is stopped: the next start recovers the segment and builds the .txnindex anew; or copy there what ottla rebuild makes.",
        kafka: "KIP-98; TransactionIndex, AbortedTxn, LogSegment.collectAbortedTxns",
    }
    SnapshotMismatch {
        name: "snapshot-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: true,
        meaning: "A producer snapshot cannot be read, or contradicts the log before it.",
        causes: "The file was damaged, or is one of another offset or log; or the end of the log was lost.",
        action: "Delete it while the broker is stopped: Kafka takes the one before, or reads the log from its start. A wrong one that can be read makes a broker refuse the next batch of a producer, or take a gap for none.",
        kafka: "KIP-98, KIP-360; ProducerStateManager.loadFromSnapshot, truncateAndReload",
    }
    CheckpointMismatch {
        name: "checkpoint-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "A recovery point, log start offset or high watermark cannot be true of the log, or their file cannot be read.",
        causes: "Records at the end of the log were lost after they had been acknowledged: a torn write, a missing last segment, a restored copy. Or the file itself was damaged or edited.",
        action: "Compare the end of the log with another replica before the broker starts: what is missing here may be there. A file that cannot be read may be removed: Kafka then recovers all segments, or begins logs with their first file.",
        kafka: "CheckpointFile, OffsetCheckpointFile; LogManager.loadLogs",
    }
    EpochCheckpointMismatch {
        name: "epoch-checkpoint-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: true,
        meaning: "leader-epoch-checkpoint cannot be read, is out of order, or contradicts the log.",
        causes: "The file was damaged or edited, or the end of the log was lost.",
        action: "If it cannot be read the broker takes the log directory offline: remove the file while the broker is stopped, and Kafka builds it from the batches. Epochs beyond the end of the log are dropped at the next start.",
        kafka: "KIP-101; LeaderEpochCheckpointFile, LeaderEpochFileCache",
    }
    MetadataMismatch {
        name: "metadata-mismatch",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "partition.metadata or meta.properties cannot be read, or the partition has another topic id than the others of its topic.",
        causes: "The file was damaged or edited, or a directory was copied from another cluster or an earlier topic of the same name.",
        action: "Find out where the directory came from. A broker refuses a partition with a foreign topic id, and does not start with a meta.properties it cannot read.",
        kafka: "KIP-516; PartitionMetadataFile, MetaPropertiesEnsemble",
    }
    DuplicatePartition {
        name: "duplicate-partition",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "Two log directories of one broker hold the same partition.",
        causes: "A directory was copied or moved by hand, or a disk came back after its partitions had been moved to another one.",
        action: "Find out which is the one in use, from the ends of both, and move the other away before the broker starts.",
        kafka: "LogManager.loadLogs: IllegalStateException, duplicate log directories; KIP-113",
    }
    ReplicaDifference {
        name: "replica-difference",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "Copies of one partition hold different bytes for the same offsets, or do not hold the same offsets.",
        causes: "Damage or loss on one copy, an unclean leader election, a follower that lags behind, or a disk that changed bytes.",
        action: "Keep a copy of what only one replica has (table `differences`) before any broker starts. Then let Kafka copy from a good replica: stop the broker of a bad one, move its partition directory away, start it.",
        kafka: "KIP-101, KIP-279, KIP-966; ReplicaFetcherThread.truncate, OffsetsForLeaderEpoch",
    }
    CommitBeyondEnd {
        name: "commit-beyond-end",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "A group has committed an offset that is beyond the end of the partition's log.",
        causes: "Records at the end of the log were lost after the group had read them: an unclean leader election, a torn write, a restored copy. Or the topic was deleted and created again under its name.",
        action: "Look for a replica whose log ends later. Without one the group starts over by auto.offset.reset, or stops where that is none: set its offset with kafka-consumer-groups.sh --reset-offsets before it reads.",
        kafka: "OffsetOutOfRangeException; KIP-320",
    }
    CommitBelowStart {
        name: "commit-below-start",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "A group has committed an offset whose record is deleted: it is before the log start offset.",
        causes: "The group has read nothing for longer than retention keeps records, or DeleteRecords overtook it.",
        action: "If the group is in use it has missed the records between, and goes on by auto.offset.reset. If it is not, delete it with kafka-consumer-groups.sh --delete.",
        kafka: "OffsetOutOfRangeException; auto.offset.reset",
    }
    CommitInDamage {
        name: "commit-in-damage",
        severity: Warning,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "A group will read on at an offset that damage took.",
        causes: "The group read up to the damage and stopped there.",
        action: "Set its offset to the next good one with kafka-consumer-groups.sh --reset-offsets; the records between are lost.",
        kafka: "CorruptRecordException in the consumer",
    }
    UndecodedRecord {
        name: "undecoded-record",
        severity: Info,
        records: AsWritten, bytes: Valid, consumers: Continue,
        matters_to_start: true, is_rebuildable: false,
        meaning: "Records of a coordinator's topic, of committed offsets or of transactional ids, cannot be decoded.",
        causes: "A release of Kafka later than this tool wrote them, another program did, or they were damaged before their checksum was taken.",
        action: "Read them with the kafka-dump-log.sh of the broker's release, --offsets-decoder or --transaction-log-decoder. A coordinator that cannot decode a record does not load its partition.",
        kafka: "GroupMetadataManager, TransactionStateManager",
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
