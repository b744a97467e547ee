//! Kafka's generated message format, read by tables: fields of a version, in the classic or the
//! flexible encoding (KIP-482), with tagged fields.

use std::fmt;

/// Bytes of a key or value that are looked into. The largest that a coordinator writes, the members of
/// a huge group, has some megabytes.
pub const MAX_BYTES: usize = 16 << 20;

/// Arrays and structures in each other.
const MAX_DEPTH: u32 = 8;

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// One byte.
    Int8,
    /// Two bytes.
    Int16,
    /// Two bytes without a sign.
    UInt16,
    /// Four bytes.
    Int32,
    /// Eight bytes.
    Int64,
    /// Text, UTF-8.
    Text,
    /// Bytes.
    Bytes,
    /// Sixteen bytes.
    Uuid,
    /// Any number of these.
    Array(&'static Kind),
    /// Fields.
    Struct(&'static [Field]),
}

/// One field of a structure.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    name: &'static str,
    kind: Kind,
    since: i16,
    until: i16,
    is_nullable: bool,
    tag: Option<u32>,
}

impl Field {
    /// A field of every version.
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, since: 0, until: i16::MAX, is_nullable: false, tag: None }
    }

    /// The same from this version on.
    #[must_use]
    pub const fn since(self, since: i16) -> Self {
        Self { since, ..self }
    }

    /// The same up to this version.
    #[must_use]
    pub const fn until(self, until: i16) -> Self {
        Self { until, ..self }
    }

    /// The same, or null.
    #[must_use]
    pub const fn or_null(self) -> Self {
        Self { is_nullable: true, ..self }
    }

    /// The same among the tagged fields: absent where it has its default.
    #[must_use]
    pub const fn tagged(self, tag: u32) -> Self {
        Self { tag: Some(tag), ..self }
    }
}

/// The versions of one key or value.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// The highest version that is known; they begin with 0.
    pub latest: i16,
    /// The first flexible version; `i16::MAX` for none.
    pub flexible: i16,
    /// The fields of all versions, in order.
    pub fields: &'static [Field],
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Null.
    Null,
    /// A number of any size.
    Int(i64),
    /// Text; what is no UTF-8 is replaced.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A UUID.
    Uuid([u8; 16]),
    /// An array.
    Array(Vec<Value>),
    /// A structure: its fields in order; absent ones have their default.
    Struct(Vec<(&'static str, Value)>),
}

impl Value {
    /// The field of a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let Self::Struct(fields) = self else { return None };
        fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The number in the field of a name.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The text in the field of a name.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Self::Text(value) => Some(value),
            _ => None,
        }
    }

    /// The elements of the array in the field of a name; none where it is null.
    pub fn array(&self, name: &str) -> &[Value] {
        match self.get(name) {
            Some(Self::Array(values)) => values,
            _ => &[],
        }
    }
}

/// A UUID as Kafka writes it: 22 characters of base64url.
///
/// # Examples
/// ```
/// use ottla_log::internal_topics::schema::uuid_text;
///
/// assert_eq!(uuid_text([0; 16]), "AAAAAAAAAAAAAAAAAAAAAA");
/// ```
pub fn uuid_text(bytes: [u8; 16]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let number = u128::from_be_bytes(bytes);
    let digit = |index: u32| {
        // 22 digits of six bits hold 132: the last one has four bits of zeros behind its two.
        let bits = match 122_u32.checked_sub(index.saturating_mul(6)) {
            Some(shift) => number >> shift,
            None => number << 4,
        };
        char::from(DIGITS.get((bits & 0x3f) as usize).copied().unwrap_or(b'A'))
    };
    (0..22).map(digit).collect()
}

/// Why a key or value could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// A record type that is not known.
    UnknownType(i16),
    /// A version that is not known.
    UnknownVersion {
        /// The one that was found.
        found: i16,
        /// The latest that is known.
        latest: i16,
    },
    /// The bytes end inside a field.
    Truncated,
    /// A length or count below −1, or null where that may not be.
    Malformed,
    /// More than [`MAX_BYTES`].
    TooLarge,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(found) => write!(f, "the record type {found} is not known"),
            Self::UnknownVersion { found, latest } => {
                write!(f, "version {found} is not known, only 0 to {latest}")
            }
            Self::Truncated => f.write_str("the bytes end inside a field"),
            Self::Malformed => f.write_str("a length is negative, or null is not allowed"),
            Self::TooLarge => write!(f, "more than {MAX_BYTES} bytes"),
        }
    }
}

impl Schema {
    /// A key, which is never flexible. What its first bytes say is its type.
    pub const fn key(fields: &'static [Field]) -> Self {
        Self { latest: 0, flexible: i16::MAX, fields }
    }

    /// One version, which is flexible.
    pub const fn flexible(fields: &'static [Field]) -> Self {
        Self { latest: 0, flexible: 0, fields }
    }

