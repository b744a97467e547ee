//! The rows of the tables that a partition fills.

use crate::packed_rows::Cell;
use crate::partition::PartitionScan;
use ottla_audit::RetentionEffect;
use ottla_audit::partition::producers::ProducerState;
use ottla_audit::partition::transactions::{CompletedTransaction, OpenTransaction};
use ottla_log::sidefiles::snapshot::SnapshotEntry;
use ottla_log::sorting::sort_by;
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

/// Takes the values of a row.
type Take<'t, 'a> = &'t mut dyn FnMut(&[Cell<'a>]);

/// A row of the table of transactions.
enum ListedTransaction<'a> {
    /// One that has ended, with its producer.
    Ended(i64, &'a CompletedTransaction),
    Open(&'a ProducerState, &'a OpenTransaction),
    BegunBelow(&'a SnapshotEntry),
}

/// Passes on a row of values that stand beside the names of their columns.
macro_rules! row {
    ($take:expr, $columns:ident, { $($name:literal: $value:expr),* $(,)? }) => {{
        debug_assert_eq!($columns, [$($name),*]);
        $take(&[$(Cell::from($value)),*]);
    }};
}

impl PartitionScan {
    /// Passes on the rows that the partition adds to a table. A column `file` has the number of a segment.
    pub(crate) fn each_row<'a>(&'a self, table: PartitionTable, take: Take<'_, 'a>) {
        match table {
            PartitionTable::Gaps => self.gaps(take),
            PartitionTable::Transactions => self.transactions(take),
            PartitionTable::Producers => self.producers(take),
            PartitionTable::Epochs => self.epochs(take),
            PartitionTable::Timeline => self.timeline(take),
            PartitionTable::Metrics => self.metrics(take),
        }
    }
}

impl PartitionScan {
    /// Transactions by first offset: those that ended, as far as they are kept, and those that did
    /// not.
    fn transactions<'a>(&'a self, take: Take<'_, 'a>) {
        for number in self.order_of_transactions() {
            match self.transaction(number as usize) {
                Some(ListedTransaction::Ended(id, done)) => pass_ended(id, done, take),
                Some(ListedTransaction::Open(producer, open)) => {
                    self.pass_open(producer, open, take);
                }
                Some(ListedTransaction::BegunBelow(entry)) => self.pass_begun_below(entry, take),
                None => {}
            }
        }
    }

    /// The numbers of the transactions of the table, by first offset.
    fn order_of_transactions(&self) -> Vec<u32> {
        let inner = &self.inner;
        let below: HashSet<i64> = inner.begun_below.iter().map(|entry| entry.producer_id).collect();
        let ended = inner.ended.aborted.iter().chain(&inner.ended.committed);
        let ended = ended.map(|(_, done)| Some(done.first_offset));
        let open = inner.producers.iter().map(|producer| {
            let open = producer.open_transaction.as_deref()?;
            (!below.contains(&producer.producer_id)).then_some(open.first_offset)
        });
        let begun_below = inner.begun_below.iter();
        let begun_below =
            begun_below.map(|entry| Some(entry.transaction_first_offset.unwrap_or(0)));
        let all = ended.chain(open).chain(begun_below).zip(0..);
        let mut order: Vec<(i64, u32)> =
            all.filter_map(|(first_offset, number)| Some((first_offset?, number))).collect();
        sort_by(&mut order, Ord::cmp);
        order.into_iter().map(|(_, number)| number).collect()
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
    fn pass_open(&self, producer: &ProducerState, open: &OpenTransaction, take: Take<'_, '_>) {
        let inner = &self.inner;
        let id = producer.producer_id;
        let sums = open.sums();
        let newest = inner.newest_timestamp.max(sums.last_timestamp);
        row!(take, TRANSACTIONS_COLUMNS, {
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
        });
    }

    /// The transaction of a producer that began below the log.
    fn pass_begun_below(&self, entry: &SnapshotEntry, take: Take<'_, '_>) {
        let inner = &self.inner;
        let id = entry.producer_id;
        let place = inner.producers.binary_search_by_key(&id, |producer| producer.producer_id);
        let producer = place.ok().and_then(|place| inner.producers.get(place));
        let open = producer.and_then(|producer| producer.open_transaction.as_ref());
        let open = open.map(|open| open.sums());
        let newest = inner.newest_timestamp.max(entry.last_timestamp);
        row!(take, TRANSACTIONS_COLUMNS, {
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
        });
    }

    /// Idempotent producers as they are at the end of the log, by id.
    fn producers<'a>(&'a self, take: Take<'_, 'a>) {
        for producer in &self.inner.producers {
            let open = producer.open_transaction.as_ref();
            row!(take, PRODUCERS_COLUMNS, {
                "producer_id": producer.producer_id,
                "producer_epoch": producer.producer_epoch,
                "last_sequence": producer.last_sequence,
                "last_offset": producer.last_offset,
                "last_offset_delta": producer.last_offset_delta,
                "last_timestamp": producer.last_timestamp,
                "coordinator_epoch": producer.coordinator_epoch,
                "open_transaction_offset": open.map(|open| open.first_offset),
            });
        }
    }

    /// Offsets that consumers do not get, and why.
    fn gaps<'a>(&'a self, take: Take<'_, 'a>) {
        for gap in &self.inner.gaps {
            row!(take, GAPS_COLUMNS, {
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
            });
        }
    }

    /// Leader epochs in the order of the log.
    fn epochs<'a>(&'a self, take: Take<'_, 'a>) {
        for epoch in &self.inner.epochs {
            row!(take, EPOCHS_COLUMNS, {
                "leader_epoch": epoch.epoch,
                "start_offset": epoch.start_offset,
                "batches": epoch.batches,
                "checkpoint_start_offset": epoch.checkpoint_start_offset,
            });
        }
    }

    /// The segments and their timestamps. The positions of the batches to blame are given where
    /// retention by time does something else than one expects.
    fn timeline<'a>(&'a self, take: Take<'_, 'a>) {
        for (index, scan) in self.inner.segments.iter().enumerate() {
            row!(take, TIMELINE_COLUMNS, {
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
            });
        }
    }

    /// The partition in numbers, one row; none for files whose names tell no offset and that hold no
    /// batch.
    fn metrics<'a>(&'a self, take: Take<'_, 'a>) {
        if !self.has_offsets() {
            return;
        }
        let inner = &self.inner;
        let counters = &inner.counters;
        let open = inner.producers.iter().filter(|producer| producer.open_transaction.is_some());
        let timestamps = inner.segments.iter().filter_map(|scan| scan.oldest);
        let oldest = timestamps.map(|oldest| oldest.timestamp).min();
        row!(take, METRICS_COLUMNS, {
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
    }
}

fn pass_ended(producer_id: i64, done: &CompletedTransaction, take: Take<'_, '_>) {
    row!(take, TRANSACTIONS_COLUMNS, {
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
    });
}
