//! Offset and time indexes against batches: what is lawful, what is wrong, and that neither depends
//! on where a segment is cut.

use ottla_audit::segment::index_check::{IndexCheck, IndexedBatch, Indexes, MAX_INDEX_BYTES};
use ottla_audit::{Finding, FindingKind, SegmentContext, Severity, SideFile};
use ottla_log::sidefiles::offset_index::OffsetEntry;
use ottla_log::sidefiles::time_index::TimeEntry;
use proptest::prelude::*;

const BASE: i64 = 1000;
const SIZE: u64 = 100;

/// What a pass over a segment sees.
#[derive(Clone, Copy, Debug)]
enum Seen {
    Batch(IndexedBatch),
    /// A batch that is in no place in the log.
    Stray(u64),
    Lost,
}

/// Batches of 10 offsets and 100 bytes, each a second later than the one before.
fn batches(count: u64) -> Vec<Seen> {
    (0..count).map(|index| batch(index, Some(second(index)))).collect()
}

fn second(index: u64) -> i64 {
    1_000_000 + 1000 * index as i64
}

fn batch(index: u64, timestamp: Option<i64>) -> Seen {
    let position = index * SIZE;
    let base_offset = BASE + 10 * index as i64;
    Seen::Batch(IndexedBatch { position, end: position + SIZE, base_offset, timestamp })
}

/// The last offset of a batch and where it begins.
fn place(index: u64) -> OffsetEntry {
    OffsetEntry { relative_offset: 10 * index as i32 + 9, position: (index * SIZE) as i32 }
}

/// The time of a batch and its last offset.
fn time(index: u64) -> TimeEntry {
    TimeEntry { timestamp: second(index), relative_offset: 10 * index as i32 + 9 }
}

fn indexes(offsets: &[OffsetEntry], times: &[TimeEntry]) -> Indexes {
    let offsets: Vec<u8> = offsets.iter().flat_map(OffsetEntry::to_bytes).collect();
    let times: Vec<u8> = times.iter().flat_map(TimeEntry::to_bytes).collect();
    of_bytes(&offsets, &times)
}

fn of_bytes(offsets: &[u8], times: &[u8]) -> Indexes {
    let mut indexes = Indexes::new(BASE);
    indexes.add_offsets(offsets);
    indexes.has_offsets(offsets.len() as u64);
    indexes.add_times(times);
    indexes.has_times(times.len() as u64);
    indexes
}

fn clean() -> SegmentContext {
    SegmentContext {
        base_offset: Some(BASE),
        is_active: true,
        stopped_cleanly: true,
        ..SegmentContext::default()
    }
}

fn killed() -> SegmentContext {
    SegmentContext { stopped_cleanly: false, ..clean() }
}

fn closed() -> SegmentContext {
    SegmentContext { is_active: false, next_base_offset: Some(2000), ..clean() }
}

fn feed(indexes: &Indexes, seen: &[Seen]) -> IndexCheck {
    let mut check = IndexCheck::default();
    feed_on(&mut check, indexes, seen);
    check
}

fn feed_on(check: &mut IndexCheck, indexes: &Indexes, seen: &[Seen]) {
    for seen in seen {
        match *seen {
            Seen::Batch(IndexedBatch {
                position,
                end,
                base_offset,
                timestamp: Some(timestamp),
            }) if !check.is_due(position, base_offset) => {
                check.pass(position, end, timestamp);
            }
            Seen::Batch(batch) => check.at(indexes, &batch),
            Seen::Stray(position) => check.stray(indexes, position, position + SIZE),
            Seen::Lost => check.lost(),
        }
    }
}

fn next_offset(seen: &[Seen]) -> Option<i64> {
    seen.iter().rev().find_map(|seen| match seen {
        Seen::Batch(batch) => Some(batch.base_offset + 10),
        _ => None,
    })
}

fn check(indexes: &Indexes, seen: &[Seen], context: SegmentContext) -> Vec<Finding> {
    ended(feed(indexes, seen), seen).finish(indexes, &context, next_offset(seen))
}

/// What is told a check at the end of a segment.
fn ended(mut check: IndexCheck, seen: &[Seen]) -> IndexCheck {
    if let Some(Seen::Lost) = seen.last() {
        check.lost_end();
    }
    check
}

