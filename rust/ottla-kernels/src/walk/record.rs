//! One record, and who receives it.

/// What is known about one record. Positions count from the beginning of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Milliseconds after the header's base timestamp.
    pub timestamp_delta: i64,
    /// Where the key is, or would be.
    pub key_position: usize,
    /// Bytes of the key, −1 for null.
    pub key_length: i32,
    /// Where the value is, or would be.
    pub value_position: usize,
    /// Bytes of the value, −1 for null.
    pub value_length: i32,
    /// Where the header count is, a varint; the headers follow.
    pub headers_position: usize,
    /// Where the record ends.
    pub end: usize,
}

/// Receives the records of a batch, one by one. `Copy`, so that its pointers stay in registers.
///
/// # Safety
///
/// Implementations may rely on [`put`](Sink::put) being called as its safety section says, and on
/// nothing else.
pub unsafe trait Sink: Copy {
    /// Receives record `index` of `data`.
    ///
    /// # Safety
    ///
    /// `index` is below the record count of the header that the sink was made for, and the records
    /// come in order, from 0. `data` is what the target received in
    /// [`begin`](crate::target::Target::begin); keys and values lie inside it, one behind the other.
    unsafe fn put(self, data: &[u8], index: usize, record: Record);
}
