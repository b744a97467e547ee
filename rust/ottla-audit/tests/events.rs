//! Events of groups of findings: what is lost, where consumers stop, and the sentence.

use ottla_audit::events::{Blocked, EventLog, LogEvent, Losses, Told, missing_segment};
use ottla_audit::traces::{Fault, Group};
use ottla_audit::{Cause, FindingKind, Message, Severity};
use std::sync::LazyLock;

static SAID: LazyLock<Message> = LazyLock::new(|| Message::from("a fault; and why"));
const LOG: &[u8] = b"logs/orders-0/00000000000000000000.log";
const DIRECTORY: &[u8] = b"logs/orders-0";

fn told(kind: FindingKind, offsets: Option<(i64, i64)>, path: &[u8]) -> Told<'_> {
    let (first_offset, last_offset) = offsets.unzip();
    let fault = Fault {
        kind,
        severity: kind.row().severity,
        position: Some(0),
        size: None,
        first_offset,
        last_offset,
        producer_id: None,
        cause: None,
        expected: "",
        found: "",
        path: Some(path),
        directory: Some(DIRECTORY),
    };
    Told { fault, message: &SAID, next_good_offset: None }
}

fn group(members: usize, lost_end: Option<(i64, i64)>) -> Group {
    Group {
        head: 0,
        members: (0..members).collect(),
        severity: Severity::Error,
        lost_end,
        is_contradicted: false,
    }
}

fn event(found: &[Told<'_>], group: &Group, log: Option<&EventLog<'_>>) -> LogEvent {
    let loss = Losses::new(found, std::slice::from_ref(group)).of_group(0, Some(DIRECTORY));
    LogEvent::of(group, &found.iter().collect::<Vec<_>>(), &loss, log).expect("it has members")
}

#[test]
fn ranges_that_overlap_or_touch_are_lost_once() {
    let at = |first, last| told(FindingKind::CrcMismatch, Some((first, last)), LOG);
    let found = [at(0, 4), at(5, 5), at(3, 4), at(9, 9), at(i64::MAX - 1, i64::MAX)];
    let losses = Losses::new(&found, &[group(5, None)]);
    let loss = losses.of_group(0, Some(DIRECTORY));
    assert_eq!(loss.offsets, [(0, 5), (9, 9), (i64::MAX - 1, i64::MAX)]);
    assert_eq!((loss.offset_count(), loss.is_dense), (9, true));
}

#[test]
fn more_offsets_are_lost_than_a_log_can_have_where_a_finding_says_so() {
    let found = [told(FindingKind::CrcMismatch, Some((i64::MIN, i64::MAX)), LOG)];
    let loss = Losses::new(&found, &[group(1, None)]).of_group(0, None);
    assert_eq!(loss.offset_count(), 1 << 64);
}

#[test]
fn a_lawful_gap_leaves_a_partition_with_fewer_records_than_offsets() {
    let found = [told(FindingKind::CrcMismatch, Some((3, 3)), LOG)];
    let mut losses = Losses::new(&found, &[group(1, None)]);
    assert!(losses.asks_for_gaps());
    losses.add_gap(DIRECTORY, (LOG, Some(0)), (1, 2), Cause::Compaction);
    losses.add_gap(DIRECTORY, (LOG, Some(0)), (4, 6), Cause::Damage);
    losses.add_gap(DIRECTORY, (LOG, Some(9)), (8, 9), Cause::Damage);
    let loss = losses.of_group(0, Some(DIRECTORY));
    assert_eq!((loss.offsets, loss.is_dense), (vec![(3, 6)], false));
}

#[test]
fn an_open_transaction_that_is_old_stops_those_who_read_what_is_committed() {
    let mut found = told(FindingKind::OpenTransaction, Some((7, 9)), LOG);
    let blocks =
        |found: &Told<'_>| event(std::slice::from_ref(found), &group(1, None), None).blocks;
    found.fault.severity = Severity::Warning;
    assert_eq!(blocks(&found), Some((Blocked::ReadCommitted, 7)));
    found.fault.severity = Severity::Info;
    assert_eq!(blocks(&found), None);
}

#[test]
fn a_finding_alone_says_it_all() {
    let found = [told(FindingKind::CrcMismatch, Some((3, 4)), LOG)];
    let event = event(&found, &group(1, None), None);
    assert_eq!((event.message, event.blocks), (None, Some((Blocked::All, 3))));
    assert_eq!((event.first_offset, event.last_offset), (Some(3), Some(4)));
}

#[test]
fn findings_of_one_kind_are_counted_and_others_named_by_their_files() {
    let index = b"logs/orders-0/00000000000000000000.index";
    let mut found = vec![told(FindingKind::CrcMismatch, Some((3, 4)), LOG); 1_002];
    found.push(told(FindingKind::IndexMismatch, None, index));
    found.push(told(FindingKind::IndexMismatch, None, index));
    found.push(told(FindingKind::SequenceRepeat, None, LOG));
    let event = event(&found, &group(found.len(), None), None);
    let message = "a fault; and why (1,001 more findings like it); also seen in the index (2) and the \
                   finding sequence-repeat";
    assert_eq!(event.message.as_deref(), Some(message));
}

#[test]
fn a_checkpoint_above_partitions_names_the_one_that_lost_its_end() {
    let checkpoint = b"logs/recovery-point-offset-checkpoint";
    let found = [told(FindingKind::OpenTransaction, None, checkpoint)];
    let log = EventLog {
        directory: DIRECTORY,
        topic: Some("orders"),
        partition: Some(0),
        missing_segment: Some(5),
    };
    let event = event(&found, &group(1, Some((5, 9))), Some(&log));
    let message = "the log of orders-0 lost its end, offsets 5 to 9: the segment that begins at offset 5 \
                   is missing; seen in the recovery point";
    assert_eq!(event.message.as_deref(), Some(message));
    assert_eq!(event.cause, Some(Cause::MissingFile));
    assert_eq!(event.action, Cause::LostEnd.row().action);
}

#[test]
fn a_segment_is_missing_where_only_files_beside_it_are_left() {
    let index: &[u8] = b"00000000000000000005.index";
    let log: &[u8] = b"00000000000000000005.log";
    let deleted: &[u8] = b"00000000000000000005.index.deleted";
    assert_eq!(missing_segment((5, 9), [index]), Some(5));
    assert_eq!(missing_segment((5, 9), [index, log]), None);
    assert_eq!(missing_segment((5, 9), [deleted]), None);
    assert_eq!(missing_segment((6, 9), [index]), None);
}
