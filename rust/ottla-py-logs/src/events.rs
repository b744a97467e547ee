//! Events as rows of their table.

use crate::placed::{OfPython, Placed, PlacedFindings, path_in};
use crate::traces::FindingGroups;
use crate::words::Words;
use ottla_audit::events::{
    Blocked, EventLog, LogEvent, Losses, LostOffsets, Told, missing_segment,
};
use ottla_audit::traces::{Fault, Group};
use ottla_audit::{Cause, Finding, Severity};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::sync::Arc;

/// Directory of the partition, path of the file, position, first and last offset, and cause.
type GapRow<'py> =
    (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Option<u64>, i64, i64, Bound<'py, PyString>);

/// What the verdict is on an error, a warning, an info, and where something was not read.
type Verdicts<'py> = [Bound<'py, PyAny>; 4];

/// Findings in groups, and what is asked of Python for their events.
struct Asked<'a, 'py> {
    findings: &'a [Arc<Placed>],
    told: &'a [Told<'a>],
    /// Partitions by directory.
    partitions: &'a Bound<'py, PyDict>,
    span: &'a Bound<'py, PyAny>,
    show: &'a Bound<'py, PyAny>,
    verdicts: &'a Verdicts<'py>,
}

/// What decides how grave an event is, the gravest first: severity, offsets lost, the consumers that do
/// not get past it, file and position.
type Weight<'py> = (usize, i128, usize, Bound<'py, PyAny>, u64);

/// Returns the rows of the events of groups, the gravest first, and for each finding the number of its
/// event.
///
/// Args:
///     findings: all of them, sorted by place.
///     groups: of these, by cause.
///     partitions: those with a finding, by directory.
///     gaps: called where something is lost; returns for each gap of every consumer the directory of the
///         partition, the path of the file, position, first and last offset, and cause.
///     span: called with the directory, the path and the offsets of an event; returns when its records
///         were written.
///     show: by path, how it is displayed, relative to the base and whole.
///     verdicts: on an error, on a warning, on an info, and where something was not read.
///
/// Raises:
///     ValueError: the cause of a gap is in no catalogue.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
#[expect(clippy::too_many_arguments, reason = "all that Python is asked for")]
pub fn event_rows<'py>(
    py: Python<'py>,
    findings: &Bound<'py, PlacedFindings>,
    groups: &Bound<'py, FindingGroups>,
    partitions: &Bound<'py, PyDict>,
    gaps: &Bound<'py, PyAny>,
    span: &Bound<'py, PyAny>,
    show: &Bound<'py, PyAny>,
    verdicts: Verdicts<'py>,
) -> PyResult<(Vec<Bound<'py, PyTuple>>, Vec<usize>)> {
    let groups = groups.get().groups();
    let faults = findings.get().faults(py);
    let findings = findings.get().list();
    let told: Vec<Told<'_>> = faults.zip(findings).map(told).collect();
    let losses = losses(&told, groups, gaps)?;
    let (told, verdicts) = (&*told, &verdicts);
    let asked = Asked { findings, told, partitions, span, show, verdicts };
    let mut words = Words::default();
    let mut made = Vec::with_capacity(groups.len());
    let keys = PyList::empty(py);
    for (number, group) in groups.iter().enumerate() {
        let (weight, values) = asked.event(number, group, &losses, &mut words)?;
        keys.append((weight, number))?;
        made.push(values);
    }
    keys.sort()?;
    let mut rows = Vec::with_capacity(made.len());
    let mut numbers = vec![0; findings.len()];
    for (number, key) in (1_usize..).zip(keys) {
        let (_, index): (Bound<'py, PyAny>, usize) = key.extract()?;
        let Some((values, group)) = made.get_mut(index).zip(groups.get(index)) else { continue };
        if let Some(first) = values.first_mut() {
            *first = number.into_bound_py_any(py)?;
        }
        rows.push(PyTuple::new(py, values.drain(..))?);
        for member in &group.members {
            if let Some(known) = numbers.get_mut(*member) {
                *known = number;
            }
        }
    }
    Ok((rows, numbers))
}

fn told<'a>((fault, placed): (Fault<'a>, &'a Arc<Placed>)) -> Told<'a> {
    let Finding { message, next_good_offset, .. } = &placed.finding;
    Told { fault, message, next_good_offset: *next_good_offset }
}

fn losses<'a>(
    told: &[Told<'a>],
    groups: &[Group],
    gaps: &Bound<'_, PyAny>,
) -> PyResult<Losses<'a>> {
    let mut losses = Losses::new(told, groups);
    if losses.asks_for_gaps() {
        for gap in gaps.call0()?.try_iter()? {
            let (directory, path, position, first, last, cause): GapRow<'_> = gap?.extract()?;
            let cause = cause.to_str()?;
            let cause = Cause::from_name(cause)
                .ok_or_else(|| PyValueError::new_err(format!("{cause} is in no catalogue")))?;
            let place = (path.as_bytes(), position);
            losses.add_gap(directory.as_bytes(), place, (first, last), cause);
        }
    }
    Ok(losses)
}

/// A partition as Python has it.
struct LogPlace<'py> {
    partition: Bound<'py, PyAny>,
    topic: Bound<'py, PyAny>,
    index: Bound<'py, PyAny>,
}

impl<'py> LogPlace<'py> {
    fn of(partition: Bound<'py, PyAny>) -> PyResult<Self> {
        let py = partition.py();
        let topic = partition.getattr(intern!(py, "topic"))?;
        let index = partition.getattr(intern!(py, "partition"))?;
        Ok(Self { partition, topic, index })
    }

