//! What can be read of a log.
//!
//! | module | subject |
//! | --- | --- |
//! | [`table`] | the batches and records of a segment as columns |
//! | `reading` | what a consumer would get of a partition |

pub(crate) mod reading;
pub mod table;
