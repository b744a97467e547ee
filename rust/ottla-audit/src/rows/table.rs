//! The batches and records of a segment as columns, a bounded piece at a time, damage left out.
//!
//! Ordinary batches are copied into columns by the kernels while they are checked, and so are the
//! records of compressed ones once they are inflated. Everything else is read record by record: of
//! a batch with a fault come the records before it, of one with a wrong checksum none.

use crate::segment::scan::{Pass, Paused, Scanner};
use crate::segment::tally::Tally;
use ottla_format::batch::{self, BatchInfo, Payload, Record, RecordCursor};
use ottla_format::check::{Checker, ControlRecord, Level};
use ottla_format::header::increment_sequence;
use ottla_format::limits::Limits;
use ottla_format::record::Headers;
use ottla_kernels::copies::{BinaryValues, HeaderPlace, Room};
use ottla_kernels::{BatchHeader, CopiedParts, Copies, EachBatch, Run};
use ottla_log::source::{Source, WINDOW_BYTES};
use std::cell::Cell;
use std::io;
use std::ops::Range;

/// Bytes read before the caller gets a say, where no rows are found.
const BUSY_BYTES: u64 = 64 << 20;

/// Bytes of a piece at most: positions in Arrow's columns have 31 bits, and text takes up to nine
/// times the bytes that it was made of.
pub const MAX_PIECE_BYTES: usize = 64 << 20;

/// What is known of a record beside its key, value and headers.
const NUMBER_BYTES: usize = 16;

/// What of a segment is asked for.
#[derive(Clone, Debug)]
pub struct RowRange {
    /// The batches that begin here. The start is where a batch begins.
    pub positions: Range<u64>,
    /// Which rows.
    pub bounds: RowBounds,
    /// Bytes after which a piece ends; above [`MAX_PIECE_BYTES`] counts as that.
    pub piece_bytes: usize,
    /// Bytes of a row that do not depend on what is read, as the caller counts them.
    pub row_bytes: usize,
}

/// Bounds of offsets and timestamps, inclusive.
///
/// A record is wanted when its own offset and timestamp lie inside. A batch is wanted when its last
/// offset, its base offset and its maximum timestamp, as its header has them, do not lie outside:
/// `max_timestamp` asks nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // as their names say
pub struct RowBounds {
    pub min_offset: i64,
    pub max_offset: i64,
    pub min_timestamp: i64,
    pub max_timestamp: i64,
}

impl Default for RowBounds {
    fn default() -> Self {
        Self {
            min_offset: i64::MIN,
            max_offset: i64::MAX,
            min_timestamp: i64::MIN,
            max_timestamp: i64::MAX,
        }
    }
}

impl RowBounds {
    fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a record is wanted.
    fn takes(&self, offset: i64, timestamp: i64) -> bool {
        (self.min_offset..=self.max_offset).contains(&offset)
            && (self.min_timestamp..=self.max_timestamp).contains(&timestamp)
    }

    /// Whether a batch is wanted.
    fn takes_batch(&self, info: &BatchInfo) -> bool {
        info.last_offset >= self.min_offset
            && info.base_offset <= self.max_offset
            && info.max_timestamp >= self.min_timestamp
    }

    /// Whether the header of a batch says that no record of it is wanted. Those of magic 0 and 1 do
    /// not say enough.
    fn excludes(&self, info: &BatchInfo) -> bool {
        info.magic >= 2 && !self.takes_batch(info)
    }
}

/// What comes next.
#[derive(Debug)]
pub enum Piece<T> {
    /// Rows, at least one.
    Rows(T),
    /// Nothing yet: a chance to stop.
    Busy,
    /// There is no more.
    End,
}

/// Where the reading of a range is.
enum Progress {
    Begin,
    Paused(Box<Paused>),
    Ended,
}

/// A batch that was seen, and whether its checksum is right.
type Event = Cell<Option<(BatchInfo, bool)>>;

/// Reads the batches of a range of a segment.
pub struct BatchReader {
    scanner: Scanner,
    range: RowRange,
    progress: Progress,
}

impl BatchReader {
    /// Nothing is read yet.
    pub fn new(range: RowRange, limits: Limits) -> Self {
        Self { scanner: Scanner::new(Level::Crc, limits), range, progress: Progress::Begin }
    }

