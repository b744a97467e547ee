//! Transaction indexes compared with the aborted transactions of the log.

use crate::catalogue::finding::{Finding, SideFile};
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::partition::scan::PartitionScan;
use crate::partition::side_check::files::SideFiles;
use crate::partition::side_check::proof::Proof;
use crate::partition::transactions::CompletedTransaction;
use ottla_format::words;
use ottla_log::sidefiles::transaction_index::{ABORTED_TRANSACTION_BYTES, AbortedTransaction};
use ottla_log::sorting::sort_by;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::iter::Peekable;

/// Compares the transaction indexes of a partition with its transactions; returns findings with the
/// index of their segment.
pub(crate) fn compare(
    scan: &PartitionScan,
    proof: Proof,
    files: &dyn SideFiles,
) -> Vec<(usize, Finding)> {
    let is_whole = proof.first_offset == 0 && !proof.is_compacted && !proof.is_damaged;
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
        let Some((head, tail)) = rest.split_at_checked(end) else { break };
        let here = head.get(start..).unwrap_or(head);
        rest = tail;
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

/// Returns the last stable offset at each abort, by the offset of its marker: the first offset of the
/// first transaction of another producer that is open there, or else the offset after the marker.
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
    sort_by(&mut events, Ord::cmp);
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
            "the broker did not stop cleanly, so its next start rebuilds the file"
        } else {
            "after a clean stop Kafka does not check it, and read_committed consumers get wrong records"
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
                let count = words::count(self.aborted.len() as u64, "aborted transaction");
                let message = format!(
                    "there is no .txnindex, although the segment has the end markers of {count}, the first of producer {producer_id} from offset {} on: read_committed consumers get their records",
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
        let entries = data.chunks_exact(ABORTED_TRANSACTION_BYTES);
        let rest = entries.remainder().len() as u64;
        let size = ABORTED_TRANSACTION_BYTES as u64;
        let end = (data.len() as u64).saturating_sub(rest);
        let mut before = i64::MIN;
        let mut expected = self.aborted.iter().peekable();
        for ((number, entry), position) in entries.enumerate().zip((0..).step_by(size as usize)) {
            let Some(entry) = AbortedTransaction::read(entry, 0) else {
                let message = format!("entry {number} of the .txnindex has an unknown version");
                let found = self.new_finding(&message).values("version 0", "another");
                return Some(found.at(position, size));
            };
            if let Some(found) = self.next_entry(number, &entry, before, &mut expected) {
                return Some(found.at(position, size));
            }
            before = entry.last_offset;
        }
        if let Some((producer_id, done)) = expected.next() {
            return Some(self.unlisted(*producer_id, done).at(end, 0));
        }
        (rest > 0).then(|| {
            let message =
                format!("{} after the last entry of the .txnindex", words::count(rest, "byte"));
            self.new_finding(&message)
                .at(end, rest)
                .values(format!("a multiple of {size}"), data.len())
                .graded(Severity::Info)
        })
    }

    /// Compares the next entry with the transactions that are expected from here on.
    fn next_entry<'e>(
        &self,
        number: usize,
        entry: &AbortedTransaction,
        before: i64,
        expected: &mut Peekable<impl Iterator<Item = &'e (i64, CompletedTransaction)>>,
    ) -> Option<Finding> {
        let listed = format!(
            "producer {} from {} to {}",
            entry.producer_id, entry.first_offset, entry.last_offset
        );
        if entry.last_offset <= before || entry.first_offset > entry.last_offset {
            let message = format!("entry {number} of the .txnindex ({listed}) is out of order");
            return Some(self.new_finding(&message).values(format!("above {before}"), &listed));
        }
        if let Some((producer_id, done)) =
            expected.next_if(|(_, done)| done.marker_offset < entry.last_offset)
        {
            return Some(self.unlisted(*producer_id, done));
        }
        let same = expected.next_if(|(_, done)| done.marker_offset == entry.last_offset);
        self.compare(number, entry, same, &listed)
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

    fn compare(
        &self,
        number: usize,
        entry: &AbortedTransaction,
        same: Option<&(i64, CompletedTransaction)>,
        listed: &str,
    ) -> Option<Finding> {
        let Proof { first_offset: first, is_compacted, is_damaged } = self.proof;
        let wrong = |expected: String, found: String| {
            let message = format!(
                "entry {number} of the .txnindex lists {listed}; according to the log, {found} should be {expected}"
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
        // The transaction may have been in the part of the log that a kill or damage removed.
        if is_damaged || (self.is_rebuilt && entry.last_offset >= self.end) {
            return None;
        }
        let Some((producer_id, done)) = same else {
            let may_be_gone = is_compacted || entry.first_offset < first;
            let message = format!(
                "entry {number} of the .txnindex lists an aborted transaction of {listed} that is not in the log"
            );
            let finding = self.new_finding(&message).producer(entry.producer_id);
            let finding = finding.offsets(entry.first_offset.max(0), entry.last_offset);
            return (!may_be_gone).then(|| finding.values("no entry", listed));
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
