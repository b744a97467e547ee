#![no_main]
//! Arbitrary bytes as what tasks of a cluster hand on, scans and chunks: refused, or a value that is
//! the same through bytes again, and that can be merged, finished, judged and compared within bounds.

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use ottla_audit::copies::compare::compare;
use ottla_audit::copies::copy::Copy;
use ottla_audit::segment::index_check::Indexes;
use ottla_audit::{
    Chunk, PartitionContext, RetentionEffect, Scanner, SegmentContext, SegmentScan, merge_partition,
};
use ottla_format::check::Level;
use ottla_fuzz::{bounded, limits, pair, segment, unpair};
use ottla_log::source::Source;
use std::sync::LazyLock;

/// What the seeds are of.
static SEGMENT: LazyLock<(Vec<u8>, Indexes, SegmentContext)> = LazyLock::new(segment);

fuzz_target!(|data: &[u8]| {
    let (left, right) = unpair(data);
    let (source, indexes, _) = &*SEGMENT;
    let source = &source.as_slice();
    bounded(data.len() + source.len(), || {
        let mut scans = Vec::new();
        let mut chunks = Vec::new();
        for bytes in [left, right] {
            if let Ok(scan) = SegmentScan::from_bytes(bytes) {
                assert_eq!(SegmentScan::from_bytes(&scan.to_bytes()).as_ref(), Ok(&scan));
                scans.push(scan);
            }
            if let Ok(chunk) = Chunk::from_bytes(bytes) {
                assert_eq!(Chunk::from_bytes(&chunk.to_bytes()).as_ref(), Ok(&chunk));
                chunks.push(chunk);
            }
        }
        let merged =
            chunks.into_iter().reduce(|left, right| left.clone().merge(right).unwrap_or(left));
        if let Some(chunk) = merged {
            let mut scanner = Scanner::new(Level::Full, limits());
            let scan = scanner.finish(chunk.clone(), source, indexes, &mut |_| true);
            scans.extend(scan);
            scans.extend(chunk.into_scan(indexes));
        }
        judge(scans, source, indexes);
    });
});

// Every number of both formats is a varint: one of them becomes the least, the greatest or something
// near, which bytes changed at random hardly ever do.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut choice = seed as usize;
    let mut choose = |count: usize| {
        let chosen = choice % count;
        choice /= count;
        chosen
    };
    if choose(2) == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let number = [
        0,
        1,
        0x7f,
        u64::from(u16::MAX) - 1,
        u64::from(u16::MAX),
        u64::from(u32::MAX) - 1,
        u64::from(u32::MAX),
        (1 << 60) - 1,
        u64::MAX - 1,
        u64::MAX,
    ][choose(10)];
    let (left, right) = unpair(&data[..size]);
    let mut parts = [left.to_vec(), right.to_vec()];
    let place = choose(left.len() + right.len() + 1);
    let (part, place) = match place.checked_sub(left.len()) {
        Some(place) => (&mut parts[1], place),
        None => (&mut parts[0], place),
    };
    let Some(rest) = part.get(place..) else { return fuzzer_mutate(data, size, max_size) };
    let end = rest.iter().position(|byte| byte & 0x80 == 0).map_or(part.len(), |at| place + at + 1);
    part.splice(place..end, varint(number));
    let [left, right] = parts;
    if left.len() > usize::from(u16::MAX) || left.len() + right.len() + 2 > max_size {
        return fuzzer_mutate(data, size, max_size);
    }
    let new = pair(&left, &right);
    data[..new.len()].copy_from_slice(&new);
    new.len()
});

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// What is done with the scans of a log.
fn judge(mut scans: Vec<SegmentScan>, source: &'static [u8], indexes: &Indexes) {
    if scans.is_empty() {
        return;
    }
    let context = PartitionContext {
        log_start_offset: Some(7),
        leader_epochs: vec![(0, 0), (2, 1000)],
        is_head: true,
        ..PartitionContext::default()
    };
    let mut copies = Vec::new();
    for scan in &scans {
        RetentionEffect::of(scan);
        let alone = merge_partition(vec![scan.clone()], &context);
        copies.push(Copy::of(&alone, &context, None));
    }
    let mut scanner = Scanner::new(Level::Decode, limits());
    let mut open = |_, _, _| -> std::io::Result<Box<dyn Source>> { Ok(Box::new(source)) };
    compare(&copies, &mut scanner, &mut open).expect("memory can be read");
    for scan in &mut scans {
        scan.judge_indexes(indexes);
    }
    let log = merge_partition(scans, &context);
    log.transactions_left_out();
}
