//! Batches as Kafka writes them: golden bytes, refusals, and what is built is read back.

use ottla_format::attributes::{Compression, TimestampType};
use ottla_format::batch::{self, BatchInfo, Payload, RecordCursor};
use ottla_format::batches::Batches;
use ottla_format::builder::{
    BatchFields, BuildError, ColumnsPlan, LegacyFields, NewControlRecord, NewRecord, build_batch,
    build_batch_from_columns, build_control_batch, build_legacy,
};
use ottla_format::compression::{Codecs, Reading};
use ottla_format::limits::Limits;
use ottla_kernels::{BinaryColumn, Offsets, RecordColumns, Validity};
use proptest::prelude::*;

const TIME: i64 = 1_500_000_000_000;

fn codecs() -> Codecs {
    Codecs::new(Limits::default())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn key_and_value() -> NewRecord<'static> {
    NewRecord { timestamp: TIME, key: Some(b"k"), value: Some(b"value"), ..NewRecord::default() }
}

fn legacy(magic: i8) -> LegacyFields {
    LegacyFields {
        magic,
        base_offset: 0,
        log_append_time_ms: None,
        compression: Compression::None,
        compression_level: None,
    }
}

// Golden bytes: written by Apache Kafka 4.1.2.

#[test]
fn a_batch_of_an_idempotent_producer_has_kafkas_bytes() {
    let fields = BatchFields {
        producer_id: 5,
        producer_epoch: 1,
        base_sequence: 10,
        ..BatchFields::default()
    };
    let first = NewRecord { headers: vec![(b"h", Some(b"x"))], ..key_and_value() };
    let second = NewRecord { timestamp: TIME + 7, ..NewRecord::default() };
    let batch = build_batch(&fields, &[first, second], &mut codecs()).expect("builds");
    assert_eq!(
        hex(&batch),
        "000000000000000000000049ffffffff02a78b76500000000000010000015d3ef798000000015d3ef798070000\
         00000000000500010000000a0000000220000000026b0a76616c756502026802780c000e02010100"
    );
}

#[test]
fn legacy_records_have_kafkas_bytes() {
    let set = build_legacy(&legacy(1), &[key_and_value()], &mut codecs()).expect("builds");
    assert_eq!(
        hex(&set),
        "00000000000000000000001c10580ed501000000015d3ef79800000000016b0000000576616c7565"
    );
    let set = build_legacy(&legacy(0), &[key_and_value()], &mut codecs()).expect("builds");
    assert_eq!(hex(&set), "0000000000000000000000148faa55880000000000016b0000000576616c7565");
}

#[test]
fn a_commit_marker_has_kafkas_bytes() {
    let fields = BatchFields {
        base_offset: 42,
        partition_leader_epoch: 3,
        producer_id: 9,
        producer_epoch: 2,
        ..BatchFields::default()
    };
    let commit = NewControlRecord::Commit { coordinator_epoch: 7 };
    let batch = build_control_batch(&fields, TIME, commit, &mut codecs()).expect("builds");
    assert_eq!(
        hex(&batch),
        "000000000000002a000000420000000302db63a0900030000000000000015d3ef798000000015d3ef798000000\
         0000000000090002ffffffff000000012000000008000000010c00000000000700"
    );
}

/// The first batch of the metadata log of a Kafka 4.1 broker, node 1, that elected itself.
#[test]
fn a_leader_change_has_kafkas_bytes() {
    let fields = BatchFields { partition_leader_epoch: 1, ..BatchFields::default() };
    let change =
        NewControlRecord::LeaderChange { leader_id: 1, voters: &[1], granting_voters: &[1] };
    let time = 0x0000_01a1_fd96_a8cb;
    let batch = build_control_batch(&fields, time, change, &mut codecs()).expect("builds");
    assert_eq!(
        hex(&batch),
        "00000000000000000000004f00000001022e645358002000000000000001a1fd96a8cb000001a1fd96a8cbffff\
         ffffffffffffffffffffffff000000013a0000000800000002260000000000010200000001000200000001000\
         000"
    );
}

// Fields.

/// The batches of a buffer that holds nothing else.
fn infos(data: &[u8]) -> Vec<BatchInfo> {
    let mut batches = Batches::new(data, 0);
    let infos = batches.by_ref().map(|batch| batch.expect("a header")).collect();
    assert!(batches.tail().is_empty(), "bytes after the last batch");
    infos
}

fn info(batch: &[u8]) -> BatchInfo {
    let infos = infos(batch);
    assert_eq!(infos.len(), 1);
    infos[0]
}

