//! A column of record sets taken apart: the good records as Arrow columns, and the others with the
//! reason, without a Python object a record.

use crate::arrow::spread::spread;
use crate::arrow::verdicts::{ColumnOptions, Messages, Numbers, RowOption, SetRow, Texts, set_of};
use crate::row_arrays::record_columns;
use crate::row_columns::Selection;
use crate::segment_table::TableBatch;
use arrow_array::builder::BinaryBuilder;
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow_schema::ArrowError;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use ottla_audit::rows::{BufferedRecords, RestOfBatch};
use ottla_format::batch::BatchInfo;
use ottla_format::check::{Checker, Level};
use ottla_kernels::copies::Room;
use ottla_leader::{PartRefusal, PartVerdict, RecordError, SetPart, Validator};
use ottla_py_batches::calls::detached;
use ottla_py_batches::check::with_checker;
use ottla_py_batches::numpy_columns::{self, contiguous};
use ottla_py_batches::validator::with_validator;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Bytes that a row takes beside its key, value and headers.
const ROW_BYTES: usize = 48;

/// The reason of a set that was not judged.
const NOT_JUDGED: &str = "not-judged";

/// The column of records that what is refused whole has, too.
const BATCH_POSITION: &str = "batch_position";

/// Takes each record set of a column apart as :func:`validate_each` does, and iterates over one half
/// of the records as Arrow record batches of about ``piece_bytes``.
///
/// The column ``row`` is the index of the set, and the others are those of the table ``records``
/// without the place. Half ``valid`` has the good records. Half ``quarantine`` has those to blame
/// and, with nulls in place of a record, what is refused whole; its further columns are ``error``,
/// ``reason``, ``message``, ``record_index``, and for what is refused whole ``size`` and ``bytes``.
///
/// Args:
///     ends: int64, one more than there are rows: set ``i`` is ``data[ends[i]:ends[i + 1]]``.
///     data: uint8; it must not change meanwhile.
///     half: ``valid`` or ``quarantine``.
///     config, now_ms, api_version, base_offset, leader_epoch, origin, transactional_id, profile,
///         kafka_version, unjudged: see :func:`validate_column`.
///     nulls: for each row whether there is no set, which has an entry in ``unjudged``.
///     piece_bytes: after as many bytes a record batch ends.
///     columns: the columns of records to make, in this order; all by default.
///
/// Raises:
///     ValueError: ends that lie outside the data, another half, no bytes a piece, or a column that
///         is unknown or asked for twice.
///     TypeError: a config that is not a TopicConfig.
#[pyfunction]
#[pyo3(signature = (
    ends, data, config, half, *, now_ms, api_version, base_offset, leader_epoch, origin,
    transactional_id, profile, kafka_version=None, unjudged=None, nulls=None, piece_bytes=4_194_304,
    columns=None
))]
#[expect(clippy::too_many_arguments, reason = "by name")]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn split_column(
    py: Python<'_>,
    ends: numpy_columns::Array<'_, i64>,
    data: numpy_columns::Array<'_, u8>,
    config: RowOption<Option<Bound<'_, PyAny>>>,
    half: &str,
    now_ms: Numbers,
    api_version: Numbers,
    base_offset: Numbers,
    leader_epoch: Numbers,
    origin: Texts,
    transactional_id: Texts,
    profile: &str,
    kafka_version: Option<&str>,
    unjudged: Option<Vec<Option<String>>>,
    nulls: Option<Vec<bool>>,
    piece_bytes: usize,
    columns: Option<Vec<String>>,
) -> PyResult<SetSplit> {
    let half = match half {
        "valid" => Half::Valid,
        "quarantine" => Half::Quarantine,
        _ => {
            let message = format!("half is 'valid' or 'quarantine', not '{half}'");
            return Err(PyValueError::new_err(message));
        }
    };
    if piece_bytes == 0 {
        return Err(PyValueError::new_err("piece_bytes is 1 or more, not 0"));
    }
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
    let bytes = contiguous(&data)?;
    let ends = contiguous(&ends)?.to_vec();
    for bounds in ends.windows(2) {
        set_of(bytes, bounds)?;
    }
    let rows = options.rows(py, config, unjudged, ends.len().saturating_sub(1))?;
    let state = SplitState {
        ends,
        rows,
        nulls: nulls.unwrap_or_default(),
        half,
        piece_bytes,
        selection: Arc::new(Selection::of_records(columns.as_deref())?),
        room: Room::default(),
        row: 0,
        parts: None,
        rest: None,
    };
    Ok(SetSplit { data: (**data).clone().unbind(), state: Mutex::new(state) })
}

