//! The log of one partition: segments of stored batches, found by offset and by timestamp.
//!
//! Which batches are stored is decided before, by `ottla-leader`. A segment keeps bytes and the entries
//! of its indexes behind the trait [`Segment`](segment::Segment), in memory or in files; what finds
//! batches in them is here, and is the same for both.
//!
//! | module | subject |
//! | --- | --- |
//! | `segment` | what a place for the bytes and the indexes of a segment must do |
//! | `memory`, `file` | such a place in memory, and in files |
//! | `headers` | walking over the headers of batches |
//! | `indexed` | a segment, and the rule by which its sparse indexes are filled |
//! | `epochs` | where each leader epoch begins |
//! | `partition_log` | segments in a row: rolling, reading, retention, truncation |
//! | `compaction` | the newest record of each key |
//! | `by_time` | records by their timestamps |
//! | `directory`, `on_disk` | what a log in a directory keeps beside its segments |
//! | `load` | a log from a directory that is there |
//! | `flush` | syncing a log apart from it |
//! | `open_files` | the files that are open, of which there are only so many |

mod by_time;
pub(crate) mod compaction;
pub(crate) mod directory;
pub(crate) mod epochs;
#[cfg(test)]
pub(crate) mod failing;
mod file;
pub(crate) mod flush;
mod headers;
mod indexed;
pub(crate) mod load;
mod memory;
pub(crate) mod on_disk;
pub(crate) mod open_files;
pub(crate) mod partition_log;
pub(crate) mod segment;
