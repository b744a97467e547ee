//! What a `DataPlane` returns of a Produce and of a Fetch.

use ottla_plane::{
    Fetched as FetchDone, Handle, Produced as ProduceDone, Sink, Verification as Asked,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

/// Stored batches from here on are a part of their own, and so are copied once.
const PART_BYTES: usize = 32 << 10;

/// The parts of an answer as they come to be.
pub(crate) struct Parts<'py> {
    py: Python<'py>,
    done: Vec<Py<PyBytes>>,
    last: Vec<u8>,
}

impl<'py> Parts<'py> {
    pub(crate) fn new(py: Python<'py>) -> Self {
        Self { py, done: Vec::new(), last: Vec::new() }
    }

    fn end_part(&mut self) {
        if !self.last.is_empty() {
            self.done.push(PyBytes::new(self.py, &self.last).unbind());
            self.last.clear();
        }
    }

    fn finish(mut self) -> Vec<Py<PyBytes>> {
        self.end_part();
        self.done
    }
}

impl Sink for Parts<'_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.last
    }

    fn records(&mut self, bytes: &[u8]) {
        if bytes.len() < PART_BYTES {
            self.last.extend_from_slice(bytes);
            return;
        }
        self.end_part();
        self.done.push(PyBytes::new(self.py, bytes).unbind());
    }
}

/// A transaction whose coordinator is asked before a Produce is appended (KIP-890): whether it
/// continues on these partitions, or to add them to it.
///
/// Hand it to :meth:`DataPlane.produce` as ``verified`` once the coordinator has answered, with the
/// same frame; what the coordinator refused is in ``refused``.
#[pyclass(frozen, module = "ottla._engine")]
pub struct Verification {
    pub(crate) engine: Asked,
}

#[pymethods]
impl Verification {
    /// The transactional id of the request.
    #[getter]
    fn transactional_id(&self) -> String {
        String::from_utf8_lossy(&self.engine.transactional_id).into_owned()
    }

    /// The producer's id.
    #[getter]
    fn producer_id(&self) -> i64 {
        self.engine.producer_id
    }

    /// The producer's epoch.
    #[getter]
    fn producer_epoch(&self) -> i16 {
        self.engine.producer_epoch
    }

    /// Whether the partitions are to be added to the transaction, and not only looked up in it: from
    /// Produce 12 on.
    #[getter]
    fn adds_partitions(&self) -> bool {
        self.engine.adds_partitions
    }

    /// The partitions: pairs of a topic's name and a number.
    #[getter]
    fn partitions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let partitions = self.engine.partitions.iter();
        let named = partitions.map(|(topic, index)| (String::from_utf8_lossy(topic), *index));
        PyTuple::new(py, named.collect::<Vec<_>>())
    }
}

/// What became of a Produce.
#[pyclass(frozen, module = "ottla._engine")]
pub struct Produced {
    answer: Option<Py<PyList>>,
    moved: Vec<Handle>,
    repeated: Vec<Handle>,
    failed: bool,
    to_verify: Option<Py<Verification>>,
}

impl Produced {
    pub(crate) fn new(py: Python<'_>, done: ProduceDone, answer: &[u8]) -> PyResult<Self> {
        Ok(match done {
            ProduceDone::Verify(engine) => Self {
                answer: None,
                moved: Vec::new(),
                repeated: Vec::new(),
                failed: false,
                to_verify: Some(Py::new(py, Verification { engine })?),
            },
            ProduceDone::Done { has_answer, moved, repeated, failed } => {
                let parts = has_answer.then(|| PyList::new(py, [PyBytes::new(py, answer)]));
                let answer = parts.transpose()?.map(Bound::unbind);
                Self { answer, moved, repeated, failed, to_verify: None }
            }
        })
    }
}

#[pymethods]
impl Produced {
    /// The body of the answer, as a list of parts; ``None`` with ``acks=0``, which has no answer,
    /// and while ``to_verify``.
    #[getter]
    fn answer(&self, py: Python<'_>) -> Option<Py<PyList>> {
        self.answer.as_ref().map(|answer| answer.clone_ref(py))
    }

    /// Handles of the partitions of which there is more to read.
    #[getter]
    fn moved<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.moved)
    }

    /// Handles of the partitions that have had what they were sent before.
    #[getter]
    fn repeated<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.repeated)
    }

    /// Whether any partition was refused: with ``acks=0`` the connection is closed then.
    #[getter]
    fn failed(&self) -> bool {
        self.failed
    }

    /// What the transaction coordinator is to be asked first; nothing is appended then.
    #[getter]
    fn to_verify(&self, py: Python<'_>) -> Option<Py<Verification>> {
        self.to_verify.as_ref().map(|asked| asked.clone_ref(py))
    }
}

/// What became of a Fetch.
#[pyclass(frozen, module = "ottla._engine")]
pub struct Fetched {
    answer: Option<Py<PyList>>,
    errors: Vec<i16>,
    handles: Vec<Handle>,
    max_wait_ms: i32,
}

impl Fetched {
    pub(crate) fn new(py: Python<'_>, done: FetchDone, parts: Parts<'_>) -> PyResult<Self> {
        Ok(match done {
            FetchDone::Wait { handles, max_wait_ms } => {
                Self { answer: None, errors: Vec::new(), handles, max_wait_ms }
            }
            FetchDone::Answered { errors } => {
                let answer = PyList::new(py, parts.finish())?.unbind();
                Self { answer: Some(answer), errors, handles: Vec::new(), max_wait_ms: 0 }
            }
        })
    }
}

#[pymethods]
impl Fetched {
    /// The body of the answer, as a list of parts; ``None`` while there is too little to read. Then
    /// hand over the same frame again once one of ``handles`` has moved, and after ``max_wait_ms``
    /// with ``must_answer``.
    #[getter]
    fn answer(&self, py: Python<'_>) -> Option<Py<PyList>> {
        self.answer.as_ref().map(|answer| answer.clone_ref(py))
    }

    /// The distinct error codes of the answer, ascending: its own, and those of its partitions.
    #[getter]
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.errors)
    }

    /// Handles of the partitions of which one may get more.
    #[getter]
    fn handles<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.handles)
    }

    /// How long the client waits, in ms.
    #[getter]
    fn max_wait_ms(&self) -> i32 {
        self.max_wait_ms
    }
}
