//! The fast walk. What makes it fast:
//!
//! * The only serial chain is *record length → next record*. The length is decoded by a branch on
//!   its size: a correct prediction takes the load out of the chain. `opaque` hides from LLVM that the
//!   end of the headers equals the next record; otherwise it may chain the whole parse into the hop.
//! * Timestamp delta, offset delta and key length stand side by side: one 8-byte load serves all of
//!   them.
//! * The offset delta of record i must be i, so its bytes are known: they are compared, not
//!   decoded.
//! * Every check is a comparison and a branch that is never taken: one micro-operation, where
//!   collecting flags takes three.
//! * What is unusual goes to the rules, record by record and out of line: a length below −1, a key
//!   length of three bytes, a varint that is longer than needed, the last bytes of the buffer.
//! * No load goes beyond the buffer: wide loads happen only where as many bytes are left.

use super::groups::{Groups, Shifts};
use super::offset::KnownOffset;
use super::usual::{Masks, REACH, usual_record};
use super::{Record, Shape, Sink, rules};

/// Up to this many records have offset deltas of one byte.
const FEW: usize = 64;

/// Whether every record of `shape` is correct and no byte is left. `before_each` is called before each
/// record.
///
/// # Safety
/// `shape` lies inside `data`; the sink was made for its count; the CPU has the instructions of
/// `groups`.
#[inline(always)]
pub(crate) unsafe fn walk<G: Groups, S: Sink>(
    groups: G,
    data: &[u8],
    shape: Shape,
    sink: S,
    mut before_each: impl FnMut(),
) -> bool {
    let (mut position, mut index) = (shape.records, 0);
    while index < shape.count {
        let offset = KnownOffset::of(index);
        let until = shape.count.min(offset.segment_end());
        let first = Next { position, index, offset };
        // SAFETY: `until` is at most the count; the rest is promised by the caller.
        let end = unsafe { walk_until(groups, data, shape, sink, first, until, &mut before_each) };
        let Some(end) = end else { return false };
        position = end;
        index = until;
    }
    position == shape.end
}

/// [`walk`] with nothing beside it.
///
/// # Safety
/// As [`walk`].
#[inline(always)]
pub(crate) unsafe fn walk_alone<G: Groups, S: Sink>(
    groups: G,
    data: &[u8],
    shape: Shape,
    sink: S,
) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        if shape.count <= FEW {
            walk_few(groups, data, shape, sink)
        } else {
            walk(groups, data, shape, sink, || {})
        }
    }
}

/// [`walk`] for small batches, without what only many records need.
///
/// # Safety
/// As [`walk`], and the count is at most [`FEW`].
#[inline(always)]
unsafe fn walk_few<G: Groups, S: Sink>(groups: G, data: &[u8], shape: Shape, sink: S) -> bool {
    debug_assert!(shape.count <= FEW);
    let first = Next { position: shape.records, index: 0, offset: KnownOffset::of(0) };
    // SAFETY: as the caller promises.
    let end = unsafe { walk_until(groups, data, shape, sink, first, shape.count, || {}) };
    end == Some(shape.end)
}

/// The record at `position` of `data`, which ends where the batch ends, if it is correct. Not inlined,
/// out of the way of the usual records.
#[cold]
#[inline(never)]
fn unusual_record(data: &[u8], position: usize, index: usize, max_delta: i64) -> Option<Record> {
    if position.saturating_add(REACH) <= data.len() {
        let (offset, max_zigzag) = (KnownOffset::of(index), (max_delta as u64) << 1);
        // SAFETY: just compared; `data` ends where the batch ends; shifts need no instruction.
        let usual = unsafe {
            let (end, masks) = (data.len(), Masks::new());
            usual_record::<_, true>(Shifts, masks, data, position, end, offset, max_zigzag)
        };
        if usual.is_some() {
            return usual;
        }
    }
    rules::read_record(data, position, index, max_delta)
}

/// Which record comes next, and where.
#[derive(Clone, Copy)]
struct Next {
    position: usize,
    index: usize,
    offset: KnownOffset,
}

/// Walks the records before index `until`, whose offset deltas all have varints of the same size.
/// Returns where the last ends.
///
/// # Safety
/// As [`walk`], and `until` is at most the count.
#[inline(always)]
#[allow(clippy::arithmetic_side_effects, reason = "`index` is below `until`")]
unsafe fn walk_until<G: Groups, S: Sink>(
    groups: G,
    data: &[u8],
    shape: Shape,
    sink: S,
    first: Next,
    until: usize,
    mut before_each: impl FnMut(),
) -> Option<usize> {
    let Next { mut position, mut index, mut offset } = first;
    let max_zigzag = (shape.max_delta as u64) << 1;
    let masks = Masks::new();
    let last_usual = data.len().checked_sub(REACH);
    while index < until {
        before_each();
        let usual = if last_usual.is_none_or(|last| position > last) {
            None
        } else {
            // SAFETY: just compared; the rest is promised by the caller.
            unsafe {
                let end = shape.end;
                usual_record::<G, false>(groups, masks, data, position, end, offset, max_zigzag)
            }
        };
        let record = match usual {
            Some(record) => record,
            None => unusual_record(data.get(..shape.end)?, position, index, shape.max_delta)?,
        };
        // SAFETY: `index` is below the count.
        unsafe { sink.put(data, index, record) };
        position = record.end;
        index += 1;
        offset.increment();
    }
    Some(position)
}
