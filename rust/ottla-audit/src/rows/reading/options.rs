//! What to read of a partition.

/// Which records a consumer asks for (KIP-98).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// All of them.
    #[default]
    ReadUncommitted,
    /// Up to the last stable offset, without those of aborted transactions.
    ReadCommitted,
    /// Without those of aborted and of open transactions, up to the end: what counts for a coordinator
    /// that loads its topic. No consumer can ask for it.
    Decided,
}

impl Isolation {
    /// Returns the isolation with Kafka's name for it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "read_uncommitted" => Some(Self::ReadUncommitted),
            "read_committed" => Some(Self::ReadCommitted),
            _ => None,
        }
    }
}

/// What to read of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Which records.
    pub isolation: Isolation,
    /// The first offset: the log start offset, or one behind it.
    pub start_offset: i64,
    /// The offset behind the last.
    pub end_offset: i64,
    /// Whether the broker stopped cleanly: then even the active segment must end with a batch.
    pub stopped_cleanly: bool,
}
