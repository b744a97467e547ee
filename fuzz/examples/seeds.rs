//! Writes the first inputs of every target into `fuzz/seeds`: `cargo run --example seeds` in `fuzz`.

use std::path::Path;
use std::{fs, io};

use ottla_audit::Scanner;
use ottla_format::attributes::Compression;
use ottla_format::builder::{
    BatchFields, LegacyFields, NewControlRecord, NewRecord, build_batch, build_control_batch,
    build_legacy,
};
use ottla_format::check::Level;
use ottla_format::compression::Codecs;
use ottla_format::header::{LOG_OVERHEAD, RECORD_BATCH_OVERHEAD};
use ottla_format::limits::Limits;
use ottla_fuzz::{limits, packed_files, pair, segment, segment_files};
use ottla_log::recovery::{IndexConfig, Rebuild};

const TIME: i64 = 1_500_000_000_000;
const TEXT: &[u8] = b"hello hello hello hello, and a little more so that there is a match";

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let save = |target: &str, name: &str, bytes: &[u8]| {
        let folder = root.join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes)
    };
    let mut codecs = Codecs::new(Limits::default());
    for codec in &Compression::ALL[1..] {
        for (name, text) in [("empty", &[][..]), ("text", TEXT), ("run", &[7; 70_000])] {
            let payload = codecs.compress(*codec, None, 2, text).expect("compresses");
            save(codec.name(), name, &payload)?;
            save(codec.name(), &format!("{name}-twice"), &[&payload[..], &payload].concat())?;
        }
    }
    for (name, buffer) in buffers(&mut codecs) {
        save("read", &name, &buffer)?;
        save("columns", &name, &buffer)?;
        save("audit", &name, &[&[1][..], &buffer].concat())?;
        // Kafka's defaults, Produce 11 of a client, at the time of the records.
        let setup = [&[0, 0, 0, 0, 0, 0, 0, 0, 0, 11][..], &[0; 21], &TIME.to_le_bytes()].concat();
        save("validate", &name, &[&setup[..], &buffer].concat())?;
    }
    for codec in [Compression::Gzip, Compression::Lz4, Compression::Zstd] {
        // To strict all are to blame; Kafka's decision writes them anew in another codec.
        for (name, settings) in [("kept", [0; 8]), ("rebuilt", [0, 2, 0, 0, 0, 0, 0, 0])] {
            let setup = [&settings[..], &[0, 11], &[0; 21], &TIME.to_le_bytes()].concat();
            let input = [&setup[..], &crowd(codec, &mut codecs)].concat();
            save("validate", &format!("crowd-{}-{name}", codec.name()), &input)?;
        }
    }
    for magic in [0, 1] {
        for codec in 1..=3u8 {
            let set = message_set(&mut codecs, magic, Compression::None);
            let head = [magic as u8, codec | 4, 0, 0, 0, 0, 0, 0, 0, 9];
            save("wrappers", &format!("magic-{magic}-{codec}"), &[&head[..], &set].concat())?;
        }
    }
    for (name, input) in chunks() {
        save("chunks", &name, &input)?;
    }
    for (name, input) in directories() {
        save("report", name, &input)?;
        // Killed, with nothing known to be synced.
        save("load", name, &[&[0; 4][..], &input].concat())?;
    }
    save(
        "names",
        "names",
        b"00000000000000000100.log\0orders-0\0orders-0.0f-delete\0meta.properties",
    )?;
    save("names", "epochs", b"0\n2\n0 0\n2 100\n")?;
    save("names", "offsets", b"0\n1\norders 0 100\n")?;
    for (name, input) in requests(&mut codecs) {
        save("wire", &name, &input)?;
    }
    // The bytes of a structured input mean nothing by themselves: any will do.
    save("build_read", "zeros", &[0; 200])?;
    save("build_read", "ramp", &(0..=255).collect::<Vec<u8>>())?;
    for target in ["leader", "recovery", "rebuild"] {
        save(target, "zeros", &[0; 200])?;
        save(target, "ramp", &(0..=255).collect::<Vec<u8>>())?;
    }
    Ok(())
}

