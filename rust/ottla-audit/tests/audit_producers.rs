//! The mergeable summary of producers against a plain checker that sees the whole log at once.

use ottla_audit::partition::producers::{MAX_PRODUCERS, ProducerState, ProducerVerdict, Producers};
use ottla_audit::partition::sequences::{EventKind, ProducerEvent, SequenceVerdict};
use ottla_audit::partition::transactions::TransactionVerdict;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A batch of a log, producer or not.
#[derive(Clone, Copy, Debug)]
struct Stored {
    producer_id: i64,
    epoch: i16,
    offset: i64,
    last_offset: i64,
    timestamp: i64,
    /// 0 where a cleaner has removed them.
    records: u32,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Data { first: i32, last: i32, is_transactional: bool },
    Marker { coordinator_epoch: i32, is_commit: bool },
}

/// What a checker says, in a form that sorts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Sequence {
        offset: i64,
        producer_id: i64,
        text: String,
        previous_timestamp: Option<i64>,
    },
    Completed {
        first: i64,
        producer_id: i64,
        last: i64,
        marker: i64,
        is_commit: bool,
        batches: u64,
    },
    PlainInside {
        first: i64,
        producer_id: i64,
        last: i64,
        batches: u64,
        transaction: i64,
    },
    CoordinatorBack {
        marker: i64,
        producer_id: i64,
        previous: i32,
        found: i32,
    },
    MarkerMissing {
        first: i64,
        producer_id: i64,
        last: i64,
        epoch: i16,
        next: (i16, i64),
        markers: u64,
    },
}

/// Id, epoch, last sequence, coordinator epoch, first offset of the open transaction.
type Left = (i64, i16, i32, i32, Option<i64>);

fn sequence(producer_id: i64, offset: i64, text: &str, previous_timestamp: Option<i64>) -> Said {
    Said::Sequence { offset, producer_id, text: text.to_owned(), previous_timestamp }
}

/// First offset, last offset, batches.
type Run = (i64, i64, u64);

#[derive(Default)]
struct Naive {
    epoch: Option<i16>,
    last: i32,
    window: Vec<(i32, i32)>,
    holes_from: i64,
    holes_last: i64,
    timestamp: Option<i64>,
    coordinator_epoch: Option<i32>,
    /// First offset, last offset, batches, and the same of plain data inside.
    open: Option<(i64, i64, u64, Option<Run>)>,
    /// The batches of the open transaction, with the holes below each.
    inside: Vec<(Stored, i64)>,
}

impl Naive {
    fn judge(&self, epoch: i16, data: Option<(i32, i32)>, holes: i64) -> String {
        let Some(known) = self.epoch else {
            return match data {
                Some((first, _)) if first != 0 && i64::from(first) <= holes => "legal head".into(),
                Some((first, _)) if first != 0 => "unknown start".into(),
                _ => "fine".into(),
            };
        };
        if epoch < known {
            return format!("epoch back from {known}");
        }
        let Some((first, last)) = data else { return "fine".into() };
        if epoch > known {
            return match i64::from(first) {
                0 => "fine".into(),
                first if first <= holes - self.holes_last => "legal cleaned".into(),
                _ => "new epoch nonzero".into(),
            };
        }
        let expected = (i64::from(self.last) + 1) % (1 << 31);
        let distance = (i64::from(first) - expected).rem_euclid(1 << 31);
        if distance == 0 {
            "fine".into()
        } else if self.window.contains(&(first, last)) {
            "duplicate".into()
        } else if distance <= holes - self.holes_from {
            "legal cleaned".into()
        } else if distance < 1 << 30 {
            format!("gap {distance}, expected {expected}")
        } else {
            format!("rewind {}, expected {expected}", (1i64 << 31) - distance)
        }
    }

