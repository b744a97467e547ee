//! One record of magic 2, as Kafka's consumer parses it.
//!
//! ```text
//! length │ attributes │ timestamp delta │ offset delta │ key length │ key │ value length │ value │ header count │ headers…
//! varint │ i8         │ varlong         │ varint       │ varint     │     │ varint       │       │ varint       │
//! ```
//!
//! A header is `key length │ key │ value length │ value`. The parser accepts what Kafka's full parse
//! accepts: any negative length of a key, value or header value means null, varints may be longer
//! than needed, record attributes may be anything, and the parts must fill `length` exactly.

use crate::clients::ClientFault;
use crate::error::{Error, ErrorKind, Field, Result};
use crate::limits::Limits;
use crate::varint::{VarintFault, read_varint, read_varlong, write_varint};

pub use ottla_kernels::header::MIN_RECORD_BYTES;

/// Clients that read the attributes of a record as a varint take the bytes behind it from here on.
pub const FIRST_VARINT_OF_TWO_BYTES: u8 = 0x80;

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
    /// What stops some clients.
    pub client_fault: Option<ClientFault>,
}

/// The headers of a record, parsed again while iterating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers<'a> {
    data: &'a [u8],
    count: u32,
}

impl<'a> Headers<'a> {
    /// The headers of a record that a kernel has accepted; `data` begins with their count. Other bytes
    /// may be anything: as many headers are found as can be read.
    pub fn read(data: &'a [u8]) -> Self {
        let Ok((count, used)) = read_varint(data) else { return Self::default() };
        match (u32::try_from(count), data.get(used..)) {
            (Ok(count), Some(data)) => Self { data, count },
            _ => Self::default(),
        }
    }

    /// As many headers as there are in `data`, which begins with the first: those of a record that has
    /// been read.
    pub(crate) fn of(data: &'a [u8], count: u32) -> Self {
        Self { data, count }
    }

    /// Their bytes, without their count.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.data
    }

    /// Appends them as they stand in a record: their count, then key and value of each.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_varint(out, i32::try_from(self.count).unwrap_or(i32::MAX));
        out.extend_from_slice(self.data);
    }

    /// The number of headers.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The key and value of each header, in order. Keys are UTF-8 if the producer kept to the rule.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + 'a {
        let mut cursor = Cursor { data: self.data, at: 0, index: 0, client_fault: None };
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
    client_fault: Option<ClientFault>,
}

#[allow(
    clippy::arithmetic_side_effects,
    reason = "`at` moves over bytes that were read, so it stays within the data"
)]
impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    fn fault(&self, field: Field, fault: VarintFault) -> Error {
        let index = self.index;
        match fault {
            VarintFault::End => self.overrun(field, 1, 0, self.at),
            VarintFault::TooLong => Error::new(ErrorKind::VarintTooLong { index, field }, self.at),
        }
    }

    fn overrun(&self, field: Field, declared: i32, left: usize, at: usize) -> Error {
        let (index, declared, left) = (self.index, i64::from(declared), left as u64);
        Error::new(ErrorKind::FieldOverrun { index, field, declared, left }, at)
    }

    fn negative(&self, field: Field, declared: i32, at: usize) -> Error {
        let (index, declared) = (self.index, i64::from(declared));
        Error::new(ErrorKind::FieldNegative { index, field, declared }, at)
    }

    fn byte(&mut self, field: Field) -> Result<u8> {
        let byte = *self.rest().first().ok_or_else(|| self.fault(field, VarintFault::End))?;
        self.at += 1;
        Ok(byte)
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
        let Ok(length) = usize::try_from(declared) else {
            if declared < -1 {
                self.note(ClientFault::NullLength);
            }
            return Ok(None);
        };
        let rest = self.rest();
        let bytes =
            rest.get(..length).ok_or_else(|| self.overrun(field, declared, rest.len(), start))?;
        self.at += length;
        Ok(Some(bytes))
    }

    fn note(&mut self, fault: ClientFault) {
        self.client_fault.get_or_insert(fault);
    }

    /// The length of a record; the data then end where the record ends.
    fn length(&mut self) -> Result<i32> {
        let (start, field) = (self.at, Field::RecordLength);
        let length = self.int(field)?;
        let size = usize::try_from(length).map_err(|_| self.negative(field, length, start))?;
        let left = self.rest().len();
        self.data = self
            .data
            .get(..self.at.saturating_add(size))
            .ok_or_else(|| self.overrun(field, length, left, start))?;
        Ok(length)
    }

    /// The header count and the headers.
    fn headers(&mut self, limits: &Limits) -> Result<Headers<'a>> {
        let (start, field) = (self.at, Field::HeaderCount);
        let declared = self.int(field)?;
        let count = u32::try_from(declared).map_err(|_| self.negative(field, declared, start))?;
        let data = self.rest();
        if count as usize > data.len() {
            return Err(self.overrun(field, declared, data.len(), start));
        }
        if count > limits.headers {
            let (declared, limit) = (u64::from(count), u64::from(limits.headers));
            let kind = ErrorKind::TooMany { what: "headers", declared, limit };
            return Err(Error::new(kind, start));
        }
        for _ in 0..count {
            let key_at = self.at;
            let Some(key) = self.bytes(Field::HeaderKey)? else {
                return Err(self.negative(Field::HeaderKey, -1, key_at));
            };
            if std::str::from_utf8(key).is_err() {
                self.note(ClientFault::HeaderKey);
            }
            self.bytes(Field::HeaderValue)?;
        }
        Ok(Headers { data, count })
    }
}

/// Parses the record at `at`; `index` is its place in the batch. Returns the record and the position
/// after it.
///
/// # Errors
/// What Kafka's full parse refuses, and more headers than `limits` allow.
pub fn read_record<'a>(
    payload: &'a [u8],
    at: usize,
    index: u32,
    limits: &Limits,
) -> Result<(RawRecord<'a>, usize)> {
    let mut cursor = Cursor { data: payload, at, index, client_fault: None };
    let length = cursor.length()?;
    let (body, end) = (cursor.at, cursor.data.len());
    let attributes = cursor.byte(Field::Attributes)?;
    if attributes >= FIRST_VARINT_OF_TWO_BYTES {
        cursor.note(ClientFault::RecordAttributes);
    }
    let timestamp_delta = cursor.long(Field::TimestampDelta)?;
    let offset_delta = cursor.int(Field::OffsetDelta)?;
    let key = cursor.bytes(Field::Key)?;
    let value = cursor.bytes(Field::Value)?;
    let headers = cursor.headers(limits)?;
    if cursor.at != end {
        let (declared, used) = (i64::from(length), cursor.at.saturating_sub(body) as u64);
        return Err(Error::new(ErrorKind::RecordLengthMismatch { index, declared, used }, at));
    }
    let client_fault = cursor.client_fault;
    let record =
        RawRecord { attributes, timestamp_delta, offset_delta, key, value, headers, client_fault };
    Ok((record, end))
}
