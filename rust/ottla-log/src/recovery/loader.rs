//! The steps of a start, one after the other (`LogLoader`, and what `UnifiedLog` adds;
//! `docs/kafka/log-dir.md` §5).

use super::files::{FileContent, OPENING_BYTES};
use super::interruption::Interruption;
use super::open_file::MAX_TEXT_BYTES;
use super::partition_log::PartitionLog;
use super::restart::Restart;
use super::split::split_segment;
use super::swaps::finish_swaps;
use super::unflushed::recover_log;
use crate::names::{
    INDEX, LEADER_EPOCHS, LOG, PARTITION_METADATA, PartitionState, SegmentNames, TIME_INDEX,
    TRANSACTION_INDEX, file_name, offset_of,
};
use crate::sidefiles::metadata::read_partition_metadata;
use crate::sidefiles::transaction_index::AbortedTransaction;

/// Segments that are split before the prediction is given up.
const MAX_SPLITS: usize = 1000;

/// How often the log may be read again for segments that are split, on average.
const MAX_PASSES: u64 = 8;

/// Work that is done whatever the log has.
const MIN_WORK_BYTES: u64 = 64 << 20;

/// Where the log begins and ends.
#[derive(Clone, Copy)]
pub(super) struct LogBounds {
    pub(super) log_start_offset: i64,
    pub(super) log_end_offset: i64,
}

/// Loads a log.
pub(super) fn load(
    log: &mut PartitionLog<'_>,
    restart: &Restart,
) -> Result<LogBounds, Interruption> {
    match log.reader.read_epochs()? {
        Some(epochs) => log.epochs = epochs,
        None => log.reader.files.put(LEADER_EPOCHS, FileContent::Other),
    }
    log.state = log.new_state()?;
    finish_swaps(&mut log.reader)?;
    let mut splits_left = MAX_SPLITS;
    load_segments(log, restart, &mut splits_left)?;
    let log_end_offset = if is_deleted(&log.reader.partition) {
        if log.segments.is_empty() {
            log.create_segment(0)?;
        }
        0
    } else {
        recover_splitting(log, restart, &mut splits_left)?
    };
    log.epochs.truncate_from_end(log_end_offset);
    let checkpoint = restart.log_start_offset;
    let first = log.segments.first_key_value().map_or(checkpoint, |(&base, _)| base);
    let log_start_offset = checkpoint.max(first);
    log.epochs.truncate_from_start(checkpoint);
    let bases: Vec<_> = log.segments.keys().copied().collect();
    log.state.remove_strays(&bases, &mut log.reader.files)?;
    log.end_recovery();
    log.state.rebuild(
        &mut log.reader,
        &log.segments,
        log_start_offset,
        log_end_offset,
        restart.stopped_cleanly,
    )?;
    find_first_unstable(log, log_start_offset, log_end_offset)?;
    read_metadata(log)?;
    Ok(LogBounds { log_start_offset, log_end_offset })
}

/// Whether a directory of this name waits to be deleted.
fn is_deleted(partition: &str) -> bool {
    partition.as_bytes().ends_with(PartitionState::Delete.suffix())
}

/// Splits a segment, as long as not too many were split.
fn split(
    log: &mut PartitionLog<'_>,
    base_offset: i64,
    splits_left: &mut usize,
) -> Result<(), Interruption> {
    let Some(left) = splits_left.checked_sub(1) else {
        return Err(Interruption::limit(format!(
            "more than {MAX_SPLITS} segments hold offsets too far apart for their indexes"
        )));
    };
    *splits_left = left;
    split_segment(log, base_offset)
}

/// Recovers what was not flushed, anew each time a segment had to be split. Returns the end offset.
fn recover_splitting(
    log: &mut PartitionLog<'_>,
    restart: &Restart,
    splits_left: &mut usize,
) -> Result<i64, Interruption> {
    let before = log.reader.files.work();
    let segments = log.segments.values();
    let bytes = segments.map(|names| log.reader.stored(&names.log).map(|extent| extent.size));
    let bytes = bytes.sum::<Result<u64, _>>()?;
    let files = (log.segments.len() as u64).saturating_mul(OPENING_BYTES);
    let max_work = bytes.saturating_add(files).saturating_mul(MAX_PASSES);
    let max_work = max_work.saturating_add(MIN_WORK_BYTES);
    loop {
        match recover_log(log, restart) {
            Err(Interruption::Overflow { base_offset }) => {
                if log.reader.files.work().saturating_sub(before) > max_work {
                    return Err(Interruption::limit(
                        "segment after segment holds offsets too far apart for its indexes, and \
                         each time the start recovers the log again"
                            .to_owned(),
                    ));
                }
                split(log, base_offset, splits_left)?;
            }
            result => return result,
        }
    }
}

