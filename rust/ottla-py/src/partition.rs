//! The segments of a partition put together: findings, and the rows of the tables that a partition
//! fills.

use crate::calls::detached;
use crate::findings::Finding;
use crate::place::{Place, reason_to_stop};
use crate::segment::SegmentScan;
use ottla_audit::partition::producers::ProducerState;
use ottla_audit::partition::side_check::SideFiles;
use ottla_audit::partition::transactions::{CompletedTransaction, OpenTransaction};
use ottla_audit::{PartitionContext, RetentionEffect, SideFile, merge_partition_with};
use ottla_log::sidefiles::snapshot::SnapshotEntry;
use ottla_log::source::{Source, fill};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, OnceLock};

/// What the segments of a partition show together. It names files by the numbers they came with.
#[pyclass(frozen, module = "ottla._engine")]
pub(crate) struct PartitionScan {
    pub(crate) inner: ottla_audit::PartitionScan,
    pub(crate) context: PartitionContext,
    files: Vec<u32>,
    /// The rows of the table of transactions, in its order, once one is asked for.
    transactions: OnceLock<Vec<u32>>,
}

impl PartitionScan {
    fn file(&self, segment: usize) -> Option<u32> {
        self.files.get(segment).copied()
    }

    fn has_offsets(&self) -> bool {
        let first = self.inner.segments.first();
        self.inner.counters.batches > 0
            || first.is_some_and(|segment| segment.context.base_offset.is_some())
    }
}

/// A row of a table: the names of its columns, and its values.
struct TableRow<'py> {
    columns: &'static [&'static str],
    values: Bound<'py, PyTuple>,
}

/// The names of the columns, and the values of each row; no names without a row.
type TableRows<'py> = (Vec<&'static str>, Vec<Bound<'py, PyTuple>>);

/// Some of the rows of a table; the others are not made.
#[derive(Clone, Copy)]
struct Page {
    first: usize,
    limit: usize,
}

impl Page {
    fn of<T>(self, all: &[T]) -> impl Iterator<Item = &T> {
        all.iter().skip(self.first).take(self.limit)
    }
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

fn table_rows<'py>(
    rows: impl Iterator<Item = PyResult<TableRow<'py>>>,
) -> PyResult<TableRows<'py>> {
    let rows: Vec<TableRow<'py>> = rows.collect::<PyResult<_>>()?;
    let columns = rows.first().map_or(Vec::new(), |row| row.columns.to_vec());
    Ok((columns, rows.into_iter().map(|row| row.values).collect()))
}

/// Makes a row of values that stand beside the names of their columns.
macro_rules! row {
    ($py:expr, { $($name:literal: $value:expr),* $(,)? }) => {
        (|| Ok(TableRow {
            columns: &[$($name),*],
            values: PyTuple::new($py, [$($value.into_bound_py_any($py)?),*])?,
        }))()
    };
}

#[pymethods]
impl PartitionScan {
    /// First offset that a consumer can get; ``None`` without a batch and a name.
    #[getter]
    fn log_start_offset(&self) -> Option<i64> {
        self.has_offsets().then_some(self.inner.log_start_offset)
    }

    /// The last offset plus one; ``None`` without a batch and a name.
    #[getter]
    fn log_end_offset(&self) -> Option<i64> {
        self.has_offsets().then_some(self.inner.log_end_offset)
    }

    /// Where ``read_committed`` consumers stop at the latest; ``None`` without a batch and a name.
    #[getter]
    fn last_stable_offset(&self) -> Option<i64> {
        self.has_offsets().then_some(self.inner.last_stable_offset)
    }

