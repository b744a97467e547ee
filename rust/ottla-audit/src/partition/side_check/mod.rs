//! The files beside the segments of a partition compared with what the segments show together.
//!
//! Only what is proved becomes a finding. Retention removes the head of a log but leaves its
//! producers in a snapshot; expiry removes a producer from a snapshot but leaves its batches;
//! compaction removes batches and markers; damage may remove anything. How much can be compared
//! depends on which of these happened:
//!
//! | log | compared |
//! | --- | --- |
//! | whole from offset 0 | every field, and no producer that the log does not know |
//! | head gone | what the remaining batches decide: the newest of each producer |
//! | compacted | a snapshot may know more than the log, never less |
//! | damaged | whether the file can be read, and names nothing beyond its offset |
//!
//! | module | subject |
//! | --- | --- |
//! | `files` | where the files are read |
//! | `proof` | how much a log proves |
//! | `snapshots` | producer snapshots |
//! | `transaction_indexes` | `.txnindex` files |
//! | `leader_epochs` | `leader-epoch-checkpoint` |
//! | `checkpoints` | the offset checkpoints of a log directory |
//! | `names` | what the names of the files show |
//! | `metadata` | text files that cannot be read, and topic ids |

mod checkpoints;
mod files;
pub(crate) mod leader_epochs;
mod metadata;
mod names;
pub(crate) mod proof;
pub(crate) mod snapshots;
pub(crate) mod transaction_indexes;

pub use checkpoints::{offset_beyond_end, partitions_without_directory};
pub use files::{NoSideFiles, SideFiles};
pub use leader_epochs::epoch_beyond_end;
pub use metadata::{foreign_topic_ids, unreadable_text_file};
pub use names::{DirectoryEntry, check_names, orphaned_indexes};
