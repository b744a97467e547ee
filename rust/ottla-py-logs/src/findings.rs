//! Findings, and the catalogues that explain them.

use crate::words::Words;
use ottla_audit::{Cause, ConsumerEffect, FindingKind, SideFile};
use ottla_log::names;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use std::borrow::Cow;

/// One thing found. Fields that do not apply are ``None``.
#[pyclass(frozen, eq, module = "ottla._engine")]
#[derive(Clone, PartialEq)]
pub struct Finding {
    inner: ottla_audit::Finding,
}

impl From<ottla_audit::Finding> for Finding {
    fn from(inner: ottla_audit::Finding) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Finding {
    /// Name of its kind, as in :func:`finding_catalogue`.
    #[getter]
    fn name(&self) -> &'static str {
        self.inner.kind.name()
    }

    /// ``info``, ``warning`` or ``error``.
    #[getter]
    fn severity(&self) -> &'static str {
        self.inner.severity.name()
    }

    /// Bytes from the start of the file.
    #[getter]
    fn position(&self) -> Option<u64> {
        self.inner.position
    }

    /// Bytes concerned.
    #[getter]
    fn size(&self) -> Option<u64> {
        self.inner.size
    }

    /// First offset concerned.
    #[getter]
    fn first_offset(&self) -> Option<i64> {
        self.inner.first_offset
    }

    /// Last offset concerned, inclusive.
    #[getter]
    fn last_offset(&self) -> Option<i64> {
        self.inner.last_offset
    }

    /// What should have been there.
    #[getter]
    fn expected(&self) -> Option<&str> {
        Some(self.inner.expected.as_str()).filter(|text| !text.is_empty())
    }

    /// What is there.
    #[getter]
    fn found(&self) -> Option<&str> {
        Some(self.inner.found.as_str()).filter(|text| !text.is_empty())
    }

    /// The finding in a sentence.
    #[getter]
    fn message(&self) -> Cow<'_, str> {
        self.inner.message.text()
    }

    /// All that it says, in the order of the fields of a fault in Python.
    fn said<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let message = PyString::new(py, &self.inner.message.text());
        PyTuple::new(py, said(&self.inner, message, &mut Words::default())?)
    }
}

/// The path of the file that a finding is in, by that of its segment.
pub(crate) fn path_of<'py>(
    finding: &ottla_audit::Finding,
    segment: &Bound<'py, PyBytes>,
) -> Bound<'py, PyBytes> {
    let beside = |file| PyBytes::new(segment.py(), &path_beside(segment.as_bytes(), file));
    finding.side_file.map_or_else(|| segment.clone(), beside)
}

/// All that a finding says, its message as Python has it, in the order of the fields of a fault in
/// Python.
pub(crate) fn said<'py>(
    finding: &ottla_audit::Finding,
    message: Bound<'py, PyString>,
    words: &mut Words<'py>,
) -> PyResult<[Bound<'py, PyAny>; 13]> {
    let py = message.py();
    let text = |text: &str| (!text.is_empty()).then(|| PyString::new(py, text));
    Ok([
        words.get(py, finding.kind.name()),
        words.get(py, finding.severity.name()),
        message.into_any(),
        finding.position.into_bound_py_any(py)?,
        finding.size.into_bound_py_any(py)?,
        finding.first_offset.into_bound_py_any(py)?,
        finding.last_offset.into_bound_py_any(py)?,
        finding.record_index.into_bound_py_any(py)?,
        finding.producer_id.into_bound_py_any(py)?,
        finding.next_good_offset.into_bound_py_any(py)?,
        finding.cause.map(|cause| words.get(py, cause.name())).into_bound_py_any(py)?,
        text(&finding.expected).into_bound_py_any(py)?,
        text(&finding.found).into_bound_py_any(py)?,
    ])
}

/// The path of a file beside a segment.
fn path_beside(segment: &[u8], side_file: SideFile) -> Vec<u8> {
    let name = segment.rsplit(|&byte| byte == b'/').next().unwrap_or(segment);
    let directory = segment.strip_suffix(name).unwrap_or(b"");
    let stem = segment.strip_suffix(names::LOG).unwrap_or(segment);
    match side_file {
        SideFile::OffsetIndex => [stem, names::INDEX].concat(),
        SideFile::TimeIndex => [stem, names::TIME_INDEX].concat(),
        SideFile::TransactionIndex => [stem, names::TRANSACTION_INDEX].concat(),
        SideFile::Snapshot(offset) => {
            [directory, &names::file_name(offset, names::SNAPSHOT)].concat()
        }
        SideFile::LeaderEpochs => [directory, names::LEADER_EPOCHS].concat(),
    }
}

