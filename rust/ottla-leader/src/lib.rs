//! The leader: what a broker does with the record set of one partition of a Produce request.
//!
//! [`validate`](mod@validate) decides over bytes alone, for a partition that knows no producer;
//! [`log::Leader`] decides over time, with [`ottla_log::producers`]. Nothing here reads a clock.
//!
//! | module | subject |
//! | --- | --- |
//! | [`config`] | what the topic's configuration says |
//! | `gate` | what the request as such must keep |
//! | `analysis` | framing, size and checksum of every batch |
//! | [`validate`](mod@validate) | the three ways through the validator, record by record |
//! | `rewrite`, `convert` | the bytes to store: a new header, or a new batch |
//! | [`verdict`] | decision, reasons, records to blame |
//! | [`profiles`] | where the strict profile differs from Kafka |
//! | [`metrics`] | what is counted |
//! | [`state`], [`log`] | a partition over time: [`log::Leader`] |

// A refusal is large and rare: in a box, the accepted way stays small.
#![allow(clippy::unnecessary_box_returns)]
#![forbid(unsafe_code)]

mod analysis;
pub mod config;
mod convert;
mod gate;
pub mod log;
pub mod metrics;
pub mod profiles;
mod records;
mod rewrite;
pub mod state;
pub mod validate;
pub mod verdict;

pub use config::{ConfigError, TopicConfig};
pub use metrics::Metrics;
pub use ottla_format::error_code::ErrorCode;
pub use profiles::{Difference, Profile};
pub use validate::{Origin, Request, Validator, validate};
pub use verdict::{Accepted, Patch, Reason, RecordError, Refusal, Stored, Verdict};
