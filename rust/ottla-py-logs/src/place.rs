//! Where a reader finds its bytes: a file of this machine, or an object of Python's that reads them
//! from somewhere else. The interpreter's lock is held while that object is called, and no longer.

use ottla_log::source::Source;
use ottla_py_batches::calls::{called_back, detached};
use pyo3::exceptions::{PyException, PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

/// Where the bytes of a file are.
#[derive(Debug)]
pub enum Place {
    /// The bytes of a path.
    Path(Vec<u8>),
    /// An object with an attribute `size` and a method `read_at(position, size)`, which returns fewer
    /// bytes than asked for only at the end.
    Object(Py<PyAny>),
}

impl<'py> FromPyObject<'_, 'py> for Place {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(path) = value.cast::<PyBytes>() {
            return Ok(Self::Path(path.as_bytes().to_vec()));
        }
        if value.hasattr("read_at")? {
            return Ok(Self::Object(value.to_owned().unbind()));
        }
        let found = value.get_type().qualname()?;
        Err(PyTypeError::new_err(format!(
            "expected a path as bytes, or an object with size and read_at, found {found}"
        )))
    }
}

impl Place {
    /// Opens it. Nothing is read of an object.
    pub(crate) fn open(&self) -> io::Result<Opened> {
        match self {
            Self::Path(path) => open_file(path).map(Opened::File),
            Self::Object(object) => Python::attach(|py| {
                let size = called_back(|| object.bind(py).getattr("size"))?.extract()?;
                Ok(Opened::Object { object: object.clone_ref(py), size })
            })
            .map_err(raised),
        }
    }

    /// Opens it without the interpreter's lock.
    pub(crate) fn open_detached(&self, py: Python<'_>) -> PyResult<Opened> {
        detached(py, || self.open())?.map_err(|error| self.error(py, &error))
    }

    /// Announces the range that this thread is going to read to an object with a method `expect`.
    pub(crate) fn announce(&self, py: Python<'_>, start: u64, stop: u64) -> PyResult<()> {
        if let Self::Object(object) = self
            && let Some(expect) = object.bind(py).getattr_opt("expect")?
        {
            called_back(|| expect.call1((start, stop)))?;
        }
        Ok(())
    }

    /// Returns what Python raises for an error at this place.
    pub(crate) fn error(&self, py: Python<'_>, error: &io::Error) -> PyErr {
        let path = match self {
            Self::Path(path) => Some(path.as_slice()),
            Self::Object(_) => None,
        };
        os_error(py, error, path)
    }
}

/// The path of these bytes: UTF-8 where names are text, as in Python's `os.fsencode`.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere not all bytes are a path")]
pub(crate) fn path_of(path: &[u8]) -> io::Result<&Path> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(path)))
}

/// The path of these bytes: UTF-8 where names are text, as in Python's `os.fsencode`.
#[cfg(not(unix))]
pub(crate) fn path_of(path: &[u8]) -> io::Result<&Path> {
    let path = std::str::from_utf8(path)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidFilename, error))?;
    Ok(Path::new(path))
}

/// Opens a file without waiting for a writer, in case the name has become that of a FIFO.
#[cfg(unix)]
pub(crate) fn open_file(path: &[u8]) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = path_of(path)?;
    std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// Opens a file.
#[cfg(not(unix))]
pub(crate) fn open_file(path: &[u8]) -> io::Result<File> {
    File::open(path_of(path)?)
}

/// A place that is open.
#[derive(Debug)]
pub(crate) enum Opened {
    /// A file of this machine.
    File(File),
    /// An object of Python's, and its number of bytes.
    Object { object: Py<PyAny>, size: u64 },
}

impl Source for Opened {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => Source::read_at(file, position, buffer),
            Self::Object { object, size } => {
                let left = usize::try_from(size.saturating_sub(position)).unwrap_or(usize::MAX);
                let wanted = buffer.len().min(left);
                let (buffer, _) = buffer.split_at_mut(wanted);
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

    fn next_data(&self, position: u64) -> u64 {
        match self {
            Self::File(file) => file.next_data(position),
            Self::Object { .. } => position,
        }
    }
}

fn read_into(object: &Bound<'_, PyAny>, position: u64, buffer: &mut [u8]) -> PyResult<usize> {
    let read = called_back(|| object.call_method1("read_at", (position, buffer.len())))?;
    let read = ottla_py_batches::bytes::bytes_of(&read)?;
    let read = read.as_bytes();
    let size = read.len().min(buffer.len());
    if let (Some(to), Some(from)) = (buffer.get_mut(..size), read.get(..size)) {
        to.copy_from_slice(from);
    }
    Ok(size)
}

/// An exception on its way through code that knows only errors of the operating system.
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

/// Returns the error for an exception, of the kind of its `errno` if it is an `OSError`.
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
    // Readers try an interrupted read again; Python has done so before it raises.
    let kind = if kind == io::ErrorKind::Interrupted { io::ErrorKind::Other } else { kind };
    io::Error::new(kind, Raised { exception, message })
}

fn exception(error: &io::Error) -> Option<&PyErr> {
    let raised = error.get_ref()?.downcast_ref::<Raised>()?;
    Some(&raised.exception)
}

/// Returns the exception behind an error if it is no error of the file but a reason to stop, as
/// `KeyboardInterrupt` is.
pub(crate) fn reason_to_stop(error: &io::Error) -> Option<PyErr> {
    let exception = exception(error)?;
    Python::attach(|py| {
        let is_fault = exception.is_instance_of::<PyException>(py);
        (!is_fault).then(|| exception.clone_ref(py))
    })
}

/// Returns what Python raises for an error: for one of the operating system what Python's own `open`
/// raises, with the name of the file; for an `OSError` of an object that exception.
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
