//! What can be wrong with bytes: a kind with its values, and the position where it shows.
//!
//! A kind carries no free text. Its name is stable, and its family says how Kafka's own code answers
//! (`docs/kafka/record-batch.md` §10.5).

mod family;
mod fault;
mod kind;

pub use family::{Family, Field};
pub use fault::{Error, Result};
pub use kind::ErrorKind;
