//! The arithmetic of polynomials over GF(2), at compile time.

/// The polynomial, bits reflected.
pub(super) const POLYNOMIAL: u32 = 0x82F6_3B78;

/// The register after eight zero bits.
#[allow(clippy::arithmetic_side_effects, reason = "counts to 8")]
pub(super) const fn after_zero_byte(mut crc: u32) -> u32 {
    let mut bit = 0;
    while bit < 8 {
        crc = times_x(crc);
        bit += 1;
    }
    crc
}

/// `a * x mod P`, bits reflected: one more zero bit.
pub(super) const fn times_x(a: u32) -> u32 {
    (a >> 1) ^ (POLYNOMIAL & (a & 1).wrapping_neg())
}

/// `x^n mod P`, bits reflected.
#[allow(clippy::arithmetic_side_effects, reason = "counts to `n`")]
pub(super) const fn x_to_the(n: u64) -> u32 {
    let (mut power, mut i) = (0x8000_0000, 0);
    while i < n {
        power = times_x(power);
        i += 1;
    }
    power
}
