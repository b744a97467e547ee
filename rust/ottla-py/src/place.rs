//! Where a reader finds its bytes: a file of this machine, or an object of Python's that reads them
//! from somewhere else. Python is entered for as long as a call of that object takes.

use ottla_log::source::Source;
use pyo3::exceptions::{PyException, PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// What every reader takes that reads a file.
#[derive(Debug)]
pub(crate) enum Place {
    /// A path, as the operating system has it.
    Path(Vec<u8>),
    /// An object with an attribute `size` and a method `read_at(position, size)` that gives bytes,
    /// fewer than asked for only at the end.
    Object(Py<PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Place {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(path) = given.cast::<PyBytes>() {
            return Ok(Self::Path(path.as_bytes().to_vec()));
        }
        if given.hasattr("read_at")? {
            return Ok(Self::Object(given.to_owned().unbind()));
        }
        let found = given.get_type().qualname()?;
        Err(PyTypeError::new_err(format!(
            "expected a path as bytes, or an object with size and read_at, found {found}"
        )))
    }
}

impl Place {
    /// Opens it; of an object nothing is read.
    pub(crate) fn open(&self) -> io::Result<Opened> {
        match self {
            Self::Path(path) => open_file(path).map(Opened::File),
            Self::Object(object) => Python::attach(|py| {
                let size = object.bind(py).getattr("size")?.extract()?;
                Ok(Opened::Object { object: object.clone_ref(py), size })
            })
            .map_err(raised),
        }
    }

    /// Opens it without the interpreter's lock.
    pub(crate) fn open_detached(&self, py: Python<'_>) -> PyResult<Opened> {
        py.detach(|| self.open()).map_err(|error| self.error(py, &error))
    }

    /// Tells an object that wants to know it which range this thread is going to read.
    pub(crate) fn announce(&self, py: Python<'_>, start: u64, stop: u64) -> PyResult<()> {
        if let Self::Object(object) = self
            && let Some(expect) = object.bind(py).getattr_opt("expect")?
        {
            expect.call1((start, stop))?;
        }
        Ok(())
    }

    /// What Python shall raise for an error at this place.
    pub(crate) fn error(&self, py: Python<'_>, error: &io::Error) -> PyErr {
        let path = match self {
            Self::Path(path) => Some(path.as_slice()),
            Self::Object(_) => None,
        };
        os_error(py, error, path)
    }
}

/// Opens without waiting for a writer, should the name have become that of a FIFO.
fn open_file(path: &[u8]) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let nonblocking = 0o4000;
    let name = OsStr::from_bytes(path);
    std::fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(name)
}

/// A place that is open.
#[derive(Debug)]
pub(crate) enum Opened {
    /// A file of this machine.
    File(File),
    /// An object of Python's, and the bytes it has.
    Object { object: Py<PyAny>, size: u64 },
}

impl Source for Opened {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => Source::read_at(file, position, buffer),
            Self::Object { object, size } => {
                let left = usize::try_from(size.saturating_sub(position)).unwrap_or(usize::MAX);
                let wanted = buffer.len().min(left);
                let buffer = buffer.get_mut(..wanted).unwrap_or_default();
                if buffer.is_empty() {
                    return Ok(0);
                }
                Python::attach(|py| read_into(object.bind(py), position, buffer)).map_err(raised)
            }
        }
    }

    fn size(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Source::size(file),
            Self::Object { size, .. } => Ok(*size),
        }
    }
}

fn read_into(object: &Bound<'_, PyAny>, position: u64, buffer: &mut [u8]) -> PyResult<usize> {
    let read = object.call_method1("read_at", (position, buffer.len()))?;
    let read = crate::bytes::bytes_of(&read)?;
    let read = read.as_bytes();
    let size = read.len().min(buffer.len());
    if let (Some(to), Some(from)) = (buffer.get_mut(..size), read.get(..size)) {
        to.copy_from_slice(from);
    }
    Ok(size)
}

/// An exception on its way through code that knows errors of the operating system alone.
#[derive(Debug)]
struct Raised {
    exception: PyErr,
    message: String,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Raised {}

/// The error for an exception: of the kind that its `errno` says, if it is an `OSError`.
fn raised(exception: PyErr) -> io::Error {
    let (kind, message) = Python::attach(|py| {
        if !exception.is_instance_of::<PyOSError>(py) {
            return (io::ErrorKind::Other, exception.to_string());
        }
        let field = |name| exception.value(py).getattr(name).ok();
        let kind = field("errno")
            .and_then(|number| number.extract().ok())
            .map_or(io::ErrorKind::Other, |number| io::Error::from_raw_os_error(number).kind());
        let strerror = field("strerror").and_then(|text| text.extract::<String>().ok());
        (kind, strerror.unwrap_or_else(|| exception.value(py).to_string()))
    });
    // Whoever meets an interrupted read reads again; Python has done so before it says this.
    let kind = if kind == io::ErrorKind::Interrupted { io::ErrorKind::Other } else { kind };
    io::Error::new(kind, Raised { exception, message })
}

fn exception(error: &io::Error) -> Option<&PyErr> {
    let raised = error.get_ref()?.downcast_ref::<Raised>()?;
    Some(&raised.exception)
}

/// The exception behind an error, if it says to stop, as `KeyboardInterrupt` does, and nothing of the
/// file.
pub(crate) fn told_to_stop(error: &io::Error) -> Option<PyErr> {
    let exception = exception(error)?;
    Python::attach(|py| {
        let is_fault = exception.is_instance_of::<PyException>(py);
        (!is_fault).then(|| exception.clone_ref(py))
    })
}

/// What Python shall raise for an error: one of the operating system with the name of its file, as
/// Python's own `open` raises it, and an `OSError` of an object as it was raised there.
pub(crate) fn os_error(py: Python<'_>, error: &io::Error, path: Option<&[u8]>) -> PyErr {
    if let Some(exception) = exception(error) {
        let is_fault = exception.is_instance_of::<PyException>(py);
        if is_fault && !exception.is_instance_of::<PyOSError>(py) {
            let raised = PyOSError::new_err(error.to_string());
            raised.set_cause(py, Some(exception.clone_ref(py)));
            return raised;
        }
        return exception.clone_ref(py);
    }
    let Some(number) = error.raw_os_error() else {
        return PyOSError::new_err(error.to_string());
    };
    let strerror = py.import("os").and_then(|os| os.call_method1("strerror", (number,)));
    match (strerror, path) {
        (Ok(text), Some(path)) => {
            PyOSError::new_err((number, text.unbind(), PyBytes::new(py, path).unbind()))
        }
        (Ok(text), None) => PyOSError::new_err((number, text.unbind())),
        (Err(error), _) => error,
    }
}
