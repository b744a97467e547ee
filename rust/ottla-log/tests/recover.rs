//! Starts carried out: they do to a directory what is predicted of them, and one that is stopped
//! anywhere is finished by the next.

use ottla_format::builder::{
    BatchFields, NewControlRecord, NewRecord, build_batch, build_control_batch,
};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_log::recovery::{
    Aborted, Directory, DirectoryChange, IndexConfig, LoadError, MutableDirectory, RecoveredLog,
    Recovery, Refusal, Restart, predict_recovery, rebuild_side_files, recover,
};
use ottla_log::source::Source;
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

type Files = BTreeMap<Vec<u8>, Vec<u8>>;

/// A directory in memory that fails at a change of its files.
struct Memory {
    files: RefCell<Files>,
    /// Changes that are still made.
    left: Cell<usize>,
}

struct Bytes(Vec<u8>);

impl Source for Bytes {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.as_slice().read_at(position, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

impl Memory {
    fn new(files: &Files, left: usize) -> Self {
        Self { files: RefCell::new(files.clone()), left: Cell::new(left) }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Files) -> Option<T>) -> io::Result<T> {
        let left = self.left.get().checked_sub(1).ok_or(io::Error::from_raw_os_error(5))?;
        self.left.set(left);
        change(&mut self.files.borrow_mut()).ok_or(io::ErrorKind::NotFound.into())
    }
}

impl Directory for Memory {
    fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        self.files.borrow().names()
    }

    fn open(&self, name: &[u8]) -> io::Result<Box<dyn Source + '_>> {
        let files = self.files.borrow();
        let data = files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(Bytes(data.clone())))
    }
}

impl MutableDirectory for Memory {
    fn remove(&self, name: &[u8]) -> io::Result<()> {
        self.change(|files| files.remove(name).map(drop))
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        self.change(|files| files.remove(from).map(|data| drop(files.insert(to.to_vec(), data))))
    }

    fn truncate(&self, name: &[u8], size: u64) -> io::Result<()> {
        self.change(|files| files.get_mut(name).map(|data| data.truncate(size as usize)))
    }

    fn copy(&self, from: &[u8], range: Range<u64>, to: &[u8]) -> io::Result<()> {
        self.change(|files| {
            let part = files.get(from)?.get(range.start as usize..range.end as usize)?.to_vec();
            files.insert(to.to_vec(), part);
            Some(())
        })
    }

