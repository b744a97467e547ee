//! CRC-32C by the instructions of x86-64: `crc32q`, and folding with VPCLMULQDQ.
//!
//! Folding in one paragraph: the message is a polynomial over GF(2). A register `r` that stands `d`
//! bits before the end may be replaced by `r * x^d mod P`, `XORed` into the register `d` bits
//! later. VPCLMULQDQ multiplies 64 by 64 bits without carries in each of four lanes, so one step of
//! a 64-byte register needs two multiplications, for the high and the low halves. The message is
//! aligned to its *end*: leading zeros do not change a CRC apart from its initial value, trailing ones
//! would. So the only load of an odd size is the first, and it is masked: no byte outside the message
//! is read.

#![allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "registers and masks are counted at compile time or by sizes that the safety sections bound"
)]

use super::polynomial::{after_zero_byte, x_to_the};
use super::streams::{self, Instruction, Shift};
use std::arch::x86_64::{
    __m512i, _MM_HINT_T0, _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi64_si128,
    _mm_cvtsi128_si64, _mm_extract_epi64, _mm_prefetch, _mm_set_epi64x, _mm_xor_si128,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_xor_si256, _mm512_broadcast_i32x4,
    _mm512_castsi512_si256, _mm512_clmulepi64_epi128, _mm512_extracti64x4_epi64,
    _mm512_loadu_si512, _mm512_maskz_loadu_epi8, _mm512_maskz_mov_epi64, _mm512_set_epi64,
    _mm512_setzero_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

#[derive(Clone, Copy)]
struct Crc32q;

impl Instruction for Crc32q {
    #[inline]
    #[target_feature(enable = "sse4.2")]
    unsafe fn word(self, crc: u32, word: u64) -> u32 {
        _mm_crc32_u64(u64::from(crc), word) as u32
    }
    #[inline]
    #[target_feature(enable = "sse4.2")]
    unsafe fn byte(self, crc: u32, byte: u8) -> u32 {
        _mm_crc32_u8(crc, byte)
    }
    #[inline]
    #[target_feature(enable = "sse4.2,pclmulqdq")]
    unsafe fn shift(self, crc: u32, by: Shift) -> u32 {
        let factor = _mm_cvtsi64_si128(i64::from(by.for_clmul));
        let product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(i64::from(crc)), factor, 0);
        _mm_crc32_u64(0, _mm_cvtsi128_si64(product) as u64) as u32
    }
}

/// The CRC-32C of `data`, by three streams of `crc32q`.
#[inline]
#[target_feature(enable = "sse4.2,pclmulqdq")]
pub(crate) fn crc32q(data: &[u8]) -> u32 {
    // SAFETY: this function has the features.
    unsafe { streams::three_streams(Crc32q, data, 0) }
}

/// The two factors that move a 128-bit lane `bits` towards the end.
#[derive(Clone, Copy)]
pub(crate) struct Distance {
    low: i64,
    high: i64,
}

const fn distance(bits: u64) -> Distance {
    Distance {
        low: ((x_to_the(bits + 32) as u64) << 1) as i64,
        high: ((x_to_the(bits - 32) as u64) << 1) as i64,
    }
}

/// `BLOCKS[n - 1]`: a distance of `n` blocks of 64 bytes.
pub(crate) const BLOCKS: [Distance; 4] =
    [distance(512), distance(1024), distance(1536), distance(2048)];
/// From each lane of the last register but the last lane to its end.
const LANES: [Distance; 3] = [distance(384), distance(256), distance(128)];

/// The longest message of [`folded_short`].
pub(crate) const SHORT_MAX: usize = 256;

/// `AFTER_ZEROS[n]`: the initial register after `n` zero bytes. The CRC is linear, so a short
/// message is folded from a register of 0, and this is `XORed` in at the end.
static AFTER_ZEROS: [u32; SHORT_MAX + 1] = {
    let mut registers = [!0; SHORT_MAX + 1];
    let mut n = 1;
    while n <= SHORT_MAX {
        registers[n] = after_zero_byte(registers[n - 1]);
        n += 1;
    }
    registers
};

