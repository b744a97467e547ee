//! The columns of rows of segments: which there are, what is asked for, and their types.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use ottla_audit::rows::RecordParts;
use ottla_audit::rows::columns::{
    BATCH_COLUMNS, BatchValue, Column, KAFKA_COLUMNS, KafkaPart, PLACE_COLUMNS, PlacePart,
    RECORD_COLUMNS, RecordPart, TRAIT_COLUMNS, TraitPart,
};
use ottla_py_batches::header_structs::{HeaderKeys, header_list};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Bytes of the text of a record without headers.
pub(crate) const NO_HEADERS: &str = "[]";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Batches,
    Records,
    /// Records with what their batches say, for Spark: with headers as structs, or as text.
    Source {
        has_structs: bool,
    },
    /// Records as Spark's Kafka source has them.
    Kafka,
}

/// Where the values of a column come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ColumnSource {
    Place(PlacePart),
    Batch(BatchValue),
    Record(RecordPart),
    Trait(TraitPart),
    /// Headers as a list of structs; rows without any are null if it says so.
    HeaderStructs {
        null_if_none: bool,
    },
    /// Timestamps as Spark has them, in microseconds.
    SparkTimestamp,
    /// Kafka's number of the timestamp type.
    TimestampTypeId,
}

impl ColumnSource {
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::Batch(BatchValue::Int64(_))
            | Self::Record(
                RecordPart::BatchPosition | RecordPart::Offset | RecordPart::Timestamp,
            )
            | Self::Trait(TraitPart::ProducerId) => DataType::Int64,
            Self::Place(PlacePart::Partition)
            | Self::Batch(BatchValue::Int32(_))
            | Self::Record(RecordPart::Sequence)
            | Self::Trait(TraitPart::ProducerEpoch)
            | Self::TimestampTypeId => DataType::Int32,
            Self::Batch(BatchValue::Boolean(_)) | Self::Trait(TraitPart::IsTransactional) => {
                DataType::Boolean
            }
            Self::HeaderStructs { .. } => header_list(HeaderKeys::Text),
            Self::SparkTimestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Record(RecordPart::Key | RecordPart::Value) => DataType::Binary,
            Self::Place(PlacePart::File | PlacePart::Topic)
            | Self::Batch(BatchValue::Text(_))
            | Self::Trait(TraitPart::TimestampType)
            | Self::Record(RecordPart::Headers | RecordPart::Control) => DataType::Utf8,
        }
    }

    /// Bytes that a row takes of the column, without what keys, values and headers hold.
    pub(crate) fn row_bytes(self, prefix: &Prefix) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let fixed = match self.data_type() {
            DataType::Int64 | DataType::Timestamp(..) => 8,
            DataType::Boolean => 1,
            _ => 4,
        };
        let content = match self {
            Self::Place(PlacePart::File) => text(&prefix.0),
            Self::Place(PlacePart::Topic) => text(&prefix.1),
            Self::Batch(BatchValue::Text(_)) | Self::Trait(TraitPart::TimestampType) => {
                MAX_NAME_BYTES
            }
            Self::Record(RecordPart::Headers) => NO_HEADERS.len(),
            _ => 0,
        };
        content.saturating_add(fixed)
    }
}

/// Bytes of the longest name of a codec or timestamp type, about.
const MAX_NAME_BYTES: usize = 12;

/// Values of ``file``, ``topic`` and ``partition``.
pub(crate) type Prefix = (Option<String>, Option<String>, Option<i32>);

impl Table {
    pub(crate) fn from_name(name: &str) -> PyResult<Self> {
        match name {
            "batches" => Ok(Self::Batches),
            "records" => Ok(Self::Records),
            "source" => Ok(Self::Source { has_structs: true }),
            "source_json" => Ok(Self::Source { has_structs: false }),
            "kafka" => Ok(Self::Kafka),
            _ => {
                let names = "'batches', 'records', 'source', 'source_json' or 'kafka'";
                Err(PyValueError::new_err(format!("table is {names}, not '{name}'")))
            }
        }
    }

