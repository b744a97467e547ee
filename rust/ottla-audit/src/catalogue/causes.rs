//! The catalogue of causes: why a consumer does not get some offsets.

use serde::{Deserialize, Serialize};

/// One row of the catalogue of causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseRow {
    /// Its stable name.
    pub name: &'static str,
    /// Whether it is normal that these offsets are missing.
    pub is_lawful: bool,
    /// What the offsets are, in a few words.
    pub brief: &'static str,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// How it comes about, and the evidence for it.
    pub causes: &'static str,
    /// What to do.
    pub action: &'static str,
    /// The class or KIP of Kafka that knows about it.
    pub kafka: &'static str,
}

macro_rules! causes {
    ($(
        $cause:ident {
            name: $name:literal,
            is_lawful: $is_lawful:literal,
            brief: $brief:literal,
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
                        name: $name,
                        is_lawful: $is_lawful,
                        brief: $brief,
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

causes! {
    Compaction {
        name: "compaction",
        is_lawful: true,
        brief: "compacted",
        meaning: "The cleaner removed records that newer records with the same key replaced.",
        causes: "cleanup.policy=compact. The first dirty offset of cleaner-offset-checkpoint is above the gap, or batches around it have fewer records than offsets or carry a delete horizon.",
        action: "Nothing: this is normal. Consumers skip the offsets without noticing.",
        kafka: "LogCleaner, Cleaner.cleanInto; KIP-534",
    }
    ControlRecords {
        name: "control-records",
        is_lawful: true,
        brief: "control records",
        meaning: "The offsets hold control records, such as the end markers of transactions, which consumers never get.",
        causes: "Transactions: each commit or abort takes one offset in every partition that it touched. In __cluster_metadata also leader changes and snapshots.",
        action: "Nothing: this is normal. Never count records by subtracting offsets.",
        kafka: "KIP-98; ControlRecordType, CompletedFetch.nextFetchedRecord",
    }
    AbortedData {
        name: "aborted-data",
        is_lawful: true,
        brief: "aborted (read_committed only)",
        meaning: "The records belong to aborted transactions; consumers that read only committed data skip them.",
        causes: "The producer aborted, failed, or exceeded transaction.timeout.ms, and the coordinator wrote an ABORT marker.",
        action: "If the application aborts on purpose: nothing. Otherwise look for errors and timeouts of the transactional producer.",
        kafka: "KIP-98; TransactionIndex, CompletedFetch.isBatchAborted",
    }
    Retention {
        name: "retention",
        is_lawful: true,
        brief: "expired",
        meaning: "Retention deleted whole segments from the head of the log.",
        causes: "retention.ms or retention.bytes, or DeleteRecords past whole segments: the name of the first file is the log start offset.",
        action: "Nothing: this is normal. A consumer below the log start offset gets OFFSET_OUT_OF_RANGE and continues according to auto.offset.reset.",
        kafka: "UnifiedLog.deleteOldSegments",
    }
    DeleteRecords {
        name: "delete-records",
        is_lawful: true,
        brief: "deleted by DeleteRecords",
        meaning: "The log start offset is above the first batch: the records before it are still on disk, but consumers no longer get them.",
        causes: "kafka-delete-records.sh or AdminClient.deleteRecords (Kafka Streams does this for its repartition topics); on a follower also the retention of its leader.",
        action: "Nothing: this is normal. A file is deleted once its whole segment is below the log start offset.",
        kafka: "KIP-107; UnifiedLog.maybeIncrementLogStartOffset",
    }
    TierBoundary {
        name: "tier-boundary",
        is_lawful: true,
        brief: "in tiered storage",
        meaning: "The offsets are in tiered storage: the broker has deleted its local copy.",
        causes: "remote.storage.enable=true: log-start-offset-checkpoint has an offset below the first local file.",
        action: "Nothing: brokers fetch these records from remote storage. Without tiered storage the checkpoint is older than the files, and the cause is retention.",
        kafka: "KIP-405; RemoteLogManager, UnifiedLog.localLogStartOffset",
    }
    Damage {
        name: "damage",
        is_lawful: false,
        brief: "damaged",
        meaning: "Bytes that cannot be read are where the offsets should be.",
        causes: "The finding next to it, such as crc-mismatch or damaged-range, says which bytes.",
        action: "Restore the partition from another replica. If there is none, let the consumers seek to the next good offset.",
        kafka: "CorruptRecordException; FetchCollector.initialize",
    }
    TruncatedTail {
        name: "truncated-tail",
        is_lawful: false,
        brief: "cut off",
        meaning: "The file that held the offsets was cut short.",
        causes: "A full disk, an unsynced write before a power loss, or an incomplete copy.",
        action: "Restore the segment from another replica before the broker restarts: recovery would delete every later segment too.",
        kafka: "LogSegment.recover, LogLoader.recoverLog",
    }
    MissingFile {
        name: "missing-file",
        is_lawful: false,
        brief: "in missing files",
        meaning: "The segment file that held the offsets is missing.",
        causes: "The file was deleted by hand or not copied. Index files without their segment, the names of the files around the gap, or a leader epoch that begins below the first file show it.",
        action: "Look for the file in backups, in lost+found and on the other replicas. Consumers skip the offsets silently; below the first file they go on according to auto.offset.reset.",
        kafka: "LogSegments; Kafka does not check for it",
    }
    EpochChange {
        name: "epoch-change",
        is_lawful: false,
        brief: "lost at a change of leader",
        meaning: "The gap is exactly where the leader changed.",
        causes: "An unclean leader election, or a replica that was restored from an old copy and truncated by epoch: records of the old leader were never replicated, and the new leader continued after them.",
        action: "Compare with the other replicas, including those out of sync: the records may exist on the old leader. Keep unclean.leader.election.enable off.",
        kafka: "KIP-101, KIP-279; LeaderEpochFileCache, UnifiedLog.truncateTo",
    }
    LostEnd {
        name: "lost-end",
        is_lawful: false,
        brief: "lost at the end",
        meaning: "The log ends before offsets that files beside it, other copies or consumer groups know.",
        causes: "A torn write, a last segment that is missing or cut short, or a directory that was restored from an older copy.",
        action: "Before the broker starts, look for these offsets on the other replicas, in backups and in lost+found: as leader the broker assigns them again, to other records.",
        kafka: "LogManager.loadLogs, UnifiedLog; KIP-101",
    }
    WrongCheckpoint {
        name: "wrong-checkpoint",
        is_lawful: false,
        brief: "claimed by one file",
        meaning: "One file has an offset beyond the end of the log, or a log start offset that cuts records off, and the files that must agree with it do not.",
        causes: "The file was damaged, edited, or copied from elsewhere. The log itself may be complete.",
        action: "Compare the end of the log with another replica. If nothing is missing, correct the checkpoint while the broker is stopped: remove the line of this partition, and lower the count in the second line by one. Kafka then recovers every segment (recovery point), learns the offset anew (high watermark), or begins the log with its first file (log start offset).",
        kafka: "OffsetCheckpointFile, LogManager.loadLogs, ReplicaManager.checkpointHighWatermarks",
    }
    Unexplained {
        name: "unexplained",
        is_lawful: false,
        brief: "missing without explanation",
        meaning: "Nothing in the directory explains the gap: brokers assign consecutive offsets, so batches were removed or lost.",
        causes: "Damage that was repaired by hand, a tool that rewrote the file, or a bug. Or compaction that left no traces: state the topic's configuration (--topic-config) to have it considered.",
        action: "Compare with another replica. If none has the records, they are lost.",
        kafka: "LogValidator assigns consecutive offsets",
    }
}

impl Cause {
    /// Stable kebab-case name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The cause of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|cause| cause.name() == name)
    }
}

/// How sure a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// There is evidence for it, and none against it.
    Possible,
    /// It is the usual explanation of the evidence.
    Likely,
    /// The bytes allow no other explanation.
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
