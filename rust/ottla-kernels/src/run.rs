//! Consecutive batches in one pass: header, CRC and walk of each while it is in cache.
//!
//! The level is chosen once a call, and everything below it is inlined into one function per level
//! and target.

use crate::crc32c;
use crate::header::{BatchHeader, CRC_START};
use crate::level::Level;
use crate::walk::fast::{self, Shifts};
use crate::walk::{Record, Shape, Sink};

/// How far a run came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Where it stopped: the end of the data, or the first batch that is not ordinary or not right.
    pub position: usize,
    /// Batches before that.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
}

/// Who takes the records of each batch.
///
/// # Safety
///
/// The sink that [`sink`](Target::sink) returns has room for `record_count` records of the data given
/// to [`begin`](Target::begin), until the next call of any method.
pub unsafe trait Target {
    /// What takes the records of one batch.
    type Sink: Sink;

    /// Positions the target can hold: batches that end beyond are not taken.
    const MAX_POSITION: usize;

    /// The batches that follow are of this data: what positions of their records count in.
    #[inline(always)]
    fn begin(&mut self, data: &[u8]) {
        let _ = data;
    }

    /// Makes room for the records of a batch. It is not proven yet: what the sink takes counts only
    /// after `done`.
    fn sink(&mut self, header: &BatchHeader) -> Self::Sink;

    /// The batch of the last sink is right.
    ///
    /// # Safety
    ///
    /// That sink was made for this header, and has got every record.
    unsafe fn done(&mut self, header: &BatchHeader);
}

/// Takes nothing: the run only checks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

// SAFETY: it does nothing with what it takes.
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

/// Another target, and a function that sees the header of every right batch and what the target
/// has of it.
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

/// A function that sees every record, with its index in the batch, before the batch is proven.
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

/// Checks the batches of `data` from `from` on, and gives their records to `target`, as long as
/// they are ordinary ([`BatchHeader::is_ordinary`]), whole, and right by CRC and by every record.
///
/// # Examples
///
/// ```
/// use ottla_kernels::{Level, Nothing, Run, run};
///
/// let found = run(Level::best(), b"no batch", 0, &mut Nothing);
/// assert_eq!(found, Run { position: 0, batches: 0, records: 0 });
/// ```
pub fn run<T: Target>(level: Level, data: &[u8], from: usize, target: &mut T) -> Run {
    let data = &data[..data.len().min(T::MAX_POSITION)];
    target.begin(data);
    match level.usable() {
        // SAFETY: `usable` says that the CPU has the instructions of the level.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86::run_avx512(data, from, target) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Bmi2 => unsafe { x86::run_bmi2(data, from, target) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Sse42 => unsafe { x86::run_sse42(data, from, target) },
        level => each_batch(data, from, target, |header, shape, sink| {
            crc32c::crc32c_at(level, body(data, header)) == header.crc
                // SAFETY: `each_batch` gives the sink of the batch whose shape it is; shifts need
                // no instruction.
                && unsafe { fast::walk_alone(Shifts, data, shape, sink) }
        }),
    }
}

/// Headers and CRCs of the batches of magic 2 in `data` from `from` on, whatever their records are:
/// stops where no whole batch of magic 2 begins, where a CRC is wrong, or where `on_batch`, which
/// sees every batch that is right so far, says `false`.
pub fn crc_only_run(
    level: Level,
    data: &[u8],
    from: usize,
    mut on_batch: impl FnMut(&BatchHeader) -> bool,
) -> Run {
    let level = level.usable();
    let mut run = Run { position: from, ..Run::default() };
    while let Some(header) = BatchHeader::parse(data, run.position) {
        if crc32c::crc32c_at(level, body(data, &header)) != header.crc || !on_batch(&header) {
            break;
        }
        run.batches += 1;
        run.records += u64::try_from(header.record_count).unwrap_or(0);
        run.position = header.end;
    }
    run
}

/// Walks the records of a decompressed payload, which is nothing but records, and gives them to
/// `target`: whether all are right. `header` gives the record count and the timestamps.
///
/// `false` means that the complete rules must decide, as with [`run`].
pub fn walk_payload<T: Target>(
    level: Level,
    payload: &[u8],
    header: &BatchHeader,
    target: &mut T,
) -> bool {
    let Some(shape) =
        Shape::of_payload(header, payload).filter(|_| payload.len() <= T::MAX_POSITION)
    else {
        return false;
    };
    target.begin(payload);
    let sink = target.sink(header);
    let walked = match level.usable() {
        // SAFETY: `usable` says that the CPU has the instructions; the sink was made for the count
        // of the shape.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 | Level::Bmi2 => unsafe { x86::walk_bmi2(payload, shape, sink) },
        // SAFETY: shifts need no instruction; the sink was made for the count of the shape.
        _ => unsafe { fast::walk_alone(Shifts, payload, shape, sink) },
    };
    if walked {
        // SAFETY: a walk that succeeds gave the sink every record.
        unsafe { target.done(header) };
    }
    walked
}