    fn log<'a>(&'a self, directory: &'a [u8], group: &Group) -> PyResult<EventLog<'a>> {
        let missing = |lost_end| -> PyResult<Option<i64>> {
            let names: Vec<PyBackedBytes> = self.partition.getattr("names")?.extract()?;
            Ok(missing_segment(lost_end, names.iter().map(|name| &**name)))
        };
        Ok(EventLog {
            directory,
            topic: self.topic.extract()?,
            partition: self.index.extract()?,
            missing_segment: group.lost_end.map(missing).transpose()?.flatten(),
        })
    }
}

impl<'py> Asked<'_, 'py> {
    fn event(
        &self,
        number: usize,
        group: &Group,
        losses: &Losses<'_>,
        words: &mut Words<'py>,
    ) -> PyResult<(Weight<'py>, Vec<Bound<'py, PyAny>>)> {
        let py = self.show.py();
        let unknown = || PyValueError::new_err("a group has a finding that is not there");
        let members: Vec<&Told<'_>> =
            group.members.iter().filter_map(|member| self.told.get(*member)).collect();
        let head = self.findings.get(group.head).ok_or_else(unknown)?;
        let fault = &members.first().ok_or_else(unknown)?.fault;
        let placed = self.partitions.get_item(path_in(py, head.directory.as_ref()))?;
        let placed = placed.map(LogPlace::of).transpose()?;
        let directory = fault.directory.unwrap_or(b"");
        let log = placed.as_ref().map(|placed| placed.log(directory, group)).transpose()?;
        let loss = losses.of_group(number, fault.directory);
        let event = LogEvent::of(group, &members, &loss, log.as_ref()).ok_or_else(unknown)?;
        let file = self.file(py, head)?;
        let named = if file.is_none() { intern!(py, "").as_any() } else { &file };
        let weight = (
            severity_at(group.severity),
            loss.offset_count().saturating_neg(),
            event.blocks.map_or(2, |(who, _)| usize::from(who != Blocked::All)),
            named.clone(),
            fault.position.unwrap_or(0),
        );
        let values = self.values(head, group, &event, (placed, file, &loss), words)?;
        Ok((weight, values))
    }

    /// The fields of an event, of which the first is still to be numbered; its partition, displayed file
    /// and loss are given.
    fn values(
        &self,
        head: &Placed,
        group: &Group,
        event: &LogEvent,
        beside: (Option<LogPlace<'py>>, Bound<'py, PyAny>, &LostOffsets),
        words: &mut Words<'py>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (placed, file, loss) = beside;
        let py = self.show.py();
        let (first, last) = (event.first_offset, event.last_offset);
        let [directory, path] =
            [&head.directory, &head.path].map(|path| path_in(py, path.as_ref()));
        let asked = (directory, path, first, last);
        let (earliest, latest) = self.span.call1(asked)?.extract()?;
        let none = || py.None().into_bound(py);
        let (topic, index) = match placed {
            Some(placed) => (placed.topic, placed.index),
            None => (head.pattern(py), none()),
        };
        let lost = loss.offset_count().into_bound_py_any(py)?;
        let place = if event.is_unread { 3 } else { severity_at(group.severity) };
        let mut word = |word| words.get(py, word);
        let (blocks, blocked) = event.blocks.unzip();
        let message = event.message.as_ref().map(|text| PyString::new(py, text).into_any());
        Ok(vec![
            none(),
            word(head.finding.kind.name()),
            word(group.severity.name()),
            self.verdicts.get(place).cloned().unwrap_or_else(none),
            file,
            topic,
            index,
            head.finding.position.into_bound_py_any(py)?,
            first.into_bound_py_any(py)?,
            last.into_bound_py_any(py)?,
            earliest,
            latest,
            event.next_good_offset.into_bound_py_any(py)?,
            lost.clone(),
            if loss.is_dense { lost } else { none() },
            blocks.map_or_else(none, |blocked| word(blocked.name())),
            blocked.into_bound_py_any(py)?,
            event.cause.map_or_else(none, |cause| word(cause.name())),
            self.first_of(py, group, |said| &said.replica),
            self.first_of(py, group, |said| &said.good_replicas),
            group.members.len().into_bound_py_any(py)?,
            self.files(py, group)?.into_any(),
            word(event.action),
            message.unwrap_or_else(|| head.message(py).into_any()),
        ])
    }

    fn members<'g>(&'g self, group: &'g Group) -> impl Iterator<Item = &'g Placed> {
        group.members.iter().filter_map(|member| self.findings.get(*member)).map(|placed| &**placed)
    }

    /// The first value of its kind that some member has.
    fn first_of(
        &self,
        py: Python<'py>,
        group: &Group,
        value: fn(&OfPython) -> &Py<PyAny>,
    ) -> Bound<'py, PyAny> {
        let mut values = self.members(group).map(|placed| placed.said(py, value));
        values.find(|value| !value.is_none()).unwrap_or_else(|| py.None().into_bound(py))
    }

    /// The file of a finding as it is displayed relative to the base.
    fn file(&self, py: Python<'py>, placed: &Placed) -> PyResult<Bound<'py, PyAny>> {
        match &placed.path {
            Some(path) => self.show.get_item(path)?.get_item(0),
            None => Ok(py.None().into_bound(py)),
        }
    }

    /// The files of a group as they are displayed, each once.
    fn files(&self, py: Python<'py>, group: &Group) -> PyResult<Bound<'py, PyTuple>> {
        let files = PyDict::new(py);
        for placed in self.members(group).filter(|placed| placed.path.is_some()) {
            files.set_item(self.file(py, placed)?, py.None())?;
        }
        Ok(files.keys().to_tuple())
    }
}

fn severity_at(severity: Severity) -> usize {
    Severity::ALL.iter().position(|known| *known == severity).unwrap_or(0)
}
