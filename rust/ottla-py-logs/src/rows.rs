//! The rows of the tables `batches` and `records` as Python objects, a bounded number at a time.

use crate::place::{Opened, Place};
use crate::scanners::with_scanner;
use ottla_audit::SegmentContext;
use ottla_audit::rows::BatchRow;
use ottla_audit::rows::columns::{
    BATCH_COLUMNS, BatchValue, KAFKA_COLUMNS, KafkaPart, PLACE_COLUMNS, PlacePart, RECORD_COLUMNS,
    RecordPart, TRAIT_COLUMNS, TraitPart,
};
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use ottla_log::source::fill;
use ottla_py_batches::bytes::SharedBytes;
use ottla_py_batches::calls::detached;
use ottla_py_batches::records::iterate;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// Name, type and meaning of each column of ``batches`` and ``records``, in the order of the rows that
/// :func:`segment_batches` and :func:`segment_records` return.
///
/// Args:
///     table: ``place`` for the columns that name the place of a row, ``batches`` or ``records``;
///         ``source`` for what a table of records in Spark has more, ``kafka`` for the columns of
///         Spark's Kafka source.
///
/// Raises:
///     ValueError: another table.
#[pyfunction]
pub fn segment_columns(table: &str) -> PyResult<Vec<(&'static str, &'static str, &'static str)>> {
    let of_place = |part: PlacePart| match part {
        PlacePart::File | PlacePart::Topic => "string",
        PlacePart::Partition => "int32",
    };
    let of_batch = |value: BatchValue| match value {
        BatchValue::Int64(_) => "int64",
        BatchValue::Int32(_) => "int32",
        BatchValue::Boolean(_) => "bool",
        BatchValue::Text(_) => "string",
    };
    let of_record = |part: RecordPart| match part {
        RecordPart::BatchPosition | RecordPart::Offset | RecordPart::Timestamp => "int64",
        RecordPart::Key | RecordPart::Value => "binary",
        RecordPart::Headers => "list",
        RecordPart::Sequence => "int32",
        RecordPart::Control => "string",
    };
    let of_trait = |part: TraitPart| match part {
        TraitPart::TimestampType => "string",
        TraitPart::ProducerId => "int64",
        TraitPart::ProducerEpoch => "int32",
        TraitPart::IsTransactional => "bool",
    };
    let of_kafka = |part: KafkaPart| match part {
        KafkaPart::Key | KafkaPart::Value => "binary",
        KafkaPart::Topic => "string",
        KafkaPart::Partition | KafkaPart::TimestampType => "int32",
        KafkaPart::Offset => "int64",
        KafkaPart::Timestamp => "timestamp",
        KafkaPart::Headers => "headers",
    };
    Ok(match table {
        "place" => PLACE_COLUMNS.iter().map(|c| (c.name, of_place(c.value), c.doc)).collect(),
        "batches" => BATCH_COLUMNS.iter().map(|c| (c.name, of_batch(c.value), c.doc)).collect(),
        "records" => RECORD_COLUMNS.iter().map(|c| (c.name, of_record(c.value), c.doc)).collect(),
        "source" => TRAIT_COLUMNS.iter().map(|c| (c.name, of_trait(c.value), c.doc)).collect(),
        "kafka" => KAFKA_COLUMNS.iter().map(|c| (c.name, of_kafka(c.value), c.doc)).collect(),
        _ => {
            let names = "'place', 'batches', 'records', 'source' or 'kafka'";
            let message = format!("table is {names}, not '{table}'");
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        }
    })
}

fn batch_row<'py>(py: Python<'py>, row: &BatchRow) -> PyResult<Bound<'py, PyTuple>> {
    let object = |value: BatchValue| -> PyResult<Bound<'py, PyAny>> {
        Ok(match value {
            BatchValue::Int64(value) => value(row).into_pyobject(py)?,
            BatchValue::Int32(value) => value(row).into_pyobject(py)?,
            BatchValue::Boolean(value) => value(row).into_pyobject(py)?.to_owned().into_any(),
            BatchValue::Text(value) => value(row).into_pyobject(py)?.into_any(),
        })
    };
    let values = BATCH_COLUMNS.iter().map(|column| object(column.value));
    PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)
}

fn list(
    py: Python<'_>,
    place: &Place,
    source: &Opened,
    position: u64,
    limit: usize,
) -> PyResult<ottla_audit::Listing> {
    let context = SegmentContext::default();
    detached(py, || {
        with_scanner(Level::Decode, |scanner| scanner.list(source, context, position, limit))
    })?
    .map_err(|error| place.error(py, &error))
}

/// The batches of a file from the batch at a position on, damage left out.
///
/// Returns rows of ``batches``, at least ``limit`` of them where there are so many, and
/// the position to go on from, ``None`` at the end.
///
/// Raises:
///     OSError: the file cannot be read.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn segment_batches(
    py: Python<'_>,
    path: Place,
    position: u64,
    limit: usize,
) -> PyResult<(Vec<Bound<'_, PyTuple>>, Option<u64>)> {
    let source = path.open_detached(py)?;
    let listing = list(py, &path, &source, position, limit)?;
    let rows =
        listing.batches.iter().map(|&(info, is_valid)| batch_row(py, &BatchRow { info, is_valid }));
    Ok((rows.collect::<PyResult<_>>()?, listing.next_position))
}

/// The records of a file from the batch at a position on, damage left out; of a batch whose records
/// cannot be read those before the fault.
///
/// Returns rows of ``records``, whole batches until there are ``limit`` rows, and the
/// position to go on from, ``None`` at the end.
///
/// Raises:
///     OSError: the file cannot be read.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn segment_records(
    py: Python<'_>,
    path: Place,
    position: u64,
    limit: usize,
) -> PyResult<(Vec<Bound<'_, PyTuple>>, Option<u64>)> {
    let source = path.open_detached(py)?;
    let listing = list(py, &path, &source, position, limit.div_ceil(16))?;
    let mut rows = Vec::new();
    for (info, is_valid) in &listing.batches {
        if rows.len() >= limit {
            return Ok((rows, Some(info.position)));
        }
        if !is_valid || info.size > Limits::default().batch_bytes {
            continue;
        }
        let mut whole = vec![0; usize::try_from(info.size).unwrap_or(0)];
        let filled = detached(py, || fill(&source, info.position, &mut whole))?;
        if filled.map_err(|error| path.error(py, &error))? < whole.len() {
            return Ok((rows, None));
        }
        // What cannot be read further is a finding of the audit; here it ends the batch.
        let whole = SharedBytes::whole(PyBytes::new(py, &whole));
        let Ok(records) = iterate(py, info, &whole, info.position) else { continue };
        while let Ok(Some(record)) = records.next_record(py) {
            rows.push(record.row(py, info.position)?);
        }
    }
    Ok((rows, listing.next_position))
}
