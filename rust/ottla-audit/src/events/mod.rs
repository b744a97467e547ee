//! Events: what happened to the logs, each with the findings that show it.
//!
//! Where a segment loses its end, an index, a snapshot and the checkpoints say so, too: one event with one
//! cause, one loss and one cure.

mod event;
mod loss;
mod message;
mod told;

pub use event::{Blocked, LogEvent};
pub use loss::{Losses, LostOffsets};
pub use told::{EventLog, Told, missing_segment};
