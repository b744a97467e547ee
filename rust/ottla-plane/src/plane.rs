//! All partitions of a broker.

use crate::error::{OpenError, PlaneError};
use crate::log::directory::LogDirectory;
use crate::log::load::{LoadFailure, Loaded, load};
use crate::log::open_files::OpenFiles;
use crate::log::partition_log::{LogSettings, PartitionLog};
use crate::partition::{Partition, PartitionOffsets, PartitionSettings};
use crate::sessions::Sessions;
use crate::topics::{Handle, Topics};
use crate::wire::TopicId;
use ottla_leader::{Leader, LeaderSettings, Metrics, Profile};
use ottla_log::recovery::{IndexConfig, Restart};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The settings of a plane.
#[derive(Clone, Copy, Debug)]
pub struct PlaneSettings {
    /// The profile that decides.
    pub profile: Profile,
    /// Bytes of batches that all logs in memory together may hold.
    pub max_stored_bytes: u64,
    /// From which the ids of fetch sessions follow: another one after each start of the broker, so
    /// that no client takes a new session for its old one.
    pub session_seed: u32,
}

impl Default for PlaneSettings {
    fn default() -> Self {
        Self { profile: Profile::Strict, max_stored_bytes: 1 << 32, session_seed: 0 }
    }
}

/// A partition to be opened.
#[derive(Clone, Debug)]
pub struct NewPartition<'a> {
    /// The name of its topic.
    pub topic: &'a [u8],
    /// The id of its topic, all zeros for none.
    pub topic_id: TopicId,
    /// Its number.
    pub index: i32,
    /// The offset that its first record gets.
    pub next_offset: i64,
    /// Its leader's settings.
    pub leader: LeaderSettings,
    /// Its other settings.
    pub settings: PartitionSettings,
    /// Where its log is; `None` for memory.
    pub place: Option<LogPlace<'a>>,
}

/// Where a log is, and what is known of it besides.
#[derive(Clone, Copy, Debug)]
pub struct LogPlace<'a> {
    /// The partition's own directory.
    pub directory: &'a Path,
    /// The first offset that is not known to be synced.
    pub recovery_point: i64,
    /// Where the log begins.
    pub log_start_offset: i64,
    /// Whether it was left by a clean stop.
    pub is_clean: bool,
    /// Whether nothing of it was ever compacted. After a power cut, what is behind a gap between two
    /// segments that were not synced is cut off, as what is behind damage.
    pub is_dense: bool,
}

/// The partitions of a broker, and its fetch sessions.
pub struct DataPlane {
    pub(crate) settings: PlaneSettings,
    pub(crate) topics: Topics,
    /// By handle; `None` of those that are closed.
    partitions: Vec<Option<Box<Partition>>>,
    pub(crate) sessions: Sessions,
    pub(crate) stored_bytes: u64,
    open_files: Arc<OpenFiles>,
    /// Partitions with a sealed segment that is not synced.
    pub(crate) unflushed: BTreeSet<Handle>,
    /// What partitions counted that are closed.
    closed: Metrics,
}

impl DataPlane {
    /// A plane without partitions.
    pub fn new(settings: PlaneSettings) -> Self {
        Self {
            settings,
            topics: Topics::default(),
            partitions: Vec::new(),
            sessions: Sessions::new(settings.session_seed),
            stored_bytes: 0,
            open_files: Arc::default(),
            unflushed: BTreeSet::new(),
            closed: Metrics::default(),
        }
    }

    /// Opens a partition: with an empty log, or with the one that is in its directory.
    ///
    /// # Errors
    /// [`OpenError`], with nothing opened.
    pub fn open(&mut self, new: &NewPartition<'_>, now_ms: i64) -> Result<Handle, OpenError> {
        let handle = Handle::try_from(self.partitions.len()).map_err(|_| OpenError::Taken)?;
        let name = self.topics.add(new.topic, new.topic_id, new.index, handle);
        let topic = name.ok_or(OpenError::Taken)?;
        match self.load(new, Arc::clone(&topic), now_ms) {
            Ok(partition) => {
                self.stored_bytes = self.stored_bytes.saturating_add(partition.log.size());
                self.partitions.push(Some(Box::new(partition)));
                Ok(handle)
            }
            Err(error) => {
                self.topics.remove(&topic, new.index);
                Err(error)
            }
        }
    }

    fn load(
        &self,
        new: &NewPartition<'_>,
        topic: Arc<[u8]>,
        now_ms: i64,
    ) -> Result<Partition, OpenError> {
        let log = match &new.place {
            None => PartitionLog::in_memory(new.next_offset, now_ms),
            Some(place) => {
                let directory = Arc::new(LogDirectory::new(place.directory, &self.open_files));
                if !directory.is_empty()? {
                    return resume(&directory, place, new, topic, now_ms);
                }
                directory.create(new.topic_id)?;
                PartitionLog::in_directory(directory, new.next_offset, now_ms)?
            }
        };
        let leader = Leader::new(new.leader.clone(), new.next_offset, new.next_offset);
        Ok(Partition::new(topic, new.index, leader, log, new.settings)?)
    }