    fn see(&mut self, stored: &Stored, holes: i64, said: &mut Vec<Said>) {
        let (id, offset) = (stored.producer_id, stored.offset);
        let data = match stored.what {
            What::Data { first, last, .. } if first >= 0 => Some((first, last)),
            _ => None,
        };
        let text = self.judge(stored.epoch, data, holes);
        if text != "fine" {
            said.push(sequence(id, offset, &text, self.timestamp));
        }
        self.timestamp = Some(stored.timestamp);
        if self.epoch != Some(stored.epoch) {
            self.last = -1;
            self.window.clear();
            self.holes_from = self.holes_last;
        }
        self.epoch = Some(stored.epoch);
        self.holes_last = holes;
        match stored.what {
            What::Data { first, last, is_transactional } => {
                self.last = if first >= 0 { last } else { -1 };
                self.window.push(if first >= 0 { (first, last) } else { (-1, -1) });
                if self.window.len() > 5 {
                    self.window.remove(0);
                }
                self.holes_from = holes;
                if is_transactional {
                    self.inside.push((*stored, holes));
                }
                match (&mut self.open, is_transactional) {
                    (Some((_, last, batches, _)), true) => {
                        *last = stored.last_offset;
                        *batches += 1;
                    }
                    (open @ None, true) => *open = Some((offset, stored.last_offset, 1, None)),
                    (Some((.., plain)), false) => {
                        let (first, _, batches) = plain.unwrap_or((offset, 0, 0));
                        *plain = Some((first, stored.last_offset, batches + 1));
                    }
                    (None, false) => {}
                }
            }
            What::Marker { coordinator_epoch: found, is_commit } => {
                if let Some(previous) = self.coordinator_epoch.filter(|&before| found < before) {
                    said.push(Said::CoordinatorBack {
                        marker: offset,
                        producer_id: id,
                        previous,
                        found,
                    });
                }
                self.coordinator_epoch = Some(found);
                self.report_plain(id, said);
                self.report_missing_markers(id, said);
                self.inside.clear();
                if let Some((first, last, batches, _)) = self.open.take() {
                    let marker = offset;
                    let producer_id = id;
                    said.push(Said::Completed {
                        first,
                        producer_id,
                        last,
                        marker,
                        is_commit,
                        batches,
                    });
                }
            }
        }
    }

    /// A newer epoch right behind the last batch of the one before, of which records are there.
    fn report_missing_markers(&self, producer_id: i64, said: &mut Vec<Said>) {
        let mut missing = Vec::new();
        for pair in self.inside.windows(2) {
            let [(last, holes_before), (next, holes)] = pair else { continue };
            if next.epoch > last.epoch && holes == holes_before && last.records > 0 {
                missing.push((last.last_offset, next.epoch, next.offset));
            }
        }
        if let (Some((begun, _)), Some(&(last, epoch, offset))) =
            (self.inside.first(), missing.first())
        {
            said.push(Said::MarkerMissing {
                first: begun.offset,
                producer_id,
                last,
                epoch: begun.epoch,
                next: (epoch, offset),
                markers: missing.len() as u64,
            });
        }
    }

    fn report_plain(&self, producer_id: i64, said: &mut Vec<Said>) {
        if let Some((transaction, _, _, Some((first, last, batches)))) = self.open {
            said.push(Said::PlainInside { first, producer_id, last, batches, transaction });
        }
    }
}

fn naive(log: &[Stored]) -> (Vec<Said>, Vec<Left>) {
    let mut said = Vec::new();
    let mut producers: BTreeMap<i64, Naive> = BTreeMap::new();
    let mut holes = log.first().map_or(0, |stored| stored.offset);
    let mut previous: Option<i64> = None;
    for stored in log {
        if let Some(last) = previous {
            holes += (stored.offset - last - 1).max(0);
        }
        previous = Some(stored.last_offset);
        if stored.producer_id >= 0 {
            producers.entry(stored.producer_id).or_default().see(stored, holes, &mut said);
        }
    }
    let mut left = Vec::new();
    for (id, producer) in &producers {
        producer.report_plain(*id, &mut said);
        producer.report_missing_markers(*id, &mut said);
        let open = producer.open.map(|(first, ..)| first);
        let epoch = producer.epoch.unwrap_or(-1);
        left.push((*id, epoch, producer.last, producer.coordinator_epoch.unwrap_or(-1), open));
    }
    said.sort();
    (said, left)
}

/// A part of a log: first offset, next offset, holes inside, producers.
struct Part {
    first: i64,
    next: i64,
    holes: i64,
    producers: Producers,
}

