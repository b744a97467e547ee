//! The leader epochs of a partition.

use crate::segment::segment_scan::SegmentScan;

/// A leader epoch of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// The epoch.
    pub epoch: i32,
    /// Offset of its first batch, if there is one.
    pub start_offset: Option<i64>,
    /// How many consecutive batches it has.
    pub batches: u64,
    /// Its start offset in `leader-epoch-checkpoint`.
    pub checkpoint_start_offset: Option<i64>,
}

/// Returns the epochs of the segments, joined with the entries of `leader-epoch-checkpoint`.
pub(crate) fn join_epochs(segments: &[SegmentScan], checkpoint: &[(i32, i64)]) -> Vec<Epoch> {
    let mut epochs: Vec<Epoch> = Vec::new();
    for run in segments.iter().flat_map(|scan| &scan.leader_epochs) {
        match epochs.last_mut() {
            Some(last) if last.epoch == run.epoch => {
                last.batches = last.batches.saturating_add(run.batches);
            }
            _ => epochs.push(Epoch {
                epoch: run.epoch,
                start_offset: Some(run.start_offset),
                batches: run.batches,
                checkpoint_start_offset: None,
            }),
        }
    }
    for &(epoch, start_offset) in checkpoint {
        let index = epochs.partition_point(|known| known.epoch < epoch);
        match epochs.get_mut(index).filter(|known| known.epoch == epoch) {
            Some(known) => known.checkpoint_start_offset = Some(start_offset),
            None => epochs.insert(
                index,
                Epoch {
                    epoch,
                    start_offset: None,
                    batches: 0,
                    checkpoint_start_offset: Some(start_offset),
                },
            ),
        }
    }
    epochs
}
