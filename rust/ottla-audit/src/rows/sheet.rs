//! The columns of a piece of records while it is filled.
//!
//! Ordinary batches are copied into columns by the kernels while they are checked, and so are the
//! records of compressed ones once they are inflated. Everything else is read record by record: of
//! a batch with a fault come the records before it, of one with a wrong checksum none.

use super::headers::{HeaderColumn, RecordHeaders};
use super::judge::Judge;
use super::open_batch::OpenBatch;
use super::range::{MAX_PIECE_BYTES, RowBounds, RowRange};
use super::traits::BatchTraits;
use crate::segment::pass::Pass;
use crate::segment::tally::Tally;
use ottla_format::batch::{BatchInfo, Record, RecordCursor};
use ottla_format::check::Checker;
use ottla_format::control_record::ControlRecord;
use ottla_format::error::Error;
use ottla_format::limits::Limits;
use ottla_format::sequence::increment_sequence;
use ottla_kernels::copies::{BinaryValues, Room};
use ottla_kernels::{BatchHeader, CopiedParts, Copies};
use ottla_log::source::WINDOW_BYTES;

/// What is known of a record beside its key, value and headers.
const NUMBER_BYTES: usize = 16;

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
    /// `None` where no record has any.
    pub headers: Option<RecordHeaders>,
    pub sequences: Vec<i32>,
    /// Names; `None` where no record has one.
    pub controls: Option<Vec<Option<&'static str>>>,
    /// What the batches say, each with the row behind its last.
    pub traits: Vec<(usize, BatchTraits)>,
}

/// How far a run came, and whether there was no room for the batch behind it.
pub(crate) struct Filled {
    pub(crate) position: usize,
    pub(crate) is_full: bool,
}

/// The columns of a piece.
pub(crate) struct Sheet {
    pub(crate) bounds: RowBounds,
    piece_bytes: usize,
    row_bytes: usize,
    pub(crate) copies: Copies,
    batch_positions: Vec<i64>,
    sequences: Vec<i32>,
    headers: HeaderColumn,
    controls: Option<Vec<Option<&'static str>>>,
    traits: Vec<(usize, BatchTraits)>,
}

impl Sheet {
    pub(crate) fn new(range: &RowRange, parts: RecordParts, room: Room) -> Self {
        Self {
            bounds: range.bounds,
            piece_bytes: range.piece_bytes.min(MAX_PIECE_BYTES),
            row_bytes: range.row_bytes.max(NUMBER_BYTES),
            copies: Copies::new(CopiedParts { keys: parts.keys, values: parts.values }, room),
            batch_positions: Vec::with_capacity(room.rows),
            sequences: Vec::with_capacity(room.rows),
            headers: HeaderColumn { is_wanted: parts.headers, rows: None },
            controls: None,
            traits: Vec::new(),
        }
    }

    /// What the next piece will take: about as much as this one, and no memory is moved for the rest
    /// of a window.
    pub(crate) fn room(&self) -> Room {
        let Room { rows, key_bytes, value_bytes } = self.copies.taken();
        let more = |count: usize| count.saturating_add(count / 8);
        let bytes = |bytes: usize| more(bytes).saturating_add(WINDOW_BYTES).min(self.piece_bytes);
        Room { rows: more(rows), key_bytes: bytes(key_bytes), value_bytes: bytes(value_bytes) }
    }

    pub(crate) fn used(&self) -> usize {
        let rows = self.copies.row_count().saturating_mul(self.row_bytes);
        rows.saturating_add(self.copies.data_size()).saturating_add(self.headers.size())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.used() >= self.piece_bytes
    }

    /// What a batch takes at most.
    pub(crate) fn cost(&self, bytes: usize, records: i32) -> usize {
        let rows = usize::try_from(records).unwrap_or(0);
        rows.saturating_mul(self.row_bytes).saturating_add(bytes)
    }