/// What the catalogue says about one kind of finding.
// Each flag is a column of the catalogue, and of the page that is made from it.
#[allow(clippy::struct_excessive_bools)]
#[pyclass(frozen, get_all, module = "ottla._engine")]
pub struct Explanation {
    /// Stable name.
    name: &'static str,
    /// How grave it usually is: ``info``, ``warning`` or ``error``.
    severity: &'static str,
    meaning: &'static str,
    causes: &'static str,
    action: &'static str,
    /// The class of Kafka or the KIP that knows about it.
    kafka: &'static str,
    /// Whether it keeps the records at its position out of the good ones when it is an error.
    condemns: bool,
    /// Where consumers can go on when it is an error: ``next-good-offset``, or ``next-batch`` where
    /// only the batch stops them; ``None`` if they do not stop.
    resume_at: Option<&'static str>,
    /// The consumers that stop there: ``all`` when it is an error, ``read_committed`` also when it
    /// is a warning; ``None`` if they do not stop.
    stops: Option<&'static str>,
    /// Whether the next start of a broker may behave differently because of it.
    matters_to_start: bool,
    /// Whether :func:`rebuild_side_files` makes the file that it is about.
    is_rebuildable: bool,
    /// Whether the log no longer holds the records at its offsets in a readable form.
    loses_records: bool,
    /// What it does to a log that other findings show, too.
    effects: Vec<&'static str>,
    /// The effects of which it can be a trace.
    trace_of: Vec<&'static str>,
    /// Which findings of its kind have one cause with it.
    joins: &'static str,
}

/// What the catalogue says about one cause of missing offsets.
#[pyclass(frozen, get_all, module = "ottla._engine")]
pub struct CauseExplanation {
    /// Stable name.
    name: &'static str,
    /// Whether it is normal that these offsets are missing.
    is_lawful: bool,
    /// What the offsets are, in a few words.
    brief: &'static str,
    meaning: &'static str,
    /// How it comes about, and what speaks for it.
    causes: &'static str,
    action: &'static str,
    /// The class of Kafka or the KIP that knows about it.
    kafka: &'static str,
}

/// The catalogue of findings, in order.
#[pyfunction]
pub fn finding_catalogue() -> Vec<Explanation> {
    let explanation = |kind: &FindingKind| {
        let row = kind.row();
        Explanation {
            name: row.name,
            severity: row.severity.name(),
            meaning: row.meaning,
            causes: row.causes,
            action: row.action,
            kafka: row.kafka,
            condemns: row.condemns(),
            resume_at: match row.consumers {
                ConsumerEffect::Continue | ConsumerEffect::WaitForEnd => None,
                ConsumerEffect::StopAtDamage => Some("next-good-offset"),
                ConsumerEffect::StopAtBatch => Some("next-batch"),
            },
            stops: match row.consumers {
                ConsumerEffect::Continue => None,
                ConsumerEffect::StopAtDamage | ConsumerEffect::StopAtBatch => Some("all"),
                ConsumerEffect::WaitForEnd => Some("read_committed"),
            },
            matters_to_start: row.matters_to_start,
            is_rebuildable: row.is_rebuildable,
            loses_records: row.loses_records(),
            effects: row.effects.iter().map(|effect| effect.name()).collect(),
            trace_of: row.trace_of.iter().map(|effect| effect.name()).collect(),
            joins: row.joins.name(),
        }
    };
    FindingKind::ALL.iter().map(explanation).collect()
}

/// The catalogue of the causes of gaps, in order.
#[pyfunction]
pub fn cause_catalogue() -> Vec<CauseExplanation> {
    let explanation = |cause: &Cause| {
        let row = cause.row();
        CauseExplanation {
            name: row.name,
            is_lawful: row.is_lawful,
            brief: row.brief,
            meaning: row.meaning,
            causes: row.causes,
            action: row.action,
            kafka: row.kafka,
        }
    };
    Cause::ALL.iter().map(explanation).collect()
}
