//! One record by the rules, without any trick: what the fast loop falls back on, and what tests compare
//! it with.

use super::Record;
use crate::header::BatchHeader;

/// The most bytes of a varint of 32 and of 64 bits.
const MAX_INT_BYTES: usize = 5;
const MAX_LONG_BYTES: usize = 10;

/// A position that moves over `data` and never past its end.
struct Cursor<'a> {
    data: &'a [u8],
    position: usize,
}

#[allow(clippy::arithmetic_side_effects, reason = "moves over bytes inside `data`; negates 0 or 1")]
impl Cursor<'_> {
    /// The joined groups of a varint of at most `max` bytes; bits beyond 64 are lost.
    fn groups(&mut self, max: usize) -> Option<u64> {
        let mut value = 0;
        for shift in (0..7 * max).step_by(7) {
            let byte = *self.data.get(self.position)?;
            self.position += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A varint: of the fifth byte only four bits count, as in Kafka.
    fn int(&mut self) -> Option<i32> {
        let zigzag = self.groups(MAX_INT_BYTES)? as u32;
        Some((zigzag >> 1) as i32 ^ -((zigzag & 1) as i32))
    }

    /// A varlong: of the tenth byte only one bit counts, as in Kafka.
    fn long(&mut self) -> Option<i64> {
        let zigzag = self.groups(MAX_LONG_BYTES)?;
        Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    /// Moves over `length` bytes, none for null. Returns where they begin.
    fn skip(&mut self, length: i32) -> Option<usize> {
        let from = self.position;
        self.position = from.checked_add(usize::try_from(length.max(0)).ok()?)?;
        (self.position <= self.data.len()).then_some(from)
    }

    /// Moves over a length of at least −1 and as many bytes. Returns where they begin, and the length.
    fn nullable(&mut self) -> Option<(usize, i32)> {
        let length = self.int().filter(|length| *length >= -1)?;
        Some((self.skip(length)?, length))
    }
}

/// Record `index` at `position` of `data`, which ends where the batch ends. `None` if it breaks a
/// rule.
pub(super) fn read_record(
    data: &[u8],
    position: usize,
    index: usize,
    max_delta: i64,
) -> Option<Record> {
    let mut cursor = Cursor { data, position };
    let length = usize::try_from(cursor.int()?).ok()?;
    let end = cursor.position.checked_add(length)?;
    cursor.data = data.get(..end)?;
    // No bit of the record's attributes is defined; some clients take the high one for that of a
    // varint.
    let attributes = cursor.skip(1)?;
    if *data.get(attributes)? >= 0x80 {
        return None;
    }
    let timestamp_delta = cursor.long()?;
    let offset_delta = cursor.int()?;
    let (key_position, key_length) = cursor.nullable()?;
    let (value_position, value_length) = cursor.nullable()?;
    let headers_position = cursor.position;
    let header_count = cursor.int().filter(|count| *count >= 0)?;
    for _ in 0..header_count {
        let (key, key_length) = cursor.nullable()?;
        let key_bytes = data.get(key..)?.get(..usize::try_from(key_length).ok()?)?;
        // Some clients cannot read the others.
        std::str::from_utf8(key_bytes).ok()?;
        cursor.nullable()?;
    }
    let is_right = cursor.position == end
        && usize::try_from(offset_delta) == Ok(index)
        && timestamp_delta <= max_delta
        && timestamp_delta > i64::MIN; // So that a base of -1 plus it does not overflow.
    is_right.then_some(Record {
        timestamp_delta,
        key_position,
        key_length,
        value_position,
        value_length,
        headers_position,
        end,
    })
}

/// The oracle: every record by the rules, in the simplest loop. `None` if one breaks a rule, or bytes
/// are left.
///
/// The header provides the record count and the timestamps; the records lie from `position` to `end`
/// of `data`.
pub fn naive(
    header: &BatchHeader,
    data: &[u8],
    position: usize,
    end: usize,
) -> Option<Vec<Record>> {
    let (mut records, mut next) = (Vec::new(), position);
    for index in 0..usize::try_from(header.record_count).ok()? {
        let record = read_record(data.get(..end)?, next, index, header.max_delta()?)?;
        next = record.end;
        records.push(record);
    }
    (next == end).then_some(records)
}

#[cfg(test)]
mod tests {
    use super::Cursor;

    fn int(bytes: &[u8]) -> Option<i32> {
        Cursor { data: bytes, position: 0 }.int()
    }
    fn long(bytes: &[u8]) -> Option<i64> {
        Cursor { data: bytes, position: 0 }.long()
    }

    #[test]
    fn varints_are_read_as_kafka_reads_them() {
        for (bytes, value) in [
            (&[0x00][..], 0),
            (&[0x01], -1),
            (&[0x80, 0x01], 64),
            (&[0x80, 0x00], 0),
            (&[0xfe, 0xff, 0xff, 0xff, 0x0f], i32::MAX),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], i32::MIN),
            (&[0xfe, 0xff, 0xff, 0xff, 0x7f], i32::MAX),
        ] {
            assert_eq!(int(bytes), Some(value), "{bytes:02x?}");
        }
        let longest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(long(&[&longest[..], &[0x01]].concat()), Some(i64::MIN));
        assert_eq!(long(&[&longest[..], &[0x7f]].concat()), Some(i64::MIN));
    }

    #[test]
    fn a_varint_without_an_end_is_none() {
        assert_eq!(int(&[]), None);
        assert_eq!(int(&[0x80]), None);
        assert_eq!(int(&[0x80; 5]), None);
        assert_eq!(long(&[0x80; 10]), None);
        assert_eq!(long(&[0x80; 9]), None);
    }
}
