//! Records as columns of numbers, and where their headers are.
//!
//! Positions count through the source and go on through the payloads that were inflated. The headers of
//! a record that the kernels have read stand right behind its value; of one that was read by itself it
//! is noted where they are.

use crate::record::Headers;
use ottla_kernels::Numbers;
use ottla_kernels::numbers::Row;
use std::ops::Range;

/// The bytes that positions count through: those of the source, then inflated payloads.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The source.
    pub data: &'a [u8],
    /// The payloads, one behind the other.
    pub inflated: &'a [u8],
}

impl<'a> Places<'a> {
    /// The bytes from a position on.
    #[inline]
    fn from(self, position: u32) -> &'a [u8] {
        let position = position as usize;
        let found = match position.checked_sub(self.data.len()) {
            None => self.data.get(position..),
            Some(position) => self.inflated.get(position..),
        };
        found.unwrap_or_default()
    }

    /// A key or a value.
    #[inline]
    pub(crate) fn part(self, position: u32, length: i32) -> Option<&'a [u8]> {
        self.from(position).get(..usize::try_from(length).ok()?)
    }

    /// All of a row but its headers.
    fn parts(self, row: &Row) -> (i64, i64, [Option<&'a [u8]>; 2]) {
        let key = self.part(row.key_position, row.key_length);
        let value = self.part(row.value_position, row.value_length);
        (row.offset, row.timestamp, [key, value])
    }

    /// The position of a part of these bytes.
    fn position(self, part: &[u8]) -> u32 {
        let address = part.as_ptr() as usize;
        let within = |bytes: &[u8]| address.wrapping_sub(bytes.as_ptr() as usize);
        let position = within(self.data);
        if position <= self.data.len() {
            return position as u32;
        }
        within(self.inflated).saturating_add(self.data.len()) as u32
    }
}

/// Where the first header of a record is, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadersPlace {
    pub(crate) position: u32,
    pub(crate) count: u32,
}

/// Rows of records.
pub struct NumberColumns {
    numbers: Numbers,
    /// Which rows the kernels have not read.
    pushed: Vec<Range<usize>>,
    /// The headers of these, by row, where there are any.
    headers: Vec<(usize, HeadersPlace)>,
}

/// Headers of rows as columns of numbers, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderColumns {
    /// How many each row has.
    pub counts: Vec<i32>,
    /// One more than there are rows: the headers of row `i` are those from `offsets[i]` to
    /// `offsets[i + 1]`.
    pub offsets: Vec<i32>,
    /// Where the keys are.
    pub key_positions: Vec<u32>,
    /// Bytes of the keys.
    pub key_lengths: Vec<i32>,
    /// Where the values are; of null, where the key ends.
    pub value_positions: Vec<u32>,
    /// Bytes of the values, −1 for null.
    pub value_lengths: Vec<i32>,
}

impl NumberColumns {
    pub(crate) fn new(numbers: Numbers) -> Self {
        Self { numbers, pushed: Vec::new(), headers: Vec::new() }
    }

    /// Rows whose headers stand behind their values.
    pub fn of_rows(rows: impl Iterator<Item = Row>) -> Self {
        let mut numbers = Numbers::new(rows.size_hint().0);
        rows.for_each(|row| numbers.push(row));
        Self::new(numbers)
    }