#[test]
fn the_maximum_is_the_latest_timestamp_or_the_time_of_append() {
    let records = [5, 9, 2].map(|timestamp| NewRecord { timestamp, ..NewRecord::default() });
    let batch = build_batch(&BatchFields::default(), &records, &mut codecs()).expect("builds");
    assert_eq!((info(&batch).base_timestamp, info(&batch).max_timestamp), (5, 9));
    let fields = BatchFields { log_append_time_ms: Some(77), ..BatchFields::default() };
    let batch = build_batch(&fields, &records, &mut codecs()).expect("builds");
    assert_eq!((info(&batch).base_timestamp, info(&batch).max_timestamp), (5, 77));
    assert_eq!(info(&batch).timestamp_type(), TimestampType::LogAppendTime);
}

#[test]
fn a_delete_horizon_takes_the_place_of_the_base_timestamp() {
    let fields =
        BatchFields { delete_horizon_ms: Some(TIME + 86_400_000), ..BatchFields::default() };
    let batch = build_batch(&fields, &[key_and_value()], &mut codecs()).expect("builds");
    assert_eq!(info(&batch).delete_horizon_ms(), Some(TIME + 86_400_000));
    assert_eq!(read(&batch, &mut codecs())[0].timestamp, TIME);
}

#[test]
fn the_last_offset_delta_is_that_of_the_last_record() {
    let records =
        [Some(3), None, Some(9)].map(|offset_delta| NewRecord { offset_delta, ..key_and_value() });
    let fields = BatchFields { base_offset: 100, ..BatchFields::default() };
    let batch = build_batch(&fields, &records, &mut codecs()).expect("builds");
    assert_eq!(info(&batch).last_offset, 109);
    assert_eq!(info(&batch).record_count, Some(3));
    let offsets: Vec<_> = read(&batch, &mut codecs()).iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [103, 104, 109]);
}

#[test]
fn flags_are_the_bits_asked_for() {
    let fields = BatchFields {
        producer_id: 1,
        producer_epoch: 0,
        base_sequence: 0,
        is_transactional: true,
        compression: Compression::Lz4,
        ..BatchFields::default()
    };
    let batch = build_batch(&fields, &[key_and_value()], &mut codecs()).expect("builds");
    assert_eq!(info(&batch).attributes, 0x13);
    let abort = NewControlRecord::Abort { coordinator_epoch: 0 };
    let batch = build_control_batch(&fields, TIME, abort, &mut codecs()).expect("builds");
    assert_eq!(info(&batch).attributes, 0x30);
    assert_eq!(info(&batch).base_sequence, -1);
}

// Wrappers.

#[test]
fn inner_offsets_are_absolute_with_magic_0_and_relative_with_magic_1() {
    let records = [key_and_value(), NewRecord { timestamp: TIME + 5, ..key_and_value() }];
    for (magic, inner) in [(0, [70, 71]), (1, [0, 1])] {
        let fields =
            LegacyFields { base_offset: 70, compression: Compression::Gzip, ..legacy(magic) };
        let wrapper = build_legacy(&fields, &records, &mut codecs()).expect("builds");
        assert_eq!(info(&wrapper).last_offset, 71);
        assert_eq!(info(&wrapper).max_timestamp, if magic == 0 { -1 } else { TIME + 5 });
        let mut codecs = codecs();
        let Payload::Compressed { codec, bytes, .. } =
            batch::payload(&info(&wrapper), &wrapper).expect("a payload")
        else {
            panic!("not compressed");
        };
        let set = codecs.decompress(codec, Reading::Entries { magic }, bytes).expect("inflates");
        let offsets: Vec<_> = infos(set).iter().map(|info| info.last_offset).collect();
        assert_eq!(offsets, inner);
        let read: Vec<_> = read(&wrapper, &mut codecs).iter().map(|record| record.offset).collect();
        assert_eq!(read, [70, 71]);
    }
}

