//! A plane of one partition, and requests of old versions, whose layout is plain.

#![allow(dead_code, reason = "no test needs all of it")]

use ottla_format::builder::{BatchFields, NewRecord, build_batch};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_leader::{LeaderSettings, TopicConfig, Validator};
use ottla_plane::{
    DataPlane, FetchCall, Fetched, LogPlace, LogSettings, MalformedFrame, NewPartition,
    PartitionSettings, PlaneSettings, ProduceCall, Produced, Refused,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, process};

/// The version of Produce that [`produce_frame`] writes.
pub(crate) const PRODUCE_VERSION: i16 = 3;
/// The version of Fetch that [`fetch_frame`] writes.
pub(crate) const FETCH_VERSION: i16 = 4;

/// A batch of records of these sizes.
pub(crate) fn batch(sizes: &[usize], timestamp: i64) -> Vec<u8> {
    let values: Vec<Vec<u8>> = sizes.iter().map(|&size| vec![7; size]).collect();
    let records: Vec<_> = values
        .iter()
        .map(|value| NewRecord { value: Some(value), timestamp, ..NewRecord::default() })
        .collect();
    build_batch(&BatchFields::default(), &records, &mut Codecs::new(Limits::default()))
        .expect("a batch")
}

/// A directory that goes when it is dropped.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("a directory for tests");
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A plane in memory whose partitions of topic `t` have segments of so many bytes.
pub(crate) fn plane(partitions: i32, segment_bytes: i32) -> DataPlane {
    plane_in(None, partitions, segment_bytes)
}

/// The same with its logs below a directory.
pub(crate) fn plane_in(logs: Option<&Path>, partitions: i32, segment_bytes: i32) -> DataPlane {
    let mut plane = DataPlane::new(PlaneSettings::default());
    for index in 0..partitions {
        let directory = logs.map(|logs| logs.join(format!("t-{index}")));
        let config = TopicConfig { segment_bytes, ..TopicConfig::default() };
        let log = LogSettings {
            segment_bytes,
            segment_ms: i64::MAX,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            is_deleted: true,
            retention_ms: -1,
            retention_bytes: -1,
        };
        let settings = PartitionSettings {
            log,
            is_internal: false,
            min_insync_replicas: 1,
            in_sync_replicas: 1,
            partition_epoch: -1,
        };
        let new = NewPartition {
            topic: b"t",
            topic_id: [1; 16],
            index,
            next_offset: 0,
            leader: LeaderSettings { config, ..LeaderSettings::default() },
            settings,
            place: directory.as_deref().map(|directory| LogPlace {
                directory,
                recovery_point: 0,
                log_start_offset: 0,
                is_clean: false,
                is_dense: false,
            }),
        };
        plane.open(&new, 0).expect("a new partition");
    }
    plane
}

/// A request to append a record set to a partition.
pub(crate) fn produce_frame(index: i32, records: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    // No transactional id, all replicas, no time.
    frame.extend_from_slice(&[255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1]);
    frame.extend_from_slice(&index.to_be_bytes());
    frame.extend_from_slice(&(records.len() as i32).to_be_bytes());
    frame.extend_from_slice(records);
    frame
}

/// A request to read a partition.
pub(crate) fn fetch_frame(index: i32, offset: i64, max_bytes: i32) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend_from_slice(&[255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 0, 0]);
    frame.extend_from_slice(&[0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1]);
    frame.extend_from_slice(&index.to_be_bytes());
    frame.extend_from_slice(&offset.to_be_bytes());
    frame.extend_from_slice(&max_bytes.to_be_bytes());
    frame
}

/// Hands over a Produce.
pub(crate) fn produce(
    plane: &mut DataPlane,
    frame: &[u8],
    version: i16,
    out: &mut Vec<u8>,
) -> Result<Produced, MalformedFrame> {
    let refused = Refused::default();
    let call = ProduceCall { now_ms: 0, refused: &refused, verified: None, allows_internal: false };
    plane.produce(frame, 0, version, &call, &mut Validator::default(), out)
}

/// Hands over a Fetch whose time is up.
pub(crate) fn fetch(
    plane: &mut DataPlane,
    frame: &[u8],
    version: i16,
    out: &mut Vec<u8>,
) -> Result<Fetched, MalformedFrame> {
    let refused = Refused::default();
    let call = FetchCall { now_ms: 0, must_answer: true, refused: &refused };
    plane.fetch(frame, 0, version, &call, out)
}
