//! The AVX-512 writer: varints made by `pdep`, and copies of 64 bytes at a time.
//!
//! It may write past a record, into what is written next, but never reads past a column.

#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "the columns are checked, their records fit 31 bits, and the memory has their size"
)]

use super::plain::{self, Written, varint_bytes, zigzag};
use super::values::Values;
use std::arch::x86_64::{
    _bzhi_u64, _mm512_loadu_si512, _mm512_maskz_loadu_epi8, _mm512_storeu_si512, _pdep_u64,
};

const PAYLOAD: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const CONTINUES: u64 = 0x8080_8080_8080_8080;

/// Bytes a record may write past its key and value: six varints stored as words, and copies of
/// 64 bytes at a time.
const SLACK: usize = 400;

#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn size_of<K: Values, V: Values>(timestamps: &[i64], keys: K, values: V) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { plain::size_of(timestamps, keys, values) }
}

/// Copies `size` bytes in steps of 64, and reads only the bytes that exist. `PAIRS`
/// stores at least two: the length of the next value is hard to predict, and a misprediction costs
/// as much as three stores.
///
/// # Safety
/// `size` bytes at `from` are readable, and `size + 192` bytes at `to` are writable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
unsafe fn copy<const PAIRS: bool>(from: *const u8, to: *mut u8, size: usize) {
    let step = |k: usize| {
        let mask = _bzhi_u64(!0, size.saturating_sub(64 * k).min(64) as u32);
        // SAFETY: bytes beyond `size` are masked, and AVX-512 does not touch them; 64 bytes are
        // writable there.
        unsafe {
            let bytes = _mm512_maskz_loadu_epi8(mask, from.wrapping_add(64 * k).cast());
            _mm512_storeu_si512(to.wrapping_add(64 * k).cast(), bytes);
        }
    };
    if size <= 64 && !PAIRS {
        step(0);
    } else if size <= 256 {
        step(0);
        step(1);
        if size > 128 {
            step(2);
            step(3);
        }
    } else {
        // SAFETY: all steps are inside `size`.
        unsafe {
            let mut k = 0;
            while k + 64 <= size {
                _mm512_storeu_si512(to.add(k).cast(), _mm512_loadu_si512(from.add(k).cast()));
                k += 64;
            }
            let last = size - 64;
            _mm512_storeu_si512(to.add(last).cast(), _mm512_loadu_si512(from.add(last).cast()));
        }
    }
}

/// A varint of up to 8 bytes (56 bits) in one word, zeros above it.
#[derive(Clone, Copy)]
struct Word {
    word: u64,
    bytes: usize,
}

#[inline]
#[target_feature(enable = "bmi2,lzcnt")]
fn varint(zigzag: u64) -> Word {
    let bytes = varint_bytes(zigzag) as usize;
    Word {
        word: _pdep_u64(zigzag, PAYLOAD) | CONTINUES & ((1u64 << ((8 * (bytes - 1)) & 63)) - 1),
        bytes,
    }
}

/// Stores a whole word. Returns the place after the varint.
///
/// # Safety
/// 8 bytes at `to` are writable.
#[inline(always)]
unsafe fn put(to: *mut u8, varint: Word) -> *mut u8 {
    // SAFETY: the caller promises the 8 bytes, and a varint here has no more.
    unsafe {
        to.cast::<u64>().write_unaligned(varint.word);
        to.add(varint.bytes)
    }
}

/// Writes the first records, as many as leave room for wide stores.
///
/// # Safety
/// The columns are checked for the count of the timestamps, which is not 0.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn write<K: Values, V: Values>(
    timestamps: &[i64],
    keys: K,
    values: V,
    records: &mut [u8],
) -> Written {
    let (key_data, value_data) = (keys.data().as_ptr(), values.data().as_ptr());
    let (first, count, size) = (timestamps[0], timestamps.len(), records.len());
    let start = records.as_mut_ptr();
    let (mut written, mut index, mut offset_bytes) = (0, 0, 1);
    while index < count {
        // Offset deltas of one segment (below 64, 8192, 2^20 …) have varints of one size, which
        // needs no counting.
        let segment_end = count.min(1 << (7 * offset_bytes - 1));
        let offset_continues = CONTINUES & ((1u64 << (8 * (offset_bytes - 1))) - 1);
        while index < segment_end {
            // SAFETY: `index` is below the count.
            let (timestamp, (key_at, key_length), (value_at, value_length)) = unsafe {
                (*timestamps.get_unchecked(index), keys.value(index), values.value(index))
            };
            let delta = zigzag(timestamp.wrapping_sub(first));
            let (key_size, value_size) = (key_length.max(0) as usize, value_length.max(0) as usize);
            // A timestamp delta of nine or ten bytes (years apart), or the end is near: the plain
            // writer does the rest.
            if delta >> 56 != 0
                || size - written < SLACK
                || size - written - SLACK < key_size + value_size
            {
                return Written { records: index, bytes: written };
            }
            let (delta, key, value) =
                (varint(delta), varint(zigzag(key_length)), varint(zigzag(value_length)));
            let offset = Word {
                word: _pdep_u64((index as u64) << 1, PAYLOAD) | offset_continues,
                bytes: offset_bytes,
            };
            let before_key = delta.bytes + offset_bytes;
            let body = 2 + before_key + key.bytes + key_size + value.bytes + value_size;
            // SAFETY: key, value and `SLACK` bytes are left; the columns hold what the lengths say.
            unsafe {
                // The word has zeros above the varint: the first of them is the attributes.
                let mut to = put(start.add(written), varint(zigzag(body as i64))).add(1);
                if key.bytes == 1 && before_key < 8 {
                    let word = delta.word
                        | offset.word << (8 * delta.bytes)
                        | key.word << (8 * before_key);
                    to = put(to, Word { word, bytes: before_key + 1 });
                } else {
                    to = put(put(put(to, delta), offset), key);
                }
                copy::<false>(key_data.wrapping_add(key_at), to, key_size);
                to = put(to.add(key_size), value);
                copy::<true>(value_data.wrapping_add(value_at), to, value_size);
                to = to.add(value_size);
                *to = 0; // No headers.
                written = to.offset_from_unsigned(start) + 1;
            }
            index += 1;
        }
        offset_bytes += 1;
    }
    Written { records: count, bytes: written }
}
