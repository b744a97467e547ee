//! What the fuzz targets share: bounds and the watch over them, checksums made right, a plain
//! reading of a buffer, a segment with everything in it, and a directory as one input.

use cpu_time::ThreadTime;
use ottla_audit::SegmentContext;
use ottla_audit::segment::index_check::Indexes;
use ottla_format::attributes::Compression;
use ottla_format::batch::{self, BatchInfo, Payload, RecordCursor};
use ottla_format::batches::{Batches, is_zero_tail};
use ottla_format::builder::{
    BatchFields, NewControlRecord, NewRecord, build_batch, build_control_batch,
};
use ottla_format::compression::{Codecs, Reading};
use ottla_format::error::{Error, ErrorKind};
use ottla_format::header::{CRC_START, Envelope, LOG_OVERHEAD, Next, RECORD_BATCH_OVERHEAD};
use ottla_format::limits::Limits;
use ottla_kernels::Level;
use ottla_leader::TopicConfig;
use ottla_log::names::file_name;
use peak_alloc::PeakAlloc;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Duration;

/// Counts what Rust allocates. The contexts that the codecs' own libraries make do not depend on
/// the input, and payloads are always Rust's.
#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;

/// Bounds small enough that an input is done in a moment; each a 64th of the engine's own.
pub fn limits() -> Limits {
    let (batch_bytes, decompressed_bytes) = (MIB as u64, MIB as u64);
    Limits { batch_bytes, decompressed_bytes, culprits: MIB as u32 >> 6, ..Limits::default() }
}

/// What the engine's own bounds let a small payload inflate to, where they cannot be set.
pub const INFLATED_BYTES: usize = 16 * MIB;

/// How many times the yardstick a MiB of work may take; work is the input and what it may inflate to.
const YARDSTICKS_PER_MIB: f64 = 240.0;

/// The CPU time of the portable checksum of a MiB in this very build: a slow machine, a sanitizer,
/// coverage and debug assertions slow it down as they do the work.
fn yardstick() -> Duration {
    static TIME: OnceLock<Duration> = OnceLock::new();
    let time = || {
        let start = ThreadTime::now();
        black_box(ottla_kernels::crc32c_at(Level::Portable, black_box(&vec![1; MIB])));
        start.elapsed()
    };
    *TIME.get_or_init(|| (0..5).map(|_| time()).min().unwrap_or_default())
}

/// Does work on an input of so many bytes, which keeps its promises: a time in proportion to it and
/// four times the memory that the bounds allow. Time is that of this thread's CPU, and only what is
/// too long three times running counts: a neighbour's noise does not repeat, a slow input does.
pub fn bounded<T>(input_bytes: usize, mut work: impl FnMut() -> T) -> T {
    let work_bytes = input_bytes + MIB;
    let longest = yardstick().mul_f64(YARDSTICKS_PER_MIB * work_bytes as f64 / MIB as f64);
    let mut tries = 0;
    loop {
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let start = ThreadTime::now();
        let result = work();
        let time = start.elapsed();
        let taken = ALLOCATOR.peak_usage().saturating_sub(before);
        assert!(taken <= 4 * work_bytes, "{taken} bytes for {work_bytes} of work");
        if time <= longest {
            return result;
        }
        tries += 1;
        assert!(tries < 3, "{time:?} for {work_bytes} bytes of work, {longest:?} allowed");
    }
}

/// Makes the checksum of every batch right, so that inputs come further than the first check.
pub fn mend_checksums(data: &mut [u8]) {
    let mut position = 0;
    while let Ok(Next::Batch(envelope)) = Envelope::next(data, position) {
        let batch = &mut data[position..position + envelope.total()];
        position += batch.len();
        if envelope.magic >= 2 {
            if batch.len() >= RECORD_BATCH_OVERHEAD {
                let crc = ottla_kernels::crc32c(&batch[CRC_START..]);
                batch[17..21].copy_from_slice(&crc.to_be_bytes());
            }
        } else if batch.len() >= LOG_OVERHEAD + 4 {
            let crc = crc32fast::hash(&batch[LOG_OVERHEAD + 4..]);
            batch[12..16].copy_from_slice(&crc.to_be_bytes());
        }
    }
}

