#![no_main]
//! Arbitrary histories of a partition: what is refused changes nothing, offsets only grow, a
//! snapshot brings back the producers it was made of, and each append keeps the bounds of time and
//! memory.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ottla_format::attributes::Compression;
use ottla_format::builder::{BatchFields, NewRecord, build_batch};
use ottla_fuzz::{bounded, limits, mend_checksums, topic_config};
use ottla_leader::{
    AppendRequest, EndTransaction, Leader, LeaderSettings, LogOffsets, Profile, Replay,
    ReplaySource, StoredLog, UnknownProducer, Validator,
};
use ottla_log::kafka_version::KafkaVersion;
use ottla_log::producers::snapshot::read_producers;
use ottla_log::producers::{Guard, Origin, ProducerEntry};

#[derive(Arbitrary, Debug)]
struct History<'a> {
    settings: [u8; 8],
    is_kafka: bool,
    release: u8,
    unknown_producer: u8,
    transaction_verification: bool,
    next_offset: u8,
    steps: Vec<Step<'a>>,
}

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    Append {
        batch: Batch,
        request: Asked,
    },
    AppendBytes {
        records: &'a [u8],
        request: Asked,
    },
    Follow {
        batch: Batch,
        base_offset: i64,
    },
    EndTransaction {
        producer_id: i8,
        producer_epoch: i16,
        coordinator_epoch: i8,
        commit: bool,
        transaction_version: u8,
    },
    Verify {
        producer_id: u8,
        producer_epoch: i8,
        base_sequence: i32,
        transaction_version: u8,
    },
    Wait {
        ms: u32,
    },
    Expire,
    DeleteRecords {
        offset: u8,
    },
    AdvanceHighWatermark {
        offset: u8,
    },
    Truncate {
        offset: u8,
    },
    Restart {
        replay: bool,
    },
}

#[derive(Arbitrary, Debug)]
struct Batch {
    producer_id: i8,
    producer_epoch: i8,
    /// From it and from the last one known, so that a run of appends goes on.
    sequence: i8,
    is_absolute: bool,
    is_transactional: bool,
    codec: u8,
    count: u8,
    timestamp: i16,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Asked {
    api_version: Option<u8>,
    has_transactional_id: bool,
    is_coordinator: bool,
    with_guard: bool,
    transaction_version: u8,
}

struct Run {
    leader: Leader,
    settings: LeaderSettings,
    validator: Validator,
    guard: Option<Guard>,
    now_ms: i64,
}

fuzz_target!(|history: History<'_>| {
    let unknown = [UnknownProducer::Auto, UnknownProducer::Unknown, UnknownProducer::Accept];
    let settings = LeaderSettings {
        config: topic_config(history.settings),
        leader_epoch: 3,
        profile: if history.is_kafka { Profile::Kafka } else { Profile::Strict },
        unknown_producer: unknown[usize::from(history.unknown_producer) % unknown.len()],
        transaction_verification: history.transaction_verification,
        kafka_version: KafkaVersion::RELEASES
            [usize::from(history.release) % KafkaVersion::RELEASES.len()],
    };
    let mut run = Run {
        leader: Leader::new(settings.clone(), 0, history.next_offset.into()),
        settings,
        validator: Validator::new(limits(), ottla_kernels::Level::best()),
        guard: None,
        now_ms: 1_000_000,
    };
    for step in &history.steps {
        run.step(step);
        let state = run.leader.state();
        assert!(state.log_start_offset() <= state.high_watermark());
        assert!(state.high_watermark() <= state.log_end_offset());
        run.must_come_back();
    }
});

impl Run {
    fn step(&mut self, step: &Step<'_>) {
        match step {
            Step::Append { batch, request } => {
                if let Some(records) = self.build(batch, 0) {
                    self.append(&records, *request);
                }
            }
            Step::AppendBytes { records, request } => {
                let mut records = records.to_vec();
                mend_checksums(&mut records);
                self.append(&records, *request);
            }
            Step::Follow { batch, base_offset } => {
                if let Some(records) = self.build(batch, *base_offset) {
                    let before = self.leader.state().log_end_offset();
                    let request = AppendRequest::replication(self.now_ms);
                    let verdict = self.leader.append(&records, &request, &mut self.validator);
                    assert!(verdict.outcome.is_ok() || !self.is_longer_than(before));
                }
            }
            &Step::EndTransaction {
                producer_id,
                producer_epoch,
                coordinator_epoch,
                commit,
                transaction_version,
            } => {
                let end = EndTransaction {
                    producer_id: producer_id.into(),
                    producer_epoch,
                    coordinator_epoch: coordinator_epoch.into(),
                    commit,
                    transaction_version: i16::from(transaction_version % 3),
                    now_ms: self.now_ms,
                };
                let ended = self.leader.end_transaction(&end, &mut self.validator);
                let can_be = producer_id >= 0 && producer_epoch >= 0;
                assert!(ended.is_ok() || !can_be, "{ended:?}");
            }
            &Step::Verify { producer_id, producer_epoch, base_sequence, transaction_version } => {
                let version = i16::from(transaction_version % 3);
                let (id, epoch) = (producer_id.into(), producer_epoch.into());
                let now_ms = self.now_ms;
                let given =
                    self.leader.begin_verification(id, epoch, base_sequence, version, now_ms);
                self.guard = given.ok().flatten().or_else(|| self.guard.take());
            }
            &Step::Wait { ms } => self.now_ms += i64::from(ms),
            Step::Expire => self.leader.expire_producers(self.now_ms),
            &Step::DeleteRecords { offset } => {
                let _ = self.leader.delete_records(offset.into(), None);
            }
            &Step::AdvanceHighWatermark { offset } => {
                self.leader.advance_high_watermark(offset.into());
            }
            &Step::Truncate { offset } => {
                let source = ReplaySource {
                    snapshot: None,
                    snapshot_offset: offset.into(),
                    sets: &[],
                    replay: Replay::Load,
                    now_ms: self.now_ms,
                };
                let codecs = self.validator.codecs();
                self.leader.truncate(offset.into(), &source, codecs).expect("nothing to read");
            }
            &Step::Restart { replay } => {
                let replay = if replay { Replay::Recover } else { Replay::Load };
                self.leader = self.restored(replay);
            }
        }
    }

