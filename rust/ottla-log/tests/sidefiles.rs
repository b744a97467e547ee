//! The formats beside a segment: written and read again, cut anywhere, and garbled.

use ottla_log::sidefiles::checkpoint::{
    LeaderEpoch, check_order, read_leader_epochs, read_offset_checkpoint,
};
use ottla_log::sidefiles::meta_properties::read_meta_properties;
use ottla_log::sidefiles::metadata::read_partition_metadata;
use ottla_log::sidefiles::offset_index::{self, OffsetEntry};
use ottla_log::sidefiles::snapshot::{SnapshotEntry, SnapshotError, read_snapshot, write_snapshot};
use ottla_log::sidefiles::text::TextFault;
use ottla_log::sidefiles::time_index::{self, TimeEntry};
use ottla_log::sidefiles::transaction_index::{self, AbortedTransaction};
use proptest::prelude::*;

/// Written by Apache Kafka's `ProducerStateManager`: producer 77 with a transaction open at 100.
const GOLDEN: &str = "0001cc8e8b2300000001000000000000004d00040000000c0000000000000066000000020000018bcfe56800ffffffff0000000000000064";

fn golden() -> (Vec<u8>, SnapshotEntry) {
    let bytes = (0..GOLDEN.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&GOLDEN[at..at + 2], 16).unwrap())
        .collect();
    let entry = SnapshotEntry {
        producer_id: 77,
        producer_epoch: 4,
        last_sequence: 12,
        last_offset: 102,
        offset_delta: 2,
        last_timestamp: 1_700_000_000_000,
        coordinator_epoch: -1,
        transaction_first_offset: Some(100),
    };
    (bytes, entry)
}

#[test]
fn a_snapshot_of_kafka_is_read_and_written_byte_for_byte() {
    let (bytes, entry) = golden();
    assert_eq!(read_snapshot(&bytes), Ok(vec![entry]));
    assert_eq!(write_snapshot([entry].into_iter()), bytes);
}

#[test]
fn a_snapshot_cut_anywhere_is_no_snapshot() {
    let (bytes, _) = golden();
    for end in 0..bytes.len() {
        let read = read_snapshot(&bytes[..end]);
        assert!(matches!(read, Err(SnapshotError::Cut { .. })), "{end}: {read:?}");
    }
}

#[test]
fn a_snapshot_that_announces_billions_of_entries_reserves_nothing_for_them() {
    let (mut bytes, _) = golden();
    bytes[6..10].copy_from_slice(&i32::MAX.to_be_bytes());
    assert!(matches!(read_snapshot(&bytes), Err(SnapshotError::Cut { .. })));
    bytes[6..10].copy_from_slice(&(-1i32).to_be_bytes());
    assert_eq!(read_snapshot(&bytes), Err(SnapshotError::Count { found: -1 }));
}

#[test]
fn the_entries_of_an_index_end_where_its_zeros_begin() {
    let written = OffsetEntry { relative_offset: 9, position: 4_200 };
    let mut file = written.to_bytes().to_vec();
    file.extend([0; 20]);
    let used: Vec<_> = offset_index::entries(&file)
        .enumerate()
        .filter(|(number, entry)| !entry.is_unused(*number))
        .collect();
    assert_eq!(used, [(0, written)]);
    assert_eq!(written.offset(1_000), 1_009);
    // An entry for the base offset itself can only be the first.
    assert!(!OffsetEntry { relative_offset: 0, position: 0 }.is_unused(0));
    assert!(!TimeEntry { timestamp: 0, relative_offset: 4 }.is_unused(1));
    assert!(TimeEntry { timestamp: 0, relative_offset: 0 }.is_unused(1));
}

#[test]
fn an_aborted_transaction_of_a_later_version_is_not_read() {
    let entry = AbortedTransaction {
        producer_id: 7,
        first_offset: 1,
        last_offset: 4,
        last_stable_offset: 5,
    };
    let mut file = entry.to_bytes().to_vec();
    file.extend(entry.to_bytes());
    file[34] = 1;
    file.push(0);
    let entries: Vec<_> = transaction_index::entries(&file).collect();
    assert_eq!(entries, [Some(entry), None]);
    // Kafka refuses what is above its version, and reads what is below.
    file[34] = 0xff;
    assert_eq!(transaction_index::entries(&file).next_back(), Some(Some(entry)));
}

