//! Rules about the header of magic 2 alone.

use crate::batch::BatchInfo;
use crate::error::{Error, ErrorKind};
use crate::header::field;

/// Appends what is wrong with the fields of a header.
pub(super) fn check_header(info: &BatchInfo, faults: &mut Vec<Error>) {
    let mut fault = |kind, position| faults.push(Error::new(kind, position));
    let last_offset_delta = info.last_offset_delta();
    let count = info.record_count.unwrap_or(0);
    if last_offset_delta < 0 {
        let kind = ErrorKind::LastOffsetDeltaNegative { last_offset_delta };
        fault(kind, field::LAST_OFFSET_DELTA);
    } else if info.base_offset < 0
        || info.base_offset.checked_add(i64::from(last_offset_delta)).is_none()
    {
        let base_offset = info.base_offset;
        let kind = ErrorKind::OffsetOutOfRange { base_offset, last_offset_delta };
        fault(kind, field::BASE_OFFSET);
    }
    // More records than offsets.
    if last_offset_delta >= 0 && count > last_offset_delta.saturating_add(1) {
        let kind = ErrorKind::CountAboveOffsets { count, last_offset_delta };
        fault(kind, field::RECORD_COUNT);
    }
    let producer_id = info.producer_id;
    // Without a producer id the other two fields mean nothing: some clients leave a sequence of 0.
    if info.has_producer_id() {
        let (producer_epoch, base_sequence) = (info.producer_epoch, info.base_sequence);
        let sequence_ok = base_sequence >= 0 || (base_sequence == -1 && info.is_control());
        if producer_epoch < 0 || !sequence_ok {
            let kind = ErrorKind::ProducerFields { producer_id, producer_epoch, base_sequence };
            fault(kind, field::PRODUCER_ID);
        }
    } else if info.is_transactional() {
        fault(ErrorKind::TransactionalWithoutProducer { producer_id }, field::PRODUCER_ID);
    }
}