    /// Reads the fields of a version; bytes behind them are ignored, as Kafka does.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn read(&self, data: &[u8], version: i16) -> Result<Value, DecodeError> {
        if data.len() > MAX_BYTES {
            return Err(DecodeError::TooLarge);
        }
        if !(0..=self.latest).contains(&version) {
            return Err(DecodeError::UnknownVersion { found: version, latest: self.latest });
        }
        let mut reader = FieldReader { rest: data, version, is_flexible: version >= self.flexible };
        reader.structure(self.fields, 0)
    }

    /// Reads a value that begins with its version.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn read_versioned(&self, data: &[u8]) -> Result<(i16, Value), DecodeError> {
        let (version, rest) = split_version(data)?;
        Ok((version, self.read(rest, version)?))
    }
}

/// The version at the start of a key or value, and what is behind it.
///
/// # Errors
/// [`DecodeError::Truncated`].
pub fn split_version(data: &[u8]) -> Result<(i16, &[u8]), DecodeError> {
    let (version, rest) = data.split_first_chunk::<2>().ok_or(DecodeError::Truncated)?;
    Ok((i16::from_be_bytes(*version), rest))
}

struct FieldReader<'a> {
    rest: &'a [u8],
    version: i16,
    is_flexible: bool,
}

impl<'a> FieldReader<'a> {
    fn bytes(&mut self, size: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self.rest.split_at_checked(size).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (chunk, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*chunk)
    }

    fn unsigned(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.chunk()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| DecodeError::Malformed);
            }
        }
        Err(DecodeError::Malformed)
    }

    /// A length or count, `None` for null.
    fn length(&mut self, is_short: bool) -> Result<Option<usize>, DecodeError> {
        let length = if self.is_flexible {
            i64::from(self.unsigned()?).saturating_sub(1)
        } else if is_short {
            i64::from(i16::from_be_bytes(self.chunk()?))
        } else {
            i64::from(i32::from_be_bytes(self.chunk()?))
        };
        match length {
            -1 => Ok(None),
            length => usize::try_from(length).map(Some).map_err(|_| DecodeError::Malformed),
        }
    }

    fn value(&mut self, kind: Kind, depth: u32) -> Result<Value, DecodeError> {
        if depth > MAX_DEPTH {
            return Err(DecodeError::Malformed);
        }
        Ok(match kind {
            Kind::Int8 => Value::Int(i64::from(i8::from_be_bytes(self.chunk()?))),
            Kind::Int16 => Value::Int(i64::from(i16::from_be_bytes(self.chunk()?))),
            Kind::UInt16 => Value::Int(i64::from(u16::from_be_bytes(self.chunk()?))),
            Kind::Int32 => Value::Int(i64::from(i32::from_be_bytes(self.chunk()?))),
            Kind::Int64 => Value::Int(i64::from_be_bytes(self.chunk()?)),
            Kind::Uuid => Value::Uuid(self.chunk()?),
            Kind::Text => match self.length(true)? {
                Some(size) => Value::Text(String::from_utf8_lossy(self.bytes(size)?).into_owned()),
                None => Value::Null,
            },
            Kind::Bytes => match self.length(false)? {
                Some(size) => Value::Bytes(self.bytes(size)?.to_vec()),
                None => Value::Null,
            },
            Kind::Array(element) => match self.length(false)? {
                Some(count) => {
                    // No element is empty, so what is left bounds them.
                    let mut values = Vec::new();
                    for _ in 0..count {
                        values.push(self.value(*element, depth.saturating_add(1))?);
                    }
                    Value::Array(values)
                }
                None => Value::Null,
            },
            Kind::Struct(fields) => self.structure(fields, depth.saturating_add(1))?,
        })
    }

    fn structure(&mut self, fields: &'static [Field], depth: u32) -> Result<Value, DecodeError> {
        let mut values = Vec::new();
        for field in fields {
            let is_here = (field.since..=field.until).contains(&self.version);
            if field.tag.is_some() || !is_here {
                continue;
            }
            // A structure that may be null begins with whether it is.
            let is_null = field.is_nullable
                && matches!(field.kind, Kind::Struct(_))
                && self.chunk::<1>()? != [1];
            let value = if is_null { Value::Null } else { self.value(field.kind, depth)? };
            if value == Value::Null && !field.is_nullable {
                return Err(DecodeError::Malformed);
            }
            values.push((field.name, value));
        }
        if self.is_flexible {
            self.tagged(fields, depth, &mut values)?;
        }
        Ok(Value::Struct(values))
    }

    fn tagged(
        &mut self,
        fields: &'static [Field],
        depth: u32,
        values: &mut Vec<(&'static str, Value)>,
    ) -> Result<(), DecodeError> {
        for _ in 0..self.unsigned()? {
            let tag = self.unsigned()?;
            let size = self.unsigned()? as usize;
            let data = self.bytes(size)?;
            // Tags of later releases are skipped: that is what they are for.
            let Some(field) = fields.iter().find(|field| field.tag == Some(tag)) else { continue };
            let mut inside = FieldReader { rest: data, ..*self };
            let is_null = matches!(field.kind, Kind::Struct(_)) && inside.chunk::<1>()? != [1];
            let value = if is_null { Value::Null } else { inside.value(field.kind, depth)? };
            values.push((field.name, value));
        }
        Ok(())
    }
}