/// `MASKS[size + 64 * block]`: which bytes of one of the four blocks before the end of a message
/// belong to it.
static MASKS: [u64; SHORT_MAX + 3 * 64 + 1] = {
    let mut masks = [0; SHORT_MAX + 3 * 64 + 1];
    let mut entry = 0;
    while entry < masks.len() {
        // Bytes of the message from the beginning of the block on.
        let bytes = (entry as i64) - 192;
        masks[entry] = match bytes {
            ..=0 => 0,
            1..=63 => !0 << (64 - bytes),
            _ => !0,
        };
        entry += 1;
    }
    masks
};

#[repr(align(64))]
struct Aligned([u8; 192]);

/// The 64 bytes from `64 - k` hold the initial value `ff ff ff ff` at byte `k`, cut where the
/// register ends; the 64 bytes after them hold what was cut, for the next register.
static INITIAL: Aligned = Aligned({
    let mut bytes = [0; 192];
    bytes[64] = 255;
    bytes[65] = 255;
    bytes[66] = 255;
    bytes[67] = 255;
    bytes
});

/// A distance in all four lanes of a register.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn factors(by: Distance) -> __m512i {
    _mm512_broadcast_i32x4(_mm_set_epi64x(by.high, by.low))
}

/// `a`, moved by the distance whose factors `k` holds, XOR `b`.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(crate) fn fold(a: __m512i, k: __m512i, b: __m512i) -> __m512i {
    // 0x96 is the truth table of a XOR of three.
    _mm512_ternarylogic_epi64::<0x96>(
        _mm512_clmulepi64_epi128(a, k, 0x00),
        _mm512_clmulepi64_epi128(a, k, 0x11),
        b,
    )
}

/// The last 64 bytes as a CRC register: the lanes move to the end and meet there.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,vpclmulqdq,sse4.2,pclmulqdq")]
pub(crate) fn reduce(last: __m512i) -> u32 {
    let [a, b, c] = LANES;
    let k = _mm512_set_epi64(0, 0, c.high, c.low, b.high, b.low, a.high, a.low);
    let lanes = fold(last, k, _mm512_maskz_mov_epi64(0xc0, last));
    let halves =
        _mm256_xor_si256(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
    let lane = _mm_xor_si128(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    _mm_crc32_u64(
        _mm_crc32_u64(0, _mm_cvtsi128_si64(lane) as u64),
        _mm_extract_epi64(lane, 1) as u64,
    ) as u32
}

/// # Safety
/// 64 bytes at `from` are readable.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn load(from: *const u8) -> __m512i {
    // SAFETY: the caller promises the bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(from.cast()) }
}

/// The CRC-32C of 4 to 256 bytes without a branch on the size: sizes of small batches vary from one
/// to the next, and one misprediction costs as much as the whole sum. Four masked loads, folded side
/// by side.
///
/// # Safety
/// `from` is readable for `size` bytes, and `size` is 4 to [`SHORT_MAX`].
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,vpclmulqdq,sse4.2,pclmulqdq,bmi2")]
pub(crate) unsafe fn folded_short(from: *const u8, size: usize) -> u32 {
    let first = from.wrapping_add(size).wrapping_sub(SHORT_MAX);
    for line in 0..4 {
        _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(PREFETCH + 64 * line).cast());
    }
    let masked = |block: usize| {
        let mask = MASKS[size + 64 * block];
        // SAFETY: only bytes of the message are unmasked; AVX-512 does not touch the others.
        unsafe { _mm512_maskz_loadu_epi8(mask, first.wrapping_add(64 * block).cast()) }
    };
    let last = fold(masked(2), factors(BLOCKS[0]), masked(3));
    let last = fold(masked(1), factors(BLOCKS[1]), last);
    let last = fold(masked(0), factors(BLOCKS[2]), last);
    !(reduce(last) ^ AFTER_ZEROS[size])
}

/// The CRC-32C of `data`, by folding.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,vpclmulqdq,sse4.2,pclmulqdq,bmi2")]
pub(crate) fn folded(data: &[u8]) -> u32 {
    match data.len() {
        // SAFETY: this function has the features.
        0..=3 => !unsafe { streams::one_stream(Crc32q, !0, data) },
        // SAFETY: the bytes of the slice are readable, and as many as asked for.
        4..=SHORT_MAX => unsafe { folded_short(data.as_ptr(), data.len()) },
        // SAFETY: as above.
        _ => unsafe { Sum::<4>::begin(data.as_ptr(), data.len()).finish() },
    }
}

