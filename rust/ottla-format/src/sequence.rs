//! Sequence numbers of idempotent producers, which wrap from 2^31−1 to 0 (KIP-98).

/// Batches of a producer whose sequence numbers a partition remembers, to recognise repeats
/// (`ProducerStateEntry`).
pub const REMEMBERED_BATCHES: usize = 5;

/// The sequence number `n` after `sequence`. Wraps on hostile input as Kafka's own arithmetic does.
#[inline]
pub fn increment_sequence(sequence: i32, n: i32) -> i32 {
    if sequence > i32::MAX.wrapping_sub(n) {
        n.wrapping_sub(i32::MAX.wrapping_sub(sequence)).wrapping_sub(1)
    } else {
        sequence.wrapping_add(n)
    }
}

/// The sequence number `n` before `sequence`: the inverse of [`increment_sequence`] over 0 to 2^31−1.
#[inline]
pub fn decrement_sequence(sequence: i32, n: i32) -> i32 {
    if sequence < n {
        i32::MAX.wrapping_sub(n.wrapping_sub(sequence)).wrapping_add(1)
    } else {
        sequence.wrapping_sub(n)
    }
}
