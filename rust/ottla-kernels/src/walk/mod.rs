//! The record walk: checks the structure of every record of one uncompressed batch or decompressed
//! payload, and passes its positions to a [`Sink`].
//!
//! ```text
//! │length│attributes│ts. delta │offset delta│key length│key│value length│value│header count│headers …
//!  varint  1 byte    varlong    varint       varint           varint            varint
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | `rules` | one record by the rules, slow and plain; [`naive`] uses nothing else and is the oracle |
//! | `fast` | the loop of every level: usual records by `usual`, the others by `rules` |
//! | `usual` | one usual record, by wide loads |
//! | `offset` | the offset delta that the next record must have |
//! | `groups` | the bits of a varint, by shifts or by `pext` |
//! | `fused` | the walk and the CRC in one loop |

pub(crate) mod fast;
#[cfg(target_arch = "x86_64")]
pub(crate) mod fused;
pub(crate) mod groups;
mod offset;
mod record;
mod rules;
mod shape;
mod usual;

pub use record::{Record, Sink};
pub use rules::naive;
pub(crate) use shape::Shape;
