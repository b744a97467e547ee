//! On whose behalf batches are judged.

use super::verification::Guard;

/// Who appends, which decides how much is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A producer.
    #[default]
    Client,
    /// A group or transaction coordinator, through its own broker.
    Coordinator,
    /// The leader that this broker follows; what it accepted is accepted.
    Replication,
}

impl Origin {
    /// The origin of this name: `client`, `coordinator` or `replication`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "client" => Some(Self::Client),
            "coordinator" => Some(Self::Coordinator),
            "replication" => Some(Self::Replication),
            _ => None,
        }
    }
}

/// What happens to a producer of which nothing is known and whose sequence is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownSequence {
    /// It is accepted, as by Kafka since 2.5 (KIP-360).
    Accept,
    /// It is refused with `UNKNOWN_PRODUCER_ID` (59), as by Kafka before.
    Refuse,
}

/// On whose behalf a set of batches is judged.
#[derive(Clone, Copy, Debug)]
pub struct Appender<'a> {
    /// Who appends.
    pub origin: Origin,
    /// The first batch of a transaction needs a guard.
    pub must_be_verified: bool,
    /// The guard that came with the set.
    pub guard: Option<&'a Guard>,
    /// What happens to a producer of which nothing is known and whose sequence is not 0.
    pub unknown: UnknownSequence,
    /// The epoch of a marker is above that of its producer, as the coordinator makes it with
    /// transaction version 2 (KIP-1228).
    pub markers_bump_epoch: bool,
}

impl Appender<'_> {
    /// Batches of the leader that this partition follows, or of its own log read again.
    pub const REPLICATION: Self = Self {
        origin: Origin::Replication,
        must_be_verified: false,
        guard: None,
        unknown: UnknownSequence::Accept,
        markers_bump_epoch: false,
    };
}