/// Iterates over :class:`TableBatch`: what :func:`split_column` returns.
#[pyclass(frozen, module = "ottla._engine")]
pub struct SetSplit {
    data: Py<PyArray1<u8>>,
    state: Mutex<SplitState>,
}

#[pymethods]
impl SetSplit {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<TableBatch>> {
        let data: PyReadonlyArray1<'_, u8> = self.data.bind(py).try_readonly()?;
        let data = contiguous(&data)?;
        // Waiting here would hold the interpreter's lock, which whoever holds this one may wait for.
        let Ok(mut guard) = self.state.try_lock() else {
            return Err(PyRuntimeError::new_err("the sets are split by another thread"));
        };
        let state = &mut *guard;
        let next = detached(py, || {
            with_validator(|validator| {
                with_checker(Level::Full, |checker| state.next(data, validator, checker))
            })
        })?;
        let next = next.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(next.map(TableBatch::new))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Valid,
    Quarantine,
}

/// How far the sets are taken apart.
struct SplitState {
    ends: Vec<i64>,
    rows: Vec<SetRow>,
    nulls: Vec<bool>,
    half: Half,
    piece_bytes: usize,
    /// The columns of records.
    selection: Arc<Selection>,
    /// What the last piece took.
    room: Room,
    /// The set at hand.
    row: usize,
    /// What is left of it; `None` before it is judged.
    parts: Option<VecDeque<SetPart>>,
    /// What is left of its first part.
    rest: Option<RestOfBatch>,
}

impl SplitState {
    /// The next rows; `None` at the end.
    fn next(
        &mut self,
        data: &[u8],
        validator: &mut Validator,
        checker: &mut Checker,
    ) -> Result<Option<RecordBatch>, ArrowError> {
        let mut piece = Piece::new(self.half, self.piece_bytes, &self.selection, self.room);
        while let Some(row) = self.rows.get(self.row) {
            let set = self.ends.get(self.row..).and_then(|ends| match ends {
                [from, to, ..] => {
                    data.get(usize::try_from(*from).ok()?..usize::try_from(*to).ok()?)
                }
                _ => None,
            });
            let set = set.unwrap_or_default();
            match row {
                SetRow::Unjudged(why) => {
                    let is_null = self.nulls.get(self.row).copied().unwrap_or(false);
                    let bytes = (!is_null).then_some(set);
                    if !piece.reject(self.row, 0, bytes, &Why::NotJudged(why))? {
                        return piece.finish().map(Some);
                    }
                }
                SetRow::Judged(settings, request) => {
                    let config = settings.get().config();
                    if self.parts.is_none()
                        && let Some((info, payload)) =
                            ottla_leader::only_batch(set, config, request, validator)
                    {
                        match piece.add_only(self.row, set, &info, payload, checker) {
                            Some(true) => {
                                self.row = self.row.saturating_add(1);
                                continue;
                            }
                            Some(false) => break,
                            None => {}
                        }
                    }
                    let parts = self.parts.get_or_insert_with(|| {
                        ottla_leader::validate_each(set, config, request, validator, checker).into()
                    });
                    while let Some(part) = parts.front() {
                        if !piece.add(self.row, set, part, &mut self.rest, checker)? {
                            return piece.finish().map(Some);
                        }
                        parts.pop_front();
                    }
                }
            }
            self.parts = None;
            self.row = self.row.saturating_add(1);
            if piece.is_full() {
                break;
            }
        }
        self.room = piece.records.room();
        if piece.rows.is_empty() { Ok(None) } else { piece.finish().map(Some) }
    }
}

/// Why bytes are refused whole.
enum Why<'a> {
    NotJudged(&'a str),
    Refused(&'a PartRefusal),
}

/// Rows of a half.
struct Piece {
    half: Half,
    full_bytes: usize,
    selection: Arc<Selection>,
    /// The set of each row.
    rows: Vec<i64>,
    records: BufferedRecords,
    quarantine: Quarantine,
}

impl Piece {
    fn new(half: Half, full_bytes: usize, selection: &Arc<Selection>, room: Room) -> Self {
        let records = BufferedRecords::new(selection.parts(), full_bytes, ROW_BYTES, room);
        let (selection, quarantine) = (Arc::clone(selection), Quarantine::default());
        Self { half, full_bytes, selection, rows: Vec::new(), records, quarantine }
    }

    fn size(&self) -> usize {
        self.records.size().saturating_add(self.quarantine.size)
    }

    fn is_full(&self) -> bool {
        self.size() >= self.full_bytes
    }

    /// Adds a set that is one good batch. Returns whether there was room for it, and `None` where it
    /// is to be added by its parts.
    fn add_only(
        &mut self,
        row: usize,
        set: &[u8],
        info: &BatchInfo,
        payload: &[u8],
        checker: &Checker,
    ) -> Option<bool> {
        if self.half == Half::Quarantine {
            return Some(true);
        }
        let has_room =
            !self.is_full() && self.records.add_all(checker.kernels(), info, set, payload)?;
        self.rows.resize(self.records.row_count(), row as i64);
        Some(has_room)
    }

    /// Adds a part of a set. Returns whether there was room for all of it; if not, the next piece
    /// begins with it.
    fn add(
        &mut self,
        row: usize,
        set: &[u8],
        part: &SetPart,
        rest: &mut Option<RestOfBatch>,
        checker: &mut Checker,
    ) -> Result<bool, ArrowError> {
        let bytes = set.get(part.position..).and_then(|left| left.get(..part.size));
        let bytes = bytes.unwrap_or_default();
        match (&part.verdict, self.half) {
            (PartVerdict::Accepted(info), Half::Valid) => {
                self.read(row, info, bytes, None, rest, checker)
            }
            (PartVerdict::RecordsRefused(info, errors), Half::Valid) => {
                let mut is_good = |index| error_of(errors, index).is_none();
                self.read(row, info, bytes, Some(&mut is_good), rest, checker)
            }
            (PartVerdict::RecordsRefused(info, errors), Half::Quarantine) => {
                let mut blamed = Vec::new();
                let mut is_blamed = |index| {
                    let error = error_of(errors, index);
                    blamed.extend(error);
                    error.is_some()
                };
                let is_done = self.read(row, info, bytes, Some(&mut is_blamed), rest, checker)?;
                for error in blamed {
                    self.quarantine.blame(info.position as i64, error)?;
                }
                Ok(is_done)
            }
            (PartVerdict::Refused(refusal), Half::Quarantine) => {
                self.reject(row, part.position, Some(bytes), &Why::Refused(refusal))
            }
            _ => Ok(true),
        }
    }

    fn read(
        &mut self,
        row: usize,
        info: &BatchInfo,
        bytes: &[u8],
        is_wanted: Option<&mut dyn FnMut(u32) -> bool>,
        rest: &mut Option<RestOfBatch>,
        checker: &mut Checker,
    ) -> Result<bool, ArrowError> {
        if self.is_full() {
            return Ok(false);
        }
        let before = self.records.row_count();
        let is_done = self
            .records
            .add(checker, info, bytes, is_wanted, rest)
            .map_err(|error| ArrowError::ParseError(error.to_string()))?;
        let added = self.records.row_count().saturating_sub(before);
        self.rows.resize(self.rows.len().saturating_add(added), row as i64);
        Ok(is_done)
    }

    /// Adds bytes that are refused whole. Returns whether there was room for them.
    fn reject(
        &mut self,
        row: usize,
        position: usize,
        bytes: Option<&[u8]>,
        why: &Why<'_>,
    ) -> Result<bool, ArrowError> {
        if self.half == Half::Valid {
            return Ok(true);
        }
        let size = self.size().saturating_add(bytes.map_or(0, <[u8]>::len));
        if !self.rows.is_empty() && size > self.full_bytes {
            return Ok(false);
        }
        self.rows.push(row as i64);
        self.quarantine.reject(position as i64, bytes, why)?;
        Ok(true)
    }

    fn finish(self) -> Result<RecordBatch, ArrowError> {
        let records = record_columns(self.records.finish(), &self.selection)?;
        let names = records.schema_ref().fields().iter().map(|field| field.name().clone());
        let mut columns = vec![("row".to_owned(), Arc::new(Int64Array::from(self.rows)) as _)];
        if self.half == Half::Valid {
            columns.extend(names.zip(records.columns().iter().cloned()));
        } else {
            let spread = records.columns().iter().map(|column| self.quarantine.spread(column));
            columns.extend(names.zip(spread.collect::<Result<Vec<_>, _>>()?));
            let (positions, reasons) = self.quarantine.columns();
            if let Some((_, known)) = columns.iter_mut().find(|(name, _)| name == BATCH_POSITION) {
                *known = positions;
            }
            columns.extend(reasons.map(|(name, column)| (name.to_owned(), column)));
        }
        let nullable = columns.into_iter().map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(nullable)
    }
}

/// Why a record is to blame.
fn error_of(errors: &[RecordError], index: u32) -> Option<&RecordError> {
    let behind = errors.partition_point(|error| error.batch_index <= index);
    errors.get(behind.checked_sub(1)?).filter(|error| error.batch_index == index)
}

/// What quarantine tells beside the records.
#[derive(Default)]
struct Quarantine {
    is_record: Vec<bool>,
    positions: Vec<i64>,
    errors: Vec<Option<i32>>,
    reasons: Messages,
    messages: Messages,
    record_indexes: Vec<Option<i32>>,
    sizes: Vec<Option<i64>>,
    bytes: BinaryBuilder,
    /// Bytes, as they count towards a full piece, without the records.
    size: usize,
}

impl Quarantine {
    /// Adds what is told of the next record.
    fn blame(&mut self, position: i64, error: &RecordError) -> Result<(), ArrowError> {
        self.is_record.push(true);
        self.positions.push(position);
        self.errors.push(Some(error.error.code().into()));
        self.record_indexes.push(Some(error.batch_index as i32));
        self.sizes.push(None);
        self.bytes.append_null();
        self.tell(error.error.name(), &error.message())
    }

    /// Adds bytes that are refused whole.
    fn reject(
        &mut self,
        position: i64,
        bytes: Option<&[u8]>,
        why: &Why<'_>,
    ) -> Result<(), ArrowError> {
        let (error, record_index, reason, message) = match why {
            Why::NotJudged(why) => (None, None, NOT_JUDGED, *why),
            Why::Refused(refusal) => {
                let message = refusal.message.as_str();
                (refusal.error, refusal.record_index, refusal.reason, message)
            }
        };
        self.is_record.push(false);
        self.positions.push(position);
        self.errors.push(error.map(i32::from));
        self.record_indexes.push(record_index.map(|index| index as i32));
        self.sizes.push(bytes.map(|bytes| bytes.len() as i64));
        let size = bytes.map_or(0, <[u8]>::len);
        let whole = self.bytes.values_slice().len().saturating_add(size);
        if i32::try_from(whole).is_err() {
            return Err(ArrowError::OffsetOverflowError(whole));
        }
        self.bytes.append_option(bytes);
        self.size = self.size.saturating_add(size).saturating_add(ROW_BYTES);
        self.tell(reason, message)
    }

    fn tell(&mut self, reason: &str, message: &str) -> Result<(), ArrowError> {
        self.size = self.size.saturating_add(message.len());
        self.reasons.push(reason)?;
        self.messages.push(message)
    }

    /// A column of records with nulls where a row is none.
    fn spread(&self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let rows = self.is_record.len();
        if column.len() == rows {
            return Ok(Arc::clone(column));
        }
        spread(column, &self.is_record)
    }

    /// The position of each batch, and the columns beside those of records.
    fn columns(mut self) -> (ArrayRef, [(&'static str, ArrayRef); 6]) {
        let positions = Arc::new(Int64Array::from(self.positions));
        let reasons: [(&'static str, ArrayRef); 6] = [
            ("error", Arc::new(Int32Array::from(self.errors))),
            ("reason", Arc::new(self.reasons.builder.finish())),
            ("message", Arc::new(self.messages.builder.finish())),
            ("record_index", Arc::new(Int32Array::from(self.record_indexes))),
            ("size", Arc::new(Int64Array::from(self.sizes))),
            ("bytes", Arc::new(self.bytes.finish())),
        ];
        (positions, reasons)
    }
}
