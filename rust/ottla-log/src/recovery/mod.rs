//! What the next start of a broker makes of a partition's directory (`docs/kafka/log-dir.md` §4–§6).
//!
//! The steps of Apache Kafka 4.1.2's `LogLoader` are played through over a listing of the directory
//! and the bytes of its files; what Kafka would write, rename or delete is noted first, and [`recover`]
//! then does it. Kafka's own mistakes are part of it: an index that lies decides where a log ends after
//! a clean stop, and a flipped base offset keeps the whole broker from starting.
//!
//! ```text
//! files ─▸ swaps ─▸ segments ─▸ recovery ─▸ end offset ─▸ epochs ─▸ producers ─▸ metadata
//!                     │ index missing │ after an unclean stop
//!                     └── recovery ───┘ of one segment
//! ```
//!
//! From the bottom up:
//!
//! | module | subject |
//! | --- | --- |
//! | `interruption` | what ends a step: exceptions of Kafka's, errors |
//! | `open_file`, `files` | the directory as it stands by now |
//! | `segment_file`, `checksum` | batches by framing alone |
//! | `index_lookup`, `index_builder` | an offset index as it is searched, and as batches fill it |
//! | `segment` | offsets found in a segment |
//! | `epochs`, `producer_state`, `journal`, `replay` | what a partition keeps beside its batches |
//! | `segment_recovery` | one pass over a segment |
//! | `partition_log` | the log as far as it is loaded |
//! | `swaps`, `split`, `unflushed` | steps of their own |
//! | `loader` | the steps in their order |
//! | `recover`, `directory_changes`, `sound_entries` | one start carried out, what it does to the files, and what of indexes can be believed |
//! | `exposed` | aborted transactions that consumers get all the same |
//! | `prediction`, `starts` | one start, and the next ones with what to do before |
//! | `rebuild` | what should stand beside a segment |

mod aborted_entries;
mod checksum;
mod directory_changes;
mod epochs;
mod exposed;
mod files;
mod index_builder;
mod index_lookup;
mod interruption;
mod journal;
mod loader;
mod open_file;
mod partition_log;
mod prediction;
mod producer_state;
mod rebuild;
mod recover;
mod replay;
mod restart;
mod segment;
mod segment_file;
mod segment_recovery;
mod sound_entries;
mod split;
mod starts;
mod swaps;
mod unflushed;

pub use directory_changes::{DirectoryChange, MutableDirectory};
pub use exposed::Aborted;
pub use files::Directory;
pub use index_builder::IndexConfig;
pub use interruption::{LoadError, Refusal};
pub use partition_log::RebuiltIndexes;
pub use prediction::{Recovery, SegmentOutcome, predict_recovery};
pub use rebuild::{Rebuild, SideFiles, rebuild_side_files};
pub use recover::{RecoveredLog, recover};
pub use restart::Restart;
pub use sound_entries::RecoveredSegment;
pub use starts::{Start, StartOutcome, Starts, predict_starts};
