//! The headers of records as a column.

use ottla_format::record::Headers;
use ottla_kernels::copies::HeaderPlace;

/// Bytes of the headers of a record that has none: their count.
const NO_HEADERS: &[u8] = &[0];

/// Headers of records, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHeaders {
    /// Those of row `i` are `data[ends[i]..ends[i + 1]]`.
    ends: Vec<usize>,
    /// As in a record: their count, then key and value of each.
    data: Vec<u8>,
}

impl RecordHeaders {
    fn of_rows_without(rows: usize) -> Self {
        let ends = (0..=rows).map(|row| row.saturating_mul(NO_HEADERS.len())).collect();
        Self { ends, data: NO_HEADERS.repeat(rows) }
    }

    /// Returns those of each row, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Headers<'_>> {
        self.ends.windows(2).map(|ends| {
            let bytes = ends.first().zip(ends.last());
            Headers::read(
                bytes.and_then(|(&from, &to)| self.data.get(from..to)).unwrap_or(NO_HEADERS),
            )
        })
    }
}

/// The column while it is filled.
pub(crate) struct HeaderColumn {
    pub(crate) is_wanted: bool,
    /// `None` while no row has any.
    pub(crate) rows: Option<RecordHeaders>,
}

impl HeaderColumn {
    pub(crate) fn size(&self) -> usize {
        self.rows.as_ref().map_or(0, |rows| rows.data.len())
    }

    /// Adds those of the rows behind the first `rows`, which come from `data`.
    pub(crate) fn add(&mut self, rows: usize, places: &[HeaderPlace], data: &[u8]) {
        if !self.is_wanted {
            return;
        }
        let is_empty = |place: &HeaderPlace| place.end.wrapping_sub(place.position) == 1;
        if self.rows.is_none() && places.iter().all(is_empty) {
            return;
        }
        let column = self.rows.get_or_insert_with(|| RecordHeaders::of_rows_without(rows));
        for place in places {
            let bytes = data.get(place.position as usize..place.end as usize);
            column.data.extend_from_slice(bytes.unwrap_or(NO_HEADERS));
            column.ends.push(column.data.len());
        }
    }

    /// Adds those of a row behind the first `rows`.
    pub(crate) fn push(&mut self, rows: usize, headers: &Headers<'_>) {
        if !self.is_wanted || self.rows.is_none() && headers.is_empty() {
            return;
        }
        let column = self.rows.get_or_insert_with(|| RecordHeaders::of_rows_without(rows));
        headers.write(&mut column.data);
        column.ends.push(column.data.len());
    }
}