    /// Copies the ordinary batches at the begin of `data`, as long as there is room.
    pub(crate) fn run(
        &mut self,
        checker: &Checker,
        data: &[u8],
        base: u64,
        tally: &mut Tally<'_>,
        judge: &mut Judge,
    ) -> Filled {
        let kernels = checker.kernels();
        // A record of more headers than are allowed is left to the rules.
        let most = (checker.limits().headers as usize).saturating_mul(2);
        let is_everything = self.bounds.is_everything();
        let mut position = 0;
        loop {
            let from = position;
            let (mut end, mut is_full) = (from, false);
            let mut room = self.piece_bytes.saturating_sub(self.used());
            let mut skipped = None;
            let mut expected = judge.expected();
            while let Some(header) = BatchHeader::parse(data, end).filter(|header| {
                header.is_ordinary() && header.end.saturating_sub(header.position) <= most
            }) {
                if !judge.takes_plain(expected, &header, data) {
                    // The rules know what is behind it.
                    break;
                }
                expected = last_offset(&header).saturating_add(1);
                if !is_everything || judge.is_withholding() {
                    let info = BatchInfo::from_kernel(&header, base);
                    if self.bounds.excludes(&info) || judge.withholds(&info) {
                        skipped = Some(header);
                        break;
                    }
                }
                let Some(left) = room.checked_sub(
                    self.cost(header.end.saturating_sub(header.position), header.record_count),
                ) else {
                    is_full = end > from || self.copies.row_count() > 0;
                    break;
                };
                (room, end) = (left, header.end);
                if !is_everything {
                    break;
                }
            }
            let all = data.get(..end).unwrap_or(data);
            position = self.copy(kernels, all, from, base, tally, judge);
            let is_stuck = position < end;
            if let Some(header) = skipped.filter(|_| !is_stuck) {
                let alone = data.get(..header.end).unwrap_or(data);
                let run = ottla_kernels::crc_only_run(kernels, alone, position, &mut |_| true);
                if run.position > position {
                    tally.on_plain_batch(&header, base, None);
                    judge.on_plain(&header, base);
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
        judge: &mut Judge,
    ) -> usize {
        if from == data.len() {
            return from;
        }
        let Self { bounds, copies, batch_positions, sequences, headers, controls, traits, .. } =
            self;
        let before = copies.row_count();
        let is_everything = bounds.is_everything();
        let mut only = None;
        let mut on_batch = |header: &BatchHeader| {
            tally.on_plain_batch(header, base, None);
            judge.on_plain(header, base);
            if is_everything {
                let position = base.saturating_add(header.position as u64) as i64;
                let rows = header.record_count as u32 as usize;
                batch_positions.resize(batch_positions.len().saturating_add(rows), position);
                fill_sequences(sequences, header.base_sequence, 0..header.record_count);
                BatchTraits::of_header(header).fill(traits, batch_positions.len());
            } else {
                only = Some(*header);
            }
        };
        let reached = ottla_kernels::copy_run(kernels, data, from, copies, &mut on_batch).position;
        if let Some(header) = only {
            let position = base.saturating_add(header.position as u64) as i64;
            let (first, sequence) = (header.base_offset, header.base_sequence);
            keep(copies, before, bounds, batch_positions, sequences, position, first, sequence);
            BatchTraits::of_header(&header).fill(traits, copies.row_count());
        }
        let places = copies.headers().get(before..).unwrap_or_default();
        headers.add(before, places, data);
        fill_controls(controls, copies.row_count());
        reached
    }

    /// Reads the records of a batch, those that are left: whether there was room for all.
    pub(crate) fn read(&mut self, pass: &mut Pass<'_, '_>, batch: &mut OpenBatch) -> bool {
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
            match RecordCursor::start(&batch.info, payload, limits) {
                Ok(cursor) => batch.cursor = Some(cursor),
                Err(error) => batch.fault = Some(error.kind.to_string()),
            }
        }
        let Some(mut cursor) = batch.cursor.take() else { return true };
        let info = batch.info;
        let read =
            self.push_all(&info, payload, &mut cursor, |_, record| batch.takes(record.offset));
        batch.cursor = Some(cursor);
        // What cannot be read further is a finding of the audit; here it ends the batch.
        read.unwrap_or_else(|error| {
            batch.fault = Some(error.kind.to_string());
            true
        })
    }

    /// Adds the records that are left, of those that are wanted: whether there was room for all.
    pub(crate) fn push_all(
        &mut self,
        info: &BatchInfo,
        payload: &[u8],
        cursor: &mut RecordCursor,
        mut is_wanted: impl FnMut(u32, &Record<'_>) -> bool,
    ) -> Result<bool, Error> {
        loop {
            if self.is_full() {
                return Ok(false);
            }
            let index = cursor.index();
            let Some(record) = cursor.next(payload)? else { return Ok(true) };
            if is_wanted(index, &record) && self.bounds.takes(record.offset, record.timestamp) {
                self.push(info, index, &record);
            }
        }
    }

    /// Copies the records of an inflated batch, if the kernels find all of them right.
    pub(crate) fn walk(
        &mut self,
        kernels: ottla_kernels::Level,
        payload: &[u8],
        header: &BatchHeader,
        info: &BatchInfo,
        limits: &Limits,
    ) -> bool {
        let Self { bounds, copies, batch_positions, sequences, headers, controls, traits, .. } =
            self;
        let before = copies.row_count();
        if !ottla_kernels::walk_payload(kernels, payload, header, copies) {
            return false;
        }
        // A record of more headers than are allowed is left to the rules.
        let most = u64::from(limits.headers).saturating_mul(2);
        let places = copies.headers().get(before..).unwrap_or_default();
        if places.iter().any(|place| u64::from(place.end.wrapping_sub(place.position)) > most) {
            copies.retain(before, |_, _| false);
            return false;
        }
        let (position, first, sequence) =
            (info.position as i64, info.base_offset, info.base_sequence);
        keep(copies, before, bounds, batch_positions, sequences, position, first, sequence);
        BatchTraits::of(info).fill(traits, copies.row_count());
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
        fill_controls(&mut self.controls, rows.saturating_add(1));
        BatchTraits::of(info).fill(&mut self.traits, rows.saturating_add(1));
    }

    pub(crate) fn finish(self) -> RecordRows {
        let columns = self.copies.finish();
        RecordRows {
            batch_positions: self.batch_positions,
            offsets: columns.offsets,
            timestamps: columns.timestamps,
            keys: columns.keys,
            values: columns.values,
            headers: self.headers.rows,
            sequences: self.sequences,
            controls: self.controls,
            traits: self.traits,
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

fn last_offset(header: &BatchHeader) -> i64 {
    header.base_offset.saturating_add(header.last_offset_delta.into())
}

fn fill_sequences(
    sequences: &mut Vec<i32>,
    base_sequence: i32,
    deltas: impl ExactSizeIterator<Item = i32>,
) {
    if base_sequence >= 0 {
        sequences.extend(deltas.map(|delta| increment_sequence(base_sequence, delta)));
    } else {
        sequences.resize(sequences.len().saturating_add(deltas.len()), -1);
    }
}

fn fill_controls(controls: &mut Option<Vec<Option<&'static str>>>, rows: usize) {
    if let Some(controls) = controls {
        controls.resize(rows, None);
    }
}
