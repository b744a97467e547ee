//! Columns: what can be done with them besides filling them in a run.

mod common;

use common::{Random, SHAPES, batch};
use ottla_kernels::numbers::Row;
use ottla_kernels::{BatchHeader, Level, Numbers, Views, run, walk_payload};

const fn row(offset: i64) -> Row {
    Row {
        offset,
        timestamp: 2,
        key_position: 3,
        key_length: 4,
        value_position: 5,
        value_length: -1,
    }
}

#[test]
fn rows_pushed_between_runs_keep_their_order() {
    let mut random = Random::new(3);
    let data = batch(&mut random, SHAPES[3], 100);
    let mut numbers = Numbers::new(0);
    numbers.push(row(99));
    assert_eq!(run(Level::best(), &data, 0, &mut numbers).records, 70);
    numbers.push(row(170));
    assert_eq!(numbers.offsets(), (99..=170).collect::<Vec<i64>>());
    assert_eq!(numbers.value_lengths()[71], -1);
    numbers.truncate(1);
    assert_eq!(
        (numbers.row_count(), numbers.offsets(), numbers.key_positions()),
        (1, &[99][..], &[3][..])
    );
}

#[test]
fn a_batch_that_is_refused_leaves_no_rows() {
    let mut random = Random::new(5);
    let good = batch(&mut random, SHAPES[3], 0);
    let mut bad = batch(&mut random, SHAPES[3], 70);
    let last = bad.len() - 1;
    bad[last] ^= 1;
    let data = [good, bad].concat();
    for &level in Level::available() {
        let (mut numbers, mut views) = (Numbers::for_data(&data), Views::for_data(&data));
        run(level, &data, 0, &mut numbers);
        run(level, &data, 0, &mut views);
        assert_eq!((numbers.row_count(), views.row_count()), (70, 70), "{level}");
    }
}

#[test]
fn positions_in_a_payload_count_from_where_it_is_said_to_lie() {
    let mut random = Random::new(7);
    let data = batch(&mut random, SHAPES[5], 0);
    let header = BatchHeader::parse(&data, 0).expect("a whole batch");
    let (mut there, mut here) = (Numbers::new(0), Numbers::new(0));
    there.set_position_base(1000 + 61);
    assert!(walk_payload(Level::best(), &data[61..], &header, &mut there));
    run(Level::best(), &data, 0, &mut here);
    let moved =
        |positions: &[u32]| positions.iter().map(|position| position + 1000).collect::<Vec<u32>>();
    assert_eq!(there.key_positions(), moved(here.key_positions()));
    assert_eq!(there.value_positions(), moved(here.value_positions()));
    assert_eq!(there.value_lengths(), here.value_lengths());
}

#[test]
fn long_views_name_the_buffer_they_are_told_to_and_pushed_rows_do_too() {
    let data = b"............a key that is long enough and a value of some length";
    let mut views = Views::new(0);
    views.set_buffer(3, 500);
    let long = Row {
        offset: 1,
        timestamp: 2,
        key_position: 12,
        key_length: 25,
        value_position: 60,
        value_length: 4,
    };
    views.push(data, long);
    views.push(data, Row { key_length: -1, value_length: -1, ..long });
    views.push(data, Row { key_position: 60, key_length: 100, value_position: u32::MAX, ..long });
    let columns = views.finish();
    let expected =
        [&25u32.to_le_bytes()[..], b"a ke", &3u32.to_le_bytes(), &512u32.to_le_bytes()].concat();
    assert_eq!(columns.keys.as_ref()[..16], expected);
    assert_eq!(columns.keys.as_ref()[16..], [0; 32], "null, and outside the data");
    assert_eq!(columns.values.as_ref()[..16], *b"\x04\0\0\0ngth\0\0\0\0\0\0\0\0");
    assert_eq!((columns.key_nulls.count, columns.key_nulls.validity), (1, Some(vec![0b101])));
}

#[test]
fn views_of_a_payload_are_those_of_its_batch_in_another_buffer() {
    let mut random = Random::new(11);
    let data = batch(&mut random, SHAPES[5], 0);
    let header = BatchHeader::parse(&data, 0).expect("a whole batch");
    for &level in Level::available() {
        let (mut there, mut here) = (Views::new(0), Views::new(0));
        there.set_buffer(1, 61);
        assert!(walk_payload(level, &data[61..], &header, &mut there));
        here.set_buffer(1, 0);
        run(level, &data, 0, &mut here);
        let (there, here) = (there.finish(), here.finish());
        assert_eq!(there.keys.as_ref(), here.keys.as_ref(), "{level}");
        assert_eq!(there.values.as_ref(), here.values.as_ref(), "{level}");
        assert_eq!(there.timestamps.as_ref(), here.timestamps.as_ref(), "{level}");
    }
}

#[test]
fn finished_columns_outlive_each_other_and_move_between_threads() {
    let mut views = Views::new(1);
    views.push(b"key", Row { key_position: 0, key_length: 3, ..row(9) });
    let columns = views.finish();
    let offsets = columns.offsets.clone();
    drop(columns);
    // A new block may take the place of a dropped one, but not of one that is still used.
    let mut other = Views::new(1);
    other.push(b"", row(10));
    let read = std::thread::spawn(move || offsets.as_ref().to_vec()).join().expect("no panic");
    assert_eq!(read, 9i64.to_le_bytes());
}

#[test]
fn a_header_that_lies_about_its_count_asks_for_no_more_than_its_bytes_allow() {
    let mut random = Random::new(13);
    let mut data = batch(&mut random, SHAPES[3], 0);
    data[57..61].copy_from_slice(&i32::MAX.to_be_bytes());
    let numbers = Numbers::for_data(&data);
    let addresses = numbers.column_addresses();
    assert!(addresses[1] - addresses[0] <= (data.len() / 7 + 64) * 8);
    assert!(addresses.iter().all(|address| address % 64 == 0));
}
