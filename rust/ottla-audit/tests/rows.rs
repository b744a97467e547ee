//! Rows of a segment in pieces of any size are those of its batches read one by one, and pieces keep
//! memory bounded whatever a batch inflates to.

mod logs;

use logs::{Log, Random, TIME};
use ottla_audit::rows::{
    BatchReader, Piece, RecordParts, RecordReader, RecordRules, RowBounds, RowRange,
};
use ottla_format::attributes::Compression;
use ottla_format::batch::{self, Payload, RecordCursor};
use ottla_format::batches::Batches;
use ottla_format::builder::{BatchFields, NewRecord, build_batch};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use peak_alloc::PeakAlloc;
use std::sync::{Mutex, PoisonError};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The allocator counts for the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

const CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];
const ALL: RecordParts = RecordParts { keys: true, values: true, headers: true };

/// Position of the batch, offset, timestamp, key, value, sequence.
type Row = (i64, i64, i64, Option<Vec<u8>>, Option<Vec<u8>>, i32);

fn range(piece_bytes: usize) -> RowRange {
    let bounds = RowBounds::default();
    RowRange { positions: 0..u64::MAX, bounds, piece_bytes, row_bytes: 50 }
}

fn any_log(random: &mut Random) -> Vec<u8> {
    let mut log = Log::at(0);
    for _ in 0..=random.below(6) {
        let part = |random: &mut Random| {
            let size = random.below(60);
            (random.below(5) > 0).then(|| random.bytes(size))
        };
        let parts: Vec<_> = (0..=random.below(30)).map(|_| (part(random), part(random))).collect();
        let records: Vec<_> = (TIME..)
            .zip(&parts)
            .map(|(timestamp, (key, value))| NewRecord {
                timestamp,
                key: key.as_deref(),
                value: value.as_deref(),
                headers: Vec::new(),
                offset_delta: None,
            })
            .collect();
        let fields = BatchFields {
            base_offset: log.next,
            compression: CODECS[random.below(5)],
            producer_id: 5,
            producer_epoch: 0,
            base_sequence: random.below(1 << 31) as i32,
            ..BatchFields::default()
        };
        let batch =
            build_batch(&fields, &records, &mut log.codecs).expect("a batch of a few records");
        log.raw(&batch, parts.len() as i64);
    }
    log.bytes
}

/// The rows by the rules alone.
fn plain(data: &[u8]) -> Vec<Row> {
    let mut codecs = Codecs::new(Limits::default());
    let mut rows = vec![];
    for info in Batches::new(data, 0) {
        let info = info.expect("a sound log");
        let whole = &data[info.position as usize..][..info.size as usize];
        let payload = match batch::payload(&info, whole).expect("a payload") {
            Payload::Plain { bytes, .. } => bytes.to_vec(),
            Payload::Compressed { codec, reading, bytes, .. } => {
                codecs.decompress(codec, reading, bytes).expect("inflates").to_vec()
            }
        };
        let mut cursor = RecordCursor::start(&info, &payload, Limits::default()).expect("records");
        while let Some(record) = cursor.next(&payload).expect("a sound record") {
            let part = |part: Option<&[u8]>| part.map(<[u8]>::to_vec);
            let (key, value) = (part(record.key), part(record.value));
            let position = info.position as i64;
            rows.push((position, record.offset, record.timestamp, key, value, record.sequence));
        }
    }
    rows
}

fn read(data: &[u8], piece_bytes: usize) -> Vec<Row> {
    let mut reader =
        RecordReader::new(range(piece_bytes), ALL, RecordRules::default(), Limits::default());
    let mut rows = vec![];
    loop {
        let piece = match reader.next(&data).expect("memory is readable") {
            Piece::Rows(piece) => piece,
            Piece::Busy => continue,
            Piece::End => return rows,
        };
        let part = |values: &ottla_kernels::copies::BinaryValues, row: usize| {
            let bits = values.nulls.validity.as_ref();
            let is_null = bits.is_some_and(|bits| bits[row / 8] >> (row % 8) & 1 == 0);
            let (from, to) = (values.ends[row] as usize, values.ends[row + 1] as usize);
            (!is_null).then(|| values.data[from..to].to_vec())
        };
        assert!(piece.headers.is_none() && piece.controls.is_none());
        for row in 0..piece.offsets.len() {
            rows.push((
                piece.batch_positions[row],
                piece.offsets[row],
                piece.timestamps[row],
                part(&piece.keys, row),
                part(&piece.values, row),
                piece.sequences[row],
            ));
        }
    }
}

#[test]
fn rows_in_pieces_of_any_size_are_those_of_the_batches_one_by_one() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut random = Random(1);
    for _ in 0..300 {
        let data = any_log(&mut random);
        let wanted = plain(&data);
        for piece_bytes in [1, 1 + random.below(3_000), 8 << 20] {
            assert!(read(&data, piece_bytes) == wanted, "pieces of {piece_bytes}");
        }
        let mut reader = BatchReader::new(range(1 + random.below(500)), Limits::default());
        let mut found = vec![];
        while let Piece::Rows(rows) = reader.next(&&data[..]).expect("memory is readable") {
            found.extend(rows);
        }
        let wanted = Batches::new(&data, 0).map(|info| (info.expect("a sound log"), true));
        let found: Vec<_> = found.iter().map(|row| (row.info, row.is_valid)).collect();
        assert!(found == wanted.collect::<Vec<_>>());
    }
}

#[test]
fn a_batch_that_inflates_to_many_rows_takes_no_more_memory_than_it_and_a_piece() {
    const RECORDS: usize = 1_000_000;
    const PIECE: usize = 1 << 20;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let empty = NewRecord {
        timestamp: TIME,
        key: None,
        value: None,
        headers: Vec::new(),
        offset_delta: None,
    };
    let fields = BatchFields { compression: Compression::Zstd, ..BatchFields::default() };
    let mut codecs = Codecs::new(Limits::default());
    let batch = build_batch(&fields, &vec![empty; RECORDS], &mut codecs).expect("a batch");
    drop(codecs);
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut reader =
        RecordReader::new(range(PIECE), ALL, RecordRules::default(), Limits::default());
    let mut rows = 0;
    while let Piece::Rows(piece) = reader.next(&&batch[..]).expect("memory is readable") {
        rows += piece.offsets.len();
    }
    assert_eq!(rows, RECORDS);
    let taken = ALLOCATOR.peak_usage() - before;
    // The arena grows by doubling, so that it holds half of its bytes once more for a moment.
    let inflated = RECORDS * 10;
    assert!(taken < 4 * inflated, "{taken} bytes for {inflated} inflated");
}
