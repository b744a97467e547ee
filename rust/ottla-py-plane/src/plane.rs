//! `DataPlane`: what a broker does for each partition of a Produce or a Fetch.

use crate::plane_answers::{Fetched, Parts, Produced, Verification};
use crate::plane_compaction::{CompactJob, Compaction, cleaner_row, settings_of, uncleanable};
use crate::plane_errors::{closed, malformed, refused, topic_id_of};
use crate::plane_options::{PartitionOptions, PlaneOptions, refused_of};
use crate::plane_storage::{FlushJob, PlaceOptions, checkpoint_row, unopened};
use ottla_leader::{AppendRequest, EndTransaction};
use ottla_log::producers::Origin;
use ottla_plane::{
    CompactError, DataPlane as Engine, FetchCall, Handle, NewPartition, OffsetQuery, ProduceCall,
    Sink,
};
use ottla_py_batches::bytes::SharedBytes;
use ottla_py_batches::calls::{attached, detached};
use ottla_py_batches::leader::Leader;
use ottla_py_batches::leader_options::Keywords;
use ottla_py_batches::producer_state::{ProducerState, VerificationGuard};
use ottla_py_batches::request_options::{Integer, OriginName};
use ottla_py_batches::validator::with_validator;
use ottla_py_batches::verdict::Verdict;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Above this the interpreter's lock is let go of while a request is decided.
const DETACH_BYTES: usize = 16 << 10;

/// The partitions of a broker with their logs, in memory or in directories: Produce and Fetch, from
/// the bytes of a request to the bytes of its answer. It has no clock: each call brings the time.
///
/// Requests are frames without their size, and ``position`` is where the body begins, behind the
/// header; answers are bodies without a header, as a list of parts. What is decided elsewhere
/// (authorisation, faults) comes in as ``refused``: error codes by topic and partition. Partitions
/// have handles, which are never used again.
///
/// Args:
///     profile: ``"strict"``, or ``"kafka"`` for Apache Kafka's decisions, oddities included.
///     kafka_version: the release whose rules hold; see :func:`validate`.
///     unknown_producer: as for :class:`Leader`.
///     transaction_verification: as for :class:`Leader`; Produce 12 and newer ask their coordinator
///         in any case (KIP-890).
///     max_stored_bytes: of all logs in memory; what is past it is answered with
///         KAFKA_STORAGE_ERROR (56).
///     session_seed: another number after each start, so that no client takes a new fetch session
///         for its old one.
#[pyclass(frozen, module = "ottla._engine")]
pub struct DataPlane {
    engine: Mutex<Engine>,
    options: PlaneOptions,
}