#[test]
fn a_checkpoint_is_read_as_java_reads_it() {
    let entries = read_offset_checkpoint(b"0\r\n+1\r\norders\t 3  -7 \r\n").unwrap();
    assert_eq!(
        (entries[0].topic.as_str(), entries[0].partition, entries[0].offset),
        ("orders", 3, -7)
    );
    assert!(read_offset_checkpoint(b"").unwrap().is_empty());
    for (data, fault, line) in [
        (&b" 0\n0\n"[..], TextFault::Version, 1),
        (b"0\n", TextFault::CountMissing, 2),
        (b"0\n1x\n", TextFault::Count, 2),
        (b"0\n1\n\n", TextFault::Entry, 3),
        (b"0\n1\n orders 0 1\n", TextFault::Entry, 3),
        (b"0\n1\norders 0 9223372036854775808\n", TextFault::Number, 3),
        (b"0\n2\norders 0 1\n", TextFault::WrongCount, 2),
        (b"0\n-1\n", TextFault::WrongCount, 2),
        (b"0\n1\norders \xff 1\n", TextFault::NotText, 3),
    ] {
        let error = read_offset_checkpoint(data).unwrap_err();
        assert_eq!((error.fault, error.line), (fault, line), "{error:?}");
    }
}

#[test]
fn leader_epochs_are_read_in_any_order_and_their_disorder_is_told() {
    let epochs = read_leader_epochs(b"0\n3\n0 0\n2 79\n1 90\n").unwrap();
    assert_eq!(epochs[1], LeaderEpoch { epoch: 2, start_offset: 79 });
    let error = check_order(&epochs).unwrap_err();
    assert_eq!((error.fault, error.line), (TextFault::Order, 5));
    assert_eq!(check_order(&epochs[..2]), Ok(()));
    for text in [&b"0\n2\n2 79\n2 90\n"[..], b"0\n2\n2 79\n3 79\n"] {
        let error = check_order(&read_leader_epochs(text).unwrap()).unwrap_err();
        assert_eq!((error.fault, error.line), (TextFault::Order, 4));
    }
    for text in [&b"0\n2\n0 0\n2 -79\n"[..], b"0\n2\n-1 0\n-2 5\n"] {
        let error = check_order(&read_leader_epochs(text).unwrap()).unwrap_err();
        assert_eq!(error.fault, TextFault::Entry);
    }
}

#[test]
fn metadata_has_a_version_and_a_topic_id_other_than_zero() {
    let id = "0m9DrTmLQPuPkwYGQIy5Zw";
    let read = |text: &str| {
        read_partition_metadata(text.as_bytes()).map(str::to_owned).map_err(|error| error.fault)
    };
    assert_eq!(read(&format!("version: 7\ntopic_id: {id}")), Ok(id.to_owned()));
    assert_eq!(read(&format!("version: -1\ntopic_id: {id}")), Err(TextFault::VersionMissing));
    assert_eq!(read("version: 0\n"), Err(TextFault::TopicId));
    assert_eq!(read(&format!("version: 0\ntopic_id: {}", "A".repeat(22))), Err(TextFault::TopicId));
    assert_eq!(read(&format!("version: 0\ntopic_id: {}", &id[1..])), Err(TextFault::TopicId));
}

proptest! {
    #[test]
    fn whatever_the_bytes_nothing_panics(data in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read_offset_checkpoint(&data);
        let _ = read_leader_epochs(&data);
        let _ = read_partition_metadata(&data);
        let _ = read_snapshot(&data);
        prop_assert_eq!(offset_index::entries(&data).count(), data.len() / 8);
        prop_assert_eq!(time_index::entries(&data).count(), data.len() / 12);
        prop_assert_eq!(transaction_index::entries(&data).count(), data.len() / 34);
    }

    #[test]
    fn what_is_written_is_read_again(numbers in any::<(i64, i32, i32)>()) {
        let (timestamp, relative_offset, position) = numbers;
        let entry = OffsetEntry { relative_offset, position };
        prop_assert_eq!(OffsetEntry::read(&entry.to_bytes(), 0), Some(entry));
        let entry = TimeEntry { timestamp, relative_offset };
        prop_assert_eq!(TimeEntry::read(&entry.to_bytes(), 0), Some(entry));
    }
}

#[test]
fn properties_of_a_log_directory_need_a_version_and_a_number() {
    let fault = |data: &[u8]| {
        let error = read_meta_properties(data).expect_err("no properties");
        (error.to_string(), error.found)
    };
    let unknown = |found: &str| ("unknown version".to_owned(), found.to_owned());
    assert_eq!(fault(b""), unknown("none"));
    assert_eq!(fault(b"version=2\n"), unknown("2"));
    assert_eq!(fault(b"#version=1\nnode.id=1\n"), unknown("none"));
    assert_eq!(fault(b"version=0\nnode.id=1\n").0, "no broker.id");
    assert_eq!(fault(b"version=1\nbroker.id=1\n").0, "no node.id");
    for id in ["", "-1", "+1", "1.5", "9223372036854775808", "00000000000000000001"] {
        let data = format!("version=1\nnode.id={id}\n");
        assert_eq!(fault(data.as_bytes()), ("no node.id".to_owned(), id.to_owned()));
    }
    assert_eq!(fault(b"version=1\nnode.id=\xff").0, "no text");
    let read = read_meta_properties(b" version = 1\r\n!a=b\nnode.id=7\nnode.id= 8 \n").unwrap();
    assert_eq!(read.into_iter().collect::<Vec<_>>(), [("node.id", "8"), ("version", "1")]);
}