    fn columns(self) -> Vec<(&'static str, ColumnSource)> {
        let place = PLACE_COLUMNS.iter().map(|c| (c.name, ColumnSource::Place(c.value)));
        match self {
            Self::Batches => {
                let rest = BATCH_COLUMNS.iter().map(|c| (c.name, ColumnSource::Batch(c.value)));
                place.chain(rest).collect()
            }
            Self::Records => {
                let rest = RECORD_COLUMNS.iter().map(|c| (c.name, ColumnSource::Record(c.value)));
                place.chain(rest).collect()
            }
            Self::Source { has_structs } => {
                let record = |c: &Column<RecordPart>| {
                    let source = match c.value {
                        RecordPart::Headers if has_structs => {
                            ColumnSource::HeaderStructs { null_if_none: false }
                        }
                        part => ColumnSource::Record(part),
                    };
                    (c.name, source)
                };
                let traits = TRAIT_COLUMNS.iter().map(|c| (c.name, ColumnSource::Trait(c.value)));
                place.chain(RECORD_COLUMNS.iter().map(record)).chain(traits).collect()
            }
            Self::Kafka => KAFKA_COLUMNS.iter().map(|c| (c.name, of_kafka(c.value))).collect(),
        }
    }

    /// Returns the columns asked for, in the order asked for; all where nothing is asked for.
    pub(crate) fn select(self, wanted: Option<&[String]>) -> PyResult<Selection> {
        Selection::among(self.columns(), wanted)
    }
}

/// Where Spark's Kafka source has a column from.
fn of_kafka(part: KafkaPart) -> ColumnSource {
    match part {
        KafkaPart::Key => ColumnSource::Record(RecordPart::Key),
        KafkaPart::Value => ColumnSource::Record(RecordPart::Value),
        KafkaPart::Topic => ColumnSource::Place(PlacePart::Topic),
        KafkaPart::Partition => ColumnSource::Place(PlacePart::Partition),
        KafkaPart::Offset => ColumnSource::Record(RecordPart::Offset),
        KafkaPart::Timestamp => ColumnSource::SparkTimestamp,
        KafkaPart::TimestampType => ColumnSource::TimestampTypeId,
        KafkaPart::Headers => ColumnSource::HeaderStructs { null_if_none: true },
    }
}

/// The columns of a table that are asked for.
pub(crate) struct Selection {
    pub(crate) schema: SchemaRef,
    pub(crate) sources: Vec<ColumnSource>,
}

impl Selection {
    fn new(columns: Vec<(&'static str, ColumnSource)>) -> Self {
        let field =
            |(name, source): &(&str, ColumnSource)| Field::new(*name, source.data_type(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        Self { schema, sources: columns.into_iter().map(|(_, source)| source).collect() }
    }

    /// Those asked for among some columns, in the order asked for.
    fn among(all: Vec<(&'static str, ColumnSource)>, wanted: Option<&[String]>) -> PyResult<Self> {
        let Some(wanted) = wanted else { return Ok(Self::new(all)) };
        let chosen = wanted.iter().enumerate().map(|(index, name)| {
            if wanted.iter().take(index).any(|other| other == name) {
                return Err(PyValueError::new_err(format!("column '{name}' is asked for twice")));
            }
            all.iter().find(|(known, _)| known == name).copied().ok_or_else(|| {
                let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
                let names = names.join(", ");
                PyValueError::new_err(format!("there is no column '{name}', only {names}"))
            })
        });
        Ok(Self::new(chosen.collect::<PyResult<_>>()?))
    }

    /// The columns of records that depend on no file, those asked for.
    pub(crate) fn of_records(wanted: Option<&[String]>) -> PyResult<Self> {
        let columns = RECORD_COLUMNS.iter().map(|c| (c.name, ColumnSource::Record(c.value)));
        Self::among(columns.collect(), wanted)
    }

    /// Which parts of records are asked for.
    pub(crate) fn parts(&self) -> RecordParts {
        let has = |part: RecordPart| {
            self.sources.iter().any(|s| matches!(s, ColumnSource::Record(has) if *has == part))
        };
        let has_structs =
            self.sources.iter().any(|s| matches!(s, ColumnSource::HeaderStructs { .. }));
        RecordParts {
            keys: has(RecordPart::Key),
            values: has(RecordPart::Value),
            headers: has(RecordPart::Headers) || has_structs,
        }
    }

    pub(crate) fn batch_of(
        &self,
        rows: usize,
        column: impl FnMut(ColumnSource) -> Result<ArrayRef, ArrowError>,
    ) -> Result<RecordBatch, ArrowError> {
        let columns = self.sources.iter().copied().map(column).collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}
