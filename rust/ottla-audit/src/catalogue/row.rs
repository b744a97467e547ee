//! What the catalogue says about a kind of finding: its texts and its traits.
//!
//! Code that treats some kinds alike matches on a trait. A new kind is thus decided in its row and
//! nowhere else.

use crate::catalogue::severity::Severity;

/// The records at the offsets of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// They are as they were written, or the finding is not about records.
    AsWritten,
    /// They are there and can be read, but not as they were written.
    Altered,
    /// Their bytes cannot be read.
    Unreadable,
    /// The log does not hold them.
    Missing,
    /// Something was not read at all, so anything may be missing.
    Unknown,
}

/// The bytes at the position of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteState {
    /// They are not what is wrong.
    Valid,
    /// A batch that is faulty in itself.
    FaultyBatch,
    /// A batch that does not belong there.
    MisplacedBatch,
    /// Bytes that are not a batch.
    NoBatch,
    /// Zeros where a batch could be.
    Zeros,
}

/// What a finding does to consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumerEffect {
    /// They read on.
    Continue,
    /// They stop, and must seek to the next offset that can be read.
    StopAtDamage,
    /// They stop, and can seek to the offset after the batch.
    StopAtBatch,
}

/// One row of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its stable name.
    pub name: &'static str,
    /// How grave it usually is; a finding may be less or more grave, and then its message says why.
    pub severity: Severity,
    /// The state of the records at its offsets.
    pub records: RecordState,
    /// The state of the bytes at its position.
    pub bytes: ByteState,
    /// What it does to consumers when it is an error.
    pub consumers: ConsumerEffect,
    /// Whether the next start of a broker may behave differently because of it.
    pub matters_to_start: bool,
    /// Whether `ottla rebuild` makes the file it is about from the segments.
    pub is_rebuildable: bool,
    /// What it means, in one sentence.
    pub meaning: &'static str,
    /// What usually causes it.
    pub causes: &'static str,
    /// What to do.
    pub action: &'static str,
    /// The class or KIP of Kafka that knows about it.
    pub kafka: &'static str,
}

impl Row {
    /// Whether the log no longer holds the records, or does not hold them in a readable form.
    pub fn loses_records(&self) -> bool {
        matches!(self.records, RecordState::Unreadable | RecordState::Missing)
    }

    /// Whether the bytes keep records out of the good ones when the finding is an error.
    pub fn condemns(&self) -> bool {
        match self.bytes {
            ByteState::FaultyBatch | ByteState::MisplacedBatch | ByteState::NoBatch => true,
            ByteState::Valid | ByteState::Zeros => false,
        }
    }

    /// Whether there is no batch at its position.
    pub fn has_no_batch(&self) -> bool {
        matches!(self.bytes, ByteState::NoBatch | ByteState::Zeros)
    }
}