fn words(verdict: SequenceVerdict) -> String {
    match verdict {
        SequenceVerdict::Fine => "fine".into(),
        SequenceVerdict::LegalHead => "legal head".into(),
        SequenceVerdict::UnknownStart => "unknown start".into(),
        SequenceVerdict::EpochRegression { previous } => format!("epoch back from {previous}"),
        SequenceVerdict::LegalCleaned => "legal cleaned".into(),
        SequenceVerdict::NewEpochNonzero => "new epoch nonzero".into(),
        SequenceVerdict::Duplicate => "duplicate".into(),
        SequenceVerdict::Gap { missing, expected } => format!("gap {missing}, expected {expected}"),
        SequenceVerdict::Rewind { back, expected } => format!("rewind {back}, expected {expected}"),
    }
}

/// Adds what is not fine.
fn say(said: &mut Vec<Said>, producer_id: i64, verdict: &ProducerVerdict) {
    if !matches!(verdict, ProducerVerdict::Sequence(_, SequenceVerdict::Fine)) {
        said.push(as_said(producer_id, verdict));
    }
}

fn as_said(producer_id: i64, verdict: &ProducerVerdict) -> Said {
    match verdict {
        ProducerVerdict::Sequence(event, verdict) => {
            sequence(producer_id, event.offset, &words(*verdict), event.previous_timestamp)
        }
        ProducerVerdict::Transaction(TransactionVerdict::Completed(done)) => Said::Completed {
            first: done.first_offset,
            producer_id,
            last: done.last_offset,
            marker: done.marker_offset,
            is_commit: done.is_commit,
            batches: done.batches,
        },
        ProducerVerdict::Transaction(TransactionVerdict::PlainInside { plain, first_offset }) => {
            Said::PlainInside {
                first: plain.first_offset,
                producer_id,
                last: plain.last_offset,
                batches: plain.batches,
                transaction: *first_offset,
            }
        }
        ProducerVerdict::Transaction(TransactionVerdict::CoordinatorEpochRegression {
            marker,
            previous,
            found,
        }) => Said::CoordinatorBack {
            marker: marker.offset,
            producer_id,
            previous: *previous,
            found: *found,
        },
        ProducerVerdict::Transaction(TransactionVerdict::MarkerMissing {
            producer_epoch,
            first_offset,
            missing,
            ..
        }) => Said::MarkerMissing {
            first: *first_offset,
            producer_id,
            last: missing.last_offset,
            epoch: *producer_epoch,
            next: (missing.next_epoch, missing.next_offset),
            markers: missing.markers,
        },
    }
}

fn summarise(log: &[Stored], said: &mut Vec<Said>) -> Part {
    let first = log.first().map_or(0, |stored| stored.offset);
    let mut part = Part { first, next: first, holes: 0, producers: Producers::default() };
    for stored in log {
        part.holes += (stored.offset - part.next).max(0);
        part.next = stored.last_offset + 1;
        if stored.producer_id < 0 {
            continue;
        }
        let kind = match stored.what {
            What::Data { first, last, is_transactional } => {
                EventKind::Data { sequences: (first, last), is_transactional }
            }
            What::Marker { coordinator_epoch, is_commit } => {
                EventKind::Marker { coordinator_epoch, is_commit }
            }
        };
        let event = ProducerEvent {
            segment: 0,
            position: 0,
            size: 100,
            offset: stored.offset,
            offset_delta: (stored.last_offset - stored.offset) as i32,
            records: stored.records,
            holes: part.holes,
            timestamp: stored.timestamp,
            previous_timestamp: None,
            epoch: stored.epoch,
            kind,
        };
        part.producers.observe(stored.producer_id, event, &mut |id, verdict| {
            say(said, id, &verdict);
        });
    }
    part
}

fn merge(mut left: Part, right: &Part, said: &mut Vec<Said>) -> Part {
    let shift = left.holes + (right.first - left.next).max(0);
    left.producers.append(&right.producers, shift, 1, &mut |id, verdict| {
        say(said, id, &verdict);
    });
    Part { next: right.next, holes: shift + right.holes, ..left }
}

