//! Bytes from Python. What cannot change is borrowed: a `bytes` object, and any view of a part of one.
//! Whatever else has a buffer is copied, since it may be written to while it is read, by a thread that
//! needs no GIL for it, by another process, or through the object behind a read-only view.

use crate::kernels::may_load_numpy;
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PySlice, PyString};
use std::ops::{Deref, Range};

/// Below this the GIL is kept: to release it and acquire it again costs about 40 ns, as much as to
/// check a small batch.
pub(crate) const DETACH_BYTES: usize = 4096;

/// Below this a copy takes less time than to find out where a view points.
const VIEWED_BYTES: usize = 64 << 10;

/// Below this a copy takes less time than to make a view.
const PART_BYTES: usize = 4 << 10;

/// A view of a view of an array: so many steps from a buffer to who owns it.
const OWNER_STEPS: usize = 8;

static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Bytes that never change, and the object that holds them.
pub struct SharedBytes {
    owner: Py<PyBytes>,
    start: usize,
    end: usize,
}

impl SharedBytes {
    /// The bytes of any bytes-like object.
    ///
    /// # Errors
    /// `TypeError` for an object without a buffer.
    #[inline]
    pub fn of(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        match data.cast::<PyBytes>() {
            Ok(bytes) => Ok(Self::whole(bytes.clone())),
            Err(_) => Self::of_buffer(data),
        }
    }

    #[inline(never)]
    fn of_buffer(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        if data.is_exact_instance_of::<PyByteArray>() {
            return Ok(Self::whole(copied(data)?));
        }
        let view = view_of(data)?;
        match Self::lent(&view)? {
            Some(lent) => Ok(lent),
            None => Ok(Self::whole(copied(&view)?)),
        }
    }

    /// The bytes behind a `memoryview`, where they are a part of a `bytes` object. Where NumPy cannot be
    /// loaded, that is not known.
    pub(crate) fn lent(view: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = view.py();
        let size = size_of(view)?;
        if size < VIEWED_BYTES || !is_contiguous(view)? || !may_load_numpy(py)? {
            return Ok(None);
        }
        let Some(owner) = owner_of(view)? else { return Ok(None) };
        // NumPy tells the address of a buffer, as the stable interface of Python 3.10 cannot. It is
        // compared, never followed.
        let array = FROM_BUFFER.import(py, "numpy", "frombuffer")?.call1((view, "u1"))?;
        let address = array.cast::<PyArray1<u8>>()?.data() as usize;
        let whole = owner.as_bytes();
        let Some(start) = address.checked_sub(whole.as_ptr() as usize) else { return Ok(None) };
        let end = start.saturating_add(size);
        Ok((end <= whole.len()).then(|| Self { owner: owner.unbind(), start, end }))
    }

    /// All bytes of an object.
    #[inline]
    pub fn whole(bytes: Bound<'_, PyBytes>) -> Self {
        let end = bytes.as_bytes().len();
        Self { owner: bytes.unbind(), start: 0, end }
    }

    /// All bytes of an object, which are at hand.
    #[inline]
    pub(crate) fn all(owner: &Bound<'_, PyBytes>, bytes: &[u8]) -> Self {
        Self { owner: owner.clone().unbind(), start: 0, end: bytes.len() }
    }

    /// No bytes.
    pub fn empty(py: Python<'_>) -> Self {
        Self::whole(PyBytes::new(py, b""))
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        self.owner.as_bytes(py).get(self.start..self.end).unwrap_or_default()
    }

