//! `Leader`: the decisions of one partition's leader over time.

use crate::bytes::SharedBytes;
use crate::calls::{attached, detached};
use crate::integers::int;
use crate::leader_options::{Keywords, LeaderOptions, StoredLogOptions};
use crate::producer_state::{AbortedTransaction, ProducerState, VerificationGuard};
use crate::request_options::{Integer, OriginName};
use crate::validator::{is_short, with_validator};
use crate::verdict::Verdict;
use ottla_format::error_code::ErrorCode;
use ottla_leader::{
    AppendRequest, EndTransaction, Leader as Engine, OffsetOutOfRange, Replay, ReplaySource,
    RestoreError, StoredLog, Validator,
};
use ottla_log::producers::{Origin, ProducerRefusal};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A refusal by one of Kafka's codes.
pub fn kafka_error(py: Python<'_>, error: ErrorCode, message: String) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match CLASS.import(py, "ottla.errors", "KafkaError") {
        Ok(class) => PyErr::from_type(class.clone(), (message, error.code(), error.name())),
        Err(error) => error,
    }
}

fn refused(py: Python<'_>, refusal: &ProducerRefusal) -> PyErr {
    kafka_error(py, refusal.error(), refusal.to_string())
}

fn out_of_range(py: Python<'_>, error: &OffsetOutOfRange) -> PyErr {
    kafka_error(py, ErrorCode::OffsetOutOfRange, error.to_string())
}

fn not_restored(py: Python<'_>, error: &RestoreError) -> PyErr {
    match error {
        RestoreError::Snapshot(snapshot) => crate::errors::snapshot_error(py, snapshot),
        RestoreError::Batch(batch) => crate::errors::to_python(py, batch),
        RestoreError::Producer { refusal, .. } => {
            kafka_error(py, refusal.error(), error.to_string())
        }
        RestoreError::Offsets { .. } => PyValueError::new_err(error.to_string()),
    }
}

