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

/// What a finding does to consumers when it is grave enough to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumerEffect {
    /// They read on.
    Continue,
    /// They stop, and must seek to the next offset that can be read.
    StopAtDamage,
    /// They stop, and can seek to the offset after the batch.
    StopAtBatch,
    /// Those that read only committed data stop until the transaction ends.
    WaitForEnd,
}

/// What a finding does to a log that other findings show, too. It says how a trace and its cause
/// find each other: both are in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The log ends before offsets that it had: files beside it know offsets beyond its end.
    LosesEnd,
    /// Its offsets are no longer in the file: traces are about some of them.
    RemovesOffsets,
    /// Its offsets are in the file and cannot be read: traces are about some of them.
    HidesOffsets,
    /// End markers of transactions may have been among its offsets: traces are about transactions
    /// that began before them.
    LosesMarkers,
    /// The bytes at its offsets are not those of other copies: traces are about some of them.
    ChangesBytes,
    /// Batches behind it are not where they were written: traces are about later positions of the
    /// segment.
    MovesBatches,
    /// Batches lie where others belong: traces are about the files beside the segment, or about
    /// the same offsets.
    MisplacesBatches,
    /// A batch has more or fewer offsets than were assigned to it: traces are right behind it.
    MiscountsOffsets,
    /// Timestamps are not those from which the time index was made: traces are about later offsets
    /// of the segment.
    ChangesTimestamps,
    /// Leader epochs are not those from which the checkpoint was made: traces are about some of
    /// its offsets.
    ChangesEpochs,
    /// Batches of a producer do not fit together: traces are about the same producer, in the same
    /// batches or right behind them. A transaction that is open has batches up to the end.
    DisturbsProducer,
    /// Sequence numbers that the log has already may come behind it: traces go back by as many of
    /// its producer as it has offsets, or, where it has no producer, are right behind it.
    RepeatsSequences,
}

impl Effect {
    /// Stable kebab-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::LosesEnd => "loses-end",
            Self::RemovesOffsets => "removes-offsets",
            Self::HidesOffsets => "hides-offsets",
            Self::LosesMarkers => "loses-markers",
            Self::ChangesBytes => "changes-bytes",
            Self::MovesBatches => "moves-batches",
            Self::MisplacesBatches => "misplaces-batches",
            Self::MiscountsOffsets => "miscounts-offsets",
            Self::ChangesTimestamps => "changes-timestamps",
            Self::ChangesEpochs => "changes-epochs",
            Self::DisturbsProducer => "disturbs-producer",
            Self::RepeatsSequences => "repeats-sequences",
        }
    }
}

/// Which findings of one kind have one cause, although neither is a trace of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joining {
    /// None: each is an event of its own.
    Nothing,
    /// Those about one batch.
    SameBatch,
    /// Those about one file of a partition.
    SameFile,
    /// Those of one partition.
    SamePartition,
    /// Those of one partition whose cause is the same and lawful, as that of compaction.
    SameLawfulCause,
}

impl Joining {
    /// Stable kebab-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::SameBatch => "same-batch",
            Self::SameFile => "same-file",
            Self::SamePartition => "same-partition",
            Self::SameLawfulCause => "same-lawful-cause",
        }
    }
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
    /// What it does to consumers when it is an error, and an open transaction when it is a warning.
    pub consumers: ConsumerEffect,
    /// Whether the next start of a broker may behave differently because of it.
    pub matters_to_start: bool,
    /// Whether `ottla rebuild` makes the file it is about from the segments.
    pub is_rebuildable: bool,
    /// What it does as a cause.
    pub effects: &'static [Effect],
    /// The effects of which it can be a trace.
    pub trace_of: &'static [Effect],
    /// Which findings of its kind belong to one event with it.
    pub joins: Joining,
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

    /// Whether a finding of this kind can be a trace of one of the other.
    pub fn can_be_trace_of(&self, cause: &Self) -> bool {
        self.trace_of.iter().any(|effect| cause.effects.contains(effect))
    }

    /// Whether there is no batch at its position.
    pub fn has_no_batch(&self) -> bool {
        matches!(self.bytes, ByteState::NoBatch | ByteState::Zeros)
    }
}