#[test]
fn the_time_of_append_is_on_plain_records_and_on_the_wrapper_alone() {
    for (compression, stored) in [(Compression::None, 9), (Compression::Snappy, TIME)] {
        let fields = LegacyFields { log_append_time_ms: Some(9), compression, ..legacy(1) };
        let set = build_legacy(&fields, &[key_and_value()], &mut codecs()).expect("builds");
        assert_eq!(info(&set).timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(info(&set).max_timestamp, 9);
        if compression == Compression::Snappy {
            let Payload::Compressed { bytes, .. } = batch::payload(&info(&set), &set).expect("one")
            else {
                panic!("not compressed");
            };
            let mut codecs = codecs();
            let inner = codecs
                .decompress(compression, Reading::Entries { magic: 1 }, bytes)
                .expect("inflates");
            assert_eq!(info(inner).max_timestamp, stored);
            assert_eq!(info(inner).timestamp_type(), TimestampType::LogAppendTime);
        }
    }
}

// Refusals.

fn refusal(fields: &BatchFields, records: &[NewRecord]) -> BuildError {
    build_batch(fields, records, &mut codecs()).expect_err("refused")
}

#[test]
fn a_batch_without_records_is_refused() {
    assert_eq!(refusal(&BatchFields::default(), &[]), BuildError::NoRecords);
    let none = build_legacy(&legacy(1), &[], &mut codecs());
    assert_eq!(none, Err(BuildError::NoRecords));
    let columns = RecordColumns { timestamps: &[], keys: None, values: None };
    let none = build_batch_from_columns(&BatchFields::default(), columns, &mut codecs());
    assert_eq!(none, Err(BuildError::NoRecords));
}

#[test]
fn offsets_that_do_not_go_up_are_refused() {
    let at = |deltas: [Option<i32>; 2]| {
        let records = deltas.map(|offset_delta| NewRecord { offset_delta, ..key_and_value() });
        refusal(&BatchFields::default(), &records)
    };
    let kind = |index, delta, minimum| BuildError::OffsetDelta { index, delta, minimum };
    assert_eq!(at([Some(4), Some(4)]), kind(1, 4, 5));
    assert_eq!(at([Some(4), Some(3)]), kind(1, 3, 5));
    assert_eq!(at([Some(-1), None]), kind(0, -1, 0));
    assert_eq!(at([Some(i32::MAX), None]), kind(1, 1 << 31, 1 << 31));
}

#[test]
fn negative_timestamps_other_than_none_are_refused() {
    let at = |timestamp| NewRecord { timestamp, ..NewRecord::default() };
    let kind = BuildError::Timestamp { index: 1, timestamp: -2 };
    assert_eq!(refusal(&BatchFields::default(), &[at(-1), at(-2)]), kind);
    assert_eq!(build_legacy(&legacy(0), &[at(-1), at(-2)], &mut codecs()), Err(kind));
    let columns = RecordColumns { timestamps: &[-1, -2], keys: None, values: None };
    let built = build_batch_from_columns(&BatchFields::default(), columns, &mut codecs());
    assert_eq!(built, Err(kind));
    let fields = BatchFields { delete_horizon_ms: Some(-5), ..BatchFields::default() };
    assert_eq!(refusal(&fields, &[at(0)]), BuildError::DeleteHorizon { delete_horizon_ms: -5 });
}

#[test]
fn producer_fields_that_contradict_each_other_are_refused() {
    let records = &[key_and_value()];
    let fields = BatchFields { is_transactional: true, ..BatchFields::default() };
    assert_eq!(refusal(&fields, records), BuildError::TransactionalWithoutProducer);
    let fields = BatchFields { producer_id: 7, base_sequence: 0, ..BatchFields::default() };
    let kind = BuildError::ProducerEpoch { producer_id: 7, producer_epoch: -1 };
    assert_eq!(refusal(&fields, records), kind);
    let fields = BatchFields { producer_id: 7, producer_epoch: 0, ..BatchFields::default() };
    let kind = BuildError::BaseSequence { producer_id: 7, base_sequence: -1 };
    assert_eq!(refusal(&fields, records), kind);
    let fields = BatchFields { is_control: true, ..fields };
    assert!(build_batch(&fields, records, &mut codecs()).is_ok());
}

#[test]
fn an_end_transaction_marker_without_producer_is_refused() {
    let abort = NewControlRecord::Abort { coordinator_epoch: 0 };
    let built = build_control_batch(&BatchFields::default(), TIME, abort, &mut codecs());
    assert_eq!(built, Err(BuildError::MarkerWithoutProducer));
}

#[test]
fn what_a_magic_cannot_hold_is_refused() {
    let with_headers = NewRecord { headers: vec![(b"h", None)], ..key_and_value() };
    let built = build_legacy(&legacy(1), &[key_and_value(), with_headers], &mut codecs());
    assert_eq!(built, Err(BuildError::Headers { index: 1, magic: 1 }));
    let fields = LegacyFields { compression: Compression::Zstd, ..legacy(0) };
    let built = build_legacy(&fields, &[key_and_value()], &mut codecs());
    assert_eq!(built, Err(BuildError::Codec { codec: Compression::Zstd, magic: 0 }));
    let built = build_legacy(&legacy(2), &[key_and_value()], &mut codecs());
    assert_eq!(built, Err(BuildError::Magic { magic: 2 }));
}

#[test]
fn a_level_its_codec_does_not_have_is_refused() {
    for (compression, level) in [
        (Compression::None, 1),
        (Compression::Snappy, 1),
        (Compression::Gzip, 0),
        (Compression::Gzip, 10),
        (Compression::Lz4, 18),
        (Compression::Zstd, 23),
    ] {
        let fields =
            BatchFields { compression, compression_level: Some(level), ..BatchFields::default() };
        let kind = BuildError::CompressionLevel { codec: compression, level };
        assert_eq!(refusal(&fields, &[key_and_value()]), kind);
    }
    let kind = BuildError::CompressionLevel { codec: Compression::Gzip, level: 10 };
    assert_eq!(kind.to_string(), "level 10 for gzip, expected 1 to 9");
}

#[test]
fn columns_that_do_not_fit_are_refused_before_memory_is_taken() {
    let values =
        BinaryColumn { offsets: Offsets::I32(&[0, 9]), data: b"12345", validity: Validity::All };
    let columns = RecordColumns { timestamps: &[1], keys: None, values: Some(values) };
    let error = ColumnsPlan::new(&BatchFields::default(), columns).expect_err("refused");
    assert!(matches!(error, BuildError::Columns(_)), "{error}");
    let fields = BatchFields { delete_horizon_ms: Some(5), ..BatchFields::default() };
    let columns = RecordColumns { timestamps: &[1], keys: None, values: None };
    let error = ColumnsPlan::new(&fields, columns).expect_err("refused");
    assert_eq!(error, BuildError::DeleteHorizonOfColumns);
}

#[test]
fn memory_of_another_size_is_not_written_to() {
    let columns = RecordColumns { timestamps: &[1], keys: None, values: None };
    let plan = ColumnsPlan::new(&BatchFields::default(), columns).expect("fits");
    let expected = plan.size().expect("not compressed");
    for found in [0, expected - 1, expected + 1] {
        let error = plan.write(&mut vec![0; found]).expect_err("refused");
        assert_eq!(error, BuildError::BufferSize { expected, found });
    }
}

// What is built is read back.

#[derive(Clone, Debug, PartialEq, Eq)]
struct Owned {
    offset: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// All records of a buffer, as a consumer gets them, checksums verified.
fn read(data: &[u8], codecs: &mut Codecs) -> Vec<Owned> {
    let mut records = Vec::new();
    for info in infos(data) {
        let start = info.position as usize;
        let bytes = &data[start..start + info.size as usize];
        batch::verify(bytes).expect("the checksum fits");
        let payload = match batch::payload(&info, bytes).expect("a payload") {
            Payload::Plain { bytes, .. } => bytes,
            Payload::Compressed { codec, reading, bytes, .. } => {
                codecs.decompress(codec, reading, bytes).expect("inflates")
            }
        };
        let mut cursor = RecordCursor::start(&info, payload, Limits::default()).expect("starts");
        while let Some(record) = cursor.next(payload).expect("a record") {
            let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
            records.push(Owned {
                offset: record.offset,
                timestamp: record.timestamp,
                key: owned(record.key),
                value: owned(record.value),
                headers: record.headers.iter().map(|(k, v)| (k.to_vec(), owned(v))).collect(),
            });
        }
    }
    records
}

fn bytes() -> impl Strategy<Value = Option<Vec<u8>>> {
    proptest::option::of(prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..20),
        (any::<u8>(), 0..5000usize).prop_map(|(byte, times)| vec![byte; times]),
    ])
}