    /// All findings by file and position, each with the number of its segment. Where one file has more
    /// than a thousand of a kind, or the partition more than 4,096, the rest is one finding that counts
    /// them.
    #[getter]
    fn findings(&self) -> Vec<(u32, Finding)> {
        let placed = self.inner.findings.iter();
        let placed = placed.map(|placed| (placed.segment, placed.finding.clone()));
        let suppressed = self.inner.suppressed.iter().map(|&(segment, kind, count)| {
            let message = format!("and {count} more of these in this file");
            let finding = ottla_audit::Finding::new(kind, message);
            // Nobody has looked how grave each of them is.
            let severity = finding.severity.max(ottla_audit::Severity::Warning);
            (segment, finding.graded(severity))
        });
        let left_out = self.inner.left_out.iter().map(|(&kind, &(count, severity))| {
            let message = format!("and {count} more of these in this partition");
            (0, ottla_audit::Finding::new(kind, message).graded(severity))
        });
        placed
            .chain(suppressed)
            .chain(left_out)
            .filter_map(|(segment, finding)| Some((self.file(segment)?, Finding::from(finding))))
            .collect()
    }

    /// The rows that the partition adds to a table: names of columns, and values of each row. A column
    /// ``file`` has the number of a segment.
    ///
    /// Args:
    ///     name: ``gaps``, ``transactions``, ``producers``, ``epochs``, ``timeline`` or ``metrics``.
    ///     first: the first row to return.
    ///     limit: how many to return at most; None for all.
    ///
    /// Raises:
    ///     ValueError: there is no such table.
    #[pyo3(signature = (name, first=0, limit=None))]
    fn table<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        first: usize,
        limit: Option<usize>,
    ) -> PyResult<TableRows<'py>> {
        let page = Page { first, limit: limit.unwrap_or(usize::MAX) };
        match name {
            "gaps" => self.gaps(py, page),
            "transactions" => self.transactions(py, page),
            "producers" => self.producers(py, page),
            "epochs" => self.epochs(py, page),
            "timeline" => self.timeline(py, page),
            "metrics" => self.metrics(py, page),
            _ => Err(PyValueError::new_err(format!("a partition adds nothing to a table {name}"))),
        }
    }
}

impl PartitionScan {
    /// Transactions by first offset: those that ended, as far as they are kept, and those that did
    /// not.
    fn transactions<'py>(&self, py: Python<'py>, page: Page) -> PyResult<TableRows<'py>> {
        let order = self.transactions.get_or_init(|| self.order_of_transactions());
        let numbers = order.iter().skip(page.first).take(page.limit);
        table_rows(numbers.filter_map(|&number| {
            Some(match self.transaction(number as usize)? {
                ListedTransaction::Ended(id, done) => ended_row(py, id, done),
                ListedTransaction::Open(producer, open) => self.open_row(py, producer, open),
                ListedTransaction::BegunBelow(entry) => self.begun_below_row(py, entry),
            })
        }))
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
    fn open_row<'py>(
        &self,
        py: Python<'py>,
        producer: &ProducerState,
        open: &OpenTransaction,
    ) -> PyResult<TableRow<'py>> {
        let inner = &self.inner;
        let id = producer.producer_id;
        let sums = open.sums();
        let newest = inner.newest_timestamp.max(sums.last_timestamp);
        row!(py, {
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
    fn begun_below_row<'py>(
        &self,
        py: Python<'py>,
        entry: &SnapshotEntry,
    ) -> PyResult<TableRow<'py>> {
        let inner = &self.inner;
        let id = entry.producer_id;
        let place = inner.producers.binary_search_by_key(&id, |producer| producer.producer_id);
        let producer = place.ok().and_then(|place| inner.producers.get(place));
        let open = producer.and_then(|producer| producer.open_transaction.as_ref());
        let open = open.map(|open| open.sums());
        let newest = inner.newest_timestamp.max(entry.last_timestamp);
        row!(py, {
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
    fn producers<'py>(&self, py: Python<'py>, page: Page) -> PyResult<TableRows<'py>> {
        let rows = page.of(&self.inner.producers).map(|producer| {
            let open = producer.open_transaction.as_ref();
            row!(py, {
                "producer_id": producer.producer_id,
                "producer_epoch": producer.producer_epoch,
                "last_sequence": producer.last_sequence,
                "last_offset": producer.last_offset,
                "last_offset_delta": producer.last_offset_delta,
                "last_timestamp": producer.last_timestamp,
                "coordinator_epoch": producer.coordinator_epoch,
                "open_transaction_offset": open.map(|open| open.first_offset),
            })
        });
        table_rows(rows)
    }

    /// Offsets that consumers do not get, and why.
    fn gaps<'py>(&self, py: Python<'py>, page: Page) -> PyResult<TableRows<'py>> {
        let rows = page.of(&self.inner.gaps).map(|gap| {
            row!(py, {
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
        });
        table_rows(rows)
    }

    /// Leader epochs in the order of the log.
    fn epochs<'py>(&self, py: Python<'py>, page: Page) -> PyResult<TableRows<'py>> {
        let rows = page.of(&self.inner.epochs).map(|epoch| {
            row!(py, {
                "leader_epoch": epoch.epoch,
                "start_offset": epoch.start_offset,
                "batches": epoch.batches,
                "checkpoint_start_offset": epoch.checkpoint_start_offset,
            })
        });
        table_rows(rows)
    }

    /// The segments and their timestamps. The positions of the batches to blame are given where
    /// retention by time does something else than one expects.
    fn timeline<'py>(&self, py: Python<'py>, page: Page) -> PyResult<TableRows<'py>> {
        let segments = self.inner.segments.iter().enumerate();
        let rows = segments.skip(page.first).take(page.limit).map(|(index, scan)| {
            row!(py, {
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
        });
        table_rows(rows)
    }

    /// The partition in numbers, one row; none for files whose names tell no offset and that hold no
    /// batch.
    fn metrics<'py>(&self, py: Python<'py>, page: Page) -> PyResult<TableRows<'py>> {
        if !self.has_offsets() || page.first > 0 || page.limit == 0 {
            return Ok((Vec::new(), Vec::new()));
        }
        let inner = &self.inner;
        let counters = &inner.counters;
        let open = inner.producers.iter().filter(|producer| producer.open_transaction.is_some());
        let timestamps = inner.segments.iter().filter_map(|scan| scan.oldest);
        let oldest = timestamps.map(|oldest| oldest.timestamp).min();
        let row = row!(py, {
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
        table_rows([row].into_iter())
    }
}