/// A record with its own bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// The records of one whole batch, record by record.
pub fn records_of(
    info: &BatchInfo,
    whole: &[u8],
    codecs: &mut Codecs,
) -> Result<Vec<Owned>, Error> {
    batch::verify(whole)?;
    let payload = match batch::payload(info, whole)? {
        Payload::Plain { bytes, .. } => bytes,
        Payload::Compressed { codec, reading, bytes, start } => {
            codecs.decompress(codec, reading, bytes).map_err(|kind| Error::new(kind, start))?
        }
    };
    let mut cursor = RecordCursor::start(info, payload, limits())?;
    let mut records = Vec::new();
    let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
    while let Some(record) = cursor.next(payload)? {
        records.push(Owned {
            offset: record.offset,
            timestamp: record.timestamp,
            key: owned(record.key),
            value: owned(record.value),
            headers: record.headers.iter().map(|(k, v)| (k.to_vec(), owned(v))).collect(),
        });
    }
    Ok(records)
}

/// All batches of a buffer with their records, or the first fault. Zeros to the end are none.
pub fn records(data: &[u8], codecs: &mut Codecs) -> Result<Vec<(BatchInfo, Vec<Owned>)>, Error> {
    let mut found = Vec::new();
    for info in Batches::new(data, 0) {
        let info = match info {
            Err(error) if is_zero_tail(data, error.position as usize) => break,
            info => info?,
        };
        let start = info.position as usize;
        let whole = data.get(start..start + info.size as usize).unwrap_or_default();
        found.push((info, records_of(&info, whole, codecs)?));
    }
    Ok(found)
}

/// What must hold of a codec whatever the payload: the result depends on nothing but the payload,
/// keeps its bound, and survives being compressed again.
pub fn try_codec(codec: Compression, magic: i8, payload: &[u8]) {
    let mut fresh = Codecs::new(limits());
    let first = fresh.decompress(codec, Reading::Bytes { magic }, payload).map(<[u8]>::to_vec);

    // An arena full of other bytes.
    let mut used = Codecs::new(limits());
    let other = used.compress(Compression::Lz4, None, 2, &vec![0xa5; 1 << 16]).expect("compresses");
    used.decompress(Compression::Lz4, Reading::Bytes { magic: 2 }, &other).expect("inflates");
    assert_eq!(
        used.decompress(codec, Reading::Bytes { magic }, payload),
        first.as_deref().map_err(|kind| *kind)
    );

    let Ok(inflated) = first else { return };
    let size = inflated.len() as u64;
    assert!(size <= limits().decompressed_bytes);
    if let Some(limit) = size.checked_sub(1) {
        used.set_limits(Limits { decompressed_bytes: limit, ..limits() });
        let kind = ErrorKind::DecompressedTooLarge { limit };
        assert_eq!(used.decompress(codec, Reading::Bytes { magic }, payload), Err(kind));
    }
    // The last bytes of an lz4 block need room that the strictest writers do not leave.
    let slack = if codec == Compression::Lz4 { 64 } else { 0 };
    used.set_limits(Limits { decompressed_bytes: size + slack, ..limits() });
    assert_eq!(used.decompress(codec, Reading::Bytes { magic }, payload), Ok(&inflated[..]));

    let again = used.compress(codec, None, magic, &inflated).expect("compresses");
    used.set_limits(limits());
    assert_eq!(used.decompress(codec, Reading::Bytes { magic }, &again), Ok(&inflated[..]));
}

