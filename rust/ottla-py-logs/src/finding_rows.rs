//! Findings as rows of their table.

use crate::placed::{Placed, PlacedFindings, path_in};
use crate::words::Words;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

/// What Python says of places and texts.
struct Shown<'a, 'py> {
    show: &'a Bound<'py, PyAny>,
    places: &'a Bound<'py, PyDict>,
    commands: &'a Bound<'py, PyAny>,
    visible: &'a Bound<'py, PyAny>,
    words: Words<'py>,
}

/// Returns rows of the table of findings.
///
/// Args:
///     findings: in any order.
///     events: for each the number of its event; None if that is not known.
///     show: by path, how it is displayed, relative to the base and whole.
///     places: topic and partition by directory; one that is not there is known by the pattern of topics.
///     commands: called with place, whole path, name and severity, position and first offset of a finding
///         that brings no commands; returns a tuple of them.
///     visible: called with text of strangers that may hold more than printable ASCII; returns it
///         harmless.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn finding_rows<'py>(
    py: Python<'py>,
    findings: &Bound<'py, PlacedFindings>,
    events: Option<Vec<usize>>,
    show: &Bound<'py, PyAny>,
    places: &Bound<'py, PyDict>,
    commands: &Bound<'py, PyAny>,
    visible: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let words = Words::default();
    let mut shown = Shown { show, places, commands, visible, words };
    let known = events.iter().flatten().map(|event| Some(*event));
    let findings = findings.get().list().iter().zip(known.chain(std::iter::repeat(None)));
    findings.map(|(placed, event)| shown.row(py, placed, event)).collect()
}

impl<'py> Shown<'_, 'py> {
    fn row(
        &mut self,
        py: Python<'py>,
        placed: &Placed,
        event: Option<usize>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let none = || py.None().into_bound(py);
        let (file, whole) = match &placed.path {
            Some(path) => self.show.get_item(path)?.extract()?,
            None => (none(), none()),
        };
        let place = match self.places.get_item(path_in(py, placed.directory.as_ref()))? {
            Some(place) => place,
            None => (placed.pattern(py), none()).into_bound_py_any(py)?,
        };
        let (topic, partition) = place.extract()?;
        let [name, severity, message, position, size, first, last, more @ .., expected, found] =
            placed.says(py, &mut self.words)?;
        let commands = if let Some(own) = placed.commands(py) {
            self.visible.call1((own,))?
        } else {
            self.commands.call1((place, whole, (&name, &severity), &position, &first))?
        };
        let [record_index, producer_id, next_good_offset, cause] = more;
        let values = [
            name,
            severity,
            file,
            topic,
            partition,
            position,
            size,
            first,
            last,
            record_index,
            producer_id,
            next_good_offset,
            cause,
            self.visible(placed.said(py, |said| &said.replica))?,
            self.visible(placed.said(py, |said| &said.good_replicas))?,
            commands,
            self.visible(expected)?,
            self.visible(found)?,
            self.visible(message)?,
            event.into_bound_py_any(py)?,
        ];
        PyTuple::new(py, values)
    }

    fn visible(&self, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if is_plain(&value) { Ok(value) } else { self.visible.call1((value,)) }
    }
}

/// Whether a value is nothing that anybody has to make harmless.
fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    // Most texts are: all of one is looked at, many bytes at a time.
    let is_plain = |text: &str| {
        text.bytes().fold(true, |is_plain, byte| is_plain & matches!(byte, 0x20..0x7f))
    };
    value
        .cast::<PyString>()
        .map_or_else(|_| value.is_none(), |text| text.to_str().is_ok_and(is_plain))
}
