//! Words of the catalogues as Python has them: thousands of rows share each.

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Words that Python compares with its own, each looked up once.
#[derive(Default)]
pub(crate) struct Words<'py> {
    known: Vec<(&'static str, Bound<'py, PyString>)>,
}

impl<'py> Words<'py> {
    pub(crate) fn get(&mut self, py: Python<'py>, word: &'static str) -> Bound<'py, PyAny> {
        // A table has a few, and those of one kind follow each other: the place in memory tells them.
        let mut known = self.known.iter().rev();
        if let Some((_, known)) = known.find(|(known, _)| std::ptr::eq(*known, word)) {
            return known.clone().into_any();
        }
        let made = PyString::intern(py, word);
        self.known.push((word, made.clone()));
        made.into_any()
    }
}
