//! What the stream of a codec can do.

use crate::compression::arena::Fault;

/// The stream of a codec, as Java's `InputStream`.
pub(super) trait CodecStream {
    /// Appends at most `wanted` bytes, which is more than 0. Returns how many; 0 where there are none
    /// for now, `None` at the end.
    fn read(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<Option<usize>, Fault>;

    /// Whether the stream says that more can be read without waiting.
    fn is_available(&mut self) -> Result<bool, Fault>;

    /// Skips at most `wanted` bytes, and returns how many; of streams whose own skip Kafka uses.
    fn skip(&mut self, _wanted: usize) -> Result<usize, Fault> {
        Ok(0)
    }
}