fn headers() -> impl Strategy<Value = Vec<(Vec<u8>, Option<Vec<u8>>)>> {
    proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..9), bytes()), 0..4)
}

/// Records with offsets from 0 on, with gaps.
fn records() -> impl Strategy<Value = Vec<Owned>> {
    let timestamp = prop_oneof![Just(-1), TIME..TIME + 1000, 0..=i64::MAX];
    let record = (0..3i64, timestamp, bytes(), bytes(), headers());
    proptest::collection::vec(record, 1..30).prop_map(|records| {
        let mut next = 0;
        records
            .into_iter()
            .map(|(gap, timestamp, key, value, headers)| {
                let offset = next + gap;
                next = offset + 1;
                Owned { offset, timestamp, key, value, headers }
            })
            .collect()
    })
}

impl Owned {
    fn as_new(&self) -> NewRecord<'_> {
        NewRecord {
            timestamp: self.timestamp,
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: self.headers.iter().map(|(k, v)| (&k[..], v.as_deref())).collect(),
            offset_delta: Some(self.offset as i32),
        }
    }
}

/// A column as Arrow lays it out.
struct Column {
    offsets: Vec<i32>,
    data: Vec<u8>,
    valid: Vec<bool>,
}

impl Column {
    fn of<'a>(cells: impl Iterator<Item = Option<&'a [u8]>>) -> Self {
        let mut column = Self { offsets: vec![0], data: Vec::new(), valid: Vec::new() };
        for cell in cells {
            column.data.extend_from_slice(cell.unwrap_or_default());
            column.offsets.push(column.data.len() as i32);
            column.valid.push(cell.is_some());
        }
        column
    }

    fn as_binary(&self) -> BinaryColumn<'_> {
        BinaryColumn {
            offsets: Offsets::I32(&self.offsets),
            data: &self.data,
            validity: Validity::Bools(&self.valid),
        }
    }
}

