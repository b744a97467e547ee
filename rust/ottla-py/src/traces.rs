//! Findings of Python in groups of one cause.

use ottla_audit::traces::{self, Fault, LogEnd};
use ottla_audit::{Cause, FindingKind, Severity};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyString, PyTuple};
use std::collections::HashMap;

/// What a finding of Python tells of its cause.
struct PlacedRow {
    kind: FindingKind,
    severity: Severity,
    position: Option<u64>,
    size: Option<u64>,
    first_offset: Option<i64>,
    last_offset: Option<i64>,
    producer_id: Option<i64>,
    cause: Option<Cause>,
    expected: Option<PyBackedStr>,
    found: Option<PyBackedStr>,
    path: Option<PyBackedBytes>,
    directory: Option<PyBackedBytes>,
}

impl PlacedRow {
    /// Reads it by the places of the fields of `PlacedFinding`.
    fn of(row: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let field = |place| row.get_borrowed_item(place);
        let unknown = |name: &str| PyValueError::new_err(format!("{name} is in no catalogue"));
        let name: PyBackedStr = field(0)?.extract()?;
        let severity: PyBackedStr = field(1)?.extract()?;
        let cause: Option<PyBackedStr> = field(10)?.extract()?;
        let of_cause = |name: &PyBackedStr| Cause::from_name(name).ok_or_else(|| unknown(name));
        Ok(Self {
            kind: FindingKind::from_name(&name).ok_or_else(|| unknown(&name))?,
            severity: Severity::from_name(&severity).ok_or_else(|| unknown(&severity))?,
            position: field(3)?.extract()?,
            size: field(4)?.extract()?,
            first_offset: field(5)?.extract()?,
            last_offset: field(6)?.extract()?,
            producer_id: field(8)?.extract()?,
            cause: cause.as_ref().map(of_cause).transpose()?,
            expected: field(11)?.extract()?,
            found: field(12)?.extract()?,
            path: field(16)?.extract()?,
            directory: field(17)?.extract()?,
        })
    }

    fn fault(&self) -> Fault<'_> {
        Fault {
            kind: self.kind,
            severity: self.severity,
            position: self.position,
            size: self.size,
            first_offset: self.first_offset,
            last_offset: self.last_offset,
            producer_id: self.producer_id,
            cause: self.cause,
            expected: self.expected.as_deref().unwrap_or(""),
            found: self.found.as_deref().unwrap_or(""),
            path: self.path.as_deref(),
            directory: self.directory.as_deref(),
        }
    }
}

/// Log end offset, path of the last segment, its size, and whether the broker stopped cleanly.
type KnownEnd = (i64, PyBackedBytes, u64, bool);

/// Head, members, severity, lost end, and whether the head is contradicted.
type GroupRow<'py> = (usize, Bound<'py, PyTuple>, Bound<'py, PyString>, Option<(i64, i64)>, bool);

/// Returns findings in groups of one cause, as rows of the fields of `Group`.
///
/// Args:
///     findings: all of them, sorted by place; tuples with the fields of `PlacedFinding`.
///     ends: the ends of logs by directory, as far as they are known; tuples with the fields of `LogEnd`.
///
/// Raises:
///     ValueError: a name is in no catalogue.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub(crate) fn group_findings<'py>(
    py: Python<'py>,
    findings: Vec<Bound<'py, PyTuple>>,
    ends: HashMap<PyBackedBytes, KnownEnd>,
) -> PyResult<Vec<GroupRow<'py>>> {
    let rows = findings.iter().map(PlacedRow::of).collect::<PyResult<Vec<_>>>()?;
    let faults: Vec<_> = rows.iter().map(PlacedRow::fault).collect();
    let ends = ends.iter().map(|(directory, (offset, segment, size, is_clean))| {
        let end = LogEnd { offset: *offset, segment, size: *size, is_clean: *is_clean };
        (&**directory, end)
    });
    let groups = traces::group_findings(&faults, &ends.collect());
    let row = |group: traces::Group| {
        let members = PyTuple::new(py, group.members)?;
        let severity = PyString::intern(py, group.severity.name());
        Ok((group.head, members, severity, group.lost_end, group.is_contradicted))
    };
    groups.into_iter().map(row).collect()
}
