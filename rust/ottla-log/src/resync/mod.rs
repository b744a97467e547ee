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

use crate::source::{Source, Window};
use budget::Spending;
use header::HeaderBounds;
use search::Search;
use std::io;

/// Where the first whole batch of magic 2 begins that is at a position or behind it, and whose offsets
/// are not below `lowest`.
///
/// # Errors
/// What keeps the source from being read.
pub fn first_batch(source: &dyn Source, from: u64, lowest: i64) -> io::Result<Option<u64>> {
    let mut progress = |_| true;
    let mut window = Window::new(source, Vec::new(), u64::MAX, &mut progress)?;
    let end = window.end();
    let bounds = HeaderBounds { lowest, highest: i64::MAX, batch_bytes: end, allows_legacy: false };
    let found = Search::after(Spending::default()).first(&mut window, from, end, &bounds);
    window.take_failure().map_or(Ok(found), Err)
}