    /// Closes a partition. Its log is gone then, unless it is in a directory, which is left as it is.
    /// Returns whether it was open.
    pub fn close(&mut self, handle: Handle) -> bool {
        self.take(handle).is_some()
    }

    /// Closes a partition, of which nothing is left, also no directory. Returns whether it was open.
    ///
    /// # Errors
    /// What the operating system reports: the directory is there, or one that is to be deleted.
    pub fn remove(&mut self, handle: Handle) -> Result<bool, PlaneError> {
        let topic_id = self.place(handle).and_then(|(topic, _)| self.topics.id_of(topic));
        let Some(partition) = self.take(handle) else { return Ok(false) };
        let Partition { topic, index, log, .. } = *partition;
        log.remove(&topic, index, topic_id.unwrap_or_default())?;
        Ok(true)
    }

    fn take(&mut self, handle: Handle) -> Option<Box<Partition>> {
        let place = self.partitions.get_mut(handle as usize);
        let mut partition = place.and_then(Option::take)?;
        self.topics.remove(&partition.topic, partition.index);
        self.stored_bytes = self.stored_bytes.saturating_sub(partition.log.size());
        self.closed.add(partition.leader.metrics());
        self.unflushed.remove(&handle);
        partition.log.close();
        Some(partition)
    }

    /// Has a partition decide by other settings. Returns whether it is open.
    pub fn configure(
        &mut self,
        handle: Handle,
        leader: LeaderSettings,
        settings: PartitionSettings,
    ) -> bool {
        let partition = self.partition_mut(handle);
        partition.is_some_and(|partition| {
            partition.configure(leader, settings);
            true
        })
    }

    pub(crate) fn partition(&self, handle: Handle) -> Option<&Partition> {
        self.partitions.get(handle as usize)?.as_deref()
    }

    pub(crate) fn partition_mut(&mut self, handle: Handle) -> Option<&mut Partition> {
        self.partitions.get_mut(handle as usize)?.as_deref_mut()
    }

    /// All partitions that are open.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.iter().filter_map(Option::as_deref)
    }

    /// All handles that are open, with their partitions.
    pub(crate) fn each_mut(&mut self) -> impl Iterator<Item = (Handle, &mut Partition)> {
        let numbered = (0..).zip(&mut self.partitions);
        numbered.filter_map(|(handle, partition)| Some((handle, partition.as_deref_mut()?)))
    }

    /// The leader of a partition.
    pub fn leader(&self, handle: Handle) -> Option<&Leader> {
        self.partition(handle).map(|partition| &partition.leader)
    }

    /// The topic and the number of a partition.
    pub fn place(&self, handle: Handle) -> Option<(&[u8], i32)> {
        self.partition(handle).map(|partition| (&*partition.topic, partition.index))
    }

    /// The settings of a partition beside its leader's.
    pub fn partition_settings(&self, handle: Handle) -> Option<PartitionSettings> {
        self.partition(handle).map(|partition| partition.settings)
    }

    /// The offsets of a partition.
    pub fn offsets(&self, handle: Handle) -> Option<PartitionOffsets> {
        self.partition(handle).map(Partition::offsets)
    }

    /// Base offset and size of each segment of a partition.
    pub fn segments(&self, handle: Handle) -> Option<Vec<(i64, u64)>> {
        self.partition(handle).map(|partition| partition.log.segments().collect())
    }

    /// Bytes of batches that all logs hold.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// What all partitions have counted, those that are closed included.
    pub fn metrics(&self) -> Metrics {
        let mut sum = self.closed;
        for partition in self.partitions.iter().flatten() {
            sum.add(partition.leader.metrics());
        }
        sum
    }
}

/// A partition whose log is there, with what is set of it.
fn resume(
    directory: &Arc<LogDirectory>,
    place: &LogPlace<'_>,
    new: &NewPartition<'_>,
    topic: Arc<[u8]>,
    now_ms: i64,
) -> Result<Partition, OpenError> {
    let LogSettings { index_interval_bytes, segment_index_bytes, .. } = new.settings.log;
    let restart = Restart {
        stopped_cleanly: place.is_clean,
        recovery_point: place.recovery_point,
        log_start_offset: place.log_start_offset,
        is_dense: place.is_dense,
        config: IndexConfig { index_interval_bytes, segment_index_bytes },
    };
    let path = directory.path().to_owned();
    let Loaded { log, epochs, mut state, changes } =
        load(directory, new.topic_id, &restart).map_err(OpenError::Load)?;
    if new.settings.in_sync_replicas > 1 {
        // What others have of it is not known yet.
        state.offsets.high_watermark = Some(state.offsets.log_start_offset);
    }
    let leader = Leader::resume(new.leader.clone(), state, now_ms).map_err(|error| {
        OpenError::Load(LoadFailure::Refused { path, reason: error.to_string() })
    })?;
    let mut partition = Partition::resume(topic, new.index, leader, (log, epochs), new.settings)?;
    partition.changes = changes;
    Ok(partition)
}
