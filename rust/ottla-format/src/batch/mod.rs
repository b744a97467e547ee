//! One batch of any magic: its fields, its checksum, its payload and the records in it.
//!
//! | module | subject |
//! | --- | --- |
//! | `info` | the fields |
//! | `checksum` | the stored checksum against the bytes |
//! | `payload` | where the records are, and by which codec they are compressed |
//! | `records` | the records, one by one |

mod checksum;
mod info;
mod payload;
mod records;

pub use checksum::verify;
pub use info::BatchInfo;
pub use payload::{Payload, payload};
pub use records::{Record, RecordCursor};
