#![no_main]
//! Arbitrary bytes as a buffer of batches: columns hold what a reading record by record gives.

use libfuzzer_sys::fuzz_target;
use ottla_format::batches::Batches;
use ottla_format::check::{Checker, Level};
use ottla_format::columns::{read_numbers, read_views};
use ottla_format::compression::Codecs;
use ottla_fuzz::{Owned, limits, mend_checksums, records};

fuzz_target!(|data: &[u8]| {
    let mut data = data.to_vec();
    mend_checksums(&mut data);
    let expected = records(&data, &mut Codecs::new(limits())).map(|batches| {
        let data_batches = batches.into_iter().filter(|(info, _)| !info.is_control());
        data_batches.flat_map(|(_, records)| records).collect::<Vec<_>>()
    });
    for &kernels in ottla_kernels::Level::available() {
        let mut checker = Checker::with_kernels(Level::Decode, limits(), kernels);
        numbers(&mut checker, &data, expected.as_deref().ok());
        views(&mut checker, &data, expected.as_deref().ok());
    }
});

/// Control batches are stepped over unread.
fn may_read_more(data: &[u8]) -> bool {
    Batches::new(data, 0).any(|info| info.is_ok_and(|info| info.is_control()))
}

fn numbers(checker: &mut Checker, data: &[u8], expected: Option<&[Owned]>) {
    let Ok(read) = read_numbers(checker, data) else {
        assert!(expected.is_none(), "columns refused what records read");
        return;
    };
    let Some(expected) = expected else {
        assert!(may_read_more(data), "columns read what records refused");
        return;
    };
    let (columns, inflated) = (read.columns.numbers(), &read.inflated);
    let part = |position: u32, length: i32| {
        let from = position as usize;
        let bytes = |size: usize| match from.checked_sub(data.len()) {
            Some(from) if size > 0 => &inflated[from..from + size],
            _ => &data[from.min(data.len())..][..size],
        };
        usize::try_from(length).ok().map(|size| bytes(size).to_vec())
    };
    assert_eq!(columns.row_count(), expected.len());
    for (row, record) in expected.iter().enumerate() {
        assert_eq!(columns.offsets()[row], record.offset);
        assert_eq!(columns.timestamps()[row], record.timestamp);
        assert_eq!(part(columns.key_positions()[row], columns.key_lengths()[row]), record.key);
        assert_eq!(
            part(columns.value_positions()[row], columns.value_lengths()[row]),
            record.value
        );
    }
}

fn views(checker: &mut Checker, data: &[u8], expected: Option<&[Owned]>) {
    let Ok(read) = read_views(checker, data) else {
        assert!(expected.is_none(), "columns refused what records read");
        return;
    };
    let Some(expected) = expected else { return };
    let (columns, inflated) = (read.columns.finish(), read.inflated);
    assert_eq!(columns.row_count, expected.len());
    let number = |column: &[u8], row: usize| {
        i64::from_ne_bytes(column[8 * row..8 * row + 8].try_into().expect("eight bytes"))
    };
    let is_valid = |validity: &Option<Vec<u8>>, row: usize| {
        validity.as_ref().is_none_or(|bits| bits[row / 8] >> (row % 8) & 1 != 0)
    };
    let view = |column: &[u8], row: usize| {
        let view = &column[16 * row..16 * row + 16];
        let word = |at: usize| {
            u32::from_le_bytes(view[at..at + 4].try_into().expect("four bytes")) as usize
        };
        let size = word(0);
        if size <= 12 {
            assert!(view[4 + size..].iter().all(|&byte| byte == 0), "bytes behind a short view");
            return view[4..4 + size].to_vec();
        }
        let bytes = &[data, &inflated[..]][word(8)][word(12)..][..size];
        assert_eq!(view[4..8], bytes[..4]);
        bytes.to_vec()
    };
    for (row, record) in expected.iter().enumerate() {
        assert_eq!(number(columns.offsets.as_ref(), row), record.offset);
        assert_eq!(number(columns.timestamps.as_ref(), row), record.timestamp);
        let part = |column: &[u8], validity| is_valid(validity, row).then(|| view(column, row));
        assert_eq!(part(columns.keys.as_ref(), &columns.key_nulls.validity), record.key);
        assert_eq!(part(columns.values.as_ref(), &columns.value_nulls.validity), record.value);
    }
}
