#![no_main]
//! Requests one after the other, of any version and any bytes: each is answered or malformed, within
//! the bounds of time and memory, the same twice; what is malformed appends nothing, and offsets only
//! grow.

use libfuzzer_sys::fuzz_target;
use ottla_fuzz::{bounded, limits};
use ottla_leader::{LeaderSettings, Validator};
use ottla_plane::{
    DataPlane, FetchCall, Fetched, LogSettings, NewPartition, PartitionSettings, PlaneSettings,
    ProduceCall, Produced, Refused,
};

const TIME: i64 = 1_500_000_000_000;
const PARTITIONS: u32 = 2;

fuzz_target!(|data: &[u8]| {
    let answers = bounded(data.len(), || run(data));
    assert_eq!(answers, run(data));
});

/// Hands the requests of an input to a new plane: an API, a version, a size of two bytes, a frame.
fn run(mut data: &[u8]) -> Vec<Vec<u8>> {
    let mut plane = plane();
    let mut validator = Validator::new(limits(), ottla_kernels::Level::best());
    let mut answers = Vec::new();
    while let Some((&[api, version, low, high], rest)) = data.split_first_chunk() {
        let size = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (frame, behind) = rest.split_at(size);
        data = behind;
        let before = ends(&plane);
        let (mut answer, refused) = (Vec::new(), Refused::default());
        let (now_ms, version) = (TIME, i16::from(version));
        let is_whole = if api & 1 == 0 {
            let mut call =
                ProduceCall { now_ms, refused: &refused, verified: None, allows_internal: false };
            let mut done = plane.produce(frame, 0, version, &call, &mut validator, &mut answer);
            let asked = match done {
                Ok(Produced::Verify(ref asked)) => Some(asked.clone()),
                _ => None,
            };
            if let Some(asked) = &asked {
                assert!(answer.is_empty() && before == ends(&plane));
                call.verified = Some(asked);
                done = plane.produce(frame, 0, version, &call, &mut validator, &mut answer);
                assert!(matches!(done, Ok(Produced::Done { .. })), "asked once");
            }
            done.is_ok()
        } else {
            let must_answer = api & 2 == 0;
            let call = FetchCall { now_ms, must_answer, refused: &refused };
            let done = plane.fetch(frame, 0, version, &call, &mut answer);
            assert!(!must_answer || !matches!(done, Ok(Fetched::Wait { .. })));
            assert_eq!(before, ends(&plane), "a fetch appends nothing");
            done.is_ok()
        };
        let after = ends(&plane);
        assert!(is_whole || (before == after && answer.is_empty()), "malformed, and done");
        assert!(before.iter().zip(&after).all(|(before, after)| before <= after));
        answers.push(answer);
    }
    answers
}

fn ends(plane: &DataPlane) -> Vec<i64> {
    let ends = (0..PARTITIONS).filter_map(|handle| plane.offsets(handle));
    ends.map(|offsets| offsets.log_end_offset).collect()
}

fn plane() -> DataPlane {
    let mut plane = DataPlane::new(PlaneSettings::default());
    for index in 0..PARTITIONS as i32 {
        let log = LogSettings {
            segment_bytes: 1 << 12,
            segment_ms: i64::MAX,
            is_deleted: true,
            retention_ms: -1,
            retention_bytes: -1,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
        };
        let new = NewPartition {
            topic: b"t",
            topic_id: [1; 16],
            index,
            next_offset: 0,
            leader: LeaderSettings::default(),
            settings: PartitionSettings {
                log,
                is_internal: false,
                min_insync_replicas: 1,
                in_sync_replicas: 1,
                partition_epoch: -1,
            },
            place: None,
        };
        plane.open(&new, 0).expect("a new partition");
    }
    plane
}
