//! What Kafka calls its files and directories, and what a name says (`docs/kafka/log-dir.md` §1).
//!
//! ```text
//! <log dir>/meta.properties                           of the log directory
//!          /orders-0/                                 a partition: topic, '-', number
//!          /orders-0.<32 hex digits>-delete/          the same, to be deleted
//!          /orders-0.<32 hex digits>-stray/           the same, put aside as that of no topic
//!          /orders-0/00000000000000000042.log         a file of a segment: base offset, suffix
//!                   /00000000000000000042.log.swap    the same, of an operation under way
//!                   /leader-epoch-checkpoint          a file of the partition
//! ```
//!
//! There are two readings of a file's name. [`FileName`] says what a stranger may believe of it:
//! whatever does not look like Kafka's is unknown, never an error. Kafka's own loader is laxer: it
//! goes by the end of a name and reads [whatever number](offset_of) stands before the first dot.
//! [`PartitionName`] reads the name of a directory as the loader does.

mod constants;
mod digits;
mod directory;
mod file;
mod metadata_snapshot;
mod offset;
mod order;
mod partition;
mod segment;

pub use constants::*;
pub use directory::DirectoryKind;
pub use file::{FileKind, FileName, FileState};
pub use metadata_snapshot::MetadataSnapshotId;
pub use offset::{OffsetError, file_name, lacks_offset, offset_of};
pub use order::{listed_order, live_base_offsets};
pub use partition::{PartitionName, PartitionState, refuses_start};
pub use segment::SegmentNames;
