//! One pass over a segment, as `LogSegment.recover` makes it (`docs/kafka/log-dir.md` §6).
//!
//! The pass ends at the first batch that is framed wrongly, whose checksum is wrong, or whose marker
//! cannot be read; what comes before is valid.

use super::epochs::LeaderEpochs;
use super::index_builder::{IndexBuilder, IndexConfig};
use super::interruption::Interruption;
use super::replay::{commit, judge, producer_batch};
use super::segment_file::{Frame, SegmentFile};
use crate::producers::{Pending, Producers};
use crate::sidefiles::offset_index::is_in_reach;
use ottla_format::batch::BatchInfo;
use ottla_format::compression::Codecs;

/// What the pass needs, and what it brings up to date.
pub(super) struct SegmentRecovery<'a> {
    pub(super) config: &'a IndexConfig,
    pub(super) codecs: &'a mut Codecs,
    pub(super) producers: &'a mut Producers,
    /// Producers of the batches.
    pub(super) changed: &'a mut Vec<i64>,
    pub(super) epochs: &'a mut LeaderEpochs,
    pub(super) partition: &'a str,
}

impl SegmentRecovery<'_> {
    /// Reads a segment from its beginning. Returns why batches at its end are not valid. What `built`
    /// holds counts after an exception, too.
    pub(super) fn run(
        &mut self,
        log: &mut SegmentFile<'_>,
        built: &mut IndexBuilder,
    ) -> Result<Option<String>, Interruption> {
        match self.read_batches(log, built) {
            Ok(()) => Ok(None),
            Err(Interruption::Corrupt(message) | Interruption::InvalidRecord(message)) => {
                Ok(Some(message))
            }
            Err(interruption) => Err(interruption),
        }
    }

    fn read_batches(
        &mut self,
        log: &mut SegmentFile<'_>,
        built: &mut IndexBuilder,
    ) -> Result<(), Interruption> {
        let base_offset = built.base_offset;
        while let Some(frame) = log.next(built.valid_bytes, log.size())? {
            log.check(&frame)?;
            let info = log.info(&frame)?;
            if !is_in_reach(base_offset, info.last_offset) {
                return Err(Interruption::Overflow { base_offset });
            }
            built.add(info.last_offset, info.max_timestamp, self.config)?;
            built.valid_bytes = frame.end();
            if frame.magic >= 2 {
                self.epochs.begin(info.partition_leader_epoch, info.base_offset)?;
                self.track_producer(log, &frame, &info, built)?;
                self.producers.set_end_offset(info.last_offset.wrapping_add(1));
            }
        }
        Ok(())
    }

    fn track_producer(
        &mut self,
        log: &mut SegmentFile<'_>,
        frame: &Frame,
        info: &BatchInfo,
        built: &mut IndexBuilder,
    ) -> Result<(), Interruption> {
        let Some(batch) = producer_batch(log, frame, info, self.codecs)? else { return Ok(()) };
        let mut pending = Pending::default();
        judge(self.producers, &batch, &mut pending, self.partition)?;
        for aborted in commit(self.producers, pending, self.changed, self.partition)? {
            built.add_aborted(aborted)?;
        }
        Ok(())
    }
}
