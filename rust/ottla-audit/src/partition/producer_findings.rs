//! What a verdict about a producer says to a reader: verdict in, finding out.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::severity::Severity;
use crate::partition::producers::ProducerVerdict;
use crate::partition::sequences::{EventKind, ProducerEvent, SequenceVerdict};
use crate::partition::transactions::{OpenTransaction, TransactionVerdict};
use ottla_log::sidefiles::snapshot::SnapshotEntry;

/// After this long a broker may have forgotten a producer (`producer.id.expiration.ms`).
const EXPIRATION_MS: i64 = 86_400_000;

/// A number and what it counts.
fn counted(count: u64, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// The finding of a transaction that began below the log, as its newest snapshot says.
pub(crate) fn begun_below(
    entry: &SnapshotEntry,
    log_start_offset: i64,
    log_timestamp: i64,
) -> Finding {
    let first_offset = entry.transaction_first_offset.unwrap_or(log_start_offset);
    let age_ms = log_timestamp.saturating_sub(entry.last_timestamp).max(0);
    let message = format!(
        "producer {} epoch {}: the newest snapshot has a transaction from offset {first_offset} on, below the log start {log_start_offset}, without an end marker, silent for {}; its data is gone, but read_committed consumers stop at {log_start_offset}; should `abort` not find it, stop the broker and remove the .snapshot files of the partition: it then builds them from the log",
        entry.producer_id,
        entry.producer_epoch,
        lasting(age_ms),
    );
    Finding::new(FindingKind::OpenTransaction, message)
        .offsets(first_offset, log_start_offset - 1)
        .producer(entry.producer_id)
        .values("an end marker", "none")
        .graded(Severity::Warning)
}

/// A time in the two largest units that tell it.
fn lasting(time_ms: i64) -> String {
    let seconds = time_ms / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// The finding of a verdict, if it is one, and the segment it is in. `is_consumer_offsets`: the
/// coordinator writes transactional offsets with sequence 0 every time.
pub(crate) fn finding(
    producer_id: i64,
    verdict: &ProducerVerdict,
    is_consumer_offsets: bool,
) -> Option<(u32, Finding)> {
    match verdict {
        ProducerVerdict::Sequence(event, verdict) => {
            let found = sequence(producer_id, event, *verdict, is_consumer_offsets)?;
            Some((event.segment, found))
        }
        ProducerVerdict::Transaction(verdict) => transaction(producer_id, verdict),
    }
}

fn place(kind: FindingKind, producer_id: i64, event: &ProducerEvent, message: String) -> Finding {
    Finding::new(kind, message)
        .at(event.position, event.size)
        .offsets(event.offset, event.last_offset)
        .producer(producer_id)
}

fn sequence(
    producer_id: i64,
    event: &ProducerEvent,
    verdict: SequenceVerdict,
    is_consumer_offsets: bool,
) -> Option<Finding> {
    use FindingKind as Kind;
    if is_consumer_offsets && !matches!(verdict, SequenceVerdict::EpochRegression { .. }) {
        return None;
    }
    let first = match event.kind {
        EventKind::Data { sequences, .. } => sequences.0,
        EventKind::Marker { .. } => -1,
    };
    let (kind, expected, found) = match verdict {
        SequenceVerdict::Fine | SequenceVerdict::LegalHead | SequenceVerdict::LegalCleaned => {
            return None;
        }
        SequenceVerdict::UnknownStart => (Kind::UnknownStart, "0".to_owned(), first.to_string()),
        SequenceVerdict::EpochRegression { previous } => {
            (Kind::EpochRegression, format!("at least {previous}"), event.epoch.to_string())
        }
        SequenceVerdict::NewEpochNonzero => (Kind::SequenceGap, "0".to_owned(), first.to_string()),
        SequenceVerdict::Gap { expected, .. } => {
            (Kind::SequenceGap, expected.to_string(), first.to_string())
        }
        SequenceVerdict::Duplicate => {
            (Kind::SequenceRepeat, "a batch that is not stored yet".to_owned(), first.to_string())
        }
        SequenceVerdict::Rewind { expected, .. } => {
            (Kind::SequenceRepeat, expected.to_string(), first.to_string())
        }
    };
    let message = sequence_message(producer_id, event, verdict, first);
    Some(place(kind, producer_id, event, message).values(expected, found))
}

fn sequence_message(
    producer_id: i64,
    event: &ProducerEvent,
    verdict: SequenceVerdict,
    first: i32,
) -> String {
    let (epoch, offset) = (event.epoch, event.offset);
    let who = format!("producer {producer_id} epoch {epoch}");
    let idle = event.previous_timestamp.map_or(0, |before| event.timestamp.saturating_sub(before));
    let forgotten = if idle >= EXPIRATION_MS {
        let hours = counted(idle as u64 / 3_600_000, "hour", "hours");
        format!("; it was silent for {hours} before, after which a broker may forget it")
    } else {
        String::new()
    };
    match verdict {
        SequenceVerdict::Fine | SequenceVerdict::LegalHead | SequenceVerdict::LegalCleaned => {
            String::new()
        }
        SequenceVerdict::UnknownStart => format!(
            "{who} begins with sequence {first} at offset {offset}, and nothing that was deleted explains it"
        ),
        SequenceVerdict::EpochRegression { previous } => format!(
            "producer {producer_id} goes back from epoch {previous} to {epoch} at offset {offset}"
        ),
        SequenceVerdict::NewEpochNonzero => format!(
            "{who} begins with sequence {first} at offset {offset}: {first} sequences before it are missing{forgotten}"
        ),
        SequenceVerdict::Gap { missing, expected } => format!(
            "{who}: {} from {expected} on missing before offset {offset}{forgotten}",
            counted(missing as u64, "sequence", "sequences")
        ),
        SequenceVerdict::Duplicate => format!(
            "{who}: the batch of sequence {first} is stored again at offset {offset}{forgotten}"
        ),
        SequenceVerdict::Rewind { back, expected } => format!(
            "{who} goes back by {}, from {expected} to {first}, at offset {offset}{forgotten}",
            counted(back as u64, "sequence", "sequences")
        ),
    }
}

fn transaction(producer_id: i64, verdict: &TransactionVerdict) -> Option<(u32, Finding)> {
    match verdict {
        TransactionVerdict::Completed(_) => None,
        TransactionVerdict::PlainInside { plain, first_offset } => {
            let message = format!(
                "producer {producer_id} wrote {} of plain data from offset {} on, inside its transaction that began at offset {first_offset}",
                counted(plain.batches, "batch", "batches"),
                plain.first_offset
            );
            let found = Finding::new(FindingKind::TransactionFault, message)
                .at(plain.place.position, plain.place.size)
                .offsets(plain.first_offset, plain.last_offset)
                .producer(producer_id)
                .values("transactional data", "plain data")
                .graded(Severity::Error);
            Some((plain.place.segment, found))
        }
        TransactionVerdict::CoordinatorEpochRegression { marker, previous, found } => {
            let message = format!(
                "the end marker of producer {producer_id} at offset {} has coordinator epoch {found}, after one of {previous}",
                marker.offset
            );
            let finding = place(FindingKind::TransactionFault, producer_id, marker, message)
                .values(format!("at least {previous}"), found);
            Some((marker.segment, finding))
        }
    }
}

/// The finding of a transaction that has no end marker when the log ends, whose newest timestamp is
/// `log_timestamp`. `damage`: offsets were lost behind its beginning, among them perhaps its marker.
pub(crate) fn open_transaction(
    producer_id: i64,
    producer_epoch: i16,
    open: &OpenTransaction,
    log_timestamp: i64,
    damage: bool,
) -> Finding {
    let first_offset = open.first_offset;
    let age_ms = log_timestamp.saturating_sub(open.first_timestamp).max(0);
    let is_old = open.is_hanging(log_timestamp) && !damage;
    let doubt = if damage { "; its marker may be among the offsets lost to damage" } else { "" };
    let message = format!(
        "producer {producer_id} epoch {producer_epoch}: {} from offset {first_offset} on without an end marker, open for {}; read_committed consumers stop there{doubt}",
        counted(open.batches, "batch", "batches"),
        lasting(age_ms),
    );
    let severity = if is_old { Severity::Warning } else { Severity::Info };
    Finding::new(FindingKind::OpenTransaction, message)
        .at(open.place.position, open.place.size)
        .offsets(first_offset, open.last_offset)
        .producer(producer_id)
        .values("an end marker", "none")
        .graded(severity)
}