/// Number of the first wrong entry of each index.
fn wrong(findings: &[Finding]) -> (Option<u64>, Option<u64>) {
    let of = |kind, size| {
        let found = findings.iter().find(|f| f.kind == kind && f.size == Some(size));
        found.and_then(|finding| finding.position).map(|position| position / size)
    };
    (of(FindingKind::IndexMismatch, 8), of(FindingKind::TimeindexMismatch, 12))
}

#[test]
fn what_a_broker_writes_is_lawful() {
    let written = indexes(&[place(2), place(5), place(9)], &[time(2), time(5), time(9)]);
    for context in [clean(), killed(), closed()] {
        assert_eq!(check(&written, &batches(10), context), []);
    }
}

#[test]
fn the_first_offset_of_an_append_is_as_lawful_as_the_last_of_several_batches() {
    let first = OffsetEntry { relative_offset: 20, position: 200 };
    let several = OffsetEntry { relative_offset: 79, position: 500 };
    assert_eq!(check(&indexes(&[first, several, place(8)], &[]), &batches(10), clean()), []);
}

#[test]
fn empty_indexes_are_lawful() {
    assert_eq!(check(&indexes(&[], &[]), &batches(10), clean()), []);
    assert_eq!(check(&indexes(&[], &[]), &[], clean()), []);
    assert_eq!(check(&of_bytes(&[0; 80], &[0; 120]), &[], killed()), []);
}

#[test]
fn an_entry_that_points_into_a_batch_is_wrong() {
    let moved = OffsetEntry { position: 561, ..place(5) };
    let found = check(&indexes(&[place(2), moved, place(9)], &[]), &batches(10), clean());
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.kind, finding.severity), (FindingKind::IndexMismatch, Severity::Warning));
    assert_eq!((finding.position, finding.size), (Some(8), Some(8)));
    assert_eq!(finding.side_file, Some(SideFile::OffsetIndex));
    assert!(finding.message.text().contains("inside the batch that begins at position 500"));
    assert!(finding.message.text().contains("end offset 0"), "{}", finding.message);
}

#[test]
fn an_entry_that_points_to_another_batch_is_wrong() {
    let later = OffsetEntry { position: 600, ..place(5) };
    let earlier = OffsetEntry { relative_offset: 79, ..place(5) };
    let entries = |entry| indexes(&[place(2), entry, place(7)], &[]);
    assert_eq!(wrong(&check(&entries(later), &batches(10), clean())).0, Some(1));
    // A lookup of 1079 would do, one of 1075 would begin behind it.
    assert_eq!(wrong(&check(&entries(earlier), &batches(10), clean())).0, Some(1));
}

#[test]
fn entries_that_do_not_increase_are_wrong() {
    let again = OffsetEntry { position: 600, ..place(5) };
    let found = check(&indexes(&[place(5), again], &[]), &batches(10), clean());
    assert_eq!(wrong(&found).0, Some(1));
    let older = TimeEntry { timestamp: second(2) - 1, ..time(5) };
    let found = check(&indexes(&[], &[time(2), older]), &batches(10), clean());
    assert_eq!(wrong(&found).1, Some(1));
}

#[test]
fn entries_behind_the_end_are_wrong_unless_a_kill_took_it() {
    let far = OffsetEntry { relative_offset: 1 << 20, ..place(9) };
    let late = TimeEntry { relative_offset: 1 << 20, ..time(9) };
    let written = indexes(&[place(2), far], &[time(2), late]);
    assert_eq!(wrong(&check(&written, &batches(10), clean())), (Some(1), Some(1)));
    assert_eq!(wrong(&check(&written, &batches(10), closed())), (Some(1), Some(1)));
    assert_eq!(check(&written, &batches(10), killed()), []);
    let cut = indexes(&[place(2), place(12)], &[time(2), time(12)]);
    assert_eq!(wrong(&check(&cut, &batches(10), clean())), (Some(1), Some(1)));
    assert_eq!(check(&cut, &batches(10), killed()), []);
}

