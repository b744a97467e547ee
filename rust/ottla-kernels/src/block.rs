//! The memory of columns: one block for all columns of a result. A dropped block goes to a pool for the
//! next result, because fresh pages cost more than the decoding that fills them.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Where columns begin, as Arrow recommends; also a cache line.
const ALIGNMENT: usize = 64;
/// The pool holds at most this many blocks, each of at most so many bytes.
const MAX_POOL_BLOCKS: usize = 4;
const MAX_POOL_BLOCK_BYTES: usize = 64 << 20;

/// Unused blocks, the oldest first.
static POOL: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// Owned memory of one layout, uninitialised.
struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory.
unsafe impl Send for Memory {}

impl Memory {
    /// At least `size` bytes, which must not be 0: from the pool if a block fits without waste.
    fn of(size: usize) -> Memory {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        let fits =
            |memory: &Memory| memory.layout.size() >= size && memory.layout.size() / 4 <= size;
        if let Some(index) = pool.iter().position(fits) {
            return pool.remove(index);
        }
        drop(pool);
        let Ok(layout) = Layout::from_size_align(size, ALIGNMENT) else {
            handle_alloc_error(Layout::new::<u8>());
        };
        // SAFETY: the size is not 0.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout)
        };
        Memory { start, layout }
    }

    /// Puts the memory into the pool.
    fn recycle(self) {
        if self.layout.size() > MAX_POOL_BLOCK_BYTES {
            return;
        }
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        // A full pool drops its oldest block: a pool of the wrong sizes would be of no use.
        let oldest = (pool.len() >= MAX_POOL_BLOCKS).then(|| pool.remove(0));
        pool.push(self);
        drop(pool);
        drop(oldest);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and nobody else owns it.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Columns of `W` fixed widths with room for `capacity` rows each, one after the other.
pub(crate) struct Block<const W: usize> {
    memory: ManuallyDrop<Memory>,
    widths: [usize; W],
    capacity: usize,
}

// SAFETY: it owns its memory, and only `&mut self` methods write it.
unsafe impl<const W: usize> Send for Block<W> {}
// SAFETY: as above.
unsafe impl<const W: usize> Sync for Block<W> {}

impl<const W: usize> Block<W> {
    /// Room for at least `rows` rows.
    pub(crate) fn new(widths: [usize; W], rows: usize) -> Block<W> {
        // Whole cache lines even for the narrowest column, so that each column begins aligned.
        let capacity = rows.max(1).checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX);
        let size = capacity.saturating_mul(widths.iter().sum());
        Block { memory: ManuallyDrop::new(Memory::of(size)), widths, capacity }
    }

    /// The rows there is room for.
    #[inline(always)]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Where column `K` begins.
    #[inline(always)]
    pub(crate) fn column<const K: usize>(&self) -> *mut u8 {
        self.column_at(K)
    }

    #[inline(always)]
    fn column_at(&self, k: usize) -> *mut u8 {
        let before: usize = self.widths.iter().take(k).sum();
        self.memory.start.as_ptr().wrapping_add(before.wrapping_mul(self.capacity))
    }

    /// Makes room for `need` rows, and keeps the first `rows`.
    #[cold]
    #[inline(never)]
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "both blocks have room for `rows` rows of each width"
    )]
    pub(crate) fn grow(&mut self, rows: usize, need: usize) {
        let bigger = Block::new(self.widths, need.max(self.capacity.saturating_mul(2)));
        for (k, width) in self.widths.iter().enumerate() {
            // SAFETY: both blocks have room for `rows` rows of each column, and they are two.
            unsafe {
                std::ptr::copy_nonoverlapping(self.column_at(k), bigger.column_at(k), rows * width);
            };
        }
        *self = bigger;
    }
}

impl<const W: usize> Drop for Block<W> {
    fn drop(&mut self) {
        // SAFETY: the memory is not used after this.
        unsafe { ManuallyDrop::take(&mut self.memory) }.recycle();
    }
}

/// What a [`Column`] keeps alive.
trait Owner: Send + Sync {}
impl<const W: usize> Owner for Block<W> {}

/// The bytes of one finished column; the columns of one result share their memory.
#[derive(Clone)]
pub struct Column {
    _owner: Arc<dyn Owner>,
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: nobody writes the memory any more, and the owner is `Send` and `Sync`.
unsafe impl Send for Column {}
// SAFETY: as above.
unsafe impl Sync for Column {}

impl Column {
    /// Column `K` of a block, its first `rows` rows.
    ///
    /// # Safety
    /// These rows are initialised.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "there is a column `K`, with room for `capacity` rows"
    )]
    pub(crate) unsafe fn new<const W: usize, const K: usize>(
        block: &Arc<Block<W>>,
        rows: usize,
    ) -> Column {
        let rows = rows.min(block.capacity);
        // SAFETY: a place in a block is not null.
        let start = unsafe { NonNull::new_unchecked(block.column::<K>()) };
        Column { _owner: Arc::<Block<W>>::clone(block), start, size: rows * block.widths[K] }
    }
}

impl AsRef<[u8]> for Column {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `new` was promised that the bytes are initialised; the owner keeps them alive and
        // unchanged.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }
}

impl std::fmt::Debug for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Column").field("size", &self.size).finish_non_exhaustive()
    }
}
