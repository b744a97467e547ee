//! A leader's verdicts on a column of record sets, as Arrow columns, without a Python object a row.

use crate::segment_table::TableBatch;
use arrow_array::builder::StringBuilder;
use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};
use ottla_format::error_code::ErrorCode;
use ottla_leader::{Accepted, RecordError, Refusal, Request, TopicConfig, Validator};
use ottla_py_batches::calls::detached;
use ottla_py_batches::numpy_columns::{Array, contiguous};
use ottla_py_batches::request_options::{Integer, RequestOptions, origin_of};
use ottla_py_batches::topic_settings::{TopicSettings, settings_of};
use ottla_py_batches::validator::with_validator;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use std::sync::Arc;

/// An option of a column of record sets: one value for every row, or each row's own.
#[derive(FromPyObject)]
pub enum RowOption<T> {
    /// One for each row.
    Each(Vec<T>),
    /// One for all rows.
    Same(T),
}

impl<T> RowOption<T> {
    pub(crate) fn try_map<U>(self, map: impl Fn(T) -> PyResult<U>) -> PyResult<RowOption<U>> {
        Ok(match self {
            Self::Each(values) => {
                RowOption::Each(values.into_iter().map(map).collect::<PyResult<_>>()?)
            }
            Self::Same(value) => RowOption::Same(map(value)?),
        })
    }
}

impl<T> RowOption<Option<T>> {
    /// The value of a row; `None` where it has none.
    fn of(&self, row: usize) -> Option<&T> {
        match self {
            Self::Each(values) => values.get(row)?.as_ref(),
            Self::Same(value) => value.as_ref(),
        }
    }

    fn known(&self, row: usize, name: &str) -> PyResult<&T> {
        self.of(row).ok_or_else(|| PyValueError::new_err(format!("{name} is null")))
    }
}

pub(crate) type Numbers = RowOption<Option<Integer>>;
pub(crate) type Texts = RowOption<Option<PyBackedStr>>;

/// Judges each record set of a column as :func:`validate` does. Returns the attributes of the
/// verdicts as columns of their names, with ``stored_size`` in place of the bytes.
///
/// A row that is not judged is not ``accepted``, ``error_message`` says why, and the other columns
/// are null.
///
/// Args:
///     ends: int64, one more than there are rows: set ``i`` is ``data[ends[i]:ends[i + 1]]``.
///     data: uint8; it must not change meanwhile.
///     config, now_ms, api_version, base_offset, leader_epoch, origin, transactional_id, profile,
///         kafka_version: see :func:`validate`; all but the last two may be a list with one value a
///         row.
///     unjudged: for each row why it is not judged, ``None`` for those that are.
///
/// Raises:
///     ValueError: ends that lie outside the data, or more text than a column holds.
///     TypeError: a config that is not a TopicConfig.
#[pyfunction]
#[pyo3(signature = (
    ends, data, config, *, now_ms, api_version, base_offset, leader_epoch, origin, transactional_id,
    profile, kafka_version=None, unjudged=None
))]
#[expect(clippy::too_many_arguments, reason = "by name")]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn validate_column(
    py: Python<'_>,
    ends: Array<'_, i64>,
    data: Array<'_, u8>,
    config: RowOption<Option<Bound<'_, PyAny>>>,
    now_ms: Numbers,
    api_version: Numbers,
    base_offset: Numbers,
    leader_epoch: Numbers,
    origin: Texts,
    transactional_id: Texts,
    profile: &str,
    kafka_version: Option<&str>,
    unjudged: Option<Vec<Option<String>>>,
) -> PyResult<TableBatch> {
    let (ends, data) = (contiguous(&ends)?, contiguous(&data)?);
    let options = ColumnOptions {
        now_ms,
        api_version,
        base_offset,
        leader_epoch,
        origin,
        transactional_id,
        profile,
        kafka_version,
    };
    let rows = options.rows(py, config, unjudged, ends.len().saturating_sub(1))?;
    let sets: Vec<_> = sets_of(ends, data).collect::<PyResult<_>>()?;
    let verdicts = detached(py, || with_validator(|validator| judge(&rows, &sets, validator)))?;
    verdicts.map(TableBatch::new).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The options of a column of record sets.
pub(crate) struct ColumnOptions<'a> {
    pub(crate) now_ms: Numbers,
    pub(crate) api_version: Numbers,
    pub(crate) base_offset: Numbers,
    pub(crate) leader_epoch: Numbers,
    pub(crate) origin: Texts,
    pub(crate) transactional_id: Texts,
    pub(crate) profile: &'a str,
    pub(crate) kafka_version: Option<&'a str>,
}

