//! What is read of a payload.

/// What is read of a payload: in which steps, and how far, Kafka's readers ask its stream for bytes.
/// It matters where a stream pauses or fails (`docs/kafka/record-batch.md` §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The records of a batch of magic 2, as consumers read them.
    Records {
        /// How many there are; without any, the stream is opened and not read.
        count: u32,
    },
    /// The records of a batch of magic 2, as a leader reads those that it keeps: it skips keys, values
    /// and headers. What is skipped is inflated as zeros.
    SkippedRecords {
        /// How many there are.
        count: u32,
    },
    /// The message set in a wrapper.
    Entries {
        /// The magic of the wrapper.
        magic: i8,
    },
    /// Every byte up to the end, of a batch or wrapper of this magic.
    Bytes {
        /// That magic.
        magic: i8,
    },
}

impl Reading {
    /// The records of a batch whose header counts so many.
    pub fn records(count: i32) -> Self {
        Self::Records { count: u32::try_from(count).unwrap_or(0) }
    }

    /// The same records, as a leader reads those that it keeps.
    #[must_use]
    pub fn skipping(self) -> Self {
        match self {
            Self::Records { count } => Self::SkippedRecords { count },
            other => other,
        }
    }

    /// The magic of the batch or wrapper.
    pub fn magic(self) -> i8 {
        match self {
            Self::Records { .. } | Self::SkippedRecords { .. } => 2,
            Self::Entries { magic } | Self::Bytes { magic } => magic,
        }
    }
}
