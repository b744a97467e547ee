//! The leader epochs of a partition.

use crate::segment::segment_scan::SegmentScan;
use std::collections::BTreeMap;

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
    let mut listed: BTreeMap<i32, i64> = checkpoint.iter().copied().collect();
    for known in &mut epochs {
        // Of an epoch that comes back, the first run is the one that the checkpoint means.
        known.checkpoint_start_offset = listed.remove(&known.epoch);
    }
    let mut joined = Vec::with_capacity(epochs.len().saturating_add(listed.len()));
    for known in epochs {
        while let Some(before) = listed.first_entry()
            && *before.key() < known.epoch
        {
            joined.push(without_batches(before.remove_entry()));
        }
        joined.push(known);
    }
    joined.extend(listed.into_iter().map(without_batches));
    joined
}

/// An epoch that only the checkpoint has.
fn without_batches((epoch, start_offset): (i32, i64)) -> Epoch {
    let checkpoint_start_offset = Some(start_offset);
    Epoch { epoch, start_offset: None, batches: 0, checkpoint_start_offset }
}
