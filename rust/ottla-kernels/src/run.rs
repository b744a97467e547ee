//! Consecutive batches in one pass: header, CRC and walk of each while it is in cache.
//!
//! The level is chosen once per call, and everything below it is inlined into one function per level
//! and target.

use crate::crc32c;
use crate::header::{BatchHeader, CRC_START, HEADER_BYTES};
use crate::level::Level;
use crate::target::{Nothing, Target};
use crate::walk::fast;
use crate::walk::groups::Shifts;
use crate::walk::{Shape, Sink};

/// How far a run went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Where it stopped: the end of the data, or the first batch that is not ordinary or not correct.
    pub position: usize,
    /// Batches before that.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
}

/// Checks the batches of `data` from position `from` and passes their records to `target`, as long as
/// they are ordinary ([`BatchHeader::is_ordinary`]), whole, and correct by CRC and in every record.
///
/// # Examples
///
/// ```
/// use ottla_kernels::{Level, Nothing, Run, run};
///
/// let found = run(Level::best(), b"no batch", 0, &mut Nothing);
/// assert_eq!(found, Run { position: 0, batches: 0, records: 0 });
/// ```
#[allow(clippy::indexing_slicing, reason = "sliced to at most its own length")]
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
            is_right_at(level, data, header, shape, sink)
        }),
    }
}

/// [`run`] without a target. The choice of a level alone is compiled where it is called.
///
/// # Examples
///
/// ```
/// use ottla_kernels::{Level, check_run};
///
/// assert_eq!(check_run(Level::best(), b"no batch", 0).batches, 0);
/// ```
#[inline(always)]
pub fn check_run(level: Level, data: &[u8], from: usize) -> Run {
    match level.usable() {
        // SAFETY: `usable` says that the CPU has the instructions of the level.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86::check_avx512(data, from) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Bmi2 => unsafe { x86::check_bmi2(data, from) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Sse42 => unsafe { x86::check_sse42(data, from) },
        level => check_at(level, data, from),
    }
}

#[inline(never)]
fn check_at(level: Level, data: &[u8], from: usize) -> Run {
    each_batch(data, from, &mut Nothing, |header, shape, sink| {
        is_right_at(level, data, header, shape, sink)
    })
}

/// Checks one batch of `data` as [`run`] does, by the header that was parsed of it. Returns whether it is
/// ordinary, whole, and correct; then all its records went to `target`.
///
/// # Examples
///
/// ```
/// use ottla_kernels::{BatchHeader, Level, Nothing, is_right};
///
/// let header = BatchHeader::read(&[0; 61], 0, 61);
/// assert!(!is_right(Level::best(), b"no batch", &header, &mut Nothing));
/// ```
#[inline(always)]
pub fn is_right<T: Target>(
    level: Level,
    data: &[u8],
    header: &BatchHeader,
    target: &mut T,
) -> bool {
    let is_whole = header.end <= data.len().min(T::MAX_POSITION)
        && header.position.checked_add(HEADER_BYTES).is_some_and(|records| records <= header.end);
    if !is_whole || !header.is_ordinary() {
        return false;
    }
    target.begin(data);
    match level.usable() {
        // SAFETY: `usable` says that the CPU has the instructions of the level.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { x86::one_avx512(data, header, target) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Bmi2 => unsafe { x86::one_bmi2(data, header, target) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Sse42 => unsafe { x86::one_sse42(data, header, target) },
        level => one_batch(header, target, |header, shape, sink| {
            is_right_at(level, data, header, shape, sink)
        }),
    }
}

/// What every CPU can do: the batch of a sink, by shifts.
#[inline(always)]
fn is_right_at<S: Sink>(
    level: Level,
    data: &[u8],
    header: &BatchHeader,
    shape: Shape,
    sink: S,
) -> bool {
    crc32c::crc32c_at(level, body(data, header)) == header.crc
        // SAFETY: the sink is the one of the batch whose shape it is; shifts need no instruction.
        && unsafe { fast::walk_alone(Shifts, data, shape, sink) }
}

/// Checks headers and CRCs of the batches of magic 2 in `data` from position `from`, whatever their
/// records are. `on_batch` is called with every batch whose CRC is right. Stops where no whole batch of
/// magic 2 begins, where a CRC is wrong, or where `on_batch` returns `false`.
#[allow(clippy::arithmetic_side_effects, reason = "counts of batches inside `data`")]
pub fn crc_only_run(
    level: Level,
    data: &[u8],
    from: usize,
    on_batch: &mut dyn FnMut(&BatchHeader) -> bool,
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

/// Walks the records of a decompressed payload, which holds nothing else, and passes them to `target`.
/// `header` provides the record count and the timestamps. Returns whether all records are correct.
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
        // SAFETY: a walk that succeeds has passed every record to the sink.
        unsafe { target.done(header) };
    }
    walked
}

/// The bytes that the CRC covers.
#[inline(always)]
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a parsed batch lies inside `data`"
)]
fn body<'a>(data: &'a [u8], header: &BatchHeader) -> &'a [u8] {
    &data[header.position + CRC_START..header.end]
}

