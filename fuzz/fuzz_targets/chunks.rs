#![no_main]
//! Arbitrary bytes as what tasks of a cluster hand on, scans and chunks: refused, or a value that is
//! the same through bytes again, and that can be merged, finished, judged and compared within bounds.

use libfuzzer_sys::fuzz_target;
use ottla_core::audit::index_check::Indexes;
use ottla_core::audit::replicas::{Copy, compare};
use ottla_core::audit::{
    Chunk, PartitionContext, RetentionEffect, Scanner, SegmentContext, SegmentScan, Source,
    merge_partition,
};
use ottla_core::check::Level;
use ottla_fuzz::{bounded, limits, segment, unpair};
use std::sync::LazyLock;

static SEGMENT: LazyLock<(Vec<u8>, Indexes, SegmentContext)> = LazyLock::new(segment);

fuzz_target!(|data: &[u8]| {
    let (left, right) = unpair(data);
    let (source, indexes, _) = &*SEGMENT;
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
            for level in [Level::Crc, Level::Decode, Level::Full] {
                let mut scanner = Scanner::new(level, limits());
                let finished =
                    scanner.finish(chunk.clone(), &source.as_slice(), indexes, &mut |_| true);
                scans.extend(finished);
            }
            scans.extend(chunk.into_scan(indexes));
        }
        judge(scans, source, indexes);
    });
});

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
    for open in log.producers.iter().filter_map(|producer| producer.open_transaction) {
        log.is_hanging(&open);
    }
}
