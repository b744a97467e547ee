//! The entries of the binary files beside a segment, each with how many bytes of it have entries:
//! what follows is not used yet, or is none.

use ottla_log::sidefiles::offset_index::{self, OFFSET_ENTRY_BYTES};
use ottla_log::sidefiles::snapshot::{SnapshotEntry, read_snapshot};
use ottla_log::sidefiles::time_index::{self, TIME_ENTRY_BYTES};
use ottla_log::sidefiles::transaction_index::{self, ABORTED_TRANSACTION_BYTES};
use ottla_py_batches::errors::snapshot_error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Tuples of Python, one an entry, and where in the file they end.
type Entries<'py> = (Bound<'py, PyList>, usize);

/// The entries of a file, and how many of its bytes they take.
///
/// Args:
///     kind: ``offset-index``, entries ``(offset, position)``; ``time-index``, ``(timestamp, offset)``;
///         ``transaction-index``, ``(producer_id, first_offset, last_offset, last_stable_offset)``; or
///         ``producer-snapshot``, ``(producer_id, producer_epoch, last_sequence, last_offset,
///         offset_delta, last_timestamp, coordinator_epoch, transaction_first_offset)``.
///     data: its bytes.
///     base_offset: of its segment.
///
/// Raises:
///     ProducerSnapshotError: a snapshot is truncated, of another version, or has a wrong checksum.
///     ValueError: there is no such kind.
#[pyfunction]
pub fn parse_side_entries<'py>(
    py: Python<'py>,
    kind: &str,
    data: &[u8],
    base_offset: i64,
) -> PyResult<Entries<'py>> {
    match kind {
        "offset-index" => {
            let used = offset_index::entries(data).enumerate();
            let used = used.take_while(|(number, entry)| !entry.is_unused(*number));
            let row = |(_, entry): (_, offset_index::OffsetEntry)| {
                (entry.offset(base_offset), entry.position)
            };
            listed(py, used.map(row), OFFSET_ENTRY_BYTES)
        }
        "time-index" => {
            let used = time_index::entries(data).enumerate();
            let used = used.take_while(|(number, entry)| !entry.is_unused(*number));
            let row = |(_, entry): (_, time_index::TimeEntry)| {
                (entry.timestamp, entry.offset(base_offset))
            };
            listed(py, used.map(row), TIME_ENTRY_BYTES)
        }
        "transaction-index" => {
            let known = transaction_index::entries(data).map_while(|entry| entry);
            let rows =
                known.map(|e| (e.producer_id, e.first_offset, e.last_offset, e.last_stable_offset));
            listed(py, rows, ABORTED_TRANSACTION_BYTES)
        }
        "producer-snapshot" => {
            let entries = read_snapshot(data).map_err(|error| snapshot_error(py, &error))?;
            let (rows, _) = listed(py, entries.into_iter().map(producer), 0)?;
            Ok((rows, data.len()))
        }
        _ => Err(PyValueError::new_err(format!("{kind} is no kind of a file with entries"))),
    }
}

fn listed<'py, R: IntoPyObject<'py>>(
    py: Python<'py>,
    rows: impl Iterator<Item = R>,
    entry_bytes: usize,
) -> PyResult<Entries<'py>> {
    let list = PyList::new(py, rows.collect::<Vec<_>>())?;
    let end = list.len().saturating_mul(entry_bytes);
    Ok((list, end))
}

type ProducerRow = (i64, i16, i32, i64, i32, i64, i32, Option<i64>);

fn producer(entry: SnapshotEntry) -> ProducerRow {
    (
        entry.producer_id,
        entry.producer_epoch,
        entry.last_sequence,
        entry.last_offset,
        entry.offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )
}