/// The loop of every level. `is_right` receives the header of an ordinary batch, its shape, and the
/// sink made for it.
#[inline(always)]
#[allow(clippy::arithmetic_side_effects, reason = "counts of batches inside `data`")]
fn each_batch<T: Target>(
    data: &[u8],
    from: usize,
    target: &mut T,
    mut is_right: impl FnMut(&BatchHeader, Shape, T::Sink) -> bool,
) -> Run {
    let mut run = Run { position: from, ..Run::default() };
    while let Some(header) = BatchHeader::ordinary_at(data, run.position) {
        if !one_batch(&header, target, &mut is_right) {
            break;
        }
        run.batches += 1;
        run.records += header.record_count as u64;
        run.position = header.end;
    }
    run
}

/// One batch of every level, as [`each_batch`].
#[inline(always)]
fn one_batch<T: Target>(
    header: &BatchHeader,
    target: &mut T,
    mut is_right: impl FnMut(&BatchHeader, Shape, T::Sink) -> bool,
) -> bool {
    let Some(shape) = Shape::of_batch(header) else {
        return false;
    };
    let sink = target.sink(header);
    if !is_right(header, shape, sink) {
        return false;
    }
    // SAFETY: a walk that succeeds has passed every record to the sink.
    unsafe { target.done(header) };
    true
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::crc32c::x86::{SHORT_MAX, crc32q, folded_short};
    use crate::header::BatchHeader;
    use crate::run::{Run, body, each_batch, one_batch};
    use crate::target::{Nothing, Target};
    use crate::walk::fast;
    use crate::walk::groups::{Bmi2, Shifts};
    use crate::walk::{Shape, Sink, fused};

    /// Three functions of a level: for a run of batches, for one that only checks, and for one batch.
    macro_rules! level {
        ($run:ident, $check:ident, $one:ident, $features:literal, |$data:ident, $header:ident, $shape:ident, $sink:ident|
         $is_right:expr) => {
            #[target_feature(enable = $features)]
            pub(super) fn $run<T: Target>($data: &[u8], from: usize, target: &mut T) -> Run {
                each_batch($data, from, target, |$header, $shape, $sink| $is_right)
            }

            #[target_feature(enable = $features)]
            pub(super) fn $check($data: &[u8], from: usize) -> Run {
                each_batch($data, from, &mut Nothing, |$header, $shape, $sink| $is_right)
            }

            #[target_feature(enable = $features)]
            pub(super) fn $one<T: Target>(
                $data: &[u8],
                header: &BatchHeader,
                target: &mut T,
            ) -> bool {
                one_batch(header, target, |$header, $shape, $sink| $is_right)
            }
        };
    }

    // In all of them the sink is the one of the batch whose shape it is.
    level!(run_sse42, check_sse42, one_sse42, "sse4.2,pclmulqdq", |data, header, shape, sink| {
        crc32q(body(data, header)) == header.crc
            // SAFETY: shifts need no instruction.
            && unsafe { fast::walk_alone(Shifts, data, shape, sink) }
    });

    level!(
        run_bmi2,
        check_bmi2,
        one_bmi2,
        "sse4.2,pclmulqdq,bmi1,bmi2,lzcnt,popcnt",
        |data, header, shape, sink| {
            crc32q(body(data, header)) == header.crc
                // SAFETY: this function has BMI2.
                && unsafe { fast::walk_alone(Bmi2, data, shape, sink) }
        }
    );

    #[target_feature(enable = "sse4.2,pclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn walk_bmi2<S: Sink>(data: &[u8], shape: Shape, sink: S) -> bool {
        // SAFETY: as the caller promises; this function has BMI2.
        unsafe { fast::walk_alone(Bmi2, data, shape, sink) }
    }

    level!(
        run_avx512,
        check_avx512,
        one_avx512,
        "avx512f,avx512vl,avx512bw,vpclmulqdq,sse4.2,pclmulqdq,bmi1,bmi2,lzcnt,popcnt",
        |data, header, shape, sink| {
            let body = body(data, header);
            if body.len() <= SHORT_MAX {
                // SAFETY: the body of a batch has more than 4 bytes, and few records fit into so
                // short a one.
                return unsafe {
                    folded_short(body.as_ptr(), body.len()) == header.crc
                        && fast::walk_alone(Bmi2, data, shape, sink)
                };
            }
            // CRC and walk should end together, in as few steps as possible. A step of two blocks of 64
            // bytes suits records of up to 128 and of up to 256 bytes, one of three blocks the others:
            // with two, records of 140 bytes would leave half of the CRC when the walk is done. A batch
            // has at least one record, so its count is not 0, and fewer than its bytes.
            // SAFETY: the sink is the one of the batch.
            #[allow(clippy::arithmetic_side_effects)]
            unsafe {
                match body.len().div_ceil(64 * shape.count) {
                    0..=2 => fused::is_right::<_, 2, true>(data, header, shape, sink),
                    3 => fused::is_right::<_, 3, true>(data, header, shape, sink),
                    4 => fused::is_right::<_, 2, false>(data, header, shape, sink),
                    _ => fused::is_right::<_, 3, false>(data, header, shape, sink),
                }
            }
        }
    );
}
