//! What copies of a partition are compared by, taken in the pass over the log: a sum of hashes for
//! each block of offsets.
//!
//! A batch belongs to the block in which it begins, whatever segment it is in, so copies that rolled
//! at other offsets have the same fingerprint. Sums do not depend on the order of the batches, so the
//! fingerprints of parts add up to that of the whole, wherever it was cut. Blocks are as long as they
//! must be for the bound on their number, and never shorter than [`MIN_SHIFT`] says, so they follow
//! from the batches alone.

use ottla_format::batch::BatchInfo;
use ottla_log::sorting::sort_by_key;
use serde::{Deserialize, Deserializer, Serialize};
use std::ops::RangeInclusive;

/// Binary logarithm of the fewest offsets in a block: fewer would not make it cheaper to read the
/// block again.
pub const MIN_SHIFT: u32 = 10;

/// Most blocks of a fingerprint. For a difference of one batch about a thousandth of the log is then
/// read again.
pub const MAX_BLOCKS: usize = 1024;

/// Binary logarithm of the most offsets in a block: then there are two, one of the offsets below 0.
const MAX_SHIFT: u32 = 63;

/// A position in a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogPosition {
    /// Index of the segment.
    pub segment: u32,
    /// Bytes from its start.
    pub position: u64,
}

/// The batches that begin in a range of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Block {
    /// Its offsets, shifted right by the shift of the fingerprint.
    number: i64,
    /// Of the hashes of its batches, modulo 2^128.
    sum: u128,
    pub(crate) batches: u64,
    /// Where the first of them begins and the last one ends.
    pub(crate) start: LogPosition,
    pub(crate) end: LogPosition,
}

impl Block {
    fn add(&mut self, other: &Self) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.batches = self.batches.saturating_add(other.batches);
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
    }

    /// Whether the batches are the same.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        (self.sum, self.batches) == (other.sum, other.batches)
    }
}

/// The fingerprint of a log or a part of it.
///
/// # Examples
/// ```
/// use ottla_audit::Fingerprint;
/// use ottla_format::batch::BatchInfo;
///
/// # let empty = BatchInfo {
/// #     position: 0, size: 61, magic: 2, base_offset: 0, last_offset: 0, partition_leader_epoch: 0,
/// #     crc: 0, attributes: 0, base_timestamp: 0, max_timestamp: 0, producer_id: -1,
/// #     producer_epoch: -1, base_sequence: -1, record_count: Some(1),
/// # };
/// let batch = |base_offset| BatchInfo { base_offset, ..empty };
/// let (mut left, mut right, mut whole) =
///     (Fingerprint::default(), Fingerprint::default(), Fingerprint::default());
/// left.observe(&batch(0));
/// right.observe(&batch(1));
/// whole.observe(&batch(1));
/// whole.observe(&batch(0));
/// left.append(right);
/// assert_eq!(left, whole);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    #[serde(deserialize_with = "bounded_shift")]
    shift: u32,
    /// In the order of their numbers, at most [`MAX_BLOCKS`] unless they have the largest shift.
    blocks: Vec<Block>,
}

/// Bytes from elsewhere may claim a shift beyond the bits of an offset.
fn bounded_shift<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    u32::deserialize(deserializer).map(|shift| shift.min(MAX_SHIFT))
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self::with_shift(MIN_SHIFT)
    }
}

impl Fingerprint {
    /// An empty one with blocks of `1 << shift` offsets at least.
    pub(crate) fn with_shift(shift: u32) -> Self {
        Self { shift: shift.min(MAX_SHIFT), blocks: Vec::new() }
    }

    /// Adds a batch of segment 0.
    #[inline]
    pub fn observe(&mut self, batch: &BatchInfo) {
        self.observe_at(batch, 0);
    }

    #[inline]
    pub(crate) fn observe_at(&mut self, batch: &BatchInfo, segment: u32) {
        let end = batch.position.saturating_add(batch.size);
        let block = Block {
            number: key(batch) >> self.shift,
            sum: hash(batch),
            batches: 1,
            start: LogPosition { segment, position: batch.position },
            end: LogPosition { segment, position: end },
        };
        match self.blocks.last_mut() {
            Some(last) if last.number == block.number => last.add(&block),
            _ => self.insert(&block),
        }
    }

