//! Aborted transactions that a start leaves out of the transaction indexes: `read_committed`
//! consumers get their records.
//!
//! Kafka believes a `.txnindex` it finds and misses none. Only a segment that is recovered gets a
//! right one.

use super::Aborted;
use super::files::Content;
use super::loader::{Loader, Offsets};
use super::rebuild::producer_batch;
use super::stop::Stop;
use crate::names::SegmentNames;
use crate::producers::{Appender, Pending, Producers};
use crate::sidefiles::transaction_index::{ABORTED_TRANSACTION_BYTES, AbortedTransaction};
use crate::source::fill;
use std::collections::BTreeMap;

/// Transactions that are held at once.
const MAX_TRANSACTIONS: usize = 1 << 20;

/// Those whose marker is in the log and in no transaction index.
pub(super) fn exposed(
    loader: &mut Loader<'_>,
    offsets: &Offsets,
    aborted: Aborted<'_>,
) -> Result<Vec<AbortedTransaction>, Stop> {
    let (start, end) = (offsets.log_start_offset, offsets.log_end_offset);
    let known = match aborted {
        Aborted::Ignored => return Ok(Vec::new()),
        Aborted::Known(known) => known.to_vec(),
        Aborted::Sought => find(loader)?,
    };
    let mut by_segment: BTreeMap<i64, Vec<AbortedTransaction>> = BTreeMap::new();
    for transaction in known.into_iter().filter(|t| (start..end).contains(&t.last_offset)) {
        let segment = loader.segments.range(..=transaction.last_offset).next_back();
        if let Some((&base_offset, _)) = segment
            && !loader.rebuilt.contains_key(&base_offset)
        {
            by_segment.entry(base_offset).or_default().push(transaction);
        }
    }
    let mut exposed = Vec::new();
    for (base_offset, transactions) in by_segment {
        let names = SegmentNames::of(base_offset);
        let mut missing: BTreeMap<(i64, i64), AbortedTransaction> =
            transactions.into_iter().map(|t| ((t.last_offset, t.producer_id), t)).collect();
        strike_out(loader, &names, &mut missing)?;
        exposed.extend(missing.into_values());
    }
    Ok(exposed)
}

/// Strikes out the transactions that a segment's index has.
fn strike_out(
    loader: &Loader<'_>,
    names: &SegmentNames,
    missing: &mut BTreeMap<(i64, i64), AbortedTransaction>,
) -> Result<(), Stop> {
    let Some(Content::Disk(origin)) = loader.reader.files.get(&names.transaction_index) else {
        return Ok(());
    };
    let source = loader.reader.files.open(origin)?;
    let mut bytes = [0; ABORTED_TRANSACTION_BYTES];
    let mut position = 0;
    while fill(&*source, position, &mut bytes)? == bytes.len() {
        position += bytes.len() as u64;
        let Some(entry) = AbortedTransaction::read(&bytes, 0) else { continue };
        let key = (entry.last_offset, entry.producer_id);
        if missing.get(&key).is_some_and(|known| entry.first_offset <= known.first_offset) {
            missing.remove(&key);
        }
    }
    Ok(())
}

/// The aborted transactions of the log, from its batches.
fn find(loader: &mut Loader<'_>) -> Result<Vec<AbortedTransaction>, Stop> {
    let mut producers = Producers::new(0);
    let mut found = Vec::new();
    let segments: Vec<_> = loader.segments.values().cloned().collect();
    for names in segments {
        let mut log = loader.reader.log(&names.log)?;
        let mut at = 0;
        // Damage ends the segment here: what it hides no consumer gets either.
        while let Some(frame) = unless_damaged(log.next(at, log.size()))?.flatten() {
            at = frame.end();
            if frame.magic < 2 {
                continue;
            }
            let Some(info) = unless_damaged(log.info(&frame))? else { break };
            let codecs = &mut loader.reader.codecs;
            let batch = unless_damaged(producer_batch(&mut log, &frame, &info, codecs))?.flatten();
            let Some(batch) = batch else { continue };
            let mut pending = Pending::default();
            if producers.judge(&batch, &Appender::REPLICATION, &mut pending).is_ok()
                && let Ok(aborted) = producers.commit(pending)
                && found.len() < MAX_TRANSACTIONS
            {
                found.extend(aborted);
            }
            // A log that goes on has replicated them.
            producers.high_watermark_moved(i64::MAX);
        }
    }
    Ok(found)
}

/// What was read, `None` where the log's own bytes forbid it.
fn unless_damaged<T>(result: Result<T, Stop>) -> Result<Option<T>, Stop> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(stop @ (Stop::Unreadable(_) | Stop::Limit(_))) => Err(stop),
        Err(_) => Ok(None),
    }
}
