//! Events and findings as rows of their tables, made of findings of Python.

use crate::placed::{
    CAUSE, COMMANDS, DIRECTORY, EXPECTED, FIRST_OFFSET, FOUND, GOOD_REPLICAS, LAST_OFFSET, MESSAGE,
    NAME, NEXT_GOOD_OFFSET, PATH, PATTERN, POSITION, PRODUCER_ID, RECORD_INDEX, REPLICA, SEVERITY,
    SIZE, faults, value,
};
use crate::traces::FindingGroups;
use ottla_audit::events::{
    Blocked, EventLog, LogEvent, Losses, LostOffsets, Told, missing_segment,
};
use ottla_audit::traces::Group;
use ottla_audit::{Cause, Severity};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::borrow::Cow;

/// Directory of the partition, path of the file, position, first and last offset, and cause.
type GapRow<'py> =
    (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Option<u64>, i64, i64, Bound<'py, PyString>);

/// What the verdict is on an error, a warning, an info, and where something was not read.
type Verdicts<'py> = [Bound<'py, PyAny>; 4];

/// Findings of Python in groups, and what is asked of Python for their events.
struct Asked<'a, 'py> {
    findings: &'a [Bound<'py, PyTuple>],
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
///     findings: all of them, sorted by place; tuples with the fields of `PlacedFinding`.
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
///     ValueError: a name is in no catalogue.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
#[expect(clippy::too_many_arguments, reason = "all that Python is asked for")]
pub fn event_rows<'py>(
    py: Python<'py>,
    findings: Vec<Bound<'py, PyTuple>>,
    groups: &Bound<'py, FindingGroups>,
    partitions: &Bound<'py, PyDict>,
    gaps: &Bound<'py, PyAny>,
    span: &Bound<'py, PyAny>,
    show: &Bound<'py, PyAny>,
    verdicts: Verdicts<'py>,
) -> PyResult<(Vec<Bound<'py, PyTuple>>, Vec<usize>)> {
    let groups = groups.get().groups();
    let told = told(&findings)?;
    let losses = losses(&told, groups, gaps)?;
    let (findings, told, verdicts) = (&*findings, &*told, &verdicts);
    let asked = Asked { findings, told, partitions, span, show, verdicts };
    let mut made = Vec::with_capacity(groups.len());
    let keys = PyList::empty(py);
    for (number, group) in groups.iter().enumerate() {
        let (weight, values) = asked.event(number, group, &losses)?;
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

fn told<'a>(findings: &'a [Bound<'_, PyTuple>]) -> PyResult<Vec<Told<'a>>> {
    let faults = faults(findings)?;
    let told = findings.iter().zip(faults).map(|(finding, fault)| {
        let next_good_offset = value(finding, NEXT_GOOD_OFFSET)?;
        Ok(Told { fault, message: message_of(finding)?, next_good_offset })
    });
    told.collect()
}

/// The message of a finding, in which the name of a stranger may be no UTF-8.
fn message_of<'a>(finding: &'a Bound<'_, PyTuple>) -> PyResult<Cow<'a, str>> {
    if let Ok(text) = value(finding, MESSAGE) {
        return Ok(Cow::Borrowed(text));
    }
    let text = finding.get_item(MESSAGE)?.cast_into::<PyString>()?;
    Ok(Cow::Owned(text.to_string_lossy().into_owned()))
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
struct Placed<'py> {
    partition: Bound<'py, PyAny>,
    topic: Bound<'py, PyAny>,
    index: Bound<'py, PyAny>,
}

impl<'py> Placed<'py> {
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
    ) -> PyResult<(Weight<'py>, Vec<Bound<'py, PyAny>>)> {
        let py = self.show.py();
        let unknown = || PyValueError::new_err("a group has a finding that is not there");
        let members: Vec<&Told<'_>> =
            group.members.iter().filter_map(|member| self.told.get(*member)).collect();
        let head = self.findings.get(group.head).ok_or_else(unknown)?;
        let fault = &members.first().ok_or_else(unknown)?.fault;
        let placed = self.partitions.get_item(head.get_item(DIRECTORY)?)?;
        let placed = placed.map(Placed::of).transpose()?;
        let directory = fault.directory.unwrap_or(b"");
        let log = placed.as_ref().map(|placed| placed.log(directory, group)).transpose()?;
        let loss = losses.of_group(number, fault.directory);
        let event = LogEvent::of(group, &members, &loss, log.as_ref()).ok_or_else(unknown)?;
        let path = head.get_item(PATH)?;
        let file = if path.is_none() { path } else { self.displayed(path)? };
        let named = if file.is_none() { intern!(py, "").as_any() } else { &file };
        let weight = (
            severity_at(group.severity),
            loss.offset_count().saturating_neg(),
            event.blocks.map_or(2, |(who, _)| usize::from(who != Blocked::All)),
            named.clone(),
            fault.position.unwrap_or(0),
        );
        let values = self.values(head, group, &event, (placed, file, &loss))?;
        Ok((weight, values))
    }

    /// The fields of an event, of which the first is still to be numbered; its partition, displayed file
    /// and loss are given.
    fn values(
        &self,
        head: &Bound<'py, PyTuple>,
        group: &Group,
        event: &LogEvent,
        beside: (Option<Placed<'py>>, Bound<'py, PyAny>, &LostOffsets),
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (placed, file, loss) = beside;
        let py = head.py();
        let (first, last) = (event.first_offset, event.last_offset);
        let asked = (head.get_item(DIRECTORY)?, head.get_item(PATH)?, first, last);
        let (earliest, latest) = self.span.call1(asked)?.extract()?;
        let none = || py.None().into_bound(py);
        let (topic, index) = match placed {
            Some(placed) => (placed.topic, placed.index),
            None => (head.get_item(PATTERN)?, none()),
        };
        let lost = loss.offset_count().into_bound_py_any(py)?;
        let place = if event.is_unread { 3 } else { severity_at(group.severity) };
        let word = |word| PyString::intern(py, word).into_any();
        let (blocks, blocked) = event.blocks.unzip();
        let message = event.message.as_ref().map(|text| PyString::new(py, text).into_any());
        Ok(vec![
            none(),
            head.get_item(NAME)?,
            word(group.severity.name()),
            self.verdicts.get(place).cloned().unwrap_or_else(none),
            file,
            topic,
            index,
            head.get_item(POSITION)?,
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
            self.first_of(py, group, REPLICA)?,
            self.first_of(py, group, GOOD_REPLICAS)?,
            group.members.len().into_bound_py_any(py)?,
            self.files(py, group)?.into_any(),
            word(event.action),
            message.map_or_else(|| head.get_item(MESSAGE), Ok)?,
        ])
    }

    /// The first value at a place that some member has.
    fn first_of(
        &self,
        py: Python<'py>,
        group: &Group,
        place: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        for finding in group.members.iter().filter_map(|member| self.findings.get(*member)) {
            let value = finding.get_item(place)?;
            if !value.is_none() {
                return Ok(value);
            }
        }
        Ok(py.None().into_bound(py))
    }

    /// A path as it is displayed relative to the base.
    fn displayed(&self, path: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.show.get_item(path)?.get_item(0)
    }

    /// The files of a group as they are displayed, each once.
    fn files(&self, py: Python<'py>, group: &Group) -> PyResult<Bound<'py, PyTuple>> {
        let files = PyDict::new(py);
        for finding in group.members.iter().filter_map(|member| self.findings.get(*member)) {
            let path = finding.get_item(PATH)?;
            if !path.is_none() {
                files.set_item(self.displayed(path)?, py.None())?;
            }
        }
        Ok(files.keys().to_tuple())
    }
}

fn severity_at(severity: Severity) -> usize {
    Severity::ALL.iter().position(|known| *known == severity).unwrap_or(0)
}

/// Returns rows of the table of findings.
///
/// Args:
///     findings: tuples with the fields of `PlacedFinding`.
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
    findings: Vec<Bound<'py, PyTuple>>,
    events: Option<Vec<usize>>,
    show: &Bound<'py, PyAny>,
    places: &Bound<'py, PyDict>,
    commands: &Bound<'py, PyAny>,
    visible: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let shown = |value: Bound<'py, PyAny>| -> PyResult<Bound<'py, PyAny>> {
        if is_plain(&value) { Ok(value) } else { visible.call1((value,)) }
    };
    let row = |(finding, event): (&Bound<'py, PyTuple>, Option<usize>)| {
        let at = |place| finding.get_item(place);
        let (path, directory) = (at(PATH)?, at(DIRECTORY)?);
        let is_nowhere = path.is_none();
        let (file, whole) =
            if is_nowhere { (path.clone(), path) } else { show.get_item(path)?.extract()? };
        let place = match places.get_item(directory)? {
            Some(place) => place,
            None => (at(PATTERN)?, py.None()).into_bound_py_any(py)?,
        };
        let (topic, partition) = place.extract()?;
        let own = at(COMMANDS)?;
        let commands = if own.is_truthy()? {
            visible.call1((own,))?
        } else {
            let kind = (at(NAME)?, at(SEVERITY)?);
            commands.call1((place, whole, kind, at(POSITION)?, at(FIRST_OFFSET)?))?
        };
        let mut values = vec![at(NAME)?, at(SEVERITY)?, file, topic, partition];
        for place in [POSITION, SIZE, FIRST_OFFSET, LAST_OFFSET, RECORD_INDEX, PRODUCER_ID] {
            values.push(at(place)?);
        }
        values.extend([at(NEXT_GOOD_OFFSET)?, at(CAUSE)?]);
        values.extend([shown(at(REPLICA)?)?, shown(at(GOOD_REPLICAS)?)?, commands]);
        values.extend([shown(at(EXPECTED)?)?, shown(at(FOUND)?)?, shown(at(MESSAGE)?)?]);
        values.push(event.into_bound_py_any(py)?);
        PyTuple::new(py, values)
    };
    let known = events.iter().flatten().map(|event| Some(*event));
    findings.iter().zip(known.chain(std::iter::repeat(None))).map(row).collect()
}

/// Whether a value is nothing that anybody has to make harmless.
fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    let is_plain = |text: &str| text.bytes().all(|byte| matches!(byte, 0x20..0x7f));
    value
        .cast::<PyString>()
        .map_or_else(|_| value.is_none(), |text| text.to_str().is_ok_and(is_plain))
}