    /// The next batches, and of each whether its checksum is right. `source` is the same each time.
    ///
    /// # Errors
    /// What ended reading. There is no more then.
    pub fn next(&mut self, source: &dyn Source) -> io::Result<Piece<Vec<(BatchInfo, bool)>>> {
        let Self { scanner, range, progress } = self;
        let bounds = range.bounds;
        let row_bytes = range.row_bytes.max(size_of::<BatchInfo>());
        let most = (range.piece_bytes.min(MAX_PIECE_BYTES) / row_bytes).max(1);
        let mut rows = Vec::new();
        let goes_on = advance(scanner, progress, source, &range.positions, |pass, event, stop| {
            let until = pass.position.saturating_add(BUSY_BYTES).min(stop);
            while rows.len() < most && pass.position < until.min(pass.window.end()) {
                let is_full = Cell::new(false);
                let on_batch = pass.tally.on_batch.take();
                pass.run_kernels(until, &|| is_full.get(), |checker, data, base, tally| {
                    ottla_kernels::crc_only_run(checker.kernels(), data, 0, |header| {
                        is_full.set(rows.len() >= most);
                        let is_taken = header.is_ordinary() && !is_full.get();
                        if is_taken {
                            tally.ordinary(header, base);
                            let info = BatchInfo::walked(header, base);
                            if bounds.takes_batch(&info) {
                                rows.push((info, true));
                            }
                        }
                        is_taken
                    })
                });
                pass.tally.on_batch = on_batch;
                if !is_full.get() && pass.position < until.min(pass.window.end()) {
                    pass.one_careful();
                    let seen = event.take().filter(|(info, _)| bounds.takes_batch(info));
                    rows.extend(seen);
                }
            }
            true
        })?;
        Ok(match (rows.is_empty(), goes_on) {
            (false, _) => Piece::Rows(rows),
            (true, true) => Piece::Busy,
            (true, false) => Piece::End,
        })
    }
}

/// Works on the next piece, unless there is none: whether there is more. `work` says whether it is
/// done with what it has read.
fn advance(
    scanner: &mut Scanner,
    progress: &mut Progress,
    source: &dyn Source,
    range: &Range<u64>,
    work: impl FnOnce(&mut Pass<'_, '_>, &Event, u64) -> bool,
) -> io::Result<bool> {
    let event = Event::default();
    let mut on_batch = |info: &BatchInfo, is_valid: bool| event.set(Some((*info, is_valid)));
    let mut on_read = |_: u64| true;
    let mut pass = match std::mem::replace(progress, Progress::Ended) {
        Progress::Ended => return Ok(false),
        Progress::Begin => scanner.begin_pieces(source, range, &mut on_read, &mut on_batch)?,
        Progress::Paused(paused) => {
            scanner.next_piece(source, *paused, &mut on_read, &mut on_batch)
        }
    };
    let is_done = work(&mut pass, &event, range.end);
    if let Some(error) = pass.window.take_failure() {
        return Err(error);
    }
    let goes_on = !is_done || pass.position < range.end.min(pass.window.end());
    if goes_on {
        *progress = Progress::Paused(Box::new(pass.pause()));
    }
    Ok(goes_on)
}

/// Which parts of records are asked for. Numbers always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // as their names say
pub struct RecordParts {
    pub keys: bool,
    pub values: bool,
    pub headers: bool,
}

/// Records as columns; what was not asked for holds nothing.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // as their names say
pub struct RecordRows {
    pub batch_positions: Vec<i64>,
    pub offsets: Vec<i64>,
    pub timestamps: Vec<i64>,
    pub keys: BinaryValues,
    pub values: BinaryValues,
    /// JSON; `None` where every record has `[]`.
    pub headers: Option<Text>,
    pub sequences: Vec<i32>,
    /// Names; `None` where no record has one.
    pub controls: Option<Vec<Option<&'static str>>>,
}

/// Text, as Arrow lays it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Text `i` is `data[ends[i]..ends[i + 1]]`.
    pub ends: Vec<i32>,
    /// UTF-8.
    pub data: Vec<u8>,
}

/// Reads the records of a range of a segment.
pub struct RecordReader {
    scanner: Scanner,
    range: RowRange,
    parts: RecordParts,
    progress: Progress,
    /// The batch of which there was no room for all records.
    inside: Option<Inside>,
    /// What the last piece took.
    room: Room,
}

/// A batch whose records are read.
struct Inside {
    info: BatchInfo,
    /// Where its records are: from here on in the batch, or inflated by the codecs.
    start: Option<usize>,
    /// `None` before the first record.
    cursor: Option<RecordCursor>,
}

