//! The directories of partitions of which names and sizes of files tell everything: most of them.

use crate::names::{DirectoryKind, listed_order, live_base_offsets};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

/// A partition's directory that holds regular files and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainPartition {
    /// What tells the directory from others, by whatever path it was reached; `None` where the system's
    /// own number of it is not to be had.
    pub identity: Option<(u64, u64)>,
    /// The files, in the order in which they are listed.
    pub files: Vec<PlainFile>,
    /// The base offsets of the live segments, in order.
    pub live_base_offsets: Vec<i64>,
}

/// A regular file, which is reached by no link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainFile {
    /// Its name.
    pub name: OsString,
    /// Its size in bytes.
    pub size: u64,
}

impl PlainPartition {
    /// Lists a directory; `None` if it is no partition's by what it holds, or anything in it is a link,
    /// a directory or special: of those more is to be told than this has room for.
    ///
    /// # Errors
    /// The error of the operating system, also where a file vanishes meanwhile.
    pub fn list(directory: &Path) -> io::Result<Option<Self>> {
        let mut children = Vec::new();
        for child in fs::read_dir(directory)? {
            let child = child?;
            if !child.file_type()?.is_file() {
                return Ok(None);
            }
            children.push((child.file_name(), child));
        }
        let names: Vec<&[u8]> = children.iter().map(|(name, _)| name.as_encoded_bytes()).collect();
        if DirectoryKind::of(names.iter().copied()) != DirectoryKind::Partition {
            return Ok(None);
        }
        let order = listed_order(&names);
        let live_base_offsets = live_base_offsets(names);
        let mut files = Vec::with_capacity(order.len());
        for (name, child) in order.into_iter().filter_map(|index| children.get(index)) {
            let metadata = child.metadata()?;
            if !metadata.is_file() {
                return Ok(None);
            }
            files.push(PlainFile { name: name.clone(), size: metadata.len() });
        }
        Ok(Some(Self { identity: identity_of(directory)?, files, live_base_offsets }))
    }
}

/// Device and inode.
#[cfg(unix)]
fn identity_of(directory: &Path) -> io::Result<Option<(u64, u64)>> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(directory)?;
    Ok(Some((metadata.dev(), metadata.ino())))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "on Unix the directory is asked")]
fn identity_of(_: &Path) -> io::Result<Option<(u64, u64)>> {
    Ok(None)
}
