//! A file that is open, and the caller who follows how much was read.

use super::interruption::LoadError;
use crate::source::{Source, fill};
use std::cell::Cell;
use std::rc::Rc;

/// Bytes of a text file that is read.
pub(super) const MAX_TEXT_BYTES: u64 = 16 << 20;

/// Reports how many bytes were read, and asks whether to go on.
pub(super) struct Progress<'p> {
    report: &'p dyn Fn(u64) -> bool,
    read_bytes: Cell<u64>,
}

impl<'p> Progress<'p> {
    pub(super) fn new(report: &'p dyn Fn(u64) -> bool) -> Rc<Self> {
        Rc::new(Self { report, read_bytes: Cell::new(0) })
    }

    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes.get()
    }

    fn advance(&self, bytes: usize) -> Result<(), LoadError> {
        let read_bytes = self.read_bytes.get().saturating_add(bytes as u64);
        self.read_bytes.set(read_bytes);
        if (self.report)(read_bytes) { Ok(()) } else { Err(LoadError::Stopped) }
    }
}

/// A file by its name.
pub(super) struct OpenFile<'d> {
    source: Box<dyn Source + 'd>,
    name: Rc<[u8]>,
    progress: Rc<Progress<'d>>,
}

impl<'d> OpenFile<'d> {
    pub(super) fn new(
        source: Box<dyn Source + 'd>,
        name: &[u8],
        progress: &Rc<Progress<'d>>,
    ) -> Self {
        Self { source, name: name.into(), progress: Rc::clone(progress) }
    }

    pub(super) fn size(&self) -> Result<u64, LoadError> {
        self.source.size().map_err(|error| LoadError::of_file(&self.name, error))
    }

    /// Fills a buffer from a position on. Returns how much of it, less only at the end.
    pub(super) fn fill(&self, position: u64, buffer: &mut [u8]) -> Result<usize, LoadError> {
        let filled = fill(&*self.source, position, buffer);
        let filled = filled.map_err(|error| LoadError::of_file(&self.name, error))?;
        self.progress.advance(filled)?;
        Ok(filled)
    }

    /// All its bytes.
    pub(super) fn read_whole(&self, max_bytes: u64) -> Result<Vec<u8>, LoadError> {
        let size = self.size()?;
        if size > max_bytes {
            let name = String::from_utf8_lossy(&self.name);
            return Err(LoadError::Limit(format!(
                "{name} has {size} bytes, more than {max_bytes}"
            )));
        }
        let mut data = vec![0; size as usize];
        let filled = self.fill(0, &mut data)?;
        data.truncate(filled);
        Ok(data)
    }
}
