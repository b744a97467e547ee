//! What a partition knows of its producers and their transactions.

use crate::integers::int;
use ottla_log::producers::{Guard, ProducerEntry, StateReader};
use ottla_log::sidefiles::transaction_index::AbortedTransaction as Aborted;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Leave to begin a transaction on a partition (KIP-890): :meth:`Leader.begin_verification` returns
/// it, :meth:`Leader.append` accepts it.
#[pyclass(frozen, module = "ottla")]
pub struct VerificationGuard {
    /// The guard.
    pub guard: Guard,
}

/// A batch that a partition remembers of a producer.
#[pyclass(frozen, eq, hash, get_all, module = "ottla")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RememberedBatch {
    /// Sequence of its first record.
    base_sequence: i32,
    /// Sequence of its last record.
    last_sequence: i32,
    /// Offset of its first record.
    base_offset: i64,
    /// Offset of its last record.
    last_offset: i64,
    /// Its max timestamp.
    max_timestamp_ms: i64,
}

#[pymethods]
impl RememberedBatch {
    #[new]
    fn new(
        #[pyo3(from_py_with = int)] base_sequence: i32,
        #[pyo3(from_py_with = int)] last_sequence: i32,
        #[pyo3(from_py_with = int)] base_offset: i64,
        #[pyo3(from_py_with = int)] last_offset: i64,
        #[pyo3(from_py_with = int)] max_timestamp_ms: i64,
    ) -> Self {
        Self { base_sequence, last_sequence, base_offset, last_offset, max_timestamp_ms }
    }

    fn __getnewargs__(&self) -> (i32, i32, i64, i64, i64) {
        let Self { base_sequence, last_sequence, base_offset, last_offset, max_timestamp_ms } =
            *self;
        (base_sequence, last_sequence, base_offset, last_offset, max_timestamp_ms)
    }

    fn __repr__(&self) -> String {
        format!(
            "RememberedBatch(base_sequence={}, last_sequence={}, base_offset={}, last_offset={}, \
             max_timestamp_ms={})",
            self.base_sequence,
            self.last_sequence,
            self.base_offset,
            self.last_offset,
            self.max_timestamp_ms
        )
    }
}

/// What a partition knows of a producer (KIP-98).
#[pyclass(frozen, module = "ottla")]
pub struct ProducerState {
    /// What is known.
    pub entry: ProducerEntry,
}

#[pymethods]
impl ProducerState {
    /// Its id.
    #[getter]
    fn producer_id(&self) -> i64 {
        self.entry.producer_id
    }

    /// Its epoch.
    #[getter]
    fn producer_epoch(&self) -> i16 {
        self.entry.producer_epoch
    }

    /// Epoch of the coordinator that wrote its last marker, -1 for none.
    #[getter]
    fn coordinator_epoch(&self) -> i32 {
        self.entry.coordinator_epoch
    }

    /// Sequence of its last record, -1 for none in its epoch.
    #[getter]
    fn last_sequence(&self) -> i32 {
        self.entry.last_sequence()
    }

    /// Max timestamp of its last batch, marker included.
    #[getter]
    fn last_timestamp_ms(&self) -> i64 {
        self.entry.last_timestamp
    }

    /// First offset of its open transaction, or ``None``.
    #[getter]
    fn transaction_first_offset(&self) -> Option<i64> {
        self.entry.transaction_first_offset
    }

    /// Its newest batches of its epoch, oldest first, at most five.
    #[getter]
    fn batches<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let batches: Vec<_> = self
            .entry
            .batches()
            .iter()
            .map(|batch| RememberedBatch {
                base_sequence: batch.first_sequence(),
                last_sequence: batch.last_sequence,
                base_offset: batch.first_offset(),
                last_offset: batch.last_offset,
                max_timestamp_ms: batch.timestamp,
            })
            .collect();
        PyTuple::new(py, batches)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.entry == other.entry
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let mut state = Vec::new();
        this.get().entry.write_state(&mut state);
        Ok((this.get_type().getattr("_restore")?, (PyBytes::new(this.py(), &state),)))
    }

    #[staticmethod]
    fn _restore(state: &[u8]) -> PyResult<Self> {
        let mut reader = StateReader::new(state);
        let entry = reader.entry().and_then(|entry| reader.finish().map(|()| entry));
        let wrong = |error| PyValueError::new_err(format!("not a producer's state: {error}"));
        Ok(Self { entry: entry.map_err(wrong)? })
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.entry.producer_id, self.entry.producer_epoch, self.entry.last_sequence())
            .hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!(
            "ProducerState(producer_id={}, producer_epoch={}, last_sequence={})",
            self.entry.producer_id,
            self.entry.producer_epoch,
            self.entry.last_sequence()
        )
    }
}

/// An aborted transaction, as the transaction index keeps it.
///
/// >>> import ottla
/// >>> entry = ottla.AbortedTransaction(7, first_offset=0, last_offset=3, last_stable_offset=4)
/// >>> len(entry.to_bytes())
/// 34
#[pyclass(frozen, eq, hash, get_all, from_py_object, module = "ottla")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AbortedTransaction {
    /// Whose it was.
    producer_id: i64,
    /// Offset of its first record.
    first_offset: i64,
    /// Offset of its marker.
    last_offset: i64,
    /// Last stable offset once the marker was written.
    last_stable_offset: i64,
}

impl AbortedTransaction {
    pub(crate) fn entry(self) -> Aborted {
        Aborted {
            producer_id: self.producer_id,
            first_offset: self.first_offset,
            last_offset: self.last_offset,
            last_stable_offset: self.last_stable_offset,
        }
    }

    pub(crate) fn from_entry(entry: &Aborted) -> Self {
        Self {
            producer_id: entry.producer_id,
            first_offset: entry.first_offset,
            last_offset: entry.last_offset,
            last_stable_offset: entry.last_stable_offset,
        }
    }
}

#[pymethods]
impl AbortedTransaction {
    #[new]
    #[pyo3(signature = (producer_id, *, first_offset, last_offset, last_stable_offset))]
    fn new(
        #[pyo3(from_py_with = int)] producer_id: i64,
        #[pyo3(from_py_with = int)] first_offset: i64,
        #[pyo3(from_py_with = int)] last_offset: i64,
        #[pyo3(from_py_with = int)] last_stable_offset: i64,
    ) -> Self {
        Self { producer_id, first_offset, last_offset, last_stable_offset }
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((i64,), Bound<'py, PyDict>)> {
        let named = PyDict::new(py);
        named.set_item("first_offset", self.first_offset)?;
        named.set_item("last_offset", self.last_offset)?;
        named.set_item("last_stable_offset", self.last_stable_offset)?;
        Ok(((self.producer_id,), named))
    }

    /// The entry of a ``.txnindex`` file.
    #[expect(clippy::wrong_self_convention, reason = "Python's objects are behind a reference")]
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.entry().to_bytes())
    }

    fn __repr__(&self) -> String {
        format!(
            "AbortedTransaction({}, first_offset={}, last_offset={}, last_stable_offset={})",
            self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset
        )
    }
}