/// A batch that is produced, then fetched with a session: in an old layout and in a flexible one, by
/// name and by id.
fn requests(codecs: &mut Codecs) -> Vec<(String, Vec<u8>)> {
    let record = NewRecord { timestamp: TIME, value: Some(TEXT), ..NewRecord::default() };
    let fields = BatchFields {
        producer_id: 7,
        producer_epoch: 0,
        base_sequence: 0,
        is_transactional: true,
        ..BatchFields::default()
    };
    let batch = build_batch(&fields, &[record], codecs).expect("builds");
    let size = batch.len() as u8;
    let request = |api: u8, version: u8, parts: &[&[u8]]| {
        let frame = parts.concat();
        let head = [&[api, version][..], &(frame.len() as u16).to_le_bytes()].concat();
        [head, frame].concat()
    };
    let old = request(
        0,
        3,
        &[
            &[0, 1, b'x', 255, 255, 0, 0, 0, 9, 0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 0],
            &[0, 0, 0, size],
            &batch,
        ],
    );
    let old_fetch = |session: i32, epoch: i32| {
        request(
            1,
            7,
            &[
                &[255, 255, 255, 255, 0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 0, 0, 1],
                &session.to_be_bytes(),
                &epoch.to_be_bytes(),
                &[0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 1, 0, 0, 0, 0],
                &[0; 8],
                &[255; 8],
                &[0, 1, 0, 0, 0, 0, 0, 0],
            ],
        )
    };
    let flexible = |version: u8, topic: &[u8]| {
        let head: &[u8] = &[2, b'x', 255, 255, 0, 0, 0, 9, 2];
        request(0, version, &[head, topic, &[2, 0, 0, 0, 0, size + 1, 1], &batch, &[0, 0, 0]])
    };
    let flexible_fetch = |version: u8, topic: &[u8]| {
        let replica: &[u8] = if version < 15 { &[255; 4] } else { &[] };
        request(
            3,
            version,
            &[
                replica,
                &[0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2],
                topic,
                &[2, 0, 0, 0, 0, 255, 255, 255, 255],
                &[0; 8],
                &[255; 12],
                &[0, 1, 0, 0, 0, 0, 1, 1, 0],
            ],
        )
    };
    vec![
        ("old".to_owned(), [old, old_fetch(0, 0), old_fetch(0, -1)].concat()),
        ("flexible".to_owned(), [flexible(9, &[2, b't']), flexible_fetch(12, &[2, b't'])].concat()),
        ("by-id".to_owned(), [flexible(13, &[1; 16]), flexible_fetch(17, &[1; 16])].concat()),
    ]
}

/// Scans and chunks of a segment, alone and in pairs that belong together.
fn chunks() -> Vec<(String, Vec<u8>)> {
    let (segment, indexes, context) = segment();
    let source = segment.as_slice();
    let mut scanner = Scanner::new(Level::Full, limits());
    let scan =
        scanner.scan_indexed(&source, context, &indexes, &mut |_| true, None).expect("reads");
    let scan = scan.to_bytes();
    let end = source.len() as u64;
    let mut chunk = |range| {
        let chunk = scanner.scan_range(&source, context, &indexes, range, &mut |_| true);
        chunk.expect("reads").to_bytes()
    };
    let mut inputs = vec![
        ("scan".to_owned(), pair(&scan, &[])),
        ("scans".to_owned(), pair(&scan, &scan)),
        ("chunk".to_owned(), pair(&chunk(0..end), &[])),
    ];
    for (name, cut) in [("early", 400), ("middle", end / 2), ("late", end - 900)] {
        inputs.push((format!("cut-{name}"), pair(&chunk(0..cut), &chunk(cut..end))));
    }
    inputs
}

/// A segment with what a broker keeps beside it, and the same in pieces.
fn directories() -> Vec<(&'static str, Vec<u8>)> {
    let [log, index, times] = segment_files();
    let log = log.as_slice();
    let mut rebuild = Rebuild::new(None, None, IndexConfig::default()).expect("is empty");
    let built = rebuild.segment(&log, 100).expect("reads");
    let epochs = rebuild.leader_epochs();
    let [segment, offsets, timestamps, transactions, snapshot, own] = [0, 1, 2, 3, 4, 10];
    let end = built.next_offset as u16;
    let beside = [
        (offsets, 100, index.as_slice()),
        (timestamps, 100, &times),
        (transactions, 100, &built.transaction_index),
        (snapshot, end, &built.snapshot),
        (own, 0, &epochs),
        (own, 1, b"version: 0\ntopic_id: va8YOpSrRK6fWBUV4XmPLw"),
    ];
    let whole = [&[(segment, 100, log)][..], &beside].concat();
    // The second cut is inside a batch.
    let (first, rest) = log.split_at(built.valid_bytes as usize);
    let (middle, last) = rest.split_at(rest.len() / 2);
    let parts = [(segment, 100, first), (segment, end, middle), (segment, 1200, last)];
    vec![
        ("whole", packed_files(&whole)),
        ("parts", packed_files(&[&parts[..], &beside].concat())),
        ("bare", packed_files(&parts)),
    ]
}

