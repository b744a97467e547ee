//! The order in which Java's `HashMap` holds producers, which is the order of a snapshot's entries.
//!
//! Entries stand by bucket, and within a bucket in the order in which they came. (A bucket of a table
//! of 64 buckets or more becomes a tree once it holds more than eight entries, and may then begin
//! with another of them.) The order decides nothing but the bytes of the file.

/// `MIN_TREEIFY_CAPACITY`: below as many buckets the table grows where one holds too many entries.
const MIN_TREEIFY_CAPACITY: u64 = 64;

/// `TREEIFY_THRESHOLD`: entries of a bucket before it becomes a tree.
const TREEIFY_THRESHOLD: usize = 8;

/// `DEFAULT_INITIAL_CAPACITY`.
const INITIAL_BUCKETS: u64 = 16;

/// A `HashMap` by producer id, as far as the order of its entries depends on it.
#[derive(Clone, Debug)]
pub(super) struct JavaTable {
    /// How many entries were ever added.
    added: u64,
    /// A power of two.
    buckets: u64,
}

impl Default for JavaTable {
    fn default() -> Self {
        Self { added: 0, buckets: INITIAL_BUCKETS }
    }
}

impl JavaTable {
    /// How many entries were ever added, and the number of buckets.
    pub(super) fn parts(&self) -> (u64, u64) {
        (self.added, self.buckets)
    }

    /// The table of these [`parts`](Self::parts), if there can be one.
    pub(super) fn of(added: u64, buckets: u64) -> Option<Self> {
        let is_table = buckets.is_power_of_two() && buckets >= INITIAL_BUCKETS;
        is_table.then_some(Self { added, buckets })
    }

    /// Adds a producer to those that the table holds. Returns its number among all that were added.
    pub(super) fn add(
        &mut self,
        producer_id: i64,
        held: impl ExactSizeIterator<Item = i64>,
    ) -> u64 {
        let size = held.len() as u64;
        if self.buckets < MIN_TREEIFY_CAPACITY {
            let bucket = self.bucket(producer_id);
            if held.filter(|&id| self.bucket(id) == bucket).count() >= TREEIFY_THRESHOLD {
                self.double();
            }
        }
        let max_load = (self.buckets / 4).saturating_mul(3);
        if size >= max_load {
            self.double();
        }
        self.added = self.added.saturating_add(1);
        self.added
    }

    fn double(&mut self) {
        self.buckets = self.buckets.saturating_mul(2);
    }

    /// The bucket of a `Long`, by Java's hash of it.
    pub(super) fn bucket(&self, producer_id: i64) -> u64 {
        let folded = (producer_id ^ (producer_id as u64 >> 32) as i64) as u32;
        u64::from(folded ^ (folded >> 16)) & self.buckets.wrapping_sub(1)
    }
}