/// Cuts a log, summarises the parts and merges neighbours in the order that `order` gives.
fn merged(log: &[Stored], cuts: &[usize], order: &[usize]) -> (Vec<Said>, Vec<Left>) {
    let mut said = Vec::new();
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % log.len().max(1)).collect();
    places.extend([0, log.len()]);
    places.sort_unstable();
    places.dedup();
    let mut parts: Vec<Part> =
        places.windows(2).map(|ends| summarise(&log[ends[0]..ends[1]], &mut said)).collect();
    let mut order = order.iter().cycle();
    while parts.len() > 1 {
        let place = order.next().copied().unwrap_or(0) % (parts.len() - 1);
        let right = parts.remove(place + 1);
        let left = parts.remove(place);
        parts.insert(place, merge(left, &right, &mut said));
    }
    let Some(whole) = parts.pop() else { return (said, Vec::new()) };
    let states: Vec<ProducerState> =
        whole.producers.finish(whole.first, &mut |id, verdict| say(&mut said, id, &verdict));
    said.sort();
    let left = states
        .iter()
        .map(|state| {
            let open = state.open_transaction.as_ref().map(|open| open.first_offset);
            let (epoch, last) = (state.producer_epoch, state.last_sequence);
            (state.producer_id, epoch, last, state.coordinator_epoch, open)
        })
        .collect();
    (said, left)
}

/// One step of a random log, made into a batch by [`log_of`].
#[derive(Clone, Debug)]
struct Step {
    producer: i64,
    kind: u8,
    count: i64,
    offset_noise: u8,
    epoch_noise: u8,
    sequence_noise: u8,
}

fn step() -> impl Strategy<Value = Step> {
    (-1..4i64, any::<u8>(), 1..4i64, any::<u8>(), any::<u8>(), any::<u8>()).prop_map(
        |(producer, kind, count, offset_noise, epoch_noise, sequence_noise)| Step {
            producer,
            kind,
            count,
            offset_noise,
            epoch_noise,
            sequence_noise,
        },
    )
}

/// A log with holes, offsets that go back, epochs up and down, sequences that wrap, repeats and gaps.
fn log_of(start: i64, steps: &[Step]) -> Vec<Stored> {
    let mut offset = start;
    let mut producers: BTreeMap<i64, (i16, i32)> = BTreeMap::new();
    let mut written: Vec<Stored> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        offset += [1, 2, 5, -1].get(usize::from(step.offset_noise)).copied().unwrap_or(0);
        let count = if step.kind < 60 { 1 } else { step.count };
        let start = if step.producer == 2 { i32::MAX - 4 } else { 0 };
        let (mut epoch, mut next) = *producers.entry(step.producer).or_insert((0, start));
        match step.epoch_noise {
            0..10 => (epoch, next) = (epoch + 1, 0),
            10..14 => (epoch, next) = (epoch + 1, 3),
            14..18 => epoch = (epoch - 1).max(0),
            _ => {}
        }
        match step.sequence_noise {
            0..8 => next = (i64::from(next) + 1).rem_euclid(1 << 31) as i32,
            8..16 => next = (i64::from(next) + 4).rem_euclid(1 << 31) as i32,
            16..24 => next = (i64::from(next) - 2).rem_euclid(1 << 31) as i32,
            _ => {}
        }
        let earlier = written.iter().rev().filter(|stored| stored.producer_id == step.producer);
        let what = match step.kind {
            0..60 => What::Marker {
                coordinator_epoch: i32::from(step.kind % 8 != 0) * 2,
                is_commit: step.kind % 2 == 0,
            },
            60..70 => What::Data { first: -1, last: -1, is_transactional: step.kind % 2 == 0 },
            70..80 => earlier
                .clone()
                .nth(usize::from(step.kind - 70))
                .map_or(What::Data { first: 0, last: 0, is_transactional: false }, |stored| {
                    stored.what
                }),
            _ => {
                let last = (i64::from(next) + count - 1).rem_euclid(1 << 31) as i32;
                What::Data { first: next, last, is_transactional: step.kind % 3 == 0 }
            }
        };
        if let What::Data { last, first, .. } = what
            && first >= 0
        {
            next = (i64::from(last) + 1).rem_euclid(1 << 31) as i32;
        }
        producers.insert(step.producer, (epoch, next));
        let timestamp = 1000 + 7 * index as i64;
        let last_offset = offset + count - 1;
        written.push(Stored {
            producer_id: step.producer,
            epoch,
            offset,
            last_offset,
            timestamp,
            records: u32::from(step.kind % 7 != 0),
            what,
        });
        offset = last_offset + 1;
    }
    written
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn parts_of_a_log_merge_to_what_one_pass_finds(
        start in 0..50i64,
        steps in prop::collection::vec(step(), 1..60),
        cuts in prop::collection::vec(0..60usize, 0..8),
        order in prop::collection::vec(0..8usize, 1..8),
    ) {
        let log = log_of(start, &steps);
        prop_assert_eq!(merged(&log, &cuts, &order), naive(&log));
    }
}