/// Loads the segments by name. Kafka begins anew after a segment had to be split, which changes
/// nothing about those before.
fn load_segments(
    log: &mut PartitionLog<'_>,
    restart: &Restart,
    splits_left: &mut usize,
) -> Result<(), Interruption> {
    log.segments.clear();
    let mut next = log.reader.files.name_after(b"");
    while let Some(name) = next {
        let mut index_suffixes = [INDEX, TIME_INDEX, TRANSACTION_INDEX].iter();
        if index_suffixes.any(|suffix| name.ends_with(suffix)) {
            if !log.reader.files.exists(&file_name(offset_of(&name)?, LOG)) {
                log.reader.files.remove(&name);
            }
        } else if name.ends_with(LOG) {
            let names = SegmentNames::of(offset_of(&name)?);
            match load_segment(log, names, restart) {
                Err(Interruption::Overflow { base_offset }) => {
                    split(log, base_offset, splits_left)?;
                    // Those that come later are not loaded yet.
                    log.segments.retain(|_, names| names.log <= name);
                }
                result => result?,
            }
        }
        next = log.reader.files.name_after(&name);
    }
    Ok(())
}

fn load_segment(
    log: &mut PartitionLog<'_>,
    names: SegmentNames,
    restart: &Restart,
) -> Result<(), Interruption> {
    log.reader.extent(&names.log)?;
    let is_valid = if log.reader.files.exists(&names.index) {
        if !log.reader.files.exists(&names.time_index) {
            log.reader.files.put(&names.time_index, FileContent::Other);
        }
        has_valid_transaction_index(log, &names, restart)?
    } else {
        false
    };
    if !is_valid {
        // What is recovered in any case has its turn once those before it are whole: until then a power
        // cut may have left anything in them, and over that Kafka gives up.
        let has_its_turn = log.is_for_use
            && !restart.stopped_cleanly
            && names.base_offset >= restart.recovery_point;
        match log.recover_segment(&names) {
            Err(Interruption::Corrupt(_) | Interruption::InvalidRecord(_)) if has_its_turn => {}
            result => drop(result?),
        }
    }
    log.segments.insert(names.base_offset, names);
    Ok(())
}

/// Whether no entry of a transaction index ends before its segment.
fn has_valid_transaction_index(
    log: &PartitionLog<'_>,
    names: &SegmentNames,
    restart: &Restart,
) -> Result<bool, Interruption> {
    let mut entries = log.aborted_on_disk(names)?;
    while let Some(bytes) = entries.next_entry()? {
        let Some(entry) = AbortedTransaction::read(&bytes, 0) else {
            if log.is_for_use && !restart.stopped_cleanly {
                // A power cut leaves any bytes, and recovery makes the index anew.
                return Ok(false);
            }
            let [version, ..] = bytes;
            let path = log.reader.path(&names.transaction_index);
            return Err(Interruption::kafka(format!(
                "Unexpected aborted transaction version {version} in transaction index {path}, \
                 current version is 0"
            )));
        };
        if entry.last_offset < names.base_offset {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Kafka looks for the batch where the oldest open transaction begins.
fn find_first_unstable(
    log: &mut PartitionLog<'_>,
    log_start_offset: i64,
    end_offset: i64,
) -> Result<(), Interruption> {
    let unstable = log.state.producers.transactions().first_unstable_offset();
    let Some(offset) = unstable.map(|offset| offset.max(log_start_offset)) else {
        return Ok(());
    };
    if offset >= end_offset {
        return Ok(());
    }
    for names in log.segments_from(offset) {
        if log.reader.translate(&names, offset)?.is_some() {
            break;
        }
    }
    Ok(())
}

fn read_metadata(log: &PartitionLog<'_>) -> Result<(), Interruption> {
    let Some(FileContent::Disk(origin)) = log.reader.files.get(PARTITION_METADATA) else {
        return Ok(());
    };
    let data = log.reader.files.read(origin, MAX_TEXT_BYTES)?;
    if read_partition_metadata(&data).is_err() {
        let path = log.reader.path(PARTITION_METADATA);
        let message = format!("Error while reading partition metadata file {path}");
        return Err(Interruption::storage(message));
    }
    Ok(())
}
