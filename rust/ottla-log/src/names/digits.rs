//! Numbers in names.

/// Digits of an offset in a name.
pub(super) const OFFSET_DIGITS: usize = 20;
/// Digits of an epoch in a name.
pub(super) const EPOCH_DIGITS: usize = 10;
/// The digits a name begins with, at least one and at most so many, and the rest.
pub(super) fn split_digits(name: &[u8], max_digits: usize) -> Option<(&[u8], &[u8])> {
    let end = name.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(name.len());
    if (1..=max_digits).contains(&end) { name.split_at_checked(end) } else { None }
}
