//! Recovering what was not flushed before the broker stopped, and finding the end of the log
//! (`docs/kafka/log-dir.md` §6).

use super::interruption::Interruption;
use super::partition_log::PartitionLog;
use super::restart::Restart;
use crate::names::SegmentNames;

/// Recovers unflushed segments after an unclean stop. Returns the end offset of the log.
pub(super) fn recover_log(
    log: &mut PartitionLog<'_>,
    restart: &Restart,
) -> Result<i64, Interruption> {
    if !restart.stopped_cleanly {
        recover_unflushed(log, restart)?;
    }
    let checkpoint = restart.log_start_offset;
    if let Some(names) = log.segments.last_key_value().map(|(_, names)| names.clone()) {
        let log_end_offset = log.reader.next_offset(&names)?;
        if log_end_offset >= checkpoint {
            return Ok(log_end_offset);
        }
        let all: Vec<_> = log.segments.keys().copied().collect();
        log.delete_segments(&all);
        log.epochs.clear();
        log.state.truncate_fully(checkpoint, &mut log.reader.files);
    }
    log.create_segment(checkpoint)?;
    log.reader.next_offset(&SegmentNames::of(checkpoint))
}

fn recover_unflushed(log: &mut PartitionLog<'_>, restart: &Restart) -> Result<(), Interruption> {
    let mut unflushed = log.segments_from(restart.recovery_point).into_iter();
    while let Some(names) = unflushed.next() {
        let cut = match log.recover_segment(&names) {
            Err(Interruption::InvalidOffset(_)) => log.empty_segment(&names)?,
            result => result?,
        };
        let mut is_torn = cut > 0;
        if is_torn {
            // Kafka logs the offset it has cut to, and reads the segment for it.
            log.reader.next_offset(&names)?;
        } else if restart.is_dense
            && let Some(next) = unflushed.as_slice().first()
        {
            // A power cut may have taken whole batches from the end of a segment.
            is_torn = log.reader.next_offset(&names)? < next.base_offset;
        }
        if is_torn {
            let later: Vec<_> = unflushed.map(|names| names.base_offset).collect();
            log.delete_segments(&later);
            break;
        }
    }
    Ok(())
}
