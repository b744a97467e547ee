//! What a consumer would get of a partition: batch by batch, from an offset on, over damage.
//!
//! A consumer of a broker stops at the first byte it cannot read. Here reading goes on at the next
//! valid batch, and what was passed over is reported. Whether a batch is in its place is judged as
//! the audit judges it.
//!
//! With `read_committed` the end markers in the log decide, not the `.txnindex` beside it: the index
//! is derived from the markers, and may be missing or older. A batch whose base offset is wrong counts
//! where it is, although its records are passed over: the checksum covers its producer. Nothing is
//! known of a transaction whose first data the log no longer holds. The pass for markers begins with
//! the first transactional batch; a log without one is read once.
//!
//! | module | subject |
//! | --- | --- |
//! | `reader` | the segments of a partition, one after the other |
//! | `partition_walk` | their batches, each judged with the one behind it in sight |
//! | `visit` | the same, record by record |
//! | `options` | what to read |
//! | `readable_batch` | a batch of which a consumer gets records |
//! | `skipped` | what was passed over |
//! | `decisions` | what the markers decide about transactions |
//! | `whole_batch` | the bytes of one batch, and what its records show |

mod decisions;
mod options;
mod partition_walk;
mod readable_batch;
mod reader;
mod skipped;
mod visit;
mod whole_batch;

pub use options::{Isolation, ReadOptions};
pub use readable_batch::{ReadableBatch, RecordPlace};
pub use reader::{PartitionReader, ReadStep};
pub use skipped::Damage;
pub(crate) use skipped::SkippedBytes;
