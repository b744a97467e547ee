//! The checker: batches by the kernels where they accept them, by the rules where they do not.

use super::header_rules::check_header;
use super::record_rules::check_records;
use super::{CheckResult, Level};
use crate::attributes::DELETE_HORIZON;
use crate::batch::{self, BatchInfo, Payload};
use crate::batches::is_zero_tail;
use crate::compression::Codecs;
use crate::error::{Error, ErrorKind, Result};
use crate::header::{Envelope, NONE, Next};
use crate::limits::Limits;
use crate::record::read_record;
use ottla_kernels::{BatchHeader, Nothing, Timestamps};

/// Where the whole batches of a buffer end.
pub(super) struct WholeBatches {
    pub(super) position: usize,
    /// Records before that.
    pub(super) records: u64,
    /// Why no batch begins there; `None` at the end of the buffer.
    pub(super) ending: Option<Ending>,
}

/// Why no whole batch begins at a place.
pub(super) enum Ending {
    /// It would have so many bytes at least, which are not all there.
    Cut {
        /// Counted from that place.
        needed: usize,
    },
    /// Its framing is wrong.
    Fault(Error),
}

/// Checks batches. Holds the contexts and the arena of the codecs; one per thread.
pub struct Checker {
    level: Level,
    limits: Limits,
    codecs: Codecs,
    kernels: ottla_kernels::Level,
}

impl Checker {
    /// A checker at `level`, with the best kernels of this machine.
    pub fn new(level: Level, limits: Limits) -> Self {
        Self::with_kernels(level, limits, ottla_kernels::Level::best())
    }

    /// The same with these kernels, for tests and benchmarks.
    pub fn with_kernels(level: Level, limits: Limits, kernels: ottla_kernels::Level) -> Self {
        Self { level, limits, codecs: Codecs::new(limits), kernels }
    }

    /// The level in force.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Checks at another level from now on.
    pub fn set_level(&mut self, level: Level) {
        self.level = level;
    }

    /// The codecs, for other uses on the same thread.
    pub fn codecs(&mut self) -> &mut Codecs {
        &mut self.codecs
    }

    /// The bounds in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The kernels in use.
    pub fn kernels(&self) -> ottla_kernels::Level {
        self.kernels
    }

    /// Checks a buffer of batches up to its end. Returns the number of records in it. Zeros to the end
    /// of the buffer are neither a batch nor a fault.
    ///
    /// # Errors
    /// The first fault, and [`ErrorKind::TruncatedBatch`] when the buffer ends inside a batch.
    pub fn check_all(&mut self, data: &[u8]) -> Result<u64> {
        let WholeBatches { position, records, ending } = self.check_whole_batches(data)?;
        let fault = match ending {
            None => return Ok(records),
            Some(Ending::Cut { needed }) => {
                let (needed, left) = (needed as u64, data.len().saturating_sub(position) as u64);
                Error::new(ErrorKind::TruncatedBatch { needed, left }, position)
            }
            Some(Ending::Fault(fault)) => fault,
        };
        if is_zero_tail(data, position) { Ok(records) } else { Err(fault) }
    }

