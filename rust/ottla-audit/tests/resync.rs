//! Where batches go on behind damage, at the edges of what is read at once and of what may come.

mod logs;

use logs::{Log, TIME, active};
use ottla_audit::Scanner;
use ottla_format::attributes::Compression;
use ottla_format::builder::{LegacyFields, NewRecord, build_legacy};
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use ottla_log::source::{Source, WINDOW_BYTES};
use std::io;

/// Bytes of a candidate that are judged (`LOOK_BYTES`).
const LOOK: usize = 16 << 10;

/// A sparse file: a beginning, a hole, an end.
struct Holed {
    head: Vec<u8>,
    tail: Vec<u8>,
    tail_at: usize,
}

impl Source for Holed {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let size = (self.size()? - position).min(buffer.len() as u64) as usize;
        buffer[..size].fill(0);
        for (at, bytes) in [(0, &self.head), (self.tail_at, &self.tail)] {
            let start = at.max(position as usize);
            let end = (at + bytes.len()).min(position as usize + size);
            if start < end {
                let room = &mut buffer[start - position as usize..end - position as usize];
                room.copy_from_slice(&bytes[start - at..end - at]);
            }
        }
        Ok(size)
    }

    fn size(&self) -> io::Result<u64> {
        Ok((self.tail_at + self.tail.len()) as u64)
    }

    fn next_data(&self, position: u64) -> u64 {
        let is_hole = (self.head.len() as u64..self.tail_at as u64).contains(&position);
        if is_hole { self.tail_at as u64 } else { position }
    }
}

/// Offset that the batch has which stands first behind the hole, of those reported as sound.
fn first_behind(head: &Log, tail: &Log, tail_at: usize) -> Option<i64> {
    let source = Holed { head: head.bytes.clone(), tail: tail.bytes.clone(), tail_at };
    let mut sound = Vec::new();
    let mut on_batch = |info: &ottla_format::batch::BatchInfo, is_valid: bool| {
        sound.extend(is_valid.then_some(info.base_offset));
    };
    let mut scanner = Scanner::new(Level::Crc, Limits::default());
    let scan = scanner.scan(&source, active(0), &mut |_| true, Some(&mut on_batch));
    scan.expect("a buffer can be read");
    assert_eq!(sound.first(), Some(&0));
    sound.get(1).copied()
}

/// Places where a batch may begin that is cut, or cannot be judged, at the end of what was read first.
fn places(header_bytes: usize) -> impl Iterator<Item = usize> {
    let judged_to = WINDOW_BYTES - LOOK;
    (judged_to - 2..judged_to + 4).chain(WINDOW_BYTES - header_bytes - 2..WINDOW_BYTES + 3)
}

#[test]
fn a_batch_is_found_wherever_what_is_read_at_once_ends_in_it() {
    let (mut head, mut tail) = (Log::at(0), Log::at(20));
    head.plain(&[b"sound"]);
    tail.plain(&[b"first"]).plain(&[b"second"]).plain(&[b"third"]);
    for tail_at in places(61) {
        assert_eq!(first_behind(&head, &tail, tail_at), Some(20), "{tail_at}");
    }
}

#[test]
fn a_message_is_found_wherever_what_is_read_at_once_ends_in_it() {
    let (mut head, mut tail) = (Log::at(0), Log::at(20));
    head.legacy(1, Compression::None, &[b"sound"]);
    // The size of its value ends the bytes that are judged.
    let key = vec![b'k'; LOOK - 34];
    let fields = LegacyFields {
        magic: 1,
        base_offset: 20,
        log_append_time_ms: None,
        compression: Compression::None,
        compression_level: None,
    };
    let record = NewRecord {
        timestamp: TIME,
        key: Some(&key),
        value: Some(b"first"),
        ..NewRecord::default()
    };
    let first = build_legacy(&fields, &[record], &mut tail.codecs).expect("builds");
    tail.raw(&first, 1);
    tail.legacy(1, Compression::None, &[b"second"]).legacy(1, Compression::None, &[b"third"]);
    for tail_at in places(34) {
        assert_eq!(first_behind(&head, &tail, tail_at), Some(20), "{tail_at}");
    }
}

/// Offsets of the batches that are reported as sound behind noise, in a segment of this name.
fn behind_noise(batches: &[&Log], base_offset: i64) -> Vec<i64> {
    let noise = vec![0xa5; 300];
    let parts = std::iter::once(&noise).chain(batches.iter().map(|log| &log.bytes));
    let bytes: Vec<u8> = parts.flatten().copied().collect();
    let mut sound = Vec::new();
    let mut on_batch = |info: &ottla_format::batch::BatchInfo, is_valid: bool| {
        sound.extend(is_valid.then_some(info.base_offset));
    };
    let mut scanner = Scanner::new(Level::Full, Limits::default());
    let context = active(base_offset);
    let scan = scanner.scan(&bytes.as_slice(), context, &mut |_| true, Some(&mut on_batch));
    scan.expect("a buffer can be read");
    sound
}

#[test]
fn the_first_offset_of_all_is_found_behind_damage() {
    let mut log = Log::at(0);
    log.plain(&[b"first"]).plain(&[b"second"]);
    assert_eq!(behind_noise(&[&log], 0), [0, 1]);
}

#[test]
fn a_batch_below_the_name_of_its_file_is_none_of_it_behind_damage() {
    let (mut stale, mut log) = (Log::at(99), Log::at(100));
    stale.plain(&[b"stale"]);
    log.plain(&[b"first"]).plain(&[b"second"]);
    assert_eq!(behind_noise(&[&stale, &log], 100), [100, 101]);
}
