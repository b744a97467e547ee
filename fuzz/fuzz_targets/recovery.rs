#![no_main]
//! Arbitrary directories of a partition: a start of a broker over them is predicted within bounds, takes
//! away no more than there was, and comes out the same twice.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ottla_fuzz::{INFLATED_BYTES, bounded, file};
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

fn directory(files: &[File<'_>]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let named = |of: &File<'_>| {
        let offset = match of.offset {
            Offset::Near(offset) => i64::from(offset),
            // A segment reaches 2^31 offsets.
            Offset::Far(steps) => i64::from(steps) << 31,
            Offset::Any(offset) => offset,
        };
        file(of.suffix, offset, of.data, of.is_mended)
    };
    files.iter().map(named).collect()
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
