//! What a consumer gets of one partition of a Fetch answer (KIP-98).
//!
//! Whole batches are read, and a last one that the answer cuts off is left for the next fetch. What
//! is not given to a user is left out: records before the position, control batches, and, with
//! `read_committed`, transactions that were aborted. The position goes on all the same.
//!
//! | module | subject |
//! | --- | --- |
//! | `aborted` | which batches belong to an aborted transaction |
//! | `reading` | batches of any magic, by the kernels where they can |
//! | `rows` | the rows, with the fields of their batches |
//! | `joined` | those of several partitions as columns |

mod aborted;
mod joined;
mod reading;
mod rows;

pub use aborted::AbortedFilter;
pub use joined::{JoinedColumns, JoinedParts};
pub use reading::{Fetched, Stop, read};
pub use rows::FetchedRow;