impl RecordReader {
    /// Nothing is read yet.
    pub fn new(range: RowRange, parts: RecordParts, limits: Limits) -> Self {
        let (scanner, progress) = (Scanner::new(Level::Crc, limits), Progress::Begin);
        Self { scanner, range, parts, progress, inside: None, room: Room::default() }
    }

    /// The next records. `source` is the same each time.
    ///
    /// # Errors
    /// What ended reading. There is no more then.
    pub fn next(&mut self, source: &dyn Source) -> io::Result<Piece<RecordRows>> {
        let Self { scanner, range, parts, progress, inside, room } = self;
        let mut sheet = Sheet::new(range, *parts, *room);
        let goes_on = advance(scanner, progress, source, &range.positions, |pass, event, stop| {
            let until = pass.position.saturating_add(BUSY_BYTES).min(stop);
            loop {
                if let Some(batch) = inside {
                    if !sheet.read(pass, batch) {
                        return false;
                    }
                    *inside = None;
                }
                if sheet.is_full() || pass.position >= until.min(pass.window.end()) {
                    return true;
                }
                let is_full = Cell::new(false);
                let on_batch = pass.tally.on_batch.take();
                pass.run_kernels(until, &|| is_full.get(), |checker, data, base, tally| {
                    let run = sheet.run(checker, data, base, tally);
                    is_full.set(run.is_full);
                    Run { position: run.position, ..Run::default() }
                });
                pass.tally.on_batch = on_batch;
                if is_full.get() {
                    return true;
                }
                if pass.position < until.min(pass.window.end()) {
                    pass.one_careful();
                    *inside = event
                        .take()
                        .filter(|(info, is_valid)| *is_valid && !sheet.bounds.excludes(info))
                        .and_then(|(info, _)| Inside::open(pass, &info));
                }
            }
        })?;
        *room = sheet.room();
        Ok(match (sheet.copies.row_count(), goes_on) {
            (1.., _) => Piece::Rows(sheet.finish()),
            (0, true) => Piece::Busy,
            (0, false) => Piece::End,
        })
    }
}

impl Inside {
    /// `None` where there are no records to be read.
    fn open(pass: &mut Pass<'_, '_>, info: &BatchInfo) -> Option<Self> {
        if info.size > pass.checker.limits().batch_bytes {
            return None;
        }
        let size = info.size as usize;
        let whole = pass.window.hold(info.position, size).get(..size)?;
        let start = match batch::payload(info, whole).ok()? {
            Payload::Plain { start } => Some(start),
            Payload::Compressed { codec, bytes, .. } => {
                pass.checker.codecs().decompress(codec, info.magic, bytes).ok()?;
                None
            }
        };
        Some(Self { info: *info, start, cursor: None })
    }

    /// The header, where the kernels may take the inflated records of the batch.
    fn header(&self, whole: &[u8]) -> Option<BatchHeader> {
        let is_inflated = self.start.is_none() && !self.info.is_control();
        BatchHeader::parse(whole, 0).filter(|header| {
            is_inflated && i64::from(header.record_count) == i64::from(header.last_offset_delta) + 1
        })
    }
}

/// How far a run came, and whether there was no room for the batch behind it.
struct Filled {
    position: usize,
    is_full: bool,
}

/// The columns of a piece.
struct Sheet {
    bounds: RowBounds,
    piece_bytes: usize,
    row_bytes: usize,
    copies: Copies,
    batch_positions: Vec<i64>,
    sequences: Vec<i32>,
    headers: HeaderTexts,
    controls: Option<Vec<Option<&'static str>>>,
}

impl Sheet {
    fn new(range: &RowRange, parts: RecordParts, room: Room) -> Self {
        Self {
            bounds: range.bounds,
            piece_bytes: range.piece_bytes.min(MAX_PIECE_BYTES),
            row_bytes: range.row_bytes.max(NUMBER_BYTES),
            copies: Copies::new(CopiedParts { keys: parts.keys, values: parts.values }, room),
            batch_positions: Vec::with_capacity(room.rows),
            sequences: Vec::with_capacity(room.rows),
            headers: HeaderTexts { is_wanted: parts.headers, texts: None },
            controls: None,
        }
    }

    /// What the next piece will take: about as much as this one, and no memory is moved for the rest
    /// of a window.
    fn room(&self) -> Room {
        let Room { rows, key_bytes, value_bytes } = self.copies.taken();
        let bytes = |bytes: usize| (bytes + bytes / 8 + WINDOW_BYTES).min(self.piece_bytes);
        Room { rows: rows + rows / 8, key_bytes: bytes(key_bytes), value_bytes: bytes(value_bytes) }
    }

