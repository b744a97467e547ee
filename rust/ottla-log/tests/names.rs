//! Names of any bytes: what looks like Kafka's is read, the rest is unknown, and nothing panics.

use ottla_log::names::{
    DirectoryKind, FileKind, FileName, FileState, OffsetError, PartitionName, PartitionState,
    SegmentNames, file_name, offset_of, refuses_start,
};
use proptest::prelude::*;

const ID: &str = "1ee4e2924c4147d9948c4c9749eae7ab";

fn file(name: &[u8]) -> (FileKind, FileState, Option<i64>) {
    let FileName { kind, state, base_offset } = FileName::parse(name);
    (kind, state, base_offset)
}

fn partition(name: &[u8]) -> Option<(&[u8], i32, PartitionState)> {
    PartitionName::parse(name).map(|name| (name.topic, name.partition, name.state))
}

const UNKNOWN: (FileKind, FileState, Option<i64>) = (FileKind::Unknown, FileState::Live, None);

#[test]
fn the_greatest_offset_is_read_and_one_more_is_not() {
    let greatest = (FileKind::Segment, FileState::Live, Some(i64::MAX));
    assert_eq!(file(b"9223372036854775807.log"), greatest);
    assert_eq!(file(b"09223372036854775807.log"), greatest);
    assert_eq!(file(b"9223372036854775808.log"), UNKNOWN);
    assert_eq!(file(b"99999999999999999999.log"), UNKNOWN);
    assert_eq!(file(b"99999999999999999999-0000000001.checkpoint"), UNKNOWN);
}

#[test]
fn only_up_to_twenty_digits_are_an_offset() {
    let zero = |kind| (kind, FileState::Live, Some(0));
    assert_eq!(file(b"0.log"), zero(FileKind::Segment));
    assert_eq!(file(b"00000000000000000000.snapshot"), zero(FileKind::ProducerSnapshot));
    assert_eq!(file(b"000000000000000000000.log"), UNKNOWN);
    for name in [&b"-0.log"[..], b"+1.log", b" 1.log", b"1 .log", b".log", b"1", b"1.", b""] {
        assert_eq!(file(name), UNKNOWN, "{name:?}");
    }
    assert_eq!(file("٤٢.log".as_bytes()), UNKNOWN);
}

#[test]
fn a_suffix_counts_whole_and_once() {
    for name in ["1.logs", "1.log.", "1.log.swap.deleted", "1.LOG", "1.log.part", "1.log\n"] {
        assert_eq!(file(name.as_bytes()), UNKNOWN, "{name}");
    }
    assert_eq!(file(b"1-1.checkpoint.part").1, FileState::Temporary);
    assert_eq!(file(b"1-1.checkpoint.swap"), UNKNOWN);
    assert_eq!(file(b"1-12345678901.checkpoint"), UNKNOWN);
    assert_eq!(file(b"1-.checkpoint"), UNKNOWN);
}

#[test]
fn a_temporary_file_is_one_of_a_fixed_name() {
    let temporary = |kind| (kind, FileState::Temporary, None);
    assert_eq!(file(b"meta.properties.tmp"), temporary(FileKind::MetaProperties));
    assert_eq!(file(b"1.log.tmp"), temporary(FileKind::Unknown));
    assert_eq!(file(b".tmp"), temporary(FileKind::Unknown));
    assert_eq!(file(b"meta.properties.tmp.tmp"), temporary(FileKind::Unknown));
}

#[test]
fn a_topic_may_be_of_any_bytes_but_none() {
    assert_eq!(partition(b"\xff\n-7"), Some((&b"\xff\n"[..], 7, PartitionState::Live)));
    assert_eq!(partition(b"a--0"), Some((&b"a-"[..], 0, PartitionState::Live)));
    assert_eq!(partition(b"a-2147483647").map(|name| name.1), Some(i32::MAX));
    for name in [&b"-0"[..], b"a-2147483648", b"a--", b"a-", b"a", b""] {
        assert_eq!(partition(name), None, "{name:?}");
    }
    let long = [&[b't'; 253][..], b"-0"].concat();
    assert_eq!(partition(&long).map(|name| name.0.len()), Some(253));
}

