//! Index files read piece by piece.

use super::indexes::MAX_INDEX_BYTES;
use ottla_log::source::{Source, fill};
use std::io;

/// Bytes of an index read at once: whole entries of both kinds.
const INDEX_PIECE: usize = 24 << 10;

/// Passes an index file to `take` piece by piece, until that returns false; returns its size.
///
/// # Errors
/// The error of reading.
pub fn read_index(source: &dyn Source, mut take: impl FnMut(&[u8]) -> bool) -> io::Result<u64> {
    let size = source.size()?;
    let mut piece = vec![0; INDEX_PIECE.min(usize::try_from(size).unwrap_or(INDEX_PIECE))];
    let mut position: u64 = 0;
    loop {
        let filled = fill(source, position, &mut piece)?;
        let Some(data) = piece.get(..filled).filter(|data| !data.is_empty()) else {
            return Ok(size);
        };
        if !take(data) || position > MAX_INDEX_BYTES as u64 {
            return Ok(size);
        }
        position = position.saturating_add(filled as u64);
        if position >= size {
            return Ok(size);
        }
    }
}
