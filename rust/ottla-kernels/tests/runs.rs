//! Runs of batches: at every level the same answer as the naive walk, whatever the bytes are.

mod common;

use common::{Guarded, Random, SHAPES, Shape, batch, put_varint, records, seal};
use ottla_kernels::copies::{BinaryValues, HeaderPlace, Room};
use ottla_kernels::numbers::Row;
use ottla_kernels::views::Nulls;
use ottla_kernels::{
    BatchHeader, CopiedParts, Copies, EachBatch, EachRecord, Level, Nothing, Numbers, Record, Run,
    Timestamps, Views, check_run, crc_only_run, crc32c, is_right, run, walk, walk_payload,
};

/// The oracle: ordinary headers, naive CRC, naive walk.
fn expected(data: &[u8]) -> (Run, Vec<(BatchHeader, Vec<Record>)>) {
    let (mut totals, mut batches) = (Run::default(), vec![]);
    while let Some(header) =
        BatchHeader::parse(data, totals.position).filter(BatchHeader::is_ordinary)
    {
        let body = &data[header.position + 21..header.end];
        if crc32c::naive(body) != header.crc {
            break;
        }
        let Some(records) = walk::naive(&header, data, header.records_position(), header.end)
        else {
            break;
        };
        totals = Run {
            position: header.end,
            batches: totals.batches + 1,
            records: totals.records + records.len() as u64,
        };
        batches.push((header, records));
    }
    (totals, batches)
}

fn rows(batches: &[(BatchHeader, Vec<Record>)]) -> Vec<Row> {
    let row = |header: &BatchHeader, index: usize, record: &Record| Row {
        offset: header.base_offset + index as i64,
        timestamp: if header.is_log_append_time() {
            header.max_timestamp
        } else {
            header.base_timestamp + record.timestamp_delta
        },
        key_position: record.key_position as u32,
        key_length: record.key_length,
        value_position: record.value_position as u32,
        value_length: record.value_length,
    };
    let of_batch = |(header, records): &(BatchHeader, Vec<Record>)| {
        records
            .iter()
            .enumerate()
            .map(|(index, record)| row(header, index, record))
            .collect::<Vec<_>>()
    };
    batches.iter().flat_map(of_batch).collect()
}

fn rows_of_numbers(numbers: &Numbers) -> Vec<Row> {
    (0..numbers.row_count())
        .map(|index| Row {
            offset: numbers.offsets()[index],
            timestamp: numbers.timestamps()[index],
            key_position: numbers.key_positions()[index],
            key_length: numbers.key_lengths()[index],
            value_position: numbers.value_positions()[index],
            value_length: numbers.value_lengths()[index],
        })
        .collect()
}

/// The view that Arrow's layout wants.
fn plain_view(data: &[u8], position: u32, length: i32) -> [u8; 16] {
    let (from, size) = (position as usize, length.max(0) as usize);
    let mut view = [0; 16];
    view[..4].copy_from_slice(&(size as u32).to_le_bytes());
    if size <= 12 {
        view[4..4 + size].copy_from_slice(&data[from..from + size]);
    } else {
        view[4..8].copy_from_slice(&data[from..from + 4]);
        view[12..].copy_from_slice(&position.to_le_bytes());
    }
    view
}

fn plain_nulls(lengths: impl Iterator<Item = i32>) -> Nulls {
    let lengths: Vec<i32> = lengths.collect();
    let count = lengths.iter().filter(|length| **length < 0).count();
    let mut bits = vec![0; lengths.len().div_ceil(8)];
    for (index, _) in lengths.iter().enumerate().filter(|(_, length)| **length >= 0) {
        bits[index / 8] |= 1 << (index % 8);
    }
    Nulls { count, validity: (count > 0).then_some(bits) }
}

fn assert_views(data: &[u8], views: Views, rows: &[Row], context: &str) {
    let views = views.finish();
    assert_eq!(views.row_count, rows.len(), "{context}");
    let numbers = |of: fn(&Row) -> i64| {
        rows.iter().flat_map(|row| of(row).to_le_bytes()).collect::<Vec<u8>>()
    };
    assert_eq!(views.offsets.as_ref(), numbers(|row| row.offset), "{context}: offsets");
    assert_eq!(views.timestamps.as_ref(), numbers(|row| row.timestamp), "{context}: timestamps");
    let keys: Vec<u8> =
        rows.iter().flat_map(|row| plain_view(data, row.key_position, row.key_length)).collect();
    let values: Vec<u8> = rows
        .iter()
        .flat_map(|row| plain_view(data, row.value_position, row.value_length))
        .collect();
    assert!(views.keys.as_ref() == keys, "{context}: keys");
    assert!(views.values.as_ref() == values, "{context}: values");
    assert_eq!(views.key_nulls, plain_nulls(rows.iter().map(|row| row.key_length)), "{context}");
    assert_eq!(
        views.value_nulls,
        plain_nulls(rows.iter().map(|row| row.value_length)),
        "{context}"
    );
}

