//! A log that is truncated against its state, restored from all of its batches at once.

#![allow(clippy::unwrap_used, reason = "a test panics to fail")]

mod support;

use ottla_format::batches::Batches;
use ottla_format::builder::{BatchFields, NewRecord, build_batch};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_leader::{
    AppendRequest, EndTransaction, PartitionState, Replay, ReplaySource, Validator,
};
use ottla_log::producers::Origin;
use ottla_plane::DataPlane;
use proptest::prelude::*;
use std::collections::HashMap;
use support::{Scratch, plane_in};

/// More than is read at once.
const LARGE: usize = 3 << 19;

#[derive(Clone, Debug)]
enum Step {
    /// Of producers 0 and 1, who are idempotent, or 2 and 3, who are transactional.
    Append {
        producer: i64,
        records: usize,
        is_large: bool,
    },
    End {
        producer: i64,
        is_commit: bool,
    },
    Truncate {
        place: prop::sample::Index,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (0..4i64, 1..4usize, prop::bool::weighted(0.05)).prop_map(
            |(producer, records, is_large)| Step::Append { producer, records, is_large }
        ),
        3 => (2..4i64, any::<bool>())
            .prop_map(|(producer, is_commit)| Step::End { producer, is_commit }),
        1 => any::<prop::sample::Index>().prop_map(|place| Step::Truncate { place }),
    ]
}

struct World {
    plane: DataPlane,
    validator: Validator,
}

impl World {
    fn state(&self) -> &PartitionState {
        self.plane.leader(0).unwrap().state()
    }

    fn append(&mut self, producer: i64, records: usize, is_large: bool) {
        let known = self.state().producers().get(producer);
        let base_sequence = known.map_or(0, |entry| entry.last_sequence() + 1);
        let fields = BatchFields {
            producer_id: producer,
            producer_epoch: 0,
            base_sequence,
            is_transactional: producer >= 2,
            ..BatchFields::default()
        };
        let value = vec![b'v'; if is_large { LARGE } else { 10 }];
        let record = NewRecord { value: Some(&value), ..NewRecord::default() };
        let batch = build_batch(&fields, &vec![record; records], self.validator.codecs()).unwrap();
        let request = AppendRequest {
            api_version: None,
            has_transactional_id: true,
            origin: Origin::Replication,
            guard: None,
            transaction_version: 0,
            now_ms: 0,
        };
        let mut batch = batch;
        let end = self.state().log_end_offset();
        batch.splice(..8, end.to_be_bytes());
        let verdict = self.plane.append(0, &batch, &request, &mut self.validator).unwrap();
        assert!(verdict.outcome.is_ok(), "{:?}", verdict.outcome.err());
    }

    fn end(&mut self, producer: i64, is_commit: bool) {
        let known = self.state().producers().get(producer);
        if known.is_none_or(|entry| entry.transaction_first_offset.is_none()) {
            return;
        }
        let end = EndTransaction {
            producer_id: producer,
            producer_epoch: 0,
            coordinator_epoch: 0,
            commit: is_commit,
            transaction_version: 0,
            now_ms: 0,
        };
        let verdict = self.plane.end_transaction(0, &end, &mut self.validator).unwrap();
        assert!(verdict.outcome.is_ok(), "{:?}", verdict.outcome.err());
    }

    /// The batches of each segment.
    fn sets(&self) -> Vec<Vec<u8>> {
        let segments = self.plane.segments(0).unwrap();
        let read = |(base_offset, size): (i64, u64)| {
            let mut set = Vec::new();
            let mut add = |slice: &[u8]| set.extend_from_slice(slice);
            if size > 0 {
                self.plane.read(0, base_offset, size, &mut add).unwrap();
            }
            set
        };
        segments.into_iter().map(read).collect()
    }

    /// Truncates to the beginning of a batch, or to the end, and holds the state to its twin.
    fn truncate(&mut self, place: prop::sample::Index) {
        let sets = self.sets();
        let infos = sets.iter().flat_map(|set| Batches::new(set, 0).map(Result::unwrap));
        let mut places: Vec<i64> = infos.map(|info| info.base_offset).collect();
        places.push(self.state().log_end_offset());
        let offset = *place.get(&places);

        let mut twin = self.state().clone();
        let whole: Vec<&[u8]> = sets.iter().map(Vec::as_slice).collect();
        let source = ReplaySource {
            snapshot: None,
            snapshot_offset: 0,
            sets: &whole,
            replay: Replay::Load,
            now_ms: 0,
        };
        twin.truncate(offset, &source, &mut Codecs::new(Limits::default())).unwrap();
        self.plane.truncate(0, offset, 0, &mut self.validator).unwrap();
        assert_eq!(told(self.state()), told(&twin));
        let left: usize = self.sets().iter().map(Vec::len).sum();
        assert_eq!(self.plane.stored_bytes(), left as u64);
    }
}

type Told = (Vec<i64>, HashMap<i64, (i16, i32, Option<i64>)>, Vec<(i64, i64)>);

fn told(state: &PartitionState) -> Told {
    let offsets = vec![
        state.log_start_offset(),
        state.high_watermark(),
        state.log_end_offset(),
        state.first_unstable_offset().unwrap_or(-1),
    ];
    let producers = state.producers().by_id().into_iter().map(|entry| {
        let known = (entry.producer_epoch, entry.last_sequence(), entry.transaction_first_offset);
        (entry.producer_id, known)
    });
    let aborted = state.aborted_transactions().iter();
    let aborted = aborted.map(|entry| (entry.first_offset, entry.last_offset)).collect();
    (offsets, producers.collect(), aborted)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_truncated_log_knows_what_its_batches_say(
        steps in prop::collection::vec(step(), 1..50),
        segment_bytes in prop_oneof![Just(500), Just(1 << 30)],
        // Each directory is synced.
        is_in_files in prop::bool::weighted(0.2),
    ) {
        let scratch = is_in_files.then(Scratch::new);
        let plane = plane_in(scratch.as_ref().map(Scratch::path), 1, segment_bytes);
        let mut world = World { plane, validator: Validator::default() };
        for step in &steps {
            match step {
                Step::Append { producer, records, is_large } => {
                    world.append(*producer, *records, *is_large && segment_bytes > 500);
                }
                Step::End { producer, is_commit } => world.end(*producer, *is_commit),
                Step::Truncate { place } => world.truncate(*place),
            }
        }
    }
}