/// How far ahead of its cursor a sum prefetches: a fifth faster when the data are not in cache. 4 KiB,
/// which is another page, and more gain nothing.
const PREFETCH: usize = 1536;

/// A sum in progress, in `N` registers side by side: one step is `N` blocks of 64 bytes.
pub(crate) struct Sum<const N: usize> {
    /// `N` registers if there are whole steps, else the first alone.
    registers: [__m512i; N],
    /// The bytes not yet summed, whole steps.
    cursor: *const u8,
    /// Bytes left at `cursor`.
    left: usize,
    has_steps: bool,
}

impl<const N: usize> Sum<N> {
    /// Begins a sum over `size` bytes. The first load is masked at the front, and the initial value
    /// `XORed` in where the message begins; then single blocks, until whole steps are left.
    ///
    /// # Safety
    /// `from` is readable for `size` bytes as long as the sum lives, and `size` is at least 4.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,vpclmulqdq,sse4.2,pclmulqdq,bmi2")]
    pub(crate) unsafe fn begin(from: *const u8, size: usize) -> Sum<N> {
        let all = size.div_ceil(64);
        let first = size - (all - 1) * 64;
        let initial = INITIAL.0.as_ptr();
        let one = factors(BLOCKS[0]);
        let mut registers = [_mm512_setzero_si512(); N];
        // SAFETY: the masked load touches the first `first` bytes only; every other load takes one
        // of the `all - 1` whole blocks after them. `first` is 1..=64, so both loads of `INITIAL`
        // are inside its 192 bytes.
        unsafe {
            let mut register =
                _mm512_maskz_loadu_epi8(!0 << (64 - first), from.wrapping_sub(64 - first).cast());
            register = _mm512_xor_si512(register, load(initial.add(first)));
            let (mut cursor, mut blocks) = (from.add(first), all - 1);
            if blocks > 0 {
                register = fold(
                    register,
                    one,
                    _mm512_xor_si512(load(cursor), load(initial.add(64 + first))),
                );
                cursor = cursor.add(64);
                blocks -= 1;
                while blocks % N != 0 {
                    register = fold(register, one, load(cursor));
                    cursor = cursor.add(64);
                    blocks -= 1;
                }
            }
            let has_steps = blocks > 0;
            if has_steps {
                register = fold(register, one, load(cursor));
                for (k, register) in registers.iter_mut().enumerate().skip(1) {
                    *register = load(cursor.add(64 * k));
                }
                cursor = cursor.add(64 * N);
                blocks -= N;
            }
            registers[0] = register;
            Sum { registers, cursor, left: 64 * blocks, has_steps }
        }
    }

    /// Bytes not yet summed.
    #[inline(always)]
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Sums one step, if any is left.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,vpclmulqdq,sse4.2,pclmulqdq,bmi2")]
    pub(crate) fn step(&mut self) {
        if self.left == 0 {
            return;
        }
        let all = factors(BLOCKS[N - 1]);
        for (k, register) in self.registers.iter_mut().enumerate() {
            _mm_prefetch::<_MM_HINT_T0>(self.cursor.wrapping_add(PREFETCH + 64 * k).cast());
            // SAFETY: `left` bytes are readable, whole steps.
            *register = unsafe { fold(*register, all, load(self.cursor.add(64 * k))) };
        }
        self.cursor = self.cursor.wrapping_add(64 * N);
        self.left -= 64 * N;
    }

    /// Sums as many steps as `bytes` are, if as many are left.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,vpclmulqdq,sse4.2,pclmulqdq,bmi2")]
    pub(crate) fn advance(&mut self, bytes: usize) {
        let stop = self.left.saturating_sub(bytes);
        while self.left > stop {
            self.step();
        }
    }

    /// The CRC-32C of all bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,vpclmulqdq,sse4.2,pclmulqdq,bmi2")]
    pub(crate) fn finish(mut self) -> u32 {
        self.advance(usize::MAX);
        let one = factors(BLOCKS[0]);
        let mut register = self.registers[0];
        if self.has_steps {
            for next in &self.registers[1..] {
                register = fold(register, one, *next);
            }
        }
        !reduce(register)
    }
}
