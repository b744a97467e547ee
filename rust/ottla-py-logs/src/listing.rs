//! Directories of partitions, many at once and without the interpreter's lock.

use crate::names::{Said, parse_partition_name};
use crate::place::path_of;
use ottla_log::listing::{PlainFile, PlainPartition};
use ottla_py_batches::calls::detached;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::ffi::OsStr;
use std::thread;

/// What the name of the directory says, names and sizes of the files in order, and the base offsets of
/// the live segments.
type Described<'py> =
    (Option<Said<'py>>, Bound<'py, PyTuple>, Bound<'py, PyTuple>, Bound<'py, PyTuple>);

/// Lists directories of this machine, each as what its name says (see :func:`parse_partition_name`),
/// names and sizes of its files and the base offsets of its live segments. ``None`` for one that is no
/// partition's by what it holds, that has anything in it but regular files, or that cannot be read: of
/// these there is more to tell.
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
    let mut names = Names::default();
    let pairs = paths.iter().zip(&found);
    let each = pairs.map(|(path, listed)| {
        listed.as_ref().map(|listed| described(py, path, listed, &mut names)).transpose()
    });
    each.collect()
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

fn described<'py, 'a>(
    py: Python<'py>,
    path: &[u8],
    listed: &'a PlainPartition,
    names: &mut Names<'py, 'a>,
) -> PyResult<Described<'py>> {
    let name = path_of(path)?.file_name().map(OsStr::as_encoded_bytes);
    let said = name.and_then(|name| parse_partition_name(py, name));
    let sizes = PyTuple::new(py, listed.files.iter().map(|file| file.size))?;
    let (names, live_base_offsets) = names.of(py, listed)?;
    Ok((said, names, sizes, live_base_offsets))
}

/// What the names of the files of a directory say, as objects. Most directories have files of the same
/// names as the one before, and share them.
#[derive(Default)]
struct Names<'py, 'a> {
    last: Option<(&'a [PlainFile], Bound<'py, PyTuple>, Bound<'py, PyTuple>)>,
}

impl<'py, 'a> Names<'py, 'a> {
    /// The names, and the base offsets of the live segments among them.
    fn of(
        &mut self,
        py: Python<'py>,
        listed: &'a PlainPartition,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyTuple>)> {
        let PlainPartition { files, live_base_offsets } = listed;
        let name = |file: &'a PlainFile| file.name.as_encoded_bytes();
        if let Some((last, names, offsets)) = &self.last
            && last.iter().map(name).eq(files.iter().map(name))
        {
            return Ok((names.clone(), offsets.clone()));
        }
        let names = PyTuple::new(py, files.iter().map(|file| PyBytes::new(py, name(file))))?;
        let offsets = PyTuple::new(py, live_base_offsets)?;
        self.last = Some((files, names.clone(), offsets.clone()));
        Ok((names, offsets))
    }
}