#[test]
fn the_end_of_a_segment_is_the_first_offset_that_no_entry_may_have() {
    for (relative_offset, first_wrong) in [(99, None), (100, Some(1))] {
        let last = OffsetEntry { relative_offset, ..place(9) };
        let written = indexes(&[place(2), last], &[]);
        assert_eq!(wrong(&check(&written, &batches(10), clean())), (first_wrong, None));
    }
}

#[test]
fn an_entry_stops_before_the_first_offset_of_the_batch_that_the_next_one_points_to() {
    for (relative_offset, first_wrong) in [(49, None), (50, Some(0))] {
        let before = OffsetEntry { relative_offset, ..place(2) };
        let written = indexes(&[before, place(5)], &[]);
        assert_eq!(wrong(&check(&written, &batches(10), clean())), (first_wrong, None));
    }
}

#[test]
fn an_entry_may_have_the_base_offset_of_its_segment_and_none_below() {
    for (relative_offset, first_wrong) in [(0, None), (-1, Some(0))] {
        let first = OffsetEntry { relative_offset, position: 0 };
        let written = indexes(&[first, place(5)], &[]);
        assert_eq!(wrong(&check(&written, &batches(10), clean())), (first_wrong, None));
    }
}

#[test]
fn a_timestamp_that_no_batch_up_to_there_has_is_wrong() {
    let future = TimeEntry { timestamp: second(9), ..time(5) };
    let past = TimeEntry { timestamp: second(5) - 1, ..time(5) };
    for entry in [future, past] {
        let found = check(&indexes(&[], &[time(2), entry]), &batches(10), clean());
        assert_eq!(wrong(&found).1, Some(1), "{found:?}");
    }
}

#[test]
fn what_is_wrong_after_a_kill_is_built_anew() {
    let moved = OffsetEntry { position: 561, ..place(5) };
    let found = check(&indexes(&[moved], &[]), &batches(10), killed());
    assert_eq!(found[0].severity, Severity::Info);
    assert!(found[0].message.text().contains("its next start rebuilds the file"));
}

#[test]
fn magic_0_has_no_timestamps_but_entries_of_the_clock() {
    let mut seen = batches(10);
    seen[3] = batch(3, None);
    let clock = TimeEntry { timestamp: second(5) + 77, ..time(5) };
    assert_eq!(check(&indexes(&[], &[time(2), clock]), &seen, clean()), []);
    let before = TimeEntry { timestamp: second(5) - 77, ..time(5) };
    assert_eq!(wrong(&check(&indexes(&[], &[time(2), before]), &seen, clean())).1, Some(1));
}

#[test]
fn damage_may_have_held_what_an_entry_says() {
    let mut seen = batches(10);
    seen[5] = Seen::Lost;
    let inside = OffsetEntry { relative_offset: 57, position: 540 };
    let written = indexes(&[place(2), inside, place(9)], &[time(2), time(5), time(9)]);
    assert_eq!(check(&written, &seen, clean()), []);
    let mut cut = batches(5);
    cut.push(Seen::Lost);
    assert_eq!(check(&written, &cut, clean()), []);
}

#[test]
fn a_batch_out_of_place_is_still_a_place_to_point_to() {
    let mut seen = batches(10);
    seen[5] = Seen::Stray(500);
    assert_eq!(check(&indexes(&[place(2), place(5)], &[]), &seen, clean()), []);
    let moved = OffsetEntry { position: 561, ..place(5) };
    assert_eq!(wrong(&check(&indexes(&[moved], &[]), &seen, clean())).0, Some(0));
}

#[test]
fn a_size_that_is_no_multiple_of_an_entry_is_told() {
    let mut offsets = place(2).to_bytes().to_vec();
    offsets.extend([1, 2, 3]);
    let mut times = time(2).to_bytes().to_vec();
    times.extend([1, 2, 3]);
    let found = check(&of_bytes(&offsets, &times), &batches(10), closed());
    let told: Vec<_> = found.iter().map(|f| (f.kind, f.severity, f.position, f.size)).collect();
    assert_eq!(
        told,
        [
            (FindingKind::IndexMismatch, Severity::Info, Some(8), Some(3)),
            (FindingKind::TimeindexMismatch, Severity::Info, Some(12), Some(3)),
        ]
    );
    // The end of the log is read from this one.
    let found = check(&of_bytes(&offsets, &[]), &batches(10), clean());
    assert_eq!(found[0].severity, Severity::Warning);
}

