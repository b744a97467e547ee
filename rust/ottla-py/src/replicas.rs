//! Copies of a partition compared.

use crate::audit::finding_row;
use crate::partition::PartitionScan;
use crate::place::{Place, os_error};
use crate::progress::Progress;
use crate::scanners::with_scanner;
use ottla_audit::copies::compare::compare;
use ottla_audit::copies::difference::Difference;
use ottla_audit::{Finding, FindingKind, Severity};
use ottla_format::check::Level;
use ottla_log::source::Source;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeSet;
use std::io;

/// What `AuditCancelledError` says.
const STOPPED: &str = "the comparison was stopped";

/// What the scan of a partition leaves behind to be compared with other copies.
#[pyclass(frozen, module = "ottla._engine")]
pub(crate) struct Copy {
    inner: ottla_audit::copies::copy::Copy,
    /// Of such batches only the records tell where they begin.
    has_old_formats: bool,
}

#[pymethods]
impl Copy {
    /// Of the scans of a partition's segments, taken with ``is_compared``.
    ///
    /// Args:
    ///     scan: of all its segments.
    ///     high_watermark: of ``replication-offset-checkpoint``, if it has an entry.
    #[new]
    #[pyo3(signature = (scan, *, high_watermark=None))]
    fn new(scan: &PartitionScan, high_watermark: Option<i64>) -> Self {
        let [magic_0, magic_1, _] = scan.inner.counters.magics;
        Self {
            inner: ottla_audit::copies::copy::Copy::of(&scan.inner, &scan.context, high_watermark),
            has_old_formats: magic_0 > 0 || magic_1 > 0,
        }
    }
}

/// One copy as the comparison is given it: its name, what its scan left behind, and path and shown name
/// of each segment.
type Named = (String, Py<Copy>, Vec<(Place, String)>);

type Rows<'py> = Vec<Bound<'py, PyDict>>;

/// Compares copies of a partition; gives rows of differences and findings, each with ``file``,
/// ``replica``, ``good_replicas`` and ``difference``, the number of its row.
///
/// Args:
///     copies: the copies.
///     progress: called before something is read again, with its bytes; ``False`` stops.
///
/// Raises:
///     OSError: a segment could not be read again.
///     AuditCancelledError: ``progress`` said so.
#[pyfunction]
#[pyo3(signature = (copies, *, progress=None))]
pub(crate) fn compare_copies(
    py: Python<'_>,
    copies: Vec<Named>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Rows<'_>, Rows<'_>)> {
    let mut names = Vec::new();
    let mut inner = Vec::new();
    let mut sources = Vec::new();
    let mut files: Vec<Vec<String>> = Vec::new();
    let mut level = Level::Crc;
    for (name, copy, segments) in copies {
        let copy = copy.get();
        if copy.has_old_formats {
            level = Level::Decode;
        }
        names.push(name);
        inner.push(copy.inner.clone());
        let (place, file): (Vec<_>, Vec<_>) = segments.into_iter().unzip();
        sources.push(place);
        files.push(file);
    }
    let progress = Progress::new(progress);
    let mut open = |copy: usize, segment: u32, bytes: u64| -> io::Result<Box<dyn Source>> {
        if !progress.report(bytes) {
            return Err(io::Error::other(STOPPED));
        }
        let places: Option<&Vec<Place>> = sources.get(copy);
        let place = places.and_then(|places| places.get(segment as usize));
        Ok(Box::new(place.ok_or(io::ErrorKind::NotFound)?.open()?))
    };
    let compared = py.detach(|| with_scanner(level, |scanner| compare(&inner, scanner, &mut open)));
    if let Some(error) = progress.into_error(py, STOPPED) {
        return Err(error);
    }
    let comparison = compared.map_err(|error| os_error(py, &error, None))?;

    let of_set = |set: &BTreeSet<usize>| -> Vec<&str> {
        set.iter().filter_map(|&copy| names.get(copy)).map(String::as_str).collect()
    };
    let file = |difference: &Difference, copy: usize| {
        let segment = difference.segment(copy, &inner);
        files.get(copy).and_then(|files| files.get(segment)).map_or("", String::as_str)
    };
    let mut rows = Vec::new();
    let mut findings = Vec::new();
    for (number, difference) in comparison.differences.iter().enumerate() {
        let row = PyDict::new(py);
        let extents = &difference.spans;
        let placed = |extent: &ottla_audit::copies::difference::ReplicaSpan| extent.place.is_some();
        row.set_item("kind", difference.kind.name())?;
        row.set_item("severity", difference.severity.name())?;
        row.set_item("first_offset", difference.first_offset)?;
        row.set_item("last_offset", difference.last_offset)?;
        row.set_item("good_replicas", of_set(&difference.good))?;
        row.set_item("bad_replicas", of_set(&difference.bad))?;
        row.set_item("only_replica", difference.only_copy().and_then(|copy| names.get(copy)))?;
        row.set_item("replicas", &names)?;
        let there = extents.iter().enumerate();
        let there: Vec<_> =
            there.map(|(copy, e)| placed(e).then(|| file(difference, copy))).collect();
        row.set_item("files", there)?;
        let positions: Vec<_> =
            extents.iter().map(|e| e.place.map(|place| place.position)).collect();
        row.set_item("positions", positions)?;
        let sizes: Vec<_> = extents.iter().map(|e| placed(e).then_some(e.size)).collect();
        row.set_item("sizes", sizes)?;
        row.set_item("batches", extents.iter().map(|e| e.batches).collect::<Vec<_>>())?;
        row.set_item("records", extents.iter().map(|e| e.records).collect::<Vec<_>>())?;
        let epochs: Vec<_> = extents.iter().map(|e| e.leader_epoch).collect();
        row.set_item("leader_epochs", epochs)?;
        row.set_item("action", difference.kind.action())?;
        let copy = difference.bad.first().or(difference.good.first()).copied().unwrap_or(0);
        row.set_item("message", difference.message(copy, &inner, &names))?;
        rows.push(row);
        for (copy, finding) in difference.findings(&inner, &names) {
            let row = finding_row(py, &finding)?;
            row.set_item("file", file(difference, copy))?;
            row.set_item("replica", names.get(copy))?;
            row.set_item("good_replicas", of_set(&difference.good))?;
            row.set_item("difference", number)?;
            findings.push(row);
        }
    }
    if comparison.left_out > 0 {
        let message = format!("and {} more differences between the copies", comparison.left_out);
        let finding = Finding::new(FindingKind::ReplicaDifference, message);
        let row = finding_row(py, &finding.graded(Severity::Warning))?;
        row.set_item("file", files.first().and_then(|files| files.first()))?;
        row.set_item("replica", names.first())?;
        row.set_item("good_replicas", Vec::<&str>::new())?;
        row.set_item("difference", comparison.differences.len().saturating_sub(1))?;
        findings.push(row);
    }
    Ok((rows, findings))
}