impl DataPlane {
    fn engine(&self, py: Python<'_>) -> MutexGuard<'_, Engine> {
        self.engine.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl DataPlane {
    #[new]
    #[pyo3(signature = (**options), text_signature = "(*, profile='strict', kafka_version=None, \
        unknown_producer='auto', transaction_verification=True, max_stored_bytes=4294967296, \
        session_seed=0)")]
    fn new(options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let keywords = Keywords::new("DataPlane.__new__()", options);
        let options = PlaneOptions::take(&keywords)?;
        keywords.finish()?;
        Ok(Self { engine: Mutex::new(Engine::new(options.plane)), options })
    }

    /// Opens a partition, and returns its handle: with an empty log, in memory or in a directory, or
    /// with the log that is in its directory, which is left as the start of a broker leaves it.
    ///
    /// Args:
    ///     topic: the topic's name.
    ///     topic_id: its id, 16 bytes; all zeros for none.
    ///     partition: the partition's number.
    ///     now_ms: the broker's clock.
    ///     settings: an ``ottla.TopicConfig``; Kafka's defaults without one.
    ///     leader_epoch: stored with every batch.
    ///     next_offset: the offset that the first record gets.
    ///     is_internal: whether clients may not write to it.
    ///     min_insync_replicas, segment_ms, segment_index_bytes, index_interval_bytes, retention_ms,
    ///         retention_bytes: as Kafka's settings of these names.
    ///     in_sync_replicas: with more than one, the high watermark moves by
    ///         :meth:`advance_high_watermark` alone.
    ///     partition_epoch: that of KIP-232; -1 for none.
    ///     directory: the partition's own directory, made where it does not exist; ``None`` for a log
    ///         in memory.
    ///     recovery_point, log_start_offset: of a log that is there, its entries in the checkpoints;
    ///         ``next_offset`` is of no interest then.
    ///     is_clean: whether a clean stop has left it.
    ///     is_dense: whether it was never compacted, so that a gap before a segment is damage.
    ///
    /// Raises:
    ///     ValueError: it is open already, or its topic has another id, or the id another topic.
    ///     OSError: the directory cannot be used.
    ///     LogDirectoryError: it is another topic's, or the start of a broker would refuse it; nothing
    ///         is changed.
    #[pyo3(signature = (topic, topic_id, partition, *, now_ms, settings=None, **options),
        text_signature = "($self, topic, topic_id, partition, *, now_ms, settings=None, \
        leader_epoch=0, next_offset=0, is_internal=False, min_insync_replicas=1, \
        in_sync_replicas=1, partition_epoch=-1, segment_ms=604800000, \
        segment_index_bytes=10485760, index_interval_bytes=4096, retention_ms=604800000, \
        retention_bytes=-1, directory=None, \
        recovery_point=0, log_start_offset=0, is_clean=False, is_dense=False)")]
    #[expect(clippy::too_many_arguments, reason = "one a field, by name")]
    fn open(
        &self,
        py: Python<'_>,
        topic: &str,
        topic_id: &[u8],
        partition: i32,
        now_ms: Integer,
        settings: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Handle> {
        let keywords = Keywords::new("DataPlane.open()", options);
        let next_offset: Integer = keywords.take("next_offset", Integer::Of(0))?;
        let place = PlaceOptions::take(&keywords)?;
        let found = PartitionOptions::take(py, &self.options, settings, &keywords, None)?;
        keywords.finish()?;
        if partition < 0 {
            let message = format!("partition is {partition}, expected 0 or more");
            return Err(PyValueError::new_err(message));
        }
        let new = NewPartition {
            topic: topic.as_bytes(),
            topic_id: topic_id_of(topic_id)?,
            index: partition,
            next_offset: next_offset.within("next_offset", 0, i64::MAX)?,
            leader: found.leader,
            settings: found.settings,
            place: place.as_ref().map(PlaceOptions::place),
        };
        let now_ms = now_ms.clock()?;
        let mut engine = self.engine(py);
        let held = &mut *engine;
        let opened = match &place {
            None => attached(py, || held.open(&new, now_ms)),
            Some(_) => detached(py, || held.open(&new, now_ms)),
        }?;
        drop(engine);
        opened.map_err(|error| unopened(py, &error, &new))
    }

    /// Closes a partition. Its log is gone then, unless it is in a directory, which stays.
    ///
    /// Raises:
    ///     ValueError: no open partition has this handle; so do all methods that take one.
    fn close(&self, py: Python<'_>, handle: Handle) -> PyResult<()> {
        self.engine(py).close(handle).then_some(()).ok_or_else(|| closed(handle))
    }

    /// Closes a partition whose log is to be gone, also from its directory.
    ///
    /// Raises:
    ///     KafkaError: KAFKA_STORAGE_ERROR (56): the directory, or one whose name ends in
    ///         ``-delete``, is there still.
    fn remove(&self, py: Python<'_>, handle: Handle) -> PyResult<()> {
        let is_open = self.engine(py).remove(handle).map_err(|error| refused(py, &error))?;
        is_open.then_some(()).ok_or_else(|| closed(handle))
    }

    /// Makes a log survive a crash as it is; in memory nothing does.
    ///
    /// Raises:
    ///     KafkaError: KAFKA_STORAGE_ERROR (56): the partition is offline.
    fn flush(&self, py: Python<'_>, handle: Handle) -> PyResult<()> {
        let mut engine = self.engine(py);
        let held = &mut *engine;
        let flushed = detached(py, || held.flush(handle))?;
        drop(engine);
        flushed.map_err(|error| refused(py, &error))
    }

    /// Returns what makes a log survive a crash as it is, for another thread to run; ``None`` where
    /// nothing is to be done.
    fn flush_job(&self, py: Python<'_>, handle: Handle) -> PyResult<Option<FlushJob>> {
        let job = self.engine(py).flush_job(handle).map_err(|error| refused(py, &error))?;
        Ok(job.map(|job| FlushJob { job }))
    }

    /// Takes back a job that has run: what it synced is not read by a start after a crash.
    fn flushed(&self, py: Python<'_>, handle: Handle, job: &FlushJob) -> PyResult<()> {
        self.engine(py).flushed(handle, &job.job).map_err(|error| refused(py, &error))
    }

    /// Returns the handles of partitions with a sealed segment for which no job was made.
    fn unflushed(&self, py: Python<'_>) -> Vec<Handle> {
        self.engine(py).unflushed().collect()
    }

    /// Leaves a log as a clean stop does, synced; nothing is appended to it any more.
    ///
    /// Raises:
    ///     KafkaError: as :meth:`flush`.
    fn shut_down(&self, py: Python<'_>, handle: Handle) -> PyResult<()> {
        let mut engine = self.engine(py);
        let held = &mut *engine;
        let done = detached(py, || held.shut_down(handle))?;
        drop(engine);
        done.map_err(|error| refused(py, &error))
    }

    /// Returns the topics and partitions that a fetch session has.
    fn fetch_session(&self, py: Python<'_>, session_id: i32) -> Vec<(String, i32)> {
        self.engine(py).fetch_session(session_id)
    }

    /// Returns rows of checkpoint files: topic, partition, recovery point, log start, high watermark.
    fn checkpoints(&self, py: Python<'_>) -> Vec<(String, i32, i64, i64, i64)> {
        self.engine(py).checkpoints().iter().map(checkpoint_row).collect()
    }

    /// Has a test's disk be full for a log, or not; returns how many of its writes were refused so far.
    fn set_full(&self, py: Python<'_>, handle: Handle, is_full: bool) -> PyResult<u64> {
        self.engine(py).set_full(handle, is_full).map_err(|error| refused(py, &error))
    }

    /// Returns what was done to the files of a log when it was loaded, a sentence each.
    fn changes(&self, py: Python<'_>, handle: Handle) -> PyResult<Vec<String>> {
        let engine = self.engine(py);
        let changes = engine.changes(handle).map_err(|error| refused(py, &error))?;
        Ok(changes.iter().map(ToString::to_string).collect())
    }

    /// Returns a job that compacts a log, for another thread to run; ``None`` where nothing is to be
    /// done, or its topic is not compacted. With ``is_forced`` the active segment is sealed first,
    /// and how much there is to do plays no part. The others are Kafka's settings.
    #[pyo3(signature = (handle, *, now_ms, is_forced=false, **options),
        text_signature = "($self, handle, *, now_ms, is_forced=False, min_cleanable_dirty_ratio=0.5, \
        min_compaction_lag_ms=0, max_compaction_lag_ms=9223372036854775807, \
        delete_retention_ms=86400000, dedupe_buffer_size=134217728)")]
    fn compact_job(
        &self,
        py: Python<'_>,
        handle: Handle,
        now_ms: Integer,
        is_forced: bool,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<CompactJob>> {
        let keywords = Keywords::new("DataPlane.compact_job()", options);
        let (settings, now_ms) = (settings_of(&keywords)?, now_ms.clock()?);
        keywords.finish()?;
        let job = self.engine(py).compact_job(handle, &settings, is_forced, now_ms);
        Ok(job.map_err(|error| refused(py, &error))?.map(CompactJob::new))
    }

    /// Takes back a job that has run; ``None`` where its log has lost segments
    /// meanwhile, or it was stopped.
    ///
    /// Raises:
    ///     KafkaError: CORRUPT_MESSAGE (2) of a log that cannot be read, and stays as it is.
    fn compacted(&self, py: Python<'_>, job: &CompactJob) -> PyResult<Option<Compaction>> {
        let Some(job) = job.take(py)? else { return Ok(None) };
        let done = self.engine(py).compacted(job).map_err(|error| match error {
            CompactError::Failed(error) => uncleanable(py, &error),
            CompactError::Plane(error) => refused(py, &error),
        });
        Ok(done?.map(Compaction::new))
    }

    /// Returns what ``cleaner-offset-checkpoint`` says: topic, partition, first offset to compact.
    fn cleaner_offsets(&self, py: Python<'_>) -> Vec<(String, i32, i64)> {
        self.engine(py).cleaner_offsets().into_iter().map(cleaner_row).collect()
    }

    /// Says up to which offset a log was compacted before it was opened.
    fn set_cleaner_offset(&self, py: Python<'_>, handle: Handle, offset: i64) -> PyResult<()> {
        let set = self.engine(py).set_cleaned_to(handle, offset);
        set.map_err(|error| refused(py, &error))
    }

    /// Returns whether a partition is offline: its log could not be written or read.
    fn is_offline(&self, py: Python<'_>, handle: Handle) -> PyResult<bool> {
        self.engine(py).is_offline(handle).map_err(|error| refused(py, &error))
    }

    /// Takes a partition offline: all that is asked of it is answered with KAFKA_STORAGE_ERROR (56).
    fn take_offline(&self, py: Python<'_>, handle: Handle) -> PyResult<()> {
        self.engine(py).take_offline(handle).map_err(|error| refused(py, &error))
    }

    /// Has a partition decide by other settings; those that are not given stay. A higher
    /// ``leader_epoch`` begins at the log end.
    #[pyo3(signature = (handle, *, settings=None, **options),
        text_signature = "($self, handle, *, settings=None, leader_epoch=..., is_internal=..., \
        min_insync_replicas=..., in_sync_replicas=..., partition_epoch=..., segment_ms=..., \
        segment_index_bytes=..., index_interval_bytes=..., retention_ms=..., retention_bytes=...)")]
    fn configure(
        &self,
        py: Python<'_>,
        handle: Handle,
        settings: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let keywords = Keywords::new("DataPlane.configure()", options);
        let known = PartitionOptions::of(&self.engine(py), handle);
        let known = known.ok_or_else(|| closed(handle))?;
        let found = PartitionOptions::take(py, &self.options, settings, &keywords, Some(&known))?;
        keywords.finish()?;
        let is_open = self.engine(py).configure(handle, found.leader, found.settings);
        is_open.then_some(()).ok_or_else(|| closed(handle))
    }

    /// Appends what a Produce request of version 3 to 13 holds, and returns a :class:`Produced`.
    ///
    /// Args:
    ///     frame: the request.
    ///     position: where its body begins.
    ///     version: its version.
    ///     now_ms: the broker's clock.
    ///     refused: error codes by topic and partition.
    ///     verified: what ``to_verify`` was, once the transaction coordinator has answered; what it
    ///         refused is in ``refused``.
    ///     allow_internal: whether internal topics may be written to, as by Kafka's admin client.
    ///
    /// Raises:
    ///     MalformedFrameError: nothing is appended, and the connection is to be closed.
    #[pyo3(signature = (
        frame, position, version, *, now_ms, refused=None, verified=None, allow_internal=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "one a field, by name")]
    fn produce(
        &self,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        position: usize,
        version: i16,
        now_ms: Integer,
        refused: Option<&Bound<'_, PyAny>>,
        verified: Option<&Bound<'_, Verification>>,
        allow_internal: bool,
    ) -> PyResult<Produced> {
        let frame = SharedBytes::of(frame)?;
        let refused = refused_of(refused)?;
        let call = ProduceCall {
            now_ms: now_ms.clock()?,
            refused: &refused,
            verified: verified.map(|verified| &verified.get().engine),
            allows_internal: allow_internal,
        };
        let bytes = frame.as_bytes(py);
        let mut engine = self.engine(py);
        let held = &mut *engine;
        let mut answer = Vec::new();
        let to = &mut answer;
        let work = || {
            with_validator(|validator| held.produce(bytes, position, version, &call, validator, to))
        };
        let is_short = bytes.len() <= DETACH_BYTES;
        let done = if is_short { attached(py, work) } else { detached(py, work) }?;
        drop(engine);
        let done = done.map_err(|error| malformed(py, &error))?;
        Produced::new(py, done, &answer)
    }

    /// Reads what a Fetch request of version 4 to 18 asks for, and returns a :class:`Fetched`.
    ///
    /// Args:
    ///     frame: the request.
    ///     position: where its body begins.
    ///     version: its version.
    ///     now_ms: the broker's clock.
    ///     must_answer: whether it is answered even if there is too little: its time is up.
    ///     refused: error codes by topic and partition.
    ///
    /// Raises:
    ///     MalformedFrameError: the connection is to be closed.
    #[pyo3(signature = (frame, position, version, *, now_ms, must_answer, refused=None))]
    #[expect(clippy::too_many_arguments, reason = "one a field, by name")]
    fn fetch(
        &self,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        position: usize,
        version: i16,
        now_ms: Integer,
        must_answer: bool,
        refused: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Fetched> {
        let frame = SharedBytes::of(frame)?;
        let refused = refused_of(refused)?;
        let call = FetchCall { now_ms: now_ms.clock()?, must_answer, refused: &refused };
        let bytes = frame.as_bytes(py);
        let mut parts = Parts::new(py);
        let mut engine = self.engine(py);
        let held = &mut *engine;
        let done = if bytes.len() <= DETACH_BYTES {
            let to = &mut parts;
            attached(py, || held.fetch(bytes, position, version, &call, to))?
        } else {
            let to = parts.buffer();
            detached(py, || held.fetch(bytes, position, version, &call, to))?
        };
        drop(engine);
        let done = done.map_err(|error| malformed(py, &error))?;
        Fetched::new(py, done, parts)
    }

    /// Appends batches that are no client's, and returns a :class:`Verdict`.
    ///
    /// Args:
    ///     records: any bytes-like object.
    ///     now_ms: the broker's clock.
    ///     origin: ``"coordinator"`` for the broker's own writes, ``"replication"`` for what the
    ///         leader of this partition has sent, offsets included.
    ///     guard: what :meth:`begin_verification` returned.
    ///
    /// Raises:
    ///     KafkaError: KAFKA_STORAGE_ERROR (56).
    #[pyo3(signature = (
        handle, records, *, now_ms, origin=OriginName(Origin::Coordinator), guard=None
    ), text_signature = "($self, handle, records, *, now_ms, origin='coordinator', guard=None)")]
    fn append(
        &self,
        py: Python<'_>,
        handle: Handle,
        records: &Bound<'_, PyAny>,
        now_ms: Integer,
        origin: OriginName,
        guard: Option<&Bound<'_, VerificationGuard>>,
    ) -> PyResult<Verdict> {
        let records = SharedBytes::of(records)?;
        let request = AppendRequest {
            api_version: None,
            has_transactional_id: true,
            origin: origin.0,
            guard: guard.map(|guard| &guard.get().guard),
            transaction_version: 0,
            now_ms: now_ms.clock()?,
        };
        let bytes = records.as_bytes(py);
        let mut engine = self.engine(py);
        let held = &mut *engine;
        let work = || with_validator(|v| held.append(handle, bytes, &request, v));
        let is_short = bytes.len() <= DETACH_BYTES;
        let verdict = if is_short { attached(py, work) } else { detached(py, work) }?;
        drop(engine);
        let decision = verdict.map_err(|error| refused(py, &error))?.into();
        Ok(Verdict::new(py, records, decision))
    }

    /// Appends the marker that ends a transaction, as :meth:`Leader.end_transaction` does.
    ///
    /// Raises:
    ///     ValueError: a negative producer id.
    #[pyo3(signature = (
        handle, *, producer_id, producer_epoch, coordinator_epoch, commit, now_ms,
        transaction_version=0
    ))]
    #[expect(clippy::too_many_arguments, reason = "one a field, by name")]
    fn end_transaction(
        &self,
        py: Python<'_>,
        handle: Handle,
        producer_id: i64,
        producer_epoch: i16,
        coordinator_epoch: i32,
        commit: bool,
        now_ms: Integer,
        transaction_version: i16,
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
        let verdict = attached(py, || with_validator(|v| engine.end_transaction(handle, &end, v)))?;
        drop(engine);
        let verdict = verdict.map_err(|error| refused(py, &error))?;
        Ok(Verdict::new(py, SharedBytes::empty(py), verdict.into()))
    }

    /// Begins to verify a producer's transaction with its coordinator, as
    /// :meth:`Leader.begin_verification` does: for what a coordinator appends. For Produce
    /// requests, :meth:`produce` does it.
    #[pyo3(signature = (
        handle, producer_id, producer_epoch, base_sequence, *, now_ms, transaction_version=2
    ))]
    #[expect(clippy::too_many_arguments, reason = "one a field, by name")]
    fn begin_verification(
        &self,
        py: Python<'_>,
        handle: Handle,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        now_ms: Integer,
        transaction_version: i16,
    ) -> PyResult<Option<VerificationGuard>> {
        let now_ms = now_ms.clock()?;
        let begun = self.engine(py).begin_verification(
            handle,
            producer_id,
            producer_epoch,
            base_sequence,
            transaction_version,
            now_ms,
        );
        begun
            .map(|guard| guard.map(|guard| VerificationGuard { guard }))
            .map_err(|error| refused(py, &error))
    }

    /// Returns whole batches: from the one that holds ``offset`` on, up to the log end, at least one
    /// of them and otherwise at most ``max_bytes``; nothing at the log end.
    ///
    /// Raises:
    ///     KafkaError: OFFSET_OUT_OF_RANGE (1).
    #[pyo3(signature = (handle, offset, max_bytes))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        handle: Handle,
        offset: i64,
        max_bytes: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        let engine = self.engine(py);
        let mut add = |slice: &[u8]| bytes.extend_from_slice(slice);
        let read = attached(py, || engine.read(handle, offset, max_bytes, &mut add))?;
        drop(engine);
        read.map_err(|error| refused(py, &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the log start offset, the last stable offset, the high watermark and the log end
    /// offset.
    fn offsets(&self, py: Python<'_>, handle: Handle) -> PyResult<(i64, i64, i64, i64)> {
        let offsets = self.engine(py).offsets(handle).ok_or_else(|| closed(handle))?;
        Ok((
            offsets.log_start_offset,
            offsets.last_stable_offset,
            offsets.high_watermark,
            offsets.log_end_offset,
        ))
    }

    /// Returns the offset, the timestamp and the leader epoch that ListOffsets asks for, each -1
    /// where there is none.
    ///
    /// Args:
    ///     timestamp: of the first record to be found; or -1 for the latest offset, -2 and -4 for
    ///         the earliest, -3 for the record with the largest timestamp (KIP-734), -5 and -6 for
    ///         what is in remote storage, where nothing is.
    ///     isolation_level: 1 for readers of committed records.
    ///     current_leader_epoch: the leader epoch that the client knows, -1 for none.
    ///
    /// Raises:
    ///     KafkaError: FENCED_LEADER_EPOCH (74) for an older leader epoch, UNKNOWN_LEADER_EPOCH (75)
    ///         for a newer one.
    #[pyo3(signature = (handle, timestamp, isolation_level=0, *, current_leader_epoch=-1),
        text_signature = "($self, handle, timestamp, isolation_level=0, *, \
        current_leader_epoch=-1)")]
    fn find_offset(
        &self,
        py: Python<'_>,
        handle: Handle,
        timestamp: i64,
        isolation_level: i8,
        current_leader_epoch: i32,
    ) -> PyResult<(i64, i64, i32)> {
        let query = OffsetQuery::from(timestamp);
        let engine = self.engine(py);
        let checked = engine.check_leader_epoch(handle, current_leader_epoch);
        checked.map_err(|error| refused(py, &error))?;
        let work =
            || with_validator(|v| engine.find_offset(handle, query, isolation_level == 1, v));
        let found = attached(py, work)?;
        drop(engine);
        let found = found.map_err(|error| refused(py, &error))?;
        Ok((found.offset, found.timestamp, found.leader_epoch))
    }

    /// Returns where a leader epoch ends, as OffsetForLeaderEpoch answers: the newest epoch not above
    /// it, and the offset behind its last record; -1 and -1 of an epoch above all that are known.
    ///
    /// Raises:
    ///     KafkaError: as :meth:`find_offset`.
    #[pyo3(signature = (handle, leader_epoch, *, current_leader_epoch=-1),
        text_signature = "($self, handle, leader_epoch, *, current_leader_epoch=-1)")]
    fn end_of_epoch(
        &self,
        py: Python<'_>,
        handle: Handle,
        leader_epoch: i32,
        current_leader_epoch: i32,
    ) -> PyResult<(i32, i64)> {
        let engine = self.engine(py);
        let checked = engine.check_leader_epoch(handle, current_leader_epoch);
        let end = checked.and_then(|()| engine.end_of_epoch(handle, leader_epoch));
        drop(engine);
        end.map_err(|error| refused(py, &error))
    }

    /// Advances the log start offset (KIP-107), and returns it; an offset of -1 is the high
    /// watermark, and one below the log start changes nothing.
    ///
    /// Raises:
    ///     KafkaError: OFFSET_OUT_OF_RANGE (1) above the high watermark.
    fn delete_records(&self, py: Python<'_>, handle: Handle, offset: i64) -> PyResult<i64> {
        let start = self.engine(py).delete_records(handle, offset);
        start.map_err(|error| refused(py, &error))
    }

    /// Deletes segments by ``retention.ms``, ``retention.bytes`` and the log start offset. Returns
    /// the handles of partitions that begin at another offset since.
    #[pyo3(signature = (now_ms))]
    fn apply_retention<'py>(
        &self,
        py: Python<'py>,
        now_ms: Integer,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let now_ms = now_ms.clock()?;
        PyTuple::new(py, self.engine(py).apply_retention(now_ms))
    }

    /// Drops producers and verifications that have been idle for ``producer.id.expiration.ms``.
    fn expire_producers(&self, py: Python<'_>, now_ms: Integer) -> PyResult<()> {
        let now_ms = now_ms.clock()?;
        self.engine(py).expire_producers(now_ms);
        Ok(())
    }

    /// Moves the high watermark of a partition with several replicas in sync, within the log.
    fn advance_high_watermark(&self, py: Python<'_>, handle: Handle, offset: i64) -> PyResult<()> {
        let moved = self.engine(py).advance_high_watermark(handle, offset);
        moved.map_err(|error| refused(py, &error))
    }

    /// Truncates the log of a follower to an offset, or behind the last whole batch before it.
    #[pyo3(signature = (handle, offset, *, now_ms))]
    fn truncate(
        &self,
        py: Python<'_>,
        handle: Handle,
        offset: i64,
        now_ms: Integer,
    ) -> PyResult<()> {
        let now_ms = now_ms.clock()?;
        let mut engine = self.engine(py);
        let work = || with_validator(|v| engine.truncate(handle, offset, now_ms, v));
        let truncated = attached(py, work)?;
        drop(engine);
        truncated.map_err(|error| refused(py, &error))
    }

    /// Returns a copy of a partition's :class:`Leader`: its producers, transactions and counters.
    fn leader(&self, py: Python<'_>, handle: Handle) -> PyResult<Leader> {
        let engine = self.engine(py);
        let place = engine
            .place(handle)
            .map(|(topic, index)| (String::from_utf8_lossy(topic).into_owned(), index));
        let (topic, partition) = place.ok_or_else(|| closed(handle))?;
        let leader = engine.leader(handle).cloned().ok_or_else(|| closed(handle))?;
        drop(engine);
        Ok(Leader::of(leader, topic, partition))
    }

    /// Returns the producers that a partition knows, by id, as :class:`ProducerState`.
    fn producers<'py>(&self, py: Python<'py>, handle: Handle) -> PyResult<Bound<'py, PyTuple>> {
        let engine = self.engine(py);
        let leader = engine.leader(handle).ok_or_else(|| closed(handle))?;
        let entries: Vec<_> = leader.state().producers().by_id().into_iter().cloned().collect();
        drop(engine);
        let states = entries.into_iter().map(|entry| ProducerState { entry });
        PyTuple::new(py, states.collect::<Vec<_>>())
    }

    /// Returns the base offset and the size in bytes of each segment of a partition.
    fn segments(&self, py: Python<'_>, handle: Handle) -> PyResult<Vec<(i64, u64)>> {
        self.engine(py).segments(handle).ok_or_else(|| closed(handle))
    }

    /// Bytes of batches that all logs together hold.
    #[getter]
    fn stored_bytes(&self, py: Python<'_>) -> u64 {
        self.engine(py).stored_bytes()
    }

    /// Returns what was counted over all partitions, by the names of Kafka's meters.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counted = self.engine(py).metrics();
        let metrics = PyDict::new(py);
        for (name, count) in counted.named() {
            metrics.set_item(name, count)?;
        }
        Ok(metrics)
    }
}
