//! Payloads as Kafka's Java streams read and write them, where that makes a difference
//! (`docs/kafka/record-batch.md` §7.1).
//!
//! The codecs beside this module inflate a payload at once. Where one of them cannot tell what Kafka
//! makes of a payload, the payload is read here, request by request: how far a broker gets before
//! damage, and whether a stream that pauses is taken for one that has ended, depends on the steps in
//! which the bytes are asked for.
//!
//! | module | subject |
//! | --- | --- |
//! | `codec_stream` | what the stream of a codec can do |
//! | `gzip`, `snappy`, `lz4`, `zstd` | the stream of a codec |
//! | `buffered` | Kafka's buffer in front of it |
//! | `reader` | the requests that are made for records and entries |
//! | `written` | payloads byte for byte as Kafka's encoders write them |

mod buffered;
mod codec_stream;
mod gzip;
mod lz4;
mod reader;
mod snappy;
mod written;
mod zstd;

pub(super) use reader::{StreamedPayload, is_opened, read};
pub(super) use written::{gzip_written, zstd_written};
