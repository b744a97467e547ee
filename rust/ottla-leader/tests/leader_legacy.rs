//! What the strict profile takes of magic 0 and 1, every reader can read.

use ottla_format::builder::{LegacyFields, NewRecord, build_legacy};
use ottla_format::error_code::ErrorCode;
use ottla_format::header::LOG_OVERHEAD;
use ottla_leader::{Profile, Request, TopicConfig, Validator, validate};

const KEY_LENGTH: usize = LOG_OVERHEAD + 6;

/// Two records of magic 0; the key of the first claims to be longer than its record, and the
/// checksum is right.
fn set_with_a_key_that_leaves_its_record(validator: &mut Validator) -> Vec<u8> {
    let fields = LegacyFields {
        magic: 0,
        base_offset: 0,
        log_append_time_ms: None,
        compression: ottla_format::attributes::Compression::None,
        compression_level: None,
    };
    let record = NewRecord { key: Some(b"key"), value: Some(b"value"), ..NewRecord::default() };
    let mut set = build_legacy(&fields, &[record.clone(), record], validator.codecs()).unwrap();
    set[KEY_LENGTH..KEY_LENGTH + 4].copy_from_slice(&13_312i32.to_be_bytes());
    let first = set.len() / 2;
    let crc = crc32fast::hash(&set[LOG_OVERHEAD + 4..first]);
    set[LOG_OVERHEAD..LOG_OVERHEAD + 4].copy_from_slice(&crc.to_be_bytes());
    set
}

fn decided(profile: Profile) -> (ErrorCode, Vec<u32>) {
    let mut validator = Validator::default();
    let set = set_with_a_key_that_leaves_its_record(&mut validator);
    let mut config = TopicConfig::default();
    config.set("message.format.version", "0.9.0").unwrap();
    let request = Request { api_version: None, profile, ..Request::default() };
    let verdict = validate(&set, &config, &request, &mut validator);
    let blamed = verdict.record_errors().iter().map(|record| record.batch_index).collect();
    (verdict.error(), blamed)
}

#[test]
fn strict_names_a_record_kept_in_place_whose_key_leaves_it() {
    assert_eq!(decided(Profile::Strict), (ErrorCode::InvalidRecord, vec![0]));
}

#[test]
fn kafka_keeps_a_record_whose_lengths_it_did_not_look_at() {
    assert_eq!(decided(Profile::Kafka), (ErrorCode::None, vec![]));
}
