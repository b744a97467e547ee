//! Frames that are no requests: refused at every end, with any byte changed, and never at a cost that
//! their size does not explain.

mod support;

use ottla_plane::MalformedKind;
use peak_alloc::PeakAlloc;
use proptest::prelude::*;
use std::sync::{Mutex, PoisonError};
use support::{
    FETCH_VERSION, PRODUCE_VERSION, batch, fetch, fetch_frame, plane, produce, produce_frame,
};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The allocator counts for the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> impl Drop {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_request_that_ends_anywhere_is_malformed_there() {
    let _alone = alone();
    let mut plane = plane(1, 1 << 30);
    let whole = produce_frame(0, &batch(&[5], 5));
    for end in 0..whole.len() {
        let error = produce(&mut plane, &whole[..end], PRODUCE_VERSION, &mut Vec::new());
        let error = error.expect_err("an end");
        assert!(
            error.position <= end
                && matches!(
                    error.kind,
                    MalformedKind::Truncated { .. } | MalformedKind::Count { .. }
                )
        );
    }
    let whole = fetch_frame(0, 0, 9);
    for end in 0..whole.len() {
        assert!(fetch(&mut plane, &whole[..end], FETCH_VERSION, &mut Vec::new()).is_err());
    }
}

#[test]
fn a_count_takes_no_memory_that_the_frame_does_not_have() {
    let _alone = alone();
    let mut plane = plane(1, 1 << 30);
    let mut frame = produce_frame(0, b"");
    frame[8..12].copy_from_slice(&19i32.to_be_bytes());
    let before = PeakAlloc.current_usage();
    PeakAlloc.reset_peak_usage();
    assert!(produce(&mut plane, &frame, PRODUCE_VERSION, &mut Vec::new()).is_err());
    assert!(PeakAlloc.peak_usage() - before < 4096);
}

#[test]
fn a_log_takes_little_more_than_the_batches_it_stores() {
    let _alone = alone();
    // One record a batch, a hundred, and batches of nearly 1 MiB.
    for (sizes, count) in [(vec![100], 20_000), (vec![100; 100], 800), (vec![1_000_000], 9)] {
        let frame = produce_frame(0, &batch(&sizes, 5));
        let before = PeakAlloc.current_usage();
        let mut plane = plane(1, 1 << 30);
        for _ in 0..count {
            produce(&mut plane, &frame, PRODUCE_VERSION, &mut Vec::new()).expect("a request");
        }
        let taken = PeakAlloc.current_usage() - before;
        let stored = plane.stored_bytes() as usize;
        // The last buffer is 1 MiB, whatever of it is used.
        let room = (1 << 20) + 65_536;
        assert!(taken <= stored + stored * 3 / 100 + room, "{taken} bytes for {stored}");
        drop(plane);
    }
}

#[test]
fn a_partition_of_one_record_takes_few_kilobytes() {
    let _alone = alone();
    let before = PeakAlloc.current_usage();
    let mut plane = plane(1000, 1 << 30);
    for index in 0..1000 {
        let frame = produce_frame(index, &batch(&[10], 5));
        produce(&mut plane, &frame, PRODUCE_VERSION, &mut Vec::new()).expect("a request");
    }
    let taken = PeakAlloc.current_usage() - before;
    assert!(taken < 1000 * 6500, "{taken} bytes for 1000 partitions");
}

proptest! {
    #[test]
    fn no_bytes_of_any_version_end_in_a_panic(
        version in -1..20i16,
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
        is_damaged in any::<bool>(),
    ) {
        let _alone = alone();
        let mut plane = plane(1, 1 << 30);
        let mut frame = fetch_frame(0, 0, 9);
        if is_damaged {
            for (place, byte) in bytes.iter().enumerate() {
                if byte % 4 == 0 && place < frame.len() {
                    frame[place] = byte >> 2;
                }
            }
        } else {
            frame.clone_from(&bytes);
        }
        let _ = produce(&mut plane, &frame, version, &mut Vec::new());
        let _ = fetch(&mut plane, &frame, version, &mut Vec::new());
    }
}
