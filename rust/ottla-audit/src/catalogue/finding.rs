//! One thing found.

use crate::catalogue::causes::Cause;
use crate::catalogue::kinds::FindingKind;
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
    /// Bytes concerned.
    pub size: Option<u64>,
    /// First offset concerned: of the batch, or missing, or lost.
    pub first_offset: Option<i64>,
    /// Last offset concerned, inclusive.
    pub last_offset: Option<i64>,
    /// Index of the record in its batch.
    pub record_index: Option<u32>,
    /// The producer concerned.
    pub producer_id: Option<i64>,
    /// Where a consumer can go on after damage.
    pub next_good_offset: Option<i64>,
    /// Why offsets are missing, where known.
    pub cause: Option<Cause>,
    /// What should have been there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// A sentence that says it all.
    pub message: String,
    /// The file it is in, where that is not the segment; its position counts from there.
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
    /// A finding of the kind's usual severity with nothing but a sentence.
    pub fn new(kind: FindingKind, message: impl Into<String>) -> Self {
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

    /// The same with another severity.
    #[must_use]
    pub fn graded(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// The same at these bytes.
    #[must_use]
    pub fn at(self, position: u64, size: u64) -> Self {
        Self { position: Some(position), size: Some(size), ..self }
    }

    /// The same in a file beside the segment.
    #[must_use]
    pub fn beside(self, side_file: SideFile) -> Self {
        Self { side_file: Some(side_file), ..self }
    }

    /// The same about these offsets; an empty range is none.
    #[must_use]
    pub fn offsets(self, first: i64, last: i64) -> Self {
        if first > last {
            return self;
        }
        Self { first_offset: Some(first), last_offset: Some(last), ..self }
    }

    /// The same about this producer.
    #[must_use]
    pub fn producer(self, producer_id: i64) -> Self {
        Self { producer_id: Some(producer_id), ..self }
    }

    /// The same with what was expected and found.
    #[must_use]
    pub fn values(self, expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        Self { expected: format!("{expected}"), found: format!("{found}"), ..self }
    }
}
