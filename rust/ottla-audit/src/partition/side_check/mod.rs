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

mod files;
pub(crate) mod leader_epochs;
pub(crate) mod proof;
pub(crate) mod snapshots;
pub(crate) mod transaction_indexes;

pub use files::{NoSideFiles, SideFiles};