    /// The bytes as one object: of a part of one, a copy.
    pub(crate) fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let (owner, bytes) = (self.owner.bind(py), self.as_bytes(py));
        if bytes.len() == owner.as_bytes().len() { owner.clone() } else { PyBytes::new(py, bytes) }
    }

    /// The same bytes once more.
    #[inline]
    #[must_use]
    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        Self { owner: self.owner.clone_ref(py), ..*self }
    }

    /// The same bytes, for work without the interpreter.
    pub(crate) fn backed(&self, py: Python<'_>) -> BackedBytes {
        let whole = PyBackedBytes::from(self.owner.bind(py).clone());
        BackedBytes { whole, range: self.start..self.end }
    }

    /// A part of the bytes as an object of Python: a view, or a copy where that takes less time. All of
    /// them are at hand, as `bytes`.
    #[inline]
    pub(crate) fn part<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
        range: Range<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match bytes.get(range.clone()) {
            Some(few) if few.len() < PART_BYTES.min(bytes.len()) => {
                Ok(PyBytes::new(py, few).into_any())
            }
            _ => self.viewed(py, range),
        }
    }

    /// A part of the bytes as a view, or as the object where it is all that it holds.
    #[inline(never)]
    fn viewed<'py>(&self, py: Python<'py>, range: Range<usize>) -> PyResult<Bound<'py, PyAny>> {
        let owner = self.owner.bind(py);
        let (start, end) =
            (self.start.saturating_add(range.start), self.start.saturating_add(range.end));
        if start == 0 && end == owner.as_bytes().len() {
            return Ok(owner.clone().into_any());
        }
        PyMemoryView::from(owner)?.get_item(PySlice::new(py, start as isize, end as isize, 1))
    }
}

/// [`SharedBytes`] that are read without the interpreter.
pub struct BackedBytes {
    whole: PyBackedBytes,
    range: Range<usize>,
}

impl Deref for BackedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.whole.get(self.range.clone()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for BackedBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// The bytes of any bytes-like object as one object: of a view, a copy.
pub fn bytes_of<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    match data.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.clone()),
        Err(_) => copied(&view_of(data)?),
    }
}

/// A `memoryview` of any bytes-like object. `bytes(5)` and `bytes([1])` mean something else: only
/// objects with a buffer are accepted.
pub(crate) fn view_of<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if data.is_exact_instance_of::<PyMemoryView>() {
        return Ok(data.clone());
    }
    data.py().get_type::<PyMemoryView>().call1((data,)).map_err(|error| {
        if !error.is_instance_of::<PyTypeError>(data.py()) {
            return error;
        }
        let hint = if is_path(data) {
            ": did you mean its content, open(path, \"rb\").read()? A partition is read by \
             ottla.read_partition(path), a log directory by ottla.audit(path)"
        } else if data.is_instance_of::<PyString>() {
            "; encode it first"
        } else {
            ""
        };
        let found = data.get_type().qualname().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("expected a bytes-like object, found {found}{hint}"))
    })
}

/// Whether an object that has no bytes is a path, or text that looks like one.
fn is_path(data: &Bound<'_, PyAny>) -> bool {
    let is_segment = |(_, ending): (&str, &str)| ending == "log";
    match data.extract::<&str>() {
        Ok(text) => text.contains(['/', '\\']) || text.rsplit_once('.').is_some_and(is_segment),
        Err(_) => data.hasattr(intern!(data.py(), "__fspath__")).unwrap_or(false),
    }
}

/// How many bytes a view has.
pub(crate) fn size_of(view: &Bound<'_, PyAny>) -> PyResult<usize> {
    view.getattr(intern!(view.py(), "nbytes"))?.extract()
}

fn is_contiguous(view: &Bound<'_, PyAny>) -> PyResult<bool> {
    view.getattr(intern!(view.py(), "c_contiguous"))?.extract()
}

/// The bytes of a view, copied: in the order of its elements, if it has gaps.
pub(crate) fn copied<'py>(view: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    Ok(view.py().get_type::<PyBytes>().call1((view,))?.cast_into::<PyBytes>()?)
}

/// A view of single bytes, of which parts can be taken; of one with gaps a copy.
pub(crate) fn octets_of<'py>(view: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if is_contiguous(view)? {
        view.call_method1(intern!(view.py(), "cast"), ("B",))
    } else {
        Ok(copied(view)?.into_any())
    }
}

/// The `bytes` at the end of a chain of views and arrays, if it is one.
fn owner_of<'py>(view: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let mut holder = view.clone();
    for _ in 0..OWNER_STEPS {
        if let Ok(bytes) = holder.cast_exact::<PyBytes>() {
            return Ok(Some(bytes.clone()));
        }
        holder = if holder.is_instance_of::<PyMemoryView>() {
            holder.getattr(intern!(holder.py(), "obj"))?
        } else if holder.is_exact_instance_of::<PyByteArray>() {
            return Ok(None);
        } else if holder.get_type().fully_qualified_name()? == "numpy.ndarray" {
            holder.getattr("base")?
        } else {
            return Ok(None);
        };
    }
    Ok(None)
}
