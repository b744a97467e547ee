//! Seven-bit groups of varints, joined by one instruction or by shifts.

/// The seven payload bits of each byte.
pub(super) const PAYLOAD: u64 = 0x7f7f_7f7f_7f7f_7f7f;
/// The bits that say whether a varint continues.
pub(super) const CONTINUES: u64 = 0x8080_8080_8080_8080;

/// How seven-bit groups are joined.
pub(crate) trait Groups: Copy {
    /// The payload bits of `word` under `mask`, which is `PAYLOAD` up to some byte, side by side.
    ///
    /// # Safety
    /// The CPU has the instructions used.
    unsafe fn join(self, word: u64, mask: u64) -> u64;
    /// The same for four bytes, halved: the value of a zigzag number that is not negative.
    ///
    /// # Safety
    /// The CPU has the instructions used.
    unsafe fn join_half(self, word: u32, mask: u32) -> u32;
    /// The bits of `word` under `mask`, which are contiguous.
    ///
    /// # Safety
    /// The CPU has the instructions used.
    unsafe fn pick(self, word: u64, mask: u64) -> u64;
}

/// By shifts and masks: any CPU.
#[derive(Clone, Copy)]
pub(crate) struct Shifts;

impl Groups for Shifts {
    #[inline(always)]
    unsafe fn join(self, word: u64, mask: u64) -> u64 {
        let x = word & mask;
        let x = (x & 0x007f_007f_007f_007f) | (x & 0x7f00_7f00_7f00_7f00) >> 1;
        let x = (x & 0x0000_3fff_0000_3fff) | (x & 0x3fff_0000_3fff_0000) >> 2;
        (x & 0x0fff_ffff) | (x & 0x0fff_ffff_0000_0000) >> 4
    }
    #[inline(always)]
    unsafe fn join_half(self, word: u32, mask: u32) -> u32 {
        let x = word & mask;
        let x = (x & 0x007f_007f) | (x & 0x7f00_7f00) >> 1;
        ((x & 0x3fff) | (x & 0x3fff_0000) >> 2) >> 1
    }
    #[inline(always)]
    unsafe fn pick(self, word: u64, mask: u64) -> u64 {
        (word & mask) >> (mask.trailing_zeros() & 63)
    }
}

/// By `pext`.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Bmi2;

#[cfg(target_arch = "x86_64")]
impl Groups for Bmi2 {
    #[inline]
    #[target_feature(enable = "bmi2")]
    unsafe fn join(self, word: u64, mask: u64) -> u64 {
        std::arch::x86_64::_pext_u64(word, mask)
    }
    #[inline]
    #[target_feature(enable = "bmi2")]
    unsafe fn join_half(self, word: u32, mask: u32) -> u32 {
        std::arch::x86_64::_pext_u32(word, mask & !1)
    }
    #[inline]
    #[target_feature(enable = "bmi2")]
    unsafe fn pick(self, word: u64, mask: u64) -> u64 {
        std::arch::x86_64::_pext_u64(word, mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_joined_alike_by_shifts_and_by_pext() {
        let mut word = 1u64;
        for _ in 0..10_000 {
            word = word
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            for bytes in 1..=8 {
                let mask = PAYLOAD >> (64 - 8 * bytes);
                let groups = (0..bytes).map(|k| (word >> (8 * k) & 0x7f) << (7 * k));
                let wanted = groups.fold(0, |joined, group| joined | group);
                // SAFETY: shifts need no instruction.
                assert_eq!(unsafe { Shifts.join(word, mask) }, wanted);
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("bmi2") {
                    // SAFETY: just asked for.
                    assert_eq!(unsafe { Bmi2.join(word, mask) }, wanted);
                }
                if bytes <= 4 {
                    // SAFETY: shifts need no instruction.
                    let found = unsafe { Shifts.join_half(word as u32, mask as u32) };
                    assert_eq!(u64::from(found), wanted >> 1);
                    #[cfg(target_arch = "x86_64")]
                    if is_x86_feature_detected!("bmi2") {
                        // SAFETY: just asked for.
                        let found = unsafe { Bmi2.join_half(word as u32, mask as u32) };
                        assert_eq!(u64::from(found), wanted >> 1);
                    }
                }
            }
        }
    }
}
