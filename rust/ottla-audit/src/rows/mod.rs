//! What can be read of a log: its batches and records as columns, and what a consumer would get.
//!
//! | module | subject |
//! | --- | --- |
//! | [`columns`] | the columns of both tables, once |
//! | [`range`] | what is asked for, and the pieces it comes in |
//! | [`batches`], [`records`] | the readers |
//! | `advance`, `open_batch`, [`sheet`], [`headers`], [`traits`] | the pass in pieces, and the columns that it fills |
//! | `judge`, [`aborted`] | which batches a consumer gets records of, and what is passed over |
//! | `numbers` | records as columns of numbers |
//! | [`buffered`] | the columns of batches that are in memory |
//! | `reading` | what a consumer would get of a partition |
//! | `readable_offsets` | how much of that is left when the log is cut |

pub mod aborted;
pub(crate) mod advance;
pub mod batches;
pub mod buffered;
pub mod columns;
pub mod headers;
pub(crate) mod judge;
mod numbers;
pub(crate) mod open_batch;
pub mod range;
pub(crate) mod readable_offsets;
pub(crate) mod reading;
pub mod records;
pub mod sheet;
pub mod traits;

pub use aborted::AbortedTransactions;
pub use batches::{BatchReader, BatchRow};
pub use buffered::{BufferedRecords, RestOfBatch};
pub use judge::RecordRules;
pub use range::{MAX_PIECE_BYTES, Piece, RowBounds, RowRange};
pub use records::RecordReader;
pub use sheet::{RecordParts, RecordRows};
pub use traits::BatchTraits;
