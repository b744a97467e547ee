//! Directories of partitions, many at once and without the interpreter's lock.

use crate::place::path_of;
use ottla_log::listing::{PlainFile, PlainPartition};
use ottla_py_batches::calls::detached;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::thread;

/// Names and sizes of the files in order, and the base offsets of the live segments.
type Described<'py> = (Bound<'py, PyTuple>, Bound<'py, PyTuple>, Bound<'py, PyTuple>);

/// Lists directories of this machine, each as names and sizes of its files and the base offsets of its
/// live segments. ``None`` for one that is no partition's by what it holds, that has anything in it but
/// regular files, or that cannot be read: of these there is more to tell.
///
/// Args:
///     directories: their paths.
///     threads: how many list them in parallel.
#[pyfunction]
#[pyo3(signature = (directories, *, threads=1))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn list_plain_partitions<'py>(
    py: Python<'py>,
    directories: Vec<Bound<'py, PyBytes>>,
    threads: usize,
) -> PyResult<Vec<Option<Described<'py>>>> {
    let paths: Vec<&[u8]> = directories.iter().map(PyBytesMethods::as_bytes).collect();
    let found = detached(py, || list_all(&paths, threads))?;
    found.iter().map(|one| one.as_ref().map(|one| to_python(py, one)).transpose()).collect()
}

fn list_all(paths: &[&[u8]], threads: usize) -> Vec<Option<PlainPartition>> {
    let mut parts = paths.chunks(paths.len().div_ceil(threads.max(1)).max(1));
    let Some(first) = parts.next() else { return Vec::new() };
    thread::scope(|scope| {
        let others: Vec<_> = parts
            .map(|part| {
                // Where the system gives no further thread, this one does the work.
                (part, thread::Builder::new().spawn_scoped(scope, || list_each(part)).ok())
            })
            .collect();
        let mut listed = list_each(first);
        for (part, other) in others {
            let done = other.and_then(|other| other.join().ok());
            listed.extend(done.unwrap_or_else(|| list_each(part)));
        }
        listed
    })
}

fn list_each(paths: &[&[u8]]) -> Vec<Option<PlainPartition>> {
    // What is wrong is told by whoever lists the directory file by file.
    paths.iter().map(|path| PlainPartition::list(path_of(path).ok()?).ok()?).collect()
}

fn to_python<'py>(py: Python<'py>, listed: &PlainPartition) -> PyResult<Described<'py>> {
    let name = |file: &PlainFile| PyBytes::new(py, file.name.as_encoded_bytes());
    Ok((
        PyTuple::new(py, listed.files.iter().map(name))?,
        PyTuple::new(py, listed.files.iter().map(|file| file.size))?,
        PyTuple::new(py, &listed.live_base_offsets)?,
    ))
}
