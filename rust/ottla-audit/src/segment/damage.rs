//! What to make of bytes that are no valid batch: a batch with one fault, a damaged range, or a tail.

use crate::segment::damage_findings::{self, TailKind};
use crate::segment::observation::BatchObservation;
use crate::segment::pass::Pass;
use crate::segment::step::HEAD_BYTES;
use crate::segment::tail::Tail;
use ottla_format::batch::BatchInfo;
use ottla_format::error::Error;
use ottla_format::header::{
    CRC_START, Envelope, Header, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, field,
};
use ottla_log::resync::header::{HeaderBounds, PlausibleHeader, is_beginning};
use ottla_log::resync::search::{Suspect, seems_to_begin};

/// Unwritten bytes of a torn write begin at a multiple of this.
const SECTOR_BYTES: u64 = 512;

/// Zeros from the beginning of a sector to the end of a batch that are no chance.
const MIN_SECTOR_ZEROS: u64 = 16;

impl Pass<'_, '_> {
    /// Steps over what stands at the position, which is no valid batch. `bad`: it is framed, but its
    /// CRC is wrong.
    pub(super) fn step_over_damage(&mut self, bad: Option<(BatchInfo, Error)>) {
        self.tally.before_damage();
        self.recent.clear();
        let bounds = self.bounds();
        if self.step_over_zeros(&bounds) || self.accept_wrong_magic(&bounds) {
            return;
        }
        let start = self.position;
        let head = self.window.hold(start, HEAD_BYTES);
        let suspect = Suspect::read(head, start, bad.map(|(info, _)| info.size), &bounds);
        if let Some((info, fault)) = bad
            && suspect.is_followed(&mut self.window, &bounds)
        {
            self.bad_batch(&info, &fault, suspect.header.as_ref());
            return;
        }
        let bad_end = bad.map(|(info, _)| start.saturating_add(info.size));
        let is_framed = bad_end.is_some_and(|end| self.is_batch_end(end, &bounds));
        let found = self.search.behind(&mut self.window, &suspect, is_framed, &bounds);
        if let Some(found) = found {
            match bad {
                Some((info, fault)) if bad_end == Some(found.position) => {
                    self.bad_batch(&info, &fault, suspect.header.as_ref());
                }
                _ if found.proves_suspect => self.wrong_size(found.position, suspect.header),
                _ => self.damaged_range(found.position),
            }
        } else if self.window.failure().is_some() {
            // What could not be read is no end of the file.
            self.position = self.window.end();
        } else if self.search.ends_with_source(&mut self.window, &suspect) {
            self.wrong_size(self.window.end(), suspect.header);
        } else {
            match bad {
                Some((info, fault)) if is_framed => {
                    self.bad_batch(&info, &fault, suspect.header.as_ref());
                }
                _ if suspect.header.is_some_and(|header| self.is_inside(header.total)) => {
                    self.damaged_range(self.window.end());
                }
                _ => self.cut_or_garbage_tail(suspect.header, &bounds),
            }
        }
    }

    /// Whether so many bytes from the position on are inside the source.
    fn is_inside(&self, bytes: u64) -> bool {
        self.position.saturating_add(bytes) <= self.window.end()
    }

    /// Where the zeros at the end of the source begin.
    fn zeros_from(&mut self) -> u64 {
        self.window.zeros_from(self.position)
    }

    /// Whether a batch seems to begin at `position`, or nothing but zeros or the end comes.
    pub(super) fn is_batch_end(&mut self, position: u64, bounds: &HeaderBounds) -> bool {
        seems_to_begin(&mut self.window, position, bounds)
            || (position < self.window.end() && position >= self.zeros_from())
    }

    /// Steps to the end of the source, if there is nothing but zeros.
    fn step_over_zeros(&mut self, bounds: &HeaderBounds) -> bool {
        if self.zeros_from() > self.position {
            return false;
        }
        if self.window.failure().is_some() {
            self.position = self.window.end();
        } else if self.may_be_an_offset() {
            self.cut_or_garbage_tail(None, bounds);
        } else {
            let (start, size) = self.take_tail();
            self.end_with_tail(start, start);
            self.tally.push(damage_findings::zero_tail(start, size, self.tally.context()));
        }
        true
    }

    /// Whether a few zeros at the end are more likely the first bytes of the offset of a batch that
    /// should follow.
    fn may_be_an_offset(&self) -> bool {
        let size = self.window.end().saturating_sub(self.position);
        let order = self.tally.order();
        let expected = order.first_unseen();
        size < 8
            && u64::from(expected.leading_zeros()) >= size.saturating_mul(8)
            && order.next_segment.is_none_or(|next| next > expected)
    }

