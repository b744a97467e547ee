//! Starts over directories that nobody should have: whatever the bytes, a start is predicted or
//! refused, and what is rebuilt is what a recovery would make.

use ottla_format::builder::{
    BatchFields, NewControlRecord, NewRecord, build_batch, build_control_batch,
};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_log::recovery::{Aborted, Config, Restart, predict_recovery, rebuild_side_files};
use ottla_log::sidefiles::snapshot::read_snapshot;
use ottla_log::sidefiles::time_index::TimeEntry;
use ottla_log::sidefiles::{offset_index, time_index, transaction_index};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::ErrorKind;

type Files = BTreeMap<Vec<u8>, Vec<u8>>;

/// Two records each, a byte more than `value_bytes` every two offsets.
const VALUE_BYTES: usize = 3_000;

fn name(base_offset: i64, suffix: &str) -> Vec<u8> {
    format!("{base_offset:020}.{suffix}").into_bytes()
}

fn fields(base_offset: i64) -> BatchFields {
    BatchFields {
        base_offset,
        producer_id: 5,
        producer_epoch: 0,
        base_sequence: base_offset as i32,
        is_transactional: true,
        ..BatchFields::default()
    }
}

/// Batches of two records from an offset on, and the marker that aborts them.
fn aborted(base_offset: i64, batches: i64) -> Vec<u8> {
    let mut codecs = Codecs::new(Limits::default());
    let value = vec![b'v'; VALUE_BYTES];
    let mut data = Vec::new();
    for offset in (base_offset..).step_by(2).take(batches as usize) {
        let record =
            NewRecord { timestamp: 1_000 + offset, value: Some(&value), ..NewRecord::default() };
        let two = [record.clone(), record];
        data.extend(build_batch(&fields(offset), &two, &mut codecs).expect("builds"));
    }
    let marker = NewControlRecord::Abort { coordinator_epoch: 3 };
    let end = BatchFields { base_sequence: -1, ..fields(base_offset + 2 * batches) };
    data.extend(build_control_batch(&end, 5_000, marker, &mut codecs).expect("builds"));
    data
}

fn directory() -> Files {
    let (first, second) = (aborted(0, 4), aborted(9, 3));
    Files::from([
        (name(0, "log"), first),
        (name(0, "index"), Vec::new()),
        (name(9, "log"), second),
        (name(9, "index"), Vec::new()),
        (name(9, "timeindex"), Vec::new()),
        (b"leader-epoch-checkpoint".to_vec(), b"0\n0\n".to_vec()),
    ])
}

#[test]
fn side_files_are_rebuilt_as_a_recovery_makes_them() {
    let files = directory();
    let after =
        predict_recovery(&files, "orders-0", Restart::default(), Aborted::Sought).expect("read");
    assert_eq!((after.refusal, after.log_end_offset), (None, 16));
    let mut snapshot = None;
    for (outcome, base_offset) in after.segments.iter().zip([0, 9]) {
        let data = files[&outcome.file].as_slice();
        let config = Config::default();
        let built =
            rebuild_side_files(&data, base_offset, snapshot.as_deref(), None, &config).unwrap();
        let rebuilt = outcome.rebuilt.as_ref().expect("recovered");
        assert_eq!(
            offset_index::entries(&built.offset_index).count() as u64,
            rebuilt.offset_entries
        );
        assert_eq!(time_index::entries(&built.time_index).count() as u64, rebuilt.time_entries);
        let entries: Vec<_> = transaction_index::entries(&built.transaction_index).collect();
        assert_eq!(entries.into_iter().flatten().collect::<Vec<_>>(), rebuilt.aborted);
        assert_eq!((built.valid_bytes, built.fault), (outcome.bytes, None));
        snapshot = Some(built.snapshot);
    }
    let producers = read_snapshot(&snapshot.unwrap()).expect("a snapshot");
    assert_eq!(producers.len(), after.producers.len());
    assert_eq!(producers[0].last_offset, after.producers[0].batches()[0].last_offset);
}