// The vectors of `producer-state.md` §9.7: what is said of each batch, and nothing else.

fn data(epoch: i16, first: i32, last: i32, offset: i64) -> Stored {
    let count = (i64::from(last) - i64::from(first)).rem_euclid(1 << 31);
    let what = What::Data { first, last, is_transactional: false };
    let last_offset = offset + count;
    Stored { producer_id: 7, epoch, offset, last_offset, timestamp: 1000, records: 1, what }
}

fn transactional(epoch: i16, first: i32, last: i32, offset: i64) -> Stored {
    Stored {
        what: What::Data { first, last, is_transactional: true },
        ..data(epoch, first, last, offset)
    }
}

fn marker(epoch: i16, coordinator_epoch: i32, offset: i64) -> Stored {
    let what = What::Marker { coordinator_epoch, is_commit: true };
    Stored { producer_id: 7, epoch, offset, last_offset: offset, timestamp: 1000, records: 1, what }
}

fn other(offset: i64, last_offset: i64) -> Stored {
    let what = What::Data { first: -1, last: -1, is_transactional: false };
    Stored { producer_id: -1, epoch: -1, offset, last_offset, timestamp: 1000, records: 1, what }
}

/// What is not fine about two parts merged, by offset; also by the plain checker.
fn said_of(left: &[Stored], right: &[Stored]) -> Vec<(i64, String)> {
    let log = [left, right].concat();
    let (said, _) = merged(&log, &[left.len()], &[0]);
    assert_eq!(said, naive(&log).0);
    said.into_iter()
        .filter_map(|said| match said {
            Said::Sequence { offset, text, .. } => Some((offset, text)),
            Said::PlainInside { first, batches, .. } => {
                Some((first, format!("{batches} plain inside")))
            }
            Said::CoordinatorBack { marker, found, .. } => {
                Some((marker, format!("coordinator {found}")))
            }
            Said::MarkerMissing { first, last, markers, .. } => {
                Some((first, format!("{markers} markers missing, the first behind {last}")))
            }
            Said::Completed { .. } => None,
        })
        .collect()
}

fn about(offset: i64, text: &str) -> Vec<(i64, String)> {
    vec![(offset, text.to_owned())]
}

#[test]
fn a_sequence_that_goes_on_is_fine() {
    assert_eq!(said_of(&[data(0, 0, 2, 0)], &[data(0, 3, 3, 3)]), vec![]);
}

#[test]
fn a_missing_sequence_without_a_missing_offset_is_a_gap() {
    assert_eq!(said_of(&[data(0, 0, 2, 0)], &[data(0, 4, 4, 3)]), about(3, "gap 1, expected 3"));
}

#[test]
fn a_missing_sequence_with_a_missing_offset_may_be_compaction() {
    assert_eq!(said_of(&[data(0, 0, 2, 0)], &[data(0, 4, 4, 4)]), about(4, "legal cleaned"));
}

#[test]
fn more_sequences_than_offsets_missing_are_a_gap() {
    assert_eq!(said_of(&[data(0, 0, 2, 0)], &[data(0, 5, 5, 4)]), about(4, "gap 2, expected 3"));
}

#[test]
fn the_same_batch_again_is_a_duplicate() {
    assert_eq!(said_of(&[data(0, 0, 2, 0)], &[data(0, 0, 2, 3)]), about(3, "duplicate"));
}

