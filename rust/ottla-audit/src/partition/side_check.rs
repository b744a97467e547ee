//! What lies beside the segments of a partition, held against what they show together: producer
//! snapshots, transaction indexes, leader epochs.
//!
//! Only what is proved is said. Retention takes the head of a log and leaves a snapshot its
//! producers; expiry takes a producer from a snapshot and leaves its batches; compaction takes
//! batches and markers; damage takes anything. Each of them leaves something to be held against:
//!
//! | | compared |
//! | --- | --- |
//! | whole log from offset 0 | every field, and no producer that the log does not know |
//! | head gone | what the batches that are left decide: the newest of each producer |
//! | compacted | a snapshot may know more than the log, never less |
//! | damaged | whether the file can be read, and names nothing behind its offset |

use crate::catalogue::finding::{Finding, SideFile};
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::partition::merge::PartitionScan;
use crate::partition::producers::{KnownProducer, Producers};
use crate::partition::transactions::CompletedTransaction;
use ottla_log::sidefiles::snapshot::{
    SNAPSHOT_ENTRY_BYTES, SNAPSHOT_OVERHEAD, SnapshotEntry, read_snapshot,
};
use ottla_log::sidefiles::transaction_index::{ABORTED_TRANSACTION_BYTES, AbortedTransaction};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Where the files beside the segments of a partition are read, one at a time.
pub trait SideFiles {
    /// Offsets that there are snapshots of, in order.
    fn snapshots(&self) -> &[i64];

    /// The bytes of a file; `None` when there is none. `segment` is an index among those merged,
    /// for the files that belong to one.
    ///
    /// # Errors
    /// What the operating system says.
    fn read(&self, file: SideFile, segment: usize) -> io::Result<Option<Vec<u8>>>;

    /// Whether they are to be held against the log.
    fn is_known(&self) -> bool {
        true
    }
}

/// No files but segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSideFiles;

impl SideFiles for NoSideFiles {
    fn snapshots(&self) -> &[i64] {
        &[]
    }

    fn read(&self, _: SideFile, _: usize) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn is_known(&self) -> bool {
        false
    }
}

/// How much the log before an offset proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// First offset of the log.
    pub(crate) first: i64,
    /// The cleaner was at it.
    pub(crate) is_compacted: bool,
    /// Bytes or batches are lost, or out of place.
    pub(crate) is_damaged: bool,
}

/// Holds a snapshot against the producers at its offset, or at the end of the segment it is in.
/// `end` is where the log ends, when it is known to end before the offset.
pub(crate) fn snapshot(
    offset: i64,
    data: &[u8],
    producers: &Producers,
    proof: Proof,
) -> Option<Finding> {
    let side = SideFile::Snapshot(offset);
    let entries = match read_snapshot(data) {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!(
                "{error}; Kafka deletes it at the next start and takes the snapshot before, or reads the log from its start"
            );
            let finding = Finding::new(FindingKind::SnapshotMismatch, message).beside(side);
            return Some(
                finding.at(0, data.len() as u64).values("a producer snapshot", error.name()),
            );
        }
    };
    let check = SnapshotCheck { offset, proof, producers };
    for (number, entry) in entries.iter().enumerate() {
        if let Some((field, expected, found)) = check.entry(entry) {
            return Some(check.finding(number, entry, field, &expected, &found));
        }
    }
    check.forgotten(&entries)
}

struct SnapshotCheck<'a> {
    offset: i64,
    proof: Proof,
    producers: &'a Producers,
}