/// What [`Copies`] has, value by value.
fn plain_values(data: &[u8], parts: impl Iterator<Item = (u32, i32)>) -> BinaryValues {
    let mut values = BinaryValues { ends: vec![0], data: vec![], nulls: Nulls::default() };
    let mut lengths = vec![];
    for (position, length) in parts {
        let from = position as usize;
        values.data.extend_from_slice(&data[from..from + length.max(0) as usize]);
        values.ends.push(values.data.len() as i32);
        lengths.push(length);
    }
    values.nulls = plain_nulls(lengths.into_iter());
    values
}

fn assert_copies(data: &[u8], level: Level, wanted: Run, rows: &[Row], places: &[HeaderPlace]) {
    for (keys, values) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut copies = Copies::new(CopiedParts { keys, values }, Room::default());
        assert_eq!(run(level, data, 0, &mut copies), wanted, "{level}, copies");
        assert!(copies.headers() == places, "{level}: headers");
        let mut columns = copies.finish();
        let nothing = || plain_values(data, std::iter::empty());
        let of_keys = rows.iter().map(|row| (row.key_position, row.key_length));
        let of_values = rows.iter().map(|row| (row.value_position, row.value_length));
        let keys = if keys { plain_values(data, of_keys) } else { nothing() };
        let values = if values { plain_values(data, of_values) } else { nothing() };
        assert!(columns.keys == keys, "{level}: keys");
        assert!(columns.values == values, "{level}: values");
        columns.offsets.extend(columns.timestamps);
        let numbers = rows.iter().map(|row| row.offset).chain(rows.iter().map(|row| row.timestamp));
        assert!(columns.offsets == numbers.collect::<Vec<i64>>(), "{level}: numbers");
    }
}

/// The least time delta, if it is below 0, and the first record with the header's maximum.
fn plain_timestamps(header: &BatchHeader, records: &[Record]) -> (i64, Option<usize>) {
    let deltas = || records.iter().map(|record| record.timestamp_delta);
    let largest = (!header.is_log_append_time())
        .then(|| header.max_timestamp - header.base_timestamp)
        .and_then(|largest| deltas().position(|delta| delta == largest));
    (deltas().fold(0, i64::min), largest)
}

/// Every level and target gives what the oracle gives, on data that ends where memory ends.
fn assert_runs_as_expected(memory: &mut Guarded, data: &[u8]) -> Run {
    let data = &*memory.at_end(data);
    let (wanted, batches) = expected(data);
    let rows = rows(&batches);
    let place = |record: &Record| HeaderPlace {
        position: record.headers_position as u32,
        end: record.end as u32,
    };
    let places: Vec<_> = batches.iter().flat_map(|(_, records)| records).map(place).collect();
    for &level in Level::available() {
        assert_eq!(run(level, data, 0, &mut Nothing), wanted, "{level}");
        assert_eq!(check_run(level, data, 0), wanted, "{level}");
        let mut numbers = Numbers::for_data(data);
        let mut headers = vec![];
        let found = run(
            level,
            data,
            0,
            &mut EachBatch::new(&mut numbers, |header, _| headers.push(*header)),
        );
        assert_eq!(found, wanted, "{level}, numbers");
        assert_eq!(
            headers,
            batches.iter().map(|(header, _)| *header).collect::<Vec<_>>(),
            "{level}, headers"
        );
        assert!(rows_of_numbers(&numbers) == rows, "{level}, numbers");
        let mut views = Views::new(0);
        assert_eq!(run(level, data, 0, &mut views), wanted, "{level}, views");
        assert_views(data, views, &rows, level.name());
        assert_copies(data, level, wanted, &rows, &places);
        let mut timestamps = Timestamps::default();
        assert_eq!(run(level, data, 0, &mut timestamps), wanted, "{level}, timestamps");
        if let Some((header, records)) = batches.last().filter(|_| wanted.position == data.len()) {
            let found = (timestamps.min_delta(), timestamps.index_of_max());
            assert_eq!(found, plain_timestamps(header, records), "{level}, timestamps");
        }
        for (header, records) in &batches {
            assert!(is_right(level, data, header, &mut timestamps), "{level}, one batch");
            let found = (timestamps.min_delta(), timestamps.index_of_max());
            assert_eq!(found, plain_timestamps(header, records), "{level}, one batch");
        }
        if let Some(header) = BatchHeader::parse(data, wanted.position) {
            assert!(!is_right(level, data, &header, &mut Nothing), "{level}, one batch");
        }
    }
    wanted
}

