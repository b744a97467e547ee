//! What a check finds out beside faults.

use crate::clients::ClientFault;
use crate::control_record::ControlRecord;

/// What the check of one batch has found out beside faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckResult {
    /// Whether the stored checksum is that of the bytes.
    pub crc_ok: bool,
    /// The records that parsed, or at level `crc` those the header counts.
    pub records: u64,
    /// Offset of the first record of a legacy wrapper.
    pub base_offset: Option<i64>,
    /// The first control record of a control batch, if it could be read.
    pub control: Option<ControlRecord>,
    /// Whether the header's maximum timestamp is above those of all records; known at level `full`
    /// where every record was read.
    pub maximum_unreached: bool,
    /// The earliest timestamp of a record that has one of its own; known at level `full` where every
    /// record was read.
    pub earliest_timestamp: Option<i64>,
    /// The first thing that stops some clients, with the index of the record that it is in; known
    /// above level `crc`.
    pub client_fault: Option<(ClientFault, Option<u32>)>,
}