/// The bytes of one bytes-like object, or of several.
fn sets_of(batches: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<SharedBytes>> {
    let Some(batches) = batches else { return Ok(Vec::new()) };
    if batches.is_instance_of::<PyBytes>() {
        return Ok(vec![SharedBytes::of(batches)?]);
    }
    if batches.is_instance_of::<PyString>() {
        SharedBytes::of(batches)?;
    }
    match SharedBytes::of(batches) {
        Ok(bytes) => Ok(vec![bytes]),
        Err(_) => batches.try_iter()?.map(|set| SharedBytes::of(&set?)).collect(),
    }
}

/// A partition's leader: every decision of a Kafka broker about what is appended to it.
///
/// It tracks the epochs, sequences and transactions of producers (KIP-98, KIP-360, KIP-890) and the
/// offsets that follow from them; it holds no records. The owner of the log stores
/// ``verdict.stored``, and restores a leader with :meth:`restore` from a snapshot and the batches
/// after it. A refusal or an error leaves the leader unchanged.
///
/// Args:
///     config: the topic's configuration; Kafka's defaults without one.
///     topic: the topic's name, for messages.
///     partition: the partition's number, for messages.
///     leader_epoch: stored with every batch.
///     next_offset: the offset that the first record gets.
///     log_start_offset: the first offset that may be read.
///     profile: ``"strict"``, or ``"kafka"`` for Apache Kafka's decision, oddities included.
///     kafka_version: the release whose rules hold; see :func:`validate`.
///     unknown_producer: what to do with a producer that is not known and whose sequence is not 0.
///         ``"unknown"`` refuses it with UNKNOWN_PRODUCER_ID (59) and the log start offset;
///         ``"accept"`` accepts it, as Kafka does since 2.5; ``"auto"`` does what the profile does:
///         strict refuses it from Produce 8 on, whose clients recover, and accepts it below.
///     transaction_verification: a transaction begins with a guard
///         (``transaction.partition.verification.enable``).
///
/// >>> import ottla
/// >>> leader = ottla.Leader()
/// >>> batch = ottla.build_batch([ottla.NewRecord(value=b"a")], producer_id=7, producer_epoch=0,
/// ...                           base_sequence=0)
/// >>> leader.append(batch, now_ms=0).base_offset
/// 0
/// >>> leader.append(batch, now_ms=0).is_duplicate
/// True
#[pyclass(frozen, module = "ottla")]
pub struct Leader {
    engine: Mutex<Engine>,
    #[pyo3(get)]
    topic: String,
    #[pyo3(get)]
    partition: i32,
}

impl Leader {
    /// The leader of a partition.
    pub fn of(engine: Engine, topic: String, partition: i32) -> Self {
        Self { engine: Mutex::new(engine), topic, partition }
    }

    #[inline]
    fn engine(&self, py: Python<'_>) -> MutexGuard<'_, Engine> {
        match self.engine.try_lock() {
            // Nearly always nobody else has it.
            Ok(engine) => engine,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.awaited_engine(py),
        }
    }

    #[cold]
    fn awaited_engine(&self, py: Python<'_>) -> MutexGuard<'_, Engine> {
        self.engine.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides on a short set, and appends it where it is accepted: the interpreter waits.
    #[inline]
    fn decide_at_once<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
        data: impl Fn() -> SharedBytes,
        request: &AppendRequest<'_>,
    ) -> PyResult<Bound<'py, Verdict>> {
        let decide = |validator: &mut Validator| {
            let mut engine = self.engine(py);
            // A verdict is made where it is known what it is like, and is not copied on its way out.
            let made = match engine.append_at_once(bytes, request, validator) {
                Ok(verdict) => {
                    drop(engine);
                    Bound::new(py, Verdict::new(py, data(), verdict.into()))
                }
                Err(rest) => {
                    let verdict = engine.append_rest(rest, bytes, request, validator);
                    drop(engine);
                    Bound::new(py, Verdict::new(py, data(), verdict.into()))
                }
            };
            made.map_err(Box::new)
        };
        attached(py, || with_validator(decide))?.map_err(|error| *error)
    }

    /// Decides on a set, and appends it where it is accepted.
    #[inline]
    fn decide<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'py, PyAny>,
        request: &AppendRequest<'_>,
    ) -> PyResult<Bound<'py, Verdict>> {
        if let Ok(whole) = records.cast::<PyBytes>() {
            let bytes = whole.as_bytes();
            if is_short(bytes) {
                let data = || SharedBytes::all(whole, bytes);
                return self.decide_at_once(py, bytes, data, request);
            }
        }
        let data = SharedBytes::of(records)?;
        if is_short(data.as_bytes(py)) {
            return self.decide_at_once(py, data.as_bytes(py), || data.clone_ref(py), request);
        }
        let bytes = data.as_bytes(py);
        let mut engine = self.engine(py);
        let held = &mut *engine;
        let decision = detached(py, || with_validator(|v| held.append(bytes, request, v).into()))?;
        drop(engine);
        Bound::new(py, Verdict::new(py, data, decision))
    }
}

