//! Copies of a partition compared.

use crate::findings::Finding;
use crate::partition::PartitionScan;
use crate::place::{Place, os_error};
use crate::progress::Progress;
use crate::scanners::with_scanner;
use ottla_audit::copies::compare::{compare, level_of};
use ottla_audit::copies::copy;
use ottla_audit::copies::difference::{self, Comparison, ReplicaSpan};
use ottla_log::source::Source;
use ottla_py_batches::calls::detached;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::io;

/// What `AuditCancelledError` says.
const STOPPED: &str = "the comparison was stopped";

/// What the scan of a partition leaves behind to be compared with other copies.
#[pyclass(frozen, module = "ottla._engine")]
pub struct Copy {
    inner: copy::Copy,
}

#[pymethods]
impl Copy {
    /// Takes the scans of a partition's segments, which were taken with ``is_compared``.
    ///
    /// Args:
    ///     scan: of all its segments.
    ///     high_watermark: of ``replication-offset-checkpoint``, if it has an entry.
    #[new]
    #[pyo3(signature = (scan, *, high_watermark=None))]
    fn new(scan: &PartitionScan, high_watermark: Option<i64>) -> Self {
        Self { inner: copy::Copy::of(&scan.inner, &scan.context, high_watermark) }
    }
}

/// A stretch of offsets at which copies of a partition differ in one way. Of lists with an item for
/// every copy ``replicas`` has the names.
#[pyclass(frozen, eq, get_all, module = "ottla._engine")]
#[derive(PartialEq)]
pub struct Difference {
    kind: &'static str,
    severity: &'static str,
    first_offset: i64,
    last_offset: i64,
    /// Names of the copies to trust; none where nothing shows which.
    good_replicas: Vec<String>,
    /// Names of the copies that do not have what the good ones have.
    bad_replicas: Vec<String>,
    /// Name of the copy whose batches or offsets no other copy has.
    only_replica: Option<String>,
    replicas: Vec<String>,
    /// Number of the segment in which each copy has batches of it, or damage.
    segments: Vec<Option<usize>>,
    /// Where they begin in that segment.
    positions: Vec<Option<u64>>,
    /// Bytes from there on, in that segment.
    sizes: Vec<Option<u64>>,
    batches: Vec<u64>,
    records: Vec<u64>,
    leader_epochs: Vec<Option<i32>>,
    /// What to do.
    action: &'static str,
    message: String,
}

/// A finding about one copy of a partition.
#[pyclass(frozen, eq, get_all, module = "ottla._engine")]
#[derive(PartialEq)]
pub struct CopyFinding {
    finding: Finding,
    /// Name of the copy.
    replica: String,
    /// Number of its segment.
    segment: usize,
    /// Names of the copies to trust.
    good_replicas: Vec<String>,
    /// Number of the difference.
    difference: usize,
}

/// One copy: its name, what its scan left behind, and the path of each segment.
type NamedCopy = (String, Py<Copy>, Vec<Place>);

/// Compares copies of a partition; returns the differences, and findings about them.
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
pub fn compare_copies(
    py: Python<'_>,
    copies: Vec<NamedCopy>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Vec<Difference>, Vec<CopyFinding>)> {
    let mut named = Named { names: Vec::new(), copies: Vec::new() };
    let mut places = Vec::new();
    for (name, copy, segments) in copies {
        named.names.push(name);
        named.copies.push(copy.get().inner.clone());
        places.push(segments);
    }
    let progress = Progress::new(progress);
    let mut open = |copy: usize, segment: u32, bytes: u64| -> io::Result<Box<dyn Source>> {
        if !progress.report(bytes) {
            return Err(io::Error::other(STOPPED));
        }
        let places: Option<&Vec<Place>> = places.get(copy);
        let place = places.and_then(|places| places.get(segment as usize));
        Ok(Box::new(place.ok_or(io::ErrorKind::NotFound)?.open()?))
    };
    let compared = detached(py, || {
        with_scanner(level_of(&named.copies), |scanner| compare(&named.copies, scanner, &mut open))
    })?;
    if let Some(error) = progress.into_error(py, STOPPED) {
        return Err(error);
    }
    let comparison = compared.map_err(|error| os_error(py, &error, None))?;
    Ok((named.differences(&comparison), named.findings(&comparison)))
}

/// Copies and their names.
struct Named {
    names: Vec<String>,
    copies: Vec<copy::Copy>,
}

impl Named {
    fn of_set(&self, set: &BTreeSet<usize>) -> Vec<String> {
        set.iter().filter_map(|&copy| self.names.get(copy)).cloned().collect()
    }

    fn differences(&self, comparison: &Comparison) -> Vec<Difference> {
        comparison.differences.iter().map(|difference| self.difference(difference)).collect()
    }

    fn difference(&self, difference: &difference::Difference) -> Difference {
        let spans = &difference.spans;
        let is_placed = |span: &ReplicaSpan| span.place.is_some();
        let segment = |(copy, span): (usize, &ReplicaSpan)| {
            is_placed(span).then(|| difference.segment(copy, &self.copies))
        };
        let copy = difference.bad.first().or(difference.good.first()).copied().unwrap_or(0);
        let only_copy = difference.only_copy().and_then(|copy| self.names.get(copy));
        Difference {
            kind: difference.kind.name(),
            severity: difference.severity.name(),
            first_offset: difference.first_offset,
            last_offset: difference.last_offset,
            good_replicas: self.of_set(&difference.good),
            bad_replicas: self.of_set(&difference.bad),
            only_replica: only_copy.cloned(),
            replicas: self.names.clone(),
            segments: spans.iter().enumerate().map(segment).collect(),
            positions: spans.iter().map(|s| s.place.map(|place| place.position)).collect(),
            sizes: spans.iter().map(|span| is_placed(span).then_some(span.size)).collect(),
            batches: spans.iter().map(|span| span.batches).collect(),
            records: spans.iter().map(|span| span.records).collect(),
            leader_epochs: spans.iter().map(|span| span.leader_epoch).collect(),
            action: difference.kind.action(),
            message: difference.message(copy, &self.copies, &self.names),
        }
    }

    fn findings(&self, comparison: &Comparison) -> Vec<CopyFinding> {
        let mut findings = Vec::new();
        for (number, difference) in comparison.differences.iter().enumerate() {
            for (copy, finding) in difference.findings(&self.copies, &self.names) {
                let Some(replica) = self.names.get(copy) else { continue };
                findings.push(CopyFinding {
                    finding: Finding::from(finding),
                    replica: replica.clone(),
                    segment: difference.segment(copy, &self.copies),
                    good_replicas: self.of_set(&difference.good),
                    difference: number,
                });
            }
        }
        let left_out = comparison.left_out_finding().zip(self.names.first());
        findings.extend(left_out.map(|(finding, replica)| CopyFinding {
            finding: Finding::from(finding),
            replica: replica.clone(),
            segment: 0,
            good_replicas: Vec::new(),
            difference: comparison.differences.len().saturating_sub(1),
        }));
        findings
    }
}