#[test]
fn a_part_of_a_batch_again_is_a_rewind() {
    assert_eq!(said_of(&[data(0, 0, 2, 0)], &[data(0, 1, 2, 3)]), about(3, "rewind 2, expected 3"));
}

#[test]
fn sequences_wrap_from_the_largest_to_zero() {
    let left = [data(0, 0, 0, 0), data(0, 1, i32::MAX, 1)];
    let next = left[1].last_offset + 1;
    assert_eq!(said_of(&left, &[data(0, 0, 0, next)]), vec![]);
    assert_eq!(said_of(&left, &[data(0, 1, 1, next)]), about(next, "gap 1, expected 0"));
}

#[test]
fn a_marker_of_the_same_epoch_keeps_the_sequence() {
    assert_eq!(said_of(&[data(0, 0, 2, 0)], &[marker(0, 0, 3), data(0, 3, 3, 4)]), vec![]);
}

#[test]
fn a_marker_of_a_new_epoch_begins_again_at_zero() {
    let right = [marker(1, 0, 3), data(1, 0, 0, 4), data(1, 3, 3, 5), data(0, 3, 3, 6)];
    let expected = vec![(5, "gap 2, expected 1".to_owned()), (6, "epoch back from 1".to_owned())];
    assert_eq!(said_of(&[data(0, 0, 2, 0)], &right), expected);
}

#[test]
fn the_window_of_known_batches_reaches_over_the_cut() {
    let left = [data(0, 0, 0, 0), data(0, 1, 1, 1)];
    let right = [data(0, 2, 2, 2), data(0, 3, 3, 3), data(0, 0, 0, 4)];
    assert_eq!(said_of(&left, &right), about(4, "duplicate"));
}

#[test]
fn the_sixth_batch_back_is_no_duplicate_any_more() {
    let right: Vec<Stored> =
        (1..7).map(|i| data(0, i, i, i64::from(i))).chain([data(0, 0, 0, 7)]).collect();
    assert_eq!(said_of(&[data(0, 0, 0, 0)], &right), about(7, "rewind 7, expected 7"));
}

#[test]
fn the_fifth_batch_back_is_a_duplicate_still() {
    let left: Vec<Stored> = (0..5).map(|i| data(0, i, i, i64::from(i))).collect();
    assert_eq!(said_of(&left, &[data(0, 0, 0, 5)]), about(5, "duplicate"));
}

#[test]
fn a_sequence_less_than_half_of_all_ahead_is_a_gap_and_any_further_is_behind() {
    let left = [data(0, 0, 0, 0)];
    for (ahead, text) in [
        (1 << 29, "gap 536870912, expected 1"),
        ((1 << 30) - 1, "gap 1073741823, expected 1"),
        (1 << 30, "rewind 1073741824, expected 1"),
        ((1 << 30) + 1, "rewind 1073741823, expected 1"),
    ] {
        assert_eq!(said_of(&left, &[data(0, 1 + ahead, 1 + ahead, 1)]), about(1, text));
    }
}

#[test]
fn an_open_transaction_has_its_newest_timestamp_from_either_side_of_a_cut() {
    for (timestamps, newest) in [([2000, 1000], 2000), ([1000, 2000], 2000)] {
        let [left, right] = timestamps.map(|timestamp| {
            let offset = i64::from(timestamp != timestamps[0]);
            let batch = transactional(0, offset as i32, offset as i32, offset);
            summarise(&[Stored { timestamp, ..batch }], &mut Vec::new())
        });
        let whole = merge(left, &right, &mut Vec::new());
        let states = whole.producers.finish(0, &mut |_, _| {});
        let open = states[0].open_transaction.as_deref().expect("no marker ends it");
        assert_eq!((open.first_timestamp, open.sums().last_timestamp), (timestamps[0], newest));
        assert_eq!(open.sums().batches, 2);
    }
}

#[test]
fn a_deleted_head_explains_a_late_start_and_an_empty_one_does_not() {
    assert_eq!(said_of(&[data(0, 500, 500, 1000)], &[]), about(1000, "legal head"));
    assert_eq!(said_of(&[data(0, 500, 500, 0)], &[]), about(0, "unknown start"));
}