#[pymethods]
impl Leader {
    #[new]
    #[pyo3(signature = (config=None, **options), text_signature = "(config=None, *, topic='', \
        partition=0, leader_epoch=0, next_offset=0, log_start_offset=0, profile='strict', \
        kafka_version=None, unknown_producer='auto', transaction_verification=True)")]
    fn new(
        py: Python<'_>,
        config: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let keywords = Keywords::new("Leader.__new__()", options);
        let next_offset: i64 = keywords.int("next_offset", 0)?;
        let log_start_offset: i64 = keywords.int("log_start_offset", 0)?;
        let options = LeaderOptions::take(config, &keywords, py)?;
        keywords.finish()?;
        if log_start_offset < 0 || next_offset < log_start_offset {
            return Err(PyValueError::new_err(format!(
                "next_offset is {next_offset} and log_start_offset {log_start_offset}, expected \
                 0 <= log_start_offset <= next_offset"
            )));
        }
        let LeaderOptions { settings, topic, partition } = options;
        let engine = Mutex::new(Engine::new(settings, log_start_offset, next_offset));
        Ok(Self { engine, topic, partition })
    }

    /// Restores the leader of a stored log from a snapshot and the batches after it.
    ///
    /// Args:
    ///     snapshot: the bytes of a ``.snapshot`` file, or ``None`` if no producer is known at
    ///         ``snapshot_offset``.
    ///     stored_batches_after: the stored batches from there on, as one bytes-like object or
    ///         several; with one a segment, the state is exactly Kafka's. Their checksums are not
    ///         verified.
    ///     snapshot_offset: the offset in the snapshot's name; without a snapshot, where the
    ///         batches begin.
    ///     log_start_offset: the first offset that may be read.
    ///     log_start_batch_offset: base offset of the stored batch that holds it, or of the next one.
    ///     log_end_offset: the offset that the next record gets; by default the one after the last
    ///         batch. Batches beyond it are skipped.
    ///     high_watermark: the end of what is replicated; by default the log end offset.
    ///     aborted_transactions: what the transaction index holds.
    ///     is_recovery: after an unclean stop, finds aborted transactions that the index lacks in
    ///         the batches.
    ///     now_ms: the clock; producers of the snapshot may have expired.
    ///
    /// The other arguments are those of :class:`Leader`. Every further decision is that of the
    /// leader which took the snapshot, except for what a snapshot does not hold, in Kafka neither:
    /// of the batches before it, only each producer's newest is remembered, so that a repeat of an
    /// older one is out of order (45); and no verification is under way.
    ///
    /// Raises:
    ///     ProducerSnapshotError: a snapshot that is truncated, of another version, or with a wrong
    ///         checksum. Kafka deletes it and loads the next older one.
    ///     RecordBatchError: a batch whose framing is damaged.
    ///     KafkaError: a batch that contradicts the transactions before it; Kafka does not load
    ///         such a log.
    ///
    /// >>> import ottla
    /// >>> leader = ottla.Leader()
    /// >>> batch = ottla.build_batch([ottla.NewRecord(value=b"a")], producer_id=7,
    /// ...                           producer_epoch=0, base_sequence=0)
    /// >>> stored = leader.append(batch, now_ms=0).stored
    /// >>> again = ottla.Leader.restore(None, stored, now_ms=0)
    /// >>> again.append(batch, now_ms=0).is_duplicate
    /// True
    #[staticmethod]
    #[pyo3(
        signature = (snapshot, stored_batches_after=None, *, now_ms, config=None, **options),
        text_signature = "(snapshot, stored_batches_after=None, *, now_ms, snapshot_offset=0, \
            log_start_offset=0, log_start_batch_offset=None, log_end_offset=None, \
            high_watermark=None, aborted_transactions=(), is_recovery=False, config=None, \
            topic='', partition=0, leader_epoch=0, profile='strict', kafka_version=None, \
            unknown_producer='auto', transaction_verification=True)"
    )]
    fn restore(
        py: Python<'_>,
        snapshot: Option<&Bound<'_, PyAny>>,
        stored_batches_after: Option<&Bound<'_, PyAny>>,
        now_ms: Integer,
        config: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let keywords = Keywords::new("Leader.restore()", options);
        let StoredLogOptions { snapshot_offset, offsets, aborted, replay } =
            StoredLogOptions::take(&keywords)?;
        let LeaderOptions { settings, topic, partition } =
            LeaderOptions::take(config, &keywords, py)?;
        keywords.finish()?;
        let now_ms = now_ms.clock()?;
        let engine = with_stored(py, snapshot, stored_batches_after, |snapshot, sets| {
            let source = ReplaySource { snapshot, snapshot_offset, sets, replay, now_ms };
            let log = StoredLog { offsets, aborted, source };
            let restore =
                |validator: &mut Validator| Engine::restore(settings, log, validator.codecs());
            attached(py, || with_validator(restore))?.map_err(|error| not_restored(py, &error))
        })?;
        Ok(Self { engine: Mutex::new(engine), topic, partition })
    }

    /// Returns the leader of a state that :meth:`to_bytes` returned, to go on where it ended.
    ///
    /// Every further decision is that of the leader which gave the bytes, except that no
    /// verification is under way; ``metrics`` begin at 0. The arguments are those of
    /// :class:`Leader`, and should be the same.
    ///
    /// Raises:
    ///     ValueError: the bytes are no such state, cut, changed, or of another version.
    ///
    /// >>> import ottla
    /// >>> leader = ottla.Leader()
    /// >>> batch = ottla.build_batch([ottla.NewRecord(value=b"a")], producer_id=7,
    /// ...                           producer_epoch=0, base_sequence=0)
    /// >>> leader.append(batch, now_ms=0).is_duplicate
    /// False
    /// >>> again = ottla.Leader.from_bytes(leader.to_bytes())
    /// >>> again.append(batch, now_ms=0).is_duplicate
    /// True
    #[staticmethod]
    #[pyo3(
        signature = (state, *, config=None, **options),
        text_signature = "(state, *, config=None, topic='', partition=0, leader_epoch=0, \
            profile='strict', kafka_version=None, unknown_producer='auto', \
            transaction_verification=True)"
    )]
    fn from_bytes(
        py: Python<'_>,
        state: &Bound<'_, PyAny>,
        config: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let keywords = Keywords::new("Leader.from_bytes()", options);
        let LeaderOptions { settings, topic, partition } =
            LeaderOptions::take(config, &keywords, py)?;
        keywords.finish()?;
        let state = SharedBytes::of(state)?;
        let engine = Engine::from_bytes(settings, state.as_bytes(py))
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { engine: Mutex::new(engine), topic, partition })
    }

    /// Returns what the leader knows of the partition, for :meth:`from_bytes`: offsets, producers
    /// with all batches that are remembered, and transactions. The bytes are versioned and have a
    /// checksum; they take about 190 bytes for each producer.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.engine(py).state().to_bytes())
    }

    /// Decides on the record set of a produce request, and appends it if it is accepted.
    ///
    /// Args:
    ///     records: any bytes-like object.
    ///     now_ms: the broker's clock, milliseconds since 1970.
    ///     api_version: version of the Produce request; ``None`` skips the request gate.
    ///     transactional_id: that of the request.
    ///     origin: ``"client"``, or ``"coordinator"`` for the broker's own writes.
    ///     guard: what :meth:`begin_verification` returned.
    ///
    /// Returns a :class:`Verdict`. For a batch that is in the log already it has that batch's
    /// offsets and ``is_duplicate``, and nothing to store.
    #[pyo3(signature = (
        records, *, now_ms, api_version=Some(Integer::Of(11)), transactional_id=None,
        origin=OriginName(Origin::Client), guard=None
    ), text_signature = "($self, records, *, now_ms, api_version=11, transactional_id=None, \
        origin='client', guard=None)")]
    #[expect(clippy::too_many_arguments, reason = "one a field, by name")]
    fn append<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'py, PyAny>,
        now_ms: Integer,
        api_version: Option<Integer>,
        transactional_id: Option<&str>,
        origin: OriginName,
        guard: Option<&Bound<'py, VerificationGuard>>,
    ) -> PyResult<Bound<'py, Verdict>> {
        let request = AppendRequest {
            api_version: api_version.map(Integer::api_version).transpose()?,
            has_transactional_id: transactional_id.is_some(),
            origin: origin.0,
            guard: guard.map(|guard| &guard.get().guard),
            transaction_version: 0,
            now_ms: now_ms.clock()?,
        };
        self.decide(py, records, &request)
    }

    /// Appends what the leader of this partition has sent to its follower, offsets included.
    #[pyo3(signature = (records, *, now_ms))]
    fn append_as_follower<'py>(
        &self,
        py: Python<'py>,
        records: &Bound<'py, PyAny>,
        now_ms: Integer,
    ) -> PyResult<Bound<'py, Verdict>> {
        self.decide(py, records, &AppendRequest::replication(now_ms.clock()?))
    }

    /// Begins to verify a producer's transaction with its coordinator (KIP-890).
    ///
    /// Returns the guard that the next :meth:`append` has to carry, or ``None`` if that transaction
    /// is open here already and needs none.
    ///
    /// Args:
    ///     producer_id: the producer's id.
    ///     producer_epoch: its epoch.
    ///     base_sequence: the first sequence of the batch that waits.
    ///     now_ms: the broker's clock.
    ///     transaction_version: 2 for Produce 12 and above.
    ///
    /// Raises:
    ///     KafkaError: INVALID_PRODUCER_EPOCH (47) for an epoch below the producer's.
    #[pyo3(signature = (
        producer_id, producer_epoch, base_sequence, *, now_ms, transaction_version=2
    ))]
    fn begin_verification(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = int)] producer_id: i64,
        #[pyo3(from_py_with = int)] producer_epoch: i16,
        #[pyo3(from_py_with = int)] base_sequence: i32,
        now_ms: Integer,
        #[pyo3(from_py_with = int)] transaction_version: i16,
    ) -> PyResult<Option<VerificationGuard>> {
        let now_ms = now_ms.clock()?;
        self.engine(py)
            .begin_verification(
                producer_id,
                producer_epoch,
                base_sequence,
                transaction_version,
                now_ms,
            )
            .map(|guard| guard.map(|guard| VerificationGuard { guard }))
            .map_err(|refusal| refused(py, &refusal))
    }

    /// Appends the marker that ends a transaction (KIP-98), as its coordinator writes it.
    ///
    /// Returns a :class:`Verdict`, which accepts it even if no transaction is open.
    ///
    /// Args:
    ///     producer_id: the producer's id.
    ///     producer_epoch: its epoch; with transaction version 2 the one after it.
    ///     coordinator_epoch: of the coordinator.
    ///     commit: whether the transaction is committed or aborted.
    ///     now_ms: the coordinator's clock.
    ///     transaction_version: with which the coordinator writes the marker. With 2, Kafka 4.2 and
    ///         newer require an epoch above the producer's (KIP-1228), unless the marker is sent
    ///         again.
    ///
    /// Raises:
    ///     ValueError: a negative producer id.
    #[pyo3(signature = (
        producer_id, producer_epoch, *, coordinator_epoch, commit, now_ms, transaction_version=0
    ))]
    #[expect(clippy::too_many_arguments, reason = "one a field, by name")]
    fn end_transaction(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = int)] producer_id: i64,
        #[pyo3(from_py_with = int)] producer_epoch: i16,
        #[pyo3(from_py_with = int)] coordinator_epoch: i32,
        commit: bool,
        now_ms: Integer,
        #[pyo3(from_py_with = int)] transaction_version: i16,
    ) -> PyResult<Verdict> {
        let now_ms = now_ms.clock()?;
        let end = EndTransaction {
            producer_id,
            producer_epoch,
            coordinator_epoch,
            commit,
            transaction_version,
            now_ms,
        };
        let mut engine = self.engine(py);
        let verdict = attached(py, || with_validator(|v| engine.end_transaction(&end, v)))?;
        let verdict = verdict.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Verdict::new(py, SharedBytes::empty(py), verdict.into()))
    }

    /// Advances the log start offset (DeleteRecords and retention, KIP-107); a lower offset changes
    /// nothing. Producers stay.
    ///
    /// Args:
    ///     offset: the first offset that may be read from now on.
    ///     batch_base_offset: base offset of the stored batch that holds it, of the next one if none
    ///         does, or the log end offset if there is none: with profile ``"kafka"`` that is the
    ///         last stable offset while a transaction from below is open.
    ///
    /// Raises:
    ///     KafkaError: OFFSET_OUT_OF_RANGE (1) above the high watermark.
    #[pyo3(signature = (offset, *, batch_base_offset=None))]
    fn delete_records(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = int)] offset: i64,
        #[pyo3(from_py_with = int)] batch_base_offset: Option<i64>,
    ) -> PyResult<()> {
        self.engine(py)
            .delete_records(offset, batch_base_offset)
            .map_err(|error| out_of_range(py, &error))
    }

    /// Moves the high watermark, within the log: records below it are replicated.
    fn advance_high_watermark(&self, py: Python<'_>, #[pyo3(from_py_with = int)] offset: i64) {
        self.engine(py).advance_high_watermark(offset);
    }

    /// Drops producers without an open transaction whose last timestamp is
    /// ``producer.id.expiration.ms`` old, and verifications of that age.
    fn expire_producers(&self, py: Python<'_>, now_ms: Integer) -> PyResult<()> {
        let now_ms = now_ms.clock()?;
        self.engine(py).expire_producers(now_ms);
        Ok(())
    }

    /// Truncates the log to an offset; one at or above its end changes nothing.
    ///
    /// Args:
    ///     offset: the new end of the log.
    ///     snapshot: the newest ``.snapshot`` file above the log start and not above the offset.
    ///     stored_batches_after: the stored batches from there on, as for :meth:`restore`; those
    ///         that reach the offset are skipped.
    ///     snapshot_offset: the offset in the snapshot's name.
    ///     now_ms: the clock; producers of the snapshot may have expired.
    ///
    /// Raises:
    ///     ProducerSnapshotError, RecordBatchError, KafkaError: see :meth:`restore`.
    #[pyo3(signature = (
        offset, snapshot=None, stored_batches_after=None, *, now_ms, snapshot_offset=0
    ))]
    fn truncate(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = int)] offset: i64,
        snapshot: Option<&Bound<'_, PyAny>>,
        stored_batches_after: Option<&Bound<'_, PyAny>>,
        now_ms: Integer,
        #[pyo3(from_py_with = int)] snapshot_offset: i64,
    ) -> PyResult<()> {
        let (now_ms, replay) = (now_ms.clock()?, Replay::Load);
        with_stored(py, snapshot, stored_batches_after, |snapshot, sets| {
            let source = ReplaySource { snapshot, snapshot_offset, sets, replay, now_ms };
            let mut engine = self.engine(py);
            attached(py, || with_validator(|v| engine.truncate(offset, &source, v.codecs())))?
                .map_err(|error| not_restored(py, &error))
        })
    }

    /// Returns the bytes of a ``.snapshot`` file: what the partition knows of its producers at
    /// ``producer_end_offset``, which names the file.
    fn snapshot<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.engine(py).state().snapshot())
    }

    /// The producers that are known, by id, as :class:`ProducerState`.
    #[getter]
    fn producers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let entries: Vec<_> =
            self.engine(py).state().producers().by_id().into_iter().cloned().collect();
        PyTuple::new(
            py,
            entries.into_iter().map(|entry| ProducerState { entry }).collect::<Vec<_>>(),
        )
    }

    /// The aborted transactions whose markers the log still holds, as
    /// :class:`AbortedTransaction`, in the order of their markers.
    #[getter]
    fn aborted_transactions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let engine = self.engine(py);
        let entries = engine.state().aborted_transactions();
        PyTuple::new(py, entries.iter().map(AbortedTransaction::from_entry).collect::<Vec<_>>())
    }

    /// Returns the aborted transactions that a reader of committed records of ``start`` to ``end``
    /// skips.
    fn aborted_between<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = int)] start: i64,
        #[pyo3(from_py_with = int)] end: i64,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let entries = self.engine(py).state().aborted_between(start, end);
        PyTuple::new(py, entries.iter().map(AbortedTransaction::from_entry).collect::<Vec<_>>())
    }

    /// The first offset that may be read.
    #[getter]
    fn log_start_offset(&self, py: Python<'_>) -> i64 {
        self.engine(py).state().log_start_offset()
    }

    /// The offset that the next record gets.
    #[getter]
    fn log_end_offset(&self, py: Python<'_>) -> i64 {
        self.engine(py).state().log_end_offset()
    }

    /// Records below this are replicated.
    #[getter]
    fn high_watermark(&self, py: Python<'_>) -> i64 {
        self.engine(py).state().high_watermark()
    }

    /// The end of what readers of committed records see.
    #[getter]
    fn last_stable_offset(&self, py: Python<'_>) -> i64 {
        self.engine(py).last_stable_offset()
    }

    /// First offset of the oldest transaction that is open, or whose marker is not replicated;
    /// ``None`` without one.
    #[getter]
    fn first_unstable_offset(&self, py: Python<'_>) -> Option<i64> {
        self.engine(py).state().first_unstable_offset()
    }

    /// The offset up to which the producers know the log.
    #[getter]
    fn producer_end_offset(&self, py: Python<'_>) -> i64 {
        self.engine(py).state().producers().end_offset()
    }

    /// What was counted, by the names of Kafka's meters.
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = PyDict::new(py);
        for (name, count) in self.engine(py).metrics().named() {
            metrics.set_item(name, count)?;
        }
        Ok(metrics)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (topic, partition) = (&self.topic, self.partition);
        let end = self.engine(py).state().log_end_offset();
        format!("Leader(topic='{topic}', partition={partition}, log_end_offset={end})")
    }
}

/// Lends the bytes of a snapshot and of sets of stored batches.
fn with_stored<T>(
    py: Python<'_>,
    snapshot: Option<&Bound<'_, PyAny>>,
    batches: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(Option<&[u8]>, &[&[u8]]) -> PyResult<T>,
) -> PyResult<T> {
    let snapshot = snapshot.map(SharedBytes::of).transpose()?;
    let sets = sets_of(batches)?;
    let sets: Vec<_> = sets.iter().map(|set| set.as_bytes(py)).collect();
    work(snapshot.as_ref().map(|bytes| bytes.as_bytes(py)), &sets)
}
