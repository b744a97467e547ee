//! Findings at their places, held by the engine: rows of Python with the fields of `PlacedFinding` are
//! made when somebody reads them.

use crate::findings::{path_of, said};
use crate::words::Words;
use ottla_audit::traces::Fault;
use ottla_audit::{Cause, Finding, FindingKind, Severity};
use ottla_log::sorting::sort_by;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};
use std::collections::HashSet;
use std::sync::Arc;

/// What only Python says of a finding.
pub(crate) struct OfPython {
    pub(crate) replica: Py<PyAny>,
    pub(crate) good_replicas: Py<PyAny>,
    pub(crate) commands: Py<PyTuple>,
    /// Pattern of topics, if it is not about a file.
    pub(crate) pattern: Py<PyAny>,
}

/// A finding, the file or directory it is in, and the directory of its partition.
pub(crate) struct Placed {
    pub(crate) finding: Finding,
    pub(crate) path: Option<Py<PyBytes>>,
    pub(crate) directory: Option<Py<PyBytes>>,
    /// The message as Python has it, in which the name of a stranger may be no UTF-8.
    message: PyOnceLock<Py<PyString>>,
    of_python: Option<Box<OfPython>>,
}

impl Placed {
    /// A finding about a segment of a partition, or about a file beside it.
    pub(crate) fn new(
        finding: Finding,
        segment: &Bound<'_, PyBytes>,
        directory: Option<&Bound<'_, PyBytes>>,
    ) -> Self {
        let path = path_of(&finding, segment).unbind();
        let directory = directory.map(|directory| directory.clone().unbind());
        let (message, of_python) = (PyOnceLock::new(), None);
        Self { finding, path: Some(path), directory, message, of_python }
    }

    /// Reads a tuple with the fields of `PlacedFinding`, in their order.
    fn read(row: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let kind: &str = value(row, 0)?;
        let severity: &str = value(row, 1)?;
        let cause: Option<&str> = value(row, 10)?;
        let of_cause = |name| Cause::from_name(name).ok_or_else(|| unknown(name));
        let message: Bound<'_, PyString> = value(row, 2)?;
        let known = PyOnceLock::new();
        known.get_or_init(row.py(), || message.clone().unbind());
        let text = |place| Ok::<_, PyErr>(value::<Option<String>>(row, place)?.unwrap_or_default());
        Ok(Self {
            finding: Finding {
                kind: FindingKind::from_name(kind).ok_or_else(|| unknown(kind))?,
                severity: Severity::from_name(severity).ok_or_else(|| unknown(severity))?,
                message: message.to_string_lossy().into_owned().into(),
                position: value(row, 3)?,
                size: value(row, 4)?,
                first_offset: value(row, 5)?,
                last_offset: value(row, 6)?,
                record_index: value(row, 7)?,
                producer_id: value(row, 8)?,
                next_good_offset: value(row, 9)?,
                cause: cause.map(of_cause).transpose()?,
                expected: text(11)?,
                found: text(12)?,
                side_file: None,
            },
            path: value(row, 16)?,
            directory: value(row, 17)?,
            message: known,
            of_python: Some(Box::new(OfPython {
                replica: value(row, 13)?,
                good_replicas: value(row, 14)?,
                commands: value(row, 15)?,
                pattern: value(row, 18)?,
            })),
        })
    }

    /// The fields of `PlacedFinding`.
    fn row<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut values = Vec::from(self.says(py, &mut Words::default())?);
        values.extend([
            self.said(py, |said| &said.replica),
            self.said(py, |said| &said.good_replicas),
        ]);
        values.push(self.commands(py).unwrap_or_else(|| PyTuple::empty(py)).into_any());
        values.extend([path_in(py, self.path.as_ref()), path_in(py, self.directory.as_ref())]);
        values.push(self.pattern(py));
        PyTuple::new(py, values)
    }

    /// What the engine could say of it, in the order of the fields of `PlacedFinding`.
    pub(crate) fn says<'py>(
        &self,
        py: Python<'py>,
        words: &mut Words<'py>,
    ) -> PyResult<[Bound<'py, PyAny>; 13]> {
        said(&self.finding, self.message(py), words)
    }

    /// What only Python says of it, if it does.
    pub(crate) fn said<'py>(
        &self,
        py: Python<'py>,
        value: fn(&OfPython) -> &Py<PyAny>,
    ) -> Bound<'py, PyAny> {
        let of_python = self.of_python.as_deref();
        of_python.map_or_else(|| py.None().into_bound(py), |said| value(said).bind(py).clone())
    }

    pub(crate) fn pattern<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.said(py, |said| &said.pattern)
    }

    pub(crate) fn message<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        let made = || PyString::new(py, &self.finding.message.text()).unbind();
        self.message.get_or_init(py, made).bind(py).clone()
    }

    /// The commands that it brings, if it brings any.
    pub(crate) fn commands<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyTuple>> {
        let commands = self.of_python.as_deref()?.commands.bind(py);
        (!commands.is_empty()).then(|| commands.clone())
    }

    /// What has to be known of it for its cause.
    pub(crate) fn fault<'a>(&'a self, py: Python<'a>) -> Fault<'a> {
        let Finding { kind, severity, position, size, .. } = self.finding;
        let Finding { first_offset, last_offset, producer_id, cause, .. } = self.finding;
        let bytes = |path: &'a Py<PyBytes>| path.as_bytes(py);
        Fault {
            kind,
            severity,
            position,
            size,
            first_offset,
            last_offset,
            producer_id,
            cause,
            expected: &self.finding.expected,
            found: &self.finding.found,
            path: self.path.as_ref().map(bytes),
            directory: self.directory.as_ref().map(bytes),
        }
    }
}

