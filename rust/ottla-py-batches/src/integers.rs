//! Integers that callers give.

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::fmt::Display;

/// More digits say no more: none of these numbers has half as many.
const MAX_SHOWN_DIGITS: usize = 40;

/// An integer argument, as `#[pyo3(from_py_with = int)]`: one that its type does not hold is told with
/// the range of those that it does.
///
/// # Errors
/// `OutOfRangeError`, to which PyO3 gives the name of the argument; `TypeError` for what is no integer.
#[inline]
pub fn int<T: Integral>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    T::of(value)
}

/// An integer of Rust, or an optional one.
pub trait Integral: Sized {
    /// Converts one.
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Self>;
}

macro_rules! integral {
    ($($kind:ty)*) => {$(
        impl Integral for $kind {
            #[inline]
            fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                value.extract().map_err(|error| out_of_range(value, error, &Self::MIN, &Self::MAX))
            }
        }
    )*};
}

integral!(i8 i16 i32 i64 u32 u64 usize);

impl<T: Integral> Integral for Option<T> {
    #[inline]
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if value.is_none() { Ok(None) } else { T::of(value).map(Some) }
    }
}

/// What to raise in place of an error that Python has for a value.
#[cold]
fn out_of_range(
    value: &Bound<'_, PyAny>,
    error: PyErr,
    minimum: &dyn Display,
    maximum: &dyn Display,
) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = value.py();
    if !error.is_instance_of::<PyOverflowError>(py) {
        return error;
    }
    let shown = value.str().map(|digits| digits.to_string());
    let shown = shown.ok().filter(|digits| digits.len() <= MAX_SHOWN_DIGITS);
    let shown = shown.as_deref().unwrap_or("beyond 64 bits");
    let said = format!("{shown}, expected {minimum} to {maximum}");
    match CLASS.import(py, "ottla.errors", "OutOfRangeError") {
        Ok(class) => PyErr::from_type(class.clone(), (said,)),
        Err(error) => error,
    }
}

/// An error for an argument, with its name as PyO3 gives it.
#[cold]
pub(crate) fn of_argument(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    let note = format!("while processing '{name}'");
    // Interpreters before 3.11 have notes on the engine's own errors alone.
    let _ = error.value(py).call_method1("add_note", (note,));
    error
}