/// A topic's configuration by one byte a setting: zeros are Kafka's defaults.
pub fn topic_config(settings: [u8; 8]) -> TopicConfig {
    const TYPES: [&str; 6] = ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"];
    const SIZES: [&str; 4] = ["1048588", "200", "100000", "0"];
    const SEGMENTS: [&str; 4] = ["1073741824", "14", "300", "1048576"];
    const WINDOWS: [&str; 4] = ["9223372036854775807", "0", "3600000", "4294967296"];
    const FORMATS: [&str; 4] = ["3.0", "0.9.0", "0.10.0", "2.8"];
    const POLICIES: [&str; 4] = ["delete", "compact", "compact,delete", "delete"];
    let [policy, codec, level, size, stamps, before, after, rest] = settings.map(usize::from);
    let mut config = TopicConfig::default();
    let mut set = |key, value: &str| config.set(key, value).expect("in range");
    set("cleanup.policy", POLICIES[policy % 4]);
    set("compression.type", TYPES[codec % 6]);
    if level > 0 {
        set("compression.gzip.level", &(level % 9 + 1).to_string());
        // The slowest levels tell nothing more.
        set("compression.lz4.level", &(level % 9 + 1).to_string());
        set("compression.zstd.level", &(level as i32 % 12 - 5).to_string());
    }
    set("max.message.bytes", SIZES[size % 4]);
    set("message.timestamp.type", ["CreateTime", "LogAppendTime"][stamps % 2]);
    set("message.timestamp.before.max.ms", WINDOWS[before % 4]);
    if after > 0 {
        set("message.timestamp.after.max.ms", WINDOWS[after % 4]);
    }
    set("segment.bytes", SEGMENTS[rest % 4]);
    set("message.format.version", FORMATS[rest / 4 % 4]);
    set("producer.id.expiration.ms", ["86400000", "0", "10", "9223372036854775807"][rest / 16 % 4]);
    config
}

/// A time for the records of [`segment_files`].
const TIME: i64 = 1_500_000_000_000;

/// A segment of base offset 100, a few kilobytes with a bit of everything that a scan takes down, and
/// its two indexes.
pub fn segment_files() -> [Vec<u8>; 3] {
    let mut codecs = Codecs::new(limits());
    let (mut bytes, mut offset_index, mut time_index) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = 100;
    for number in 0..40i64 {
        let producer_id = number % 3;
        let fields = BatchFields {
            base_offset: next,
            partition_leader_epoch: number as i32 / 9,
            producer_id: producer_id - 1,
            producer_epoch: if producer_id > 0 { 0 } else { -1 },
            base_sequence: if producer_id > 0 { number as i32 / 3 * 2 } else { -1 },
            is_transactional: producer_id == 2,
            ..BatchFields::default()
        };
        let record = NewRecord { timestamp: TIME + number, ..NewRecord::default() };
        let batch = if number % 9 == 8 {
            let fields = BatchFields { base_sequence: -1, is_transactional: true, ..fields };
            let record = match number % 2 {
                0 => NewControlRecord::Commit { coordinator_epoch: 7 },
                _ => NewControlRecord::Abort { coordinator_epoch: 6 },
            };
            build_control_batch(&fields, TIME + number, record, &mut codecs)
        } else {
            build_batch(&fields, &[record.clone(), record], &mut codecs)
        };
        if number % 5 == 4 {
            offset_index.extend((next as i32 - 99).to_be_bytes());
            offset_index.extend((bytes.len() as i32).to_be_bytes());
            time_index.extend((TIME + number).to_be_bytes());
            time_index.extend((next as i32 - 99).to_be_bytes());
        }
        bytes.extend(batch.expect("builds"));
        match number {
            // A checksum that is wrong, bytes that are no batch, offsets that are missing, come again
            // or belong elsewhere.
            6 => bytes.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1),
            12 => bytes.extend([7; 90]),
            17 => next += 1000,
            21 => next -= 4,
            26 => next = 3,
            27 => next = 1200,
            _ => next += 2,
        }
    }
    // And a batch that was cut.
    bytes.extend_from_within(..50);
    [bytes, offset_index, time_index]
}