    /// Checks the batches that lie wholly in a buffer, up to its end or to where no whole batch begins.
    ///
    /// # Errors
    /// The first fault of a batch.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "counts of records and positions in one buffer, whose batches end inside it"
    )]
    pub(super) fn check_whole_batches(&mut self, data: &[u8]) -> Result<WholeBatches> {
        let (mut position, mut records) = (0, 0);
        let mut faults = Vec::new();
        while position < data.len() {
            let run = match self.level {
                Level::Crc => {
                    let limit = self.limits.batch_bytes;
                    ottla_kernels::crc_only_run(self.kernels, data, position, &mut |header| {
                        (header.end - header.position) as u64 <= limit
                    })
                }
                _ => ottla_kernels::check_run(self.kernels, data, position),
            };
            records += run.records;
            position = run.position;
            if position >= data.len() {
                break;
            }
            let ending = match Envelope::next(data, position) {
                Ok(Next::Batch(envelope)) => {
                    records += self.check(data, position, &envelope, &mut faults).records;
                    if let Some(&fault) = faults.first() {
                        return Err(fault);
                    }
                    position += envelope.total();
                    continue;
                }
                Ok(Next::End { needed, .. }) => Ending::Cut { needed },
                Err(error) => Ending::Fault(error),
            };
            return Ok(WholeBatches { position, records, ending: Some(ending) });
        }
        Ok(WholeBatches { position, records, ending: None })
    }

    /// Checks the batch at `at`, which lies wholly in `data`. Appends its faults, of records at most
    /// [`MAX_FAULTS_PER_BATCH`](crate::limits::MAX_FAULTS_PER_BATCH); positions count from the start
    /// of `data`.
    pub fn check(
        &mut self,
        data: &[u8],
        at: usize,
        envelope: &Envelope,
        faults: &mut Vec<Error>,
    ) -> CheckResult {
        let known = faults.len();
        let mut checked = CheckResult::default();
        match envelope.batch(data, at) {
            Err(error) => faults.push(error),
            Ok(whole) => {
                if let Err(error) = self.check_whole(whole, envelope, faults, &mut checked) {
                    faults.push(error);
                }
                for fault in faults.iter_mut().skip(known) {
                    *fault = fault.within(at);
                }
            }
        }
        checked
    }

    fn check_whole(
        &mut self,
        whole: &[u8],
        envelope: &Envelope,
        faults: &mut Vec<Error>,
        checked: &mut CheckResult,
    ) -> Result<()> {
        let (size, limit) = (whole.len() as u64, self.limits.batch_bytes);
        if size > limit {
            return Err(Error::new(ErrorKind::BatchTooLarge { declared: size, limit }, 0));
        }
        let info = BatchInfo::read(whole, 0, envelope)?;
        batch::verify(whole)?;
        checked.crc_ok = true;
        checked.records = info.record_count.map_or(1, |count| u64::from(count.max(0) as u32));
        if self.level == Level::Crc {
            return Ok(());
        }
        checked.records = 0;
        if self.level == Level::Full && info.magic >= 2 {
            check_header(&info, faults);
        }
        let kernels = self.kernels;
        let (level, limits) = (self.level, self.limits);
        let (records, start, inflated) = match batch::payload(&info, whole)? {
            // A plain record of magic 0 or 1 is its own body; its checksum was the batch's.
            Payload::Plain { bytes, start } => (bytes, start, false),
            Payload::Compressed { codec, reading, bytes, start } => {
                // Two calls, because the first borrows the codecs for as long as its bytes live.
                let inflated = self.codecs.decompress(codec, reading, bytes).map(<[u8]>::len);
                inflated.map_err(|kind| Error::new(kind, start))?;
                checked.client_fault = self.codecs.client_fault().map(|fault| (fault, None));
                (self.codecs.inflated(), start, true)
            }
        };
        if inflated
            && !info.is_control()
            && let Some(header) = BatchHeader::parse(whole, 0)
            && header.last_offset_delta.checked_add(1) == Some(header.record_count)
            && walk_payload(kernels, level, records, &header, checked)
        {
            checked.records = u64::from(header.record_count as u32);
            return Ok(());
        }
        let start = start as u64;
        let at = |position: u64| if inflated { start } else { position.saturating_add(start) };
        check_records(&info, records, (level, limits), faults, checked)
            .map_err(|error| Error { position: at(error.position), ..error })
    }
}

/// Whether the kernels accept every record; at level `full` their timestamps are taken down.
fn walk_payload(
    kernels: ottla_kernels::Level,
    level: Level,
    records: &[u8],
    header: &BatchHeader,
    checked: &mut CheckResult,
) -> bool {
    if level < Level::Full {
        return ottla_kernels::walk_payload(kernels, records, header, &mut Nothing);
    }
    let mut timestamps = Timestamps::default();
    let is_accepted = ottla_kernels::walk_payload(kernels, records, header, &mut timestamps);
    if is_accepted {
        checked.maximum_unreached = !reaches_maximum(header, &timestamps);
        checked.earliest_timestamp = earliest_timestamp(header, &timestamps, records);
    }
    is_accepted
}

/// The earliest timestamp of the records of a batch that was walked, where they have their own and
/// not all of them have none. `records` is their payload.
#[inline]
pub fn earliest_timestamp(
    header: &BatchHeader,
    timestamps: &Timestamps,
    records: &[u8],
) -> Option<i64> {
    let earliest = header.base_timestamp.saturating_add(timestamps.min_delta());
    if header.is_log_append_time() || header.max_timestamp == NONE {
        return None;
    }
    // Deltas of 0 or more may begin above 0, where the base is no timestamp of a record; and a record
    // without a timestamp hides those that are earlier than the others.
    if earliest == NONE || header.attributes & DELETE_HORIZON != 0 {
        return earliest_of_records(header, records);
    }
    Some(earliest)
}

#[cold]
fn earliest_of_records(header: &BatchHeader, records: &[u8]) -> Option<i64> {
    let (mut position, mut earliest) = (0usize, None);
    let limits = Limits::default();
    for index in 0..header.record_count.max(0) as u32 {
        let (record, end) = read_record(records, position, index, &limits).ok()?;
        let timestamp = header.base_timestamp.wrapping_add(record.timestamp_delta);
        if timestamp != NONE {
            earliest = Some(earliest.map_or(timestamp, |before: i64| before.min(timestamp)));
        }
        position = end;
    }
    earliest
}

/// Whether a batch that was walked has a record with the header's maximum timestamp, or needs none:
/// Kafka begins with −1 when it looks for the maximum, so a maximum of −1 needs no record.
#[inline]
pub fn reaches_maximum(header: &BatchHeader, timestamps: &Timestamps) -> bool {
    header.is_log_append_time()
        || header.max_timestamp == NONE
        || timestamps.index_of_max().is_some()
}
