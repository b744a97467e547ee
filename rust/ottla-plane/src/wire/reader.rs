//! Reads the primitive types of the protocol, in their old and their flexible form (KIP-482).

use super::TopicId;
use super::malformed::{MalformedFrame, MalformedKind, Wire};
use crate::limits::MAX_REQUEST_ENTRIES;

/// The longest string.
const MAX_STRING_BYTES: u32 = 0x7fff;

/// A frame, read from a position on.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    frame: &'a [u8],
    position: usize,
    is_flexible: bool,
    /// Topics and partitions so far.
    entries: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(frame: &'a [u8], position: usize, is_flexible: bool) -> Self {
        Self { frame, position, is_flexible, entries: 0 }
    }

    fn left(&self) -> usize {
        self.frame.len().saturating_sub(self.position)
    }

    fn refused<T>(&self, kind: MalformedKind) -> Wire<T> {
        Err(MalformedFrame { position: self.position, kind })
    }

    fn take(&mut self, size: usize) -> Wire<&'a [u8]> {
        let taken = self.frame.get(self.position..).and_then(|rest| rest.get(..size));
        let Some(taken) = taken else {
            return self.refused(MalformedKind::Truncated { needed: size, left: self.left() });
        };
        self.position = self.position.saturating_add(size);
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Wire<[u8; N]> {
        let left = self.left();
        let taken = self.take(N)?.first_chunk();
        taken
            .copied()
            .map_or_else(|| self.refused(MalformedKind::Truncated { needed: N, left }), Ok)
    }

    pub(super) fn int8(&mut self) -> Wire<i8> {
        self.array().map(i8::from_be_bytes)
    }

    pub(super) fn int16(&mut self) -> Wire<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn int32(&mut self) -> Wire<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn int64(&mut self) -> Wire<i64> {
        self.array().map(i64::from_be_bytes)
    }

    pub(super) fn uuid(&mut self) -> Wire<TopicId> {
        self.array()
    }

    fn uvarint(&mut self) -> Wire<u32> {
        const LAST_SHIFT: u32 = 28;
        let start = self.position;
        let mut value = 0u32;
        for shift in (0..=LAST_SHIFT).step_by(7) {
            let [byte] = self.array::<1>()?;
            let bits = u32::from(byte & 0x7f);
            if shift == LAST_SHIFT && byte > 0x0f {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(MalformedFrame { position: start, kind: MalformedKind::Varint })
    }

    /// A length or count, `None` for null.
    fn length(&mut self, is_short: bool) -> Wire<Option<u32>> {
        if self.is_flexible {
            return Ok(self.uvarint()?.checked_sub(1));
        }
        let length = if is_short { self.int16()?.into() } else { self.int32()? };
        Ok(u32::try_from(length).ok())
    }

    pub(super) fn nullable_string(&mut self, field: &'static str) -> Wire<Option<&'a [u8]>> {
        let Some(size) = self.length(true)? else { return Ok(None) };
        if size > MAX_STRING_BYTES {
            return self.refused(MalformedKind::StringTooLong { field, size });
        }
        self.take(size as usize).map(Some)
    }

    pub(super) fn string(&mut self, field: &'static str) -> Wire<&'a [u8]> {
        match self.nullable_string(field)? {
            Some(string) => Ok(string),
            None => self.refused(MalformedKind::Null { field }),
        }
    }

    pub(super) fn nullable_bytes(&mut self) -> Wire<Option<&'a [u8]>> {
        let Some(size) = self.length(false)? else { return Ok(None) };
        self.take(size as usize).map(Some)
    }

    /// The count of an array, whose elements have a byte each at least.
    pub(super) fn count(&mut self, field: &'static str) -> Wire<usize> {
        let Some(count) = self.length(false)? else {
            return self.refused(MalformedKind::Null { field });
        };
        let left = self.left();
        if count as usize > left {
            return self.refused(MalformedKind::Count { field, count, left });
        }
        Ok(count as usize)
    }

    /// The count of topics or partitions, of which a request may have so many.
    pub(super) fn entries(&mut self, field: &'static str) -> Wire<usize> {
        let count = self.count(field)?;
        self.entries = self.entries.saturating_add(count);
        if self.entries > MAX_REQUEST_ENTRIES {
            return self.refused(MalformedKind::Entries { maximum: MAX_REQUEST_ENTRIES });
        }
        Ok(count)
    }

    /// The tagged fields of a struct, where the version has any; `each` reads those it knows.
    pub(super) fn tags(
        &mut self,
        mut each: impl FnMut(u32, &mut Reader<'a>) -> Wire<()>,
    ) -> Wire<()> {
        if !self.is_flexible {
            return Ok(());
        }
        let count = self.uvarint()?;
        for _ in 0..count {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            let start = self.position;
            self.take(size)?;
            let frame = self.frame.get(..self.position).unwrap_or(self.frame);
            each(tag, &mut Reader { frame, position: start, ..*self })?;
        }
        Ok(())
    }

    /// Tagged fields of which none is known.
    pub(super) fn skip_tags(&mut self) -> Wire<()> {
        self.tags(|_, _| Ok(()))
    }
}