    fn used(&self) -> usize {
        let rows = self.copies.row_count().saturating_mul(self.row_bytes);
        rows.saturating_add(self.copies.data_size()).saturating_add(self.headers.size())
    }

    fn is_full(&self) -> bool {
        self.used() >= self.piece_bytes
    }

    /// What a batch takes at most.
    fn cost(&self, bytes: usize, records: i32) -> usize {
        let rows = usize::try_from(records).unwrap_or(0);
        rows.saturating_mul(self.row_bytes).saturating_add(bytes)
    }

    /// Copies the ordinary batches at the begin of `data`, as long as there is room.
    fn run(&mut self, checker: &Checker, data: &[u8], base: u64, tally: &mut Tally<'_>) -> Filled {
        let kernels = checker.kernels();
        // A record of more headers than are allowed is left to the rules.
        let most = checker.limits().headers as usize * 2;
        let is_everything = self.bounds.is_everything();
        let mut position = 0;
        loop {
            let from = position;
            let (mut end, mut is_full) = (from, false);
            let mut room = self.piece_bytes.saturating_sub(self.used());
            let mut skipped = None;
            while let Some(header) = BatchHeader::parse(data, end)
                .filter(|header| header.is_ordinary() && header.end - header.position <= most)
            {
                if !is_everything && self.bounds.excludes(&BatchInfo::walked(&header, base)) {
                    skipped = Some(header);
                    break;
                }
                let Some(left) =
                    room.checked_sub(self.cost(header.end - header.position, header.record_count))
                else {
                    is_full = end > from || self.copies.row_count() > 0;
                    break;
                };
                (room, end) = (left, header.end);
                if !is_everything {
                    break;
                }
            }
            position = self.copy(kernels, data.get(..end).unwrap_or(data), from, base, tally);
            let is_stuck = position < end;
            if let Some(header) = skipped.filter(|_| !is_stuck) {
                let alone = data.get(..header.end).unwrap_or(data);
                let run = ottla_kernels::crc_only_run(kernels, alone, position, |_| true);
                if run.position > position {
                    tally.ordinary(&header, base);
                    position = run.position;
                    continue;
                }
            }
            if is_everything || is_stuck || is_full || position == from {
                return Filled { position, is_full: is_full && !is_stuck };
            }
        }
    }

    /// Copies the batches from `from` to the end of `data`, if they are right: how far it came.
    fn copy(
        &mut self,
        kernels: ottla_kernels::Level,
        data: &[u8],
        from: usize,
        base: u64,
        tally: &mut Tally<'_>,
    ) -> usize {
        if from == data.len() {
            return from;
        }
        let Self { bounds, copies, batch_positions, sequences, headers, controls, .. } = self;
        let before = copies.row_count();
        let is_everything = bounds.is_everything();
        let mut only = None;
        let mut each = EachBatch::new(copies, |header: &BatchHeader, _: &Copies| {
            tally.ordinary(header, base);
            if is_everything {
                let position = (base + header.position as u64) as i64;
                let rows = header.record_count as u32 as usize;
                batch_positions.resize(batch_positions.len() + rows, position);
                fill_sequences(sequences, header.base_sequence, 0..header.record_count);
            } else {
                only = Some(*header);
            }
        });
        let reached = ottla_kernels::run(kernels, data, from, &mut each).position;
        if let Some(header) = only {
            let position = (base + header.position as u64) as i64;
            let (first, sequence) = (header.base_offset, header.base_sequence);
            keep(copies, before, bounds, batch_positions, sequences, position, first, sequence);
        }
        let places = copies.headers().get(before..).unwrap_or_default();
        headers.add(before, places, data);
        fill_controls(controls, copies.row_count());
        reached
    }

