//! The leader: what a broker does with the record set of one partition of a Produce request.
//!
//! [`validate`] decides over bytes alone, for a partition that knows no producer; [`Leader`]
//! decides over time, with [`ottla_log::producers`]. Nothing here reads a clock.
//!
//! | module | subject |
//! | --- | --- |
//! | `config`, `request`, `profiles` | what a verdict depends on beside the bytes |
//! | `reason`, `refusal`, `stored`, `verdict`, `metrics` | what a verdict says |
//! | `validator` | the stages, in their order |
//! | `proof` | the quick way past them |
//! | `gate` | what the request as such must keep |
//! | `framing`, `analysis` | framing, size and checksum of every batch |
//! | `record_set`, `batch_set`, `legacy_set` | the ways of a set: as it is, or written anew |
//! | `batch_rules`, `record_rules`, `record_walk` | what a batch must keep, and each record |
//! | `validation`, `summary` | what is found on the way, what the records come to |
//! | `rewrite`, `convert` | the bytes to store: a new header, or a new batch |
//! | `validate`, `split` | the verdict for a partition that knows no producer, on a set or its parts |
//! | `state`, `leader` | a partition over time |

// A refusal is large and rare: in a box, the accepted way stays small.
#![allow(clippy::unnecessary_box_returns)]
// What nearly every set goes through is one function, in which no answer is copied from step to step.
#![allow(clippy::inline_always)]
#![forbid(unsafe_code)]
#![warn(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects
)]

mod analysis;
mod batch_rules;
mod batch_set;
mod config;
mod convert;
mod framing;
mod gate;
mod leader;
mod legacy_set;
mod metrics;
mod profiles;
mod proof;
mod reason;
mod record_rules;
mod record_set;
mod record_walk;
mod refusal;
mod request;
mod rewrite;
mod split;
mod state;
mod stored;
mod summary;
mod validate;
mod validation;
mod validator;
mod verdict;

pub use config::{CompressionType, ConfigError, TopicConfig};
pub use gate::check_request;
pub use leader::{AppendRequest, EndTransaction, Leader, LeaderSettings, Rest, UnknownProducer};
pub use metrics::Metrics;
pub use profiles::{Difference, Profile};
pub use reason::Reason;
pub use refusal::{LEADER_ERRORS, RecordError, Refusal};
pub use request::Request;
pub use split::{PartRefusal, PartVerdict, SetPart, only_batch, validate_each};
pub use state::bytes::{STATE_VERSION, StateBytesError};
pub use state::restore::{
    LoadedLog, LogOffsets, Replay, ReplaySource, RestoreError, StoredLog, Truncation,
};
pub use state::{AppendOutcome, OffsetOutOfRange, PartitionState};
pub use stored::{Patch, Stored};
pub use validate::{validate, validate_stored};
pub use validator::Validator;
pub use verdict::{Accepted, Verdict, count_offsets};