type Difference = (&'static str, String, String);

fn differs<T: Copy + PartialEq + std::fmt::Display>(
    field: &'static str,
    is: T,
    was: T,
) -> Option<Difference> {
    (is != was).then(|| (field, is.to_string(), was.to_string()))
}

fn offset_or_none(offset: Option<i64>) -> String {
    offset.map_or_else(|| "none".to_owned(), |offset| offset.to_string())
}

impl SnapshotCheck<'_> {
    fn entry(&self, entry: &SnapshotEntry) -> Option<Difference> {
        let below = |field, offset: i64| {
            (offset >= self.offset)
                .then(|| (field, format!("below {}", self.offset), offset.to_string()))
        };
        let transaction = entry.transaction_first_offset;
        if let Some(wrong) = below("last offset", entry.last_offset)
            .or_else(|| below("transaction", transaction.unwrap_or(-1)))
        {
            return Some(wrong);
        }
        let Proof { first, is_compacted, is_damaged } = self.proof;
        if is_damaged || self.producers.left_out() > 0 {
            return None;
        }
        let Some(known) = self.producers.known(entry.producer_id) else {
            // Written below the first offset, or taken by the cleaner.
            let is_whole = first == 0 && !is_compacted;
            return is_whole.then(|| {
                ("producer id", "a producer of the log".to_owned(), entry.producer_id.to_string())
            });
        };
        if known.newest_offset >= self.offset {
            return None;
        }
        if is_compacted {
            return Self::knows_less(entry, &known);
        }
        self.exactly(entry, &known)
    }

    /// The cleaner leaves the newest batch of a producer, and takes markers.
    fn knows_less(entry: &SnapshotEntry, known: &KnownProducer) -> Option<Difference> {
        let is = &known.entry;
        if entry.producer_epoch < is.producer_epoch {
            return differs("epoch", is.producer_epoch, entry.producer_epoch);
        }
        let is_same = entry.producer_epoch == is.producer_epoch;
        if is_same && entry.last_offset < is.last_offset {
            return differs("last offset", is.last_offset, entry.last_offset);
        }
        None
    }

    fn exactly(&self, entry: &SnapshotEntry, known: &KnownProducer) -> Option<Difference> {
        let is = &known.entry;
        let first = self.proof.first;
        // Without data of its own the head of the log, which is gone, may have had it.
        let knows_data = known.has_data || first == 0;
        let knows_marker = known.has_marker || first == 0;
        let began_before = entry.transaction_first_offset.is_some_and(|offset| offset < first);
        let data = || {
            differs("last sequence", is.last_sequence, entry.last_sequence)
                .or_else(|| differs("last offset", is.last_offset, entry.last_offset))
                .or_else(|| differs("offset delta", is.offset_delta, entry.offset_delta))
        };
        let coordinator =
            || differs("coordinator epoch", is.coordinator_epoch, entry.coordinator_epoch);
        let transaction = || {
            let (is, was) = (is.transaction_first_offset, entry.transaction_first_offset);
            (is != was).then(|| ("open transaction", offset_or_none(is), offset_or_none(was)))
        };
        differs("epoch", is.producer_epoch, entry.producer_epoch)
            .or_else(|| data().filter(|_| knows_data))
            .or_else(|| coordinator().filter(|_| knows_marker))
            .or_else(|| transaction().filter(|_| knows_marker || !began_before))
    }

    fn finding(
        &self,
        number: usize,
        entry: &SnapshotEntry,
        field: &str,
        expected: &str,
        found: &str,
    ) -> Finding {
        let position = SNAPSHOT_OVERHEAD + number * SNAPSHOT_ENTRY_BYTES;
        let message = format!(
            "the snapshot says {field} {found} of producer {}, but the log before offset {} says {expected}; Kafka takes the snapshot's word for it at the next start",
            entry.producer_id, self.offset
        );
        let finding = Finding::new(FindingKind::SnapshotMismatch, message)
            .beside(SideFile::Snapshot(self.offset))
            .at(position as u64, SNAPSHOT_ENTRY_BYTES as u64)
            .producer(entry.producer_id)
            .values(expected, found);
        if entry.last_offset < 0 {
            finding
        } else {
            finding.offsets(entry.last_offset, entry.last_offset)
        }
    }

    /// A producer with an open transaction never expires.
    fn forgotten(&self, entries: &[SnapshotEntry]) -> Option<Finding> {
        if self.proof.is_damaged || self.producers.left_out() > 0 {
            return None;
        }
        let open = self.producers.with_open_transaction();
        let mut open = open.filter(|known| known.newest_offset < self.offset).peekable();
        open.peek()?;
        let listed: BTreeSet<i64> = entries.iter().map(|entry| entry.producer_id).collect();
        let known = open.find(|known| !listed.contains(&known.entry.producer_id))?;
        let (producer_id, begun) =
            (known.entry.producer_id, known.entry.transaction_first_offset.unwrap_or(0));
        let message = format!(
            "the snapshot does not know producer {producer_id}, whose transaction from offset {begun} on is open at offset {}; after the next start read_committed consumers would not wait for its end",
            self.offset
        );
        Some(
            Finding::new(FindingKind::SnapshotMismatch, message)
                .beside(SideFile::Snapshot(self.offset))
                .producer(producer_id)
                .offsets(begun, known.newest_offset)
                .values("an entry", "none"),
        )
    }
}

