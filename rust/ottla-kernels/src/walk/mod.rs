//! The record walk: checks the structure of every record of one uncompressed batch or decompressed
//! payload, and passes its positions to a [`Sink`].
//!
//! ```text
//! │length│attributes│ts. delta │offset delta│key length│key│value length│value│header count│headers …
//!  varint  1 byte    varlong    varint       varint           varint            varint
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | `rules` | one record by the rules, slow and plain; [`naive`] uses nothing else and is the oracle |
//! | `fast` | the loop of every level: usual records by `usual`, the others by `rules` |
//! | `usual` | one usual record, by wide loads |
//! | `offset` | the offset delta that the next record must have |
//! | `groups` | the bits of a varint, by shifts or by `pext` |
//! | `fused` | the walk and the CRC in one loop |

pub(crate) mod fast;
#[cfg(target_arch = "x86_64")]
pub(crate) mod fused;
pub(crate) mod groups;
mod offset;
mod rules;
mod usual;

use crate::header::{BatchHeader, MIN_RECORD_BYTES};

/// What is known about one record. Positions count from the beginning of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Milliseconds after the header's base timestamp.
    pub timestamp_delta: i64,
    /// Where the key is, or would be.
    pub key_position: usize,
    /// Bytes of the key, −1 for null.
    pub key_length: i32,
    /// Where the value is, or would be.
    pub value_position: usize,
    /// Bytes of the value, −1 for null.
    pub value_length: i32,
    /// Where the header count is, a varint; the headers follow.
    pub headers_position: usize,
    /// Where the record ends.
    pub end: usize,
}

/// Receives the records of a batch, one by one. `Copy`, so that its pointers stay in registers.
///
/// # Safety
///
/// Implementations may rely on [`put`](Sink::put) being called as its safety section says, and on
/// nothing else.
pub unsafe trait Sink: Copy {
    /// Receives record `index` of `data`.
    ///
    /// # Safety
    ///
    /// `index` is below the record count of the header that the sink was made for, and the records
    /// come in order, from 0. `data` is what the target received in
    /// [`begin`](crate::target::Target::begin); keys and values lie inside it, one behind the other.
    unsafe fn put(self, data: &[u8], index: usize, record: Record);
}

/// What a walk must know about a batch: where its records are, how many, and the largest timestamp
/// delta.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    records: usize,
    end: usize,
    pub(crate) count: usize,
    max_delta: i64,
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

/// The oracle: every record by the rules, in the simplest loop. `None` if one breaks a rule, or bytes
/// are left.
///
/// The header provides the record count and the timestamps; the records lie from `position` to `end`
/// of `data`.
pub fn naive(
    header: &BatchHeader,
    data: &[u8],
    position: usize,
    end: usize,
) -> Option<Vec<Record>> {
    let (mut records, mut next) = (Vec::new(), position);
    for index in 0..usize::try_from(header.record_count).ok()? {
        let record = rules::read_record(data.get(..end)?, next, index, header.max_delta()?)?;
        next = record.end;
        records.push(record);
    }
    (next == end).then_some(records)
}
