//! The batches of a record set, as their sizes divide it.

use crate::profiles::Difference;
use crate::reason::Reason;
use crate::refusal::{Decision, Refusal};
use crate::request::Request;
use ottla_format::attributes::Compression;
use ottla_format::batch::BatchInfo;
use ottla_format::batches::Batches;
use ottla_format::error::{Error, ErrorKind};
use ottla_format::header::{Envelope, Next};

/// The batch that begins at a position, if it lies whole in the set.
pub(crate) fn envelope(
    records: &[u8],
    position: usize,
    request: &Request,
) -> Decision<Option<Envelope>> {
    match Envelope::next(records, position) {
        Ok(Next::Batch(envelope)) => Ok(Some(envelope)),
        Ok(Next::End { .. }) => Ok(None),
        Err(Error { kind: kind @ ErrorKind::SizeTooLarge { .. }, .. }) => {
            Err(Refusal::leak(request.profile, Difference::SizeOverflow, Reason::Format(kind)))
        }
        Err(error) => Err(Refusal::corrupt(error.kind)),
    }
}

/// The batches of a set that was analysed, with their bytes.
pub(crate) fn batches(records: &[u8]) -> impl Iterator<Item = (BatchInfo, &[u8])> {
    Batches::new(records, 0).map_while(|info| {
        let info = info.ok()?;
        let start = info.position as usize;
        Some((info, records.get(start..start.checked_add(info.size as usize)?)?))
    })
}

/// The first batch. No other may follow, unless all are plain records of magic 0 or 1.
pub(crate) fn first_batch(records: &[u8], source: Compression) -> Decision<BatchInfo> {
    let mut all = batches(records);
    let Some((first, _)) = all.next() else { return Err(Refusal::invalid(Reason::NoBatch)) };
    if (first.magic >= 2 || source != Compression::None) && all.next().is_some() {
        return Err(Refusal::invalid(Reason::SecondBatch));
    }
    Ok(first)
}
