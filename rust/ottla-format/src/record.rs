//! One record of magic 2, as Kafka's consumer parses it.
//!
//! ```text
//! length │ attributes │ timestamp delta │ offset delta │ key length │ key │ value length │ value │ header count │ headers…
//! varint │ i8         │ varlong         │ varint       │ varint     │     │ varint       │       │ varint       │
//! ```
//!
//! A header is `key length │ key │ value length │ value`. The parser takes what Kafka's full parse
//! takes: any negative length of a key, value or header value means null, varints may be longer
//! than needed, record attributes may be anything, and the parts must fill `length` exactly.

use crate::error::{Error, ErrorKind, Field, Result};
use crate::limits::Limits;
use crate::varint::{VarintFault, read_varint, read_varlong, write_varint};

/// Bytes of the smallest record: its length, attributes, two deltas, two lengths, header count.
pub const MIN_RECORD_BYTES: usize = 7;

/// One parsed record; its parts borrow from the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct RawRecord<'a> {
    pub attributes: u8,
    pub timestamp_delta: i64,
    pub offset_delta: i32,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Headers<'a>,
}

/// The headers of a record, parsed again while iterating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    data: &'a [u8],
    count: u32,
}

impl<'a> Headers<'a> {
    /// Those of a record that was found right: `data` is what it holds behind its value.
    pub fn read(data: &'a [u8]) -> Self {
        let (count, used) = read_varint(data).unwrap_or_default();
        let data = data.get(used..).unwrap_or_default();
        Self { data, count: u32::try_from(count).unwrap_or(0) }
    }

    /// Appends them as they stand in a record: their count, then key and value of each.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_varint(out, i32::try_from(self.count).unwrap_or(i32::MAX));
        out.extend_from_slice(self.data);
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Key and value of each, in order. The key's bytes are UTF-8 where the producer kept the rule.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + 'a {
        let mut cursor = Cursor { data: self.data, at: 0, index: 0 };
        (0..self.count).map_while(move |_| {
            let key = cursor.bytes(Field::HeaderKey).ok()??;
            let value = cursor.bytes(Field::HeaderValue).ok()?;
            Some((key, value))
        })
    }
}

struct Cursor<'a> {
    data: &'a [u8],
    at: usize,
    index: u32,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    fn fault(&self, field: Field, fault: VarintFault) -> Error {
        let index = self.index;
        Error::new(
            match fault {
                VarintFault::End => ErrorKind::FieldOverrun { index, field, declared: 1, left: 0 },
                VarintFault::TooLong => ErrorKind::VarintTooLong { index, field },
            },
            self.at,
        )
    }

    fn int(&mut self, field: Field) -> Result<i32> {
        let (value, used) = read_varint(self.rest()).map_err(|fault| self.fault(field, fault))?;
        self.at += used;
        Ok(value)
    }

    fn long(&mut self, field: Field) -> Result<i64> {
        let (value, used) = read_varlong(self.rest()).map_err(|fault| self.fault(field, fault))?;
        self.at += used;
        Ok(value)
    }

    /// A length and as many bytes; any negative length is null.
    fn bytes(&mut self, field: Field) -> Result<Option<&'a [u8]>> {
        let start = self.at;
        let declared = self.int(field)?;
        let Ok(length) = usize::try_from(declared) else { return Ok(None) };
        let rest = self.rest();
        let Some(bytes) = rest.get(..length) else {
            let (declared, left) = (i64::from(declared), rest.len() as u64);
            return Err(Error::new(
                ErrorKind::FieldOverrun { index: self.index, field, declared, left },
                start,
            ));
        };
        self.at += length;
        Ok(Some(bytes))
    }
}

/// Parses the record at `at`; `index` is its place in the batch. Gives it and the position after.
///
/// # Errors
/// What Kafka's full parse refuses, and more headers than `limits` allow.
pub fn read_record<'a>(
    payload: &'a [u8],
    at: usize,
    index: u32,
    limits: &Limits,
) -> Result<(RawRecord<'a>, usize)> {
    let mut cursor = Cursor { data: payload, at, index };
    let length = cursor.int(Field::RecordLength)?;
    let body = cursor.at;
    let left = payload.len().saturating_sub(body);
    let Ok(size) = usize::try_from(length) else {
        let declared = i64::from(length);
        let field = Field::RecordLength;
        return Err(Error::new(ErrorKind::FieldNegative { index, field, declared }, at));
    };
    if size > left {
        let (field, declared, left) = (Field::RecordLength, i64::from(length), left as u64);
        return Err(Error::new(ErrorKind::FieldOverrun { index, field, declared, left }, at));
    }
    let end = body + size;
    cursor.data = payload.get(..end).unwrap_or_default();
    let Some(&attributes) = cursor.rest().first() else {
        return Err(cursor.fault(Field::Attributes, VarintFault::End));
    };
    cursor.at += 1;
    let timestamp_delta = cursor.long(Field::TimestampDelta)?;
    let offset_delta = cursor.int(Field::OffsetDelta)?;
    let key = cursor.bytes(Field::Key)?;
    let value = cursor.bytes(Field::Value)?;
    let headers_at = cursor.at;
    let declared = cursor.int(Field::HeaderCount)?;
    let Ok(count) = u32::try_from(declared) else {
        let (field, declared) = (Field::HeaderCount, i64::from(declared));
        return Err(Error::new(ErrorKind::FieldNegative { index, field, declared }, headers_at));
    };
    let headers_start = cursor.at;
    if count as usize > cursor.rest().len() {
        let (field, left) = (Field::HeaderCount, cursor.rest().len() as u64);
        let declared = i64::from(declared);
        return Err(Error::new(
            ErrorKind::FieldOverrun { index, field, declared, left },
            headers_at,
        ));
    }
    if count > limits.headers {
        let (declared, limit) = (u64::from(count), u64::from(limits.headers));
        return Err(Error::new(
            ErrorKind::TooMany { what: "headers", declared, limit },
            headers_at,
        ));
    }
    for _ in 0..count {
        let key_at = cursor.at;
        if cursor.bytes(Field::HeaderKey)?.is_none() {
            let field = Field::HeaderKey;
            return Err(Error::new(
                ErrorKind::FieldNegative { index, field, declared: -1 },
                key_at,
            ));
        }
        cursor.bytes(Field::HeaderValue)?;
    }
    if cursor.at != end {
        let (declared, used) = (i64::from(length), (cursor.at - body) as u64);
        return Err(Error::new(ErrorKind::RecordLengthMismatch { index, declared, used }, at));
    }
    let headers = Headers { data: payload.get(headers_start..end).unwrap_or_default(), count };
    Ok((RawRecord { attributes, timestamp_delta, offset_delta, key, value, headers }, end))
}
