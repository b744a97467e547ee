#![no_main]
//! Arbitrary directories of a partition: a start of a broker over them is predicted within bounds, takes
//! away no more than there was, and comes out the same twice.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ottla_fuzz::{INFLATED_BYTES, bounded, mend_checksums};
use ottla_log::names::file_name;
use ottla_log::recovery::{Aborted, LoadError, Restart, predict_recovery};
use std::collections::BTreeMap;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    stopped_cleanly: bool,
    recovery_point: u16,
    log_start_offset: u16,
    files: Vec<File<'a>>,
}

#[derive(Arbitrary, Debug)]
struct File<'a> {
    suffix: u8,
    offset: Offset,
    data: &'a [u8],
    is_mended: bool,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Offset {
    Near(u8),
    Far(u8),
    Any(i64),
}

const SUFFIXES: [&[u8]; 12] = [
    b".log",
    b".index",
    b".timeindex",
    b".txnindex",
    b".snapshot",
    b".log.swap",
    b".index.swap",
    b".log.cleaned",
    b".log.deleted",
    b".snapshot.deleted",
    b"",
    b".checkpoint.deleted",
];

fn directory(files: &[File<'_>]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let file = |file: &File<'_>| {
        let offset = match file.offset {
            Offset::Near(offset) => i64::from(offset),
            // A segment reaches 2^31 offsets.
            Offset::Far(steps) => i64::from(steps) << 31,
            Offset::Any(offset) => offset,
        };
        let suffix = SUFFIXES[usize::from(file.suffix) % SUFFIXES.len()];
        let name = match (suffix, offset & 3) {
            (b"", 0) => b"leader-epoch-checkpoint".to_vec(),
            (b"", 1) => b"partition.metadata".to_vec(),
            (b"", _) => file.data.iter().take(40).copied().collect(),
            (suffix, _) => file_name(offset, suffix),
        };
        let mut data = file.data.to_vec();
        if file.is_mended && suffix.starts_with(b".log") {
            mend_checksums(&mut data);
        }
        (name, data)
    };
    files.iter().map(file).collect()
}

fuzz_target!(|input: Input<'_>| {
    let files = directory(&input.files);
    let bytes: usize = files.iter().map(|(name, data)| name.len() + data.len()).sum();
    let restart = Restart {
        stopped_cleanly: input.stopped_cleanly,
        recovery_point: input.recovery_point.into(),
        log_start_offset: input.log_start_offset.into(),
        ..Restart::default()
    };
    let predict = || predict_recovery(&files, "orders-0", &restart, Aborted::Sought, &|_| true);
    match (bounded(bytes + INFLATED_BYTES, predict), predict()) {
        (Ok(first), Ok(second)) => {
            assert_eq!(first, second);
            assert!(first.bytes_cut() <= first.bytes_before.values().sum());
            assert!(first.segments.iter().all(|segment| segment.bytes <= bytes as u64));
        }
        (Err(LoadError::Limit(_)), Err(LoadError::Limit(_))) => {}
        (first, second) => panic!("{first:?}, then {second:?}"),
    }
});
