//! What a walk must know about a batch.

use crate::header::{BatchHeader, MIN_RECORD_BYTES};

/// What a walk must know about a batch: where its records are, how many, and the largest timestamp
/// delta.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(super) records: usize,
    pub(super) end: usize,
    pub(crate) count: usize,
    pub(super) max_delta: i64,
}

impl Shape {
    /// The shape of an ordinary batch in the buffer it was parsed from.
    #[inline(always)]
    pub(crate) fn of_batch(header: &BatchHeader) -> Option<Shape> {
        let max_delta = header.max_delta()?;
        let count = header.record_count as usize;
        Some(Shape { records: header.records_position(), end: header.end, count, max_delta })
    }

    /// The shape of a decompressed payload, which holds nothing but records.
    pub(crate) fn of_payload(header: &BatchHeader, payload: &[u8]) -> Option<Shape> {
        let max_delta = header.max_delta()?;
        let count = usize::try_from(header.record_count).ok()?;
        let possible = count >= 1 && count <= payload.len() / MIN_RECORD_BYTES;
        possible.then_some(Shape { records: 0, end: payload.len(), count, max_delta })
    }
}
