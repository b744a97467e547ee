//! The log of one partition: segments of stored batches, found by offset and by timestamp.
//!
//! Which batches are stored is decided before, by `ottla-leader`. A segment keeps bytes and nothing
//! else behind the trait [`Segment`](segment::Segment); what finds batches in them is here.
//!
//! | module | subject |
//! | --- | --- |
//! | `segment` | what a place for the bytes of a segment must do |
//! | `memory` | such a place in memory |
//! | `indexed` | a segment with its sparse index |
//! | `epochs` | where each leader epoch begins |
//! | `partition_log` | segments in a row: rolling, reading, searching, retention |

pub(crate) mod epochs;
mod indexed;
pub(crate) mod memory;
pub(crate) mod partition_log;
pub(crate) mod segment;
