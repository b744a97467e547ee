//! Compaction of partitions: what a job is made of, and what becomes of its result.

use crate::error::PlaneError;
use crate::log::compaction::cleanable::LogFacts;
use crate::log::compaction::filter::{LastBatch, RecordCounts};
use crate::log::compaction::job::{Compacted, Sealed};
use crate::log::compaction::{CompactionError, CompactionFault, CompactionSettings};
use crate::partition::Partition;
use crate::plane::DataPlane;
use crate::topics::Handle;
use ottla_format::compression::Codecs;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A compaction that any thread can do: what it reads does not change, and what it writes is no part
/// of the log until [`DataPlane::compacted`] puts it there.
pub struct CompactJob {
    handle: Handle,
    generation: u64,
    sealed: Sealed,
    done: Option<Result<Compacted, CompactionError>>,
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// Bytes of the segments before.
    pub bytes_before: u64,
    /// Bytes of those in their place.
    pub bytes_after: u64,
    /// Their records.
    pub records: RecordCounts,
    /// Where the next compaction begins.
    pub first_dirty_offset: i64,
    /// Whether there was room for all keys; if not, another compaction goes on there.
    pub is_whole: bool,
}

/// Why a partition is not compacted.
#[derive(Debug)]
pub enum CompactError {
    /// Its log cannot be.
    Failed(CompactionError),
    /// What was made of it cannot take its place.
    Plane(PlaneError),
}

impl From<PlaneError> for CompactError {
    fn from(error: PlaneError) -> Self {
        Self::Plane(error)
    }
}

impl fmt::Display for CompactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Plane(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CompactError {}

impl CompactJob {
    /// Compacts, unless it is stopped.
    pub fn run(&mut self, codecs: &mut Codecs) {
        let done = self.sealed.compact(codecs);
        let is_stopped =
            matches!(&done, Err(error) if matches!(error.fault, CompactionFault::Stopped));
        self.done = (!is_stopped).then_some(done);
    }

    /// What ends it early when it is set, by any thread: the log stays as it was.
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.sealed.stop)
    }
}

impl Partition {
    fn log_facts(&self) -> LogFacts {
        let offsets = self.offsets();
        LogFacts {
            segments: self.log.segment_facts(),
            log_start_offset: offsets.log_start_offset,
            last_stable_offset: offsets.last_stable_offset,
            log_end_offset: offsets.log_end_offset,
            cleaned_to: self.cleaned_to,
        }
    }

    /// What there is to compact; where `is_forced`, all that may be, however little it is.
    fn sealed(
        &mut self,
        settings: &CompactionSettings,
        is_forced: bool,
        now_ms: i64,
    ) -> Result<Option<Sealed>, PlaneError> {
        if self.is_offline() || !self.leader.settings().config.is_compacted {
            return Ok(None);
        }
        if is_forced {
            let rolled = self.log.roll_now(self.leader.state(), now_ms);
            self.watch(rolled)?;
        }
        let cleanable = self.log_facts().cleanable(settings, now_ms);
        let Some(cleanable) = cleanable.filter(|found| is_forced || found.is_due) else {
            return Ok(None);
        };
        let segments = self.log.sealed_below(cleanable.first_uncleanable_offset);
        let Some(first) = segments.first() else { return Ok(None) };
        let state = self.leader.state();
        let aborted = state.aborted_between(first.base_offset, cleanable.first_uncleanable_offset);
        let producers = state.producers().by_id().into_iter().map(|producer| {
            let last = producer.batches().last().map(|batch| batch.last_offset);
            let last_offset = last.filter(|&offset| offset >= 0);
            let producer_epoch = producer.producer_epoch;
            (producer.producer_id, LastBatch { last_offset, producer_epoch })
        });
        Ok(Some(Sealed {
            aborted,
            producers: producers.collect(),
            cleanable,
            high_watermark: state.high_watermark(),
            settings: *settings,
            log: self.settings.log,
            now_ms,
            make: self.log.maker_of_cleaned(),
            segments,
            stop: Arc::default(),
        }))
    }
}

impl DataPlane {
    /// Begins to compact a partition; `None` where there is nothing to do, or where its topic is not
    /// compacted. Where `is_forced`, the active segment is sealed first, and the rest is compacted
    /// however little it is.
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn compact_job(
        &mut self,
        handle: Handle,
        settings: &CompactionSettings,
        is_forced: bool,
        now_ms: i64,
    ) -> Result<Option<CompactJob>, PlaneError> {
        let partition = self.known_mut(handle)?;
        let sealed = partition.sealed(settings, is_forced, now_ms)?;
        let generation = partition.log.generation();
        self.note_rolled(handle);
        Ok(sealed.map(|sealed| CompactJob { handle, generation, sealed, done: None }))
    }

    /// Puts what a job has made in the place of what it was made of. `None` where the log has lost
    /// segments since, or the job was not run to its end: then everything stays.
    ///
    /// # Errors
    /// [`CompactError`]; the log stays as it is, but where its files fail: then it is offline.
    pub fn compacted(&mut self, job: CompactJob) -> Result<Option<Compaction>, CompactError> {
        let Some(done) = job.done else { return Ok(None) };
        let partition = self.partition_mut(job.handle);
        let is_current = |partition: &&mut Partition| partition.log.generation() == job.generation;
        let Some(partition) = partition.filter(is_current) else {
            done.into_iter().for_each(Compacted::discard);
            return Ok(None);
        };
        let done = done.map_err(CompactError::Failed)?;
        let before = partition.log.size();
        let replaced = partition.log.replace(done.segments);
        partition.watch(replaced).map_err(PlaneError::from)?;
        partition.leader.forget_aborted(done.end_offset, &done.aborted);
        partition.cleaned_to = Some(done.cleaned_to);
        let after = partition.log.size();
        // A batch that gets a delete horizon may take more bytes than before.
        let grown = after.saturating_sub(before);
        let freed = before.saturating_sub(after);
        self.stored_bytes = self.stored_bytes.saturating_add(grown).saturating_sub(freed);
        Ok(Some(Compaction {
            bytes_before: before,
            bytes_after: after,
            records: done.counts,
            first_dirty_offset: done.cleaned_to,
            is_whole: done.is_whole,
        }))
    }

    /// Where the next compaction of each compacted partition begins, as `cleaner-offset-checkpoint`
    /// has it: topic, number and offset of those that were compacted once.
    pub fn cleaner_offsets(&self) -> Vec<(&[u8], i32, i64)> {
        let partitions = self.each();
        partitions
            .filter_map(|partition| {
                Some((&*partition.topic, partition.index, partition.cleaned_to?))
            })
            .collect()
    }

    /// A partition was compacted up to an offset before it was opened.
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn set_cleaned_to(&mut self, handle: Handle, offset: i64) -> Result<(), PlaneError> {
        self.known_mut(handle)?.cleaned_to = Some(offset);
        Ok(())
    }
}
