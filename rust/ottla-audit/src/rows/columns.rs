//! The columns of the tables `batches` and `records`: the only place that names them.
//!
//! Arrow arrays, rows of Python objects, `docs/tables.md` and Spark's schemas are all made from these
//! rows. To add a column, add a row; a column of records also needs a [`RecordPart`], which the
//! compiler then asks for wherever columns are made.

use super::batches::BatchRow;
use ottla_format::attributes::Compression;

/// Name and meaning of a column, and where its values come from.
#[derive(Clone, Copy, Debug)]
pub struct Column<V> {
    /// In snake case; never changed.
    pub name: &'static str,
    /// One line for the documentation.
    pub doc: &'static str,
    /// The values.
    pub value: V,
}

const fn column<V>(name: &'static str, value: V, doc: &'static str) -> Column<V> {
    Column { name, doc, value }
}

/// What the place of a row is named by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // as their names say
pub enum PlacePart {
    File,
    Topic,
    Partition,
}

/// The value of a column in the row of a batch.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // as their names say
pub enum BatchValue {
    Int64(fn(&BatchRow) -> Option<i64>),
    Int32(fn(&BatchRow) -> Option<i32>),
    Boolean(fn(&BatchRow) -> bool),
    Text(fn(&BatchRow) -> &'static str),
}

/// The column of [`RecordRows`](super::records::RecordRows) that a column of records is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // as their names say
pub enum RecordPart {
    BatchPosition,
    Offset,
    Timestamp,
    Key,
    Value,
    Headers,
    Sequence,
    Control,
}

/// What a column of records says of the record's batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // as their names say
pub enum TraitPart {
    TimestampType,
    ProducerId,
    ProducerEpoch,
    IsTransactional,
}

/// The column of Spark's Kafka source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // as their names say
pub enum KafkaPart {
    Key,
    Value,
    Topic,
    Partition,
    Offset,
    Timestamp,
    TimestampType,
    Headers,
}

/// Columns that name the place, at the start of both tables.
pub static PLACE_COLUMNS: [Column<PlacePart>; 3] = [
    column("file", PlacePart::File, "path relative to the audited directory"),
    column("topic", PlacePart::Topic, "topic, by the name of the directory"),
    column("partition", PlacePart::Partition, "partition, by the name of the directory"),
];

/// Columns of batches.
pub static BATCH_COLUMNS: [Column<BatchValue>; 20] = {
    use BatchValue::{Boolean, Int32, Int64, Text};
    [
        column(
            "position",
            Int64(|row| Some(row.info.position as i64)),
            "bytes from the start of the file",
        ),
        column(
            "size",
            Int64(|row| Some(row.info.size as i64)),
            "bytes, the header's first 12 included",
        ),
        column(
            "magic",
            Int32(|row| Some(row.info.magic.into())),
            "0, 1 (a message or wrapper each) or 2",
        ),
        column(
            "base_offset",
            Int64(|row| Some(row.info.base_offset)),
            "offset of the first record",
        ),
        column("last_offset", Int64(|row| Some(row.info.last_offset)), "offset of the last record"),
        column(
            "record_count",
            Int32(|row| row.info.record_count),
            "the header's; null for magic 0 and 1",
        ),
        column(
            "compression",
            Text(|row| row.info.compression().map_or("unknown", Compression::name)),
            "none, gzip, snappy, lz4 or zstd",
        ),
        column(
            "timestamp_type",
            Text(|row| row.info.timestamp_type().name()),
            "create_time, log_append_time, or no_timestamp_type (magic 0)",
        ),
        column(
            "base_timestamp",
            Int64(|row| (row.info.magic >= 2).then_some(row.info.base_timestamp)),
            "ms since 1970; null below magic 2",
        ),
        column("max_timestamp", Int64(|row| Some(row.info.max_timestamp)), "ms since 1970"),
        column(
            "partition_leader_epoch",
            Int32(|row| Some(row.info.partition_leader_epoch)),
            "epoch of the leader that appended it",
        ),
        column("producer_id", Int64(|row| Some(row.info.producer_id)), "-1 for none"),
        column("producer_epoch", Int32(|row| Some(row.info.producer_epoch.into())), "-1 for none"),
        column("base_sequence", Int32(|row| Some(row.info.base_sequence)), "-1 for none"),
        column("last_sequence", Int32(|row| Some(row.info.last_sequence())), "-1 for none"),
        column(
            "is_transactional",
            Boolean(|row| row.info.is_transactional()),
            "part of a transaction",
        ),
        column(
            "is_control",
            Boolean(|row| row.info.is_control()),
            "holds control records, which consumers do not get",
        ),
        column(
            "delete_horizon_ms",
            Int64(|row| row.info.delete_horizon_ms()),
            "when tombstones may go (KIP-534)",
        ),
        column("crc", Int64(|row| Some(row.info.crc.into())), "the stored checksum, unsigned"),
        column(
            "is_valid",
            Boolean(|row| row.is_valid),
            "whether the checksum is that of the bytes",
        ),
    ]
};

/// Columns of records.
pub static RECORD_COLUMNS: [Column<RecordPart>; 8] = [
    column("batch_position", RecordPart::BatchPosition, "position of its batch in the file"),
    column("offset", RecordPart::Offset, "offset in the log"),
    column("timestamp", RecordPart::Timestamp, "ms since 1970, as a consumer sees it"),
    column("key", RecordPart::Key, "null for none"),
    column("value", RecordPart::Value, "null for a tombstone"),
    column("headers", RecordPart::Headers, "pairs of key and value"),
    column("sequence", RecordPart::Sequence, "the producer's number, -1 for none"),
    column("control", RecordPart::Control, "COMMIT, ABORT, … for control records"),
];

/// Columns of records that say what their batch says, behind those of [`RECORD_COLUMNS`].
pub static TRAIT_COLUMNS: [Column<TraitPart>; 4] = [
    column(
        "timestamp_type",
        TraitPart::TimestampType,
        "create_time, log_append_time, or no_timestamp_type (magic 0)",
    ),
    column("producer_id", TraitPart::ProducerId, "-1 for none"),
    column("producer_epoch", TraitPart::ProducerEpoch, "-1 for none"),
    column("is_transactional", TraitPart::IsTransactional, "part of a transaction"),
];

/// Columns of Spark's Kafka source, under its names.
pub static KAFKA_COLUMNS: [Column<KafkaPart>; 8] = [
    column("key", KafkaPart::Key, "null for none"),
    column("value", KafkaPart::Value, "null for a tombstone"),
    column("topic", KafkaPart::Topic, "topic, by the name of the directory"),
    column("partition", KafkaPart::Partition, "partition, by the name of the directory"),
    column("offset", KafkaPart::Offset, "offset in the log"),
    column("timestamp", KafkaPart::Timestamp, "as a consumer sees it"),
    column(
        "timestampType",
        KafkaPart::TimestampType,
        "0 for CreateTime, 1 for LogAppendTime, -1 for none (magic 0)",
    ),
    column("headers", KafkaPart::Headers, "null for none"),
];