/// A snapshot of an offset that the log does not reach.
pub(crate) fn snapshot_behind(offset: i64, end: i64, stopped_cleanly: bool) -> Finding {
    let message = format!(
        "a snapshot of offset {offset}, but the log ends at {end}: its last {} offsets are gone; Kafka deletes the snapshot at the next start",
        offset.saturating_sub(end)
    );
    let severity = if stopped_cleanly { Severity::Warning } else { Severity::Info };
    Finding::new(FindingKind::SnapshotMismatch, message)
        .beside(SideFile::Snapshot(offset))
        .offsets(end, offset.saturating_sub(1))
        .values(format!("at most {end}"), offset)
        .graded(severity)
}

/// Holds the transaction indexes of a partition against its transactions: findings with the index
/// of their segment.
pub(crate) fn transaction_indexes(
    scan: &PartitionScan,
    proof: Proof,
    files: &dyn SideFiles,
) -> Vec<(usize, Finding)> {
    let is_whole = proof.first == 0 && !proof.is_compacted && !proof.is_damaged;
    let knows_all = is_whole && scan.transactions_left_out() == 0;
    let stable = knows_all.then(|| last_stable_offsets(scan));
    let mut findings = Vec::new();
    if scan.counters.aborted > scan.ended.aborted.len() as u64 {
        return findings;
    }
    let mut rest = scan.ended.aborted.as_slice();
    for (index, segment) in scan.segments.iter().enumerate() {
        let Some(base) = segment.context.base_offset else { continue };
        let next = segment.context.next_base_offset.unwrap_or(i64::MAX);
        let start = rest.partition_point(|(_, done)| done.marker_offset < base);
        let end = rest.partition_point(|(_, done)| done.marker_offset < next).max(start);
        let here = rest.get(start..end).unwrap_or_default();
        rest = rest.get(end..).unwrap_or_default();
        let check = TransactionCheck {
            base,
            end: segment.next_offset.unwrap_or(base),
            aborted: here,
            stable: stable.as_ref(),
            proof,
            is_rebuilt: segment.context.is_active && !segment.context.stopped_cleanly,
        };
        let data = files.read(SideFile::TransactionIndex, index);
        findings.extend(check.file(&data).map(|finding| (index, finding)));
    }
    findings
}

/// The last stable offset at each abort, by the offset of its marker: the first offset of the first
/// transaction of another producer that is open there, else the offset behind the marker.
fn last_stable_offsets(scan: &PartitionScan) -> BTreeMap<i64, i64> {
    let ended = scan.ended.aborted.iter().chain(&scan.ended.committed);
    let mut events: Vec<(i64, bool, i64, i64)> = Vec::new();
    for (producer_id, done) in ended {
        events.push((done.first_offset, false, *producer_id, done.first_offset));
        events.push((done.marker_offset, true, *producer_id, done.first_offset));
    }
    for producer in &scan.producers {
        if let Some(open) = &producer.open_transaction {
            events.push((open.first_offset, false, producer.producer_id, open.first_offset));
        }
    }
    events.sort_unstable();
    let mut open = BTreeSet::new();
    let mut stable = BTreeMap::new();
    for (offset, is_end, producer_id, first_offset) in events {
        if is_end {
            let other = open.iter().find(|(_, other)| *other != producer_id);
            stable.insert(
                offset,
                other.map_or(offset.saturating_add(1), |(first_offset, _)| *first_offset),
            );
            open.remove(&(first_offset, producer_id));
        } else {
            open.insert((first_offset, producer_id));
        }
    }
    stable
}

struct TransactionCheck<'a> {
    base: i64,
    end: i64,
    aborted: &'a [(i64, CompletedTransaction)],
    stable: Option<&'a BTreeMap<i64, i64>>,
    proof: Proof,
    is_rebuilt: bool,
}

