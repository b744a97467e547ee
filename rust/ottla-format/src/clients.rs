//! Where the consumers of different libraries do not make the same of a batch.
//!
//! A broker stores what its own reader accepts. The readers of other libraries refuse some of it, and
//! a consumer that meets it stops there or goes on without records. Each row names what is unusual
//! about a batch, the clients that it stops, and what becomes of them, as seen with the Java consumer
//! of 4.4.0, confluent-kafka 2.16.1 (librdkafka), aiokafka 0.14.0 and kafka-python 3.0.12
//! (docs/kafka/record-batch.md §14).

use std::fmt;

/// A library whose consumers are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// Apache Kafka's own.
    Java,
    /// librdkafka, and what is built on it.
    Librdkafka,
    /// aiokafka.
    Aiokafka,
    /// kafka-python.
    KafkaPython,
}

impl Client {
    /// Every client.
    pub const ALL: &[Self] = &[Self::Java, Self::Librdkafka, Self::Aiokafka, Self::KafkaPython];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Java => "Java",
            Self::Librdkafka => "librdkafka",
            Self::Aiokafka => "aiokafka",
            Self::KafkaPython => "kafka-python",
        }
    }
}

macro_rules! client_faults {
    ($($(#[$doc:meta])* $fault:ident, $name:literal, [$($client:ident),+], $what:literal, $effect:literal;)+) => {
        /// What makes the consumers of some clients stop or lose records.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ClientFault {
            $($(#[$doc])* $fault,)+
        }

        impl ClientFault {
            /// Every row.
            pub const ALL: &[Self] = &[$(Self::$fault),+];

            /// Stable kebab-case name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$fault => $name),+ }
            }

            /// The clients that stop or lose records.
            pub fn clients(self) -> &'static [Client] {
                match self { $(Self::$fault => &[$(Client::$client),+]),+ }
            }

            /// What is unusual.
            pub fn what(self) -> &'static str {
                match self { $(Self::$fault => $what),+ }
            }

            /// What becomes of these clients.
            pub fn effect(self) -> &'static str {
                match self { $(Self::$fault => $effect),+ }
            }
        }
    };
}

client_faults! {
    /// More gzip members than one.
    GzipMembers, "gzip-members", [Librdkafka],
        "more than one gzip member",
        "reads the first member alone: it loses the records behind it without an error, and ends its process if that member is empty";
    /// Bytes other than zeros behind the last gzip member.
    GzipTail, "gzip-tail", [Aiokafka, KafkaPython],
        "bytes behind the last gzip member",
        "take them for a member, and stop";
    /// Reserved flags in the header of a gzip member.
    GzipFlags, "gzip-flags", [Librdkafka],
        "reserved flags in a gzip header",
        "has zlib inflate it, which refuses them, and stops";
    /// A xerial header of another version than the one that is written.
    SnappyVersion, "snappy-version", [Aiokafka],
        "a xerial header of another version than 1",
        "takes the payload for one raw block, and stops";
    /// A second xerial header.
    SnappyStreams, "snappy-streams", [Librdkafka, Aiokafka],
        "more than one xerial stream",
        "take the second header for the length of a block, and stop";
    /// Bytes behind the last block of a xerial stream, fewer than the length of another takes.
    SnappyTail, "snappy-tail", [Librdkafka, Aiokafka, KafkaPython],
        "bytes behind the last block of a xerial stream",
        "take them for the length of a block, and stop";
    /// A content size that is not that of the content.
    Lz4Size, "lz4-size", [Librdkafka, Aiokafka, KafkaPython],
        "an lz4 content size that is not that of the content",
        "verify it, and stop";
    /// A content checksum that is not that of the content.
    Lz4Checksum, "lz4-checksum", [Librdkafka, Aiokafka, KafkaPython],
        "an lz4 content checksum that is not that of the content",
        "verify it, and stop";
    /// Bytes behind the end of an lz4 frame.
    Lz4Tail, "lz4-tail", [Librdkafka, Aiokafka],
        "bytes behind the end of the lz4 frame",
        "take them for another frame, and stop";
    /// A compressed block of no bytes.
    ZstdEmptyBlock, "zstd-empty-block", [Librdkafka],
        "a compressed zstd block of no bytes",
        "refuses it, and stops";
    /// The high bit of a record's attributes.
    RecordAttributes, "record-attributes", [Aiokafka, KafkaPython],
        "record attributes of 128 or above",
        "read the attributes as a varint, which then takes the bytes behind it, and stop";
    /// A key, value or header value whose length is negative, and not −1.
    NullLength, "null-length", [Librdkafka],
        "a length below -1 for null",
        "knows -1 alone: it skips the batch and all behind it without an error";
    /// A header key that is not UTF-8.
    HeaderKey, "header-key", [Librdkafka, Aiokafka, KafkaPython],
        "a header key that is not UTF-8",
        "cannot decode it: aiokafka and kafka-python stop, the Python binding of librdkafka fails when it is asked for the headers";
}

impl fmt::Display for ClientFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.what())?;
        for (index, client) in self.clients().iter().enumerate() {
            let before = match index {
                0 => "",
                _ if index.saturating_add(1) == self.clients().len() => " and ",
                _ => ", ",
            };
            write!(f, "{before}{}", client.name())?;
        }
        write!(f, " {}", self.effect())
    }
}