fn unknown(name: &str) -> PyErr {
    PyValueError::new_err(format!("{name} is in no catalogue"))
}

/// The value at a place of a row.
fn value<'a, 'py, T: FromPyObject<'a, 'py>>(
    row: &'a Bound<'py, PyTuple>,
    place: usize,
) -> PyResult<T> {
    T::extract(row.get_borrowed_item(place)?).map_err(Into::into)
}

/// A path as Python has it.
pub(crate) fn path_in<'py>(py: Python<'py>, path: Option<&Py<PyBytes>>) -> Bound<'py, PyAny> {
    path.map_or_else(|| py.None().into_bound(py), |path| path.bind(py).clone().into_any())
}

/// Findings at their places.
#[pyclass(frozen, module = "ottla._engine")]
pub struct PlacedFindings {
    list: Vec<Arc<Placed>>,
}

impl PlacedFindings {
    pub(crate) fn new(findings: impl Iterator<Item = Placed>) -> Self {
        Self { list: findings.map(Arc::new).collect() }
    }

    pub(crate) fn list(&self) -> &[Arc<Placed>] {
        &self.list
    }

    pub(crate) fn faults<'a>(&'a self, py: Python<'a>) -> impl Iterator<Item = Fault<'a>> {
        self.list.iter().map(move |placed| placed.fault(py))
    }
}

#[pymethods]
impl PlacedFindings {
    /// Findings by rows of the fields of `PlacedFinding`.
    ///
    /// Raises:
    ///     ValueError: a name is in no catalogue.
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "a list of Python arrives as a vector")]
    fn of_rows(rows: Vec<Bound<'_, PyTuple>>) -> PyResult<Self> {
        let list = rows.iter().map(|row| Placed::read(row).map(Arc::new));
        Ok(Self { list: list.collect::<PyResult<_>>()? })
    }

    /// Puts findings together, sorted by path, position, first offset and name; those that are alike in
    /// these stay in their order.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "a list of Python arrives as a vector")]
    fn in_order(py: Python<'_>, parts: Vec<Bound<'_, Self>>) -> Self {
        let all: Vec<&Arc<Placed>> = parts.iter().flat_map(|part| &part.get().list).collect();
        let mut order = Vec::with_capacity(all.len());
        for (index, placed) in all.iter().enumerate() {
            let Finding { position, first_offset, kind, .. } = placed.finding;
            let path = placed.path.as_ref().map_or(&b""[..], |path| path.as_bytes(py));
            let (position, first_offset) = (position.unwrap_or(0), first_offset.unwrap_or(0));
            order.push((path, position, first_offset, kind.name(), index));
        }
        sort_by(&mut order, Ord::cmp);
        let sorted = order.iter().filter_map(|&(.., index)| all.get(index));
        Self { list: sorted.map(|placed| Arc::clone(placed)).collect() }
    }

    fn __len__(&self) -> usize {
        self.list.len()
    }

    /// The fields of `PlacedFinding` of one, by its number.
    ///
    /// Raises:
    ///     IndexError: there are not so many.
    fn row<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyTuple>> {
        let placed = self.list.get(number);
        placed.ok_or_else(|| PyIndexError::new_err("no such finding"))?.row(py)
    }

    /// The numbers of those of some names.
    #[expect(clippy::needless_pass_by_value, reason = "a set of Python arrives as one of Rust")]
    fn named(&self, names: HashSet<String>) -> Vec<usize> {
        let is_named = |placed: &Placed| names.contains(placed.finding.kind.name());
        let all = self.list.iter().enumerate();
        all.filter(|(_, placed)| is_named(placed)).map(|(number, _)| number).collect()
    }

    /// The same findings by their numbers.
    #[expect(clippy::needless_pass_by_value, reason = "a list of Python arrives as a vector")]
    fn some(&self, numbers: Vec<usize>) -> Self {
        let some = numbers.iter().filter_map(|number| self.list.get(*number));
        Self { list: some.cloned().collect() }
    }

    /// The path of each.
    fn paths<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        self.list.iter().map(|placed| path_in(py, placed.path.as_ref())).collect()
    }

    /// How many there are of each name, severity and directory of a partition.
    fn kinds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        let mut left = self.list.as_slice();
        while let Some(first) = left.first() {
            // Those of a log follow each other, mostly, and share its path.
            let kind = kind_of(first);
            let alike = left.iter().take_while(|placed| kind_of(placed) == kind).count().max(1);
            let name = PyString::intern(py, first.finding.kind.name());
            let severity = PyString::intern(py, first.finding.severity.name());
            let key = (name, severity, path_in(py, first.directory.as_ref()));
            let known = counts.get_item(&key)?.map_or(Ok(0), |known| known.extract::<usize>())?;
            counts.set_item(key, known.saturating_add(alike))?;
            left = left.get(alike..).unwrap_or_default();
        }
        Ok(counts)
    }

    #[expect(clippy::type_complexity, reason = "a tuple as Python has it")]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyType>, (Vec<Bound<'py, PyTuple>>,))> {
        let rows = slf.get().list.iter().map(|placed| placed.row(slf.py()));
        Ok((slf.get_type(), (rows.collect::<PyResult<_>>()?,)))
    }
}

/// What findings that follow each other are counted together by: kind, severity, and the directory as
/// an object.
fn kind_of(placed: &Placed) -> (FindingKind, Severity, Option<usize>) {
    let Finding { kind, severity, .. } = placed.finding;
    (kind, severity, placed.directory.as_ref().map(|directory| directory.as_ptr().addr()))
}
