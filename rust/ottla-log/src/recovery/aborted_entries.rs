//! The entries of a transaction index on disk, one after the other.

use super::interruption::LoadError;
use super::open_file::OpenFile;
use crate::sidefiles::transaction_index::ABORTED_TRANSACTION_BYTES;

/// The bytes of the entries that are left.
pub(super) struct AbortedEntries<'d> {
    /// `None` without an index.
    file: Option<OpenFile<'d>>,
    position: u64,
}

impl<'d> AbortedEntries<'d> {
    pub(super) fn new(file: Option<OpenFile<'d>>) -> Self {
        Self { file, position: 0 }
    }

    /// The next whole entry.
    pub(super) fn next_entry(
        &mut self,
    ) -> Result<Option<[u8; ABORTED_TRANSACTION_BYTES]>, LoadError> {
        let Some(file) = &self.file else { return Ok(None) };
        let mut bytes = [0; ABORTED_TRANSACTION_BYTES];
        let filled = file.fill(self.position, &mut bytes)?;
        self.position = self.position.saturating_add(filled as u64);
        Ok((filled == bytes.len()).then_some(bytes))
    }
}
