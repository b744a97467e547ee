//! The four codecs: a payload that Kafka's readers accept is inflated, one that they refuse is refused,
//! both within a bound.
//!
//! Kafka's readers differ in what they forgive, and producers in many languages have come to rely
//! on it. Each module says what its codec forgives (`docs/kafka/record-batch.md` §7).
//!
//! | codec | bytes behind the end | a second stream | an empty payload |
//! | --- | --- | --- | --- |
//! | gzip | ignored | read | refused |
//! | snappy | up to three bytes ignored | read | refused |
//! | lz4 | ignored | ignored | refused |
//! | zstd | refused, except the beginning of a frame | read | read as empty |
//!
//! Payloads are inflated into one arena that is reused, because fresh pages cost more than most
//! decoders. No codec may write beyond [`Limits::decompressed`](crate::limits::Limits::decompressed), and the size that a payload declares
//! is trusted only as far as its codec could make it true.

mod arena;
mod codecs;
mod gzip;
mod levels;
mod lz4;
mod snappy;
mod streams;
mod zstd;

pub use codecs::Codecs;
pub use levels::levels;
