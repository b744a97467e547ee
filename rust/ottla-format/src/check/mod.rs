//! The levels of checking, from the checksum alone to every rule.
//!
//! | level | what it proves |
//! | --- | --- |
//! | `crc` | framing and checksum; nothing inside is looked at |
//! | `decode` | the payload inflates and every record parses, as in Kafka's consumer |
//! | `full` | every rule of the format: counts, offset deltas, timestamps within the header's maximum, producer fields, control records |
//!
//! The kernels check ordinary batches in one pass. Whatever they do not accept is judged here, record
//! by record, and every fault is named. A *thin* batch, from which compaction has removed records,
//! keeps its first and last offset: its deltas increase, with gaps.

mod checker;
mod header_rules;
mod level;
mod pieces;
mod record_rules;
mod result;

pub use checker::{Checker, earliest_timestamp, reaches_maximum};
pub use level::Level;
pub use pieces::Pieces;
pub use result::CheckResult;
