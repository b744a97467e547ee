//! The files of a directory as a start changes them.

use crate::log::directory::LogDirectory;
use ottla_log::recovery::{Directory, MutableDirectory};
use ottla_log::source::Source;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

impl Directory for LogDirectory {
    fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path())? {
            let entry = entry?;
            // A link counts as what it leads to.
            if fs::metadata(entry.path())?.is_file() {
                names.push(entry.file_name().into_encoded_bytes());
            }
        }
        Ok(names)
    }

    fn open(&self, name: &[u8]) -> io::Result<Box<dyn Source + '_>> {
        Ok(Box::new(File::open(self.file(name))?))
    }
}

impl MutableDirectory for LogDirectory {
    fn remove(&self, name: &[u8]) -> io::Result<()> {
        fs::remove_file(self.file(name))
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        fs::rename(self.file(from), self.file(to))
    }

    fn truncate(&self, name: &[u8], size: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.file(name))?;
        file.set_len(size)?;
        // What was cut off may lie behind the recovery point: once another segment follows, no start
        // would look for it here.
        file.sync_all()
    }

    fn copy(&self, from: &[u8], range: Range<u64>, to: &[u8]) -> io::Result<()> {
        let mut from = File::open(self.file(from))?;
        from.seek(SeekFrom::Start(range.start))?;
        let size = range.end.saturating_sub(range.start);
        let mut to = File::create(self.file(to))?;
        if io::copy(&mut from.take(size), &mut to)? < size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to.sync_all()
    }

    fn write(&self, name: &[u8], bytes: &[u8]) -> io::Result<()> {
        self.put(name, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        LogDirectory::sync(self)
    }
}
