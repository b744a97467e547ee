//! The catalogue of findings: one row per kind, from which `ottla explain`, the documentation and
//! every report are made; and [`Finding`], one thing found.
//!
//! A name states the fault, is kebab-case, and is never renamed or used for something else.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    /// Worth knowing; nothing is lost and nothing stops.
    Info,
    /// Records may be missing, or something will go wrong later.
    Warning,
    /// Bytes are damaged, or readers stop or get wrong data.
    Error,
}

impl Severity {
    /// `info`, `warning` or `error`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! catalogue {
    ($(
        $kind:ident {
            name: $name:literal,
            severity: $severity:ident,
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
                        kind: Self::$kind,
                        name: $name,
                        severity: Severity::$severity,
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

/// One row of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The kind.
    pub kind: FindingKind,
    /// Its stable name.
    pub name: &'static str,
    /// How grave it usually is; a finding may be less or more so, and then says why.
    pub severity: Severity,
    /// What it says, in one sentence.
    pub meaning: &'static str,
    /// What usually brings it about.
    pub causes: &'static str,
    /// What to do.
    pub action: &'static str,
    /// The class or KIP of Kafka that knows about it.
    pub kafka: &'static str,
}

catalogue! {
    CrcMismatch {
        name: "crc-mismatch",
        severity: Error,
        meaning: "A batch is framed rightly, but its bytes do not have the stored CRC.",
        causes: "Bits changed on disk, in memory, or on the way of a copy, after the producer took the checksum.",
        action: "Restore the batch from another replica: stop the broker, move the partition directory away and let it replicate. Without one, consumers must seek to the next good offset; the records between are lost.",
        kafka: "DefaultRecordBatch.ensureValid; consumers stop with CorruptRecordException unless check.crcs is off",
    }
    DamagedRange {
        name: "damaged-range",
        severity: Error,
        meaning: "Bytes inside a segment cannot be read as batches, up to the next sound batch.",
        causes: "A wrong size field, lost or inserted bytes, a sector that was never written or written elsewhere.",
        action: "Restore the partition from another replica. Without one, consumers must seek to the next good offset; Kafka itself cannot read anything behind the damage, so do not restart uncleanly: recovery cuts the log here.",
        kafka: "FileLogInputStream; LogSegment.recover truncates at the first batch it cannot read",
    }
    TruncatedTail {
        name: "truncated-tail",
        severity: Error,
        meaning: "A segment ends inside a batch.",
        causes: "Active segment: the broker was killed while writing, or still writes. Closed segment: the file was cut, by a full disk or a broken copy.",
        action: "Active segment after a kill: nothing, the next start cuts the partial batch off. Closed segment: restore it from another replica before any restart.",
        kafka: "LogSegment.recover; LogLoader.recoverSegment",
    }
    GarbageTail {
        name: "garbage-tail",
        severity: Error,
        meaning: "Bytes after the last batch of a segment are neither a batch nor zeros.",
        causes: "A torn page of an unclean stop, or foreign bytes appended to the file.",
        action: "Active segment after an unclean stop: nothing, recovery cuts them off. After a clean stop the broker may refuse to start: remove .kafka_cleanshutdown so that it recovers, or cut the file at this position.",
        kafka: "LogSegment.recover; a clean start raises CorruptRecordException here",
    }
    ZeroTail {
        name: "zero-tail",
        severity: Info,
        meaning: "Zeros stand after the last batch of a segment.",
        causes: "The file was preallocated (preallocate=true), or extents were allocated but not written before a crash.",
        action: "Active segment: nothing. Closed segment: no record is lost, but a recovery that reaches it deletes every later segment; cut the file at this position while the broker is stopped.",
        kafka: "FileRecords.open with preallocate; LogLoader.recoverLog",
    }
    MagicFault {
        name: "magic-fault",
        severity: Error,
        meaning: "The magic byte of a batch is wrong although the rest agrees with its CRC.",
        causes: "One flipped byte: the CRC of magic 2 does not cover the magic byte.",
        action: "Restore from another replica; the records themselves are whole, and writing the byte back repairs them.",
        kafka: "ByteBufferLogInputStream: CorruptRecordException for an unknown magic; recovery keeps such a batch",
    }
    BaseOffsetWrong {
        name: "base-offset-wrong",
        severity: Error,
        meaning: "The base offset of a batch does not fit between its neighbours although its CRC is right.",
        causes: "A flipped bit: the CRC does not cover the base offset.",
        action: "Restore from another replica; the records are whole, only their offsets are wrong.",
        kafka: "The base offset is outside the CRC of DefaultRecordBatch",
    }
    LeaderEpochFault {
        name: "leader-epoch-fault",
        severity: Warning,
        meaning: "The partition leader epoch goes back from one batch to the next.",
        causes: "A flipped bit (the CRC does not cover the epoch), or batches of a deposed leader.",
        action: "Compare with leader-epoch-checkpoint and another replica. Followers truncate by these epochs (KIP-101).",
        kafka: "KIP-101, KIP-279; LeaderEpochFileCache",
    }
    OffsetGap {
        name: "offset-gap",
        severity: Warning,
        meaning: "Offsets are missing between two batches.",
        causes: "Lawful: compaction, and aborted or control records it removed. Otherwise batches were taken out or lost.",
        action: "In a compacted topic nothing. Elsewhere compare with another replica.",
        kafka: "LogCleaner; consumers skip gaps silently",
    }
    OffsetRepeat {
        name: "offset-repeat",
        severity: Error,
        meaning: "Offsets were already there: a batch begins at or below the end of the one before it.",
        causes: "A segment or batch copied twice, a write that went to the wrong place, two leaders at once.",
        action: "Restore from another replica. Followers stop at this batch, and a recovery that indexes it empties the segment.",
        kafka: "LocalLog.append checks monotonic offsets on followers; OffsetIndex.append refuses offsets that go back",
    }
    OutOfSegment {
        name: "out-of-segment",
        severity: Error,
        meaning: "A batch has offsets that the name of its file does not allow.",
        causes: "A file that was renamed or copied under another name, or a wrong base offset.",
        action: "Find out where the file belongs; move it away while the broker is stopped, and let the partition replicate.",
        kafka: "LogSegment.canConvertToRelativeOffset; LogLoader splits or refuses such segments",
    }
    MissingSegment {
        name: "missing-segment",
        severity: Warning,
        meaning: "Between two segment files offsets are missing that a whole file should hold.",
        causes: "A segment file was deleted or not copied; in a compacted topic all its records may have been removed.",
        action: "Look for the file in backups, lost+found and the other replicas. Consumers skip these offsets silently.",
        kafka: "LogSegments; no class of Kafka checks it",
    }
    Undecodable {
        name: "undecodable",
        severity: Error,
        meaning: "The CRC is right, but the codec is unknown or refuses the payload.",
        causes: "Damage before the checksum was taken: a faulty producer, proxy or codec library.",
        action: "Find the producer by its id. Consumers stop here and must seek past the batch; the cleaner marks the partition uncleanable.",
        kafka: "CompressionType, Compression.wrapForInput; LogCleanerManager.uncleanablePartitions",
    }
    RecordFault {
        name: "record-fault",
        severity: Error,
        meaning: "The CRC is right, but records contradict themselves or their batch header.",
        causes: "A faulty producer or proxy, or a broker bug in recompression or conversion.",
        action: "Find the producer by its id. Consumers may stop here and must then seek past the batch.",
        kafka: "DefaultRecord.readFrom, LogValidator",
    }
    TimestampSuspect {
        name: "timestamp-suspect",
        severity: Warning,
        meaning: "Timestamps lie in the future, before 1970 or in another unit, or the header contradicts its records.",
        causes: "A producer with a wrong clock, or one that gives seconds, microseconds or nanoseconds for milliseconds.",
        action: "Correct the producer. Retention by time goes by the largest timestamp of a segment: one in the future keeps this and every later segment until it has passed, old ones have the segment deleted at once, and without a positive one the time of the file counts. Bound them with message.timestamp.after.max.ms and message.timestamp.before.max.ms (KIP-937).",
        kafka: "KIP-32, KIP-937; UnifiedLog.deleteRetentionMsBreachedSegments",
    }
    SequenceGap {
        name: "sequence-gap",
        severity: Warning,
        meaning: "Sequence numbers of a producer are missing although no offset is: records were lost before the log numbered them.",
        causes: "An unclean leader election or a truncated leader; or the broker forgot the producer (producer.id.expiration.ms) and took what came.",
        action: "Ask the producing application what it sent then. Keep unclean.leader.election.enable off.",
        kafka: "KIP-98; ProducerAppendInfo.checkSequence: OutOfOrderSequenceException",
    }
    SequenceRepeat {
        name: "sequence-repeat",
        severity: Warning,
        meaning: "Sequence numbers were already stored: records are there twice, or a sequence goes back.",
        causes: "A retry that was taken for new because the broker had lost the producer's state.",
        action: "Consumers of this range see records twice; remove duplicates there by key or producer sequence.",
        kafka: "KIP-98; ProducerStateEntry.findDuplicateBatch",
    }
    UnknownStart {
        name: "unknown-start",
        severity: Info,
        meaning: "The first sequence of a producer in the log is not 0 although nothing before it was deleted.",
        causes: "Its earlier records went to a log that was lost or deleted and created again, or its state had expired.",
        action: "Nothing if the topic was created anew; otherwise as for sequence-gap.",
        kafka: "KIP-360: brokers since 2.5 take such a batch",
    }
    EpochRegression {
        name: "epoch-regression",
        severity: Warning,
        meaning: "A producer epoch is lower than one before it.",
        causes: "A zombie producer that a leader without its state took.",
        action: "Check the records of both epochs with the application: both instances wrote.",
        kafka: "KIP-98, KIP-360; ProducerAppendInfo.checkProducerEpoch: InvalidProducerEpochException",
    }
    OpenTransaction {
        name: "open-transaction",
        severity: Info,
        meaning: "A transaction has no end marker.",
        causes: "It is in progress; or its producer died and the coordinator has not aborted it yet, or has forgotten it (a hanging transaction).",
        action: "read_committed consumers stop at its first offset. If its producer is gone, end it by its transactional id; if its coordinator has moved on (kafka-transactions.sh find-hanging), abort it in this partition.",
        kafka: "KIP-664, KIP-890; ProducerStateManager.firstUnstableOffset",
    }
    TransactionFault {
        name: "transaction-fault",
        severity: Warning,
        meaning: "A batch breaks the rules of transactions: plain data inside a transaction of the same producer, an unreadable marker, or a coordinator epoch that goes back.",
        causes: "A faulty client, a deposed coordinator, or damage before the checksum was taken.",
        action: "A broker that replays plain data inside a transaction, or a marker it cannot read, gives up starting: restore from another replica before a restart.",
        kafka: "KIP-98; ProducerAppendInfo, EndTransactionMarker",
    }
    LimitExceeded {
        name: "limit-exceeded",
        severity: Warning,
        meaning: "A batch was not looked into because it exceeds a bound of this program.",
        causes: "Very large batches, or a payload made to inflate without end.",
        action: "Raise the bound and audit again if the batch is genuine.",
        kafka: "message.max.bytes bounds what brokers take; nothing bounds what it inflates to",
    }
    Unreadable {
        name: "unreadable",
        severity: Error,
        meaning: "Something asked for could not be read.",
        causes: "No permission, an I/O error of the disk, or not a file.",
        action: "Read as the user of the broker; on I/O errors look into the kernel log and replace the disk.",
        kafka: "LogDirFailureChannel takes the whole log directory offline on I/O errors",
    }
    UnknownFile {
        name: "unknown-file",
        severity: Info,
        meaning: "A file or directory that Kafka does not put there.",
        causes: "Left by an operator or another program.",
        action: "A directory whose name is no topic and partition keeps a broker from starting; files inside a partition are ignored.",
        kafka: "LogManager.loadLogs, UnifiedLog.parseTopicPartitionName",
    }
    LeftoverFile {
        name: "leftover-file",
        severity: Info,
        meaning: "A file of an operation that did not end: .cleaned, .swap, .deleted or .tmp.",
        causes: "The broker was stopped during compaction, a split, a deletion or the writing of a checkpoint.",
        action: "Nothing: the next start completes the operation or removes the file.",
        kafka: "LogLoader.removeTempFilesAndCollectSwapFiles",
    }
    IndexMissing {
        name: "index-missing",
        severity: Info,
        meaning: "A segment has no .index or no .timeindex.",
        causes: "The file was deleted, often on purpose to have it built anew, or not copied.",
        action: "Nothing: the next start builds the .index anew by recovering the segment, and an empty .timeindex.",
        kafka: "LogLoader.loadSegmentFiles, LogSegment.sanityCheck",
    }
    IndexMismatch {
        name: "index-mismatch",
        severity: Warning,
        meaning: "An entry or the size of an .index contradicts the segment.",
        causes: "The segment was damaged, cut or copied without its index; or the index itself was, on a disk that lost writes or in a copy of a running broker.",
        action: "Delete the .index while the broker is stopped: the next start recovers the segment and builds all its indexes anew; or copy there what ottla rebuild makes. For the last segment do it before the next start: after a clean stop Kafka takes the end of the log from this file, unchecked, and may begin at offset 0 again.",
        kafka: "OffsetIndex, LogSegment.readNextOffset; LogLoader recovers a segment without an .index",
    }
    TimeindexMismatch {
        name: "timeindex-mismatch",
        severity: Warning,
        meaning: "An entry or the size of a .timeindex contradicts the segment.",
        causes: "As for index-mismatch; or the .timeindex was deleted alone, and grew again with what came later.",
        action: "Delete the .index and the .timeindex while the broker is stopped: the next start builds both anew; or copy there what ottla rebuild makes. Without the .index gone the .timeindex stays empty. Until then offsetsForTimes may skip records, and retention by time goes by a wrong age.",
        kafka: "TimeIndex, LogSegment.findOffsetByTimestamp, LogSegment.largestTimestamp",
    }
    TxnindexMismatch {
        name: "txnindex-mismatch",
        severity: Warning,
        meaning: "A .txnindex does not list exactly the aborted transactions whose markers are in its segment.",
        causes: "The file was deleted, left out of a copy, or damaged.",
        action: "read_committed consumers get records of aborted transactions that are not listed, and miss committed ones that are listed wrongly. Delete the .index of the segment while the broker is stopped: the next start recovers the segment and builds the .txnindex anew; or copy there what ottla rebuild makes.",
        kafka: "KIP-98; TransactionIndex, AbortedTxn, LogSegment.collectAbortedTxns",
    }
    SnapshotMismatch {
        name: "snapshot-mismatch",
        severity: Warning,
        meaning: "A producer snapshot cannot be read, or contradicts the log before it.",
        causes: "The file was damaged, or is one of another offset or log; or the end of the log was lost.",
        action: "Delete it while the broker is stopped: Kafka takes the one before, or reads the log from its start. A wrong one that can be read makes a broker refuse the next batch of a producer, or take a gap for none.",
        kafka: "KIP-98, KIP-360; ProducerStateManager.loadFromSnapshot, truncateAndReload",
    }
    CheckpointMismatch {
        name: "checkpoint-mismatch",
        severity: Warning,
        meaning: "A recovery point, log start offset or high watermark cannot be true of the log, or their file cannot be read.",
        causes: "Records at the end of the log were lost after they had been acknowledged: a torn write, a missing last segment, a restored copy. Or the file itself was damaged or edited.",
        action: "Compare the end of the log with another replica before the broker starts: what is missing here may be there. A file that cannot be read may be removed: Kafka then recovers all segments, or begins logs with their first file.",
        kafka: "CheckpointFile, OffsetCheckpointFile; LogManager.loadLogs",
    }
    EpochCheckpointMismatch {
        name: "epoch-checkpoint-mismatch",
        severity: Warning,
        meaning: "leader-epoch-checkpoint cannot be read, is out of order, or contradicts the log.",
        causes: "The file was damaged or edited, or the end of the log was lost.",
        action: "If it cannot be read the broker takes the log directory offline: remove the file while the broker is stopped, and Kafka builds it from the batches. Epochs beyond the end of the log are dropped at the next start.",
        kafka: "KIP-101; LeaderEpochCheckpointFile, LeaderEpochFileCache",
    }
    MetadataMismatch {
        name: "metadata-mismatch",
        severity: Warning,
        meaning: "partition.metadata or meta.properties cannot be read, or the partition has another topic id than the others of its topic.",
        causes: "The file was damaged or edited, or a directory was copied from another cluster or an earlier topic of the same name.",
        action: "Find out where the directory came from. A broker refuses a partition with a foreign topic id, and does not start with a meta.properties it cannot read.",
        kafka: "KIP-516; PartitionMetadataFile, MetaPropertiesEnsemble",
    }
    DuplicatePartition {
        name: "duplicate-partition",
        severity: Warning,
        meaning: "Two log directories of one broker hold the same partition.",
        causes: "A directory was copied or moved by hand, or a disk came back after its partitions had been moved to another one.",
        action: "Find out which is the one in use, from the ends of both, and move the other away before the broker starts.",
        kafka: "LogManager.loadLogs: IllegalStateException, duplicate log directories; KIP-113",
    }
    ReplicaDifference {
        name: "replica-difference",
        severity: Warning,
        meaning: "Copies of one partition hold different bytes for the same offsets, or do not hold the same offsets.",
        causes: "Damage or loss on one copy, an unclean leader election, a follower that lags behind, or a disk that changed bytes.",
        action: "Keep a copy of what only one replica has (table `differences`) before any broker starts. Then let Kafka copy from a good replica: stop the broker of a bad one, move its partition directory away, start it.",
        kafka: "KIP-101, KIP-279, KIP-966; ReplicaFetcherThread.truncate, OffsetsForLeaderEpoch",
    }
    CommitBeyondEnd {
        name: "commit-beyond-end",
        severity: Warning,
        meaning: "A group has committed an offset that is beyond the end of the partition's log.",
        causes: "Records at the end of the log were lost after the group had read them: an unclean leader election, a torn write, a restored copy. Or the topic was deleted and created again under its name.",
        action: "Look for a replica whose log ends later. Without one the group starts over by auto.offset.reset, or stops where that is none: set its offset with kafka-consumer-groups.sh --reset-offsets before it reads.",
        kafka: "OffsetOutOfRangeException; KIP-320",
    }
    CommitBelowStart {
        name: "commit-below-start",
        severity: Info,
        meaning: "A group has committed an offset whose record is deleted: it is before the log start offset.",
        causes: "The group has read nothing for longer than retention keeps records, or DeleteRecords overtook it.",
        action: "If the group is in use it has missed the records between, and goes on by auto.offset.reset. If it is not, delete it with kafka-consumer-groups.sh --delete.",
        kafka: "OffsetOutOfRangeException; auto.offset.reset",
    }
    CommitInDamage {
        name: "commit-in-damage",
        severity: Warning,
        meaning: "A group will read on at an offset that damage took.",
        causes: "The group read up to the damage and stopped there.",
        action: "Set its offset to the next good one with kafka-consumer-groups.sh --reset-offsets; the records between are lost.",
        kafka: "CorruptRecordException in the consumer",
    }
    UndecodedRecord {
        name: "undecoded-record",
        severity: Info,
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

macro_rules! causes {
    ($(
        $cause:ident {
            name: $name:literal,
            meaning: $meaning:literal,
            causes: $causes:literal,
            action: $action:literal,
            kafka: $kafka:literal,
        }
    )*) => {
        /// Why a consumer does not get some offsets.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum Cause {
            $(#[doc = $meaning] $cause,)*
        }

        impl Cause {
            /// Every cause, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$cause,)*];

            /// The row of this cause.
            pub fn row(self) -> &'static CauseRow {
                match self {
                    $(Self::$cause => &CauseRow {
                        cause: Self::$cause,
                        name: $name,
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

/// One row of the catalogue of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseRow {
    /// The cause.
    pub cause: Cause,
    /// Its stable name.
    pub name: &'static str,
    /// What it says, in one sentence.
    pub meaning: &'static str,
    /// How it comes about, and what speaks for it.
    pub causes: &'static str,
    /// What to do.
    pub action: &'static str,
    /// The class or KIP of Kafka that knows about it.
    pub kafka: &'static str,
}

causes! {
    Compaction {
        name: "compaction",
        meaning: "The cleaner removed records that newer ones of the same key replaced.",
        causes: "cleanup.policy=compact. The first dirty offset of cleaner-offset-checkpoint lies above the gap, or batches around it have fewer records than offsets, or carry a delete horizon.",
        action: "Nothing: this is normal. Consumers skip the offsets without noticing.",
        kafka: "LogCleaner, Cleaner.cleanInto; KIP-534",
    }
    ControlRecords {
        name: "control-records",
        meaning: "The offsets hold control records, such as the end markers of transactions, which no consumer gets.",
        causes: "Transactions: each commit or abort takes one offset in every partition it touched. In __cluster_metadata also leader changes and snapshots.",
        action: "Nothing: this is normal. Never count records by subtracting offsets.",
        kafka: "KIP-98; ControlRecordType, CompletedFetch.nextFetchedRecord",
    }
    AbortedData {
        name: "aborted-data",
        meaning: "The records belong to transactions that were aborted; consumers that read committed data only skip them.",
        causes: "The producer aborted, failed, or exceeded transaction.timeout.ms, and the coordinator wrote an ABORT marker.",
        action: "Nothing if the application aborts on purpose; else look for errors and timeouts of the transactional producer.",
        kafka: "KIP-98; TransactionIndex, CompletedFetch.isBatchAborted",
    }
    Retention {
        name: "retention",
        meaning: "Retention deleted whole segments from the head of the log.",
        causes: "retention.ms or retention.bytes, or DeleteRecords past whole segments: the name of the first file is the log start offset.",
        action: "Nothing: this is normal. A consumer below the log start offset gets OFFSET_OUT_OF_RANGE and goes where auto.offset.reset sends it.",
        kafka: "UnifiedLog.deleteOldSegments",
    }
    DeleteRecords {
        name: "delete-records",
        meaning: "The log start offset lies behind the first batch: the records before it are on disk still, but nobody gets them.",
        causes: "kafka-delete-records.sh or AdminClient.deleteRecords (Kafka Streams does so for its repartition topics); on a follower also the retention of its leader.",
        action: "Nothing: this is normal. The files go when a whole segment lies below the log start offset.",
        kafka: "KIP-107; UnifiedLog.maybeIncrementLogStartOffset",
    }
    TierBoundary {
        name: "tier-boundary",
        meaning: "The offsets lie in tiered storage: the broker has deleted its local copy.",
        causes: "remote.storage.enable=true: log-start-offset-checkpoint names an offset below the first local file.",
        action: "Nothing: brokers fetch these records from remote storage. Without tiered storage the checkpoint is older than the files, and the cause is retention.",
        kafka: "KIP-405; RemoteLogManager, UnifiedLog.localLogStartOffset",
    }
    Damage {
        name: "damage",
        meaning: "Bytes that cannot be read lie where the offsets should be.",
        causes: "The finding beside it, such as crc-mismatch or damaged-range, tells which bytes.",
        action: "Restore the partition from another replica. Without one let the consumers seek to the next good offset.",
        kafka: "CorruptRecordException; FetchCollector.initialize",
    }
    TruncatedTail {
        name: "truncated-tail",
        meaning: "The file that held the offsets was cut short.",
        causes: "A full disk, an unsynced write before a power loss, or a copy that did not end.",
        action: "Restore the segment from another replica before the broker restarts: recovery would delete every later segment too.",
        kafka: "LogSegment.recover, LogLoader.recoverLog",
    }
    MissingFile {
        name: "missing-file",
        meaning: "The segment file that held the offsets is not there.",
        causes: "It was deleted by hand or not copied; index files without their segment, or the names of the files around the gap, show it.",
        action: "Look for the file in backups, lost+found and the other replicas. Consumers skip the offsets silently.",
        kafka: "LogSegments; no class of Kafka checks it",
    }
    EpochChange {
        name: "epoch-change",
        meaning: "The gap lies exactly where the leader changed.",
        causes: "An unclean leader election, or a replica restored from an old copy and truncated by epoch: records of the old leader were never copied, and the new leader went on behind them.",
        action: "Compare with the other replicas, also those out of sync: the records may exist on the old leader. Keep unclean.leader.election.enable off.",
        kafka: "KIP-101, KIP-279; LeaderEpochFileCache, UnifiedLog.truncateTo",
    }
    Unexplained {
        name: "unexplained",
        meaning: "Nothing in the directory explains the gap: brokers give out offsets without gaps, so batches were taken out or lost.",
        causes: "Damage repaired by hand, a tool that rewrote the file, a bug. Or compaction whose traces are gone: name the topic's configuration (--topic-config) to have that considered.",
        action: "Compare with another replica. If none has the records, they are lost.",
        kafka: "LogValidator assigns consecutive offsets",
    }
}

impl Cause {
    /// Stable kebab-case name.
    pub fn name(self) -> &'static str {
        self.row().name
    }
}

/// How sure a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// Something speaks for it, and nothing against it.
    Possible,
    /// It is the usual explanation of what is seen.
    Likely,
    /// The bytes leave no other explanation.
    Certain,
}

impl Confidence {
    /// `possible`, `likely` or `certain`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}

/// One thing found. Fields that do not apply are `None` or empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// How grave.
    pub severity: Severity,
    /// Bytes from the start of the file.
    pub position: Option<u64>,
    /// Bytes concerned.
    pub size: Option<u64>,
    /// First offset concerned: of the batch, or missing, or lost.
    pub first_offset: Option<i64>,
    /// Last offset concerned, inclusive.
    pub last_offset: Option<i64>,
    /// Index of the record in its batch.
    pub record_index: Option<u32>,
    /// The producer concerned.
    pub producer_id: Option<i64>,
    /// Where a consumer can go on after damage.
    pub next_good_offset: Option<i64>,
    /// Why offsets are missing, where known.
    pub cause: Option<Cause>,
    /// What should have been there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// A sentence that says it all.
    pub message: String,
    /// The file it is in, where that is not the segment; its position counts from there.
    pub side_file: Option<SideFile>,
}

/// A file beside the segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SideFile {
    /// The `.index` of the segment.
    OffsetIndex,
    /// The `.timeindex` of the segment.
    TimeIndex,
    /// The `.txnindex` of the segment.
    TransactionIndex,
    /// The `.snapshot` of this offset.
    Snapshot(i64),
    /// The `leader-epoch-checkpoint` of the partition.
    LeaderEpochs,
}

impl Finding {
    /// A finding of the kind's usual severity with nothing but a sentence.
    pub fn new(kind: FindingKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            severity: kind.row().severity,
            position: None,
            size: None,
            first_offset: None,
            last_offset: None,
            record_index: None,
            producer_id: None,
            next_good_offset: None,
            cause: None,
            expected: String::new(),
            found: String::new(),
            message: message.into(),
            side_file: None,
        }
    }

    /// The same with another severity.
    #[must_use]
    pub fn graded(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// The same at these bytes.
    #[must_use]
    pub fn at(self, position: u64, size: u64) -> Self {
        Self { position: Some(position), size: Some(size), ..self }
    }

    /// The same in a file beside the segment.
    #[must_use]
    pub fn beside(self, side_file: SideFile) -> Self {
        Self { side_file: Some(side_file), ..self }
    }

    /// The same about these offsets; an empty range is none.
    #[must_use]
    pub fn offsets(self, first: i64, last: i64) -> Self {
        if first > last {
            return self;
        }
        Self { first_offset: Some(first), last_offset: Some(last), ..self }
    }

    /// The same about this producer.
    #[must_use]
    pub fn producer(self, producer_id: i64) -> Self {
        Self { producer_id: Some(producer_id), ..self }
    }

    /// The same with what was expected and found.
    #[must_use]
    pub fn values(self, expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        Self { expected: format!("{expected}"), found: format!("{found}"), ..self }
    }
}

/// Findings of one kind that a segment keeps; the rest is counted. Enough to see a pattern, and a
/// bound on what a hostile file can make of memory.
pub const MAX_FINDINGS_PER_KIND: u64 = 1000;

/// Findings of one segment, at most [`MAX_FINDINGS_PER_KIND`] of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    kept: Vec<Finding>,
    counts: Vec<u64>,
}

impl Findings {
    /// Adds one, and gives its index; beyond the bound it is only counted.
    pub fn push(&mut self, finding: Finding) -> Option<usize> {
        let count = count_of(&mut self.counts, finding.kind)?;
        *count = count.saturating_add(1);
        if *count > MAX_FINDINGS_PER_KIND {
            return None;
        }
        self.kept.push(finding);
        Some(self.kept.len() - 1)
    }

    /// Appends those of the part on the right: the place of each of its own, if it is kept. `same` is
    /// the kind, and the index if it has one, of one among them that goes on with one of these, and
    /// so is none of its own.
    pub(crate) fn append(
        &mut self,
        mut right: Self,
        same: Option<(FindingKind, Option<usize>)>,
    ) -> Vec<Option<usize>> {
        if let Some(count) = same.and_then(|(kind, _)| count_of(&mut right.counts, kind)) {
            *count = count.saturating_sub(1);
        }
        let same = same.and_then(|(_, index)| index);
        let mut counts = self.counts.clone();
        let mut places = Vec::with_capacity(right.kept.len());
        for (index, finding) in right.kept.into_iter().enumerate() {
            let has_room = Some(index) != same
                && count_of(&mut counts, finding.kind).is_some_and(|count| {
                    *count = count.saturating_add(1);
                    *count <= MAX_FINDINGS_PER_KIND
                });
            places.push(has_room.then_some(self.kept.len()));
            self.kept.extend(has_room.then_some(finding));
        }
        self.add_counts(&right.counts);
        places
    }

    fn add_counts(&mut self, added: &[u64]) {
        for (kind, added) in FindingKind::ALL.iter().zip(added) {
            if let Some(count) = count_of(&mut self.counts, *kind) {
                *count = count.saturating_add(*added);
            }
        }
    }

    /// Those kept, in the order they were made.
    pub fn kept(&self) -> &[Finding] {
        &self.kept
    }

    /// Those kept, to change them.
    pub(crate) fn kept_mut(&mut self) -> &mut Vec<Finding> {
        &mut self.kept
    }

    /// How many of each kind were found and not kept.
    pub fn suppressed(&self) -> Vec<(FindingKind, u64)> {
        let over = |kind: &FindingKind| {
            let count = self.counts.get(*kind as usize).copied().unwrap_or(0);
            count.checked_sub(MAX_FINDINGS_PER_KIND).filter(|&rest| rest > 0)
        };
        FindingKind::ALL.iter().filter_map(|kind| Some((*kind, over(kind)?))).collect()
    }
}

/// Findings of one segment that come in another order when it is read in parts: of each kind those
/// with the lowest positions are kept, [`MAX_FINDINGS_PER_KIND`] of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FirstFindings(Findings);

impl FirstFindings {
    pub(crate) fn push(&mut self, finding: Finding) {
        let Findings { kept, counts } = &mut self.0;
        let Some(count) = count_of(counts, finding.kind) else { return };
        *count = count.saturating_add(1);
        kept.push(finding);
        if kept.len() > 2 * FindingKind::ALL.len() * MAX_FINDINGS_PER_KIND as usize {
            self.trim();
        }
    }

    /// Adds those of another part.
    pub(crate) fn append(&mut self, other: Self) {
        self.0.add_counts(&other.0.counts);
        self.0.kept.extend(other.0.kept);
    }

    /// Puts them in order, and drops those beyond the bound.
    pub(crate) fn trim(&mut self) {
        self.0.kept.sort_by(|a, b| order(a).cmp(&order(b)));
        let mut kept = Vec::new();
        self.0.kept.retain(|finding| {
            count_of(&mut kept, finding.kind).is_some_and(|count| {
                *count += 1;
                *count <= MAX_FINDINGS_PER_KIND
            })
        });
    }

    /// The first of them, in order.
    pub(crate) fn into_findings(mut self) -> Findings {
        self.trim();
        self.0
    }
}

/// What two findings of producers differ in, place first.
fn order(finding: &Finding) -> impl Ord + '_ {
    let Finding { position, kind, producer_id, first_offset, last_offset, .. } = finding;
    let texts = (&finding.expected, &finding.found, &finding.message);
    (position, kind, producer_id, first_offset, last_offset, texts)
}

/// How many of a kind there are.
fn count_of(counts: &mut Vec<u64>, kind: FindingKind) -> Option<&mut u64> {
    if counts.len() < FindingKind::ALL.len() {
        counts.resize(FindingKind::ALL.len(), 0);
    }
    counts.get_mut(kind as usize)
}
