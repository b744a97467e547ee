//! How far a segment can be followed, and what explains offsets that it does not have.

use crate::place::Place;
use ottla_audit::PartitionContext;
use ottla_log::framing::{self, Followed, Range};
use ottla_py_batches::calls::detached;
use pyo3::prelude::*;

/// Bytes of a file that are read at once: a page.
const FILE_READ_BYTES: u64 = 4096;

/// Bytes of an object that are read at once, as each read is a request.
const OBJECT_READ_BYTES: u64 = 1 << 20;

/// What `follow_batches` returns, in the order of the fields of `ottla.logs.segment.Followed`.
type Row = (u64, u64, u64, Option<i64>, Option<i64>, i32, u64, u64, &'static str, Option<i64>);

/// Follows the batches of a segment by their headers alone, as far as they are whole and continue each
/// other.
///
/// Args:
///     place: path of the segment, or an object that reads it, see :class:`Segment`.
///     position: where a batch begins.
///     stop: no batch that ends after this position is whole.
///     max_bytes: ends with the batch that reaches this number of bytes.
///     next_offset: the base offset that the first batch must have; any without it.
///     has_holes: whether offsets may be missing between batches, as compaction leaves them.
///
/// Returns:
///     Position where the last batch begins and where it ends, both `position` if there is none; how
///     many there are; base offset of the first one; the last offset plus one; leader epoch of the last
///     one; how many the cleaner rewrote; a sum of hashes of their headers; why it ends there: ``end``,
///     ``limit``, ``torn``, ``no-batch``, ``hole`` or ``back``; and the offset of the batch that it
///     ends before, for the last two.
///
/// Raises:
///     OSError: the segment cannot be read.
#[pyfunction]
#[pyo3(signature = (
    place, position, stop, *, max_bytes=None, next_offset=None, has_holes=false
))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn follow_batches(
    py: Python<'_>,
    place: Place,
    position: u64,
    stop: u64,
    max_bytes: Option<u64>,
    next_offset: Option<i64>,
    has_holes: bool,
) -> PyResult<Row> {
    let file = place.open_detached(py)?;
    let read_bytes = match place {
        Place::Path(_) => FILE_READ_BYTES,
        Place::Object(_) => OBJECT_READ_BYTES,
    };
    let max_bytes = max_bytes.unwrap_or(u64::MAX);
    let range = Range { position, stop, max_bytes, next_offset, has_holes };
    detached(py, || framing::follow_batches(&file, range, read_bytes))?
        .map(|found| {
            let Followed {
                last,
                end,
                batches,
                first_offset,
                next_offset,
                leader_epoch,
                rewritten,
                digest,
                stop,
            } = found;
            (
                last,
                end,
                batches,
                first_offset,
                next_offset,
                leader_epoch,
                rewritten,
                digest,
                stop.name(),
                stop.offset(),
            )
        })
        .map_err(|error| place.error(py, &error))
}

/// Says what explains that a log has no batch of some offsets though it goes on behind them.
///
/// Args:
///     first_offset, last_offset: the offsets, inclusive.
///     topic: the topic; those of coordinators are compacted.
///     log_start_offset: of ``log-start-offset-checkpoint`` or a newer start that is known.
///     first_dirty_offset: of ``cleaner-offset-checkpoint``.
///     rewritten_batches: batches around them with marks of the cleaner.
///     cleanup_policy: of the topic.
///
/// Returns:
///     The explanation in words, ``None`` where there is none.
#[pyfunction]
#[pyo3(signature = (
    first_offset, last_offset, *, topic=None, log_start_offset=None, first_dirty_offset=None,
    rewritten_batches=0, cleanup_policy=None
))]
pub fn lawful_hole(
    first_offset: i64,
    last_offset: i64,
    topic: Option<String>,
    log_start_offset: Option<i64>,
    first_dirty_offset: Option<i64>,
    rewritten_batches: u64,
    cleanup_policy: Option<String>,
) -> Option<String> {
    let context = PartitionContext {
        topic,
        log_start_offset,
        first_dirty_offset,
        cleanup_policy,
        ..PartitionContext::default()
    };
    ottla_audit::lawful_hole(&context, rewritten_batches, first_offset, last_offset)
}
