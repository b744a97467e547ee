//! Starts over directories that nobody should have: whatever the bytes, a start is predicted or
//! refused, and what is rebuilt is what a recovery would make.

use ottla_format::builder::{
    BatchFields, NewControlRecord, NewRecord, build_batch, build_control_batch,
};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_log::names::lacks_offset;
use ottla_log::recovery::{
    Aborted, Directory, IndexConfig, LoadError, Recovery, Restart, StartOutcome, Starts,
    predict_recovery, predict_starts, rebuild_side_files,
};
use ottla_log::sidefiles::snapshot::read_snapshot;
use ottla_log::sidefiles::time_index::TimeEntry;
use ottla_log::sidefiles::{offset_index, time_index, transaction_index};
use ottla_log::source::Source;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;

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

fn predict(files: &Files, restart: &Restart) -> Result<Recovery, LoadError> {
    predict_recovery(files, "orders-0", restart, Aborted::Sought, &|_| true)
}

#[test]
fn side_files_are_rebuilt_as_a_recovery_makes_them() {
    let files = directory();
    let after = predict(&files, &Restart::default()).expect("read");
    assert_eq!((after.refusal, after.log_end_offset), (None, 16));
    let mut snapshot = None;
    for (outcome, base_offset) in after.segments.iter().zip([0, 9]) {
        let data = files[&outcome.file].as_slice();
        let config = IndexConfig::default();
        let built = rebuild_side_files(&data, base_offset, snapshot.as_deref(), &config).unwrap();
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
    assert_eq!(producers[0].last_offset, after.producers[0].last_offset);
}

#[test]
fn an_index_has_an_entry_for_each_interval_and_the_offset_a_batch_ends_with() {
    let data = aborted(100, 4);
    let batch = data.len() as i32 / 4;
    let config = IndexConfig::default();
    let built = rebuild_side_files(&data.as_slice(), 100, None, &config).unwrap();
    let entries: Vec<_> =
        offset_index::entries(&built.offset_index).map(|entry| entry.offset(100)).collect();
    // Batches of 6,000 bytes: every one but the first, and the marker.
    assert_eq!(entries, [103, 105, 107, 108]);
    let first = offset_index::OffsetEntry::read(&built.offset_index, 0).unwrap();
    assert!((batch - 100..=batch).contains(&first.position), "{first:?} {batch}");
    let last = time_index::entries(&built.time_index).next_back();
    assert_eq!(last, Some(TimeEntry { timestamp: 5_000, relative_offset: 8 }));
    let wide = IndexConfig { index_interval_bytes: 1 << 20, ..config };
    let built = rebuild_side_files(&data.as_slice(), 100, None, &wide).unwrap();
    assert!(built.offset_index.is_empty());
    assert_eq!(built.time_index, last.unwrap().to_bytes());
}

/// Batches of one record each, all of one time and as many bytes.
fn of_one_time(offsets: impl IntoIterator<Item = i64>) -> Vec<Vec<u8>> {
    let mut codecs = Codecs::new(Limits::default());
    let record = NewRecord { timestamp: 1_000, value: Some(b"v"), ..NewRecord::default() };
    let fields = |base_offset| BatchFields { base_offset, ..BatchFields::default() };
    let build = |offset| build_batch(&fields(offset), std::slice::from_ref(&record), &mut codecs);
    offsets.into_iter().map(build).map(|built| built.expect("builds")).collect()
}

#[test]
fn an_entry_is_due_once_more_bytes_than_the_interval_have_passed() {
    let batches = of_one_time(0..5);
    let size = batches[0].len() as u64;
    for (index_interval_bytes, offsets) in [(size - 1, vec![1, 2, 3, 4]), (size, vec![2, 4])] {
        let config = IndexConfig { index_interval_bytes, ..IndexConfig::default() };
        let data = batches.concat();
        let built = rebuild_side_files(&data.as_slice(), 0, None, &config).unwrap();
        let entries: Vec<_> =
            offset_index::entries(&built.offset_index).map(|entry| entry.offset(0)).collect();
        assert_eq!(entries, offsets);
    }
}

#[test]
fn an_index_holds_as_many_entries_as_its_bytes_and_no_more() {
    let refusal = |batches: i64, segment_index_bytes| {
        let config = IndexConfig { index_interval_bytes: 1, segment_index_bytes };
        let data = of_one_time(0..batches).concat();
        match rebuild_side_files(&data.as_slice(), 0, None, &config) {
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        }
    };
    // Four offset entries; of the time index one entry is kept free, and one is used.
    assert_eq!(refusal(5, 36), None);
    let full = refusal(6, 36).expect("a fifth entry");
    assert!(full.contains("Attempt to append to a full index (size = 4)"), "{full}");
    assert_eq!(refusal(2, 24), None);
    let full = refusal(3, 24).expect("a second look at the time index");
    assert!(full.contains("Attempt to append to a full time index (size = 1)"), "{full}");
}

#[test]
fn an_index_never_gets_the_same_offset_twice() {
    let config = IndexConfig { index_interval_bytes: 1, ..IndexConfig::default() };
    let data = of_one_time([0, 1, 1]).concat();
    let again = rebuild_side_files(&data.as_slice(), 0, None, &config);
    let message = again.expect_err("the third batch repeats the second").to_string();
    assert!(message.contains("Attempt to append an offset 1 to position 1"), "{message}");
}

#[test]
fn the_epochs_of_leaders_end_before_the_log_does_and_begin_with_it() {
    let cleanly = Restart { stopped_cleanly: true, ..Restart::default() };
    let epochs = |text: &[u8], restart: &Restart| {
        let mut files = directory();
        files.insert(b"leader-epoch-checkpoint".to_vec(), text.to_vec());
        let after = predict(&files, restart).expect("read");
        assert_eq!((after.refusal, after.log_end_offset), (None, 16));
        let entries = after.leader_epochs.into_iter();
        entries.map(|entry| (entry.epoch, entry.start_offset)).collect::<Vec<_>>()
    };
    assert_eq!(epochs(b"0\n2\n0 0\n1 15\n", &cleanly), [(0, 0), (1, 15)]);
    assert_eq!(epochs(b"0\n2\n0 0\n1 16\n", &cleanly), [(0, 0)]);
    let at_9 = Restart { log_start_offset: 9, ..cleanly };
    assert_eq!(epochs(b"0\n3\n0 0\n1 9\n2 12\n", &at_9), [(1, 9), (2, 12)]);
    assert_eq!(epochs(b"0\n3\n0 0\n1 10\n2 12\n", &at_9), [(0, 9), (1, 10), (2, 12)]);
    // An epoch that begins where the one before does has taken its place.
    assert_eq!(epochs(b"0\n3\n0 0\n1 5\n2 5\n", &cleanly), [(0, 0), (2, 5)]);
}

#[test]
fn a_start_is_refused_at_an_epoch_or_a_start_offset_below_zero() {
    for (text, is_refused) in [("0 0", false), ("-1 0", true), ("0 -1", true)] {
        let mut files = directory();
        let checkpoint = format!("0\n1\n{text}\n").into_bytes();
        files.insert(b"leader-epoch-checkpoint".to_vec(), checkpoint);
        let after = predict(&files, &Restart::default()).expect("read");
        let class = after.refusal.map(|refusal| refusal.class);
        let java = "java.lang.IllegalArgumentException";
        assert_eq!(class, is_refused.then_some(java), "{text}");
    }
}

#[test]
fn a_batch_of_an_epoch_that_is_known_leaves_its_start_where_it_is() {
    let mut codecs = Codecs::new(Limits::default());
    let fields = BatchFields { partition_leader_epoch: 4, ..BatchFields::default() };
    let data = build_batch(&fields, &[NewRecord::default()], &mut codecs).expect("builds");
    let two = [data.clone(), of_one_time([1]).concat()].concat();
    let start_of = |checkpoint: &[u8]| {
        let files = Files::from([
            (name(0, "log"), two.clone()),
            (b"leader-epoch-checkpoint".to_vec(), checkpoint.to_vec()),
        ]);
        let after = predict(&files, &Restart::default()).expect("read");
        after.leader_epochs.first().map(|entry| (entry.epoch, entry.start_offset))
    };
    assert_eq!(start_of(b"0\n0\n"), Some((4, 0)));
    assert_eq!(start_of(b"0\n1\n4 1\n"), Some((4, 1)));
}

fn aborted_entry(first_offset: i64, last_offset: i64) -> Vec<u8> {
    let entry = transaction_index::AbortedTransaction {
        producer_id: 5,
        first_offset,
        last_offset,
        last_stable_offset: last_offset + 1,
    };
    entry.to_bytes().to_vec()
}

#[test]
fn an_aborted_transaction_is_exposed_unless_an_index_has_it_from_its_beginning() {
    let cleanly = Restart { stopped_cleanly: true, ..Restart::default() };
    for (first_offset, exposed) in [(8, 0), (9, 0), (10, 1)] {
        let mut files = directory();
        files.insert(name(0, "timeindex"), Vec::new());
        files.insert(name(0, "txnindex"), aborted_entry(0, 8));
        files.insert(name(9, "txnindex"), aborted_entry(first_offset, 15));
        let after = predict(&files, &cleanly).expect("read");
        assert_eq!((after.refusal, after.exposed.len()), (None, exposed), "{first_offset}");
    }
}

/// Two records of a producer.
fn records(producer_id: i64, base_offset: i64, is_transactional: bool) -> Vec<u8> {
    let two = [NewRecord::default(), NewRecord::default()];
    let fields = BatchFields { producer_id, is_transactional, ..fields(base_offset) };
    build_batch(&fields, &two, &mut Codecs::new(Limits::default())).expect("builds")
}

fn marker(producer_id: i64, base_offset: i64, marker: NewControlRecord) -> Vec<u8> {
    let fields = BatchFields { producer_id, base_sequence: -1, ..fields(base_offset) };
    build_control_batch(&fields, 5_000, marker, &mut Codecs::new(Limits::default()))
        .expect("builds")
}

/// Producer, first offset and marker of the transactions that a clean start over a segment without
/// a transaction index exposes.
fn exposed(batches: &[Vec<u8>]) -> Vec<(i64, i64, i64)> {
    let files = Files::from([
        (name(0, "log"), batches.concat()),
        (name(0, "index"), Vec::new()),
        (name(0, "timeindex"), Vec::new()),
    ]);
    let cleanly = Restart { stopped_cleanly: true, ..Restart::default() };
    let after = predict(&files, &cleanly).expect("read");
    after.exposed.iter().map(|t| (t.producer_id, t.first_offset, t.last_offset)).collect()
}

const ABORT: NewControlRecord = NewControlRecord::Abort { coordinator_epoch: 3 };
const COMMIT: NewControlRecord = NewControlRecord::Commit { coordinator_epoch: 3 };

#[test]
fn a_transaction_is_exposed_from_its_first_transactional_records_on_if_it_was_aborted() {
    let batches = [
        records(5, 0, false),
        records(5, 2, true),
        records(6, 4, true),
        records(5, 6, true),
        marker(6, 8, COMMIT),
        marker(5, 9, ABORT),
    ];
    assert_eq!(exposed(&batches), [(5, 2, 9)]);
}

#[test]
fn of_transactions_that_begin_at_one_offset_the_first_that_ends_is_exposed() {
    let at_once = [records(5, 0, true), records(6, 0, true)];
    let after_another = [records(5, 0, true), records(7, 2, true), records(6, 0, true)];
    for begun in [&at_once[..], &after_another] {
        let batches = [begun, &[marker(6, 4, ABORT), marker(5, 5, ABORT)]].concat();
        assert_eq!(exposed(&batches), [(6, 0, 4)]);
    }
}

#[test]
fn a_segment_is_recovered_if_an_entry_of_its_transaction_index_ends_below_it() {
    let cleanly = Restart { stopped_cleanly: true, ..Restart::default() };
    for (last_offset, is_recovered) in [(8, true), (9, false)] {
        let mut files = directory();
        files.insert(name(9, "txnindex"), aborted_entry(8, last_offset));
        let after = predict(&files, &cleanly).expect("read");
        let [_, second] = after.segments.as_slice() else { panic!("two segments") };
        assert_eq!(second.rebuilt.is_some(), is_recovered, "{last_offset}");
    }
}

#[test]
fn the_first_entry_of_an_index_is_followed_for_its_own_offset() {
    let cleanly = Restart { stopped_cleanly: true, ..Restart::default() };
    let size = directory()[&name(9, "log")].len() as i32;
    // Kafka reads the end of a log from where the last entry points to, and believes an end there.
    for (entries, log_end_offset) in [
        (vec![(6, 0)], 16),
        (vec![(6, size)], 9),
        (vec![(5, 0), (6, size)], 9),
        (vec![(6, 0), (6, size)], 16),
        (vec![(6, size), (6, 0)], 9),
    ] {
        let mut files = directory();
        let entry = |&(relative_offset, position): &(i32, i32)| {
            offset_index::OffsetEntry { relative_offset, position }.to_bytes()
        };
        files.insert(name(9, "index"), entries.iter().flat_map(entry).collect());
        let after = predict(&files, &cleanly).expect("read");
        assert_eq!((after.refusal, after.log_end_offset), (None, log_end_offset), "{entries:?}");
    }
}

#[test]
fn what_no_recovery_survives_is_not_rebuilt() {
    let mut data = aborted(1 << 40, 1);
    let error = rebuild_side_files(&data.as_slice(), 0, None, &IndexConfig::default()).unwrap_err();
    assert!(matches!(error, LoadError::Refused(_)), "{error}");
    let bad = rebuild_side_files(&data.as_slice(), 1 << 40, Some(b"no"), &IndexConfig::default());
    assert!(matches!(bad, Err(LoadError::Snapshot(_))), "{bad:?}");
    data.truncate(100);
    let built =
        rebuild_side_files(&data.as_slice(), 1 << 40, None, &IndexConfig::default()).unwrap();
    assert_eq!((built.valid_bytes, built.next_offset), (0, 1 << 40));
}

#[test]
fn a_start_is_refused_at_the_names_that_lack_an_offset_and_no_others() {
    let stems = ["orders", "", "99999999999999999999", "-1", "+1", "1-0000000001", "7"];
    let suffixes = [
        ".log",
        ".index",
        ".timeindex",
        ".txnindex",
        ".snapshot",
        ".swap",
        ".log.swap",
        ".cleaned",
        ".log.cleaned",
        ".log.deleted",
        ".checkpoint",
        ".log.tmp",
        ".txt",
        "",
    ];
    let mut refused = 0;
    for file in stems.iter().flat_map(|stem| suffixes.map(|suffix| format!("{stem}{suffix}"))) {
        let file = file.into_bytes();
        let mut files = directory();
        files.insert(file.clone(), Vec::new());
        let after = predict(&files, &Restart::default()).expect("read");
        let class = after.refusal.map(|refusal| refusal.class);
        let java = "java.lang.NumberFormatException";
        assert_eq!(class == Some(java), lacks_offset(&file), "{}", file.escape_ascii());
        refused += u32::from(class == Some(java));
    }
    assert_eq!(refused, 4 * 9);
}

/// A directory with a segment that says it has so many bytes, and holds none.
struct Sparse(u64);

struct SparseFile(u64);

impl Directory for Sparse {
    fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        Ok(vec![name(0, "log")])
    }

    fn open(&self, _: &[u8]) -> io::Result<Box<dyn Source + '_>> {
        Ok(Box::new(SparseFile(self.0)))
    }
}

