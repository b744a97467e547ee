//! A value hidden from the optimiser.

/// A copy that the optimiser knows nothing about; costs no instruction.
#[inline(always)]
pub(crate) fn opaque(value: usize) -> usize {
    opaque64(value as u64) as usize
}

/// The same with 64 bits on every CPU.
#[inline(always)]
pub(crate) fn opaque64(value: u64) -> u64 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut copy = value;
        // SAFETY: the assembly is a comment.
        unsafe {
            std::arch::asm!(
                "/* {0} */",
                inout(reg) copy,
                options(pure, nomem, nostack, preserves_flags)
            );
        };
        copy
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    value
}
