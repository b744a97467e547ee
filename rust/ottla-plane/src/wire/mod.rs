//! Requests and answers of Produce and Fetch as bytes (KIP-482).
//!
//! A request is read without copying its records; names stay bytes, since the plane only compares
//! and repeats them. Bytes behind a request are ignored, as Kafka does.

pub(crate) mod fetch;
pub(crate) mod malformed;
pub(crate) mod produce;
mod reader;
mod writer;

pub use writer::Sink;

/// The id of a topic (KIP-516).
pub type TopicId = [u8; 16];

/// The topic of a request: by name, or by id in newer versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TopicKey<'a> {
    Name(&'a [u8]),
    Id(TopicId),
}