    /// Reads the records of a batch, those that are left: whether there was room for all.
    fn read(&mut self, pass: &mut Pass<'_, '_>, batch: &mut Inside) -> bool {
        let limits = *pass.checker.limits();
        let kernels = pass.checker.kernels();
        let whole = pass.window.hold(batch.info.position, batch.info.size as usize);
        let whole = whole.get(..batch.info.size as usize).unwrap_or_default();
        let payload = match batch.start {
            Some(start) => whole.get(start..).unwrap_or_default(),
            None => pass.checker.codecs().inflated(),
        };
        if batch.cursor.is_none() {
            if let Some(header) = batch.header(whole) {
                let cost = self.cost(payload.len(), header.record_count);
                let has_room = self.used().saturating_add(cost) <= self.piece_bytes;
                if has_room && self.walk(kernels, payload, &header, &batch.info, &limits) {
                    return true;
                }
                if !has_room && self.copies.row_count() > 0 {
                    return false;
                }
            }
            batch.cursor = RecordCursor::start(&batch.info, payload, limits).ok();
        }
        let Some(cursor) = &mut batch.cursor else { return true };
        loop {
            if self.is_full() {
                return false;
            }
            let index = cursor.index();
            // What cannot be read further is a finding of the audit; here it ends the batch.
            let Ok(Some(record)) = cursor.next(payload) else { return true };
            if self.bounds.takes(record.offset, record.timestamp) {
                self.push(&batch.info, index, &record);
            }
        }
    }

    /// Copies the records of an inflated batch, if the kernels find all of them right.
    fn walk(
        &mut self,
        kernels: ottla_kernels::Level,
        payload: &[u8],
        header: &BatchHeader,
        info: &BatchInfo,
        limits: &Limits,
    ) -> bool {
        let Self { bounds, copies, batch_positions, sequences, headers, controls, .. } = self;
        let before = copies.row_count();
        if !ottla_kernels::walk_payload(kernels, payload, header, copies) {
            return false;
        }
        // A record of more headers than are allowed is left to the rules.
        let most = u64::from(limits.headers) * 2;
        let places = copies.headers().get(before..).unwrap_or_default();
        if places.iter().any(|place| u64::from(place.end - place.position) > most) {
            copies.retain(before, |_, _| false);
            return false;
        }
        let (position, first, sequence) =
            (info.position as i64, info.base_offset, info.base_sequence);
        keep(copies, before, bounds, batch_positions, sequences, position, first, sequence);
        let places = copies.headers().get(before..).unwrap_or_default();
        headers.add(before, places, payload);
        fill_controls(controls, copies.row_count());
        true
    }

    fn push(&mut self, info: &BatchInfo, index: u32, record: &Record<'_>) {
        let rows = self.copies.row_count();
        self.copies.push(record.offset, record.timestamp, record.key, record.value);
        self.batch_positions.push(info.position as i64);
        self.sequences.push(record.sequence);
        self.headers.push(rows, &record.headers);
        let control = info
            .is_control()
            .then(|| ControlRecord::read(index, record.key, record.value).ok())
            .flatten();
        if let Some(control) = control {
            let controls = self.controls.get_or_insert_with(|| vec![None; rows]);
            controls.push(Some(control.name()));
        }
        fill_controls(&mut self.controls, rows + 1);
    }

    fn finish(self) -> RecordRows {
        let columns = self.copies.finish();
        RecordRows {
            batch_positions: self.batch_positions,
            offsets: columns.offsets,
            timestamps: columns.timestamps,
            keys: columns.keys,
            values: columns.values,
            headers: self.headers.texts,
            sequences: self.sequences,
            controls: self.controls,
        }
    }
}

/// Keeps the wanted rows from `before` on, which are all records of one batch, and fills in what they
/// share.
#[expect(clippy::too_many_arguments, reason = "fields of one sheet, borrowed one by one")]
fn keep(
    copies: &mut Copies,
    before: usize,
    bounds: &RowBounds,
    batch_positions: &mut Vec<i64>,
    sequences: &mut Vec<i32>,
    position: i64,
    base_offset: i64,
    base_sequence: i32,
) {
    if !bounds.is_everything() {
        copies.retain(before, |offset, timestamp| bounds.takes(offset, timestamp));
    }
    batch_positions.resize(copies.row_count(), position);
    let offsets = copies.offsets().get(before..).unwrap_or_default();
    let deltas = offsets.iter().map(|offset| offset.wrapping_sub(base_offset) as i32);
    fill_sequences(sequences, base_sequence, deltas);
}

fn fill_sequences(
    sequences: &mut Vec<i32>,
    base_sequence: i32,
    deltas: impl ExactSizeIterator<Item = i32>,
) {
    if base_sequence >= 0 {
        sequences.extend(deltas.map(|delta| increment_sequence(base_sequence, delta)));
    } else {
        sequences.resize(sequences.len() + deltas.len(), -1);
    }
}

fn fill_controls(controls: &mut Option<Vec<Option<&'static str>>>, rows: usize) {
    if let Some(controls) = controls {
        controls.resize(rows, None);
    }
}

