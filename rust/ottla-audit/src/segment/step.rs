//! One step of a pass by the rules: over a whole batch, over one that is too large, or over damage.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::segment::damage_findings;
use crate::segment::observation::BatchObservation;
use crate::segment::pass::Pass;
use ottla_format::attributes::Compression;
use ottla_format::batch::BatchInfo;
use ottla_format::check::Level;
use ottla_format::clients::ClientFault;
use ottla_format::error::{Error, ErrorKind, Family};
use ottla_format::header::{Envelope, MIN_SIZE, MIN_SIZE_V2, RECORD_BATCH_OVERHEAD};
use ottla_format::words;
use ottla_log::resync::header::{HeaderBounds, PlausibleHeader};

/// Bytes of a failed batch that are judged: its header, and the lengths of a legacy record.
pub(super) const HEAD_BYTES: usize = 64 << 10;

/// What stands at a position.
enum Frame {
    /// A batch, whole in the window.
    Whole(Envelope),
    /// A batch that is larger than the bound, and inside the source.
    TooLarge(Envelope),
    /// Nothing that can be a batch, or one that reaches beyond the end.
    Broken,
}

impl Pass<'_, '_> {
    /// Walks over what stands at the position, by every rule.
    pub(crate) fn step(&mut self) {
        let from = self.position;
        match self.frame() {
            Frame::Whole(envelope) => self.check_batch(&envelope),
            Frame::TooLarge(envelope) => self.step_over_large_batch(&envelope),
            Frame::Broken => self.step_over_damage(None),
        }
        self.search.earn(self.position.saturating_sub(from));
    }

    fn frame(&mut self) -> Frame {
        let left = self.window.end().saturating_sub(self.position);
        let data = self.window.hold(self.position, RECORD_BATCH_OVERHEAD);
        let Some(envelope) = Envelope::read(data, 0) else { return Frame::Broken };
        let minimum = if envelope.magic == 2 { MIN_SIZE_V2 } else { MIN_SIZE };
        let total = envelope.total() as u64;
        if envelope.size < minimum || !(0..=2).contains(&envelope.magic) || total > left {
            return Frame::Broken;
        }
        if total > self.checker.limits().batch_bytes {
            return Frame::TooLarge(envelope);
        }
        if self.window.hold(self.position, envelope.total()).len() < envelope.total() {
            return Frame::Broken;
        }
        Frame::Whole(envelope)
    }

    /// Checks one whole batch by every rule.
    fn check_batch(&mut self, envelope: &Envelope) {
        let Self { checker, window, faults, position, .. } = self;
        let total = envelope.total();
        let data = window.held(*position).get(..total);
        let read = data.and_then(|data| Some((data, BatchInfo::read(data, 0, envelope).ok()?)));
        let Some((data, mut info)) = read else {
            self.step_over_damage(None);
            return;
        };
        info.position = *position;
        faults.clear();
        let level = checker.level();
        let is_wrapper = info.magic < 2 && info.compression() != Ok(Compression::None);
        if level == Level::Crc && (info.is_control() || is_wrapper && self.opens_wrappers) {
            checker.set_level(Level::Decode);
        }
        let checked = checker.check(data, 0, envelope, faults);
        checker.set_level(level);
        if !checked.crc_ok {
            let fault = self.faults.first().copied();
            self.step_over_damage(fault.map(|fault| (info, fault)));
            return;
        }
        if let Some(base) = checked.base_offset.filter(|&base| base <= info.last_offset) {
            info.base_offset = base;
        }
        let seen = BatchObservation {
            info,
            records: checked.records,
            control: checked.control,
            has_base_offset: !is_wrapper || checked.base_offset.is_some(),
            is_readable: self.faults.is_empty(),
            earliest_timestamp: checked.earliest_timestamp,
        };
        self.last_was_legacy = info.magic < 2;
        self.recent.push(self.position, info.partition_leader_epoch);
        self.position = self.position.saturating_add(total as u64);
        self.tally.on_valid_bytes(self.position);
        self.tally.on_valid_batch(seen);
        if checked.maximum_unreached && self.faults.is_empty() {
            self.tally.on_unreached_max_timestamp(&info);
        }
        if let Some(fault) = checked.client_fault.filter(|_| self.faults.is_empty()) {
            self.tally.push(client_finding(&info, fault));
        }
        for fault in &self.faults {
            // The base offset is judged by its neighbours.
            if !matches!(fault.kind, ErrorKind::OffsetOutOfRange { .. }) {
                self.tally.push(record_finding(&info, fault));
            }
        }
    }