impl TransactionCheck<'_> {
    fn new_finding(&self, message: &str) -> Finding {
        let then = if self.is_rebuilt {
            "the broker did not stop cleanly, so its next start builds the file anew"
        } else {
            "Kafka does not look into it after a clean stop, and read_committed consumers get it wrong"
        };
        let severity = if self.is_rebuilt { Severity::Info } else { Severity::Warning };
        Finding::new(FindingKind::TxnindexMismatch, format!("{message}; {then}"))
            .beside(SideFile::TransactionIndex)
            .graded(severity)
    }

    fn file(&self, data: &io::Result<Option<Vec<u8>>>) -> Option<Finding> {
        match data {
            Ok(Some(data)) => self.entries(data),
            Ok(None) => {
                let (producer_id, done) = self.aborted.first()?;
                let count = self.aborted.len();
                let message = format!(
                    "no .txnindex, although the segment has the end of {count} aborted transactions, the first of producer {producer_id} from offset {} on: read_committed consumers get their records",
                    done.first_offset
                );
                let last = self.aborted.last().map_or(done.marker_offset, |(_, d)| d.marker_offset);
                let first = self.aborted.iter().map(|(_, done)| done.first_offset).min();
                let found = self.new_finding(&message).values("a .txnindex", "none");
                Some(found.offsets(first.unwrap_or(done.first_offset), last))
            }
            Err(error) => {
                let message = format!("the .txnindex cannot be read: {error}");
                Some(self.new_finding(&message).values("a readable file", "none"))
            }
        }
    }

    fn entries(&self, data: &[u8]) -> Option<Finding> {
        let size = ABORTED_TRANSACTION_BYTES;
        let mut before = i64::MIN;
        let mut expected = self.aborted.iter().peekable();
        for number in 0..data.len() / size {
            let at = |finding: Finding| finding.at((number * size) as u64, size as u64);
            let Some(entry) = AbortedTransaction::read(data, number * size) else {
                let message = format!("entry {number} of the .txnindex has an unknown version");
                return Some(at(self.new_finding(&message).values("version 0", "another")));
            };
            let told = format!(
                "producer {} from {} to {}",
                entry.producer_id, entry.first_offset, entry.last_offset
            );
            if entry.last_offset <= before || entry.first_offset > entry.last_offset {
                let message = format!("entry {number} of the .txnindex ({told}) is out of order");
                let found = self.new_finding(&message).values(format!("above {before}"), &told);
                return Some(at(found));
            }
            before = entry.last_offset;
            if let Some((producer_id, done)) =
                expected.next_if(|(_, done)| done.marker_offset < entry.last_offset)
            {
                return Some(at(self.unlisted(*producer_id, done)));
            }
            let same = expected.next_if(|(_, done)| done.marker_offset == entry.last_offset);
            if let Some(found) = self.entry(number, &entry, same, &told) {
                return Some(at(found));
            }
        }
        if let Some((producer_id, done)) = expected.next() {
            let position = data.len() - data.len() % size;
            return Some(self.unlisted(*producer_id, done).at(position as u64, 0));
        }
        let rest = data.len() % size;
        (rest > 0).then(|| {
            let message = format!("{rest} bytes behind the last entry of the .txnindex");
            self.new_finding(&message)
                .at((data.len() - rest) as u64, rest as u64)
                .values(format!("a multiple of {size}"), data.len())
                .graded(Severity::Info)
        })
    }

    fn unlisted(&self, producer_id: i64, done: &CompletedTransaction) -> Finding {
        let message = format!(
            "the .txnindex does not list the aborted transaction of producer {producer_id} from offset {} to {}: read_committed consumers get its records",
            done.first_offset, done.marker_offset
        );
        self.new_finding(&message)
            .producer(producer_id)
            .offsets(done.first_offset, done.marker_offset)
            .values("an entry", "none")
    }

    fn entry(
        &self,
        number: usize,
        entry: &AbortedTransaction,
        same: Option<&(i64, CompletedTransaction)>,
        told: &str,
    ) -> Option<Finding> {
        let Proof { first, is_compacted, is_damaged } = self.proof;
        let wrong = |expected: String, found: String| {
            let message = format!(
                "entry {number} of the .txnindex lists {told}, but the log says {expected} where it says {found}"
            );
            let finding = self.new_finding(&message).producer(entry.producer_id);
            Some(
                finding
                    .offsets(entry.first_offset.max(0), entry.last_offset)
                    .values(expected, found),
            )
        };
        if entry.last_offset < self.base {
            return wrong(format!("at least {}", self.base), entry.last_offset.to_string());
        }
        // Of a log that a kill cut short, or that damage did.
        if is_damaged || (self.is_rebuilt && entry.last_offset >= self.end) {
            return None;
        }
        let Some((producer_id, done)) = same else {
            let may_be_gone = is_compacted || entry.first_offset < first;
            let message = format!(
                "entry {number} of the .txnindex lists an aborted transaction of {told} that the log does not hold"
            );
            let finding = self.new_finding(&message).producer(entry.producer_id);
            let finding = finding.offsets(entry.first_offset.max(0), entry.last_offset);
            return (!may_be_gone).then(|| finding.values("no entry", told));
        };
        if *producer_id != entry.producer_id {
            return wrong(format!("producer {producer_id}"), format!("{}", entry.producer_id));
        }
        let may_begin_before = is_compacted || entry.first_offset < first;
        if done.first_offset != entry.first_offset && !may_begin_before {
            return wrong(done.first_offset.to_string(), entry.first_offset.to_string());
        }
        let stable = self.stable.and_then(|stable| stable.get(&entry.last_offset));
        if let Some(&stable) = stable
            && stable != entry.last_stable_offset
        {
            let expected = format!("last stable offset {stable}");
            return wrong(expected, entry.last_stable_offset.to_string());
        }
        None
    }
}

