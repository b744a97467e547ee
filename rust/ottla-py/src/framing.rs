//! How far a segment holds whole batches.

use crate::calls::detached;
use crate::place::Place;
use ottla_log::framing::{self, WholeBatches};
use pyo3::prelude::*;

/// Bytes of a file that are read at once: a page.
const FILE_READ_BYTES: u64 = 4096;

/// Bytes of an object that are read at once, as each read is a request.
const OBJECT_READ_BYTES: u64 = 1 << 20;

/// Finds the whole batches of a segment from a position on, by their sizes alone.
///
/// Args:
///     place: path of the segment, or an object that reads it, see :class:`Segment`.
///     position: where a batch begins.
///     stop: no batch that ends after this position is whole.
///     budget: ends with the batch that reaches this number of bytes.
///
/// Returns:
///     Positions where the last batch begins and where it ends, both `position` if there is none.
///
/// Raises:
///     OSError: the segment cannot be read.
#[pyfunction]
#[pyo3(signature = (place, position, stop, budget=None))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub(crate) fn whole_batches(
    py: Python<'_>,
    place: Place,
    position: u64,
    stop: u64,
    budget: Option<u64>,
) -> PyResult<(u64, u64)> {
    let file = place.open_detached(py)?;
    let read_bytes = match place {
        Place::Path(_) => FILE_READ_BYTES,
        Place::Object(_) => OBJECT_READ_BYTES,
    };
    detached(py, || framing::whole_batches(&file, position, stop, budget, read_bytes))?
        .map(|WholeBatches { last, end }| (last, end))
        .map_err(|error| place.error(py, &error))
}
