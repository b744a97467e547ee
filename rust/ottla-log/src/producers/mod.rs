//! What a partition knows of its producers, and what it lets them append
//! (`docs/kafka/producer-state.md` §1–§4).
//!
//! Kafka's rules of idempotence and transactions: epochs fence, sequences follow, the last five
//! batches of an epoch are known when they are sent again, markers end transactions, and the first
//! batch of a transaction needs the coordinator's consent (KIP-98, KIP-360, KIP-890). Time, offsets
//! and bytes come from outside: `ottla-leader` decides with them over what clients send, and
//! [`recovery`](crate::recovery) reads a log again as a broker does at its start.
//!
//! ```text
//! batch ─▸ judge ─▸ pending ─▸ (the log is written) ─▸ table ─▸ snapshot
//!            │ stored entry, verification, appender     │ entries, transactions
//!            └─▸ refusal
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | `batch` | a batch with a producer id, and the record of a marker |
//! | `appender` | on whose behalf batches are judged |
//! | `judge` | the checks |
//! | `refusal` | why a producer may not append |
//! | `pending` | what a set of batches will do |
//! | `entry` | what is known of one producer |
//! | `table` | all producers of a partition |
//! | `id_hash` | the hash of their ids |
//! | `verification` | transactions about which the coordinator is asked |
//! | [`transactions`] | what transactions do to the last stable offset |
//! | [`snapshot`] | producers as a file |
//! | `state_bytes` | all of it as bytes |
//! | `java_table` | the order of a snapshot's entries |

mod appender;
mod batch;
mod entry;
mod id_hash;
mod java_table;
mod judge;
mod pending;
mod refusal;
pub mod snapshot;
mod state_bytes;
mod table;
pub mod transactions;
mod verification;

pub use appender::{Appender, Origin, UnknownSequence};
pub use batch::{Content, ProducerBatch, control_record};
pub use entry::{ProducerEntry, RememberedBatch};
pub use pending::Pending;
pub use refusal::ProducerRefusal;
pub use state_bytes::{StateError, StateReader, write_count};
pub use table::Producers;
pub use verification::Guard;
