//! Findings in groups of one cause.

use crate::placed::PlacedFindings;
use ottla_audit::Severity;
use ottla_audit::traces::{self, LogEnd};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyString, PyTuple, PyType};
use std::collections::HashMap;

/// Log end offset, path of the last segment, its size, and whether the broker stopped cleanly.
type KnownEnd = (i64, PyBackedBytes, u64, bool);

/// Head, members, severity, lost end, and whether the head is contradicted.
type GroupRow<'py> = (usize, Bound<'py, PyTuple>, Bound<'py, PyString>, Option<(i64, i64)>, bool);

/// Findings in groups of one cause.
#[pyclass(frozen, module = "ottla._engine")]
pub struct FindingGroups {
    groups: Vec<traces::Group>,
}

impl FindingGroups {
    pub(crate) fn groups(&self) -> &[traces::Group] {
        &self.groups
    }
}

#[pymethods]
impl FindingGroups {
    /// Groups by rows of the fields of `Group`.
    ///
    /// Raises:
    ///     ValueError: there is no such severity.
    #[new]
    #[expect(clippy::type_complexity, reason = "a tuple as Python has it")]
    fn new(rows: Vec<(usize, Vec<usize>, String, Option<(i64, i64)>, bool)>) -> PyResult<Self> {
        let group = |(head, members, severity, lost_end, is_contradicted)| {
            let severity: String = severity;
            let severity = Severity::from_name(&severity)
                .ok_or_else(|| PyValueError::new_err(format!("{severity} is no severity")))?;
            Ok(traces::Group { head, members, severity, lost_end, is_contradicted })
        };
        Ok(Self { groups: rows.into_iter().map(group).collect::<PyResult<_>>()? })
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyType>, (Vec<GroupRow<'py>>,))> {
        let groups = slf.get();
        let rows = (0..groups.groups.len()).map(|number| groups.row(slf.py(), number));
        Ok((slf.get_type(), (rows.collect::<PyResult<_>>()?,)))
    }

    fn __len__(&self) -> usize {
        self.groups.len()
    }

    /// How many groups there are of each severity, the gravest first.
    fn severity_counts(&self) -> [usize; Severity::ALL.len()] {
        let count =
            |severity| self.groups.iter().filter(|group| group.severity == severity).count();
        Severity::ALL.map(count)
    }

    /// The fields of `Group` of one, by its number.
    ///
    /// Raises:
    ///     IndexError: there are not so many.
    fn row<'py>(&self, py: Python<'py>, number: usize) -> PyResult<GroupRow<'py>> {
        let group = self.groups.get(number);
        let group = group.ok_or_else(|| PyIndexError::new_err("no such group"))?;
        let members = PyTuple::new(py, &group.members)?;
        let severity = PyString::intern(py, group.severity.name());
        Ok((group.head, members, severity, group.lost_end, group.is_contradicted))
    }
}

/// Returns findings in groups of one cause; every finding is in one of them.
///
/// Args:
///     findings: all of them, sorted by place.
///     ends: the ends of logs by directory, as far as they are known; tuples with the fields of `LogEnd`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn group_findings(
    findings: &Bound<'_, PlacedFindings>,
    ends: HashMap<PyBackedBytes, KnownEnd>,
) -> FindingGroups {
    let ends = ends.iter().map(|(directory, (offset, segment, size, is_clean))| {
        let end = LogEnd { offset: *offset, segment, size: *size, is_clean: *is_clean };
        (&**directory, end)
    });
    let faults: Vec<_> = findings.get().faults(findings.py()).collect();
    FindingGroups { groups: traces::group_findings(&faults, &ends.collect()) }
}