#[test]
fn an_index_has_an_entry_for_each_interval_and_the_offset_a_batch_ends_with() {
    let data = aborted(100, 4);
    let batch = data.len() as i32 / 4;
    let config = Config::default();
    let built = rebuild_side_files(&data.as_slice(), 100, None, None, &config).unwrap();
    let entries: Vec<_> =
        offset_index::entries(&built.offset_index).map(|entry| entry.offset(100)).collect();
    // Batches of 6,000 bytes: every one but the first, and the marker.
    assert_eq!(entries, [103, 105, 107, 108]);
    let first = offset_index::OffsetEntry::read(&built.offset_index, 0).unwrap();
    assert!((batch - 100..=batch).contains(&first.position), "{first:?} {batch}");
    let last = time_index::entries(&built.time_index).next_back();
    assert_eq!(last, Some(TimeEntry { timestamp: 5_000, relative_offset: 8 }));
    let wide = Config { index_interval_bytes: 1 << 20, ..config };
    let built = rebuild_side_files(&data.as_slice(), 100, None, None, &wide).unwrap();
    assert!(built.offset_index.is_empty());
    assert_eq!(built.time_index, last.unwrap().to_bytes());
}

#[test]
fn what_no_recovery_survives_is_not_rebuilt() {
    let mut data = aborted(1 << 40, 1);
    let error =
        rebuild_side_files(&data.as_slice(), 0, None, None, &Config::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let bad = rebuild_side_files(&data.as_slice(), 1 << 40, Some(b"no"), None, &Config::default());
    assert_eq!(bad.unwrap_err().kind(), ErrorKind::InvalidData);
    data.truncate(100);
    let built =
        rebuild_side_files(&data.as_slice(), 1 << 40, None, None, &Config::default()).unwrap();
    assert_eq!((built.valid_bytes, built.next_offset), (0, 1 << 40));
}

#[test]
fn names_that_are_no_numbers_are_refused_as_java_does() {
    for file in [&b"orders.log"[..], b".index", b"99999999999999999999.log", b"x.snapshot"] {
        let mut files = directory();
        files.insert(file.to_vec(), Vec::new());
        let after = predict_recovery(&files, "orders-0", Restart::default(), Aborted::Sought)
            .expect("read");
        let class = after.refusal.expect("refused").class;
        assert_eq!(class, "java.lang.NumberFormatException", "{file:?}");
    }
}

fn change() -> impl Strategy<Value = (usize, usize, Vec<u8>)> {
    (any::<usize>(), any::<usize>(), proptest::collection::vec(any::<u8>(), 0..40))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn whatever_the_files_hold_a_start_is_predicted(
        changes in proptest::collection::vec(change(), 0..6),
        extra in proptest::collection::btree_map("[0-9]{1,20}\\.(log|index|snapshot|txnindex)(\\.swap|\\.cleaned|)",
            proptest::collection::vec(any::<u8>(), 0..200), 0..3),
        stopped_cleanly in any::<bool>(),
        recovery_point in prop_oneof![Just(0), Just(9), any::<i64>()],
        log_start_offset in prop_oneof![Just(0), 0..40i64],
    ) {
        let mut files = directory();
        for (which, at, bytes) in changes {
            let index = which % files.len();
            let file = files.values_mut().nth(index).unwrap();
            let at = at % (file.len() + 1);
            // Overwrites, inserts, cuts.
            match which / 7 % 3 {
                0 => {
                    let end = (at + bytes.len()).min(file.len());
                    file.splice(at..end, bytes);
                }
                1 => {
                    file.splice(at..at, bytes);
                }
                _ => file.truncate(at),
            }
        }
        files.extend(extra.into_iter().map(|(name, data)| (name.into_bytes(), data)));
        let before = files.clone();
        let restart =
            Restart { stopped_cleanly, recovery_point, log_start_offset, ..Restart::default() };
        let after = predict_recovery(&files, "orders-0", restart, Aborted::Sought).expect("read");
        prop_assert_eq!(&files, &before);
        prop_assert_eq!(&after, &predict_recovery(&files, "orders-0", restart, Aborted::Sought).expect("read"));
        for segment in &after.segments {
            if let Some(bytes) = segment.bytes_before {
                prop_assert!(segment.bytes <= bytes || after.files_deleted.contains(&segment.file)
                    || files.contains_key(&[&segment.file[..], b".swap"].concat()));
            }
        }
    }
}
