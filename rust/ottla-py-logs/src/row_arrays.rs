//! Rows of segments as arrays of Arrow.

use crate::json::headers::header_texts;
use crate::row_columns::{ColumnSource, NO_HEADERS, Prefix, Selection};
use arrow_array::builder::{BooleanBuilder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use ottla_audit::rows::columns::{BatchValue, PlacePart, RecordPart, TraitPart};
use ottla_audit::rows::headers::RecordHeaders;
use ottla_audit::rows::{BatchRow, BatchTraits, RecordRows};
use ottla_format::attributes::TimestampType;
use ottla_kernels::copies::BinaryValues;
use ottla_kernels::views::Nulls;
use ottla_py_batches::header_structs::{HeaderKeys, header_structs};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// The same value in every row, made once for as many rows as were ever needed.
struct Repeated<T> {
    value: Option<T>,
    array: Option<ArrayRef>,
}

impl<T> Repeated<T> {
    fn new(value: Option<T>) -> Self {
        Self { value, array: None }
    }

    fn rows(
        &mut self,
        count: usize,
        make: impl FnOnce(&T, usize) -> ArrayRef,
        nulls: impl FnOnce(usize) -> ArrayRef,
    ) -> ArrayRef {
        let made = self.array.take().filter(|array| array.len() >= count);
        let array = made.unwrap_or_else(|| match &self.value {
            Some(value) => make(value, count),
            None => nulls(count),
        });
        let rows = array.slice(0, count);
        self.array = Some(array);
        rows
    }
}

impl Repeated<String> {
    fn text(&mut self, count: usize) -> ArrayRef {
        let make = |value: &String, count: usize| -> ArrayRef {
            let ends = OffsetBuffer::from_repeated_length(value.len(), count);
            let data = Buffer::from_vec(value.as_bytes().repeat(count));
            // It repeats UTF-8, and its length is that of the repetition.
            StringArray::try_new(ends, data, None).map_or_else(
                |_| Arc::new(StringArray::new_null(count)) as _,
                |array| Arc::new(array) as _,
            )
        };
        self.rows(count, make, |count| Arc::new(StringArray::new_null(count)))
    }
}

impl Repeated<i32> {
    fn number(&mut self, count: usize) -> ArrayRef {
        let make =
            |value: &i32, count| -> ArrayRef { Arc::new(Int32Array::from_value(*value, count)) };
        self.rows(count, make, |count| Arc::new(Int32Array::new_null(count)))
    }
}

/// The columns that are the same in every row, or nearly always.
pub(crate) struct Constants {
    file: Repeated<String>,
    topic: Repeated<String>,
    partition: Repeated<i32>,
    no_headers: Repeated<String>,
    no_control: Repeated<String>,
}

impl Constants {
    pub(crate) fn new((file, topic, partition): Prefix) -> Self {
        Self {
            file: Repeated::new(file),
            topic: Repeated::new(topic),
            partition: Repeated::new(partition),
            no_headers: Repeated::new(Some(NO_HEADERS.to_owned())),
            no_control: Repeated::new(None),
        }
    }

    fn place(&mut self, part: PlacePart, count: usize) -> ArrayRef {
        match part {
            PlacePart::File => self.file.text(count),
            PlacePart::Topic => self.topic.text(count),
            PlacePart::Partition => self.partition.number(count),
        }
    }
}

/// Makes the columns asked for of those of records that depend on no file.
pub(crate) fn record_columns(
    rows: RecordRows,
    selection: &Selection,
) -> Result<RecordBatch, ArrowError> {
    let mut constants = Constants::new((None, None, None));
    records(rows, selection, &mut constants, Impossible::Error)
}

/// Makes the columns asked for of records.
pub(crate) fn records(
    mut rows: RecordRows,
    selection: &Selection,
    constants: &mut Constants,
    impossible: Impossible,
) -> Result<RecordBatch, ArrowError> {
    let count = rows.offsets.len();
    // While the offsets that an error names are there.
    let has_times = selection.sources.iter().any(|s| matches!(s, ColumnSource::SparkTimestamp));
    let times = if has_times { Some(spark_timestamps(&rows, impossible)?) } else { None };
    selection.batch_of(count, |source| {
        let part = match source {
            ColumnSource::Place(part) => return Ok(constants.place(part, count)),
            ColumnSource::Record(part) => part,
            ColumnSource::Trait(part) => return Ok(traits(&rows.traits, count, part)),
            ColumnSource::TimestampTypeId => return Ok(timestamp_type_ids(&rows.traits, count)),
            ColumnSource::SparkTimestamp => return times.clone().ok_or_else(foreign_column),
            ColumnSource::HeaderStructs { null_if_none } => {
                let headers = rows.headers.take();
                let headers = headers.as_ref().map(RecordHeaders::iter);
                return header_structs(headers, count, null_if_none, HeaderKeys::Text);
            }
            ColumnSource::Batch(_) => return Err(foreign_column()),
        };
        let long = |values: &mut Vec<i64>| -> ArrayRef {
            Arc::new(Int64Array::from(std::mem::take(values)))
        };
        Ok(match part {
            RecordPart::BatchPosition => long(&mut rows.batch_positions),
            RecordPart::Offset => long(&mut rows.offsets),
            RecordPart::Timestamp => long(&mut rows.timestamps),
            RecordPart::Key => binary(&mut rows.keys)?,
            RecordPart::Value => binary(&mut rows.values)?,
            RecordPart::Sequence => Arc::new(Int32Array::from(std::mem::take(&mut rows.sequences))),
            RecordPart::Headers => match rows.headers.take() {
                None => constants.no_headers.text(count),
                Some(headers) => Arc::new(header_texts(&headers)?),
            },
            RecordPart::Control => match rows.controls.take() {
                None => constants.no_control.text(count),
                Some(controls) => Arc::new(StringArray::from(controls)),
            },
        })
    })
}

pub(crate) fn binary(values: &mut BinaryValues) -> Result<ArrayRef, ArrowError> {
    let BinaryValues { ends, data, nulls } = values;
    let rows = ends.len().saturating_sub(1);
    let ends = OffsetBuffer::new(ScalarBuffer::from(std::mem::take(ends)));
    let data = Buffer::from_vec(std::mem::take(data));
    Ok(Arc::new(BinaryArray::try_new(ends, data, validity(nulls, rows))?))
}

fn validity(nulls: &mut Nulls, rows: usize) -> Option<NullBuffer> {
    let bits = Buffer::from_vec(nulls.validity.take()?);
    Some(NullBuffer::new(BooleanBuffer::new(bits, 0, rows)))
}

/// Makes the columns asked for of batches.
pub(crate) fn batches(
    rows: &[BatchRow],
    selection: &Selection,
    constants: &mut Constants,
) -> Result<RecordBatch, ArrowError> {
    let count = rows.len();
    selection.batch_of(count, |source| {
        let value = match source {
            ColumnSource::Place(part) => return Ok(constants.place(part, count)),
            ColumnSource::Batch(value) => value,
            _ => return Err(foreign_column()),
        };
        Ok(match value {
            BatchValue::Int64(value) => Arc::new(rows.iter().map(value).collect::<Int64Array>()),
            BatchValue::Int32(value) => Arc::new(rows.iter().map(value).collect::<Int32Array>()),
            BatchValue::Boolean(value) => {
                Arc::new(rows.iter().map(|row| Some(value(row))).collect::<BooleanArray>())
            }
            BatchValue::Text(value) => {
                Arc::new(rows.iter().map(|row| Some(value(row))).collect::<StringArray>())
            }
        })
    })
}

/// A table has the columns of its own rows alone: see [`Table::columns`].
fn foreign_column() -> ArrowError {
    ArrowError::SchemaError("a column of another table".to_owned())
}

/// Calls `push` with the traits of each batch and the number of its rows.
fn each_run(runs: &[(usize, BatchTraits)], rows: usize, mut push: impl FnMut(&BatchTraits, usize)) {
    let mut from = 0;
    for (end, traits) in runs {
        let end = (*end).min(rows);
        push(traits, end.saturating_sub(from));
        from = end;
    }
}

fn traits(runs: &[(usize, BatchTraits)], rows: usize, part: TraitPart) -> ArrayRef {
    match part {
        TraitPart::TimestampType => {
            let mut names = StringBuilder::new();
            each_run(runs, rows, |traits, count| {
                (0..count).for_each(|_| names.append_value(traits.timestamp_type.name()));
            });
            Arc::new(names.finish())
        }
        TraitPart::ProducerId => {
            let mut ids = Vec::with_capacity(rows);
            each_run(runs, rows, |traits, count| {
                ids.resize(ids.len().saturating_add(count), traits.producer_id);
            });
            Arc::new(Int64Array::from(ids))
        }
        TraitPart::ProducerEpoch => {
            let mut epochs: Vec<i32> = Vec::with_capacity(rows);
            each_run(runs, rows, |traits, count| {
                epochs.resize(epochs.len().saturating_add(count), traits.producer_epoch.into());
            });
            Arc::new(Int32Array::from(epochs))
        }
        TraitPart::IsTransactional => {
            let mut flags = BooleanBuilder::with_capacity(rows);
            each_run(runs, rows, |traits, count| flags.append_n(count, traits.is_transactional));
            Arc::new(flags.finish())
        }
    }
}

/// The numbers of Kafka's `TimestampType`.
fn timestamp_type_ids(runs: &[(usize, BatchTraits)], rows: usize) -> ArrayRef {
    let mut ids = Vec::with_capacity(rows);
    each_run(runs, rows, |traits, count| {
        let id = match traits.timestamp_type {
            TimestampType::None => -1,
            TimestampType::CreateTime => 0,
            TimestampType::LogAppendTime => 1,
        };
        ids.resize(ids.len().saturating_add(count), id);
    });
    Arc::new(Int32Array::from(ids))
}

/// What becomes of timestamps that 64 bits cannot hold in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Impossible {
    Error,
    Null,
    Clamp,
}

