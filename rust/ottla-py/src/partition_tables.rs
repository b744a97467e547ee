//! The rows of the tables that a partition fills.

use crate::packed_rows::Cell;
use crate::partition::PartitionScan;
use ottla_audit::RetentionEffect;
use ottla_audit::partition::producers::ProducerState;
use ottla_audit::partition::transactions::{CompletedTransaction, OpenTransaction};
use ottla_log::sidefiles::snapshot::SnapshotEntry;
use std::collections::HashSet;

/// A table that partitions fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionTable {
    Gaps,
    Transactions,
    Producers,
    Epochs,
    Timeline,
    Metrics,
}

impl PartitionTable {
    pub(crate) const ALL: [Self; 6] = [
        Self::Gaps,
        Self::Transactions,
        Self::Producers,
        Self::Epochs,
        Self::Timeline,
        Self::Metrics,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gaps => "gaps",
            Self::Transactions => "transactions",
            Self::Producers => "producers",
            Self::Epochs => "epochs",
            Self::Timeline => "timeline",
            Self::Metrics => "metrics",
        }
    }

    /// The names of its columns.
    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Gaps => &GAPS_COLUMNS,
            Self::Transactions => &TRANSACTIONS_COLUMNS,
            Self::Producers => &PRODUCERS_COLUMNS,
            Self::Epochs => &EPOCHS_COLUMNS,
            Self::Timeline => &TIMELINE_COLUMNS,
            Self::Metrics => &METRICS_COLUMNS,
        }
    }
}

const GAPS_COLUMNS: [&str; 10] = [
    "file",
    "position",
    "first_offset",
    "last_offset",
    "ranges",
    "offsets",
    "reader",
    "cause",
    "confidence",
    "evidence",
];

const TRANSACTIONS_COLUMNS: [&str; 14] = [
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "state",
    "first_offset",
    "last_offset",
    "marker_offset",
    "batches",
    "records",
    "bytes",
    "first_timestamp",
    "last_timestamp",
    "duration_ms",
    "holds_last_stable_offset",
];

const PRODUCERS_COLUMNS: [&str; 8] = [
    "producer_id",
    "producer_epoch",
    "last_sequence",
    "last_offset",
    "last_offset_delta",
    "last_timestamp",
    "coordinator_epoch",
    "open_transaction_offset",
];

const EPOCHS_COLUMNS: [&str; 4] =
    ["leader_epoch", "start_offset", "batches", "checkpoint_start_offset"];

const TIMELINE_COLUMNS: [&str; 12] = [
    "file",
    "base_offset",
    "next_offset",
    "batches",
    "records",
    "bytes",
    "min_timestamp",
    "min_timestamp_offset",
    "max_timestamp",
    "max_timestamp_offset",
    "max_timestamp_position",
    "retention",
];

const METRICS_COLUMNS: [&str; 23] = [
    "log_start_offset",
    "last_stable_offset",
    "log_end_offset",
    "segments",
    "batches",
    "records",
    "bytes",
    "damaged_bytes",
    "missing_offsets",
    "removed_offsets",
    "control_batches",
    "thin_batches",
    "empty_batches",
    "transactional_batches",
    "idempotent_batches",
    "producers",
    "committed_transactions",
    "aborted_transactions",
    "open_transactions",
    "transactions_left_out",
    "gaps_left_out",
    "min_timestamp",
    "max_timestamp",
];

/// A row of a table: the names of its columns, and its values.
pub(crate) struct TableRow<'a> {
    pub(crate) columns: &'static [&'static str],
    pub(crate) values: Vec<Cell<'a>>,
}

/// A row of the table of transactions.
enum ListedTransaction<'a> {
    /// One that has ended, with its producer.
    Ended(i64, &'a CompletedTransaction),
    Open(&'a ProducerState, &'a OpenTransaction),
    BegunBelow(&'a SnapshotEntry),
}

impl ListedTransaction<'_> {
    fn first_offset(&self) -> i64 {
        match self {
            Self::Ended(_, done) => done.first_offset,
            Self::Open(_, open) => open.first_offset,
            Self::BegunBelow(entry) => entry.transaction_first_offset.unwrap_or(0),
        }
    }
}

/// Makes a row of values that stand beside the names of their columns.
macro_rules! row {
    ({ $($name:literal: $value:expr),* $(,)? }) => {
        TableRow { columns: &[$($name),*], values: vec![$(Cell::from($value)),*] }
    };
}

impl PartitionScan {
    /// The rows that the partition adds to a table. A column `file` has the number of a segment.
    pub(crate) fn rows(
        &self,
        table: PartitionTable,
    ) -> Box<dyn Iterator<Item = TableRow<'_>> + '_> {
        match table {
            PartitionTable::Gaps => Box::new(self.gaps()),
            PartitionTable::Transactions => Box::new(self.transactions()),
            PartitionTable::Producers => Box::new(self.producers()),
            PartitionTable::Epochs => Box::new(self.epochs()),
            PartitionTable::Timeline => Box::new(self.timeline()),
            PartitionTable::Metrics => Box::new(self.metrics()),
        }
    }
}

