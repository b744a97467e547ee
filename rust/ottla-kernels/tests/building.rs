//! Columns to records: every level writes the same bytes, and they read back as what was given.

mod common;

use common::{Guarded, Random};
use ottla_kernels::build::BuildError;
use ottla_kernels::{
    BatchHeader, BinaryColumn, EachRecord, Level, Offsets, RecordColumns, RecordsPlan, Validity,
    walk_payload,
};

struct Made {
    offsets: Vec<i32>,
    long_offsets: Vec<i64>,
    data: Vec<u8>,
    valid: Vec<bool>,
    bits: Vec<u8>,
}

const FIRST_BIT: usize = 3;

fn column(random: &mut Random, count: usize, longest: u64) -> Made {
    let (mut offsets, mut data) = (vec![0], vec![]);
    for _ in 0..count {
        let size = random.below(longest) as usize;
        data.extend(random.bytes(size));
        offsets.push(data.len() as i32);
    }
    let valid: Vec<bool> = (0..count).map(|_| random.below(5) > 0).collect();
    let mut bits = vec![0; (FIRST_BIT + count).div_ceil(8)];
    for index in (0..count).filter(|index| valid[*index]) {
        bits[(FIRST_BIT + index) / 8] |= 1 << ((FIRST_BIT + index) % 8);
    }
    let long_offsets = offsets.iter().map(|offset| i64::from(*offset)).collect();
    Made { offsets, long_offsets, data, valid, bits }
}

fn header(timestamps: &[i64], size: usize) -> BatchHeader {
    BatchHeader {
        position: 0,
        end: size,
        base_offset: 0,
        partition_leader_epoch: -1,
        crc: 0,
        attributes: 8,
        last_offset_delta: timestamps.len() as i32 - 1,
        base_timestamp: timestamps[0],
        max_timestamp: 0,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: timestamps.len() as i32,
    }
}

#[test]
fn every_level_writes_the_same_records_and_they_read_back() {
    let mut random = Random::new(19);
    for round in 0..if cfg!(debug_assertions) { 60 } else { 400 } {
        let count = 1 + random.below(if round % 50 == 0 { 10_000 } else { 80 }) as usize;
        let longest = [4, 70, 300, 3000][random.below(if count > 1000 { 2 } else { 4 }) as usize];
        let timestamps: Vec<i64> = (0..count)
            .map(|index| match random.below(if round % 7 == 0 { 20 } else { 3 }) {
                3 => random.next() as i64 >> 3,
                4 => -5,
                _ => 1_700_000_000_000 + index as i64,
            })
            .collect();
        let (keys, values) =
            (column(&mut random, count, longest), column(&mut random, count, longest));
        let (mut key_memory, mut value_memory) =
            (Guarded::new(keys.data.len()), Guarded::new(values.data.len()));
        let validity = match round % 3 {
            0 => Validity::All,
            1 => Validity::Bools(&keys.valid),
            _ => Validity::Bitmap { bits: &keys.bits, first_bit: FIRST_BIT },
        };
        let key_offsets = if round % 2 == 0 {
            Offsets::I32(&keys.offsets)
        } else {
            Offsets::I64(&keys.long_offsets)
        };
        let value_offsets = if round % 5 == 0 {
            Offsets::I64(&values.long_offsets)
        } else {
            Offsets::I32(&values.offsets)
        };
        let columns = RecordColumns {
            timestamps: &timestamps,
            keys: Some(BinaryColumn {
                offsets: key_offsets,
                data: key_memory.at_end(&keys.data),
                validity,
            }),
            values: (round % 4 != 0).then_some(BinaryColumn {
                offsets: value_offsets,
                data: value_memory.at_end(&values.data),
                validity: Validity::All,
            }),
        };
        let mut written: Option<Vec<u8>> = None;
        for &level in Level::available() {
            let plan = RecordsPlan::new(level, columns).expect("columns that fit");
            let mut memory = Guarded::new(plan.size());
            let records = memory.at_end(&vec![0xaa; plan.size()]);
            plan.write(records);
            let first = written.get_or_insert_with(|| records.to_vec());
            assert!(*records == first[..], "{level}, round {round}");
        }
        let written = written.expect("at least one level");
        let mut index = 0;
        let mut target = EachRecord::new(|_, record: ottla_kernels::Record| {
            assert_eq!(record.timestamp_delta, timestamps[index].wrapping_sub(timestamps[0]));
            let part = |position: usize, length: i32| {
                (length >= 0).then(|| &written[position..][..length as usize])
            };
            let value_of = |made: &Made| {
                made.data[made.offsets[index] as usize..made.offsets[index + 1] as usize].to_vec()
            };
            let key = (round % 3 == 0 || keys.valid[index]).then(|| value_of(&keys));
            let value = (round % 4 != 0).then(|| value_of(&values));
            assert_eq!(part(record.key_position, record.key_length), key.as_deref());
            assert_eq!(part(record.value_position, record.value_length), value.as_deref());
            index += 1;
        });
        assert!(walk_payload(
            Level::Portable,
            &written,
            &header(&timestamps, written.len()),
            &mut target
        ));
        assert_eq!(index, count);
    }
}

#[test]
fn columns_that_do_not_fit_are_refused_by_kind() {
    fn column<'a>(offsets: &'a [i32], data: &'a [u8], validity: Validity<'a>) -> BinaryColumn<'a> {
        BinaryColumn { offsets: Offsets::I32(offsets), data, validity }
    }
    fn plan(timestamps: &[i64], values: Option<BinaryColumn>) -> Result<usize, BuildError> {
        RecordsPlan::new(Level::best(), RecordColumns { timestamps, keys: None, values })
            .map(|plan| plan.size())
    }
    assert_eq!(plan(&[], None), Err(BuildError::RecordCount { count: 0 }));
    assert_eq!(
        plan(&[1, 2], Some(column(&[0, 1], b"a", Validity::All))),
        Err(BuildError::ColumnLength)
    );
    assert_eq!(
        plan(&[1], Some(column(&[0, 1], b"a", Validity::Bools(&[])))),
        Err(BuildError::ColumnLength)
    );
    let bits = Validity::Bitmap { bits: &[1], first_bit: 8 };
    assert_eq!(plan(&[1], Some(column(&[0, 1], b"a", bits))), Err(BuildError::ColumnLength));
    let bits = Validity::Bitmap { bits: &[1], first_bit: usize::MAX };
    assert_eq!(plan(&[1], Some(column(&[0, 1], b"a", bits))), Err(BuildError::ColumnLength));
    for (offsets, index) in [([-1, 0, 1], 0), ([0, 2, 1], 2), ([0, 1, 3], 2), ([0, 9, 1], 1)] {
        let found = plan(&[1, 2], Some(column(&offsets, b"ab", Validity::All)));
        assert_eq!(found, Err(BuildError::Offset { index }), "{offsets:?}");
    }
    assert_eq!(plan(&[1, 2], Some(column(&[0, 1, 2], b"ab", Validity::All))), Ok(16));
}