#[test]
fn zeros_belong_behind_the_entries_of_the_segment_in_use() {
    let mut offsets = place(2).to_bytes().to_vec();
    offsets.extend([0; 40]);
    assert_eq!(check(&of_bytes(&offsets, &[]), &batches(10), killed()), []);
    assert_eq!(check(&of_bytes(&offsets, &[]), &batches(10), clean()), []);
    let found = check(&of_bytes(&offsets, &[]), &batches(10), closed());
    assert_eq!(
        (found[0].severity, found[0].position, found[0].size),
        (Severity::Info, Some(8), Some(40))
    );
}

#[test]
fn entries_beyond_the_bound_are_counted_out() {
    let count = MAX_INDEX_BYTES as u64 / 8 + 1;
    let entry = |index| OffsetEntry { relative_offset: index as i32, position: index as i32 };
    let offsets: Vec<OffsetEntry> = (1..=count).map(entry).collect();
    let found = check(&indexes(&offsets, &[]), &[Seen::Lost], clean());
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.kind, finding.severity), (FindingKind::LimitExceeded, Severity::Warning));
}

/// The same rules written down plainly: the first wrong entry of each index.
fn naive(
    offsets: &[OffsetEntry],
    times: &[TimeEntry],
    seen: &[Seen],
) -> (Option<usize>, Option<usize>) {
    let end = next_offset(seen).unwrap_or(BASE);
    let is_lost = matches!(seen.last(), Some(Seen::Lost));
    let mut wrong = Vec::new();
    for (number, entry) in offsets.iter().enumerate() {
        if number > 0 {
            let before = offsets[number - 1];
            if entry.relative_offset <= before.relative_offset {
                wrong.push(number);
            }
            if entry.position <= before.position {
                wrong.push(number);
                break;
            }
        }
        let position = i64::from(entry.position);
        let mut is_found = false;
        if position < 0 {
            wrong.push(number);
        }
        for seen in seen {
            let (start, base) = match *seen {
                Seen::Batch(batch) => (batch.position as i64, Some(batch.base_offset)),
                Seen::Stray(start) => (start as i64, None),
                Seen::Lost => continue,
            };
            is_found |= position < start + SIZE as i64;
            if position > start && position < start + SIZE as i64 {
                wrong.push(number);
            }
            if position == start
                && let Some(base) = base
            {
                if number > 0 && offsets[number - 1].offset(BASE) >= base {
                    wrong.push(number - 1);
                } else if entry.offset(BASE) < base {
                    wrong.push(number);
                }
            }
        }
        if !is_lost && (!is_found || entry.offset(BASE) >= end) {
            wrong.push(number);
        }
    }
    let offset = wrong.iter().min().copied();
    let mut time = None;
    for (number, entry) in times.iter().enumerate() {
        if number > 0 {
            let before = times[number - 1];
            if entry.timestamp <= before.timestamp {
                time = time.or(Some(number));
            }
            if entry.relative_offset < before.relative_offset {
                time = time.or(Some(number));
                break;
            }
        }
        if entry.offset(BASE) >= end && !is_lost {
            time = time.or(Some(number));
        }
        let mut greatest = i64::MIN;
        let mut is_partial = true;
        for (at, seen) in seen.iter().enumerate() {
            is_partial = at > 0 && is_partial;
            match seen {
                Seen::Batch(batch) if batch.base_offset > entry.offset(BASE) => break,
                Seen::Batch(batch) => {
                    greatest = greatest.max(batch.timestamp.unwrap_or(i64::MIN));
                    is_partial |= batch.timestamp.is_none();
                }
                _ => is_partial = true,
            }
        }
        is_partial &= !seen.is_empty();
        if greatest > entry.timestamp || (greatest < entry.timestamp && !is_partial) {
            time = time.or(Some(number));
        }
    }
    (offset, time)
}

