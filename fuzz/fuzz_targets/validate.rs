#![no_main]
//! Arbitrary configuration, request and bytes: each profile comes to a verdict, within the bounds of
//! time and memory, to the same one twice, and what the strict one takes from a client every reader
//! can read.

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use ottla_format::check::{Checker, Level};
use ottla_format::error_code::ErrorCode;
use ottla_fuzz::{bounded, limits, mend_checksums, topic_config};
use ottla_leader::{Profile, Request, Validator, Verdict, validate, validate_each};
use ottla_log::kafka_version::KafkaVersion;
use ottla_log::producers::Origin;

#[derive(Arbitrary, Debug)]
struct Setup {
    settings: [u8; 8],
    origin: u8,
    api_version: i8,
    flags: u8,
    leader_epoch: i32,
    base_offset: i64,
    log_start_offset: i64,
    now_ms: i64,
}

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let Ok(setup) = input.arbitrary::<Setup>() else { return };
    let mut records = input.take_rest().to_vec();
    if setup.flags & 1 == 0 {
        mend_checksums(&mut records);
    }
    let config = topic_config(setup.settings);
    let origins = [Origin::Client, Origin::Coordinator, Origin::Replication];
    for profile in [Profile::Strict, Profile::Kafka] {
        let request = Request {
            now_ms: setup.now_ms & i64::MAX,
            api_version: u8::try_from(setup.api_version).ok().map(i16::from),
            base_offset: setup.base_offset & i64::MAX,
            log_start_offset: setup.log_start_offset & i64::MAX,
            leader_epoch: setup.leader_epoch & i32::MAX,
            origin: origins[usize::from(setup.origin) % origins.len()],
            has_transactional_id: setup.flags & 2 == 0,
            profile,
            kafka_version: KafkaVersion::RELEASES
                [usize::from(setup.flags >> 2) % KafkaVersion::RELEASES.len()],
        };
        let mut validator = Validator::new(limits(), ottla_kernels::Level::best());
        let verdict =
            bounded(records.len(), || validate(&records, &config, &request, &mut validator));
        let plain = ottla_kernels::Level::Portable;
        let again = validate(&records, &config, &request, &mut Validator::new(limits(), plain));
        assert_eq!(verdict, again);
        look_at(&verdict);
        let mut checker = Checker::new(Level::Full, limits());
        let parts = validate_each(&records, &config, &request, &mut validator, &mut checker);
        let mut end = 0;
        for part in &parts {
            assert_eq!(part.position, end, "parts follow one another");
            end += part.size;
        }
        assert_eq!(end, records.len(), "and together are the set");
        if profile == Profile::Strict && request.origin == Origin::Client {
            must_be_readable(&verdict, config.message_format);
        }
    }
});

/// Every text of a verdict can be made, and what it says hangs together.
fn look_at(verdict: &Verdict<'_>) {
    let Err(refusal) = &verdict.outcome else {
        assert_eq!(verdict.error(), ErrorCode::None);
        return;
    };
    assert_ne!(verdict.error(), ErrorCode::None);
    assert!(!refusal.message().is_empty());
    assert!(refusal.record_errors.iter().all(|record| !record.message().is_empty()));
    assert!(refusal.record_errors.is_sorted_by(|a, b| a.batch_index < b.batch_index));
}

fn must_be_readable(verdict: &Verdict<'_>, message_format: i8) {
    let Ok(accepted) = &verdict.outcome else { return };
    let stored = accepted.stored.to_vec();
    let found = Checker::new(Level::Full, limits()).check_all(&stored);
    if message_format >= 2 {
        assert_eq!(found, Ok(accepted.message_count()));
    } else {
        assert!(found.is_ok(), "{found:?}");
    }
}
