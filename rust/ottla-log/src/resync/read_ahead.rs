//! Headers read ahead of the window, which stays where it is.

use crate::source::Window;
use ottla_format::header::RECORD_BATCH_OVERHEAD;

/// Bytes that are read at once: about as long as hashing as many takes.
pub(super) const READ_AHEAD_BYTES: usize = 4096;

/// Bytes that a header and the lengths of a legacy record with a short key take.
const HEAD_BYTES: usize = 512;

/// A few headers ahead of the window.
pub(super) struct ReadAhead {
    bytes: [u8; READ_AHEAD_BYTES],
    start: u64,
    size: usize,
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self { bytes: [0; READ_AHEAD_BYTES], start: 0, size: 0 }
    }
}

impl ReadAhead {
    /// Returns the bytes at `position`, [`HEAD_BYTES`] of them where there are so many.
    pub(super) fn head(&mut self, window: &mut Window<'_>, position: u64) -> &[u8] {
        let wanted = (HEAD_BYTES as u64).min(window.end().saturating_sub(position)) as usize;
        let skip = position.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        let held = skip.filter(|skip| skip.saturating_add(wanted) <= self.size);
        if held.is_none() {
            self.size = window.peek(position, &mut self.bytes);
            self.start = position;
        }
        let skip = held.unwrap_or(0);
        self.bytes.get(skip..self.size.min(skip.saturating_add(wanted))).unwrap_or_default()
    }
}

pub(super) fn is_zero(data: &[u8]) -> bool {
    data.iter().all(|&byte| byte == 0)
}

/// Whether at least a header's worth of zeros stands at `position`, as behind the last batch of a
/// preallocated file.
pub(super) fn is_zero_at(window: &mut Window<'_>, position: u64) -> bool {
    let mut head = [0xff; RECORD_BATCH_OVERHEAD];
    let size = window.peek(position, &mut head);
    head.get(..size).is_some_and(is_zero)
}
