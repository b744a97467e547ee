//! What is known about a partition before its segments are put together, and what they show.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::partition::epochs::Epoch;
use crate::partition::gaps::Gap;
use crate::partition::producers::ProducerState;
use crate::partition::transactions::{EndedTransactions, OpenTransaction};
use crate::segment::counters::Counters;
use crate::segment::fingerprint::Fingerprint;
use crate::segment::segment_scan::SegmentScan;
use ottla_log::sidefiles::snapshot::SnapshotEntry;
use std::collections::BTreeMap;

/// What is known about a partition beside its segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionContext {
    /// Its topic.
    pub topic: Option<String>,
    /// Log start offset of `log-start-offset-checkpoint`, if it has an entry.
    pub log_start_offset: Option<i64>,
    /// Recovery point of `recovery-point-offset-checkpoint`, if the last segment is the active one
    /// and it has an entry.
    pub recovery_point: Option<i64>,
    /// High watermark of `replication-offset-checkpoint`, likewise.
    pub high_watermark: Option<i64>,
    /// `max.message.bytes` of the topic, where it is known.
    pub max_message_bytes: Option<u64>,
    /// `preallocate` of the topic, where it is known: a segment begins as zeros.
    pub is_preallocated: Option<bool>,
    /// First dirty offset of `cleaner-offset-checkpoint`, if it has an entry.
    pub first_dirty_offset: Option<i64>,
    /// Epochs and their start offsets, of `leader-epoch-checkpoint`.
    pub leader_epochs: Vec<(i32, i64)>,
    /// `cleanup.policy` of the topic, where it is known.
    pub cleanup_policy: Option<String>,
    /// `remote.storage.enable` of the topic, where it is known.
    pub remote_storage: Option<bool>,
    /// Whether the last segment has grown since it was listed: a broker writes to it.
    pub is_growing: bool,
    /// Whether the first segment is the first of the partition.
    pub is_head: bool,
    /// Whether it is a partition of `__consumer_offsets`.
    pub is_consumer_offsets: bool,
    /// Base offsets of index files whose `.log` is not there, sorted.
    pub orphans: Vec<i64>,
}

impl PartitionContext {
    /// Whether `cleanup.policy` is known to have the cleaner compact the topic.
    pub fn is_compacted(&self) -> bool {
        self.cleanup_policy.as_deref().is_some_and(|policy| policy.contains("compact"))
    }
}

/// A finding and the segment it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedFinding {
    /// Index of the segment among those merged.
    pub segment: usize,
    /// The finding; its position counts from the start of that segment's file.
    pub finding: Finding,
}

/// Findings of a partition that were counted but not kept, by kind: how many, and the gravest severity.
pub(crate) type LeftOut = BTreeMap<FindingKind, (u64, Severity)>;

/// What the segments of a partition show together.
#[derive(Clone, Debug, Default)]
pub struct PartitionScan {
    /// The segments; their findings have moved to `findings`.
    pub segments: Vec<SegmentScan>,
    /// All findings, by segment and position.
    pub findings: Vec<PlacedFinding>,
    /// Findings that were counted but not kept: segment, kind, count.
    pub suppressed: Vec<(usize, FindingKind, u64)>,
    /// Findings beyond [`MAX_FINDINGS_PER_PARTITION`](super::bound::MAX_FINDINGS_PER_PARTITION).
    pub left_out: LeftOut,
    /// Sums over the segments.
    pub counters: Counters,
    /// First offset that a consumer can get: the checkpoint's, or the first in the files.
    pub log_start_offset: i64,
    /// The last offset plus one.
    pub log_end_offset: i64,
    /// First offset of the first open transaction, or the log end offset: where `read_committed`
    /// consumers stop at the latest.
    pub last_stable_offset: i64,
    /// Offsets missing inside the log.
    pub holes: i64,
    /// The producers at the end of the log, by id; `open_transaction` is one that has not ended.
    pub producers: Vec<ProducerState>,
    /// Transactions that have ended, by offset of their marker.
    pub ended: EndedTransactions,
    /// The leader epochs in the order of the log.
    pub epochs: Vec<Epoch>,
    /// Offsets that consumers do not get, and why.
    pub gaps: Vec<Gap>,
    /// Gaps that were not kept.
    pub gaps_left_out: u64,
    /// Largest timestamp of the log, −1 without one.
    pub newest_timestamp: i64,
    /// The last offset lost to damage; `i64::MAX` when the end of the log was lost.
    pub last_lost_offset: Option<i64>,
    /// Fingerprint of all valid batches, where the segments have one.
    pub fingerprint: Option<Fingerprint>,
    /// Producers whose open transaction began below the log, according to the newest snapshot:
    /// retention or `DeleteRecords` removed its data, or the beginning of it.
    pub begun_below: Vec<SnapshotEntry>,
}

impl PartitionScan {
    /// Whether anything was found, kept or not.
    pub fn has_findings(&self) -> bool {
        !self.findings.is_empty() || !self.suppressed.is_empty() || !self.left_out.is_empty()
    }

    /// Whether offsets after the beginning of an open transaction were lost, among them perhaps its
    /// marker.
    pub(crate) fn may_have_lost_marker(&self, open: &OpenTransaction) -> bool {
        self.last_lost_offset.is_some_and(|last| last >= open.first_offset)
    }

    /// Ended transactions that were counted but not kept.
    pub fn transactions_left_out(&self) -> u64 {
        let kept = self.ended.aborted.len().saturating_add(self.ended.committed.len());
        let ended = self.counters.aborted.saturating_add(self.counters.committed);
        ended.saturating_sub(kept as u64)
    }
}
