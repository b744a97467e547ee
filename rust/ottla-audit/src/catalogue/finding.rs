//! One thing found.

use crate::catalogue::causes::Cause;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::message::Message;
use crate::catalogue::severity::Severity;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing found. Fields that do not apply are `None` or empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// How grave.
    pub severity: Severity,
    /// Bytes from the start of the file.
    pub position: Option<u64>,
    /// Bytes affected.
    pub size: Option<u64>,
    /// First offset affected: of the batch, or missing, or lost.
    pub first_offset: Option<i64>,
    /// Last offset affected, inclusive.
    pub last_offset: Option<i64>,
    /// Index of the record in its batch.
    pub record_index: Option<u32>,
    /// The producer affected.
    pub producer_id: Option<i64>,
    /// Where a consumer can continue after damage.
    pub next_good_offset: Option<i64>,
    /// Why offsets are missing, if known.
    pub cause: Option<Cause>,
    /// What should have been there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// The finding in a sentence.
    pub message: Message,
    /// The file it is in, if that is not the segment; its position counts from the start of that
    /// file.
    pub side_file: Option<SideFile>,
}

/// A file beside the segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SideFile {
    /// The `.index` of the segment.
    OffsetIndex,
    /// The `.timeindex` of the segment.
    TimeIndex,
    /// The `.txnindex` of the segment.
    TransactionIndex,
    /// The `.snapshot` of this offset.
    Snapshot(i64),
    /// The `leader-epoch-checkpoint` of the partition.
    LeaderEpochs,
}

impl Finding {
    /// Returns a finding of the kind's usual severity that has nothing but a message.
    pub fn new(kind: FindingKind, message: impl Into<Message>) -> Self {
        Self {
            kind,
            severity: kind.row().severity,
            position: None,
            size: None,
            first_offset: None,
            last_offset: None,
            record_index: None,
            producer_id: None,
            next_good_offset: None,
            cause: None,
            expected: String::new(),
            found: String::new(),
            message: message.into(),
            side_file: None,
        }
    }

    /// Sets the severity.
    #[must_use]
    pub fn graded(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// Sets position and size.
    #[must_use]
    pub fn at(self, position: u64, size: u64) -> Self {
        Self { position: Some(position), size: Some(size), ..self }
    }

    /// Sets the file beside the segment that it is in.
    #[must_use]
    pub fn beside(self, side_file: SideFile) -> Self {
        Self { side_file: Some(side_file), ..self }
    }

    /// Sets the offsets; an empty range is none.
    #[must_use]
    pub fn offsets(self, first: i64, last: i64) -> Self {
        if first > last {
            return self;
        }
        Self { first_offset: Some(first), last_offset: Some(last), ..self }
    }

    /// Sets the producer.
    #[must_use]
    pub fn producer(self, producer_id: i64) -> Self {
        Self { producer_id: Some(producer_id), ..self }
    }

    /// Sets what was expected and found.
    #[must_use]
    pub fn values(self, expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        Self { expected: expected.to_string(), found: found.to_string(), ..self }
    }
}