    /// Steps over a batch that no window may hold, if a batch follows it.
    fn step_over_large_batch(&mut self, envelope: &Envelope) {
        let bounds = HeaderBounds { batch_bytes: i32::MAX as u64, ..self.bounds() };
        let head = self.window.look(self.position, HEAD_BYTES);
        let end = self.position.saturating_add(envelope.total() as u64);
        let info = BatchInfo::read(head, 0, envelope).ok();
        let header = PlausibleHeader::read(head, &bounds);
        let (Some(mut info), Some(header)) = (info, header) else {
            self.step_over_damage(None);
            return;
        };
        if !self.is_batch_end(end, &bounds.behind(&header)) {
            self.step_over_damage(None);
            return;
        }
        info.position = self.position;
        let limit = self.checker.limits().batch_bytes;
        self.tally.on_valid_batch(BatchObservation {
            info,
            records: 0,
            control: None,
            has_base_offset: info.magic == 2,
            is_readable: false,
            earliest_timestamp: None,
        });
        self.tally.push(damage_findings::too_large(&info, limit));
        self.recent.clear();
        self.position = end;
        self.tally.on_valid_bytes(end);
    }
}

/// The finding of a batch that consumers of some clients do not read.
fn client_finding(info: &BatchInfo, (fault, index): (ClientFault, Option<u32>)) -> Finding {
    let record = index.map_or(String::new(), |index| format!("record {index}: "));
    let message = format!(
        "the batch at position {} (offsets {} to {}): {record}{fault}",
        info.position, info.base_offset, info.last_offset
    );
    let clients: Vec<_> = fault.clients().iter().map(|client| client.name()).collect();
    let finding = Finding::new(FindingKind::ConsumersDiffer, message)
        .at(info.position, info.size)
        .offsets(info.base_offset, info.last_offset)
        .values("a batch that every client reads".to_owned(), clients.join(", "));
    let producer_id = info.has_producer_id().then_some(info.producer_id);
    Finding { record_index: index, producer_id, ..finding }
}

/// The finding of a fault inside a batch whose CRC is correct.
fn record_finding(info: &BatchInfo, fault: &Error) -> Finding {
    let kind = match fault.kind {
        ErrorKind::TimestampAboveMaximum { .. } => FindingKind::TimestampSuspect,
        ErrorKind::ControlKey { .. }
        | ErrorKind::ControlValue { .. }
        | ErrorKind::ControlBatch { .. }
            if info.has_producer_id() =>
        {
            FindingKind::TransactionFault
        }
        kind => match kind.family() {
            Family::Compression => FindingKind::Undecodable,
            Family::Limit => FindingKind::LimitExceeded,
            _ => FindingKind::RecordFault,
        },
    };
    let (expected, found) = fault.kind.expected_and_found();
    let message = format!(
        "the batch at position {} ({}): {}",
        info.position,
        words::offsets(info.base_offset, info.last_offset),
        fault.kind
    );
    let finding = Finding::new(kind, message)
        .at(info.position, info.size)
        .offsets(info.base_offset, info.last_offset)
        .values(expected, found);
    // A start that replays a marker which it cannot read gives up: no deed keeps its partition there.
    let is_unreadable_marker = kind == FindingKind::TransactionFault
        && matches!(fault.kind, ErrorKind::ControlKey { .. } | ErrorKind::ControlValue { .. });
    let finding = if is_unreadable_marker { finding.graded(Severity::Error) } else { finding };
    let producer_id = info.has_producer_id().then_some(info.producer_id);
    Finding { record_index: fault.kind.record_index(), producer_id, ..finding }
}
