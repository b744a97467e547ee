//! What a batch shows of its producer, and what is made of it within a segment.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::catalogue::list::FirstFindings;
use crate::catalogue::severity::Severity;
use crate::partition::producer_findings;
use crate::partition::producers::ProducerVerdict;
use crate::partition::sequences::{EventKind, ProducerEvent};
use crate::partition::transactions::{EndedTransactions, TransactionVerdict};
use crate::segment::counters::Counters;
use crate::segment::observation::BatchObservation;
use ottla_format::batch::BatchInfo;
use ottla_format::control_record::ControlRecord;

/// Returns the event of a batch with a producer id; `None` for a control batch without a readable
/// record: the cleaner has emptied it, or its fault has been reported. `holes` are the offsets
/// missing before it.
///
/// # Errors
/// A control record that ends no transaction.
pub(crate) fn producer_event(
    seen: &BatchObservation,
    holes: i64,
) -> Result<Option<ProducerEvent>, ControlRecord> {
    let info = &seen.info;
    let kind = if info.is_control() {
        match seen.control {
            Some(ControlRecord::Abort { coordinator_epoch }) => {
                EventKind::Marker { coordinator_epoch, is_commit: false }
            }
            Some(ControlRecord::Commit { coordinator_epoch }) => {
                EventKind::Marker { coordinator_epoch, is_commit: true }
            }
            Some(other) => return Err(other),
            None => return Ok(None),
        }
    } else {
        let sequences = if info.base_sequence >= 0 && info.last_offset >= info.base_offset {
            (info.base_sequence, info.last_sequence())
        } else {
            (-1, -1)
        };
        EventKind::Data { sequences, is_transactional: info.is_transactional() }
    };
    Ok(Some(ProducerEvent {
        segment: 0,
        position: info.position,
        // A header has 32 bits for both.
        size: u32::try_from(info.size).unwrap_or(u32::MAX),
        offset: info.base_offset,
        offset_delta: info.last_offset.wrapping_sub(info.base_offset) as i32,
        records: u32::try_from(seen.records).unwrap_or(u32::MAX),
        holes,
        timestamp: info.max_timestamp,
        previous_timestamp: None,
        epoch: info.producer_epoch,
        kind,
    }))
}

/// The finding of a control batch with a producer id that ends no transaction.
pub(crate) fn unknown_marker(info: &BatchInfo, control: ControlRecord) -> Finding {
    let message = format!(
        "the control batch of producer {} at offset {} is neither ABORT nor COMMIT but {}",
        info.producer_id,
        info.base_offset,
        control.name()
    );
    Finding::new(FindingKind::TransactionFault, message)
        .at(info.position, info.size)
        .offsets(info.base_offset, info.last_offset)
        .producer(info.producer_id)
        .values("ABORT or COMMIT", control.name())
        .graded(Severity::Error)
}

/// Takes the verdicts about producers in one segment.
pub(crate) struct VerdictSink<'a> {
    pub(crate) is_consumer_offsets: bool,
    pub(crate) counters: &'a mut Counters,
    pub(crate) producer_findings: &'a mut FirstFindings,
    pub(crate) ended: &'a mut EndedTransactions,
}

impl VerdictSink<'_> {
    pub(crate) fn take(&mut self, producer_id: i64, verdict: &ProducerVerdict) {
        count_ended(producer_id, verdict, self.counters, self.ended);
        if let Some((_, finding)) =
            producer_findings::finding(producer_id, verdict, self.is_consumer_offsets)
        {
            self.producer_findings.push(finding);
        }
    }
}

/// Counts and lists a transaction, if the verdict is that one has ended.
pub(crate) fn count_ended(
    producer_id: i64,
    verdict: &ProducerVerdict,
    counters: &mut Counters,
    ended: &mut EndedTransactions,
) {
    if let ProducerVerdict::Transaction(TransactionVerdict::Completed(completed)) = verdict {
        let count =
            if completed.is_commit { &mut counters.committed } else { &mut counters.aborted };
        *count = count.saturating_add(1);
        ended.push(producer_id, *completed);
    }
}