impl Source for SparseFile {
    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(5))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0)
    }
}

#[test]
fn a_segment_larger_than_kafka_opens_is_refused() {
    let restart = Restart::default();
    let huge = Sparse(1 << 31);
    let after = predict_recovery(&huge, "orders-0", &restart, Aborted::Ignored, &|_| true);
    let after = after.expect("predicted");
    assert!(after.refusal.expect("refused").message.contains("larger than the maximum"));
    assert_eq!((after.segments[0].bytes, after.bytes_before[&name(0, "log")]), (1 << 31, 1 << 31));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let restart = Restart::default();
    let after = predict_recovery(&Sparse(100), "orders-0", &restart, Aborted::Ignored, &|_| true);
    match after {
        Err(LoadError::Io { file, error }) => {
            assert_eq!((file, error.raw_os_error()), (Some(name(0, "log")), Some(5)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_prediction_reports_what_it_reads_and_stops_when_asked_to() {
    let read = Cell::new(0);
    let restart = Restart::default();
    let count = |bytes: u64| {
        assert!(bytes >= read.get());
        read.set(bytes);
        true
    };
    predict_recovery(&directory(), "orders-0", &restart, Aborted::Sought, &count).expect("read");
    assert!(read.get() > 40_000, "{}", read.get());
    let stop = |bytes: u64| bytes < 10_000;
    let stopped = predict_recovery(&directory(), "orders-0", &restart, Aborted::Sought, &stop);
    assert!(matches!(stopped, Err(LoadError::Stopped)), "{stopped:?}");
}

#[test]
fn starts_say_what_becomes_of_the_log_and_what_to_do_before() {
    let outcomes = |files: &Files, partition: &str, starts: &Starts| {
        let starts = predict_starts(files, partition, starts, Aborted::Sought, &|_| true);
        let starts = starts.expect("predicted").into_iter();
        starts
            .map(|start| (start.stopped_cleanly, start.outcome, start.offsets_lost))
            .collect::<Vec<_>>()
    };
    let starts = Starts { stopped_cleanly: true, log_end_offset: Some(16), ..Starts::default() };
    let opens = |clean| (clean, StartOutcome::Opens, 0);
    let mut files = directory();
    assert_eq!(
        outcomes(&files, "orders-0", &starts),
        [(true, StartOutcome::ExposesAborted, 0), opens(false)]
    );
    // Without partition.metadata, where others have it.
    let with_ids = Starts { needs_topic_id: true, ..starts };
    let put_aside = |clean| (clean, StartOutcome::PutAside, 0);
    assert_eq!(outcomes(&files, "orders-0", &with_ids), [put_aside(true), put_aside(false)]);
    files.get_mut(&name(9, "log")).unwrap().extend([0; 100]);
    let both = predict_starts(&files, "orders-0", &starts, Aborted::Sought, &|_| true).unwrap();
    assert_eq!(both[0].outcome, StartOutcome::Refuses);
    assert!(both[0].is_next && !both[1].is_next);
    assert!(!both[0].action.contains("elete"));
    assert_eq!((both[1].outcome, both[1].after.bytes_cut()), (StartOutcome::Opens, 100));
    assert_eq!(outcomes(&files, "__cluster_metadata-0", &starts), [opens(false)]);
    let cut = files.get_mut(&name(9, "log")).unwrap();
    cut.truncate(cut.len() - 101);
    let unclean = Starts { stopped_cleanly: false, ..starts };
    assert_eq!(outcomes(&files, "orders-0", &unclean)[0], (false, StartOutcome::Cuts, 1));
    let beyond = Starts { log_start_offset: Some(17), ..starts };
    let empties = |clean| (clean, StartOutcome::Empties, 0);
    assert_eq!(outcomes(&directory(), "orders-0", &beyond), [empties(true), empties(false)]);
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
        let after = predict(&files, &restart).expect("read");
        prop_assert_eq!(&files, &before);
        prop_assert_eq!(&after, &predict(&files, &restart).expect("read"));
        for segment in &after.segments {
            if let Some(&bytes) = after.bytes_before.get(&segment.file) {
                prop_assert!(segment.bytes <= bytes || after.files_deleted.contains(&segment.file)
                    || files.contains_key(&[&segment.file[..], b".swap"].concat()));
            }
        }
    }
}
