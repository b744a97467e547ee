//! A log against a naive twin of it: a list of batches.

mod support;

use ottla_leader::Validator;
use ottla_plane::DataPlane;
use proptest::prelude::*;
use support::{
    FETCH_VERSION, PRODUCE_VERSION, Scratch, batch, fetch, fetch_frame, plane_in, produce,
    produce_frame,
};

#[derive(Clone, Debug)]
enum Step {
    Append { sizes: Vec<usize> },
    Read { offset: u8, max_bytes: i32 },
    DeleteRecords { offset: u8 },
    Retain,
    Truncate { offset: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![8 => 0..40usize, 1 => 4000..9000usize];
    prop_oneof![
        6 => proptest::collection::vec(size, 1..4).prop_map(|sizes| Step::Append { sizes }),
        6 => (any::<u8>(), prop_oneof![0..400i32, 0..40_000i32])
            .prop_map(|(offset, max_bytes)| Step::Read { offset, max_bytes }),
        1 => any::<u8>().prop_map(|offset| Step::DeleteRecords { offset }),
        1 => Just(Step::Retain),
        1 => any::<u8>().prop_map(|offset| Step::Truncate { offset }),
    ]
}

/// Every batch with its first and last offset.
#[derive(Default)]
struct Twin {
    batches: Vec<(i64, i64, Vec<u8>)>,
    start: i64,
    end: i64,
}

impl Twin {
    fn append(&mut self, mut batch: Vec<u8>, records: usize) {
        let (base, next) = (self.end, self.end + records as i64);
        batch[..8].copy_from_slice(&base.to_be_bytes());
        batch[12..16].copy_from_slice(&0i32.to_be_bytes());
        self.batches.push((base, next - 1, batch));
        self.end = next;
    }

    /// The first batch, then those of the same segment that fit.
    fn read(&self, offset: i64, max_bytes: usize, segments: &[(i64, u64)]) -> Vec<u8> {
        let mut read = Vec::new();
        for (base, last, batch) in &self.batches {
            if *last < offset {
                continue;
            }
            let is_new_segment = segments.iter().any(|(segment, _)| segment == base);
            if !read.is_empty() && (is_new_segment || read.len() + batch.len() > max_bytes) {
                break;
            }
            read.extend_from_slice(batch);
        }
        read
    }
}

/// The error code and the records of an answer for one partition.
fn read(plane: &mut DataPlane, offset: i64, max_bytes: i32) -> (i16, Vec<u8>) {
    let mut out = Vec::new();
    fetch(plane, &fetch_frame(0, offset, max_bytes), FETCH_VERSION, &mut out).expect("a request");
    // Throttle time, one topic of one byte, one partition and its number.
    let error = i16::from_be_bytes([out[19], out[20]]);
    // Two offsets, aborted transactions that are null, the size.
    let size = i32::from_be_bytes(out[41..45].try_into().expect("a size"));
    assert_eq!(out.len(), 45 + size as usize);
    (error, out.split_off(45))
}

proptest! {
    #[test]
    fn a_log_holds_and_gives_what_a_list_of_batches_does(
        steps in proptest::collection::vec(step(), 1..60),
        segment_bytes in prop_oneof![Just(30_000), Just(1 << 30)],
        // Each directory is synced.
        is_in_files in proptest::bool::weighted(0.2),
    ) {
        let scratch = is_in_files.then(Scratch::new);
        let mut plane = plane_in(scratch.as_ref().map(Scratch::path), 1, segment_bytes);
        let mut twin = Twin::default();
        for step in steps {
            // Around what is there, its ends included.
            let near = |offset: u8| {
                let span = twin.end - twin.start + 3;
                twin.start - 1 + i64::from(offset) % span
            };
            match step {
                Step::Append { sizes } => {
                    let records = batch(&sizes, 5);
                    let frame = produce_frame(0, &records);
                    produce(&mut plane, &frame, PRODUCE_VERSION, &mut Vec::new()).expect("a request");
                    twin.append(records, sizes.len());
                }
                Step::Read { offset, max_bytes } => {
                    let offset = near(offset);
                    let segments = plane.segments(0).expect("an open partition");
                    let (error, records) = read(&mut plane, offset, max_bytes);
                    if (twin.start..=twin.end).contains(&offset) {
                        prop_assert_eq!(error, 0);
                        prop_assert_eq!(records, twin.read(offset, max_bytes as usize, &segments));
                    } else {
                        prop_assert_eq!((error, records.len()), (1, 0));
                    }
                }
                Step::DeleteRecords { offset } => {
                    let offset = near(offset).clamp(0, twin.end);
                    twin.start = twin.start.max(offset);
                    prop_assert_eq!(plane.delete_records(0, offset), Ok(twin.start));
                }
                Step::Retain => {
                    plane.apply_retention(0);
                }
                Step::Truncate { offset } => {
                    let offset = near(offset).clamp(twin.start, twin.end);
                    let kept = twin.batches.iter().take_while(|(_, last, _)| *last < offset).count();
                    // Within a batch there is no end of a log.
                    let end = twin.batches.get(kept).map_or(twin.end, |(base, ..)| *base);
                    if end < twin.start {
                        continue;
                    }
                    plane.truncate(0, end, 0, &mut Validator::default()).expect("a sound log");
                    twin.batches.truncate(kept);
                    twin.end = end;
                }
            }
            let offsets = plane.offsets(0).expect("an open partition");
            prop_assert_eq!((offsets.log_start_offset, offsets.log_end_offset), (twin.start, twin.end));
            let sizes: u64 = plane.segments(0).expect("an open partition").iter().map(|(_, size)| size).sum();
            prop_assert_eq!(plane.stored_bytes(), sizes);
            let readable: usize = twin.batches.iter().filter(|(_, last, _)| *last >= twin.start).map(|(.., batch)| batch.len()).sum();
            prop_assert!(sizes >= readable as u64);
        }
    }
}