impl ColumnOptions<'_> {
    /// What becomes of each of so many rows.
    pub(crate) fn rows(
        &self,
        py: Python<'_>,
        config: RowOption<Option<Bound<'_, PyAny>>>,
        unjudged: Option<Vec<Option<String>>>,
        count: usize,
    ) -> PyResult<Vec<SetRow>> {
        let settings = config.try_map(|config| settings_of(py, config.as_ref()).map(Some))?;
        let mut whys = unjudged.unwrap_or_default().into_iter();
        let row_of = |row| {
            if let Some(why) = whys.next().flatten() {
                return SetRow::Unjudged(why);
            }
            let config = settings.known(row, "config");
            let request = |config: &TopicSettings| self.request(row, config.config());
            match config.and_then(|config| Ok((config, request(config.get())?))) {
                Ok((config, request)) => SetRow::Judged(config.clone_ref(py), request),
                Err(error) => SetRow::Unjudged(format!("nothing was judged: {}", error.value(py))),
            }
        };
        Ok((0..count).map(row_of).collect())
    }

    /// The request of a row. What is missing is reported before what is wrong.
    fn request(&self, row: usize, config: &TopicConfig) -> PyResult<Request> {
        let now_ms = *self.now_ms.known(row, "now_ms")?;
        let base_offset = *self.base_offset.known(row, "base_offset")?;
        let leader_epoch = *self.leader_epoch.known(row, "leader_epoch")?;
        let origin = origin_of(self.origin.known(row, "origin")?)?;
        RequestOptions {
            now_ms,
            api_version: self.api_version.of(row).copied(),
            base_offset,
            leader_epoch,
            origin,
            has_transactional_id: self.transactional_id.of(row).is_some(),
            profile: self.profile,
            kafka_version: self.kafka_version,
        }
        .request(config)
    }
}

/// The bytes of the set that lies between two ends.
pub(crate) fn set_of<'a>(data: &'a [u8], bounds: &[i64]) -> PyResult<&'a [u8]> {
    let place = |bound: Option<&i64>| usize::try_from(*bound?).ok();
    place(bounds.first())
        .zip(place(bounds.last()))
        .and_then(|(start, end)| data.get(start..end))
        .ok_or_else(|| {
            let size = data.len();
            PyValueError::new_err(format!("a set lies at {bounds:?}, in data of {size} bytes"))
        })
}

/// The sets that lie between ends.
fn sets_of<'a>(ends: &'a [i64], data: &'a [u8]) -> impl Iterator<Item = PyResult<&'a [u8]>> {
    ends.windows(2).map(|bounds| set_of(data, bounds))
}

/// What becomes of a row: the configuration and the request that its set is judged by, or why it is
/// not.
pub(crate) enum SetRow {
    Judged(Py<TopicSettings>, Request),
    Unjudged(String),
}

fn judge(
    rows: &[SetRow],
    sets: &[&[u8]],
    validator: &mut Validator,
) -> Result<RecordBatch, ArrowError> {
    let mut verdicts = VerdictColumns::default();
    for (row, set) in rows.iter().zip(sets) {
        match row {
            SetRow::Judged(settings, request) => {
                let config = settings.get().config();
                match ottla_leader::validate(set, config, request, validator).outcome {
                    Ok(accepted) => verdicts.accept(&accepted)?,
                    Err(refusal) => verdicts.refuse(&refusal)?,
                }
            }
            SetRow::Unjudged(why) => verdicts.leave_out(why)?,
        }
    }
    verdicts.finish()
}

/// The columns of verdicts, as they are filled.
#[derive(Default)]
struct VerdictColumns {
    accepted: Vec<bool>,
    error: Vec<Option<i32>>,
    error_name: Messages,
    error_message: Messages,
    record_errors: RecordErrorLists,
    is_request_wide: Vec<Option<bool>>,
    base_offset: Vec<Option<i64>>,
    last_offset: Vec<Option<i64>>,
    log_append_time_ms: Vec<Option<i64>>,
    max_timestamp_ms: Vec<Option<i64>>,
    offset_of_max_timestamp: Vec<Option<i64>>,
    stored_size: Vec<Option<i64>>,
    is_rebuilt: Vec<Option<bool>>,
    converted: Vec<Option<i64>>,
}

impl VerdictColumns {
    fn accept(&mut self, accepted: &Accepted<'_>) -> Result<(), ArrowError> {
        self.accepted.push(true);
        self.decide(ErrorCode::None, false, Some(accepted))?;
        self.error_message.builder.append_null();
        self.record_errors.end_row(true);
        Ok(())
    }

    fn refuse(&mut self, refusal: &Refusal) -> Result<(), ArrowError> {
        self.accepted.push(false);
        self.decide(refusal.error, refusal.is_request_wide, None)?;
        self.error_message.push(&refusal.message())?;
        for error in &refusal.record_errors {
            self.record_errors.push(error)?;
        }
        self.record_errors.end_row(true);
        Ok(())
    }

