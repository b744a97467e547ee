//! Where the records of a run go.

use crate::header::BatchHeader;
use crate::walk::{Record, Sink};

/// Receives the records of each batch.
///
/// # Safety
///
/// The sink that [`sink`](Target::sink) returns has room for `record_count` records of the data passed
/// to [`begin`](Target::begin), until the next call of any method.
pub unsafe trait Target {
    /// Receives the records of one batch.
    type Sink: Sink;

    /// The highest position the target can hold: batches that end beyond it are not accepted.
    const MAX_POSITION: usize;

    /// The batches that follow are in this data, in which the positions of their records count.
    #[inline(always)]
    fn begin(&mut self, data: &[u8]) {
        let _ = data;
    }

    /// Makes room for the records of a batch. The batch is not proven yet: what the sink receives counts
    /// only after `done`.
    fn sink(&mut self, header: &BatchHeader) -> Self::Sink;

    /// The batch of the last sink is correct.
    ///
    /// # Safety
    ///
    /// That sink was made for this header, and has received every record.
    unsafe fn done(&mut self, header: &BatchHeader);
}

/// Ignores the records: the run only checks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

// SAFETY: it does nothing with a record.
unsafe impl Sink for Nothing {
    #[inline(always)]
    unsafe fn put(self, _: &[u8], _: usize, _: Record) {}
}

// SAFETY: its sink needs no room.
unsafe impl Target for Nothing {
    type Sink = Nothing;
    const MAX_POSITION: usize = usize::MAX;
    #[inline(always)]
    fn sink(&mut self, _: &BatchHeader) -> Nothing {
        Nothing
    }
    #[inline(always)]
    unsafe fn done(&mut self, _: &BatchHeader) {}
}

/// Another target, and a function that is called with the header of every correct batch and that target.
#[derive(Debug)]
pub struct EachBatch<'a, T, F> {
    target: &'a mut T,
    on_batch: F,
}

impl<'a, T: Target, F: FnMut(&BatchHeader, &T)> EachBatch<'a, T, F> {
    /// Records go to `target`, headers to `on_batch`, with the target.
    pub fn new(target: &'a mut T, on_batch: F) -> Self {
        EachBatch { target, on_batch }
    }
}

// SAFETY: the sink is the inner target's, made for the same header.
unsafe impl<T: Target, F: FnMut(&BatchHeader, &T)> Target for EachBatch<'_, T, F> {
    type Sink = T::Sink;
    const MAX_POSITION: usize = T::MAX_POSITION;
    #[inline(always)]
    fn begin(&mut self, data: &[u8]) {
        self.target.begin(data);
    }
    #[inline(always)]
    fn sink(&mut self, header: &BatchHeader) -> T::Sink {
        self.target.sink(header)
    }
    #[inline(always)]
    unsafe fn done(&mut self, header: &BatchHeader) {
        // SAFETY: as the caller promises.
        unsafe { self.target.done(header) };
        (self.on_batch)(header, self.target);
    }
}

/// A function that is called with every record and its index, before the batch is proven.
#[derive(Debug)]
pub struct EachRecord<F> {
    on_record: F,
}

impl<F: FnMut(usize, Record)> EachRecord<F> {
    /// Records go to `on_record`.
    pub fn new(on_record: F) -> Self {
        EachRecord { on_record }
    }
}

/// Calls the function of an [`EachRecord`].
#[derive(Debug)]
pub struct RecordCall<F>(*mut F);

impl<F> Clone for RecordCall<F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F> Copy for RecordCall<F> {}

// SAFETY: it keeps nothing itself.
unsafe impl<F: FnMut(usize, Record)> Sink for RecordCall<F> {
    #[inline(always)]
    unsafe fn put(self, _: &[u8], index: usize, record: Record) {
        // SAFETY: the walk borrows the target that the pointer was made from, and nobody else uses
        // it meanwhile.
        unsafe { (*self.0)(index, record) }
    }
}

// SAFETY: its sink needs no room.
unsafe impl<F: FnMut(usize, Record)> Target for EachRecord<F> {
    type Sink = RecordCall<F>;
    const MAX_POSITION: usize = usize::MAX;
    #[inline(always)]
    fn sink(&mut self, _: &BatchHeader) -> RecordCall<F> {
        RecordCall(&raw mut self.on_record)
    }
    #[inline(always)]
    unsafe fn done(&mut self, _: &BatchHeader) {}
}