fn records() -> Vec<NewRecord<'static>> {
    vec![
        NewRecord {
            timestamp: TIME,
            key: Some(b"k"),
            value: Some(b"value"),
            ..NewRecord::default()
        },
        NewRecord {
            timestamp: TIME + 7,
            headers: vec![(b"h", Some(b"x")), (b"", None)],
            ..NewRecord::default()
        },
        NewRecord {
            timestamp: TIME - 1,
            key: Some(b""),
            value: Some(TEXT),
            ..NewRecord::default()
        },
    ]
}

fn message_set(codecs: &mut Codecs, magic: i8, compression: Compression) -> Vec<u8> {
    let fields = LegacyFields {
        magic,
        base_offset: 0,
        log_append_time_ms: None,
        compression,
        compression_level: None,
    };
    let mut records = records();
    for record in &mut records {
        record.headers.clear();
    }
    build_legacy(&fields, &records, codecs).expect("builds")
}

/// A batch of a few kilobytes that inflates to a MiB of the smallest records, all with offset delta
/// 0: the most that is to be done for one. Targets make its checksum right.
fn crowd(codec: Compression, codecs: &mut Codecs) -> Vec<u8> {
    const RECORD: [u8; 7] = [12, 0, 0, 0, 1, 1, 0];
    let count = (1 << 20) / RECORD.len();
    let payload = codecs.compress(codec, None, 2, &RECORD.repeat(count)).expect("compresses");
    let record = NewRecord { timestamp: TIME, ..NewRecord::default() };
    let fields = BatchFields { compression: codec, ..BatchFields::default() };
    let mut batch = build_batch(&fields, &[record], codecs).expect("builds");
    batch.truncate(RECORD_BATCH_OVERHEAD);
    batch.extend_from_slice(&payload);
    let (size, count) = ((batch.len() - LOG_OVERHEAD) as i32, count as i32);
    batch[8..12].copy_from_slice(&size.to_be_bytes());
    batch[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    batch[57..61].copy_from_slice(&count.to_be_bytes());
    batch
}

/// Batches of every kind, alone and one after another.
fn buffers(codecs: &mut Codecs) -> Vec<(String, Vec<u8>)> {
    let mut buffers = Vec::new();
    for compression in Compression::ALL {
        let fields = BatchFields {
            producer_id: 5,
            producer_epoch: 1,
            base_sequence: 10,
            is_transactional: true,
            compression,
            ..BatchFields::default()
        };
        let batch = build_batch(&fields, &records(), codecs).expect("builds");
        buffers.push((format!("magic-2-{}", compression.name()), batch));
        if compression != Compression::Zstd {
            for magic in [0, 1] {
                let name = format!("magic-{magic}-{}", compression.name());
                buffers.push((name, message_set(codecs, magic, compression)));
            }
        }
    }
    let fields = BatchFields { producer_id: 5, producer_epoch: 1, ..BatchFields::default() };
    let commit = NewControlRecord::Commit { coordinator_epoch: 7 };
    let marker = build_control_batch(&fields, TIME, commit, codecs).expect("builds");
    buffers.push(("marker".into(), marker));
    let fields = BatchFields { log_append_time_ms: Some(TIME), ..BatchFields::default() };
    let many = vec![NewRecord { value: Some(TEXT), ..NewRecord::default() }; 70];
    buffers.push(("many".into(), build_batch(&fields, &many, codecs).expect("builds")));
    let run: Vec<u8> = buffers.iter().flat_map(|(_, buffer)| buffer.clone()).collect();
    buffers.push(("all-and-zeros".into(), [&run[..], &[0; 100]].concat()));
    buffers
}
