//! Every kind of fault: its values, its stable name, its family, and how it is put into words.

use std::fmt;

use super::{Family, Field};
use crate::attributes::Compression;
use crate::error_code::ErrorCode;
use crate::words::{self, count};

/// A row a kind: variant and values; `name`, `family`; what should have been there and what is, for
/// a report's columns; the sentence. Format strings may use the values of the row.
macro_rules! error_kinds {
    ($(
        $(#[$doc:meta])*
        $kind:ident $({ $($value:ident: $type:ty),* })? = $name:literal, $family:ident {
            expected: $($expected:expr),+;
            found: $($found:expr),+;
            message: $($message:expr),+;
        }
    )+) => {
        /// Everything that can be wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // the fields say what they are
        pub enum ErrorKind {
            $($(#[$doc])* $kind $({ $($value: $type),* })?,)+
        }

        #[allow(unused_variables, reason = "a row need not use all of its values in every text")]
        impl ErrorKind {
            /// Stable kebab-case name.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$kind $({ $($value: _),* })? => $name,)+ }
            }

            /// How Kafka's own code treats the fault.
            pub fn family(&self) -> Family {
                match self { $(Self::$kind $({ $($value: _),* })? => Family::$family,)+ }
            }

            /// What should have been there and what is, for a report's columns.
            pub fn expected_and_found(&self) -> (String, String) {
                match *self {
                    $(Self::$kind $({ $($value),* })? => {
                        (format!($($expected),+), format!($($found),+))
                    })+
                }
            }

            fn message(&self) -> String {
                match *self { $(Self::$kind $({ $($value),* })? => format!($($message),+),)+ }
            }
        }
    };
}

error_kinds! {
    /// The buffer ends inside a batch.
    TruncatedBatch { needed: u64, left: u64 } = "truncated-batch", Truncated {
        expected: "{needed} bytes";
        found: "{left} bytes";
        message: "the buffer ends inside a batch: {} needed, {} left",
            count(needed, "byte"), count(left, "byte");
    }
    /// The size field is below what any batch needs.
    SizeTooSmall { declared: i32, minimum: i32 } = "size-too-small", Corrupt {
        expected: "at least {minimum}";
        found: "{declared}";
        message: "batch size {declared} out of range, expected at least {minimum}";
    }
    /// The size field is so large that adding the envelope overflows 32 bits, as in Kafka.
    SizeTooLarge { declared: i32 } = "size-too-large", Corrupt {
        expected: "below 2147483636";
        found: "{declared}";
        message: "batch size {declared} out of range, expected below 2147483636";
    }
    /// A magic byte that Kafka never wrote.
    UnknownMagic { magic: i8 } = "unknown-magic", Corrupt {
        expected: "0, 1 or 2";
        found: "{magic}";
        message: "magic {magic}, expected 0, 1 or 2";
    }
    /// The stored checksum is not that of the bytes.
    CrcMismatch { stored: u32, computed: u32 } = "crc-mismatch", Corrupt {
        expected: "{stored:08x}";
        found: "{computed:08x}";
        message: "stored CRC {stored:08x}, but the bytes have {computed:08x}";
    }
    /// The attributes name a codec that does not exist with this magic.
    UnknownCodec { codec: u8, magic: i8 } = "unknown-codec", Compression {
        expected: "0 to {}", max_codec(magic);
        found: "{codec}";
        message: "unknown codec {codec}, expected 0 to {} with magic {magic}", max_codec(magic);
    }
    /// A payload that its codec refuses.
    Undecodable { codec: u8 } = "undecodable", Compression {
        expected: "a payload its codec takes";
        found: "{} refuses it", codec_name(codec);
        message: "the payload is not what {} writes", codec_name(codec);
    }
    /// A payload that would inflate beyond a bound.
    DecompressedTooLarge { limit: u64 } = "decompressed-too-large", Limit {
        expected: "at most {limit} bytes";
        found: "more";
        message: "the payload inflates past the bound of {limit} bytes";
    }
    /// More records or headers than a bound allows.
    TooMany { what: &'static str, declared: u64, limit: u64 } = "too-many", Limit {
        expected: "at most {limit}";
        found: "{declared}";
        message: "{declared} {what}, expected at most {limit}";
    }
    /// A batch longer than a bound allows.
    BatchTooLarge { declared: u64, limit: u64 } = "batch-too-large", Limit {
        expected: "at most {limit}";
        found: "{declared}";
        message: "batch of {}, expected at most {limit}", count(declared, "byte");
    }
    /// A buffer longer than one call may refer to.
    BufferTooLarge { size: u64, limit: u64 } = "buffer-too-large", Limit {
        expected: "at most {limit} bytes";
        found: "{size}";
        message: "data of {size} bytes, expected at most {limit} bytes; read it in parts";
    }
    /// The record count is negative.
    RecordCountNegative { count: i32 } = "record-count-negative", Invalid {
        expected: "0 or more";
        found: "{count}";
        message: "record count {count} is negative";
    }
    /// Bytes are left after the last record counted.
    TrailingBytes { left: u64 } = "trailing-bytes", Invalid {
        expected: "0 bytes";
        found: "{left}";
        message: "{} left after the last record", count(left, "byte");
    }
    /// A record ends before this field does.
    FieldOverrun { index: u32, field: Field, declared: i64, left: u64 } = "field-overrun", Invalid {
        expected: "at most {left}";
        found: "{declared}";
        message: "{field} of {}, but {} left", count(declared, "byte"), are(left);
    }
    /// A varint that does not end within its five or ten bytes.
    VarintTooLong { index: u32, field: Field } = "varint-too-long", Invalid {
        expected: "an end within the varint's bytes";
        found: "none";
        message: "the varint of the {field} has no end";
    }
    /// A length or count that must not be negative.
    FieldNegative { index: u32, field: Field, declared: i64 } = "field-negative", Invalid {
        expected: "0 or more";
        found: "{declared}";
        message: "{field} {declared} is negative";
    }
    /// A record of a compressed batch or set that is longer than its topic allows.
    RecordTooLarge { index: u32, declared: i32, limit: i32 } = "record-too-large", Invalid {
        expected: "at most {limit}";
        found: "{declared}";
        message: "{} inflated, expected at most {limit} \
            (max.decompressed.message.bytes)", count(declared, "byte");
    }
    /// A record whose parts do not fill the length it declares.
    RecordLengthMismatch { index: u32, declared: i64, used: u64 } = "record-length-mismatch", Invalid {
        expected: "{declared}";
        found: "{used}";
        message: "length {declared}, but its fields take {}", count(used, "byte");
    }
    /// The records end before the count is reached.
    RecordsMissing { index: u32, count: u32 } = "records-missing", Invalid {
        expected: "{count}";
        found: "{index}";
        message: "the records end after {index} of {count}";
    }
    /// A record of magic 0 or 1 with a key or value length that leaves it.
    LegacyOverrun { field: Field, declared: i32, left: u64 } = "legacy-overrun", Corrupt {
        expected: "at most {left}";
        found: "{declared}";
        message: "{field} of {}, but {} left", count(declared, "byte"), are(left);
    }
    /// A record of magic 0 or 1 too short for its own fields.
    LegacyTooShort { size: u64, minimum: u64 } = "legacy-too-short", Corrupt {
        expected: "at least {minimum}";
        found: "{size}";
        message: "record of {}, at least {minimum} needed", count(size, "byte");
    }
    /// A compressed wrapper without a value.
    WrapperWithoutValue = "wrapper-without-value", Invalid {
        expected: "compressed records";
        found: "null";
        message: "compressed wrapper without a value";
    }
    /// A compressed wrapper without a record inside.
    WrapperEmpty = "wrapper-empty", Invalid {
        expected: "at least one record";
        found: "none";
        message: "compressed wrapper without a record";
    }
    /// A wrapper whose offset lies below its last inner offset.
    WrapperOffsetTooSmall { offset: i64, last_inner: i64 } = "wrapper-offset-too-small", Invalid {
        expected: "at least {last_inner}";
        found: "{offset}";
        message: "wrapper offset {offset}, expected at least {last_inner}, its last inner offset";
    }
    /// A compressed record inside a compressed wrapper.
    WrapperNested { index: u32 } = "wrapper-nested", Invalid {
        expected: "a plain record";
        found: "a compressed one";
        message: "compressed inside a compressed wrapper";
    }
    /// An inner record whose magic is not its wrapper's.
    InnerMagicMismatch { index: u32, magic: i8, wrapper: i8 } = "inner-magic-mismatch", Invalid {
        expected: "{wrapper}";
        found: "{magic}";
        message: "magic {magic} inside a wrapper of magic {wrapper}";
    }
    /// An inner record with a wrong checksum.
    InnerCrcMismatch { index: u32, stored: u32, computed: u32 } = "inner-crc-mismatch", Corrupt {
        expected: "{stored:08x}";
        found: "{computed:08x}";
        message: "stored CRC {stored:08x}, but the bytes have {computed:08x}";
    }
    /// An offset delta that is not the one its place requires.
    OffsetDeltaMismatch { index: u32, delta: i32, expected: i32 } = "offset-delta-mismatch", Invalid {
        expected: "{expected}";
        found: "{delta}";
        message: "offset delta {delta}, expected {expected}";
    }
    /// An offset delta that does not increase, or is beyond the header's last.
    OffsetDeltaOutOfOrder { index: u32, delta: i32, previous: i32, last: i32 }
    = "offset-delta-out-of-order", Invalid {
        expected: "{} to {last}", one_more(previous);
        found: "{delta}";
        message: "offset delta {delta}, expected {} to {last}", one_more(previous);
    }
    /// A record later than the header's maximum timestamp.
    TimestampAboveMaximum { index: u32, timestamp: i64, maximum: i64 }
    = "timestamp-above-maximum", Invalid {
        expected: "at most {maximum}";
        found: "{timestamp}";
        message: "timestamp {timestamp}, but the header's maximum allows at most {maximum}";
    }
    /// The header counts more records than its last offset delta allows.
    CountAboveOffsets { count: i32, last_offset_delta: i32 } = "count-above-offsets", Invalid {
        expected: "at most {}", one_more(last_offset_delta);
        found: "{count}";
        message: "{}, but the last offset delta allows at most {}", words::count(count, "record"),
            one_more(last_offset_delta);
    }
    /// The last offset delta is negative.
    LastOffsetDeltaNegative { last_offset_delta: i32 } = "last-offset-delta-negative", Invalid {
        expected: "0 or more";
        found: "{last_offset_delta}";
        message: "last offset delta {last_offset_delta} is negative";
    }
    /// The base offset is negative, or the last offset exceeds 64 bits.
    OffsetOutOfRange { base_offset: i64, last_offset_delta: i32 } = "offset-out-of-range", Invalid {
        expected: "0 to 2^63-1";
        found: "{base_offset} + {last_offset_delta}";
        message: "offsets {base_offset} + {last_offset_delta}, expected 0 to 2^63-1";
    }
    /// A producer id without epoch or sequence.
    ProducerFields { producer_id: i64, producer_epoch: i16, base_sequence: i32 }
    = "producer-fields", Invalid {
        expected: "all of producer id, epoch and sequence, or none";
        found: "{producer_id}, {producer_epoch}, {base_sequence}";
        message: "producer id, epoch and sequence are {producer_id}, {producer_epoch}, \
            {base_sequence}; expected all of producer id, epoch and sequence, or none";
    }
    /// A transactional batch without a producer id.
    TransactionalWithoutProducer { producer_id: i64 } = "transactional-without-producer", Invalid {
        expected: "0 or more";
        found: "{producer_id}";
        message: "transactional batch with producer id {producer_id}";
    }
    /// A control record whose key is too short or has a negative version.
    ControlKey { index: u32, size: i64 } = "control-key", Invalid {
        expected: "4 bytes, version 0 or more";
        found: "{size} bytes";
        message: "control key of {}, expected 4 bytes, version 0 or more", count(size, "byte");
    }
    /// An end-transaction marker whose value is too short or has a negative version.
    ControlValue { index: u32, size: i64 } = "control-value", Invalid {
        expected: "6 bytes";
        found: "{size} bytes";
        message: "end-transaction marker with a value of {}, expected 6 bytes",
            count(size, "byte");
    }
    /// A control batch of a producer that holds more than one marker.
    ControlBatch { count: i32 } = "control-batch", Invalid {
        expected: "1 marker";
        found: "{count} records";
        message: "control batch of {}, expected 1 marker", words::count(count, "record");
    }
}

/// The highest number of a codec that exists with this magic.
fn max_codec(magic: i8) -> u8 {
    if magic < 2 { 3 } else { 4 }
}

/// The name of a codec, or its number if there is none of it.
fn codec_name(codec: u8) -> String {
    Compression::from_id(codec)
        .map_or_else(|| format!("codec {codec}"), |codec| codec.name().to_owned())
}

/// A number and its verb.
fn are(number: u64) -> String {
    format!("{number} {}", if number == 1 { "is" } else { "are" })
}

fn one_more(value: i32) -> i64 {
    i64::from(value).saturating_add(1)
}

impl ErrorKind {
    /// The error code that Kafka answers with: 2 `CORRUPT_MESSAGE`, 87 `INVALID_RECORD`,
    /// 10 `MESSAGE_TOO_LARGE`, −1 where Kafka leaks an internal error.
    pub fn error_code(&self) -> i16 {
        let code = match (self, self.family()) {
            (Self::BatchTooLarge { .. }, _) => ErrorCode::MessageTooLarge,
            // zstd is a codec, though not one of magic 0 and 1: Kafka has a check for it.
            (Self::UnknownCodec { codec: 4, .. }, _) => ErrorCode::InvalidRecord,
            (_, Family::Corrupt | Family::Truncated) => ErrorCode::CorruptMessage,
            (_, Family::Compression) => ErrorCode::UnknownServerError,
            _ => ErrorCode::InvalidRecord,
        };
        code.code()
    }

    /// The index of the record at fault, where there is one.
    pub fn record_index(&self) -> Option<u32> {
        match *self {
            Self::FieldOverrun { index, .. }
            | Self::VarintTooLong { index, .. }
            | Self::FieldNegative { index, .. }
            | Self::RecordTooLarge { index, .. }
            | Self::RecordLengthMismatch { index, .. }
            | Self::RecordsMissing { index, .. }
            | Self::WrapperNested { index }
            | Self::InnerMagicMismatch { index, .. }
            | Self::InnerCrcMismatch { index, .. }
            | Self::OffsetDeltaMismatch { index, .. }
            | Self::OffsetDeltaOutOfOrder { index, .. }
            | Self::TimestampAboveMaximum { index, .. }
            | Self::ControlKey { index, .. }
            | Self::ControlValue { index, .. } => Some(index),
            _ => None,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(index) = self.record_index() {
            write!(f, "record {index}: ")?;
        }
        f.write_str(&self.message())
    }
}
