//! Findings about producers and transactions: a verdict or a state in, a sentence out.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::message::OpenTransactionFacts;
use crate::catalogue::severity::Severity;
use crate::partition::producers::ProducerVerdict;
use crate::partition::sequences::{EventKind, ProducerEvent, SequenceVerdict};
use crate::partition::transactions::{MissingMarkers, OpenTransaction, TransactionVerdict};
use ottla_format::words;
use ottla_log::sidefiles::snapshot::SnapshotEntry;

/// After this long a broker may have forgotten a producer (`producer.id.expiration.ms`).
const EXPIRATION_MS: i64 = 86_400_000;

/// Returns the finding of a verdict, if there is one, and the segment it is in.
/// `is_consumer_offsets`: the group coordinator writes transactional offsets with sequence 0 every
/// time.
pub(crate) fn finding(
    producer_id: i64,
    verdict: &ProducerVerdict,
    is_consumer_offsets: bool,
) -> Option<(u32, Finding)> {
    match verdict {
        ProducerVerdict::Sequence(event, verdict) => {
            let is_epoch = matches!(verdict, SequenceVerdict::EpochRegression { .. });
            let found = sequence_finding(producer_id, event, *verdict)?;
            (is_epoch || !is_consumer_offsets).then_some((event.segment, found))
        }
        ProducerVerdict::Transaction(verdict) => transaction_finding(producer_id, verdict),
    }
}

/// Returns the finding about a transaction without an end marker at the end of a log whose newest
/// timestamp is `log_timestamp`. `may_have_lost_marker`: offsets after its beginning were lost.
pub(crate) fn open_transaction(
    producer_id: i64,
    producer_epoch: i16,
    open: &OpenTransaction,
    log_timestamp: i64,
    may_have_lost_marker: bool,
) -> Finding {
    let first_offset = open.first_offset;
    let age_ms = log_timestamp.saturating_sub(open.first_timestamp).max(0);
    let is_old = open.is_old(log_timestamp) && !may_have_lost_marker;
    let sums = open.sums();
    let facts = OpenTransactionFacts {
        producer_id,
        producer_epoch,
        batches: sums.batches,
        first_offset,
        age_ms,
        may_have_lost_marker,
    };
    let severity = if is_old { Severity::Warning } else { Severity::Info };
    Finding::new(FindingKind::OpenTransaction, facts)
        .at(open.place.position, open.place.size.into())
        .offsets(first_offset, sums.last_offset)
        .producer(producer_id)
        .values("an end marker", "none")
        .graded(severity)
}

/// Returns the finding about a transaction that began below the log, according to its newest
/// snapshot.
pub(crate) fn begun_below(
    entry: &SnapshotEntry,
    log_start_offset: i64,
    log_timestamp: i64,
) -> Finding {
    let first_offset = entry.transaction_first_offset.unwrap_or(log_start_offset);
    let age_ms = log_timestamp.saturating_sub(entry.last_timestamp).max(0);
    let message = format!(
        "producer {} epoch {}: the newest snapshot has a transaction from offset {first_offset} on, below the log start offset {log_start_offset}, without an end marker, and nothing newer for {}; its data is gone, but read_committed consumers stop at {log_start_offset}; if `abort` does not find it, stop the broker and delete the .snapshot files of the partition: the broker then rebuilds them from the log",
        entry.producer_id,
        entry.producer_epoch,
        words::duration(age_ms),
    );
    Finding::new(FindingKind::OpenTransaction, message)
        .offsets(first_offset, log_start_offset.saturating_sub(1))
        .producer(entry.producer_id)
        .values("an end marker", "none")
        .graded(Severity::Warning)
}

fn sequence_finding(
    producer_id: i64,
    event: &ProducerEvent,
    verdict: SequenceVerdict,
) -> Option<Finding> {
    let first = match event.kind {
        EventKind::Data { sequences, .. } => sequences.0,
        EventKind::Marker { .. } => -1,
    };
    let (kind, expected, found) = match verdict {
        SequenceVerdict::Fine | SequenceVerdict::LegalHead | SequenceVerdict::LegalCleaned => {
            return None;
        }
        SequenceVerdict::UnknownStart => (FindingKind::UnknownStart, "0".to_owned(), first),
        SequenceVerdict::EpochRegression { previous } => {
            (FindingKind::EpochRegression, format!("at least {previous}"), event.epoch.into())
        }
        SequenceVerdict::NewEpochNonzero => (FindingKind::SequenceGap, "0".to_owned(), first),
        SequenceVerdict::Gap { expected, .. } => {
            (FindingKind::SequenceGap, expected.to_string(), first)
        }
        SequenceVerdict::Duplicate => {
            (FindingKind::SequenceRepeat, "a batch that is not stored yet".to_owned(), first)
        }
        SequenceVerdict::Rewind { expected, .. } => {
            (FindingKind::SequenceRepeat, expected.to_string(), first)
        }
    };
    let message = sequence_message(producer_id, event, verdict, first);
    Some(finding_at(kind, producer_id, event, message).values(expected, found))
}