    /// Accepts a batch of magic 2 whose only fault is another magic byte.
    fn accept_wrong_magic(&mut self, bounds: &HeaderBounds) -> bool {
        let start = self.position;
        let head = self.window.hold(start, RECORD_BATCH_OVERHEAD);
        let magic = head.get(field::MAGIC).map_or(2, |&magic| magic as i8);
        let Some(header) = Header::read(head, 0).filter(|_| magic != 2) else { return false };
        let Some(plausible) = PlausibleHeader::of_v2(&header, bounds) else { return false };
        if !self.is_inside(plausible.total) {
            return false;
        }
        let size = plausible.total as usize;
        let covered = self.window.hold(start, size).get(CRC_START..size);
        if covered.map(ottla_kernels::crc32c) != Some(header.crc) {
            return false;
        }
        let info = BatchInfo::from_header(&Header { magic: 2, ..header }, start);
        self.position = start.saturating_add(info.size);
        self.tally.on_valid_bytes(self.position);
        self.last_was_legacy = false;
        let records = u64::try_from(header.record_count).unwrap_or(0);
        self.tally.on_valid_batch(BatchObservation {
            info,
            records,
            control: None,
            has_base_offset: true,
            is_readable: true,
            earliest_timestamp: None,
        });
        self.tally.push(damage_findings::wrong_magic(&info, magic));
        true
    }

    /// Steps over one batch with a wrong CRC, behind which framing goes on.
    fn bad_batch(&mut self, info: &BatchInfo, fault: &Error, header: Option<&PlausibleHeader>) {
        let end = info.position.saturating_add(info.size);
        self.tally.count_bad_batch(info.size);
        let context = self.tally.context();
        if context.is_active && !context.stopped_cleanly && self.is_torn(end) {
            let zeros = self.zeros_from();
            self.position = self.window.end();
            self.end_with_tail(info.position, zeros);
            let finding = damage_findings::torn_batch(info, zeros, self.position);
            self.tally.on_damage(finding, header.map(PlausibleHeader::offsets));
            return;
        }
        let offsets = header.filter(|_| info.magic == 2).map(PlausibleHeader::offsets);
        self.tally.on_bad_batch(info);
        self.tally.on_damage(damage_findings::wrong_crc(info, fault), offsets);
        self.position = end;
    }

    /// Whether a batch that ends at `end` was not wholly written: its last sectors are zeros.
    fn is_torn(&mut self, end: u64) -> bool {
        let sector = self.zeros_from().checked_next_multiple_of(SECTOR_BYTES);
        sector.is_some_and(|sector| sector.saturating_add(MIN_SECTOR_ZEROS) <= end)
    }

    /// Steps over a batch up to `end` whose only fault is its size field.
    fn wrong_size(&mut self, end: u64, header: Option<PlausibleHeader>) {
        let (start, size) = self.take_damaged(end);
        let head = self.window.hold(start, LOG_OVERHEAD);
        let declared = ottla_format::header::read_i32(head, field::BATCH_LENGTH).unwrap_or(0);
        let finding = damage_findings::wrong_size(start, size, declared);
        self.tally.on_damage(finding, header.as_ref().map(PlausibleHeader::offsets));
    }

    /// Steps over bytes up to `end` that cannot be read as batches.
    fn damaged_range(&mut self, end: u64) {
        let (start, size) = self.take_damaged(end);
        self.tally.on_damage(damage_findings::damaged_range(start, size), None);
    }

    /// Steps over bytes at the end that are no whole batch.
    fn cut_or_garbage_tail(&mut self, header: Option<PlausibleHeader>, bounds: &HeaderBounds) {
        let head = self.window.hold(self.position, RECORD_BATCH_OVERHEAD);
        let is_cut =
            header.is_some() || (head.len() < RECORD_BATCH_OVERHEAD && is_beginning(head, bounds));
        let batch_bytes = Envelope::read(head, 0).map(|envelope| envelope.total() as u64);
        let kind = if is_cut { TailKind::Cut { batch_bytes } } else { TailKind::Garbage };
        let zeros = self.zeros_from();
        let (start, size) = self.take_tail();
        self.end_with_tail(start, zeros);
        let finding = damage_findings::tail(start, size, kind, self.tally.context());
        if is_cut {
            self.tally.on_damage(finding, header.as_ref().map(PlausibleHeader::offsets));
        } else {
            self.tally.push(finding);
        }
    }

    /// The source ends with bytes from `position` on that are no batch, and zeros from `zeros` on.
    fn end_with_tail(&mut self, position: u64, zeros: u64) {
        self.tally.on_tail(Tail { position, written_bytes: zeros.saturating_sub(position) });
    }

    /// Steps to the end of the source, over damaged bytes: where they begin, and how many.
    fn take_tail(&mut self) -> (u64, u64) {
        self.take_damaged(self.window.end())
    }

    /// Steps to `end`, over damaged bytes: where they begin, and how many.
    fn take_damaged(&mut self, end: u64) -> (u64, u64) {
        let start = self.position;
        let size = end.saturating_sub(start);
        self.tally.count_damaged_bytes(size);
        self.position = end;
        (start, size)
    }
}