#[test]
fn ordinary_batches_are_accepted_with_the_records_of_the_naive_walk() {
    let mut memory = Guarded::new(4 << 20);
    let mut random = Random::new(11);
    let rounds = if cfg!(debug_assertions) { 4 } else { 40 };
    for round in 0..rounds {
        for shape in SHAPES {
            if shape.records > 1000 && round > 1 {
                continue;
            }
            let mut data = batch(&mut random, shape, 5);
            for _ in 0..random.below(4) {
                let more = SHAPES[random.below(6) as usize];
                data.extend(batch(&mut random, more, 1 << 40));
            }
            let found = assert_runs_as_expected(&mut memory, &data);
            assert_eq!(
                found.position,
                data.len(),
                "the generator makes ordinary batches: {shape:?}"
            );
        }
    }
}

#[test]
fn a_run_stops_before_every_cut_and_every_damaged_byte_as_the_naive_walk_does() {
    let mut memory = Guarded::new(1 << 20);
    let mut random = Random::new(13);
    let most = if cfg!(debug_assertions) { 300 } else { 2000 };
    for shape in &SHAPES[..8] {
        let data = batch(&mut random, *shape, 0);
        for size in 0..data.len().min(most) {
            assert_runs_as_expected(&mut memory, &data[..size]);
        }
        for position in 0..data.len().min(most) {
            let mut damaged = data.clone();
            damaged[position] ^= 1 << random.below(8);
            assert_runs_as_expected(&mut memory, &damaged);
            seal(&mut damaged);
            assert_runs_as_expected(&mut memory, &damaged);
            damaged[position] = random.next() as u8;
            seal(&mut damaged);
            assert_runs_as_expected(&mut memory, &damaged);
        }
    }
}

#[test]
fn random_bytes_under_a_right_crc_are_judged_as_by_the_naive_walk() {
    let mut memory = Guarded::new(1 << 16);
    let mut random = Random::new(17);
    let mut accepted = 0;
    for _ in 0..if cfg!(debug_assertions) { 2000 } else { 20_000 } {
        let most = [12, 80][random.below(2) as usize];
        let size = 68 + random.below(most) as usize;
        let mut data = random.bytes(size);
        // Small numbers make plausible records.
        let mask = [0xff, 0x1f, 0x03][random.below(3) as usize];
        data[61..].iter_mut().for_each(|byte| *byte &= mask);
        let count = 1 + random.below(3) as u32;
        data[0..8].fill(0);
        data[8..12].copy_from_slice(&((size - 12) as u32).to_be_bytes());
        data[12..16].fill(0);
        data[16] = 2;
        data[21..23].copy_from_slice(&[0, 8]);
        data[23..27].copy_from_slice(&(count - 1).to_be_bytes());
        data[43..57].fill(0xff);
        data[57..61].copy_from_slice(&count.to_be_bytes());
        // A length and an offset delta that fit, so that the walk comes further than the first
        // varints.
        if count == 1 && size < 62 + 64 {
            data[61..65].copy_from_slice(&[((size - 62) << 1) as u8, 0, 0, 0]);
        }
        seal(&mut data);
        accepted += assert_runs_as_expected(&mut memory, &data).batches;
    }
    assert!(accepted > 0, "some random records are right");
}

/// A batch of one record whose parts are given as bytes.
fn batch_of(record: &[&[u8]]) -> Vec<u8> {
    let mut random = Random::new(1);
    let mut data =
        batch(&mut random, Shape { records: 1, key: 0, value: 0, headers: 0, odd: false }, 0);
    data.truncate(61);
    data[22] = 8;
    data.extend(record.concat());
    let size = (data.len() - 12) as u32;
    data[8..12].copy_from_slice(&size.to_be_bytes());
    seal(&mut data);
    data
}

