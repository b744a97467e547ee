//! Copies of one partition compared, batch by batch: where they differ, why, and which are good.
//!
//! Fingerprints show which blocks of offsets are not the same on all copies; only the batches of
//! those are read again. What follows is Kafka's own rule for replicas: a follower's log is the
//! leader's, byte for byte, up to where it ends. So
//!
//! ```text
//! same offsets, other leader epochs    the logs diverged there; the log of the higher epoch goes on,
//!                                      and the other copy is truncated to it (KIP-101, KIP-279)
//! the same except for the epoch        sent again to the next leader, or the epoch is damaged: no CRC
//!                                      covers it
//! same offsets and epoch, other bytes  one of them changed after it was written: the majority is right
//! one copy lacks what another has      damage or loss, unless the log is compacted, or ends or begins
//!                                      there
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | [`copy`] | what the audit of one copy leaves behind for a comparison |
//! | [`compare`] | copies in, differences out |
//! | `blocks` | blocks of offsets that differ, read again |
//! | `batch` | a batch that was read again |
//! | `finder` | the differences between batches, in the order of their offsets |
//! | `edges` | the differences between where copies begin, end and have damage |
//! | [`difference`] | one difference, and what is said about it |

mod batch;
mod blocks;
pub mod compare;
pub mod copy;
pub mod difference;
mod edges;
mod finder;