    /// The numbers.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    pub(crate) fn numbers_mut(&mut self) -> &mut Numbers {
        &mut self.numbers
    }

    /// Adds a row that the kernels have not read.
    pub(crate) fn push(&mut self, row: Row, headers: HeadersPlace) {
        let at = self.numbers.row_count();
        match self.pushed.last_mut() {
            Some(rows) if rows.end == at => rows.end = at.saturating_add(1),
            _ => self.pushed.push(at..at.saturating_add(1)),
        }
        if headers.count > 0 {
            self.headers.push((at, headers));
        }
        self.numbers.push(row);
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        self.numbers.truncate(rows);
        self.headers.truncate(self.headers.partition_point(|(row, _)| *row < rows));
        self.pushed.truncate(self.pushed.partition_point(|pushed| pushed.start < rows));
        if let Some(last) = self.pushed.last_mut() {
            last.end = last.end.min(rows);
        }
    }

    /// A row.
    #[inline]
    pub fn row(&self, row: usize) -> Option<Row> {
        let numbers = &self.numbers;
        Some(Row {
            offset: *numbers.offsets().get(row)?,
            timestamp: *numbers.timestamps().get(row)?,
            key_position: *numbers.key_positions().get(row)?,
            key_length: *numbers.key_lengths().get(row)?,
            value_position: *numbers.value_positions().get(row)?,
            value_length: *numbers.value_lengths().get(row)?,
        })
    }

    /// Whether keys and values lie within what positions count through.
    pub fn is_within(&self, places: Places<'_>) -> bool {
        let is_found =
            |position, length: i32| length < 0 || places.part(position, length).is_some();
        (0..self.numbers.row_count()).filter_map(|row| self.row(row)).all(|row| {
            is_found(row.key_position, row.key_length)
                && is_found(row.value_position, row.value_length)
        })
    }

    /// The headers of a row.
    #[inline]
    pub(crate) fn headers<'a>(&self, at: usize, row: &Row, places: Places<'a>) -> Headers<'a> {
        if self.is_pushed(at) {
            return self.noted_headers(at, places);
        }
        // Where a null value would be, there is what follows it.
        let length = row.value_length.max(0) as u32;
        Headers::read(places.from(row.value_position.saturating_add(length)))
    }

    #[inline]
    fn is_pushed(&self, row: usize) -> bool {
        let at = self.pushed.partition_point(|rows| rows.end <= row);
        self.pushed.get(at).is_some_and(|rows| rows.start <= row)
    }

    fn noted_headers<'a>(&self, row: usize, places: Places<'a>) -> Headers<'a> {
        let found = self.headers.binary_search_by_key(&row, |(row, _)| *row).ok();
        let place = found.and_then(|at| self.headers.get(at)).map(|(_, place)| *place);
        place.map_or_else(Headers::default, |HeadersPlace { position, count }| {
            Headers::of(places.from(position), count)
        })
    }

    /// The headers of each row, in order.
    pub fn header_rows<'a>(
        &'a self,
        places: Places<'a>,
    ) -> impl ExactSizeIterator<Item = Headers<'a>> {
        (0..self.numbers.row_count()).map(move |at| {
            self.row(at).map_or_else(Headers::default, |row| self.headers(at, &row, places))
        })
    }

    /// The headers of all rows.
    pub fn header_columns(&self, places: Places<'_>) -> HeaderColumns {
        let rows = self.numbers.row_count();
        let mut columns = HeaderColumns::for_rows(rows);
        for headers in self.header_rows(places) {
            let before = columns.key_lengths.len();
            for (key, value) in headers.iter() {
                columns.push(key, value, places);
            }
            let end = columns.key_lengths.len();
            // Each has two bytes of data of less than 2 GiB.
            columns.counts.push(end.saturating_sub(before) as i32);
            columns.offsets.push(end as i32);
        }
        columns
    }

    /// Whether the rows are the same as others, with what their positions count through.
    pub fn is_equal(&self, places: Places<'_>, other: &Self, other_places: Places<'_>) -> bool {
        let same = |at: usize| {
            let (left, right) = (self.row(at)?, other.row(at)?);
            let headers = self.headers(at, &left, places);
            let other_headers = other.headers(at, &right, other_places);
            Some(
                places.parts(&left) == other_places.parts(&right)
                    && headers.iter().eq(other_headers.iter()),
            )
        };
        let rows = self.numbers.row_count();
        rows == other.numbers.row_count() && (0..rows).all(|at| same(at) == Some(true))
    }
}

impl HeaderColumns {
    fn for_rows(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows.saturating_add(1));
        offsets.push(0);
        Self {
            counts: Vec::with_capacity(rows),
            offsets,
            key_positions: Vec::new(),
            key_lengths: Vec::new(),
            value_positions: Vec::new(),
            value_lengths: Vec::new(),
        }
    }

    fn push(&mut self, key: &[u8], value: Option<&[u8]>, places: Places<'_>) {
        let position = places.position(key);
        self.key_positions.push(position);
        self.key_lengths.push(key.len() as i32);
        let behind = position.saturating_add(key.len() as u32);
        self.value_positions.push(value.map_or(behind, |value| places.position(value)));
        self.value_lengths.push(value.map_or(-1, |value| value.len() as i32));
    }
}
