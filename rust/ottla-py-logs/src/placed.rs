//! Findings of Python: tuples with the fields of `PlacedFinding`, which are read by their places.

use ottla_audit::traces::Fault;
use ottla_audit::{Cause, FindingKind, Severity};
use ottla_log::sorting::sort_by;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

pub(crate) const NAME: usize = 0;
pub(crate) const SEVERITY: usize = 1;
pub(crate) const MESSAGE: usize = 2;
pub(crate) const POSITION: usize = 3;
pub(crate) const SIZE: usize = 4;
pub(crate) const FIRST_OFFSET: usize = 5;
pub(crate) const LAST_OFFSET: usize = 6;
pub(crate) const RECORD_INDEX: usize = 7;
pub(crate) const PRODUCER_ID: usize = 8;
pub(crate) const NEXT_GOOD_OFFSET: usize = 9;
pub(crate) const CAUSE: usize = 10;
pub(crate) const EXPECTED: usize = 11;
pub(crate) const FOUND: usize = 12;
pub(crate) const REPLICA: usize = 13;
pub(crate) const GOOD_REPLICAS: usize = 14;
pub(crate) const COMMANDS: usize = 15;
pub(crate) const PATH: usize = 16;
pub(crate) const DIRECTORY: usize = 17;
pub(crate) const PATTERN: usize = 18;

/// The value at a place of a finding.
///
/// # Errors
/// One of another type.
pub(crate) fn value<'a, 'py, T: FromPyObject<'a, 'py>>(
    finding: &'a Bound<'py, PyTuple>,
    place: usize,
) -> PyResult<T> {
    T::extract(finding.get_borrowed_item(place)?).map_err(Into::into)
}

/// What has to be known of each finding for its cause.
///
/// # Errors
/// A name is in no catalogue, a value of another type.
pub(crate) fn faults<'a>(findings: &'a [Bound<'_, PyTuple>]) -> PyResult<Vec<Fault<'a>>> {
    let unknown = |name: &str| PyValueError::new_err(format!("{name} is in no catalogue"));
    let mut before: Option<(&str, FindingKind)> = None;
    let fault = |finding: &'a Bound<'_, PyTuple>| {
        let name: &str = value(finding, NAME)?;
        // Findings of a kind follow each other, mostly.
        let kind = match before {
            Some((known, kind)) if known == name => kind,
            _ => FindingKind::from_name(name).ok_or_else(|| unknown(name))?,
        };
        before = Some((name, kind));
        let severity: &str = value(finding, SEVERITY)?;
        let cause: Option<&str> = value(finding, CAUSE)?;
        let of_cause = |name| Cause::from_name(name).ok_or_else(|| unknown(name));
        Ok(Fault {
            kind,
            severity: Severity::from_name(severity).ok_or_else(|| unknown(severity))?,
            position: value(finding, POSITION)?,
            size: value(finding, SIZE)?,
            first_offset: value(finding, FIRST_OFFSET)?,
            last_offset: value(finding, LAST_OFFSET)?,
            producer_id: value(finding, PRODUCER_ID)?,
            cause: cause.map(of_cause).transpose()?,
            expected: value::<Option<&str>>(finding, EXPECTED)?.unwrap_or(""),
            found: value::<Option<&str>>(finding, FOUND)?.unwrap_or(""),
            path: value(finding, PATH)?,
            directory: value(finding, DIRECTORY)?,
        })
    };
    findings.iter().map(fault).collect()
}

/// Returns findings, tuples with the fields of `PlacedFinding`, sorted by path, position, first offset
/// and name; those that are alike in these stay in their order.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn sorted_findings(findings: Vec<Bound<'_, PyTuple>>) -> PyResult<Vec<Bound<'_, PyTuple>>> {
    let mut order = Vec::with_capacity(findings.len());
    for (index, finding) in findings.iter().enumerate() {
        let path: Option<&[u8]> = value(finding, PATH)?;
        let position: Option<u64> = value(finding, POSITION)?;
        let first_offset: Option<i64> = value(finding, FIRST_OFFSET)?;
        let name: &str = value(finding, NAME)?;
        let (position, first_offset) = (position.unwrap_or(0), first_offset.unwrap_or(0));
        order.push((path.unwrap_or(b""), position, first_offset, name, index));
    }
    sort_by(&mut order, Ord::cmp);
    let sorted = order.iter().filter_map(|&(.., index)| findings.get(index));
    Ok(sorted.cloned().collect())
}

/// Returns how many findings, tuples with the fields of `PlacedFinding`, there are of each name, severity
/// and directory.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn count_findings<'py>(
    py: Python<'py>,
    findings: Vec<Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyDict>> {
    let counts = PyDict::new(py);
    let mut left = findings.as_slice();
    while let Some(first) = left.first() {
        let wanted = kind_of(first)?;
        // Those of a log follow each other, mostly, and share their words.
        let is_like = |finding: &&Bound<'py, PyTuple>| {
            kind_of(finding)
                .is_ok_and(|kind| kind.iter().zip(&wanted).all(|(a, b)| a.as_ptr() == b.as_ptr()))
        };
        let alike = left.iter().take_while(is_like).count().max(1);
        let key = PyTuple::new(py, wanted)?;
        let known = counts.get_item(&key)?.map_or(Ok(0), |known| known.extract::<usize>())?;
        counts.set_item(key, known.saturating_add(alike))?;
        left = left.get(alike..).unwrap_or_default();
    }
    Ok(counts)
}

/// Name, severity and directory of a finding.
fn kind_of<'a, 'py>(finding: &'a Bound<'py, PyTuple>) -> PyResult<[Borrowed<'a, 'py, PyAny>; 3]> {
    let at = |place| finding.get_borrowed_item(place);
    Ok([at(NAME)?, at(SEVERITY)?, at(DIRECTORY)?])
}
