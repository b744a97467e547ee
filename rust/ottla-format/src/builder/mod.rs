//! One batch from records or columns, byte for byte as Kafka's own builder writes it.
//!
//! What Kafka's builder refuses is refused: offsets that do not increase, negative timestamps other
//! than −1, headers below magic 2, producer fields that contradict each other. Everything else a
//! caller may ask for is written, including what a leader would reject.
//!
//! | module | subject |
//! | --- | --- |
//! | `fields` | the fields of a batch, and its header once the records are in place |
//! | `records` | a batch of magic 2 from records, at once or one by one |
//! | `columns` | a batch of magic 2 from columns |
//! | `growing` | a batch of magic 2 that a producer grows and sends again |
//! | `control` | control batches |
//! | `compacted` | what compaction leaves of a batch |
//! | `legacy` | message sets of magic 0 and 1 |
//! | `error` | why a batch cannot be built |

mod columns;
mod compacted;
mod control;
mod error;
mod fields;
mod growing;
mod legacy;
mod records;

pub use columns::{ColumnsPlan, build_batch_from_columns};
pub use compacted::{CompactedWriter, build_emptied};
pub use control::{NewControlRecord, build_control_batch};
pub use error::BuildError;
pub use fields::BatchFields;
pub use growing::{BatchBuilder, RowColumns, RowTimestamps, rows_of, value_at};
pub use legacy::{LegacyFields, MessageSetWriter, build_legacy};
pub use records::{NewRecord, RecordsWriter, build_batch};
