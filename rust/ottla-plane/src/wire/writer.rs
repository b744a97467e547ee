//! Writes the primitive types of the protocol, in their old and their flexible form (KIP-482).

/// Where an answer goes: fields into a buffer, stored records in pieces as large as they are.
pub trait Sink {
    /// What the next fields are added to.
    fn buffer(&mut self) -> &mut Vec<u8>;

    /// Adds bytes of stored batches.
    fn records(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self
    }

    fn records(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Adds fields to a buffer.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    is_flexible: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, is_flexible: bool) -> Self {
        Self { out, is_flexible }
    }

    pub(super) fn int16(&mut self, value: i16) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub(super) fn int32(&mut self, value: i32) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub(super) fn int64(&mut self, value: i64) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// The size of bytes, or the count of an array.
    pub(super) fn length(&mut self, length: usize) {
        let length = length as u32;
        if self.is_flexible {
            self.uvarint(length.saturating_add(1));
        } else {
            self.int32(length as i32);
        }
    }

    /// An array that is null.
    pub(super) fn null_array(&mut self) {
        if self.is_flexible {
            self.uvarint(0);
        } else {
            self.int32(-1);
        }
    }

    pub(super) fn string(&mut self, string: &[u8]) {
        if self.is_flexible {
            self.uvarint((string.len() as u32).saturating_add(1));
        } else {
            self.int16(string.len() as i16);
        }
        self.raw(string);
    }

    pub(super) fn nullable_string(&mut self, string: Option<&str>) {
        match string {
            Some(string) => self.string(string.as_bytes()),
            None if self.is_flexible => self.uvarint(0),
            None => self.int16(-1),
        }
    }

    /// The tagged fields of a struct, ascending, where the version has any.
    pub(super) fn tags(&mut self, tags: &[(u32, &[u8])]) {
        if !self.is_flexible {
            return;
        }
        self.uvarint(tags.len() as u32);
        for (tag, value) in tags {
            self.uvarint(*tag);
            self.uvarint(value.len() as u32);
            self.raw(value);
        }
    }
}