/// That segment, its indexes as they are read, and what is known of it.
pub fn segment() -> (Vec<u8>, Indexes, SegmentContext) {
    let [bytes, offset_index, time_index] = segment_files();
    let context = SegmentContext {
        base_offset: Some(100),
        now_ms: TIME + 86_400_000,
        is_compared: true,
        ..SegmentContext::default()
    };
    (bytes, indexes(100, Some(&offset_index), Some(&time_index)), context)
}

/// The indexes of a segment as they are read.
pub fn indexes(base_offset: i64, offsets: Option<&[u8]>, times: Option<&[u8]>) -> Indexes {
    let mut indexes = Indexes::new(base_offset);
    if let Some(data) = offsets {
        indexes.has_offsets(data.len() as u64);
        indexes.add_offsets(data);
    }
    if let Some(data) = times {
        indexes.has_times(data.len() as u64);
        indexes.add_times(data);
    }
    indexes
}

/// Two byte strings as one input.
pub fn pair(left: &[u8], right: &[u8]) -> Vec<u8> {
    let size = u16::try_from(left.len()).expect("inputs are small");
    [&size.to_le_bytes(), left, right].concat()
}

/// The two of [`pair`].
pub fn unpair(input: &[u8]) -> (&[u8], &[u8]) {
    let Some((size, rest)) = input.split_first_chunk() else { return (input, &[]) };
    rest.split_at_checked(u16::from_le_bytes(*size).into()).unwrap_or((rest, &[]))
}

/// What is behind the offset in the name of a file; nothing for a file with a name of its own.
pub const SUFFIXES: [&[u8]; 12] = [
    b".log",
    b".index",
    b".timeindex",
    b".txnindex",
    b".snapshot",
    b".log.swap",
    b".index.swap",
    b".log.cleaned",
    b".log.deleted",
    b".snapshot.deleted",
    b"",
    b".checkpoint.deleted",
];

/// The name and the content of a file in the directory of a partition, chosen by number.
pub fn file(suffix: u8, offset: i64, data: &[u8], is_mended: bool) -> (Vec<u8>, Vec<u8>) {
    let suffix = SUFFIXES[usize::from(suffix) % SUFFIXES.len()];
    let name = match (suffix, offset & 3) {
        (b"", 0) => b"leader-epoch-checkpoint".to_vec(),
        (b"", 1) => b"partition.metadata".to_vec(),
        (b"", _) => data.iter().take(40).copied().collect(),
        (suffix, _) => file_name(offset, suffix),
    };
    let mut data = data.to_vec();
    if is_mended && suffix.starts_with(b".log") {
        mend_checksums(&mut data);
    }
    (name, data)
}

/// A directory as one input: of each file how it is chosen, its offset, its size, its bytes.
pub fn packed_files(files: &[(u8, u16, &[u8])]) -> Vec<u8> {
    let file = |&(suffix, offset, data): &(u8, u16, &[u8])| {
        let size = u16::try_from(data.len()).expect("inputs are small");
        [&[suffix][..], &offset.to_le_bytes(), &size.to_le_bytes(), data].concat()
    };
    files.iter().flat_map(file).collect()
}

/// The directory of [`packed_files`]. A suffix above 127 has the checksums made right, an offset
/// above 32,767 is far away: a segment reaches 2^31 offsets.
pub fn unpack_files(mut input: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut files = BTreeMap::new();
    while let Some((&[suffix, low, high, size_low, size_high], rest)) = input.split_first_chunk() {
        let size = u16::from_le_bytes([size_low, size_high]).into();
        let (data, rest) = rest.split_at_checked(size).unwrap_or((rest, &[]));
        input = rest;
        let offset = match u16::from_le_bytes([low, high]) {
            far if far > 0x7fff => i64::from(far & 0x7fff) << 31,
            near => near.into(),
        };
        let (name, data) = file(suffix & 0x7f, offset, data, suffix > 0x7f);
        files.insert(name, data);
    }
    files
}
