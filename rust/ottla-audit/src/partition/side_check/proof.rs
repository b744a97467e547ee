//! How much a log proves about what lies beside it.

/// How much the log before an offset proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// First offset of the log.
    pub(crate) first_offset: i64,
    /// The cleaner was at it.
    pub(crate) is_compacted: bool,
    /// Bytes or batches are lost, or out of place.
    pub(crate) is_damaged: bool,
}
