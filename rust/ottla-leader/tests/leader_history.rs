//! A leader over time, held against a model that is nothing but the list of batches in the log.

use ottla_format::builder::{BatchFields, NewRecord, build_batch};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_format::sequence::increment_sequence;
use ottla_leader::{
    AppendRequest, EndTransaction, Leader, LeaderSettings, LogOffsets, Profile, Replay,
    ReplaySource, RestoreError, StoredLog, TopicConfig, UnknownProducer, Validator,
};
use ottla_log::kafka_version::KafkaVersion;
use ottla_log::producers::Origin;
use ottla_log::producers::snapshot::{read_producers, write_producers};
use ottla_log::producers::{ProducerEntry, RememberedBatch};
use ottla_log::sidefiles::snapshot::SnapshotError;
use proptest::prelude::*;
use std::collections::HashMap;

const START_MS: i64 = 1_700_000_000_000;
const EXPIRATION_MS: i64 = 60_000;

/// What a producer or the broker does.
#[derive(Clone, Copy, Debug)]
enum Op {
    Produce {
        producer: i64,
        epoch: Epoch,
        sequence: Sequence,
        count: i32,
        is_transactional: bool,
    },
    End {
        producer: i64,
        epoch: Epoch,
        coordinator_epoch: i32,
        commit: bool,
        transaction_version: i16,
    },
    HighWatermark {
        back: i64,
    },
    DeleteRecords {
        back: i64,
    },
    Expire {
        after_ms: i64,
    },
}

/// Relative to what the model knows: most of what producers do is nearly right.
#[derive(Clone, Copy, Debug)]
enum Epoch {
    Current,
    Next,
    Previous,
}

#[derive(Clone, Copy, Debug)]
enum Sequence {
    Next,
    Skip(i32),
    Back(i32),
    Zero,
    Last,
    Repeat(usize),
}

fn epoch() -> impl Strategy<Value = Epoch> {
    prop_oneof![8 => Just(Epoch::Current), 2 => Just(Epoch::Next), 1 => Just(Epoch::Previous)]
}