    #[cold]
    fn insert(&mut self, block: &Block) {
        match self.blocks.binary_search_by_key(&block.number, |known| known.number) {
            Ok(index) => {
                if let Some(known) = self.blocks.get_mut(index) {
                    known.add(block);
                }
            }
            Err(index) => {
                self.blocks.insert(index, *block);
                self.bound();
            }
        }
    }

    /// Lengthens blocks until they are few enough.
    fn bound(&mut self) {
        while self.blocks.len() > MAX_BLOCKS && self.shift < MAX_SHIFT {
            self.coarsen(self.shift.saturating_add(1));
        }
    }

    /// Lengthens blocks to `1 << shift` offsets, and joins those that then have one number.
    fn coarsen(&mut self, shift: u32) {
        let by = shift.saturating_sub(self.shift);
        self.shift = self.shift.saturating_add(by);
        for block in &mut self.blocks {
            block.number >>= by;
        }
        self.blocks.dedup_by(|next, before| {
            let is_same = next.number == before.number;
            if is_same {
                before.add(next);
            }
            is_same
        });
    }

    /// Adds the batches of another part of the same segment, or of another segment after
    /// [`Self::in_segment`].
    pub fn append(&mut self, mut other: Self) {
        let shift = self.shift.max(other.shift);
        self.coarsen(shift);
        other.coarsen(shift);
        self.blocks.append(&mut other.blocks);
        // Parts that follow each other share one block at most, so this is a merge.
        sort_by_key(&mut self.blocks, |block| block.number);
        self.coarsen(shift);
        self.bound();
    }

    /// Returns the same for a segment with another index.
    #[must_use]
    pub fn in_segment(mut self, segment: u32) -> Self {
        for block in &mut self.blocks {
            block.start.segment = segment;
            block.end.segment = segment;
        }
        self
    }

    /// Binary logarithm of the offsets of a block.
    pub(crate) fn shift(&self) -> u32 {
        self.shift
    }

    /// Returns the same with blocks of `1 << shift` offsets, if that is more.
    pub(crate) fn coarsened(&self, shift: u32) -> Self {
        let mut coarse = self.clone();
        coarse.coarsen(shift.min(MAX_SHIFT));
        coarse
    }

    /// Returns the block with a number, if a batch begins there.
    pub(crate) fn block(&self, number: i64) -> Option<&Block> {
        let index = self.blocks.binary_search_by_key(&number, |block| block.number).ok()?;
        self.blocks.get(index)
    }

    /// Returns the blocks of a run of numbers as one.
    pub(crate) fn span(&self, run: &RangeInclusive<i64>) -> Option<Block> {
        let first = self.blocks.partition_point(|block| block.number < *run.start());
        let mut blocks = self.blocks.iter().skip(first);
        let mut span = *blocks.next().filter(|block| run.contains(&block.number))?;
        for block in blocks.take_while(|block| run.contains(&block.number)) {
            span.add(block);
        }
        Some(span)
    }

    /// Numbers of the blocks in which batches begin.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = i64> + '_ {
        self.blocks.iter().map(|block| block.number)
    }

    /// How many blocks it has.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }
}

/// The offset whose block a batch is in. The first offset of a wrapper of magic 0 or 1 is only in its
/// records, so the last one stands for it.
#[inline]
pub(crate) fn key(batch: &BatchInfo) -> i64 {
    if batch.magic < 2 { batch.last_offset } else { batch.base_offset }
}

/// A hash of what makes a batch the same on every replica. The CRC stands for all bytes it covers;
/// followers keep the leader's offsets and epoch.
#[inline]
fn hash(batch: &BatchInfo) -> u128 {
    let bytes = u64::from(batch.crc) << 32 | u64::from(batch.partition_leader_epoch as u32);
    let first = multiply(key(batch) as u64 ^ 0x9e37_79b9_7f4a_7c15, !bytes);
    let folded = first as u64 ^ (first >> 64) as u64;
    let second =
        multiply(batch.last_offset as u64 ^ 0xd1b5_4a32_d192_ed03, folded ^ 0x8bb8_4b93_962e_acc9);
    second ^ first.rotate_left(64)
}

#[inline]
fn multiply(a: u64, b: u64) -> u128 {
    u128::from(a).wrapping_mul(u128::from(b))
}