fn sequence_message(
    producer_id: i64,
    event: &ProducerEvent,
    verdict: SequenceVerdict,
    first: i32,
) -> String {
    let (epoch, offset) = (event.epoch, event.offset);
    let producer = format!("producer {producer_id} epoch {epoch}");
    let note = expiry_note(event);
    match verdict {
        SequenceVerdict::Fine | SequenceVerdict::LegalHead | SequenceVerdict::LegalCleaned => {
            format!("{producer} continues at offset {offset}")
        }
        SequenceVerdict::UnknownStart => format!(
            "{producer} begins with sequence {first} at offset {offset}, and no deleted records explain it"
        ),
        SequenceVerdict::EpochRegression { previous } => format!(
            "producer {producer_id} goes back from epoch {previous} to {epoch} at offset {offset}"
        ),
        SequenceVerdict::NewEpochNonzero => format!(
            "{producer} begins with sequence {first} at offset {offset}: {} missing before it{note}",
            words::count(first, "sequence")
        ),
        SequenceVerdict::Gap { missing, expected } => format!(
            "{producer}: {} from {expected} on missing before offset {offset}{note}",
            words::count(missing as u64, "sequence")
        ),
        SequenceVerdict::Duplicate => format!(
            "{producer}: the batch of sequence {first} is stored again at offset {offset}{note}"
        ),
        SequenceVerdict::Rewind { back, expected } => format!(
            "{producer} goes back by {}, from {expected} to {first}, at offset {offset}{note}",
            words::count(back as u64, "sequence")
        ),
    }
}

/// Returns a remark about a producer that was silent so long that a broker may have forgotten it.
fn expiry_note(event: &ProducerEvent) -> String {
    let idle = event.previous_timestamp.map_or(0, |before| event.timestamp.saturating_sub(before));
    if idle < EXPIRATION_MS {
        return String::new();
    }
    let hours = words::count(idle as u64 / 3_600_000, "hour");
    format!("; the producer was silent for {hours} before, after which a broker may forget it")
}

fn transaction_finding(producer_id: i64, verdict: &TransactionVerdict) -> Option<(u32, Finding)> {
    match verdict {
        TransactionVerdict::Completed(_) => None,
        TransactionVerdict::PlainInside { plain, first_offset } => {
            let message = format!(
                "producer {producer_id} wrote {} of plain data from offset {} on, inside its transaction that began at offset {first_offset}",
                words::count(plain.batches, "batch"),
                plain.first_offset
            );
            let found = Finding::new(FindingKind::TransactionFault, message)
                .at(plain.place.position, plain.place.size.into())
                .offsets(plain.first_offset, plain.last_offset)
                .producer(producer_id)
                .values("transactional data", "plain data")
                .graded(Severity::Error);
            Some((plain.place.segment, found))
        }
        TransactionVerdict::MarkerMissing { place, producer_epoch, first_offset, missing } => {
            let MissingMarkers { markers, last_offset, next_offset, next_epoch } = *missing;
            let more = match markers.saturating_sub(1) {
                0 => String::new(),
                1 => " (nor has the one after it)".to_owned(),
                more => format!(" (nor have the {more} after it)"),
            };
            let message = format!(
                "the transaction of producer {producer_id} epoch {producer_epoch} at {} has no end marker{more}, and one of epoch {next_epoch} begins at offset {next_offset}: the next marker decides about them all",
                words::offsets(*first_offset, last_offset)
            );
            let found = Finding::new(FindingKind::MarkerMissing, message)
                .at(place.position, place.size.into())
                .offsets(*first_offset, next_offset.saturating_sub(1))
                .producer(producer_id)
                .values(format!("an end marker before offset {next_offset}"), "none");
            Some((place.segment, found))
        }
        TransactionVerdict::CoordinatorEpochRegression { marker, previous, found } => {
            let message = format!(
                "the end marker of producer {producer_id} at offset {} has coordinator epoch {found}, after one of {previous}",
                marker.offset
            );
            let finding = finding_at(FindingKind::TransactionFault, producer_id, marker, message)
                .values(format!("at least {previous}"), found);
            Some((marker.segment, finding))
        }
    }
}

fn finding_at(
    kind: FindingKind,
    producer_id: i64,
    event: &ProducerEvent,
    message: String,
) -> Finding {
    Finding::new(kind, message)
        .at(event.position, event.size.into())
        .offsets(event.offset, event.last_offset())
        .producer(producer_id)
}