/// Headers as JSON, one text a row.
struct HeaderTexts {
    is_wanted: bool,
    /// `None` while all rows have `[]`.
    texts: Option<Text>,
}

/// The text of a record without headers.
const NO_HEADERS: &[u8] = b"[]";

impl HeaderTexts {
    fn size(&self) -> usize {
        self.texts.as_ref().map_or(0, |texts| texts.data.len())
    }

    /// Adds those of the rows behind the first `rows`, which come from `data`.
    fn add(&mut self, rows: usize, places: &[HeaderPlace], data: &[u8]) {
        if !self.is_wanted {
            return;
        }
        let is_empty = |place: &HeaderPlace| place.end - place.position == 1;
        if self.texts.is_none() && places.iter().all(is_empty) {
            return;
        }
        for (index, place) in places.iter().enumerate() {
            let bytes = data.get(place.position as usize..place.end as usize).unwrap_or_default();
            self.push(rows + index, &Headers::read(bytes));
        }
    }

    /// Adds those of a row behind the first `rows`.
    fn push(&mut self, rows: usize, headers: &Headers<'_>) {
        if !self.is_wanted || self.texts.is_none() && headers.is_empty() {
            return;
        }
        let texts = self.texts.get_or_insert_with(|| Text {
            ends: (0..=rows).map(|row| end_of(row * NO_HEADERS.len())).collect(),
            data: NO_HEADERS.repeat(rows),
        });
        if headers.is_empty() {
            texts.data.extend_from_slice(NO_HEADERS);
        } else {
            write_headers(&mut texts.data, headers);
        }
        texts.ends.push(end_of(texts.data.len()));
    }
}

fn end_of(position: usize) -> i32 {
    i32::try_from(position).unwrap_or(i32::MAX)
}

/// Headers as JSON: an array of pairs. Text that is not UTF-8 has replacement characters as a key,
/// and is `{"base64": …}` as a value.
fn write_headers(out: &mut Vec<u8>, headers: &Headers<'_>) {
    let mut separator: &[u8] = b"[";
    for (key, value) in headers.iter() {
        out.extend_from_slice(separator);
        separator = b", ";
        out.push(b'[');
        if !write_plain(out, key) {
            write_text(out, &String::from_utf8_lossy(key));
        }
        out.extend_from_slice(b", ");
        match value {
            None => out.extend_from_slice(b"null"),
            Some(bytes) => write_value(out, bytes),
        }
        out.push(b']');
    }
    out.push(b']');
}

/// Text as a string, other bytes as an object with their base64.
fn write_value(out: &mut Vec<u8>, bytes: &[u8]) {
    if write_plain(out, bytes) {
        return;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        write_text(out, text);
        return;
    }
    out.extend_from_slice(b"{\"base64\": \"");
    write_base64(out, bytes);
    out.extend_from_slice(b"\"}");
}

/// A JSON string of ASCII in which nothing need be escaped, as most are; `false` where it is not.
fn write_plain(out: &mut Vec<u8>, text: &[u8]) -> bool {
    // Without a way out, so that the loop becomes vectors.
    let odd = text.iter().fold(0, |odd, &byte| {
        let is_other = !(0x20..0x80).contains(&byte);
        odd | u8::from(is_other) | u8::from(byte == b'"') | u8::from(byte == b'\\')
    });
    let is_plain = odd == 0;
    if is_plain {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
    }
    is_plain
}

/// A JSON string in which nothing is escaped that need not be.
fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
    {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((&byte, behind)) = special.split_first() else { break };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = behind;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// RFC 4648, with padding.
fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
        let word = word << (8 * (3 - group.len()));
        for digit in 0..4 {
            let is_padding = digit > group.len();
            let value = word >> (18 - 6 * digit) & 63;
            out.push(if is_padding { b'=' } else { DIGITS[value as usize] });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base64(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_base64(&mut out, bytes);
        out
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in [
            (&b""[..], &b""[..]),
            (b"f", b"Zg=="),
            (b"fo", b"Zm8="),
            (b"foo", b"Zm9v"),
            (b"foob", b"Zm9vYg=="),
            (b"\xff\xfe\xfd", b"//79"),
        ] {
            assert_eq!(base64(bytes), text);
        }
    }

    #[test]
    fn text_is_escaped_where_json_wants_it() {
        let mut out = Vec::new();
        write_text(&mut out, "a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{7f}ü");
        let wanted = "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\u{7f}ü\"";
        assert_eq!(String::from_utf8(out).as_deref(), Ok(wanted));
    }
}
