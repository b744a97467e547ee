//! Headers of records as lists of structs of key and value, as Spark has them.

use arrow_array::builder::NullBufferBuilder;
use arrow_array::{ArrayRef, BinaryArray, ListArray, StringArray, StructArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields};
use ottla_format::record::Headers;
use std::sync::Arc;

/// What keys of headers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKeys {
    /// Text. Bytes that are not UTF-8 become replacement characters, as in Kafka's consumer.
    Text,
    /// As they are in the log.
    Bytes,
}

/// The type of the column. Spark names the elements of lists so.
pub fn header_list(keys: HeaderKeys) -> DataType {
    DataType::List(Arc::new(element(keys)))
}

fn element(keys: HeaderKeys) -> Field {
    Field::new("element", DataType::Struct(fields(keys)), true)
}

fn fields(keys: HeaderKeys) -> Fields {
    let key = match keys {
        HeaderKeys::Text => DataType::Utf8,
        HeaderKeys::Bytes => DataType::Binary,
    };
    Fields::from(vec![Field::new("key", key, true), Field::new("value", DataType::Binary, true)])
}

/// Values one behind the other, and where each ends.
struct Ends {
    ends: Vec<i32>,
    data: Vec<u8>,
}

impl Ends {
    fn new() -> Self {
        Self { ends: vec![0], data: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), ArrowError> {
        self.data.extend_from_slice(bytes);
        let end = i32::try_from(self.data.len());
        self.ends.push(end.map_err(|_| ArrowError::OffsetOverflowError(self.data.len()))?);
        Ok(())
    }

    fn finish(self) -> (OffsetBuffer<i32>, Buffer) {
        (OffsetBuffer::new(ScalarBuffer::from(self.ends)), Buffer::from_vec(self.data))
    }
}

/// Returns the column.
pub fn header_structs<'a>(
    headers: Option<impl Iterator<Item = Headers<'a>>>,
    rows: usize,
    null_if_none: bool,
    kind: HeaderKeys,
) -> Result<ArrayRef, ArrowError> {
    let (mut keys, mut values) = (Ends::new(), Ends::new());
    let mut has_value = NullBufferBuilder::new(0);
    let mut lists = Vec::with_capacity(rows.saturating_add(1));
    lists.push(0);
    let mut has_headers = NullBufferBuilder::new(rows);
    let mut count: usize = 0;
    let is_none = headers.is_none();
    for row in headers.into_iter().flatten() {
        for (key, value) in row.iter() {
            match std::str::from_utf8(key) {
                Err(_) if kind == HeaderKeys::Text => {
                    keys.push(String::from_utf8_lossy(key).as_bytes())?;
                }
                _ => keys.push(key)?,
            }
            values.push(value.unwrap_or_default())?;
            has_value.append(value.is_some());
            count = count.saturating_add(1);
        }
        has_headers.append(!(null_if_none && row.is_empty()));
        lists.push(i32::try_from(count).map_err(|_| ArrowError::OffsetOverflowError(count))?);
    }
    let mut nulls: Option<NullBuffer> = has_headers.finish();
    if is_none {
        lists.resize(rows.saturating_add(1), 0);
        nulls = null_if_none.then(|| NullBuffer::new_null(rows));
    }
    let (ends, data) = keys.finish();
    let keys: ArrayRef = match kind {
        HeaderKeys::Text => Arc::new(StringArray::try_new(ends, data, None)?),
        HeaderKeys::Bytes => Arc::new(BinaryArray::try_new(ends, data, None)?),
    };
    let (ends, data) = values.finish();
    let values = BinaryArray::try_new(ends, data, has_value.finish())?;
    let structs = StructArray::try_new(fields(kind), vec![keys, Arc::new(values)], None)?;
    let lists = OffsetBuffer::new(ScalarBuffer::from(lists));
    Ok(Arc::new(ListArray::try_new(Arc::new(element(kind)), lists, Arc::new(structs), nulls)?))
}
