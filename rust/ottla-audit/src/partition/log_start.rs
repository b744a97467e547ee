//! Where the log starts according to its log directory, compared with its leader epochs.

use crate::catalogue::finding::Finding;
use crate::catalogue::kinds::FindingKind;
use crate::partition::scan::{PartitionContext, PartitionScan, PlacedFinding};
use ottla_format::words;

/// A log start offset that is above where the first leader epoch begins: a broker that moves the one
/// moves the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnexplainedStart {
    log_start_offset: i64,
    epoch: i32,
    epoch_start: i64,
}

impl UnexplainedStart {
    /// What shows it, in words.
    pub(crate) fn evidence(self) -> String {
        let Self { log_start_offset, epoch, epoch_start } = self;
        format!(
            "log-start-offset-checkpoint has {log_start_offset}, leader-epoch-checkpoint has epoch {epoch} from offset {epoch_start} on, and a broker that deletes records moves both up"
        )
    }
}

impl PartitionContext {
    /// Returns the log start offset, if the leader epochs do not agree with it.
    pub(crate) fn unexplained_start(&self) -> Option<UnexplainedStart> {
        let log_start_offset = self.log_start_offset.filter(|_| self.is_head)?;
        let &(epoch, epoch_start) = self.leader_epochs.first()?;
        (epoch_start < log_start_offset).then_some(UnexplainedStart {
            log_start_offset,
            epoch,
            epoch_start,
        })
    }
}

/// Adds the finding about a log start offset within the log that the leader epochs do not agree with.
pub(crate) fn judge(scan: &mut PartitionScan, context: &PartitionContext) {
    let Some(unexplained) = context.unexplained_start() else { return };
    let base = scan.segments.first().and_then(|segment| segment.context.base_offset);
    let UnexplainedStart { log_start_offset, epoch_start, .. } = unexplained;
    let first = epoch_start.max(base.unwrap_or(0));
    // One beyond the end is found where its file is judged.
    if first >= log_start_offset || log_start_offset > scan.log_end_offset {
        return;
    }
    let last = log_start_offset.saturating_sub(1);
    let message = format!(
        "{}: {}",
        words::offsets_are(first, last, "below the log start offset"),
        unexplained.evidence()
    );
    let finding = Finding::new(FindingKind::UnexplainedLogStart, message)
        .offsets(first, last)
        .values(format!("at most {epoch_start}"), log_start_offset);
    scan.findings.push(PlacedFinding { segment: 0, finding });
}
