//! What logs in directories need of a broker: syncing, checkpoints, an orderly end.

use crate::error::PlaneError;
use crate::log::flush::FlushJob;
use crate::partition::Partition;
use crate::plane::DataPlane;
use crate::topics::Handle;
use ottla_log::recovery::DirectoryChange;

/// What the checkpoint files of a log directory say of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Kafka's own names")]
pub struct Checkpoint {
    pub topic: Box<[u8]>,
    pub index: i32,
    pub recovery_point: i64,
    pub log_start_offset: i64,
    pub high_watermark: i64,
}

impl DataPlane {
    /// Makes a log survive a crash as it is.
    ///
    /// # Errors
    /// [`PlaneError`]: the partition is offline then.
    pub fn flush(&mut self, handle: Handle) -> Result<(), PlaneError> {
        let partition = self.known_mut(handle)?;
        let done = partition.log.flush();
        partition.watch(done)?;
        self.unflushed.remove(&handle);
        Ok(())
    }

    /// What makes a log survive a crash as it is, to be done apart from it; `None` where nothing is
    /// to be done.
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn flush_job(&mut self, handle: Handle) -> Result<Option<FlushJob>, PlaneError> {
        let partition = self.known(handle)?;
        let job = partition.watch(partition.log.flush_job())?;
        self.unflushed.remove(&handle);
        Ok(job)
    }

    /// A job is done: the recovery point moves. One that failed takes the partition offline by
    /// [`take_offline`](Self::take_offline).
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn flushed(&mut self, handle: Handle, job: &FlushJob) -> Result<(), PlaneError> {
        self.known_mut(handle)?.log.flushed(job);
        Ok(())
    }

    /// Partitions with a sealed segment of which no job was made.
    pub fn unflushed(&self) -> impl Iterator<Item = Handle> {
        self.unflushed.iter().copied()
    }

    /// A partition was appended to.
    pub(crate) fn note_rolled(&mut self, handle: Handle) {
        if self.partition(handle).is_some_and(Partition::has_rolled) {
            self.unflushed.insert(handle);
        }
    }

    /// Leaves a log as a clean stop does: a start has to read nothing of it.
    ///
    /// # Errors
    /// [`PlaneError`]: the partition is offline then.
    pub fn shut_down(&mut self, handle: Handle) -> Result<(), PlaneError> {
        Ok(self.known_mut(handle)?.shut_down()?)
    }

    /// What was done to the files of a log when it was loaded.
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn changes(&self, handle: Handle) -> Result<&[DirectoryChange], PlaneError> {
        Ok(&self.known(handle)?.changes)
    }

    /// What the checkpoint files say of all logs in directories.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        let of = |partition: &Partition| {
            let offsets = partition.offsets();
            Some(Checkpoint {
                topic: Box::from(&*partition.topic),
                index: partition.index,
                recovery_point: partition.log.disk()?.recovery_point(),
                log_start_offset: offsets.log_start_offset,
                high_watermark: offsets.high_watermark,
            })
        };
        self.each().filter_map(of).collect()
    }

    /// Has the disk be full as far as a partition's log goes, or no longer, for tests; a log in memory
    /// needs none. Returns how many of its writes were refused so far.
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn set_full(&self, handle: Handle, is_full: bool) -> Result<u64, PlaneError> {
        let disk = self.known(handle)?.log.disk();
        Ok(disk.map_or(0, |disk| disk.directory().set_full(is_full)))
    }

    /// Whether a partition is offline: its log could not be written or read.
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn is_offline(&self, handle: Handle) -> Result<bool, PlaneError> {
        Ok(self.partition(handle).ok_or(PlaneError::Closed { handle })?.is_offline())
    }

    /// Takes a partition offline.
    ///
    /// # Errors
    /// [`PlaneError`].
    pub fn take_offline(&self, handle: Handle) -> Result<(), PlaneError> {
        self.partition(handle).ok_or(PlaneError::Closed { handle })?.take_offline();
        Ok(())
    }
}