#[test]
fn the_number_of_a_partition_is_what_java_reads_as_an_integer() {
    let under_way = format!("a-+1.{ID}-delete");
    for (name, number, state) in [
        (&b"a-+1"[..], 1, PartitionState::Live),
        (b"a-00000000001", 1, PartitionState::Live),
        (b"a-+00000000000", 0, PartitionState::Live),
        (b"a-02147483647", i32::MAX, PartitionState::Live),
        (under_way.as_bytes(), 1, PartitionState::Delete),
    ] {
        assert_eq!(partition(name), Some((&b"a"[..], number, state)), "{name:?}");
        assert!(!refuses_start(name), "{name:?}");
    }
    for name in
        [&b"a-++1"[..], b"a-+", b"a-+2147483648", b"a- 1", b"a-1 ", b"a-0x1", b"a-1_0", b"-+1"]
    {
        assert_eq!(partition(name), None, "{name:?}");
        assert!(refuses_start(name), "{name:?}");
    }
}

#[test]
fn a_directory_under_way_has_an_id_of_32_digits() {
    let name = |id: &str, end: &str| format!("a-1.{id}{end}");
    let parsed = |name: &str| partition(name.as_bytes()).map(|name| name.2);
    assert_eq!(parsed(&name(ID, "-delete")), Some(PartitionState::Delete));
    assert_eq!(parsed(&name(ID, "-future")), Some(PartitionState::Future));
    assert_eq!(parsed(&name(ID, "-stray")), Some(PartitionState::Stray));
    assert_eq!(parsed(&name(&ID[1..], "-delete")), None);
    assert_eq!(parsed(&name(&ID.to_uppercase(), "-delete")), None);
    assert_eq!(parsed(&name(ID, "-deleted")), None);
    assert_eq!(parsed(&format!("-1.{ID}-delete")), None);
    assert_eq!(parsed(&format!("a-1{ID}-delete")), None);
}

#[test]
fn a_directory_is_known_by_the_files_it_holds() {
    let kind = |names: &[&str]| DirectoryKind::of(names.iter().map(|name| name.as_bytes()));
    assert_eq!(kind(&[]), DirectoryKind::Unknown);
    assert_eq!(kind(&[".lock", "2024.log", "notes.txt"]), DirectoryKind::Unknown);
    assert_eq!(kind(&["meta.properties.tmp"]), DirectoryKind::Unknown);
    assert_eq!(kind(&["00000000000000000042.log"]), DirectoryKind::Partition);
    assert_eq!(kind(&["00000000000000000042-0000000001.checkpoint"]), DirectoryKind::Partition);
    assert_eq!(kind(&["99999999999999999999.anything"]), DirectoryKind::Partition);
    assert_eq!(kind(&["00000000000000000042."]), DirectoryKind::Unknown);
    assert_eq!(kind(&["00000000000000000042-000000001.checkpoint"]), DirectoryKind::Unknown);
    let both = ["00000000000000000042.log", "quorum-state", "bootstrap.checkpoint"];
    assert_eq!(kind(&both), DirectoryKind::LogDirectory);
}

#[test]
fn the_loader_reads_any_number_before_the_first_dot() {
    assert_eq!(offset_of(b"-0.log"), Ok(0));
    assert_eq!(offset_of(b"+1.log"), Ok(1));
    assert_eq!(offset_of(b"000000000000000000000042.log.swap"), Ok(42));
    assert_eq!(offset_of(b"-9223372036854775808.x"), Ok(i64::MIN));
    assert_eq!(offset_of(b"no dot"), Err(OffsetError::NoDot { size: 6 }));
    for (name, found) in [
        (&b".log"[..], ""),
        (b"9223372036854775808.log", "9223372036854775808"),
        (b"+.log", "+"),
        (b"\xff1.log", "\u{fffd}1"),
    ] {
        assert_eq!(offset_of(name), Err(OffsetError::NotANumber { found: found.to_owned() }));
    }
}

#[test]
fn a_name_is_built_as_kafka_builds_it() {
    assert_eq!(file_name(42, b".log"), b"00000000000000000042.log");
    assert_eq!(file_name(-1, b".log"), b"-00000000000000000001.log");
    assert_eq!(file_name(i64::MIN, b""), b"-09223372036854775808");
    assert_eq!(SegmentNames::of(7).time_index, b"00000000000000000007.timeindex");
}

proptest! {
    #[test]
    fn names_of_any_bytes_are_read_without_a_panic(
        name in prop::collection::vec(any::<u8>(), 0..256),
    ) {
        FileName::parse(&name);
        PartitionName::parse(&name);
        DirectoryKind::of([name.as_slice()]);
        let _ = offset_of(&name);
    }

    #[test]
    fn what_is_built_is_read_back(offset in any::<i64>()) {
        let names = SegmentNames::of(offset);
        for name in names.all() {
            prop_assert_eq!(offset_of(name), Ok(offset));
            let read = FileName::parse(name);
            prop_assert_eq!(read.base_offset, Some(offset).filter(|&offset| offset >= 0));
        }
    }
}
