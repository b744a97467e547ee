//! Under what circumstances a broker starts.

use super::index_builder::IndexConfig;

/// Under what circumstances a broker starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restart {
    /// The log directory holds `.kafka_cleanshutdown`.
    pub stopped_cleanly: bool,
    /// First offset not known to be flushed, from `recovery-point-offset-checkpoint`; 0 without one.
    pub recovery_point: i64,
    /// From `log-start-offset-checkpoint`; 0 without an entry.
    pub log_start_offset: i64,
    /// Nothing was ever compacted, so that each segment begins where the one before it ends.
    pub is_dense: bool,
    /// What the topic's configuration says of its indexes.
    pub config: IndexConfig,
}