#[test]
fn a_producer_begins_with_sequence_0_and_no_other() {
    assert_eq!(said_of(&[data(0, 0, 0, 0)], &[]), vec![]);
    assert_eq!(said_of(&[data(0, 1, 1, 0)], &[]), about(0, "unknown start"));
    assert_eq!(said_of(&[data(0, 1, 1, 1)], &[]), about(1, "legal head"));
}

#[test]
fn holes_since_the_old_epoch_explain_a_new_one_that_starts_late() {
    assert_eq!(said_of(&[data(0, 0, 0, 0)], &[data(1, 2, 2, 3)]), about(3, "legal cleaned"));
    assert_eq!(said_of(&[data(0, 0, 0, 0)], &[data(1, 2, 2, 2)]), about(2, "new epoch nonzero"));
}

#[test]
fn plain_data_in_a_transaction_left_open_before_the_cut_is_found() {
    let right = [data(0, 1, 1, 1), data(0, 2, 2, 2), marker(0, 0, 3), data(0, 3, 3, 4)];
    assert_eq!(said_of(&[transactional(0, 0, 0, 0)], &right), about(1, "2 plain inside"));
}

#[test]
fn a_coordinator_epoch_that_goes_back_over_the_cut_is_found() {
    assert_eq!(said_of(&[marker(0, 3, 0)], &[marker(0, 2, 1)]), about(1, "coordinator 2"));
}

#[test]
fn an_emptied_control_batch_between_two_batches_changes_nothing() {
    assert_eq!(said_of(&[data(0, 0, 2, 0), other(3, 3)], &[data(0, 3, 3, 4)]), vec![]);
}

/// One batch each of so many producers, from an id on.
fn one_batch_each(first_id: i64, count: i64) -> Producers {
    let mut producers = Producers::default();
    for id in first_id..first_id + count {
        let kind = EventKind::Data { sequences: (0, 0), is_transactional: false };
        let event = ProducerEvent {
            segment: 0,
            position: 70 * id as u64,
            size: 70,
            offset: id,
            offset_delta: 0,
            records: 1,
            holes: 0,
            timestamp: 1,
            previous_timestamp: None,
            epoch: 0,
            kind,
        };
        producers.observe(id, event, &mut |_, _| {});
    }
    producers
}

#[test]
fn a_quarter_of_a_million_producers_are_followed_and_the_others_counted() {
    let bound = MAX_PRODUCERS as i64;
    assert!(bound > 250_000);
    assert_eq!(one_batch_each(0, bound).left_out(), 0);
    let beyond = one_batch_each(0, bound + 2);
    assert_eq!((beyond.len(), beyond.left_out()), (MAX_PRODUCERS, 2));
}

#[test]
fn producers_of_a_later_part_that_find_no_room_are_counted() {
    let bound = MAX_PRODUCERS as i64;
    let mut producers = one_batch_each(0, bound);
    producers.append(&one_batch_each(bound, 3), 0, 1, &mut |_, _| {});
    assert_eq!(producers.left_out(), 3);
}

#[test]
fn a_transaction_without_a_marker_before_the_next_one_is_told() {
    let log = [
        marker(4, 0, 2),
        transactional(4, 0, 0, 3),
        transactional(4, 1, 1, 4),
        transactional(5, 0, 0, 5),
        transactional(6, 0, 0, 6),
        marker(7, 0, 7),
    ];
    for cut in 0..log.len() {
        let (left, right) = log.split_at(cut);
        assert_eq!(said_of(left, right), about(3, "2 markers missing, the first behind 4"));
    }
}

#[test]
fn a_marker_that_may_have_been_among_missing_offsets_is_not_told() {
    let left = [transactional(4, 0, 0, 3), transactional(4, 1, 1, 4)];
    assert_eq!(said_of(&left, &[transactional(5, 0, 0, 6), marker(6, 0, 7)]), vec![]);
}

#[test]
fn a_marker_that_went_with_the_last_record_of_its_transaction_is_not_told() {
    let emptied = Stored { records: 0, ..transactional(4, 0, 0, 3) };
    assert_eq!(said_of(&[emptied], &[transactional(5, 0, 0, 4), marker(6, 0, 5)]), vec![]);
}
