//! The segments of a partition put together: findings, and the rows of the tables that a partition
//! fills.

use crate::findings::Finding;
use crate::place::{Place, reason_to_stop};
use crate::placed::{Placed, PlacedFindings};
use crate::segment::SegmentScan;
use ottla_audit::partition::side_check::SideFiles;
use ottla_audit::{PartitionContext, SideFile, merge_partition_with};
use ottla_log::source::{Source, fill};
use ottla_py_batches::calls::detached;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io;
use std::sync::Mutex;

/// What the segments of a partition show together. It names files by the numbers they came with.
#[pyclass(frozen, module = "ottla._engine")]
pub struct PartitionScan {
    pub(crate) inner: ottla_audit::PartitionScan,
    pub(crate) context: PartitionContext,
    pub(crate) files: Vec<u32>,
}

impl PartitionScan {
    pub(crate) fn file(&self, segment: usize) -> Option<u32> {
        self.files.get(segment).copied()
    }

    pub(crate) fn has_offsets(&self) -> bool {
        let first = self.inner.segments.first();
        self.inner.counters.batches > 0
            || first.is_some_and(|segment| segment.context.base_offset.is_some())
    }
}

#[pymethods]
impl PartitionScan {
    /// First offset that a consumer can get; ``None`` without a batch and a name.
    #[getter]
    fn log_start_offset(&self) -> Option<i64> {
        self.has_offsets().then_some(self.inner.log_start_offset)
    }

    /// The last offset plus one; ``None`` without a batch and a name.
    #[getter]
    fn log_end_offset(&self) -> Option<i64> {
        self.has_offsets().then_some(self.inner.log_end_offset)
    }

    /// Where ``read_committed`` consumers stop at the latest; ``None`` without a batch and a name.
    #[getter]
    fn last_stable_offset(&self) -> Option<i64> {
        self.has_offsets().then_some(self.inner.last_stable_offset)
    }

    /// All findings by file and position, each with the number of its segment. Where one file has more
    /// than a thousand of a kind, or the partition more than 4,096, the rest is one finding that counts
    /// them.
    #[getter]
    fn findings(&self) -> Vec<(u32, Finding)> {
        let kept = self.inner.findings.iter().cloned();
        self.all_findings(kept).map(|(file, finding)| (file, Finding::from(finding))).collect()
    }

    /// The same at their places.
    ///
    /// Args:
    ///     paths: of the files, by their numbers.
    ///     directory: of the partition, if there is one.
    #[expect(clippy::needless_pass_by_value, reason = "a list of Python arrives as a vector")]
    fn placed(
        &self,
        paths: Vec<Bound<'_, PyBytes>>,
        directory: Option<Bound<'_, PyBytes>>,
    ) -> PlacedFindings {
        let kept = self.inner.findings.iter().cloned();
        PlacedFindings::new(placed(self.all_findings(kept), &paths, directory.as_ref()))
    }
}