    fn decide(
        &mut self,
        error: ErrorCode,
        is_request_wide: bool,
        accepted: Option<&Accepted<'_>>,
    ) -> Result<(), ArrowError> {
        self.error.push(Some(error.code().into()));
        self.error_name.push(error.name())?;
        self.is_request_wide.push(Some(is_request_wide));
        let field = |field: fn(&Accepted<'_>) -> i64| Some(accepted.map_or(-1, field));
        self.base_offset.push(field(|accepted| accepted.base_offset));
        self.last_offset.push(field(|accepted| accepted.last_offset));
        self.log_append_time_ms.push(field(|accepted| accepted.log_append_time_ms));
        self.max_timestamp_ms.push(field(|accepted| accepted.max_timestamp_ms));
        self.offset_of_max_timestamp.push(field(|accepted| accepted.offset_of_max_timestamp));
        self.stored_size.push(Some(accepted.map_or(0, |accepted| accepted.stored.len() as i64)));
        self.is_rebuilt.push(Some(accepted.is_some_and(|accepted| accepted.is_rebuilt)));
        self.converted.push(Some(accepted.map_or(0, |accepted| accepted.converted as i64)));
        Ok(())
    }

    fn leave_out(&mut self, why: &str) -> Result<(), ArrowError> {
        self.accepted.push(false);
        self.error.push(None);
        self.error_name.builder.append_null();
        self.error_message.push(why)?;
        self.record_errors.end_row(false);
        self.is_request_wide.push(None);
        self.is_rebuilt.push(None);
        for numbers in [
            &mut self.base_offset,
            &mut self.last_offset,
            &mut self.log_append_time_ms,
            &mut self.max_timestamp_ms,
            &mut self.offset_of_max_timestamp,
            &mut self.stored_size,
            &mut self.converted,
        ] {
            numbers.push(None);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let bools = |values: Vec<Option<bool>>| Arc::new(BooleanArray::from(values)) as ArrayRef;
        let numbers = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let columns: [(&str, ArrayRef); 14] = [
            ("accepted", Arc::new(BooleanArray::from(self.accepted))),
            ("error", Arc::new(Int32Array::from(self.error))),
            ("error_name", Arc::new(self.error_name.builder.finish())),
            ("error_message", Arc::new(self.error_message.builder.finish())),
            ("record_errors", Arc::new(self.record_errors.finish()?)),
            ("is_request_wide", bools(self.is_request_wide)),
            ("base_offset", numbers(self.base_offset)),
            ("last_offset", numbers(self.last_offset)),
            ("log_append_time_ms", numbers(self.log_append_time_ms)),
            ("max_timestamp_ms", numbers(self.max_timestamp_ms)),
            ("offset_of_max_timestamp", numbers(self.offset_of_max_timestamp)),
            ("stored_size", numbers(self.stored_size)),
            ("is_rebuilt", bools(self.is_rebuilt)),
            ("converted", numbers(self.converted)),
        ];
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
    }
}

/// A column of text, of which Arrow counts 2 GiB at most.
#[derive(Default)]
pub(crate) struct Messages {
    pub(crate) builder: StringBuilder,
    size: usize,
}

impl Messages {
    pub(crate) fn push(&mut self, text: &str) -> Result<(), ArrowError> {
        self.size = self.size.saturating_add(text.len());
        if i32::try_from(self.size).is_err() {
            let message = "messages of more than 2 GiB: judge fewer record sets at once";
            return Err(ArrowError::InvalidArgumentError(message.to_owned()));
        }
        self.builder.append_value(text);
        Ok(())
    }
}

/// A column of lists of the records to blame.
struct RecordErrorLists {
    batch_indexes: Vec<i32>,
    messages: Messages,
    errors: Vec<i32>,
    ends: Vec<i32>,
    is_known: Vec<bool>,
}

impl Default for RecordErrorLists {
    fn default() -> Self {
        Self {
            batch_indexes: Vec::new(),
            messages: Messages::default(),
            errors: Vec::new(),
            ends: vec![0],
            is_known: Vec::new(),
        }
    }
}

impl RecordErrorLists {
    /// Adds a record to the row at hand. Their number is bounded by the bytes of their messages.
    fn push(&mut self, error: &RecordError) -> Result<(), ArrowError> {
        self.messages.push(&error.message())?;
        self.batch_indexes.push(error.batch_index as i32);
        self.errors.push(error.error.code().into());
        Ok(())
    }

    fn end_row(&mut self, is_known: bool) {
        self.ends.push(self.errors.len() as i32);
        self.is_known.push(is_known);
    }

    fn finish(mut self) -> Result<ListArray, ArrowError> {
        let fields = Fields::from(vec![
            Field::new("batch_index", DataType::Int32, true),
            Field::new("message", DataType::Utf8, true),
            Field::new("error", DataType::Int32, true),
        ]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(self.batch_indexes)),
            Arc::new(self.messages.builder.finish()),
            Arc::new(Int32Array::from(self.errors)),
        ];
        let item = Field::new_list_field(DataType::Struct(fields.clone()), true);
        ListArray::try_new(
            Arc::new(item),
            OffsetBuffer::new(ScalarBuffer::from(self.ends)),
            Arc::new(StructArray::try_new(fields, columns, None)?),
            Some(NullBuffer::from(self.is_known)),
        )
    }
}