    fn write(&self, name: &[u8], bytes: &[u8]) -> io::Result<()> {
        self.change(|files| {
            files.insert(name.to_vec(), bytes.to_vec());
            Some(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn name(base_offset: i64, suffix: &str) -> Vec<u8> {
    format!("{base_offset:020}.{suffix}").into_bytes()
}

/// Batches of two records of a transaction from an offset on, and the marker that aborts it.
fn aborted(base_offset: i64, batches: i64) -> Vec<u8> {
    let mut codecs = Codecs::new(Limits::default());
    let fields = |base_offset: i64| BatchFields {
        base_offset,
        producer_id: 5,
        producer_epoch: 0,
        base_sequence: (base_offset & 0xffff) as i32,
        is_transactional: true,
        ..BatchFields::default()
    };
    let value = [b'v'; 3000];
    let mut data = Vec::new();
    for offset in (base_offset..).step_by(2).take(batches as usize) {
        let timestamp = 1_000 + (offset & 0xffff);
        let record = NewRecord { timestamp, value: Some(&value), ..NewRecord::default() };
        let two = [record.clone(), record];
        data.extend(build_batch(&fields(offset), &two, &mut codecs).expect("builds"));
    }
    let marker = NewControlRecord::Abort { coordinator_epoch: 3 };
    let end = BatchFields { base_sequence: -1, ..fields(base_offset + 2 * batches) };
    data.extend(build_control_batch(&end, 5_000, marker, &mut codecs).expect("builds"));
    data
}

/// Three segments: 0 to 8, 9 to 15, 16 to 20.
fn directory() -> Files {
    let mut files = Files::from([(b"leader-epoch-checkpoint".to_vec(), b"0\n0\n".to_vec())]);
    for (base_offset, batches) in [(0, 4), (9, 3), (16, 2)] {
        files.insert(name(base_offset, "log"), aborted(base_offset, batches));
        files.insert(name(base_offset, "index"), Vec::new());
        files.insert(name(base_offset, "timeindex"), Vec::new());
    }
    files
}

fn predict(files: &Files, restart: &Restart) -> Recovery {
    let after = predict_recovery(files, "orders-0", restart, Aborted::Ignored, &|_| true);
    after.expect("a directory in memory")
}

/// Starts over files, which are then as it leaves them, and makes at most so many changes.
fn start_within(
    files: &mut Files,
    restart: &Restart,
    changes: usize,
) -> Result<RecoveredLog, LoadError> {
    let memory = Memory::new(files, changes);
    let recovered = recover(&memory, "orders-0", restart);
    *files = memory.files.into_inner();
    recovered
}

fn start(files: &mut Files, restart: &Restart) -> Result<RecoveredLog, LoadError> {
    start_within(files, restart, usize::MAX)
}

/// The batches that are left, by segment.
fn segments(files: &Files) -> Files {
    let of_segment = |(name, _): &(&Vec<u8>, &Vec<u8>)| name.ends_with(b".log");
    files.iter().filter(of_segment).map(|(name, data)| (name.clone(), data.clone())).collect()
}

/// Directories in the middle of something.
fn under_way() -> Vec<(&'static str, Files)> {
    let mut torn = directory();
    torn.get_mut(&name(9, "log")).unwrap()[9000] ^= 1;
    let mut zeros = directory();
    zeros.get_mut(&name(16, "log")).unwrap().extend([0; 300]);
    let mut swap = directory();
    let merged = [aborted(0, 2), aborted(9, 3)].concat();
    swap.insert(name(0, "log.swap"), merged.clone());
    let mut indexed_swap = swap.clone();
    indexed_swap.insert(name(0, "index.swap"), Vec::new());
    indexed_swap.insert(name(0, "timeindex.swap"), Vec::new());
    let mut unfinished = indexed_swap.clone();
    unfinished.insert(name(0, "log.cleaned"), merged);
    let mut split = directory();
    split.insert(name(0, "log"), [aborted(0, 4), aborted(1 << 32, 3)].concat());
    for suffix in ["log", "index", "timeindex"] {
        split.remove(&name(9, suffix));
        split.remove(&name(16, suffix));
    }
    let mut split_swap = split.clone();
    let both = split_swap.remove(&name(0, "log")).unwrap();
    split_swap.insert(name(0, "log.swap"), both);
    let mut leftovers = directory();
    leftovers.insert(name(3, "index"), vec![0; 16]);
    leftovers.insert(name(9, "log.deleted"), vec![0; 16]);
    leftovers.insert(name(5, "snapshot"), vec![0; 16]);
    leftovers.insert(name(16, "index.tmp"), vec![0; 16]);
    leftovers.remove(&name(9, "index"));
    vec![
        ("torn", torn),
        ("zeros", zeros),
        ("swap", swap),
        ("indexed swap", indexed_swap),
        ("unfinished", unfinished),
        ("split", split),
        ("split swap", split_swap),
        ("leftovers", leftovers),
        ("sound", directory()),
    ]
}

fn shown<'a>(names: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<String> {
    names.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// What is predicted of a start after an unclean stop that has read the last segment alone.
fn predict_end(files: &Files, restart: &Restart) -> Recovery {
    let after = predict(files, restart);
    let last = &after.segments.last().expect("a segment").file;
    let recovery_point = std::str::from_utf8(&last[..20]).unwrap().parse().unwrap();
    predict(files, &Restart { stopped_cleanly: false, recovery_point, ..*restart })
}

/// Whether Kafka gives up over what a start here leaves until what is before it is recovered, or makes
/// anew.
fn has_its_turn_later(refusal: &Refusal) -> bool {
    let is_garbage = refusal.message.starts_with("Unexpected aborted transaction version");
    is_garbage
        || refusal.class.ends_with(".CorruptRecordException")
        || refusal.class.ends_with(".InvalidRecordException")
}

/// Holds what a start has made of files to what is predicted of it, and to what the next one makes of
/// them.
fn check_start(before: &Files, restart: &Restart) {
    let mut predicted = predict(before, restart);
    let mut files = before.clone();
    let recovered = match start(&mut files, restart) {
        Ok(recovered) => recovered,
        Err(LoadError::Refused(refusal)) => {
            let is_of_end = || Some(&refusal) == predict_end(before, restart).refusal.as_ref();
            // After an unclean stop Kafka may have given up before, over another segment.
            let is_predicted = predicted.refusal.as_ref().is_some_and(|expected| {
                *expected == refusal || !restart.stopped_cleanly && has_its_turn_later(expected)
            });
            assert!(is_predicted || is_of_end(), "{refusal}");
            assert_eq!(&files, before, "a start that is refused changes nothing");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let mut before = before;
    if !restart.stopped_cleanly && predicted.refusal.as_ref().is_some_and(has_its_turn_later) {
        // Kafka gives up where a later segment is damaged in front of whose end it has not recovered yet.
        // What is left here Kafka starts on, and leaves as it is.
        predicted = predict(&files, restart);
        before = &files;
    }
    assert_eq!(predicted.refusal, None);
    if recovered.stopped_cleanly != restart.stopped_cleanly {
        predicted = predict_end(before, restart);
    }
    let left =
        |name: &&Vec<u8>| !name.ends_with(b".tmp") && !predicted.files_deleted.contains(name);
    let kept = before.keys().filter(left);
    let mut names: Vec<_> = kept.chain(&predicted.files_created).cloned().collect();
    names.sort_unstable();
    assert!(files.keys().eq(&names), "{:?} {:?}", shown(files.keys()), shown(&names));
    for segment in &predicted.segments {
        assert_eq!(files[&segment.file].len() as u64, segment.bytes);
    }
    assert_eq!(recovered.segments.len(), predicted.segments.len());
    let last = recovered.segments.last().expect("a segment");
    let size_of = |suffix| files[&name(last.base_offset, suffix)].len() as u64;
    assert_eq!(
        (size_of("log"), size_of("index"), size_of("timeindex")),
        (last.size, 8 * last.offset_entries, 12 * last.time_entries)
    );
    assert_eq!(
        (recovered.log_start_offset, recovered.log_end_offset),
        (predicted.log_start_offset, predicted.log_end_offset)
    );
    assert_eq!(recovered.leader_epochs, predicted.leader_epochs);
    let ids = recovered.producers.by_id().into_iter().map(|producer| producer.producer_id);
    let entries = ids.filter_map(|id| recovered.producers.snapshot_entry(id));
    assert_eq!(entries.collect::<Vec<_>>(), predicted.producers);
    let undecided = recovered.producers.transactions().first_undecided_offset();
    assert_eq!(undecided, predicted.first_undecided_offset);

    if restart.stopped_cleanly {
        // What Kafka leaves of damage then may keep it from starting again.
        return;
    }
    let mut again = files.clone();
    let restarted = start(&mut again, restart).expect("a start after a start");
    assert_eq!(restarted.changes, []);
    assert_eq!(segments(&again), segments(&files));
    assert_eq!(restarted.log_end_offset, recovered.log_end_offset);
}

#[test]
fn a_start_does_to_a_directory_what_is_predicted_of_it() {
    for (_, files) in under_way() {
        for (stopped_cleanly, recovery_point) in [(false, 0), (false, 9), (false, 99), (true, 0)] {
            let restart = Restart { stopped_cleanly, recovery_point, ..Restart::default() };
            check_start(&files, &restart);
        }
    }
}

#[test]
fn a_start_that_is_stopped_anywhere_is_finished_by_the_next() {
    for (what, before) in under_way() {
        let restart = Restart::default();
        let mut expected = before.clone();
        let at_once = start(&mut expected, &restart).expect("loads");
        let mut stops = 0;
        loop {
            let mut files = before.clone();
            let stopped = start_within(&mut files, &restart, stops);
            if stopped.is_ok() {
                break;
            }
            let finished = start(&mut files, &restart).expect("loads");
            assert_eq!(segments(&files), segments(&expected), "{what}, after {stops} changes");
            assert_eq!(files, expected, "{what}, after {stops} changes");
            assert_eq!(finished.log_end_offset, at_once.log_end_offset);
            stops += 1;
        }
        assert!(stops > 0, "{what}");
    }
}

#[test]
fn what_a_start_writes_beside_segments_is_what_is_built_anew() {
    let mut files = directory();
    start(&mut files, &Restart::default()).expect("loads");
    let mut snapshot: Option<Vec<u8>> = None;
    for base_offset in [0, 9, 16] {
        let log = files[&name(base_offset, "log")].as_slice();
        let config = IndexConfig::default();
        let built = rebuild_side_files(&log, base_offset, snapshot.as_deref(), &config).unwrap();
        assert_eq!(files[&name(base_offset, "index")], built.offset_index);
        assert!(!built.offset_index.is_empty());
        assert_eq!(files[&name(base_offset, "timeindex")], built.time_index);
        assert_eq!(files[&name(base_offset, "txnindex")], built.transaction_index);
        assert_eq!(files[&name(built.next_offset, "snapshot")], built.snapshot);
        snapshot = Some(built.snapshot);
    }
}

#[test]
fn the_batches_of_a_producer_that_were_read_stay_known() {
    let mut files = directory();
    let recovered = start(&mut files, &Restart::default()).expect("loads");
    // Of a producer the newest five; the markers between them are none.
    assert_eq!(recovered.producers.get(5).expect("known").batches().len(), 5);
    let cleanly = Restart { stopped_cleanly: true, ..Restart::default() };
    let again = start(&mut files, &cleanly).expect("loads");
    assert_eq!(again.producers.get(5).expect("known").batches().len(), 1);
}

#[test]
fn behind_a_segment_that_was_lost_up_to_a_batch_nothing_is_kept_where_logs_have_no_gaps() {
    let mut files = directory();
    let size = files[&name(9, "log")][8..12].try_into().map(i32::from_be_bytes).unwrap();
    let first = 12 + size as usize;
    for left in [0, first] {
        files.get_mut(&name(9, "log")).unwrap().truncate(left);
        let dense = Restart { is_dense: true, ..Restart::default() };
        let recovered = start(&mut files.clone(), &dense).expect("loads");
        let bases: Vec<_> = recovered.segments.iter().map(|segment| segment.base_offset).collect();
        assert_eq!(bases, [0, 9]);
        assert!(recovered.log_end_offset < 16);
        // As Kafka, and as where records in the middle may have been compacted away.
        let kept = start(&mut files.clone(), &Restart::default()).expect("loads");
        assert_eq!(kept.segments.len(), 3);
        // What was synced is no matter of a crash.
        let flushed = Restart { recovery_point: 16, ..dense };
        assert_eq!(start(&mut files.clone(), &flushed).expect("loads").segments.len(), 3);
        files = directory();
    }
    let whole = Restart { is_dense: true, ..Restart::default() };
    assert_eq!(start(&mut files, &whole).expect("loads").segments.len(), 3);
}

#[test]
fn what_kafka_hides_after_a_clean_stop_is_recovered() {
    let cleanly = Restart { stopped_cleanly: true, ..Restart::default() };
    let mut sound = directory();
    start(&mut sound, &Restart::default()).expect("loads");
    let as_it_was = start(&mut sound.clone(), &cleanly).expect("loads");
    assert!(as_it_was.stopped_cleanly && as_it_was.changes.is_empty());
    let (last, index) = (name(16, "log"), name(16, "index"));
    let size = sound[&last].len() as i32;
    let mut hidden = Vec::new();
    // An index that points behind the batches, or into one, of an offset that is there or not.
    for (offset, position) in [(2, size), (2, 100), (4, 100), (0, 6_000), (900, 0)] {
        let mut files = sound.clone();
        files
            .insert(index.clone(), [i32::to_be_bytes(offset), i32::to_be_bytes(position)].concat());
        hidden.push(files);
    }
    // Too few bytes for a batch, behind which the next one would not be found.
    let mut torn = sound.clone();
    torn.get_mut(&last).unwrap().extend([0, 0, 0]);
    hidden.push(torn);
    for mut files in hidden {
        let lies = predict(&files, &cleanly);
        let recovered = start(&mut files, &cleanly).expect("loads");
        assert_eq!(recovered.log_end_offset, 21);
        assert_eq!(files[&last], sound[&last]);
        let is_sound = lies.log_end_offset == 21 && lies.segments[2].bytes == size as u64;
        assert!(
            is_sound || !recovered.stopped_cleanly && files == sound,
            "{}",
            lies.log_end_offset
        );
    }
}

#[test]
fn what_is_done_is_told() {
    let (_, mut files) = under_way().swap_remove(1);
    let size = files[&name(16, "log")].len() as u64;
    let done = start(&mut files, &Restart::default()).expect("loads").changes;
    let cut = DirectoryChange::Truncated { name: name(16, "log"), from: size, to: size - 300 };
    assert!(done.contains(&cut), "{done:?}");
}

fn change() -> impl Strategy<Value = (usize, usize, Vec<u8>)> {
    (any::<usize>(), any::<usize>(), proptest::collection::vec(any::<u8>(), 0..40))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn whatever_the_files_hold_a_start_does_what_is_predicted(
        case in 0..9usize,
        changes in proptest::collection::vec(change(), 0..5),
        extra in proptest::collection::btree_map("0{18}[0-9]{2}\\.(log|index|snapshot|txnindex)(\\.swap|\\.cleaned|)",
            proptest::collection::vec(any::<u8>(), 0..200), 0..3),
        stopped_cleanly in any::<bool>(),
        recovery_point in prop_oneof![Just(0), Just(9), any::<i64>()],
        log_start_offset in prop_oneof![Just(0), 0..40i64],
    ) {
        let (_, mut files) = under_way().swap_remove(case);
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
        let restart =
            Restart { stopped_cleanly, recovery_point, log_start_offset, ..Restart::default() };
        check_start(&files, &restart);
    }
}
