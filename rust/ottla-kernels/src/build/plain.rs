//! The size of the records, and the writer for any CPU.

#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "the columns are checked, their records fit 31 bits, and the memory has their size"
)]

use super::values::Values;

#[inline(always)]
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Bytes of the varint of a zigzag number: its bits divided by seven, rounded up, without a division.
#[inline(always)]
pub(super) fn varint_bytes(zigzag: u64) -> u64 {
    u64::from(((70 - (zigzag | 1).leading_zeros()) * 37) >> 8)
}

/// Bytes of all records, without a branch, so that the loop is vectorised where vectors can count
/// leading zeros.
///
/// # Safety
/// The columns are checked for the count of the timestamps.
#[inline(always)]
pub(super) unsafe fn size_of<K: Values, V: Values>(timestamps: &[i64], keys: K, values: V) -> u64 {
    let Some(&first) = timestamps.first() else {
        return 0;
    };
    let mut size = 0u64;
    for (index, &timestamp) in timestamps.iter().enumerate() {
        // SAFETY: as the caller promises.
        let ((_, key), (_, value)) = unsafe { (keys.value(index), values.value(index)) };
        let part = |length: i64| varint_bytes(zigzag(length)) + length.max(0) as u64;
        let body = 2
            + varint_bytes(zigzag(timestamp.wrapping_sub(first)))
            + varint_bytes((index as u64) << 1)
            + part(key)
            + part(value);
        size = size.wrapping_add(body + varint_bytes(body << 1));
    }
    size
}

/// How far a writer has come.
pub(super) struct Written {
    pub(super) records: usize,
    pub(super) bytes: usize,
}

/// Writes the records from index `from`, one byte of a varint at a time: the portable writer, and the
/// oracle.
///
/// # Safety
/// The columns are checked for the count of the timestamps.
pub(super) unsafe fn write<K: Values, V: Values>(
    timestamps: &[i64],
    keys: K,
    values: V,
    from: usize,
    mut to: &mut [u8],
) {
    fn put<'a>(to: &'a mut [u8], bytes: &[u8]) -> &'a mut [u8] {
        let (here, rest) = to.split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        rest
    }
    fn put_varint(mut to: &mut [u8], value: i64) -> &mut [u8] {
        let mut rest = zigzag(value);
        while rest > 0x7f {
            to = put(to, &[rest as u8 | 0x80]);
            rest >>= 7;
        }
        put(to, &[rest as u8])
    }
    fn put_part<'a>(
        to: &'a mut [u8],
        data: &[u8],
        (position, length): (usize, i64),
    ) -> &'a mut [u8] {
        let to = put_varint(to, length);
        put(to, &data[position..position + length.max(0) as usize])
    }
    let first = timestamps[0];
    for (index, &timestamp) in timestamps.iter().enumerate().skip(from) {
        // SAFETY: as the caller promises.
        let (key, value) = unsafe { (keys.value(index), values.value(index)) };
        let delta = timestamp.wrapping_sub(first);
        let bytes = |value: i64| varint_bytes(zigzag(value)) as i64;
        let body = 2
            + bytes(delta)
            + bytes(index as i64)
            + bytes(key.1)
            + key.1.max(0)
            + bytes(value.1)
            + value.1.max(0);
        to = put_varint(to, body);
        to = put(to, &[0]);
        to = put_varint(to, delta);
        to = put_varint(to, index as i64);
        to = put_part(to, keys.data(), key);
        to = put_part(to, values.data(), value);
        to = put(to, &[0]);
    }
}
