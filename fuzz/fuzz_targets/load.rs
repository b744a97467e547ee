#![no_main]
//! Arbitrary directories of a partition, opened by a broker: refused, or within bounds a log that takes
//! a record and gives it back, and that is the same after a clean stop and another start.

use libfuzzer_sys::fuzz_target;
use ottla_format::builder::{BatchFields, NewRecord, build_batch};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_fuzz::{INFLATED_BYTES, bounded, limits, unpack_files};
use ottla_leader::{LeaderSettings, Validator};
use ottla_plane::{
    DataPlane, FetchCall, Fetched, Handle, LogPlace, LogSettings, NewPartition, OpenError,
    PartitionOffsets, PartitionSettings, PlaneSettings, ProduceCall, Produced, Refused,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const TIME: i64 = 1_500_000_000_000;

fuzz_target!(|data: &[u8]| {
    let Some((&[flags, low, high, start], rest)) = data.split_first_chunk() else { return };
    let files = unpack_files(rest);
    let place = LogPlace {
        directory: &directory(),
        recovery_point: u16::from_le_bytes([low, high]).into(),
        log_start_offset: start.into(),
        is_clean: flags & 1 == 1,
        is_dense: flags & 2 == 2,
    };
    bounded(data.len() + INFLATED_BYTES, || {
        lay_out(&files, place.directory);
        run(place);
    });
});

fn directory() -> PathBuf {
    std::env::temp_dir().join(format!("ottla-fuzz-{}", std::process::id())).join("t-0")
}

/// Writes the files; what has a name that no file can have is left out.
fn lay_out(files: &BTreeMap<Vec<u8>, Vec<u8>>, directory: &Path) {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).expect("room for files");
    for (name, data) in files {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        if !name.contains(['/', '\0']) && !matches!(name, "" | "." | "..") {
            fs::write(directory.join(name), data).expect("room for files");
        }
    }
}

fn run(place: LogPlace<'_>) {
    let mut plane = DataPlane::new(PlaneSettings::default());
    let Some((handle, before)) = open(&mut plane, place) else { return };
    assert!(before.log_start_offset <= before.log_end_offset, "{before:?}");
    let after = match produce(&mut plane, handle) {
        true => {
            let after = plane.offsets(handle).expect("it is open");
            assert_eq!(after.log_end_offset, before.log_end_offset + 1);
            let last = fetch(&mut plane, before.log_end_offset);
            assert!(last.windows(5).any(|window| window == b"fresh"), "what was taken is there");
            after
        }
        false => before,
    };
    let starts = [after.log_start_offset, i64::MAX, -1, after.log_end_offset + 1];
    for offset in (0..8).chain(starts) {
        fetch(&mut plane, offset);
    }
    if plane.shut_down(handle).is_err() {
        return;
    }
    drop(plane);
    let clean = LogPlace {
        recovery_point: after.log_end_offset,
        log_start_offset: after.log_start_offset,
        is_clean: true,
        ..place
    };
    let mut plane = DataPlane::new(PlaneSettings::default());
    let (_, again) = open(&mut plane, clean).expect("what it left itself");
    let ends = |offsets: PartitionOffsets| (offsets.log_start_offset, offsets.log_end_offset);
    assert_eq!(ends(again), ends(after));
}

fn open(plane: &mut DataPlane, place: LogPlace<'_>) -> Option<(Handle, PartitionOffsets)> {
    let log = LogSettings {
        segment_bytes: 1 << 12,
        segment_ms: i64::MAX,
        is_deleted: true,
        retention_ms: -1,
        retention_bytes: -1,
        segment_index_bytes: 1 << 10,
        index_interval_bytes: 64,
    };
    let new = NewPartition {
        topic: b"t",
        topic_id: [0; 16],
        index: 0,
        next_offset: 0,
        leader: LeaderSettings::default(),
        settings: PartitionSettings {
            log,
            is_internal: false,
            min_insync_replicas: 1,
            in_sync_replicas: 1,
            partition_epoch: -1,
        },
        place: Some(place),
    };
    match plane.open(&new, TIME) {
        Ok(handle) => Some((handle, plane.offsets(handle).expect("it is open"))),
        Err(OpenError::Load(_) | OpenError::Io(_)) => None,
        Err(error @ OpenError::Taken) => panic!("{error:?}"),
    }
}

/// Whether a record is taken: a log may be at its last offset, or have turned out to be unusable.
fn produce(plane: &mut DataPlane, handle: Handle) -> bool {
    let record = NewRecord { timestamp: TIME, value: Some(b"fresh"), ..NewRecord::default() };
    let mut codecs = Codecs::new(Limits::default());
    let batch = build_batch(&BatchFields::default(), &[record], &mut codecs).expect("builds");
    // No transactional id, all replicas, no time; one topic, one partition.
    let head = [255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 0];
    let frame = [&head[..], &(batch.len() as i32).to_be_bytes(), &batch].concat();
    let before = plane.offsets(handle).expect("it is open").log_end_offset;
    let (refused, mut answer) = (Refused::default(), Vec::new());
    let call =
        ProduceCall { now_ms: TIME, refused: &refused, verified: None, allows_internal: false };
    let mut validator = Validator::new(limits(), ottla_kernels::Level::best());
    let done = plane.produce(&frame, 0, 7, &call, &mut validator, &mut answer);
    assert!(matches!(done, Ok(Produced::Done { .. })));
    plane.offsets(handle).is_some_and(|offsets| offsets.log_end_offset > before)
}

fn fetch(plane: &mut DataPlane, offset: i64) -> Vec<u8> {
    let mut frame = vec![255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 0, 0];
    frame.extend_from_slice(&[0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 0]);
    frame.extend_from_slice(&offset.to_be_bytes());
    frame.extend_from_slice(&1_000_i32.to_be_bytes());
    let (refused, mut answer) = (Refused::default(), Vec::new());
    let call = FetchCall { now_ms: TIME, must_answer: true, refused: &refused };
    let done = plane.fetch(&frame, 0, 4, &call, &mut answer);
    assert!(matches!(done, Ok(Fetched::Answered { .. })), "{done:?}");
    answer
}
