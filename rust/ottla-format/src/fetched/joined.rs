//! Records of several partitions as columns of one table.

use super::Fetched;
use super::rows::FinishedRows;
use crate::columns::Places;
use std::ops::Range;

/// Columns of records, partition by partition. Keys and values are copied side by side, so that the
/// answers need not outlive them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct JoinedColumns {
    /// Which of the topics; the caller has their names.
    pub topic: Vec<i32>,
    pub partition: Vec<i32>,
    pub offset: Vec<i64>,
    /// In ms.
    pub timestamp: Vec<i64>,
    pub key: JoinedParts,
    pub value: JoinedParts,
}

/// Keys or values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedParts {
    /// One more than there are rows: row `i` is `data[offsets[i]..offsets[i + 1]]`.
    pub offsets: Vec<i64>,
    /// The bytes of all rows.
    pub data: Vec<u8>,
    /// Which rows are not null.
    pub valid: Vec<bool>,
    /// How many are.
    pub null_count: usize,
}

impl Default for JoinedParts {
    fn default() -> Self {
        Self { offsets: vec![0], data: Vec::new(), valid: Vec::new(), null_count: 0 }
    }
}

impl JoinedColumns {
    /// Makes room for as many rows more.
    pub fn reserve(&mut self, count: usize) {
        self.topic.reserve(count);
        self.partition.reserve(count);
        self.offset.reserve(count);
        self.timestamp.reserve(count);
        for parts in [&mut self.key, &mut self.value] {
            parts.offsets.reserve(count);
            parts.valid.reserve(count);
        }
    }

    /// Adds some of the records of a partition; `data` are the bytes of its answer.
    pub fn add(
        &mut self,
        (topic, partition): (i32, i32),
        fetched: &Fetched,
        data: &[u8],
        range: Range<usize>,
    ) {
        let places = fetched.places(data);
        for (_, rows) in fetched.finished().pieces(range) {
            self.add_rows(fetched.finished(), rows, places);
        }
        let rows = self.offset.len();
        self.topic.resize(rows, topic);
        self.partition.resize(rows, partition);
    }

    /// Checks columns that come from elsewhere, of so many topics.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(&self, topics: usize) -> Result<(), &'static str> {
        let rows = self.offset.len();
        let is_topic = |&topic: &i32| usize::try_from(topic).is_ok_and(|topic| topic < topics);
        if [self.topic.len(), self.partition.len(), self.timestamp.len()] != [rows; 3] {
            return Err("columns of different lengths");
        }
        if !self.topic.iter().all(is_topic) {
            return Err("a topic that there is not");
        }
        self.key.check(rows)?;
        self.value.check(rows)
    }

    /// Adds rows that stand one behind the other.
    fn add_rows(&mut self, rows: &FinishedRows, range: Range<usize>, places: Places<'_>) {
        let numbers = rows.numbers();
        let columns = (
            numbers.offsets().get(range.clone()),
            numbers.timestamps().get(range.clone()),
            numbers
                .key_positions()
                .get(range.clone())
                .zip(numbers.key_lengths().get(range.clone())),
            numbers.value_positions().get(range.clone()).zip(numbers.value_lengths().get(range)),
        );
        let (Some(offsets), Some(timestamps), Some(keys), Some(values)) = columns else { return };
        self.offset.extend_from_slice(offsets);
        self.timestamp.extend_from_slice(timestamps);
        self.key.add(keys, places);
        self.value.add(values, places);
    }
}

impl JoinedParts {
    fn check(&self, rows: usize) -> Result<(), &'static str> {
        if self.valid.len() != rows || self.offsets.len() != rows.saturating_add(1) {
            return Err("columns of different lengths");
        }
        let ends = self.offsets.first().zip(self.offsets.last());
        if !self.offsets.is_sorted() || ends != Some((&0, &(self.data.len() as i64))) {
            return Err("offsets that are not those of the data");
        }
        if self.valid.iter().filter(|&&valid| !valid).count() != self.null_count {
            return Err("another number of nulls");
        }
        Ok(())
    }

    #[allow(clippy::arithmetic_side_effects, reason = "the bytes and rows are all in memory")]
    fn add(&mut self, (positions, lengths): (&[u32], &[i32]), places: Places<'_>) {
        let bytes: u64 = lengths.iter().map(|&length| u64::from(length.max(0) as u32)).sum();
        self.data.reserve(usize::try_from(bytes).unwrap_or(0));
        let nulls = lengths.iter().filter(|&&length| length < 0).count();
        self.null_count += nulls;
        self.valid.extend(lengths.iter().map(|&length| length >= 0));
        if nulls == lengths.len() {
            let end = self.data.len() as i64;
            self.offsets.resize(self.offsets.len() + nulls, end);
            return;
        }
        for (&position, &length) in positions.iter().zip(lengths) {
            if let Some(part) = places.part(position, length) {
                self.data.extend_from_slice(part);
            }
            self.offsets.push(self.data.len() as i64);
        }
    }
}