impl PartitionScan {
    /// Transactions by first offset: those that ended, as far as they are kept, and those that did
    /// not.
    fn transactions(&self) -> impl Iterator<Item = TableRow<'_>> {
        self.order_of_transactions().into_iter().filter_map(|number| {
            Some(match self.transaction(number as usize)? {
                ListedTransaction::Ended(id, done) => ended_row(id, done),
                ListedTransaction::Open(producer, open) => self.open_row(producer, open),
                ListedTransaction::BegunBelow(entry) => self.begun_below_row(entry),
            })
        })
    }

    /// The numbers of the transactions of the table, by first offset.
    fn order_of_transactions(&self) -> Vec<u32> {
        let inner = &self.inner;
        let below: HashSet<i64> = inner.begun_below.iter().map(|entry| entry.producer_id).collect();
        let ended = inner.ended.aborted.len().saturating_add(inner.ended.committed.len());
        let all =
            ended.saturating_add(inner.producers.len()).saturating_add(inner.begun_below.len());
        let is_listed = |transaction: &ListedTransaction<'_>| match transaction {
            ListedTransaction::Open(producer, _) => !below.contains(&producer.producer_id),
            ListedTransaction::Ended(..) | ListedTransaction::BegunBelow(_) => true,
        };
        let listed = |number: u32| self.transaction(number as usize).filter(is_listed);
        let all = u32::try_from(all).unwrap_or(u32::MAX);
        let mut order: Vec<u32> = (0..all).filter(|&number| listed(number).is_some()).collect();
        order.sort_unstable_by_key(|&number| {
            (listed(number).map(|transaction| transaction.first_offset()), number)
        });
        order
    }

    /// A transaction by its number: those that ended, then the open ones by producer, then those that
    /// began below the log.
    fn transaction(&self, number: usize) -> Option<ListedTransaction<'_>> {
        let inner = &self.inner;
        let mut number = number;
        for ended in [&inner.ended.aborted, &inner.ended.committed] {
            if let Some((id, done)) = ended.get(number) {
                return Some(ListedTransaction::Ended(*id, done));
            }
            number = number.saturating_sub(ended.len());
        }
        if let Some(producer) = inner.producers.get(number) {
            let open = producer.open_transaction.as_deref()?;
            return Some(ListedTransaction::Open(producer, open));
        }
        let number = number.saturating_sub(inner.producers.len());
        inner.begun_below.get(number).map(ListedTransaction::BegunBelow)
    }

    /// The open transaction of a producer.
    fn open_row(&self, producer: &ProducerState, open: &OpenTransaction) -> TableRow<'_> {
        let inner = &self.inner;
        let id = producer.producer_id;
        let sums = open.sums();
        let newest = inner.newest_timestamp.max(sums.last_timestamp);
        row!({
            "producer_id": id,
            "producer_epoch": open.producer_epoch,
            "coordinator_epoch": producer.coordinator_epoch,
            "state": "open",
            "first_offset": open.first_offset,
            "last_offset": sums.last_offset,
            "marker_offset": None::<i64>,
            "batches": sums.batches,
            "records": sums.records,
            "bytes": sums.bytes,
            "first_timestamp": open.first_timestamp,
            "last_timestamp": sums.last_timestamp,
            "duration_ms": newest.saturating_sub(open.first_timestamp).max(0),
            "holds_last_stable_offset": open.first_offset.max(inner.log_start_offset)
                == inner.last_stable_offset,
        })
    }

    /// The transaction of a producer that began below the log.
    fn begun_below_row(&self, entry: &SnapshotEntry) -> TableRow<'_> {
        let inner = &self.inner;
        let id = entry.producer_id;
        let place = inner.producers.binary_search_by_key(&id, |producer| producer.producer_id);
        let producer = place.ok().and_then(|place| inner.producers.get(place));
        let open = producer.and_then(|producer| producer.open_transaction.as_ref());
        let open = open.map(|open| open.sums());
        let newest = inner.newest_timestamp.max(entry.last_timestamp);
        row!({
            "producer_id": id,
            "producer_epoch": entry.producer_epoch,
            "coordinator_epoch": entry.coordinator_epoch,
            "state": "hanging",
            "first_offset": entry.transaction_first_offset.unwrap_or(0),
            "last_offset": open.map(|open| open.last_offset),
            "marker_offset": None::<i64>,
            "batches": open.map_or(0, |open| open.batches),
            "records": open.map_or(0, |open| open.records),
            "bytes": open.map_or(0, |open| open.bytes),
            "first_timestamp": None::<i64>,
            "last_timestamp": entry.last_timestamp,
            "duration_ms": newest.saturating_sub(entry.last_timestamp),
            "holds_last_stable_offset": true,
        })
    }

    /// Idempotent producers as they are at the end of the log, by id.
    fn producers(&self) -> impl Iterator<Item = TableRow<'_>> {
        self.inner.producers.iter().map(|producer| {
            let open = producer.open_transaction.as_ref();
            row!({
                "producer_id": producer.producer_id,
                "producer_epoch": producer.producer_epoch,
                "last_sequence": producer.last_sequence,
                "last_offset": producer.last_offset,
                "last_offset_delta": producer.last_offset_delta,
                "last_timestamp": producer.last_timestamp,
                "coordinator_epoch": producer.coordinator_epoch,
                "open_transaction_offset": open.map(|open| open.first_offset),
            })
        })
    }

    /// Offsets that consumers do not get, and why.
    fn gaps(&self) -> impl Iterator<Item = TableRow<'_>> {
        self.inner.gaps.iter().map(|gap| {
            row!({
                "file": self.file(gap.segment),
                "position": gap.position,
                "first_offset": gap.first_offset,
                "last_offset": gap.last_offset,
                "ranges": gap.ranges,
                "offsets": gap.offsets,
                "reader": gap.reader.name(),
                "cause": gap.cause.name(),
                "confidence": gap.confidence.name(),
                "evidence": &gap.evidence,
            })
        })
    }

    /// Leader epochs in the order of the log.
    fn epochs(&self) -> impl Iterator<Item = TableRow<'_>> {
        self.inner.epochs.iter().map(|epoch| {
            row!({
                "leader_epoch": epoch.epoch,
                "start_offset": epoch.start_offset,
                "batches": epoch.batches,
                "checkpoint_start_offset": epoch.checkpoint_start_offset,
            })
        })
    }

    /// The segments and their timestamps. The positions of the batches to blame are given where
    /// retention by time does something else than one expects.
    fn timeline(&self) -> impl Iterator<Item = TableRow<'_>> {
        self.inner.segments.iter().enumerate().map(|(index, scan)| {
            row!({
                "file": self.file(index),
                "base_offset": scan.context.base_offset,
                "next_offset": scan.next_offset,
                "batches": scan.counters.batches,
                "records": scan.counters.records,
                "bytes": scan.counters.bytes,
                "min_timestamp": scan.oldest.map(|oldest| oldest.timestamp),
                "min_timestamp_offset": scan.oldest.map(|oldest| oldest.offset),
                "max_timestamp": scan.newest.map(|newest| newest.timestamp),
                "max_timestamp_offset": scan.newest.map(|newest| newest.offset),
                "max_timestamp_position": scan.newest.map(|newest| newest.position),
                "retention": RetentionEffect::of(scan).map(RetentionEffect::name),
            })
        })
    }

    /// The partition in numbers, one row; none for files whose names tell no offset and that hold no
    /// batch.
    fn metrics(&self) -> impl Iterator<Item = TableRow<'_>> {
        let inner = &self.inner;
        let counters = &inner.counters;
        let open = inner.producers.iter().filter(|producer| producer.open_transaction.is_some());
        let timestamps = inner.segments.iter().filter_map(|scan| scan.oldest);
        let oldest = timestamps.map(|oldest| oldest.timestamp).min();
        let row = row!({
            "log_start_offset": inner.log_start_offset,
            "last_stable_offset": inner.last_stable_offset,
            "log_end_offset": inner.log_end_offset,
            "segments": inner.segments.len(),
            "batches": counters.batches,
            "records": counters.records,
            "bytes": counters.bytes,
            "damaged_bytes": counters.damaged_bytes,
            "missing_offsets": inner.holes,
            "removed_offsets": counters.removed_offsets,
            "control_batches": counters.control_batches,
            "thin_batches": counters.thin_batches,
            "empty_batches": counters.empty_batches,
            "transactional_batches": counters.transactional_batches,
            "idempotent_batches": counters.idempotent_batches,
            "producers": inner.producers.len(),
            "committed_transactions": counters.committed,
            "aborted_transactions": counters.aborted,
            "open_transactions": open.count(),
            "transactions_left_out": inner.transactions_left_out(),
            "gaps_left_out": inner.gaps_left_out,
            "min_timestamp": oldest,
            "max_timestamp": oldest.map(|_| inner.newest_timestamp),
        });
        self.has_offsets().then_some(row).into_iter()
    }
}

fn ended_row<'a>(producer_id: i64, done: &CompletedTransaction) -> TableRow<'a> {
    row!({
        "producer_id": producer_id,
        "producer_epoch": done.producer_epoch,
        "coordinator_epoch": done.coordinator_epoch,
        "state": if done.is_commit { "committed" } else { "aborted" },
        "first_offset": done.first_offset,
        "last_offset": done.last_offset,
        "marker_offset": done.marker_offset,
        "batches": done.batches,
        "records": done.records,
        "bytes": done.bytes,
        "first_timestamp": done.first_timestamp,
        "last_timestamp": done.marker_timestamp,
        "duration_ms": done.marker_timestamp.saturating_sub(done.first_timestamp).max(0),
        "holds_last_stable_offset": false,
    })
}