fn compression() -> impl Strategy<Value = Compression> {
    prop::sample::select(&Compression::ALL[..])
}

proptest! {
    #[test]
    fn records_are_read_back_as_they_were_given(
        compression in compression(),
        mut records in records(),
        base_offset in 0..i64::MAX - 1000,
        leader_epoch: i32,
        producer in proptest::option::of((0..=i64::MAX, 0..=i16::MAX, 0..=i32::MAX, any::<bool>())),
        horizon in proptest::option::of(0..=i64::MAX),
    ) {
        let (id, epoch, sequence, is_transactional) = producer.unwrap_or((-1, -1, -1, false));
        let fields = BatchFields {
            base_offset,
            partition_leader_epoch: leader_epoch,
            producer_id: id,
            producer_epoch: epoch,
            base_sequence: sequence,
            is_transactional,
            compression,
            delete_horizon_ms: horizon,
            ..BatchFields::default()
        };
        let new: Vec<_> = records.iter().map(Owned::as_new).collect();
        let mut codecs = codecs();
        let batch = build_batch(&fields, &new, &mut codecs).expect("builds");
        for record in &mut records {
            record.offset += base_offset;
        }
        prop_assert_eq!(read(&batch, &mut codecs), records);
        let info = info(&batch);
        prop_assert_eq!(info.partition_leader_epoch, leader_epoch);
        prop_assert_eq!(info.producer_id, id);
        prop_assert_eq!(info.producer_epoch, epoch);
        prop_assert_eq!(info.base_sequence, sequence);
        prop_assert_eq!(info.is_transactional(), is_transactional);
        prop_assert_eq!(info.delete_horizon_ms(), horizon);
        prop_assert_eq!(info.compression(), Ok(compression));
    }

    #[test]
    fn legacy_records_are_read_back_as_they_were_given(
        compression in prop::sample::select(&Compression::ALL[..4]),
        magic in 0..=1i8,
        mut records in records(),
        base_offset in 0..i64::MAX - 1000,
    ) {
        for record in &mut records {
            record.headers.clear();
        }
        // A wrapper at offset 0 counts from 0: the gaps before its only record would be lost.
        let base_offset = base_offset.max(1);
        let fields = LegacyFields { base_offset, compression, ..legacy(magic) };
        let new: Vec<_> = records.iter().map(Owned::as_new).collect();
        let mut codecs = codecs();
        let set = build_legacy(&fields, &new, &mut codecs).expect("builds");
        for record in &mut records {
            record.offset += base_offset;
            if magic == 0 {
                record.timestamp = -1;
            }
        }
        prop_assert_eq!(read(&set, &mut codecs), records);
    }

    #[test]
    fn columns_make_the_batch_that_their_records_make(
        compression in compression(),
        rows in proptest::collection::vec((0..=i64::MAX, bytes(), bytes()), 1..100),
        with_keys: bool,
        log_append_time_ms in proptest::option::of(0..=i64::MAX),
    ) {
        let timestamps: Vec<_> = rows.iter().map(|row| row.0).collect();
        let keys = Column::of(rows.iter().map(|row| row.1.as_deref()));
        let values = Column::of(rows.iter().map(|row| row.2.as_deref()));
        let columns = RecordColumns {
            timestamps: &timestamps,
            keys: with_keys.then(|| keys.as_binary()),
            values: Some(values.as_binary()),
        };
        let new: Vec<_> = rows
            .iter()
            .map(|(timestamp, key, value)| NewRecord {
                timestamp: *timestamp,
                key: key.as_deref().filter(|_| with_keys),
                value: value.as_deref(),
                ..NewRecord::default()
            })
            .collect();
        let fields = BatchFields { compression, log_append_time_ms, ..BatchFields::default() };
        let mut codecs = codecs();
        let from_columns = build_batch_from_columns(&fields, columns, &mut codecs).expect("builds");
        prop_assert_eq!(from_columns, build_batch(&fields, &new, &mut codecs).expect("builds"));
    }
}