#[test]
fn a_record_against_one_rule_is_refused_and_its_neighbour_is_not() {
    // length, attributes, time delta, offset delta, key length, value length, header count
    let right: [&[u8]; 7] = [&[12], &[0], &[0], &[0], &[1], &[1], &[0]];
    let mut memory = Guarded::new(4096);
    let mut judge = |changes: &[(usize, &'static [u8])]| {
        let mut record = right;
        for (part, bytes) in changes {
            record[*part] = bytes;
        }
        assert_runs_as_expected(&mut memory, &batch_of(&record)).batches == 1
    };
    assert!(judge(&[]));
    assert!(judge(&[(1, &[0x7f])]), "no bit of a record's attributes is defined");
    assert!(!judge(&[(1, &[0x80])]), "attributes that some clients take for a longer varint");
    assert!(judge(&[(0, &[18]), (6, &[2, 2, b'k', 1])]), "a header");
    assert!(judge(&[(0, &[20]), (6, &[2, 4, 0xc3, 0xa9, 1])]), "a header key beyond ASCII");
    assert!(!judge(&[(0, &[18]), (6, &[2, 2, 0xff, 1])]), "a header key that is no UTF-8");
    assert!(!judge(&[(0, &[18]), (6, &[2, 40, b'k', 1])]), "a header key beyond the record");
    assert!(judge(&[(0, &[0x8c, 0])]), "a record length longer than it need be");
    assert!(judge(&[(0, &[14]), (3, &[0x80, 0])]), "an offset delta longer than it need be");
    assert!(
        judge(&[(0, &[20]), (3, &[0x80, 0x80, 0x80, 0x80, 0x70])]),
        "surplus bits of the fifth byte"
    );
    assert!(judge(&[(0, &[14]), (4, &[0x81, 0])]), "a null key longer than it need be");
    assert!(!judge(&[(0, &[10])]), "a length one too small");
    assert!(!judge(&[(0, &[14])]), "a length one too large");
    assert!(!judge(&[(0, &[13])]), "a negative length");
    assert!(!judge(&[(3, &[2])]), "an offset delta that is not the index");
    assert!(!judge(&[(3, &[1])]), "a negative offset delta");
    assert!(!judge(&[(4, &[3])]), "a key length below -1");
    assert!(!judge(&[(5, &[3])]), "a value length below -1");
    assert!(!judge(&[(4, &[8])]), "a key beyond the record");
    assert!(!judge(&[(5, &[8])]), "a value beyond the record");
    assert!(!judge(&[(6, &[1])]), "a negative header count");
    assert!(!judge(&[(6, &[2])]), "a header that is not there");
    assert!(!judge(&[(0, &[16]), (6, &[2, 1, 1])]), "a null header key");
    assert!(judge(&[(0, &[16]), (6, &[2, 0, 1])]), "an empty header key and a null header value");
    assert!(!judge(&[(0, &[16]), (6, &[2, 0, 3])]), "a header value length below -1");
    assert!(
        !judge(&[(0, &[22]), (3, &[0x80, 0x80, 0x80, 0x80, 0x80, 0])]),
        "a varint of six bytes"
    );
    assert!(!judge(&[(6, &[0, 0])]), "a byte after the last record");
}

#[test]
fn a_header_key_that_is_no_text_is_found_wherever_it_stands() {
    let mut memory = Guarded::new(4096);
    for count in 1..=6 {
        for key_size in [1, 6, 14, 17, 40] {
            let mut header = vec![key_size << 1];
            header.resize(1 + usize::from(key_size), b'k');
            header.extend([4, b'v', b'v']);
            let mut headers = vec![count << 1];
            headers.extend(header.repeat(count.into()));
            let mut judge = |headers: &[u8]| {
                let mut length = vec![];
                put_varint(&mut length, 5 + headers.len() as i64, 0);
                let data = batch_of(&[&length, &[0, 0, 0, 1, 1], headers]);
                assert_runs_as_expected(&mut memory, &data).batches == 1
            };
            assert!(judge(&headers));
            for place in 1..headers.len() {
                let mut damaged = headers.clone();
                let part = damaged[place];
                damaged[place] = 0xff;
                assert_eq!(judge(&damaged), part == b'v', "{count} of {key_size} bytes, {place}");
            }
        }
    }
}

#[test]
fn time_deltas_are_held_against_the_header_for_create_time_only() {
    let mut memory = Guarded::new(4096);
    for (base, max, delta, attributes, right) in [
        (0i64, 0i64, 0i64, 0u8, true),
        (0, 5, 5, 0, true),
        (0, 5, 6, 0, false),
        (0, 5, -6, 0, true),
        (-1, -1, 0, 0, true),
        (-2, -1, 0, 0, false),
        (5, 4, -1, 0, false),
        (5, 4, 1 << 50, 8, true),
        (-1, 0, i64::MIN, 0, false),
        (0, i64::MAX, i64::MAX, 0, true),
        (0, i64::MAX, i64::MIN + 1, 0, true),
        (-1, i64::MAX, 0, 0, false),
    ] {
        let mut varint = vec![];
        common::put_varint(&mut varint, delta, 0);
        let length = [((5 + varint.len()) << 1) as u8];
        let mut data = batch_of(&[&length, &[0], &varint, &[0, 1, 1, 0]]);
        data[22] = attributes;
        data[27..35].copy_from_slice(&base.to_be_bytes());
        data[35..43].copy_from_slice(&max.to_be_bytes());
        seal(&mut data);
        let found = assert_runs_as_expected(&mut memory, &data);
        assert_eq!(
            found.batches == 1,
            right,
            "base {base}, max {max}, delta {delta}, attributes {attributes}"
        );
    }
}

#[test]
fn a_header_of_no_batch_in_the_data_is_of_none_that_is_right() {
    let data = batch(&mut Random::new(23), SHAPES[3], 7);
    let header = BatchHeader::parse(&data, 0).unwrap();
    let moved = |position, end| BatchHeader { position, end, ..header };
    for &level in Level::available() {
        assert!(is_right(level, &data, &header, &mut Nothing), "{level}");
        for header in [
            moved(0, data.len() + 1),
            moved(0, usize::MAX),
            moved(data.len() - 60, data.len()),
            moved(data.len(), data.len()),
            moved(data.len() + 1, data.len()),
            moved(usize::MAX - 60, data.len()),
            moved(usize::MAX, usize::MAX),
        ] {
            assert!(!is_right(level, &data, &header, &mut Nothing), "{level}, {header:?}");
        }
    }
}

#[test]
fn a_header_that_is_not_ordinary_stops_a_run() {
    let mut random = Random::new(19);
    let data = batch(&mut random, SHAPES[3], 7);
    let changes: [(&str, usize, &[u8]); 18] = [
        ("negative base offset", 0, &(-1i64).to_be_bytes()),
        ("base offset that overflows", 0, &(i64::MAX - 68).to_be_bytes()),
        ("batch length too small", 8, &48u32.to_be_bytes()),
        ("batch length negative", 8, &(-1i32).to_be_bytes()),
        ("batch length beyond the data", 8, &((data.len() - 11) as u32).to_be_bytes()),
        ("leader epoch below -1", 12, &(-2i32).to_be_bytes()),
        ("magic 1", 16, &[1]),
        ("another CRC", 17, &[0, 1, 2, 3]),
        ("attributes above the low byte", 21, &[1]),
        ("compressed", 22, &[1]),
        ("control batch", 22, &[32]),
        ("delete horizon", 22, &[64]),
        ("undefined attribute", 22, &[128]),
        ("last offset delta that is not the last index", 23, &70u32.to_be_bytes()),
        ("transaction without a producer", 22, &[16]),
        ("producer id below -1", 43, &(-2i64).to_be_bytes()),
        ("no records", 57, &0u32.to_be_bytes()),
        ("more records than the bytes allow", 57, &u32::to_be_bytes(i32::MAX as u32)),
    ];
    for (what, position, bytes) in changes {
        let mut batch = data.clone();
        batch[22] = 0;
        batch[43..57].fill(0xff);
        batch[position..position + bytes.len()].copy_from_slice(bytes);
        if what == "more records than the bytes allow" {
            batch[23..27].copy_from_slice(&(i32::MAX - 1).to_be_bytes());
        }
        if position != 17 {
            seal(&mut batch);
        }
        for &level in Level::available() {
            let found = run(level, &batch, 0, &mut Nothing);
            assert_eq!(found, Run::default(), "{what}, {level}");
        }
    }
}

#[test]
fn a_crc_only_run_takes_whatever_has_a_right_crc_until_told_to_stop() {
    let mut random = Random::new(23);
    let mut compressed = batch(&mut random, SHAPES[0], 0);
    compressed[22] = 4;
    seal(&mut compressed);
    let mut wrong = batch(&mut random, SHAPES[0], 0);
    wrong[30] ^= 1;
    let data = [&batch(&mut random, SHAPES[3], 0)[..], &compressed, &wrong].concat();
    for &level in Level::available() {
        let all = crc_only_run(level, &data, 0, &mut |_| true);
        assert_eq!(
            all,
            Run { position: data.len() - wrong.len(), batches: 2, records: 71 },
            "{level}"
        );
        let first = crc_only_run(level, &data, 0, &mut |header| header.codec() == 0);
        assert_eq!(first.batches, 1, "{level}");
        assert_eq!(crc_only_run(level, &data, all.position, &mut |_| true).batches, 0, "{level}");
        assert_eq!(crc_only_run(level, &data, data.len() + 1, &mut |_| true).batches, 0, "{level}");
    }
}

#[test]
fn a_run_begins_where_it_is_told_to() {
    let mut random = Random::new(29);
    let first = batch(&mut random, SHAPES[3], 0);
    let data = [&first[..], &batch(&mut random, SHAPES[0], 70)].concat();
    for &level in Level::available() {
        let found = run(level, &data, first.len(), &mut Nothing);
        assert_eq!(found, Run { position: data.len(), batches: 1, records: 1 }, "{level}");
        for from in [1, data.len(), data.len() + 1, usize::MAX] {
            assert_eq!(
                run(level, &data, from, &mut Nothing),
                Run { position: from, ..Run::default() },
                "{level}"
            );
        }
    }
}

#[test]
fn a_payload_is_walked_as_the_naive_walk_does_whatever_happens_to_it() {
    let mut memory = Guarded::new(1 << 20);
    let mut random = Random::new(31);
    for shape in &SHAPES[..8] {
        let whole = batch(&mut random, *shape, 3);
        let mut header = BatchHeader::parse(&whole, 0).expect("a whole batch");
        let (payload, max_delta) = records(&mut random, *shape);
        header.max_timestamp = header.base_timestamp + max_delta;
        for cut in 0..payload.len().min(200) {
            for change in 0..4 {
                let mut payload = payload.clone();
                if change == 0 {
                    payload.truncate(payload.len() - cut);
                } else {
                    payload[cut] ^= random.next() as u8 & if cut == 0 { 0 } else { 0xff };
                }
                let payload = &*memory.at_end(&payload);
                let wanted = walk::naive(&header, payload, 0, payload.len());
                for &level in Level::available() {
                    let mut found = vec![];
                    let mut target = EachRecord::new(|index, record| {
                        assert_eq!(index, found.len());
                        found.push(record);
                    });
                    let walked = walk_payload(level, payload, &header, &mut target);
                    assert_eq!(walked.then_some(found), wanted, "{level}, {shape:?}");
                    let mut numbers = Numbers::new(0);
                    assert_eq!(
                        walk_payload(level, payload, &header, &mut numbers),
                        wanted.is_some()
                    );
                    assert_eq!(numbers.row_count(), wanted.as_ref().map_or(0, Vec::len));
                    let parts = CopiedParts { keys: true, values: true };
                    let mut copies = Copies::new(parts, Room::default());
                    copies.push(1, 2, Some(b"key"), None);
                    let walked = walk_payload(level, payload, &header, &mut copies);
                    assert_eq!(walked, wanted.is_some());
                    copies.retain(0, |offset, _| offset != 1);
                    let columns = copies.finish();
                    let records = wanted.iter().flatten();
                    let values = records.map(|r| (r.value_position as u32, r.value_length));
                    assert_eq!(columns.values, plain_values(payload, values), "{level}");
                    let records = wanted.iter().flatten();
                    let keys = records.map(|r| (r.key_position as u32, r.key_length));
                    assert_eq!(columns.keys, plain_values(payload, keys), "{level}");
                    let mut timestamps = Timestamps::default();
                    let walked = walk_payload(level, payload, &header, &mut timestamps);
                    let found = (timestamps.min_delta(), timestamps.index_of_max());
                    let plain = wanted.as_ref().map(|records| plain_timestamps(&header, records));
                    assert_eq!(walked.then_some(found), plain, "{level}, {shape:?}");
                }
            }
        }
    }
}

#[test]
fn a_payload_whose_count_cannot_be_true_is_refused() {
    let mut random = Random::new(37);
    let whole = batch(&mut random, SHAPES[0], 3);
    let mut header = BatchHeader::parse(&whole, 0).expect("a whole batch");
    for &level in Level::available() {
        for count in [i32::MIN, -1, 0, 2, i32::MAX] {
            header.record_count = count;
            assert!(
                !walk_payload(level, &whole[61..75], &header, &mut Numbers::new(0)),
                "{level}, {count}"
            );
        }
        assert!(!walk_payload(level, &[], &header, &mut Nothing), "{level}");
    }
}
