//! Times the kernels of every level on generated batches, beside a bare read of the same bytes.
//!
//! ```text
//! race [MEBIBYTES] [ROUNDS] [CANDIDATE] [SHAPE]   ns a record and GB/s, for names that contain
//!                                                 the given text; in every round each candidate
//!                                                 runs once, in turn
//! race callgrind KERNEL [LEVEL [RUNS [SHAPE]]]    a small fixed workload, for counting instructions
//! ```
//!
//! KERNEL is one of crc, check, timestamps, numbers, views, payload, build. Valgrind has no AVX-512:
//! there, name a lower level.

#![allow(clippy::print_stdout, reason = "the table is what it is for")]

use ottla_kernels::{
    BatchHeader, BinaryColumn, Level, Nothing, Numbers, Offsets, RecordColumns, RecordsPlan, Run,
    Timestamps, Validity, Views, check_run, crc_only_run, run, walk_payload,
};
use std::hint::black_box;
use std::process::ExitCode;

/// What the records of a buffer are like: the values have `value` bytes, plus or minus half.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    key: usize,
    value: u64,
    headers: usize,
    records_a_batch: usize,
}

const SHAPES: [Shape; 6] = [
    Shape { name: "100 B x 1000", key: 16, value: 100, headers: 0, records_a_batch: 1000 },
    Shape { name: "100 B alone in its batch", key: 16, value: 100, headers: 0, records_a_batch: 1 },
    Shape {
        name: "100 B + 4 headers x 1000",
        key: 16,
        value: 100,
        headers: 4,
        records_a_batch: 1000,
    },
    Shape {
        name: "100 B, keys of 80 B x 1000",
        key: 80,
        value: 100,
        headers: 0,
        records_a_batch: 1000,
    },
    Shape { name: "1 KiB x 1000", key: 16, value: 1024, headers: 0, records_a_batch: 1000 },
    Shape { name: "10 KiB x 100", key: 16, value: 10_240, headers: 0, records_a_batch: 100 },
];

const BASE_TIMESTAMP: i64 = 1_700_000_000_000;

/// Batches, and the columns they were made of (without headers).
struct Data {
    batches: Vec<u8>,
    columns: Columns,
}

