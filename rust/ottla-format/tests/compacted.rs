//! What compaction leaves of a batch, held to Kafka's own bytes and to the reader.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test panics to fail")]

use ottla_format::attributes::Compression;
use ottla_format::batch::{BatchInfo, Payload, Record, RecordCursor, payload};
use ottla_format::batches::Batches;
use ottla_format::builder::{BatchFields, CompactedWriter, NewRecord, build_batch, build_emptied};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;

fn codecs() -> Codecs {
    Codecs::new(Limits::default())
}

fn only(batch: &[u8]) -> BatchInfo {
    let mut batches = Batches::new(batch, 0);
    let info = batches.next().unwrap().unwrap();
    assert!(batches.next().is_none() && batches.tail().is_empty());
    ottla_format::batch::verify(batch).unwrap();
    info
}

fn records_of(batch: &[u8], each: &mut dyn FnMut(&Record<'_>)) {
    let info = only(batch);
    let mut codecs = codecs();
    let records = match payload(&info, batch).unwrap() {
        Payload::Plain { bytes, .. } => bytes,
        Payload::Compressed { codec, reading, bytes, .. } => {
            codecs.decompress(codec, reading, bytes).unwrap()
        }
    };
    let mut cursor = RecordCursor::start(&info, records, Limits::default()).unwrap();
    while let Some(record) = cursor.next(records).unwrap() {
        each(&record);
    }
}

fn five(compression: Compression) -> Vec<u8> {
    let fields = BatchFields {
        base_offset: 100,
        partition_leader_epoch: 3,
        producer_id: 5,
        producer_epoch: 1,
        base_sequence: 10,
        compression,
        ..BatchFields::default()
    };
    let records: Vec<_> = (0..5)
        .map(|index| NewRecord {
            timestamp: 1_500_000_000_000 - index,
            key: Some(b"key"),
            value: (index != 3).then_some(&b"value"[..]),
            headers: vec![(b"h", Some(b"x"))],
            offset_delta: None,
        })
        .collect();
    build_batch(&fields, &records, &mut codecs()).unwrap()
}

#[test]
fn an_emptied_batch_is_kafkas_byte_for_byte() {
    let hex = "00000000000000640000003100000003024e1f4c70000000000004ffffffffffffffff\
               0000015d3ef79800000000000000000500010000000a00000000";
    let expected: Vec<u8> =
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..][..2], 16).unwrap()).collect();
    assert_eq!(build_emptied(&only(&five(Compression::None))), expected);
}

#[test]
fn offsets_sequences_and_codec_stay_whatever_is_left() {
    for compression in Compression::ALL {
        let batch = five(compression);
        let before = only(&batch);
        let mut writer = CompactedWriter::new(&before, None, 0);
        records_of(&batch, &mut |record| {
            if [101, 103].contains(&record.offset) {
                writer.push(record).unwrap();
            }
        });
        let left = writer.finish(&mut codecs()).unwrap();
        let after = only(&left);
        assert_eq!((after.base_offset, after.last_offset), (100, 104));
        assert_eq!((after.base_sequence, after.last_sequence()), (10, 14));
        assert_eq!(after.compression().unwrap(), compression);
        assert_eq!(after.record_count, Some(2));
        // The first of those left, and the latest of them.
        assert_eq!(after.base_timestamp, 1_499_999_999_999);
        assert_eq!(after.max_timestamp, 1_499_999_999_999);
        let mut found = Vec::new();
        records_of(&left, &mut |record| {
            assert_eq!(record.headers.iter().count(), 1);
            found.push((record.offset, record.timestamp, record.sequence, record.value.is_some()));
        });
        let expected = [(101, 1_499_999_999_999, 11, true), (103, 1_499_999_999_997, 13, false)];
        assert_eq!(found, expected);
    }
}

#[test]
fn a_delete_horizon_takes_the_place_of_the_base_timestamp_and_leaves_those_of_records() {
    let batch = five(Compression::None);
    let before = only(&batch);
    assert_eq!(before.delete_horizon_ms(), None);
    let mut writer = CompactedWriter::new(&before, Some(1_600_000_000_000), 0);
    records_of(&batch, &mut |record| writer.push(record).unwrap());
    let left = writer.finish(&mut codecs()).unwrap();
    let after = only(&left);
    assert_eq!(after.delete_horizon_ms(), Some(1_600_000_000_000));
    assert_eq!(after.max_timestamp, 1_500_000_000_000);
    let mut timestamps = Vec::new();
    records_of(&left, &mut |record| timestamps.push(record.timestamp));
    assert_eq!(timestamps, (0..5).map(|index| 1_500_000_000_000 - index).collect::<Vec<_>>());
    // Without it, it reads as it was.
    assert_eq!(only(&build_emptied(&after)).delete_horizon_ms(), None);
}
