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
//! There is one way to inflate, [`Codecs::decompress`], for those who read, check and decide. Nearly
//! every payload is inflated at once, by the fastest library for its codec. A few are left to the
//! streams that do as Kafka's own do (`streams`): lz4 and snappy can pause within a payload, and zstd
//! skips blocks that the format does not have.
//!
//! Payloads are inflated into one arena that is reused, because fresh pages cost more than most
//! decoders. No codec may write beyond [`Limits::decompressed`](crate::limits::Limits::decompressed), and the size that a payload declares
//! is trusted only as far as its codec could make it true.

mod arena;
mod codecs;
mod gzip;
mod levels;
mod lz4;
mod reading;
mod snappy;
mod streams;
mod zstd;

pub use codecs::Codecs;
pub use levels::levels;
pub use reading::Reading;
