//! Where an offset index lets a segment be cut: at batches that those before them lead to.

mod logs;

use logs::{Log, Random};
use ottla_audit::Scanner;
use ottla_format::attributes::Compression;
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use ottla_log::sidefiles::offset_index::OffsetEntry;

const BASE: i64 = 1000;

/// Of a log that brokers might have, in batches of all sizes.
fn any_log(random: &mut Random) -> Log {
    let mut log = Log::at(BASE);
    for _ in 0..20 + random.below(60) {
        let size = [5, 50, 500][random.below(3)];
        let value = random.bytes(size);
        let values = vec![value.as_slice(); 1 + random.below(4)];
        match random.below(4) {
            0 => log.compressed(Compression::Lz4, &values),
            _ => log.plain(&values),
        };
    }
    log
}

/// The offset behind the last of a batch.
fn next_offset(log: &Log, batch: usize) -> i64 {
    log.batches.get(batch + 1).map_or(log.next, |&(_, _, first)| first)
}

/// The index of a broker that appends so many batches at once, with an entry for each append.
fn index_of(log: &Log, at_once: usize) -> Vec<OffsetEntry> {
    let appends = (0..log.batches.len()).step_by(at_once);
    let entry = |first: usize| {
        let last = (first + at_once).min(log.batches.len()) - 1;
        let relative_offset = (next_offset(log, last) - 1 - BASE) as i32;
        OffsetEntry { relative_offset, position: log.batches[first].0 as i32 }
    };
    appends.map(entry).collect()
}

fn cuts(bytes: &[u8], index: &[OffsetEntry], apart: u64) -> Vec<u64> {
    let index: Vec<u8> = index.iter().flat_map(OffsetEntry::to_bytes).collect();
    let mut scanner = Scanner::new(Level::Decode, Limits::default());
    scanner.cuts(&bytes, BASE, &index, apart).expect("memory can be read")
}

#[test]
fn a_segment_is_cut_at_the_first_entries_that_are_far_enough_apart() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let log = any_log(&mut random);
        let index = index_of(&log, 1 + random.below(3));
        let apart = 1 + random.below(3000) as u64;
        let mut expected = Vec::new();
        for entry in &index {
            let position = entry.position as u64;
            let last = expected.last().copied().unwrap_or(0);
            if position - last >= apart && log.bytes.len() as u64 - position >= apart {
                expected.push(position);
            }
        }
        assert_eq!(cuts(&log.bytes, &index, apart), expected, "seed {seed}");
    }
}

#[test]
fn whatever_an_index_says_a_sound_segment_is_cut_between_batches() {
    let mut found = 0;
    for seed in 0..60 {
        let mut random = Random(seed);
        let log = any_log(&mut random);
        let mut index = index_of(&log, 1);
        for _ in 0..10 {
            let entry = random.below(index.len());
            index[entry] = OffsetEntry {
                relative_offset: index[entry].relative_offset + random.below(9) as i32 - 4,
                position: index[entry].position + random.below(200) as i32 - 100,
            };
        }
        for cut in cuts(&log.bytes, &index, 1) {
            assert!(log.batches.iter().any(|&(position, _, _)| position as u64 == cut));
            found += 1;
        }
    }
    assert!(found > 500, "{found}");
}

#[test]
fn a_value_that_holds_batches_is_not_cut() {
    let mut inner = Log::at(BASE + 1);
    inner.plain(&[b"captured"]).plain(&[b"captured"]);
    let mut log = Log::at(BASE);
    log.plain(&[b"first"]).plain(&[&inner.bytes]).plain(&[b"last"]);
    let (outer, size, _) = log.batches[1];
    let captured = log.bytes.windows(8).rposition(|bytes| bytes == b"captured").expect("is there");
    let inside = outer + size - inner.bytes.len()..captured;
    let end = log.batches[2].0;
    for position in inside {
        let index = [(0, 0), (1, position as i32), (2, end as i32)]
            .map(|(relative_offset, position)| OffsetEntry { relative_offset, position });
        // What an entry inside a batch leads to is not known.
        assert_eq!(cuts(&log.bytes, &index, 1), [], "position {position}");
        assert_eq!(cuts(&log.bytes, &[index[0], index[2]], 1), [end as u64]);
    }
}

#[test]
fn an_entry_with_an_offset_that_the_batch_there_cannot_have_is_no_cut() {
    let mut log = Log::at(BASE);
    for value in [b"a", b"b", b"c"] {
        log.plain(&[&value[..]; 3]);
    }
    let at = |batch: usize| log.batches[batch].0 as i32;
    let cut = |before: i32, offset: i32| {
        let index = [(before, at(0)), (offset, at(1))]
            .map(|(relative_offset, position)| OffsetEntry { relative_offset, position });
        cuts(&log.bytes, &index, 1) == [at(1) as u64]
    };
    // The batch there has the offsets 3 to 5.
    assert!(cut(2, 5));
    // Brokers before 0.11 noted the first offset, and a follower notes the last of all it appends.
    assert!(cut(0, 3) && cut(2, 8));
    assert!(!cut(2, 2), "the batch begins above the entry");
    assert!(!cut(3, 5), "the entry before is of this batch, too");
}

#[test]
fn behind_damage_a_segment_is_cut_where_the_next_entry_leads_on() {
    let mut log = Log::at(BASE);
    for _ in 0..6 {
        log.plain(&[&b"value"[..]; 3]);
    }
    let index = index_of(&log, 1);
    let starts: Vec<u64> = log.batches.iter().map(|&(position, _, _)| position as u64).collect();
    assert_eq!(cuts(&log.bytes, &index, 1), starts[1..]);
    let (position, size, _) = log.batches[2];
    let mut hurt = log.bytes.clone();
    hurt[position + size - 1] ^= 1;
    // The batch itself is bad, and so is the way to the next one.
    assert_eq!(cuts(&hurt, &index, 1), [starts[1], starts[4], starts[5]]);
    let mut gone = log.bytes.clone();
    gone[position..position + size].fill(7);
    assert_eq!(cuts(&gone, &index, 1), [starts[1], starts[4], starts[5]]);
}

#[test]
fn unused_and_negative_entries_are_no_cuts() {
    let mut log = Log::at(BASE);
    log.plain(&[b"a"]).plain(&[b"b"]);
    let mut index = index_of(&log, 1);
    index.insert(1, OffsetEntry { relative_offset: 1, position: -1 });
    index.extend([OffsetEntry { relative_offset: 0, position: 0 }; 3]);
    assert_eq!(cuts(&log.bytes, &index, 1), []);
    index.remove(1);
    assert_eq!(cuts(&log.bytes, &index, 0), [log.batches[1].0 as u64]);
}