fn sequence() -> impl Strategy<Value = Sequence> {
    prop_oneof![
        10 => Just(Sequence::Next),
        1 => (1..4).prop_map(Sequence::Skip),
        1 => (1..4).prop_map(Sequence::Back),
        2 => Just(Sequence::Zero),
        1 => Just(Sequence::Last),
        3 => (0usize..7).prop_map(Sequence::Repeat),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let produce = (0i64..3, epoch(), sequence(), 1i32..5, any::<bool>()).prop_map(
        |(producer, epoch, sequence, count, is_transactional)| Op::Produce {
            producer,
            epoch,
            sequence,
            count,
            is_transactional,
        },
    );
    let end = (0i64..3, epoch(), 0i32..3, any::<bool>(), 0i16..3).prop_map(
        |(producer, epoch, coordinator_epoch, commit, transaction_version)| Op::End {
            producer,
            epoch,
            coordinator_epoch,
            commit,
            transaction_version,
        },
    );
    prop_oneof![
        16 => produce,
        5 => end,
        2 => (0i64..12).prop_map(|back| Op::HighWatermark { back }),
        1 => (0i64..12).prop_map(|back| Op::DeleteRecords { back }),
        1 => (0i64..2 * EXPIRATION_MS).prop_map(|after_ms| Op::Expire { after_ms }),
    ]
}

/// A batch in the log of the model.
#[derive(Clone, Copy, Debug)]
struct Logged {
    producer: i64,
    epoch: i16,
    offsets: (i64, i64),
    timestamp: i64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Data { sequences: (i32, i32), is_transactional: bool },
    Marker { coordinator_epoch: i32, commit: bool },
}

/// A transaction of the model: who, from where, and its marker with whether it commits.
type Transaction = (i64, i64, Option<(i64, bool)>);

#[derive(Clone, Debug, Default)]
struct Model {
    log: Vec<Logged>,
    /// Up to where the log of a producer is forgotten.
    forgotten: HashMap<i64, usize>,
    high_watermark: i64,
    log_start: i64,
    aborted: Vec<(i64, i64, i64, i64)>,
}

/// A batch that is asked for: epoch, sequences, transactional.
#[derive(Clone, Copy, Debug)]
struct Asked {
    producer: i64,
    epoch: i16,
    sequences: (i32, i32),
    is_transactional: bool,
}

/// An error code, or the offsets and whether they are those of a batch that was there.
type Answer = Result<(i64, i64, bool), i16>;

impl Model {
    fn end_offset(&self) -> i64 {
        self.log.last().map_or(0, |batch| batch.offsets.1 + 1)
    }

    fn known(&self, producer: i64) -> Vec<Logged> {
        let from = self.forgotten.get(&producer).copied().unwrap_or(0);
        self.log[from..].iter().filter(|batch| batch.producer == producer).copied().collect()
    }

    fn epoch(&self, producer: i64) -> i16 {
        self.known(producer).last().map_or(-1, |batch| batch.epoch)
    }

    /// Sequences and offsets of the newest five batches of the current epoch.
    fn window(&self, producer: i64) -> Vec<((i32, i32), (i64, i64))> {
        let epoch = self.epoch(producer);
        let data: Vec<_> = self
            .known(producer)
            .iter()
            .filter(|batch| batch.epoch == epoch)
            .filter_map(|batch| match batch.kind {
                Kind::Data { sequences, .. } => Some((sequences, batch.offsets)),
                Kind::Marker { .. } => None,
            })
            .collect();
        data[data.len().saturating_sub(5)..].to_vec()
    }

    fn last_sequence(&self, producer: i64) -> i32 {
        self.window(producer).last().map_or(-1, |(sequences, _)| sequences.1)
    }

    fn transactions(&self) -> Vec<Transaction> {
        let mut all: Vec<Transaction> = Vec::new();
        for batch in &self.log {
            let open = all.iter_mut().find(|(who, _, end)| *who == batch.producer && end.is_none());
            match (batch.kind, open) {
                (Kind::Data { is_transactional: true, .. }, None) => {
                    all.push((batch.producer, batch.offsets.0, None));
                }
                (Kind::Marker { commit, .. }, Some(open)) => {
                    open.2 = Some((batch.offsets.0, commit));
                }
                _ => {}
            }
        }
        all
    }

    fn has_open(&self, producer: i64) -> bool {
        self.transactions().iter().any(|(who, _, end)| *who == producer && end.is_none())
    }

    fn first_unstable(&self) -> Option<i64> {
        let held = self.high_watermark.max(self.log_start);
        self.transactions()
            .iter()
            .filter(|(_, _, end)| end.is_none_or(|(marker, _)| marker >= held))
            .map(|(_, first, _)| *first)
            .min()
    }

    fn last_stable(&self) -> i64 {
        let first = self.first_unstable().map(|first| first.max(self.log_start));
        first.map_or(self.high_watermark, |first| first.min(self.high_watermark))
    }

    #[expect(clippy::unnecessary_wraps, reason = "an answer like those of the other operations")]
    fn append(
        &mut self,
        producer: i64,
        epoch: i16,
        timestamp: i64,
        count: i64,
        kind: Kind,
    ) -> Answer {
        let base = self.end_offset();
        let offsets = (base, base + count - 1);
        self.log.push(Logged { producer, epoch, offsets, timestamp, kind });
        Ok((offsets.0, offsets.1, false))
    }

    fn produce(&mut self, asked: &Asked, timestamp: i64) -> Answer {
        let Asked { producer, epoch, sequences, is_transactional } = *asked;
        let current = self.epoch(producer);
        if epoch == current
            && let Some((_, offsets)) =
                self.window(producer).iter().find(|(known, _)| *known == sequences)
        {
            return Ok((offsets.0, offsets.1, true));
        }
        if epoch < current {
            return Err(47);
        }
        let expected =
            if epoch == current { increment_sequence(self.last_sequence(producer), 1) } else { 0 };
        if current != -1 && sequences.0 != expected {
            return Err(45);
        }
        if self.has_open(producer) && !is_transactional {
            return Err(48);
        }
        let count = i64::from(sequences.1.wrapping_sub(sequences.0) & i32::MAX) + 1;
        self.append(producer, epoch, timestamp, count, Kind::Data { sequences, is_transactional })
    }

    fn end(&mut self, end: &EndTransaction) -> Answer {
        let EndTransaction {
            producer_id,
            producer_epoch,
            coordinator_epoch,
            commit,
            transaction_version,
            now_ms,
        } = *end;
        let last = self.known(producer_id).iter().rev().find_map(|batch| match batch.kind {
            Kind::Marker { coordinator_epoch, .. } => Some(coordinator_epoch),
            Kind::Data { .. } => None,
        });
        let current = self.epoch(producer_id);
        let must_be_above = transaction_version == 2 && self.has_open(producer_id);
        if producer_epoch < current || must_be_above && producer_epoch == current {
            return Err(47);
        }
        if last.is_some_and(|last| last > coordinator_epoch) {
            return Err(52);
        }
        let marker = self.end_offset();
        let open = self.transactions().into_iter().filter(|(_, _, end)| end.is_none());
        let (own, others): (Vec<_>, Vec<_>) = open.partition(|(who, _, _)| *who == producer_id);
        if let Some((_, first, _)) = own.first()
            && !commit
        {
            let stable = others.iter().map(|(_, first, _)| *first).min().unwrap_or(marker + 1);
            self.aborted.push((producer_id, *first, marker, stable));
        }
        let kind = Kind::Marker { coordinator_epoch, commit };
        self.append(producer_id, producer_epoch, now_ms, 1, kind)
    }

    fn expire(&mut self, now_ms: i64) {
        for producer in 0..3 {
            let idle = self.known(producer).last().map(|batch| now_ms - batch.timestamp);
            if idle.is_some_and(|idle| idle >= EXPIRATION_MS) && !self.has_open(producer) {
                self.forgotten.insert(producer, self.log.len());
            }
        }
    }

    /// What an operation asks for, seen from here.
    fn asked(&self, op: &Op) -> Option<Asked> {
        let Op::Produce { producer, epoch, sequence, count, is_transactional } = *op else {
            return None;
        };
        let next = increment_sequence(self.last_sequence(producer), 1);
        let window = self.window(producer);
        let first = match sequence {
            Sequence::Next => next,
            Sequence::Skip(n) => increment_sequence(next, n),
            Sequence::Back(n) => next.wrapping_sub(n) & i32::MAX,
            Sequence::Zero => 0,
            Sequence::Last => i32::MAX - 1,
            Sequence::Repeat(back) => match window.iter().rev().nth(back) {
                Some((sequences, _)) => {
                    let sequences = *sequences;
                    let epoch = self.epoch_of(producer, epoch);
                    return Some(Asked { producer, epoch, sequences, is_transactional });
                }
                None => next,
            },
        };
        let sequences = (first, increment_sequence(first, count - 1));
        let epoch = self.epoch_of(producer, epoch);
        Some(Asked { producer, epoch, sequences, is_transactional })
    }

    fn epoch_of(&self, producer: i64, epoch: Epoch) -> i16 {
        let current = self.epoch(producer).max(0);
        match epoch {
            Epoch::Current => current,
            Epoch::Next => current + 1,
            Epoch::Previous => (current - 1).max(0),
        }
    }
}

fn batch(asked: &Asked, timestamp: i64, codecs: &mut Codecs) -> Vec<u8> {
    let count = (asked.sequences.1.wrapping_sub(asked.sequences.0) & i32::MAX) + 1;
    let fields = BatchFields {
        producer_id: asked.producer,
        producer_epoch: asked.epoch,
        base_sequence: asked.sequences.0,
        is_transactional: asked.is_transactional,
        ..BatchFields::default()
    };
    let record = NewRecord { timestamp, value: Some(b"v"), ..NewRecord::default() };
    build_batch(&fields, &vec![record; count as usize], codecs).expect("a right batch")
}

fn settings(producer_id_expiration_ms: i64) -> LeaderSettings {
    LeaderSettings {
        config: TopicConfig { producer_id_expiration_ms, ..TopicConfig::default() },
        leader_epoch: 7,
        profile: Profile::Strict,
        kafka_version: KafkaVersion::NEWEST,
        unknown_producer: UnknownProducer::Accept,
        transaction_verification: false,
    }
}

/// A leader that keeps what it stores.
struct Driven {
    leader: Leader,
    validator: Validator,
    stored: Vec<Vec<u8>>,
}

impl Driven {
    fn new(producer_id_expiration_ms: i64) -> Self {
        Self {
            leader: Leader::new(settings(producer_id_expiration_ms), 0, 0),
            validator: Validator::default(),
            stored: Vec::new(),
        }
    }

    fn produce(&mut self, asked: &Asked, now_ms: i64) -> Answer {
        let records = batch(asked, now_ms, self.validator.codecs());
        let request = AppendRequest {
            api_version: Some(9),
            has_transactional_id: true,
            origin: Origin::Client,
            guard: None,
            transaction_version: 0,
            now_ms,
        };
        let verdict = self.leader.append(&records, &request, &mut self.validator).into_owned();
        self.answer(verdict)
    }

    fn end(&mut self, end: &EndTransaction) -> Answer {
        let verdict = self.leader.end_transaction(end, &mut self.validator).expect("a marker");
        self.answer(verdict)
    }

    fn answer(&mut self, verdict: ottla_leader::Verdict<'static>) -> Answer {
        let accepted = verdict.outcome.map_err(|refusal| refusal.error.code())?;
        assert_eq!(accepted.is_duplicate, accepted.stored.is_empty());
        if !accepted.is_duplicate {
            self.stored.push(accepted.stored.to_vec());
        }
        Ok((accepted.base_offset, accepted.last_offset, accepted.is_duplicate))
    }

    /// Does what a model of the same log asks for.
    fn apply(
        &mut self,
        op: &Op,
        asked: Option<Asked>,
        model: &Model,
        now_ms: i64,
    ) -> Option<Answer> {
        match *op {
            Op::Produce { .. } => asked.map(|asked| self.produce(&asked, now_ms)),
            Op::End { .. } => end_of(op, model, now_ms).map(|end| self.end(&end)),
            Op::HighWatermark { back } => {
                let end = self.leader.state().log_end_offset();
                let current = self.leader.state().high_watermark();
                self.leader.advance_high_watermark((end - back).max(current));
                None
            }
            Op::DeleteRecords { back } => {
                let offset = self.leader.state().high_watermark() - back;
                self.leader.delete_records(offset, None).expect("below the high watermark");
                None
            }
            Op::Expire { after_ms } => {
                self.leader.expire_producers(now_ms + after_ms);
                None
            }
        }
    }
}

/// Sequences and offsets of the batches of a producer that are known.
fn places(entry: &ProducerEntry) -> Vec<((i32, i32), (i64, i64))> {
    let place = |batch: &RememberedBatch| {
        let sequences = (batch.first_sequence(), batch.last_sequence);
        (sequences, (batch.first_offset(), batch.last_offset))
    };
    entry.batches().iter().map(place).collect()
}

fn end_of(op: &Op, model: &Model, now_ms: i64) -> Option<EndTransaction> {
    let Op::End { producer, epoch, coordinator_epoch, commit, transaction_version } = *op else {
        return None;
    };
    let producer_epoch = model.epoch_of(producer, epoch);
    Some(EndTransaction {
        producer_id: producer,
        producer_epoch,
        coordinator_epoch,
        commit,
        transaction_version,
        now_ms,
    })
}

proptest! {
    #[test]
    fn a_leader_decides_as_the_list_of_its_batches_says(
        ops in prop::collection::vec((op(), 0i64..5000), 1..60)
    ) {
        let mut model = Model::default();
        let mut driven = Driven::new(EXPIRATION_MS);
        let mut now_ms = START_MS;
        for (op, wait_ms) in &ops {
            now_ms += wait_ms;
            let asked = model.asked(op);
            let found = driven.apply(op, asked, &model, now_ms);
            let expected = match *op {
                Op::Produce { .. } => asked.map(|asked| model.produce(&asked, now_ms)),
                Op::End { .. } => end_of(op, &model, now_ms).map(|end| model.end(&end)),
                Op::HighWatermark { back } => {
                    model.high_watermark =
                        model.high_watermark.max(model.end_offset() - back).max(model.log_start);
                    None
                }
                Op::DeleteRecords { back } => {
                    model.log_start = model.log_start.max(model.high_watermark - back);
                    None
                }
                Op::Expire { after_ms } => {
                    model.expire(now_ms + after_ms);
                    now_ms += after_ms;
                    None
                }
            };
            prop_assert_eq!(found, expected, "{:?} {:?}", op, asked);
            let state = driven.leader.state();
            prop_assert_eq!(state.log_end_offset(), model.end_offset());
            prop_assert_eq!(state.log_start_offset(), model.log_start);
            prop_assert_eq!(state.first_unstable_offset(), model.first_unstable());
            prop_assert_eq!(driven.leader.last_stable_offset(), model.last_stable());
            for producer in 0..3 {
                let entry = state.producers().get(producer);
                prop_assert_eq!(entry.map_or(-1, |entry| entry.producer_epoch), model.epoch(producer));
                let window = entry.map_or(Vec::new(), places);
                prop_assert_eq!(window, model.window(producer));
            }
            let aborted: Vec<_> = state.aborted_transactions().iter().map(|entry| {
                (entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
            }).collect();
            let expected: Vec<_> =
                model.aborted.iter().filter(|entry| entry.2 >= model.log_start).copied().collect();
            prop_assert_eq!(aborted, expected);
        }
    }

    #[test]
    fn a_leader_that_is_restored_anywhere_decides_as_before(
        ops in prop::collection::vec((op(), 0i64..5000), 2..60),
        snapshot_at in any::<prop::sample::Index>(),
        restored_at in any::<prop::sample::Index>(),
    ) {
        let restored_at = restored_at.index(ops.len());
        let snapshot_at = snapshot_at.index(restored_at + 1);
        let mut model = Model::default();
        let mut live = Driven::new(i64::MAX);
        let mut again: Option<Driven> = None;
        let mut snapshot = (Vec::new(), 0, 0);
        let mut now_ms = START_MS;
        for (index, (op, wait_ms)) in ops.iter().enumerate() {
            now_ms += wait_ms;
            if index == snapshot_at {
                let state = live.leader.state();
                snapshot = (state.snapshot(), state.log_end_offset(), live.stored.len());
            }
            if index == restored_at {
                let (bytes, snapshot_offset, from) = &snapshot;
                let sets: Vec<&[u8]> = live.stored[*from..].iter().map(Vec::as_slice).collect();
                let source = ReplaySource {
                    snapshot: Some(bytes),
                    snapshot_offset: *snapshot_offset,
                    sets: &sets,
                    replay: Replay::Recover,
                    now_ms,
                };
                let state = live.leader.state();
                let known = state.aborted_transactions().iter();
                let aborted =
                    known.filter(|entry| entry.last_offset < *snapshot_offset).copied().collect();
                let offsets = LogOffsets {
                    log_start_offset: state.log_start_offset(),
                    high_watermark: Some(state.high_watermark()),
                    ..LogOffsets::default()
                };
                let mut validator = Validator::default();
                let log = StoredLog { offsets, aborted, source };
                let leader = Leader::restore(settings(i64::MAX), log, validator.codecs())
                    .expect("a log that was written right");
                again = Some(Driven { leader, validator, stored: Vec::new() });
            }
            let asked = model.asked(op);
            let found = live.apply(op, asked, &model, now_ms);
            if let Some(again) = &mut again {
                let repeated = again.apply(op, asked, &model, now_ms);
                match (found, repeated) {
                    // Of what was before the snapshot only the newest batch is known again.
                    (Some(Ok((_, _, true))), Some(Err(45))) => {}
                    (found, repeated) => prop_assert_eq!(repeated, found, "{:?}", op),
                }
                let (old, new) = (live.leader.state(), again.leader.state());
                prop_assert_eq!(new.log_end_offset(), old.log_end_offset());
                prop_assert_eq!(new.aborted_transactions().last(), old.aborted_transactions().last());
                for (new, old) in new.producers().by_id().into_iter().zip(old.producers().by_id()) {
                    prop_assert_eq!(new.producer_id, old.producer_id);
                    prop_assert_eq!(new.producer_epoch, old.producer_epoch);
                    prop_assert_eq!(new.coordinator_epoch, old.coordinator_epoch);
                    prop_assert_eq!(new.last_timestamp, old.last_timestamp);
                    prop_assert_eq!(new.transaction_first_offset, old.transaction_first_offset);
                    prop_assert!(places(old).ends_with(&places(new)));
                    prop_assert_eq!(new.last_sequence(), old.last_sequence());
                }
            }
            if let Some(asked) = asked {
                let _ = model.produce(&asked, now_ms);
            }
            if let Some(end) = end_of(op, &model, now_ms) {
                let _ = model.end(&end);
            }
        }
    }

    #[test]
    fn a_snapshot_that_is_cut_or_changed_is_never_loaded(
        ops in prop::collection::vec((op(), 0i64..5000), 1..20),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let model = Model::default();
        let mut driven = Driven::new(i64::MAX);
        for (op, _) in &ops {
            driven.apply(op, model.asked(op), &model, START_MS);
        }
        let snapshot = driven.leader.state().snapshot();
        let entries = read_producers(&snapshot).expect("written right");
        prop_assert_eq!(&write_producers(entries.iter()), &snapshot);
        let at = at.index(snapshot.len());
        prop_assert!(read_producers(&snapshot[..at]).is_err());
        let mut changed = snapshot;
        changed[at] ^= 1 << bit;
        prop_assert!(read_producers(&changed).is_err());
    }
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex digits"))
        .collect()
}

/// Written by Apache Kafka 4.1.2: producer 77, epoch 4, sequences 10 to 12 at offsets 100 to 102, a
/// transaction open since 100.
const GOLDEN: &str = "0001cc8e8b2300000001000000000000004d00040000000c0000000000000066000000020000018bcfe5\
                      6800ffffffff0000000000000064";

#[test]
fn a_snapshot_written_by_kafka_is_read_and_written_byte_for_byte() {
    let golden = hex(GOLDEN);
    let entries = read_producers(&golden).expect("written by Kafka");
    let entry = &entries[0];
    assert_eq!((entry.producer_id, entry.producer_epoch, entry.coordinator_epoch), (77, 4, -1));
    assert_eq!(entry.transaction_first_offset, Some(100));
    let batch = entry.batches()[0];
    assert_eq!((batch.first_sequence(), batch.last_sequence), (10, 12));
    assert_eq!((batch.first_offset(), batch.last_offset), (100, 102));
    assert_eq!(write_producers(entries.iter()), golden);
}

#[test]
fn a_snapshot_says_what_is_wrong_with_it() {
    let golden = hex(GOLDEN);
    assert_eq!(read_producers(&[]), Err(SnapshotError::Cut { needed: 10, found: 0 }));
    assert_eq!(read_producers(&golden[..55]), Err(SnapshotError::Cut { needed: 56, found: 55 }));
    let mut version = golden.clone();
    version[1] = 2;
    assert_eq!(read_producers(&version), Err(SnapshotError::Version { found: 2 }));
    let mut count = golden.clone();
    count[6] = 0x80;
    assert_eq!(read_producers(&count), Err(SnapshotError::Count { found: i32::MIN + 1 }));
    let mut many = golden.clone();
    many[6] = 0x7f;
    assert!(matches!(read_producers(&many), Err(SnapshotError::Cut { .. })));
    let mut changed = golden;
    changed[20] ^= 1;
    assert!(matches!(
        read_producers(&changed),
        Err(SnapshotError::Crc { stored: 0xcc8e_8b23, .. })
    ));
}

#[test]
fn a_log_whose_transaction_ends_twice_is_not_loaded() {
    let mut driven = Driven::new(i64::MAX);
    let asked = Asked { producer: 1, epoch: 0, sequences: (0, 0), is_transactional: true };
    let end = EndTransaction {
        producer_id: 1,
        producer_epoch: 0,
        coordinator_epoch: 0,
        commit: true,
        transaction_version: 0,
        now_ms: START_MS,
    };
    driven.produce(&asked, START_MS).expect("taken");
    driven.end(&end).expect("taken");
    let twice = driven.stored.concat().repeat(2);
    let source = ReplaySource {
        snapshot: None,
        snapshot_offset: 0,
        sets: &[&twice],
        replay: Replay::Load,
        now_ms: START_MS,
    };
    let log = StoredLog { offsets: LogOffsets::default(), aborted: Vec::new(), source };
    let mut codecs = Codecs::new(Limits::default());
    let restored = Leader::restore(settings(i64::MAX), log, &mut codecs);
    assert!(matches!(restored.map(|_| ()), Err(RestoreError::Producer { base_offset: 1, .. })));
}
