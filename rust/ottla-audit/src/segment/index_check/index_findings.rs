//! What is wrong with the indexes of a segment, in words.

use super::faults::EntryFault;
use super::indexes::{Indexes, MAX_INDEX_BYTES};
use crate::catalogue::finding::{Finding, SideFile};
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::segment::context::SegmentContext;
use ottla_format::words;
use ottla_log::sidefiles::offset_index::OFFSET_ENTRY_BYTES;
use ottla_log::sidefiles::time_index::TIME_ENTRY_BYTES;

/// One of the two files.
#[derive(Clone, Copy)]
struct IndexFile {
    kind: FindingKind,
    side: SideFile,
    entry_bytes: u64,
    name: &'static str,
}

const OFFSETS: IndexFile = IndexFile {
    kind: FindingKind::IndexMismatch,
    side: SideFile::OffsetIndex,
    entry_bytes: OFFSET_ENTRY_BYTES as u64,
    name: ".index",
};

const TIMES: IndexFile = IndexFile {
    kind: FindingKind::TimeindexMismatch,
    side: SideFile::TimeIndex,
    entry_bytes: TIME_ENTRY_BYTES as u64,
    name: ".timeindex",
};

/// The findings about the indexes of a segment.
pub(super) struct IndexFindings<'a> {
    pub(super) indexes: &'a Indexes,
    pub(super) context: &'a SegmentContext,
    /// Whether the next start of the broker builds the files anew.
    pub(super) is_rebuilt: bool,
}

impl IndexFindings<'_> {
    fn severity(&self) -> Severity {
        if self.is_rebuilt { Severity::Info } else { Severity::Warning }
    }

    /// What Kafka does with a wrong entry.
    fn consequence(&self, file: IndexFile) -> &'static str {
        match (self.is_rebuilt, file.side, self.context.is_active) {
            (true, ..) => "the broker did not stop cleanly, so its next start rebuilds the file",
            (_, SideFile::OffsetIndex, true) => {
                "the next start takes the end of the log from the last entry without a check, and may begin with end offset 0"
            }
            (_, SideFile::OffsetIndex, false) => {
                "Kafka does not check it after a clean stop, and fetches that use it begin at the wrong position"
            }
            (..) => {
                "Kafka does not check it after a clean stop: lookups by time and retention by time go wrong"
            }
        }
    }

    /// A wrong entry of the `.index`.
    pub(super) fn of_offset(&self, (number, fault): (usize, EntryFault)) -> Finding {
        let entry = self.indexes.offsets.get(number).copied();
        let position = entry.map_or(0, |entry| entry.position);
        let offset = entry.map_or(0, |entry| entry.offset(self.indexes.base_offset));
        let content = format!("offset {offset} at position {position}");
        self.wrong(OFFSETS, number, offset, (&content, &content), fault)
    }

    /// A wrong entry of the `.timeindex`.
    pub(super) fn of_time(&self, (number, fault): (usize, EntryFault)) -> Finding {
        let entry = self.indexes.times.get(number).copied();
        let timestamp = entry.map_or(0, |entry| entry.timestamp);
        let offset = entry.map_or(0, |entry| entry.offset(self.indexes.base_offset));
        let content = format!("timestamp {timestamp} up to offset {offset}");
        let said = format!("{} up to offset {offset}", words::moment(timestamp));
        self.wrong(TIMES, number, offset, (&said, &content), fault)
    }

    fn wrong(
        &self,
        file: IndexFile,
        number: usize,
        offset: i64,
        (said, content): (&str, &str),
        fault: EntryFault,
    ) -> Finding {
        let (reason, expected) = match fault {
            EntryFault::NoBatch { start } => (
                format!("the position is inside the batch that begins at position {start}"),
                "the position of a batch".to_owned(),
            ),
            EntryFault::Above { base_offset } => (
                format!("the batch there begins above that, with offset {base_offset}"),
                format!("at least {base_offset}"),
            ),
            EntryFault::Far { base_offset } => (
                format!("the batch of the next entry begins with offset {base_offset}"),
                format!("below {base_offset}"),
            ),
            EntryFault::Order => (
                "it is not above the entry before".to_owned(),
                "more than in the entry before".to_owned(),
            ),
            EntryFault::Beyond { end } => {
                (format!("the segment ends before offset {end}"), format!("below {end}"))
            }
            EntryFault::Timestamp { greatest: i64::MIN } => {
                ("no batch up to there has a timestamp".to_owned(), "no entry".to_owned())
            }
            EntryFault::Timestamp { greatest } => {
                let message =
                    format!("the greatest timestamp up to there is {}", words::moment(greatest));
                (message, greatest.to_string())
            }
        };
        let message = format!(
            "entry {number} of the {} says {said}, but {reason}; {}",
            file.name,
            self.consequence(file)
        );
        let finding = Finding::new(file.kind, message)
            .beside(file.side)
            .at((number as u64).saturating_mul(file.entry_bytes), file.entry_bytes)
            .values(expected, content)
            .graded(self.severity());
        if offset >= 0 { finding.offsets(offset, offset) } else { finding }
    }

    /// Entries that were left out.
    pub(super) fn of_cut() -> Finding {
        let message = format!(
            "an index has more than {MAX_INDEX_BYTES} bytes of entries: the rest was not checked"
        );
        Finding::new(FindingKind::LimitExceeded, message)
            .beside(SideFile::OffsetIndex)
            .values(format!("at most {MAX_INDEX_BYTES} bytes"), "more")
    }

    /// Files whose size does not fit their entries.
    pub(super) fn of_sizes(&self) -> impl Iterator<Item = Finding> {
        let Indexes { offset_bytes, time_bytes, offsets, times, .. } = self.indexes;
        let offsets = self.of_size(OFFSETS, *offset_bytes, offsets.len());
        let times = self.of_size(TIMES, *time_bytes, times.len());
        offsets.into_iter().chain(times)
    }

    fn of_size(&self, file: IndexFile, bytes: Option<u64>, entries: usize) -> Option<Finding> {
        let bytes = bytes?;
        let used = (entries as u64).saturating_mul(file.entry_bytes);
        let rest = bytes.checked_rem(file.entry_bytes)?;
        let whole = format!("a multiple of {}", file.entry_bytes);
        if rest > 0 {
            let message = format!(
                "the {} has {}, which is not a multiple of {}; {}",
                file.name,
                words::count(bytes, "byte"),
                file.entry_bytes,
                self.consequence(file)
            );
            let is_grave = self.context.is_active && self.context.stopped_cleanly;
            let severity = if is_grave { Severity::Warning } else { Severity::Info };
            let finding = Finding::new(file.kind, message)
                .beside(file.side)
                .at(bytes.saturating_sub(rest), rest)
                .values(whole, bytes)
                .graded(severity);
            return Some(finding);
        }
        if self.indexes.is_cut || self.context.is_active || used >= bytes {
            return None;
        }
        let zeros = bytes.saturating_sub(used);
        let message = format!(
            "{} after the entries of the {} of a closed segment: lookups still work, but read more than they need",
            words::count(zeros, "zero"),
            file.name
        );
        Some(
            Finding::new(file.kind, message)
                .beside(file.side)
                .at(used, zeros)
                .values("the end of the file", format!("{zeros} zeros"))
                .graded(Severity::Info),
        )
    }
}