fn any_seen() -> impl Strategy<Value = Vec<Seen>> {
    prop::collection::vec((0..20u8, 0..4i64), 0..40).prop_map(|kinds| {
        let kinds = kinds.into_iter().enumerate();
        kinds
            .map(|(index, (kind, jitter))| match kind {
                0 => Seen::Lost,
                1 => Seen::Stray(index as u64 * SIZE),
                2 => batch(index as u64, None),
                _ => batch(index as u64, Some(second(index as u64) - 700 * jitter)),
            })
            .collect()
    })
}

fn any_offsets() -> impl Strategy<Value = Vec<OffsetEntry>> {
    prop::collection::vec((1..42u64, 0..30u8), 0..8).prop_map(|mut places| {
        places.sort_unstable();
        let entry = |(index, change)| match change {
            0 => OffsetEntry { position: place(index).position + 7, ..place(index) },
            1 => OffsetEntry { relative_offset: place(index).relative_offset + 10, ..place(index) },
            2 => OffsetEntry { relative_offset: place(index).relative_offset - 9, ..place(index) },
            3 => OffsetEntry { position: place(index).position - 100, ..place(index) },
            4 => OffsetEntry { position: -3, ..place(index) },
            _ => place(index),
        };
        places.dedup_by_key(|(index, change)| if *change < 20 { *index } else { 100 });
        places.into_iter().map(entry).collect()
    })
}

fn any_times() -> impl Strategy<Value = Vec<TimeEntry>> {
    prop::collection::vec((1..42u64, 0..30u8), 0..8).prop_map(|mut places| {
        places.sort_unstable();
        let entry = |(index, change)| match change {
            0 => TimeEntry { timestamp: time(index).timestamp + 300, ..time(index) },
            1 => TimeEntry { timestamp: time(index).timestamp - 1000, ..time(index) },
            2 => TimeEntry { relative_offset: time(index).relative_offset + 10, ..time(index) },
            3 => TimeEntry { relative_offset: time(index).relative_offset - 25, ..time(index) },
            _ => time(index),
        };
        places.into_iter().map(entry).collect()
    })
}

/// Joins neighbours, two at a time, until one is left.
fn join_all(mut parts: Vec<IndexCheck>, mut order: Vec<usize>) -> IndexCheck {
    while parts.len() > 1 {
        let at = order.pop().unwrap_or(0) % (parts.len() - 1);
        let right = parts.remove(at + 1);
        let left = std::mem::take(&mut parts[at]);
        parts[at] = left.join(right);
    }
    parts.pop().unwrap_or_default()
}

/// What a walk finds that is suspended after each of these and goes on.
fn interrupted(indexes: &Indexes, parts: &[&[Seen]]) -> IndexCheck {
    let mut check = IndexCheck::default();
    for part in parts {
        check.suspend(indexes);
        check.resume(indexes);
        feed_on(&mut check, indexes, part);
    }
    check
}

proptest! {
    #[test]
    fn one_pass_finds_what_the_plain_rules_find(
        seen in any_seen(), offsets in any_offsets(), times in any_times(),
    ) {
        let written = indexes(&offsets, &times);
        let found = wrong(&check(&written, &seen, clean()));
        let expected = naive(&offsets, &times, &seen);
        let expected = (expected.0.map(|n| n as u64), expected.1.map(|n| n as u64));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_segment_may_be_cut_anywhere(
        seen in any_seen(), offsets in any_offsets(), times in any_times(),
        cuts in prop::collection::vec(0..41usize, 0..7),
        order in prop::collection::vec(0..100usize, 0..8),
    ) {
        let written = indexes(&offsets, &times);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(seen.len())).collect();
        cuts.extend([0, seen.len()]);
        cuts.sort_unstable();
        let parts = cuts.windows(2).map(|cut| {
            let mut part = feed(&written, &seen[cut[0]..cut[1]]);
            part.suspend(&written);
            part
        });
        let joined = ended(join_all(parts.collect(), order), &seen);
        let joined = joined.finish(&written, &clean(), next_offset(&seen));
        prop_assert_eq!(&joined, &check(&written, &seen, clean()));
        let parts: Vec<_> = cuts.windows(2).map(|cut| &seen[cut[0]..cut[1]]).collect();
        let whole = ended(interrupted(&written, &parts), &seen);
        prop_assert_eq!(joined, whole.finish(&written, &clean(), next_offset(&seen)));
    }
}
