//! How far a segment that is still written can be followed: whole batches whose offsets continue each
//! other, by their headers alone.

use crate::source::{Source, Window};
use ottla_format::attributes::DELETE_HORIZON;
use ottla_format::header::{
    Envelope, Header, LOG_OVERHEAD, MIN_SIZE, MIN_SIZE_V2, NONE, RECORD_BATCH_OVERHEAD, field,
    read_i32,
};
use std::io;

/// Where a segment is followed from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Position where a batch begins.
    pub position: u64,
    /// No batch that ends after this position is whole.
    pub stop: u64,
    /// Ends with the batch that reaches this number of bytes.
    pub max_bytes: u64,
    /// The base offset that the first batch must have; any without it.
    pub next_offset: Option<i64>,
    /// Whether offsets may be missing between batches, as compaction leaves them.
    pub has_holes: bool,
}

/// A run of batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Position where the last of them begins, or where the run began if there is none.
    pub last: u64,
    /// Position where the last of them ends.
    pub end: u64,
    /// How many there are.
    pub batches: u64,
    /// Base offset of the first one; of magic 0 and 1 the only offset of the envelope.
    pub first_offset: Option<i64>,
    /// The last offset plus one, or what was expected if there is none.
    pub next_offset: Option<i64>,
    /// Leader epoch of the last one of magic 2, −1 without one.
    pub leader_epoch: i32,
    /// Batches that the cleaner rewrote: fewer records than offsets, or a delete horizon.
    pub rewritten: u64,
    /// A sum, modulo 2^64, of hashes of their headers. Sums of parts add up to that of the whole.
    pub digest: u64,
    /// Why the run ends.
    pub stop: Stop,
}

/// Why a run of batches ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At the position to stop at.
    End,
    /// Enough bytes were followed.
    Limit,
    /// A batch that is not whole, or fewer bytes than an envelope.
    Torn,
    /// Bytes that are no header of a batch.
    NoBatch,
    /// Offsets before this base offset are missing.
    Hole(i64),
    /// A batch begins at this offset, which comes before the one expected.
    Back(i64),
}

impl Stop {
    /// `end`, `limit`, `torn`, `no-batch`, `hole` or `back`.
    pub fn name(self) -> &'static str {
        match self {
            Self::End => "end",
            Self::Limit => "limit",
            Self::Torn => "torn",
            Self::NoBatch => "no-batch",
            Self::Hole(_) => "hole",
            Self::Back(_) => "back",
        }
    }

    /// The offset of the batch that the run ends before, where it is that offset that ends it.
    pub fn offset(self) -> Option<i64> {
        match self {
            Self::Hole(offset) | Self::Back(offset) => Some(offset),
            _ => None,
        }
    }
}

/// What the headers of a batch say that matters here.
struct Step {
    end: u64,
    first_offset: i64,
    next_offset: i64,
    /// Whether `first_offset` is that of its first record; below magic 2 it may be the last one's.
    has_base_offset: bool,
    leader_epoch: i32,
    is_rewritten: bool,
    hash: u64,
}

/// Follows the batches of a segment by their headers alone. Ends at bytes that cannot be a batch and at
/// a batch that is not whole: both may still be written. Ends before a batch whose offset does not
/// continue the one before. `read_bytes` are read at once.
///
/// # Errors
/// What keeps the source from being read.
///
/// # Examples
/// ```
/// use ottla_log::framing::{Range, Stop, follow_batches};
///
/// // Magic 0, offset 0, a size field of 14, and half of the next batch.
/// let mut log = vec![0; 40];
/// (log[11], log[33], log[37]) = (14, 1, 14);
/// let range =
///     Range { position: 0, stop: 40, max_bytes: u64::MAX, next_offset: None, has_holes: false };
/// let found = follow_batches(&log.as_slice(), range, 4096)?;
/// assert_eq!((found.end, found.next_offset, found.stop), (26, Some(1), Stop::Torn));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn follow_batches(source: &dyn Source, range: Range, read_bytes: u64) -> io::Result<Followed> {
    let mut progress = |_| true;
    let mut window = Window::new(source, Vec::new(), read_bytes, &mut progress)?;
    let enough = range.position.saturating_add(range.max_bytes);
    let mut found = Followed {
        last: range.position,
        end: range.position,
        batches: 0,
        first_offset: None,
        next_offset: range.next_offset,
        leader_epoch: NONE as i32,
        rewritten: 0,
        digest: 0,
        stop: Stop::End,
    };
    loop {
        let step = if found.end >= range.stop {
            Err(Stop::End)
        } else if found.end >= enough {
            Err(Stop::Limit)
        } else {
            let head = window.look(found.end, RECORD_BATCH_OVERHEAD);
            step(head, found.end, range.stop)
                .and_then(|step| step.after(found.next_offset, range.has_holes))
        };
        match step {
            Ok(step) => found.add(&step),
            Err(stop) => {
                found.stop = stop;
                break;
            }
        }
    }
    window.take_failure().map_or(Ok(found), Err)
}

