//! `.index` and `.timeindex` checked against the batches of their segment, in a form that joins.
//!
//! Entries are checked in the pass over the log. One of the offset index is judged where its batch
//! is, with the entry before it at hand, so it needs nothing from elsewhere. One of the time index
//! needs the greatest timestamp up to its offset, and waits for the parts on the left:
//!
//! ```text
//! .index      entry (o, p):  a batch begins at p; its base offset is at most o, and above the o of
//!                            the entry before
//! .timeindex  entry (t, o):  t is the greatest timestamp of the batches that begin at or below o
//! ```
//!
//! That is what a lookup relies on, and no more. Brokers before 0.11 note the first offset of what
//! they append, later ones the last; a follower appends several batches at once; magic 0 has no
//! timestamps, but its index has those of the clock. What damage took may have held anything.
//!
//! | module | subject |
//! | --- | --- |
//! | `indexes` | what the two files hold |
//! | `reading` | reading them |
//! | `faults` | what can be wrong with an entry |
//! | `offset_entries` | entries of `.index` against batches |
//! | `time_entries` | entries of `.timeindex` against timestamps |
//! | `check` | both, for a part of a segment |
//! | `index_findings` | what is found, in words |

mod check;
mod faults;
mod index_findings;
mod indexes;
mod offset_entries;
mod reading;
mod time_entries;

pub use check::{IndexCheck, IndexedBatch};
pub use indexes::{Indexes, MAX_INDEX_BYTES};
pub use reading::read_index;
