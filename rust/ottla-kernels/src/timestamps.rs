//! What a leader needs to know about the timestamps of one batch, by two comparisons per record that
//! are hardly ever true.

use crate::header::BatchHeader;
use crate::target::Target;
use crate::walk::{Record, Sink};

/// The smallest timestamp delta of the last batch, and its first record with the largest one that its
/// header allows.
///
/// # Examples
///
/// ```
/// use ottla_kernels::{Level, Timestamps, run};
///
/// let mut timestamps = Timestamps::default();
/// run(Level::best(), b"no batch", 0, &mut timestamps);
/// assert_eq!((timestamps.min_delta(), timestamps.index_of_max()), (0, None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    min_delta: i64,
    /// The delta to look for; once it is found, one that no record has.
    awaited_delta: i64,
    index_of_max: usize,
}

/// No correct record has this timestamp delta.
const NO_DELTA: i64 = i64::MIN;

impl Default for Timestamps {
    fn default() -> Timestamps {
        Timestamps { min_delta: 0, awaited_delta: NO_DELTA, index_of_max: usize::MAX }
    }
}

impl Timestamps {
    /// The smallest timestamp delta, 0 if none is negative.
    pub fn min_delta(&self) -> i64 {
        self.min_delta
    }

    /// The first record whose timestamp is the header's maximum; `None` if the maximum is above them
    /// all, and for `LogAppendTime`.
    pub fn index_of_max(&self) -> Option<usize> {
        (self.index_of_max != usize::MAX).then_some(self.index_of_max)
    }

    #[cold]
    #[inline(never)]
    fn lower(&mut self, delta: i64) {
        self.min_delta = delta;
    }

    #[cold]
    #[inline(never)]
    fn found(&mut self, index: usize) {
        (self.index_of_max, self.awaited_delta) = (index, NO_DELTA);
    }
}

/// Receives the records of one batch.
#[derive(Clone, Copy, Debug)]
pub struct TimestampSink(*mut Timestamps);

// SAFETY: it keeps nothing itself.
unsafe impl Sink for TimestampSink {
    #[inline(always)]
    unsafe fn put(self, _: &[u8], index: usize, record: Record) {
        // SAFETY: the walk borrows the target that the pointer was made from, and nobody else uses
        // it meanwhile.
        let timestamps = unsafe { &mut *self.0 };
        if record.timestamp_delta < timestamps.min_delta {
            timestamps.lower(record.timestamp_delta);
        }
        if record.timestamp_delta == timestamps.awaited_delta {
            timestamps.found(index);
        }
    }
}

// SAFETY: its sink needs no room.
unsafe impl Target for Timestamps {
    type Sink = TimestampSink;
    const MAX_POSITION: usize = usize::MAX;

    #[inline(always)]
    fn sink(&mut self, header: &BatchHeader) -> TimestampSink {
        let largest = header.max_delta().filter(|_| !header.is_log_append_time());
        let awaited_delta = largest.unwrap_or(NO_DELTA);
        *self = Timestamps { awaited_delta, ..Timestamps::default() };
        TimestampSink(self)
    }

    #[inline(always)]
    unsafe fn done(&mut self, _: &BatchHeader) {}
}