/// The bytes under the CRC.
#[inline(always)]
fn body<'a>(data: &'a [u8], header: &BatchHeader) -> &'a [u8] {
    &data[header.position + CRC_START..header.end]
}

/// The loop of every level. `is_right` gets the header of an ordinary batch, its shape, and the
/// sink made for it.
#[inline(always)]
fn each_batch<T: Target>(
    data: &[u8],
    from: usize,
    target: &mut T,
    mut is_right: impl FnMut(&BatchHeader, Shape, T::Sink) -> bool,
) -> Run {
    let mut run = Run { position: from, ..Run::default() };
    while let Some(header) = BatchHeader::ordinary_at(data, run.position) {
        let Some(shape) = Shape::of_batch(&header) else {
            break;
        };
        let sink = target.sink(&header);
        if !is_right(&header, shape, sink) {
            break;
        }
        // SAFETY: a walk that succeeds gave the sink every record.
        unsafe { target.done(&header) };
        run.batches += 1;
        run.records += header.record_count as u64;
        run.position = header.end;
    }
    run
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Run, Target, body, each_batch};
    use crate::crc32c::x86::{SHORT_MAX, crc32q, folded_short};
    use crate::walk::fast::{self, Bmi2, Shifts};
    use crate::walk::{Shape, Sink, fused};

    #[target_feature(enable = "sse4.2,pclmulqdq")]
    pub(super) fn run_sse42<T: Target>(data: &[u8], from: usize, target: &mut T) -> Run {
        each_batch(data, from, target, |header, shape, sink| {
            crc32q(body(data, header)) == header.crc
                // SAFETY: `each_batch` gives the sink of the batch whose shape it is; shifts need
                // no instruction.
                && unsafe { fast::walk_alone(Shifts, data, shape, sink) }
        })
    }

    #[target_feature(enable = "sse4.2,pclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn run_bmi2<T: Target>(data: &[u8], from: usize, target: &mut T) -> Run {
        each_batch(data, from, target, |header, shape, sink| {
            crc32q(body(data, header)) == header.crc
                // SAFETY: `each_batch` gives the sink of the batch whose shape it is; this function
                // has BMI2.
                && unsafe { fast::walk_alone(Bmi2, data, shape, sink) }
        })
    }

    #[target_feature(enable = "sse4.2,pclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn walk_bmi2<S: Sink>(data: &[u8], shape: Shape, sink: S) -> bool {
        // SAFETY: as the caller promises; this function has BMI2.
        unsafe { fast::walk_alone(Bmi2, data, shape, sink) }
    }

    #[target_feature(
        enable = "avx512f,avx512vl,avx512bw,vpclmulqdq,sse4.2,pclmulqdq,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub(super) fn run_avx512<T: Target>(data: &[u8], from: usize, target: &mut T) -> Run {
        each_batch(data, from, target, |header, shape, sink| {
            let body = body(data, header);
            if body.len() <= SHORT_MAX {
                // SAFETY: the body of a batch has more than 4 bytes, and few records fit into so
                // short a one; the sink is the one of the batch.
                return unsafe {
                    folded_short(body.as_ptr(), body.len()) == header.crc
                        && fast::walk_alone(Bmi2, data, shape, sink)
                };
            }
            // Blocks of 64 bytes a record: CRC and walk should end together, in as few steps as can
            // be. A step of two blocks fits records of up to 128 and of up to 256 bytes, one of
            // three the others: two blocks a step on records of 140 bytes have half of the CRC left
            // when the walk is done. SAFETY: `each_batch` gives the sink of the batch whose shape
            // it is.
            unsafe {
                match body.len().div_ceil(64 * shape.count) {
                    0..=2 => fused::is_right::<_, 2, true>(data, header, shape, sink),
                    3 => fused::is_right::<_, 3, true>(data, header, shape, sink),
                    4 => fused::is_right::<_, 2, false>(data, header, shape, sink),
                    _ => fused::is_right::<_, 3, false>(data, header, shape, sink),
                }
            }
        })
    }
}