impl Impossible {
    pub(crate) fn from_name(name: &str) -> PyResult<Self> {
        match name {
            "error" => Ok(Self::Error),
            "null" => Ok(Self::Null),
            "clamp" => Ok(Self::Clamp),
            _ => {
                let names = "'error', 'null' or 'clamp'";
                Err(PyValueError::new_err(format!(
                    "impossible_timestamps is {names}, not '{name}'"
                )))
            }
        }
    }
}

const MICROS: i64 = 1000;

/// Timestamps in microseconds, of the time zone that Spark wants named.
fn spark_timestamps(rows: &RecordRows, impossible: Impossible) -> Result<ArrayRef, ArrowError> {
    const POSSIBLE: std::ops::RangeInclusive<i64> = i64::MIN / MICROS..=i64::MAX / MICROS;
    let times = &rows.timestamps;
    let is_possible = |time: &i64| POSSIBLE.contains(time);
    let mut nulls = None;
    if !times.iter().all(is_possible) {
        match impossible {
            Impossible::Null => nulls = Some(times.iter().map(is_possible).collect::<NullBuffer>()),
            Impossible::Clamp => {}
            Impossible::Error => {
                let at = times.iter().position(|time| !is_possible(time)).unwrap_or(0);
                let offset = rows.offsets.get(at).copied().unwrap_or(-1);
                let time = times.get(at).copied().unwrap_or(-1);
                return Err(ArrowError::CastError(format!(
                    "the record of offset {offset} has timestamp {time}, in ms, which Spark's \
                     microseconds in 64 bits cannot hold"
                )));
            }
        }
    }
    let (lowest, highest) = (*POSSIBLE.start(), *POSSIBLE.end());
    let micros = times.iter().map(|time| (*time).clamp(lowest, highest).wrapping_mul(MICROS));
    let micros = ScalarBuffer::from(micros.collect::<Vec<_>>());
    Ok(Arc::new(TimestampMicrosecondArray::try_new(micros, nulls)?.with_timezone("UTC")))
}