#[derive(Default)]
struct Columns {
    timestamps: Vec<i64>,
    key_offsets: Vec<i32>,
    keys: Vec<u8>,
    value_offsets: Vec<i32>,
    values: Vec<u8>,
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn put_varint(to: &mut Vec<u8>, value: usize) {
    let mut rest = value << 1;
    while rest > 0x7f {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

fn put_part(to: &mut Vec<u8>, part: &[u8]) {
    put_varint(to, part.len());
    to.extend_from_slice(part);
}

impl Data {
    fn new(shape: Shape, size: usize) -> Data {
        let mut state = 1;
        let mut columns =
            Columns { key_offsets: vec![0], value_offsets: vec![0], ..Columns::default() };
        let mut batches = vec![];
        while batches.len() < size {
            let (mut records, mut time) = (vec![], 0);
            for index in 0..shape.records_a_batch {
                time += (random(&mut state) % 3) as usize;
                let key = format!("{:0size$}", random(&mut state), size = shape.key);
                let value =
                    vec![b'v'; (shape.value / 2 + random(&mut state) % (shape.value + 1)) as usize];
                let mut record = vec![0];
                put_varint(&mut record, time);
                put_varint(&mut record, index);
                put_part(&mut record, key.as_bytes());
                put_part(&mut record, &value);
                put_varint(&mut record, shape.headers);
                for _ in 0..shape.headers {
                    put_part(&mut record, b"trace-id");
                    put_part(&mut record, b"0123456789abcdef");
                }
                put_part(&mut records, &record);
                columns.timestamps.push(BASE_TIMESTAMP + time as i64);
                columns.keys.extend_from_slice(key.as_bytes());
                columns.key_offsets.push(columns.keys.len() as i32);
                columns.values.extend_from_slice(&value);
                columns.value_offsets.push(columns.values.len() as i32);
            }
            put_batch(&mut batches, shape.records_a_batch, time as i64, &records);
        }
        Data { batches, columns }
    }

    fn record_columns(&self) -> RecordColumns<'_> {
        let column = |offsets, data| BinaryColumn {
            offsets: Offsets::I32(offsets),
            data,
            validity: Validity::All,
        };
        RecordColumns {
            timestamps: &self.columns.timestamps,
            keys: Some(column(&self.columns.key_offsets, &self.columns.keys)),
            values: Some(column(&self.columns.value_offsets, &self.columns.values)),
        }
    }
}

fn put_batch(to: &mut Vec<u8>, count: usize, max_delta: i64, records: &[u8]) {
    let mut body = vec![0, 0];
    body.extend((count as u32 - 1).to_be_bytes());
    body.extend(BASE_TIMESTAMP.to_be_bytes());
    body.extend((BASE_TIMESTAMP + max_delta).to_be_bytes());
    body.extend([0xff; 14]);
    body.extend((count as u32).to_be_bytes());
    body.extend_from_slice(records);
    to.extend(0i64.to_be_bytes());
    to.extend((body.len() as u32 + 9).to_be_bytes());
    to.extend([0, 0, 0, 0, 2]);
    to.extend(ottla_kernels::crc32c(&body).to_be_bytes());
    to.extend(body);
}

const KERNELS: [&str; 7] = ["crc", "check", "timestamps", "numbers", "views", "payload", "build"];

/// Runs one kernel over all of the data.
fn run_kernel(kernel: &str, level: Level, data: &Data, room: &mut [u8]) {
    let whole = |found: Run| assert_eq!(found.position, data.batches.len(), "{kernel} at {level}");
    match kernel {
        "crc" => whole(crc_only_run(level, &data.batches, 0, &mut |_| true)),
        "check" => whole(check_run(level, &data.batches, 0)),
        "timestamps" => {
            let mut timestamps = Timestamps::default();
            whole(run(level, &data.batches, 0, &mut timestamps));
            black_box(timestamps);
        }
        "numbers" => {
            let mut numbers = Numbers::for_data(&data.batches);
            whole(run(level, &data.batches, 0, &mut numbers));
            black_box(&numbers);
        }
        "views" => {
            let mut views = Views::for_data(&data.batches);
            whole(run(level, &data.batches, 0, &mut views));
            black_box(views.finish());
        }
        "payload" => {
            let mut position = 0;
            while let Some(header) = BatchHeader::parse(&data.batches, position) {
                let payload = &data.batches[header.records_position()..header.end];
                assert!(walk_payload(level, payload, &header, &mut Nothing));
                position = header.end;
            }
        }
        _ => {
            let plan = RecordsPlan::new(level, data.record_columns()).expect("columns that fit");
            plan.write(&mut room[..plan.size()]);
            black_box(room);
        }
    }
}

/// CPU time of this thread: on a shared machine a wall clock also counts the neighbours.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists and the pointer is to a timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// One load from every cache line.
fn read_lines(data: &[u8]) -> u64 {
    data.iter().step_by(64).map(|byte| u64::from(*byte)).sum()
}

fn race(shape: Shape, size: usize, rounds: usize, candidate: &str) {
    let data = Data::new(shape, size);
    let mut room = vec![0; data.batches.len() * 2];
    let records = data.columns.timestamps.len();
    let repeats = (8usize << 20).div_ceil(data.batches.len());
    println!("# {}: {} records, {} bytes", shape.name, records, data.batches.len());
    let mut candidates = vec![("read", Level::best())];
    for kernel in KERNELS {
        candidates.extend(Level::available().iter().rev().map(|level| (kernel, *level)));
    }
    candidates.retain(|(kernel, level)| {
        *kernel != "build" || [Level::best(), Level::Portable].contains(level)
    });
    candidates.retain(|(kernel, level)| format!("{kernel} {level}").contains(candidate));
    let mut times = vec![vec![]; candidates.len()];
    for _ in 0..=rounds {
        for ((kernel, level), times) in candidates.iter().zip(&mut times) {
            let begin = cpu_seconds();
            for _ in 0..repeats {
                if *kernel == "read" {
                    black_box(read_lines(black_box(&data.batches)));
                } else {
                    run_kernel(kernel, *level, &data, &mut room);
                }
            }
            times.push((cpu_seconds() - begin) / repeats as f64);
        }
    }
    for ((kernel, level), times) in candidates.iter().zip(&mut times) {
        times.remove(0); // The first round warms up.
        times.sort_by(f64::total_cmp);
        let (median, best) = (times[times.len() / 2], times[0]);
        println!(
            "  {kernel:8} {level:9} {:8.2} ns/record (best {:8.2}) {:6.1} GB/s",
            median / records as f64 * 1e9,
            best / records as f64 * 1e9,
            data.batches.len() as f64 / median * 1e-9
        );
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |index: usize, default: usize| match arguments.get(index) {
        Some(text) => text.parse().ok().filter(|number| *number > 0),
        None => Some(default),
    };
    match (arguments.first(), arguments.get(1)) {
        (Some(&"callgrind"), Some(kernel)) if KERNELS.contains(kernel) => {
            let Ok(level) = arguments.get(2).map_or(Ok(Level::best()), |name| name.parse()) else {
                println!("no such level: {}", arguments[2]);
                return ExitCode::from(64);
            };
            let wanted = arguments.get(4).copied().unwrap_or("");
            let Some(shape) = SHAPES.into_iter().find(|shape| shape.name.contains(wanted)) else {
                println!("no such shape: {wanted}");
                return ExitCode::from(64);
            };
            let data = Data::new(shape, 1 << 18);
            let mut room = vec![0; data.batches.len() * 2];
            for _ in 0..number(3, 8).unwrap_or(8) {
                run_kernel(kernel, level, &data, &mut room);
            }
            ExitCode::SUCCESS
        }
        _ => {
            let (Some(mebibytes), Some(rounds)) = (number(0, 1), number(1, 15)) else {
                println!(
                    "usage: race [MEBIBYTES] [ROUNDS] [CANDIDATE] [SHAPE]\n       race callgrind {} [LEVEL [RUNS [SHAPE]]]",
                    KERNELS.join("|")
                );
                return ExitCode::from(64);
            };
            let text = |index: usize| arguments.get(index).copied().unwrap_or("");
            for shape in SHAPES.into_iter().filter(|shape| shape.name.contains(text(3))) {
                race(shape, mebibytes << 20, rounds, text(2));
            }
            ExitCode::SUCCESS
        }
    }
}
