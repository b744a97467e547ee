//! Variable-length integers as Kafka reads and writes them: groups of seven bits, low group first,
//! zigzag for the sign (`docs/kafka/record-batch.md` §5).
//!
//! Kafka's readers are lenient, and so are these: encodings longer than needed are accepted, and of a
//! fifth (tenth) byte only the low four bits (the lowest bit) count. A continuation bit there is a
//! fault. Writers always emit the shortest form.

/// Why a varint could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarintFault {
    /// The bytes end inside it.
    End,
    /// Its last possible byte has the continuation bit set.
    TooLong,
}

/// Reads a 32-bit varint from the start of `data`. Returns the value and the bytes used.
///
/// # Errors
/// [`VarintFault`] if the bytes end inside it or it does not end within five bytes.
///
/// # Examples
/// ```
/// assert_eq!(ottla_format::varint::read_varint(&[0x80, 0x01]), Ok((64, 2)));
/// ```
#[allow(clippy::arithmetic_side_effects, reason = "`index` is below 5")]
#[inline]
pub fn read_varint(data: &[u8]) -> Result<(i32, usize), VarintFault> {
    let mut value = 0u32;
    for (index, &byte) in data.iter().take(5).enumerate() {
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((unzigzag32(value), index + 1));
        }
    }
    Err(if data.len() < 5 { VarintFault::End } else { VarintFault::TooLong })
}

/// Reads a 64-bit varint from the start of `data`. Returns the value and the bytes used.
///
/// # Errors
/// [`VarintFault`] if the bytes end inside it or it does not end within ten bytes.
#[allow(clippy::arithmetic_side_effects, reason = "`index` is below 10")]
#[inline]
pub fn read_varlong(data: &[u8]) -> Result<(i64, usize), VarintFault> {
    let mut value = 0u64;
    for (index, &byte) in data.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((unzigzag64(value), index + 1));
        }
    }
    Err(if data.len() < 10 { VarintFault::End } else { VarintFault::TooLong })
}

/// Appends the shortest varint of `value`.
pub fn write_varint(out: &mut Vec<u8>, value: i32) {
    write_unsigned(out, u64::from(zigzag32(value)));
}

/// Appends the shortest varlong of `value`.
pub fn write_varlong(out: &mut Vec<u8>, value: i64) {
    write_unsigned(out, zigzag64(value));
}

/// Bytes [`write_varint`] appends.
pub fn varint_size(value: i32) -> usize {
    unsigned_size(u64::from(zigzag32(value)))
}

/// Bytes [`write_varlong`] appends.
pub fn varlong_size(value: i64) -> usize {
    unsigned_size(zigzag64(value))
}

fn zigzag32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

fn zigzag64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[allow(clippy::arithmetic_side_effects, reason = "negates 0 or 1")]
fn unzigzag32(value: u32) -> i32 {
    (value >> 1) as i32 ^ -((value & 1) as i32)
}

#[allow(clippy::arithmetic_side_effects, reason = "negates 0 or 1")]
fn unzigzag64(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends the shortest unsigned varint of `value`.
pub(crate) fn write_unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn unsigned_size(value: u64) -> usize {
    (value.checked_ilog2().unwrap_or(0) as usize / 7).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_specification_have_their_bytes() {
        let golden: [(i32, &[u8]); 12] = [
            (0, &[0x00]),
            (-1, &[0x01]),
            (1, &[0x02]),
            (-2, &[0x03]),
            (63, &[0x7e]),
            (-64, &[0x7f]),
            (64, &[0x80, 0x01]),
            (8191, &[0xfe, 0x7f]),
            (-8192, &[0xff, 0x7f]),
            (8192, &[0x80, 0x80, 0x01]),
            (i32::MAX, &[0xfe, 0xff, 0xff, 0xff, 0x0f]),
            (i32::MIN, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        ];
        for (value, bytes) in golden {
            let mut out = Vec::new();
            write_varint(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(varint_size(value), bytes.len());
            assert_eq!(read_varint(bytes), Ok((value, bytes.len())));
            assert_eq!(read_varlong(bytes), Ok((i64::from(value), bytes.len())));
        }
    }

    #[test]
    fn surplus_bits_of_the_last_byte_are_ignored_as_kafka_does() {
        assert_eq!(read_varint(&[0xfe, 0xff, 0xff, 0xff, 0x7f]), Ok((i32::MAX, 5)));
        assert_eq!(
            read_varlong(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f]),
            Ok((1 << 62, 10))
        );
    }

    #[test]
    fn a_varint_longer_than_needed_is_read() {
        assert_eq!(read_varint(&[0x80, 0x00]), Ok((0, 2)));
    }

    #[test]
    fn an_end_and_an_endless_varint_are_two_faults() {
        assert_eq!(read_varint(&[0x80, 0x80]), Err(VarintFault::End));
        assert_eq!(read_varint(&[0x80; 5]), Err(VarintFault::TooLong));
        assert_eq!(read_varlong(&[0x80; 9]), Err(VarintFault::End));
        assert_eq!(read_varlong(&[0x80; 10]), Err(VarintFault::TooLong));
    }
}