impl Step {
    /// Returns this batch if it continues the one before, or why it does not.
    fn after(self, expected: Option<i64>, has_holes: bool) -> Result<Self, Stop> {
        let offset = self.first_offset;
        match expected {
            Some(expected) if offset < expected => Err(Stop::Back(offset)),
            Some(expected) if offset > expected && self.has_base_offset && !has_holes => {
                Err(Stop::Hole(offset))
            }
            _ => Ok(self),
        }
    }
}

impl Followed {
    fn add(&mut self, step: &Step) {
        self.last = self.end;
        self.end = step.end;
        self.batches = self.batches.saturating_add(1);
        self.first_offset = self.first_offset.or(Some(step.first_offset));
        self.next_offset = Some(step.next_offset);
        self.leader_epoch = step.leader_epoch;
        self.rewritten = self.rewritten.saturating_add(u64::from(step.is_rewritten));
        self.digest = self.digest.wrapping_add(step.hash);
    }
}

/// Returns the batch that begins with `head`, or why there is none.
fn step(head: &[u8], position: u64, stop: u64) -> Result<Step, Stop> {
    let Some(envelope) = Envelope::read(head, 0) else { return Err(Stop::Torn) };
    let least = if envelope.magic == 2 { MIN_SIZE_V2 } else { MIN_SIZE };
    if envelope.size < least || !(0..=2).contains(&envelope.magic) || envelope.offset < 0 {
        return Err(Stop::NoBatch);
    }
    let size = u64::try_from(envelope.size).map_err(|_| Stop::NoBatch)?;
    let end = position
        .checked_add(LOG_OVERHEAD as u64)
        .and_then(|start| start.checked_add(size))
        .filter(|&end| end <= stop)
        .ok_or(Stop::Torn)?;
    if envelope.magic < 2 {
        // Bytes 12 to 16 are the CRC.
        let crc = read_i32(head, field::PARTITION_LEADER_EPOCH).ok_or(Stop::Torn)?;
        return Ok(Step {
            end,
            first_offset: envelope.offset,
            next_offset: envelope.offset.checked_add(1).ok_or(Stop::NoBatch)?,
            has_base_offset: false,
            leader_epoch: NONE as i32,
            is_rewritten: false,
            hash: hash(envelope.offset, crc as u32, envelope.size, i32::from(envelope.magic)),
        });
    }
    let header = Header::read(head, 0).ok_or(Stop::Torn)?;
    let delta = i64::from(header.last_offset_delta);
    let last_offset = header.base_offset.checked_add(delta).filter(|_| delta >= 0);
    Ok(Step {
        end,
        first_offset: header.base_offset,
        next_offset: last_offset.and_then(|last| last.checked_add(1)).ok_or(Stop::NoBatch)?,
        has_base_offset: true,
        leader_epoch: header.partition_leader_epoch,
        is_rewritten: i64::from(header.record_count) <= delta
            || header.attributes & DELETE_HORIZON != 0,
        hash: hash(
            header.base_offset,
            header.crc,
            header.batch_length,
            header.partition_leader_epoch,
        ),
    })
}

/// A hash of what makes a batch this one: the CRC stands for all bytes it covers, and the fields that
/// it does not cover are beside it.
fn hash(offset: i64, crc: u32, size: i32, epoch: i32) -> u64 {
    let body = u64::from(crc) << 32 | u64::from(size as u32);
    let place = (offset as u64).rotate_left(7) ^ u64::from(epoch as u32) << 40;
    mix(mix(body).wrapping_add(place))
}

/// The finalizer of `SplitMix64`: every bit of the result depends on every bit given.
fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
