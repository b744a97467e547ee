//! Directories of partitions, listed many at once and without the interpreter's lock.

use crate::names::{Said, parse_partition_name};
use crate::place::path_of;
use ottla_log::ahead::Ahead;
use ottla_log::listing::{PlainFile, PlainPartition};
use ottla_py_batches::calls::detached;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Directories that a thread lists before it looks whether there is more to do; Ctrl-C waits no longer
/// than for these.
const AT_ONCE: usize = 64;

/// What tells a directory from others, what its name says, names and sizes of the files in order, and the
/// base offsets of the live segments.
type Described<'py> = (
    Option<(u64, u64)>,
    Option<Said<'py>>,
    Bound<'py, PyTuple>,
    Bound<'py, PyTuple>,
    Bound<'py, PyTuple>,
);

/// Lists directories of this machine, a list of some at a time, each as what tells it from others
/// (``None`` where the system has no number for it), what its name says (see
/// :func:`parse_partition_name`), names and sizes of its files and the base offsets of its live segments.
/// ``None`` for one that is no partition's by what it holds, that has anything in it but regular files, or
/// that cannot be read: of these there is more to tell.
///
/// Args:
///     directories: their paths.
///     threads: how many list them in parallel, also while what they have listed is looked at.
#[pyfunction]
#[pyo3(signature = (directories, *, threads=1))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of a Python function are owned")]
pub fn list_plain_partitions(
    directories: Vec<Bound<'_, PyBytes>>,
    threads: usize,
) -> PlainPartitions {
    // One that is no path of this machine is not there.
    let path =
        |bytes: &Bound<'_, PyBytes>| path_of(bytes.as_bytes()).unwrap_or(Path::new("")).into();
    let paths: Arc<[PathBuf]> = directories.iter().map(path).collect();
    let listed = Arc::clone(&paths);
    let ahead = Ahead::new(paths.len().div_ceil(AT_ONCE), threads, move |piece| {
        piece_of(&listed, piece).iter().map(|path| list(path)).collect()
    });
    PlainPartitions { paths, ahead: Mutex::new(ahead) }
}

fn piece_of(paths: &[PathBuf], piece: usize) -> &[PathBuf] {
    paths.chunks(AT_ONCE).nth(piece).unwrap_or_default()
}

fn list(path: &Path) -> Option<PlainPartition> {
    // What is wrong is told by whoever lists the directory file by file.
    PlainPartition::list(path).ok()?
}

/// Directories of partitions, some at a time: what :func:`list_plain_partitions` returns.
#[pyclass(frozen, module = "ottla._engine")]
pub struct PlainPartitions {
    paths: Arc<[PathBuf]>,
    ahead: Mutex<Ahead<Vec<Option<PlainPartition>>>>,
}

#[pymethods]
impl PlainPartitions {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Option<Described<'py>>>>> {
        let Some((piece, listed)) = detached(py, || self.ahead.lock().ok()?.next())? else {
            return Ok(None);
        };
        let mut names = Names::default();
        let mut listed = listed.iter();
        let paths = piece_of(&self.paths, piece).iter();
        let described = paths.map(|path| match listed.next() {
            Some(Some(listed)) => described(py, path, listed, &mut names).map(Some),
            _ => Ok(None),
        });
        described.collect::<PyResult<_>>().map(Some)
    }
}

fn described<'py, 'a>(
    py: Python<'py>,
    path: &Path,
    listed: &'a PlainPartition,
    names: &mut Names<'py, 'a>,
) -> PyResult<Described<'py>> {
    let name = path.file_name().map(OsStr::as_encoded_bytes);
    let said = name.and_then(|name| parse_partition_name(py, name));
    let sizes = PyTuple::new(py, listed.files.iter().map(|file| file.size))?;
    let (names, live_base_offsets) = names.of(py, listed)?;
    Ok((listed.identity, said, names, sizes, live_base_offsets))
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
        let PlainPartition { files, live_base_offsets, .. } = listed;
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
