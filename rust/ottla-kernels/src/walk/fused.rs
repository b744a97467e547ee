//! The CRC of a batch and its walk in one loop: they use different parts of the CPU, so the CRC costs
//! next to nothing.

#![allow(
    clippy::arithmetic_side_effects,
    reason = "the batch is longer than its header and has at least one record"
)]

use super::groups::Bmi2;
use super::{Shape, Sink, fast};
use crate::crc32c::x86::Sum;
use crate::header::{BatchHeader, CRC_START};

/// Whether the records of a batch and its CRC are correct. A step of the CRC is `N` blocks of 64
/// bytes; before each record as many steps run as the batch has on average, so that both end together.
/// `ONE` if that is one step.
///
/// Always inlined: as a function of its own, which the compiler makes of it where two targets have one
/// sink, it takes a seventh longer.
///
/// # Safety
/// `header` was parsed from `data` and is ordinary, `shape` is its shape, and `sink` was made for
/// it; the caller has AVX-512, `vpclmulqdq` and BMI2.
#[inline(always)]
pub(crate) unsafe fn is_right<S: Sink, const N: usize, const ONE: bool>(
    data: &[u8],
    header: &BatchHeader,
    shape: Shape,
    sink: S,
) -> bool {
    let from = header.position + CRC_START;
    // SAFETY: the batch is inside `data`, and longer than its header.
    let mut sum = unsafe { Sum::<N>::begin(data.as_ptr().add(from), header.end - from) };
    let step = 64 * N;
    let stride = step * sum.left().div_ceil(step * shape.count);
    // SAFETY: the caller has the features.
    let before_each = || unsafe { if ONE { sum.step() } else { sum.advance(stride) } };
    // SAFETY: as the caller promises.
    let walked = unsafe { fast::walk(Bmi2, data, shape, sink, before_each) };
    // SAFETY: the caller has the features.
    walked && unsafe { sum.finish() } == header.crc
}