fn ended_row<'py>(
    py: Python<'py>,
    producer_id: i64,
    done: &CompletedTransaction,
) -> PyResult<TableRow<'py>> {
    row!(py, {
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

/// Producers of a partition that take as much as a megabyte.
const MANY_PRODUCERS: usize = 1 << 12;

/// A side file is read whole; none of a broker is larger.
const MAX_SIDE_FILE_BYTES: u64 = 64 << 20;

/// The files beside the segments of a partition.
#[derive(Default)]
struct Beside {
    offsets: Vec<i64>,
    snapshots: Vec<Place>,
    transaction_indexes: Vec<Option<Place>>,
    stop: Mutex<Option<PyErr>>,
}

impl SideFiles for Beside {
    fn snapshots(&self) -> &[i64] {
        &self.offsets
    }

    fn read(&self, file: SideFile, segment: usize) -> io::Result<Option<Vec<u8>>> {
        let place = match file {
            SideFile::Snapshot(offset) => {
                let place = self.offsets.binary_search(&offset);
                place.ok().and_then(|place| self.snapshots.get(place))
            }
            SideFile::TransactionIndex => {
                self.transaction_indexes.get(segment).and_then(Option::as_ref)
            }
            _ => None,
        };
        let Some(place) = place else { return Ok(None) };
        let read = read_whole(place);
        if let Some(raised) = read.as_ref().err().and_then(reason_to_stop)
            && let Ok(mut stop) = self.stop.lock()
        {
            *stop = Some(raised);
        }
        read.map(Some)
    }

    fn is_known(&self) -> bool {
        !self.transaction_indexes.is_empty()
    }
}

/// Reads a side file.
fn read_whole(place: &Place) -> io::Result<Vec<u8>> {
    let source = place.open()?;
    let size = source.size()?;
    if size > MAX_SIDE_FILE_BYTES {
        return Err(io::Error::other(format!("more than {MAX_SIDE_FILE_BYTES} bytes")));
    }
    let mut data = vec![0; usize::try_from(size).unwrap_or(0)];
    let filled = fill(&source, 0, &mut data)?;
    data.truncate(filled);
    Ok(data)
}

/// Puts the scans of a partition together, in the order of their base offsets.
///
/// Args:
///     scans: pairs of a number, by which findings and rows name the file, and its scan.
///     topic: of the partition.
///     log_start_offset: of ``log-start-offset-checkpoint``, if it has an entry.
///     recovery_point, high_watermark: of the checkpoints of those names, if they have an entry and
///         the last of the scans is of the active segment.
///     first_dirty_offset: of ``cleaner-offset-checkpoint``, if it has an entry.
///     leader_epochs: epochs and start offsets of ``leader-epoch-checkpoint``.
///     cleanup_policy, remote_storage, max_message_bytes, is_preallocated: of the topic's configuration, if known.
///     is_head: whether the first of the scans is of the partition's first segment.
///     is_consumer_offsets: whether the partition belongs to ``__consumer_offsets``.
///     orphans: base offsets of index files without their ``.log``.
///     snapshots: offsets and paths of the producer snapshots, by offset; the path, or an object that
///         reads it, see :class:`Segment`.
///     transaction_indexes: of each scan the path of its ``.txnindex``, if there is one; empty when
///         the files beside the segments are not to be compared.
#[pyfunction]
#[pyo3(signature = (
    scans, *, topic=None, log_start_offset=None, recovery_point=None, high_watermark=None,
    first_dirty_offset=None, leader_epochs=vec![], cleanup_policy=None, remote_storage=None,
    max_message_bytes=None, is_preallocated=None, is_head=false, is_consumer_offsets=false,
    orphans=vec![], snapshots=vec![], transaction_indexes=vec![]
))]
#[expect(clippy::too_many_arguments, reason = "by name")]
#[expect(clippy::needless_pass_by_value, reason = "a list of Python arrives as a vector")]
pub(crate) fn merge_partition(
    py: Python<'_>,
    scans: Vec<(u32, Py<SegmentScan>)>,
    topic: Option<String>,
    log_start_offset: Option<i64>,
    recovery_point: Option<i64>,
    high_watermark: Option<i64>,
    first_dirty_offset: Option<i64>,
    leader_epochs: Vec<(i32, i64)>,
    cleanup_policy: Option<String>,
    remote_storage: Option<bool>,
    max_message_bytes: Option<u64>,
    is_preallocated: Option<bool>,
    is_head: bool,
    is_consumer_offsets: bool,
    orphans: Vec<i64>,
    snapshots: Vec<(i64, Place)>,
    transaction_indexes: Vec<Option<Place>>,
) -> PyResult<PartitionScan> {
    let (offsets, snapshots) = snapshots.into_iter().unzip();
    let beside = Beside { offsets, snapshots, transaction_indexes, stop: Mutex::new(None) };
    let context = PartitionContext {
        topic,
        log_start_offset,
        recovery_point,
        high_watermark,
        max_message_bytes,
        is_preallocated,
        first_dirty_offset,
        leader_epochs,
        cleanup_policy,
        remote_storage,
        is_head,
        is_consumer_offsets,
        orphans,
    };
    let files = scans.iter().map(|(file, _)| *file).collect();
    let inner = detached(py, || {
        let producers = scans.iter().map(|(_, scan)| scan.get().inner.producer_count());
        let release: fn() = if producers.sum::<usize>() >= MANY_PRODUCERS {
            ottla_kernels::release_freed_memory
        } else {
            || ()
        };
        // What only served to scan or merge them is not held beside what is made of them.
        release();
        let segments = scans.iter().map(|(_, scan)| &scan.get().inner);
        let merged = merge_partition_with(segments, &context, &beside);
        release();
        merged
    })?;
    match beside.stop.into_inner().ok().flatten() {
        Some(stop) => Err(stop),
        None => Ok(PartitionScan { inner, context, files, transactions: OnceLock::new() }),
    }
}
