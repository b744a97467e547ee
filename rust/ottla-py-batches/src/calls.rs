//! Calls from Python into the engine.
//!
//! The engine is written not to panic, whatever the input. Should it happen all the same, Python gets an
//! exception of Ottla's instead of PyO3's, which is no `Exception` and ends what should only fail.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Works without the interpreter's lock.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    // What a panic leaves half done is dropped with the closure, or was taken out by the caller.
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    done.map_err(|panic| engine_error(py, &*panic))
}

/// Works and keeps the lock: for what takes less time than letting it go.
pub fn attached<T>(py: Python<'_>, work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| engine_error(py, &*panic))
}

thread_local! {
    static CALLED_BACK: Cell<usize> = const { Cell::new(0) };
}

/// Calls what a caller of the engine has given it to be called.
///
/// Whatever runs inside has the interpreter's lock as far as this module knows. A library that lets the
/// lock go there and then reads a stream that needs Python would have it without the lock: see
/// [`is_called_back`].
pub fn called_back<T>(call: impl FnOnce() -> T) -> T {
    CALLED_BACK.set(CALLED_BACK.get().saturating_add(1));
    let done = call();
    CALLED_BACK.set(CALLED_BACK.get().saturating_sub(1));
    done
}

/// Whether this thread is inside [`called_back`].
pub fn is_called_back() -> bool {
    CALLED_BACK.get() > 0
}

/// The exception for a panic.
#[cold]
fn engine_error(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    match CLASS.import(py, "ottla.errors", "EngineError") {
        Ok(class) => PyErr::from_type(class.clone(), (said.to_owned(),)),
        Err(error) => error,
    }
}

/// Panics with a message: what a panic becomes can be seen in no other way.
///
/// Raises:
///     EngineError: always.
#[pyfunction]
pub fn provoke_panic(py: Python<'_>, message: String) -> PyResult<()> {
    detached(py, || resume_unwind(Box::new(message)))
}