    fn build(&mut self, batch: &Batch, base_offset: i64) -> Option<Vec<u8>> {
        let producer_id = batch.producer_id.into();
        let known = self.leader.state().producers().get(producer_id);
        let last = known.map_or(-1, ProducerEntry::last_sequence);
        let base_sequence = if batch.is_absolute {
            batch.sequence.into()
        } else {
            last.wrapping_add(1).wrapping_add(batch.sequence.into())
        };
        let fields = BatchFields {
            base_offset,
            producer_id,
            producer_epoch: batch.producer_epoch.into(),
            base_sequence,
            is_transactional: batch.is_transactional,
            compression: Compression::ALL[usize::from(batch.codec) % Compression::ALL.len()],
            ..BatchFields::default()
        };
        let record = NewRecord {
            timestamp: self.now_ms + i64::from(batch.timestamp),
            key: Some(b"k"),
            value: Some(b"value"),
            ..NewRecord::default()
        };
        let records = vec![record; usize::from(batch.count % 8) + 1];
        build_batch(&fields, &records, self.validator.codecs()).ok()
    }

    /// Appends; a refusal leaves producers and offsets as they were.
    fn append(&mut self, records: &[u8], asked: Asked) {
        let request = AppendRequest {
            api_version: asked.api_version.map(|version| i16::from(version % 14)),
            has_transactional_id: asked.has_transactional_id,
            origin: if asked.is_coordinator { Origin::Coordinator } else { Origin::Client },
            guard: self.guard.as_ref().filter(|_| asked.with_guard),
            transaction_version: i16::from(asked.transaction_version % 3),
            now_ms: self.now_ms,
        };
        let before = (self.leader.state().log_end_offset(), self.leader.state().snapshot());
        let (leader, verdict) = bounded(records.len(), || {
            let mut leader = self.leader.clone();
            let verdict = leader.append(records, &request, &mut self.validator).into_owned();
            (leader, verdict)
        });
        self.leader = leader;
        let state = self.leader.state();
        match &verdict.outcome {
            Ok(accepted) if !accepted.stored.is_empty() => {
                assert_eq!(accepted.base_offset, before.0);
                assert_eq!(state.log_end_offset(), accepted.last_offset + 1);
            }
            Ok(_) => assert_eq!(state.log_end_offset(), before.0),
            Err(refusal) => {
                assert!(!refusal.message().is_empty());
                assert_eq!((state.log_end_offset(), state.snapshot()), before);
            }
        }
    }

    fn is_longer_than(&self, log_end_offset: i64) -> bool {
        self.leader.state().log_end_offset() != log_end_offset
    }

    fn restored(&mut self, replay: Replay) -> Leader {
        let state = self.leader.state();
        let offsets = LogOffsets {
            log_start_offset: state.log_start_offset(),
            log_start_batch_offset: None,
            high_watermark: Some(state.high_watermark()),
            log_end_offset: Some(state.log_end_offset()),
        };
        let source = ReplaySource {
            snapshot: Some(&state.snapshot()),
            snapshot_offset: state.log_end_offset(),
            sets: &[],
            replay,
            now_ms: self.now_ms,
        };
        let aborted = state.aborted_transactions().to_vec();
        let log = StoredLog { offsets, aborted, source };
        Leader::restore(self.settings.clone(), log, self.validator.codecs())
            .expect("an own snapshot can be read")
    }

    /// A snapshot brings back what it was made of, but for producers that have expired.
    fn must_come_back(&mut self) {
        let restored = self.restored(Replay::Load);
        let entries = |leader: &Leader| {
            let mut entries = read_producers(&leader.state().snapshot()).expect("own bytes");
            entries.sort_by_key(|entry| entry.producer_id);
            entries
        };
        let known = entries(&self.leader);
        let back = entries(&restored);
        assert!(back.iter().all(|entry| known.contains(entry)), "{back:?} of {known:?}");
        let is_same_end = |leader: &Leader| leader.state().log_end_offset();
        assert_eq!(is_same_end(&restored), is_same_end(&self.leader));
    }
}