impl PartitionScan {
    /// The findings of a partition of which nothing else is needed, at their places.
    pub(crate) fn into_placed(
        mut self,
        paths: &[Bound<'_, PyBytes>],
        directory: &Bound<'_, PyBytes>,
    ) -> PlacedFindings {
        let kept = std::mem::take(&mut self.inner.findings).into_iter();
        PlacedFindings::new(placed(self.all_findings(kept), paths, Some(directory)))
    }

    /// All findings, with those that were kept: each with the number of its file.
    fn all_findings(
        &self,
        kept: impl Iterator<Item = ottla_audit::PlacedFinding>,
    ) -> impl Iterator<Item = (u32, ottla_audit::Finding)> {
        let kept = kept.map(|placed| (placed.segment, placed.finding));
        let suppressed = self.inner.suppressed.iter().map(|&(segment, kind, count)| {
            let message = format!("and {count} more of these in this file");
            let finding = ottla_audit::Finding::new(kind, message);
            // Nobody has looked how grave each of them is.
            let severity = finding.severity.max(ottla_audit::Severity::Warning);
            (segment, finding.graded(severity))
        });
        let left_out = self.inner.left_out.iter().map(|(&kind, &(count, severity))| {
            let message = format!("and {count} more of these in this partition");
            (0, ottla_audit::Finding::new(kind, message).graded(severity))
        });
        kept.chain(suppressed)
            .chain(left_out)
            .filter_map(|(segment, finding)| Some((self.file(segment)?, finding)))
    }
}

/// Findings at their places: `paths` are of the files, by their numbers.
fn placed(
    findings: impl Iterator<Item = (u32, ottla_audit::Finding)>,
    paths: &[Bound<'_, PyBytes>],
    directory: Option<&Bound<'_, PyBytes>>,
) -> impl Iterator<Item = Placed> {
    findings.filter_map(move |(file, finding)| {
        Some(Placed::new(finding, paths.get(file as usize)?, directory))
    })
}

/// Producers of a partition that take as much as a megabyte.
const MANY_PRODUCERS: usize = 1 << 12;

/// A side file is read whole; none of a broker is larger.
const MAX_SIDE_FILE_BYTES: u64 = 64 << 20;

/// The files beside the segments of a partition.
#[derive(Default)]
struct Beside {
    offsets: Vec<i64>,
    snapshots: Vec<Place>,
    transaction_indexes: Vec<Option<Place>>,
    stop: Mutex<Option<PyErr>>,
}

impl SideFiles for Beside {
    fn snapshots(&self) -> &[i64] {
        &self.offsets
    }

    fn read(&self, file: SideFile, segment: usize) -> io::Result<Option<Vec<u8>>> {
        let place = match file {
            SideFile::Snapshot(offset) => {
                let place = self.offsets.binary_search(&offset);
                place.ok().and_then(|place| self.snapshots.get(place))
            }
            SideFile::TransactionIndex => {
                self.transaction_indexes.get(segment).and_then(Option::as_ref)
            }
            _ => None,
        };
        let Some(place) = place else { return Ok(None) };
        let read = read_whole(place);
        if let Some(raised) = read.as_ref().err().and_then(reason_to_stop)
            && let Ok(mut stop) = self.stop.lock()
        {
            *stop = Some(raised);
        }
        read.map(Some)
    }

    fn is_known(&self) -> bool {
        !self.transaction_indexes.is_empty()
    }
}

/// Reads a side file.
fn read_whole(place: &Place) -> io::Result<Vec<u8>> {
    let source = place.open()?;
    let size = source.size()?;
    if size > MAX_SIDE_FILE_BYTES {
        return Err(io::Error::other(format!("more than {MAX_SIDE_FILE_BYTES} bytes")));
    }
    let mut data = vec![0; usize::try_from(size).unwrap_or(0)];
    let filled = fill(&source, 0, &mut data)?;
    data.truncate(filled);
    Ok(data)
}

/// Puts the scans of a partition together, in the order of their base offsets.
///
/// Args:
///     scans: pairs of a number, by which findings and rows name the file, and its scan.
///     topic: of the partition.
///     log_start_offset: of ``log-start-offset-checkpoint``, if it has an entry.
///     recovery_point, high_watermark: of the checkpoints of those names, if they have an entry and
///         the last of the scans is of the active segment.
///     first_dirty_offset: of ``cleaner-offset-checkpoint``, if it has an entry.
///     leader_epochs: epochs and start offsets of ``leader-epoch-checkpoint``.
///     cleanup_policy, remote_storage, max_message_bytes, is_preallocated: of the topic's configuration, if known.
///     is_growing: whether the file of the last scan, the active segment, has grown since it was listed.
///     is_head: whether the first of the scans is of the partition's first segment.
///     is_consumer_offsets: whether the partition belongs to ``__consumer_offsets``.
///     orphans: base offsets of index files without their ``.log``.
///     snapshots: offsets and paths of the producer snapshots, by offset; the path, or an object that
///         reads it, see :class:`Segment`.
///     transaction_indexes: of each scan the path of its ``.txnindex``, if there is one; empty when
///         the files beside the segments are not to be compared.
#[pyfunction]
#[pyo3(signature = (
    scans, *, topic=None, log_start_offset=None, recovery_point=None, high_watermark=None,
    first_dirty_offset=None, leader_epochs=vec![], cleanup_policy=None, remote_storage=None,
    max_message_bytes=None, is_preallocated=None, is_growing=false, is_head=false,
    is_consumer_offsets=false, orphans=vec![], snapshots=vec![], transaction_indexes=vec![]
))]
#[expect(clippy::too_many_arguments, reason = "by name")]
#[expect(clippy::needless_pass_by_value, reason = "a list of Python arrives as a vector")]
pub fn merge_partition(
    py: Python<'_>,
    scans: Vec<(u32, Py<SegmentScan>)>,
    topic: Option<String>,
    log_start_offset: Option<i64>,
    recovery_point: Option<i64>,
    high_watermark: Option<i64>,
    first_dirty_offset: Option<i64>,
    leader_epochs: Vec<(i32, i64)>,
    cleanup_policy: Option<String>,
    remote_storage: Option<bool>,
    max_message_bytes: Option<u64>,
    is_preallocated: Option<bool>,
    is_growing: bool,
    is_head: bool,
    is_consumer_offsets: bool,
    orphans: Vec<i64>,
    snapshots: Vec<(i64, Place)>,
    transaction_indexes: Vec<Option<Place>>,
) -> PyResult<PartitionScan> {
    let (offsets, snapshots) = snapshots.into_iter().unzip();
    let beside = Beside { offsets, snapshots, transaction_indexes, stop: Mutex::new(None) };
    let context = PartitionContext {
        topic,
        log_start_offset,
        recovery_point,
        high_watermark,
        max_message_bytes,
        is_preallocated,
        is_growing,
        first_dirty_offset,
        leader_epochs,
        cleanup_policy,
        remote_storage,
        is_head,
        is_consumer_offsets,
        orphans,
    };
    let files = scans.iter().map(|(file, _)| *file).collect();
    let inner = detached(py, || {
        let producers = scans.iter().map(|(_, scan)| scan.get().inner.producer_count());
        let release: fn() = if producers.sum::<usize>() >= MANY_PRODUCERS {
            ottla_kernels::release_freed_memory
        } else {
            || ()
        };
        // What only served to scan or merge them is not held beside what is made of them.
        release();
        let segments = scans.iter().map(|(_, scan)| &scan.get().inner);
        let merged = merge_partition_with(segments, &context, &beside);
        release();
        merged
    })?;
    match beside.stop.into_inner().ok().flatten() {
        Some(stop) => Err(stop),
        None => Ok(PartitionScan { inner, context, files }),
    }
}
