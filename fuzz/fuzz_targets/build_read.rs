#![no_main]
//! What is built is read back: parse(build(x)) = x, whatever the fields, or a named refusal.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ottla_format::attributes::Compression;
use ottla_format::builder::{
    BatchFields, LegacyFields, NewRecord, build_batch, build_batch_from_columns, build_legacy,
};
use ottla_format::check::{Checker, Level};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use ottla_fuzz::{Owned, records};
use ottla_kernels::{BinaryColumn, Offsets, RecordColumns, Validity};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    magic: u8,
    codec: u8,
    level: Option<i8>,
    base_offset: i64,
    partition_leader_epoch: i32,
    log_append_time_ms: Option<i64>,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    is_transactional: bool,
    is_control: bool,
    delete_horizon_ms: Option<i64>,
    records: Vec<Record<'a>>,
}

#[derive(Arbitrary, Debug)]
struct Record<'a> {
    timestamp: i64,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    headers: Vec<(&'a [u8], Option<&'a [u8]>)>,
    offset_delta: Option<i32>,
}

fuzz_target!(|input: Input| {
    // Highly repetitive records may pass the ratio; everything here is far below the size.
    let limits = Limits { decompressed_ratio: u64::MAX, ..Limits::default() };
    let mut codecs = Codecs::new(limits);
    let new: Vec<_> = input
        .records
        .iter()
        .map(|record| NewRecord {
            timestamp: record.timestamp,
            key: record.key,
            value: record.value,
            headers: record.headers.clone(),
            offset_delta: record.offset_delta,
        })
        .collect();
    if input.magic % 4 < 2 {
        legacy(&input, &new, &mut codecs);
    } else {
        magic_2(&input, &new, &mut codecs);
    }
});

fn codec(input: &Input) -> (Compression, Option<i32>) {
    // The slow levels of lz4 and zstd would be most of the time.
    let codec = Compression::ALL[usize::from(input.codec) % 5];
    (codec, input.level.map(|level| i32::from(level).min(10)))
}

/// What reading must give, where building was possible.
fn expected(input: &Input, timestamp: impl Fn(&Record) -> i64) -> Vec<Owned> {
    let mut next = 0;
    let records = input.records.iter().map(|record| {
        let delta = record.offset_delta.unwrap_or(next);
        next = delta.wrapping_add(1);
        let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        Owned {
            offset: input.base_offset.wrapping_add(i64::from(delta)),
            timestamp: timestamp(record),
            key: owned(record.key),
            value: owned(record.value),
            headers: record.headers.iter().map(|&(k, v)| (k.to_vec(), owned(v))).collect(),
        }
    });
    records.collect()
}

fn magic_2(input: &Input, new: &[NewRecord], codecs: &mut Codecs) {
    let (compression, compression_level) = codec(input);
    let fields = BatchFields {
        base_offset: input.base_offset,
        partition_leader_epoch: input.partition_leader_epoch,
        log_append_time_ms: input.log_append_time_ms,
        producer_id: input.producer_id,
        producer_epoch: input.producer_epoch,
        base_sequence: input.base_sequence,
        is_transactional: input.is_transactional,
        is_control: input.is_control,
        compression,
        compression_level,
        delete_horizon_ms: input.delete_horizon_ms,
    };
    let Ok(batch) = build_batch(&fields, new, codecs) else { return };
    let read = records(&batch, codecs).expect("what is built is read");
    let [(info, read)] = &read[..] else { panic!("{} batches", read.len()) };
    let timestamp = |record: &Record| input.log_append_time_ms.unwrap_or(record.timestamp);
    assert_eq!(*read, expected(input, timestamp));
    assert_eq!(info.base_offset, input.base_offset);
    assert_eq!(info.partition_leader_epoch, input.partition_leader_epoch);
    assert_eq!(info.producer_id, input.producer_id);
    assert_eq!(info.producer_epoch, input.producer_epoch);
    assert_eq!(info.base_sequence, input.base_sequence);
    assert_eq!(info.is_transactional(), input.is_transactional);
    assert_eq!(info.is_control(), input.is_control);
    assert_eq!(info.delete_horizon_ms(), input.delete_horizon_ms);
    let count = Checker::new(Level::Decode, codecs.limits()).check_all(&batch);
    assert_eq!(count, Ok(new.len() as u64));
    columns(&fields, new, &batch, codecs);
}

/// Columns make the same bytes, where the records are what columns can hold.
fn columns(fields: &BatchFields, new: &[NewRecord], batch: &[u8], codecs: &mut Codecs) {
    let is_plain = |(index, record): (usize, &NewRecord)| {
        record.headers.is_empty() && record.offset_delta.is_none_or(|delta| delta == index as i32)
    };
    if fields.delete_horizon_ms.is_some() || !new.iter().enumerate().all(is_plain) {
        return;
    }
    let timestamps: Vec<_> = new.iter().map(|record| record.timestamp).collect();
    let keys = Column::of(new.iter().map(|record| record.key));
    let values = Column::of(new.iter().map(|record| record.value));
    let columns = RecordColumns {
        timestamps: &timestamps,
        keys: Some(keys.as_binary()),
        values: Some(values.as_binary()),
    };
    let built = build_batch_from_columns(fields, columns, codecs).expect("records could be built");
    assert_eq!(built, batch);
}

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

fn legacy(input: &Input, new: &[NewRecord], codecs: &mut Codecs) {
    let (compression, compression_level) = codec(input);
    let magic = (input.magic % 4) as i8;
    let fields = LegacyFields {
        magic,
        // Kafka counts a wrapper at offset 0 from 0, and its own offsets are never negative.
        base_offset: input.base_offset.clamp(1, i64::MAX - (1 << 31)),
        log_append_time_ms: input.log_append_time_ms,
        compression,
        compression_level,
    };
    let Ok(set) = build_legacy(&fields, new, codecs) else { return };
    let read = records(&set, codecs).expect("what is built is read");
    let read: Vec<_> = read.into_iter().flat_map(|(_, records)| records).collect();
    let timestamp = |record: &Record| match input.log_append_time_ms {
        _ if magic == 0 => -1,
        Some(time) => time,
        None => record.timestamp,
    };
    let moved = fields.base_offset.wrapping_sub(input.base_offset);
    let mut expected = expected(input, timestamp);
    for record in &mut expected {
        record.offset = record.offset.wrapping_add(moved);
    }
    assert_eq!(read, expected);
}
