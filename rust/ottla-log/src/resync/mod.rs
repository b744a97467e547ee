//! Finding the next batch after damage.
//!
//! Kafka gives up where framing is lost. Here a place counts as a batch again when everything that
//! can be known of one agrees: every field of the header, an offset above the last valid one and
//! inside the segment, a size within bounds, a successor that looks like a batch too (or the end),
//! and the CRC. By chance that happens once in 2^70 places.
//!
//! What chance cannot do, a value that holds captured batches can: these are valid. So a batch that
//! continues the offsets exactly is preferred, within a stretch, to the first valid one; and a batch
//! whose only fault is its size field is found by its own CRC, which no value inside it can imitate.
//!
//! | module | subject |
//! | --- | --- |
//! | `header` | headers that obey every rule |
//! | `size_proof` | the end of a batch whose size field is wrong, by its CRC |
//! | `budget` | what a search may cost, in a form that joins |
//! | `search` | the batch behind damage, or the first of a range |
//! | `read_ahead` | headers read ahead of the window |

pub mod budget;
pub mod header;
mod read_ahead;
pub mod search;
mod size_proof;