/// Holds `leader-epoch-checkpoint` against the epochs of the batches: findings, those about a batch
/// with the index of its segment.
pub(crate) fn leader_epochs(
    scan: &PartitionScan,
    entries: &[(i32, i64)],
    proof: Proof,
) -> Vec<(usize, Finding)> {
    let runs: Vec<_> = scan
        .segments
        .iter()
        .enumerate()
        .flat_map(|(index, segment)| segment.leader_epochs.iter().map(move |run| (index, run)))
        .collect();
    let stopped_cleanly = scan.segments.last().is_some_and(|s| s.context.stopped_cleanly);
    let mut findings = Vec::new();
    for (place, (index, run)) in runs.iter().enumerate() {
        let following =
            runs.get(place + 1).map_or(scan.log_end_offset, |(_, run)| run.start_offset);
        let covering = entries.partition_point(|&(_, start)| start <= run.start_offset);
        let entry = covering.checked_sub(1).and_then(|last| entries.get(last));
        let Some(&(epoch, start)) = entry else {
            // A broker forgets the epochs of what it deletes, and those from before it kept any.
            continue;
        };
        if epoch != run.epoch {
            let is_listed = entries.iter().any(|&(listed, _)| listed == run.epoch);
            let is_newer = run.epoch > epoch && covering == entries.len();
            if is_newer && !stopped_cleanly {
                continue;
            }
            let message = format!(
                "the batches from offset {} on have leader epoch {}, but leader-epoch-checkpoint says that epoch {epoch}, which began at {start}, goes on there",
                run.start_offset, run.epoch
            );
            let finding = if run.batches == 1 && !is_listed {
                Finding::new(FindingKind::LeaderEpochFault, message).at(run.position, run.size)
            } else {
                contradicts(&message).offsets(run.start_offset, run.start_offset)
            };
            findings.push((*index, finding.values(epoch, run.epoch)));
            continue;
        }
        // Inside a log without holes every offset has a batch, and so an epoch.
        let inside = entries.get(covering).filter(|&&(_, start)| start < following);
        if let Some(&(epoch, start)) = inside
            && !proof.is_compacted
            && !proof.is_damaged
            && scan.holes == 0
        {
            let message = format!(
                "leader-epoch-checkpoint says that epoch {epoch} begins at offset {start}, but the batches up to offset {} have epoch {}",
                following.saturating_sub(1),
                run.epoch
            );
            let finding = contradicts(&message).offsets(start, following.saturating_sub(1));
            findings.push((*index, finding.values(run.epoch, epoch)));
        }
    }
    findings
}

fn contradicts(message: &str) -> Finding {
    let then = "a follower that asks for the end of an epoch would cut its log at a wrong offset";
    Finding::new(FindingKind::EpochCheckpointMismatch, format!("{message}; {then}"))
        .beside(SideFile::LeaderEpochs)
}
