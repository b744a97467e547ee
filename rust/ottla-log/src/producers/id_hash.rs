//! The hash of producer ids: one multiplication.
//!
//! Clients choose ids. Which of them collide follows from two numbers that no client knows.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Hashes producer ids.
#[derive(Clone, Debug)]
pub(super) struct IdHash {
    seed: u64,
    factor: u64,
}

impl Default for IdHash {
    fn default() -> Self {
        let secret = RandomState::new();
        Self { seed: secret.hash_one(0), factor: secret.hash_one(1) | 1 }
    }
}

impl BuildHasher for IdHash {
    type Hasher = IdHasher;

    #[inline]
    fn build_hasher(&self) -> IdHasher {
        IdHasher { hash: self.seed, factor: self.factor }
    }
}

pub(super) struct IdHasher {
    hash: u64,
    factor: u64,
}

impl Hasher for IdHasher {
    #[inline]
    fn write_i64(&mut self, id: i64) {
        let product = u128::from(self.hash ^ id as u64).wrapping_mul(self.factor.into());
        self.hash = product as u64 ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_i64(byte.into());
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_that_are_alike_are_spread() {
        let hash = IdHash { seed: 0x243f_6a88_85a3_08d3, factor: 0x9e37_79b9_7f4a_7c15 };
        for shift in [0, 8, 16, 32, 47] {
            let hashes: Vec<_> = (0..1i64 << 12).map(|id| hash.hash_one(id << shift)).collect();
            // The lowest bits choose a place in a table, the highest tell those apart that share one.
            let low: HashSet<_> = hashes.iter().map(|hash| hash & 0xffff).collect();
            let high: HashSet<_> = hashes.iter().map(|hash| hash >> 57).collect();
            assert!(low.len() > 3 << 10, "shift {shift}: {} places", low.len());
            assert_eq!(high.len(), 128, "shift {shift}");
        }
    }

    #[test]
    fn two_tables_place_ids_differently() {
        assert_ne!(IdHash::default().hash_one(7), IdHash::default().hash_one(7));
    }
}
