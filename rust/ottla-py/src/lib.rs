//! The extension module `ottla._engine`: converts between Python and the engine's crates, decides nothing.
#![deny(unsafe_code)]
#![warn(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::arithmetic_side_effects
)]
// What stands in `///` here is what Python's `help()` shows: reStructuredText, not Markdown.
#![allow(clippy::doc_markdown)]

use pyo3::prelude::*;

/// The engine of Ottla.
#[pymodule(gil_used = false)]
mod _engine {
    #[pymodule_export]
    use ottla_py_batches::batch_builder::BatchBuilder;
    #[pymodule_export]
    use ottla_py_batches::batches::{BatchIterator, RecordBatch, read_batches};
    #[pymodule_export]
    use ottla_py_batches::build::{
        build_batch, build_batch_from_columns, build_control_batch, build_message_set,
        build_quorum_batch,
    };
    #[pymodule_export]
    use ottla_py_batches::calls::provoke_panic;
    #[pymodule_export]
    use ottla_py_batches::check::check_batches;
    #[pymodule_export]
    use ottla_py_batches::columns::{Columns, read_columns};
    #[pymodule_export]
    use ottla_py_batches::consumer_record::ConsumerRecord;
    #[pymodule_export]
    use ottla_py_batches::error_codes::{ErrorCode, error_codes, leader_error_codes};
    #[pymodule_export]
    use ottla_py_batches::fetched::{FetchedRecords, read_fetched};
    #[pymodule_export]
    use ottla_py_batches::fetched_columns::{FetchedColumns, join_columns};
    #[pymodule_export]
    use ottla_py_batches::hashes::{crc32c, murmur2};
    #[pymodule_export]
    use ottla_py_batches::kernels::{
        build_profile, kernel_level, release_freed_memory, require_numpy,
    };
    #[pymodule_export]
    use ottla_py_batches::leader::Leader;
    #[pymodule_export]
    use ottla_py_batches::partitioning::{partitions_of, rows_by_partition};
    #[pymodule_export]
    use ottla_py_batches::producer_state::{
        AbortedTransaction, ProducerState, RememberedBatch, VerificationGuard,
    };
    #[pymodule_export]
    use ottla_py_logs::arrow::split::{SetSplit, split_column};
    #[pymodule_export]
    use ottla_py_logs::arrow::tables::{TableStream, table_stream};
    #[pymodule_export]
    use ottla_py_logs::arrow::verdicts::validate_column;
    #[pymodule_export]
    use ottla_py_logs::bare::{bare_inflate, bare_read};
    #[pymodule_export]
    use ottla_py_logs::copies::{Copy, CopyFinding, Difference, compare_copies};
    #[pymodule_export]
    use ottla_py_logs::findings::{
        CauseExplanation, Explanation, Finding, cause_catalogue, finding_catalogue,
    };
    #[pymodule_export]
    use ottla_py_logs::framing::{follow_batches, lawful_hole};
    #[pymodule_export]
    use ottla_py_logs::internal_topics::{
        committed_offsets, decode_record, judge_committed_offset, judge_open_transaction,
        least_release, share_group_states, transactional_ids,
    };
    #[pymodule_export]
    use ottla_py_logs::json::values::json_rows;
    #[pymodule_export]
    use ottla_py_logs::listing::{PlainPartitions, list_plain_partitions};
    #[pymodule_export]
    use ottla_py_logs::names::{
        directory_kind, file_name, lacks_offset, listed_order, live_base_offsets, parse_file_name,
        parse_partition_name, refuses_start, stray_name,
    };
    #[pymodule_export]
    use ottla_py_logs::packed_log::{PackedLog, partition_tables};
    #[pymodule_export]
    use ottla_py_logs::partition::{PartitionScan, merge_partition};
    #[pymodule_export]
    use ottla_py_logs::partition_batches::{PartitionBatches, PartitionColumns};
    #[pymodule_export]
    use ottla_py_logs::readable_offsets::ReadableOffsets;
    #[pymodule_export]
    use ottla_py_logs::reading::{PartitionRecords, partition_transactions};
    #[pymodule_export]
    use ottla_py_plane::plane::DataPlane;
    #[pymodule_export]
    use ottla_py_plane::plane_answers::{Fetched, Produced, Verification};
    #[pymodule_export]
    use ottla_py_plane::plane_compaction::{CompactJob, Compaction};
    #[pymodule_export]
    use ottla_py_plane::plane_storage::FlushJob;
    #[pymodule_export]
    use ottla_py_plane::quorum_log::{QuorumLog, metadata_snapshot_fault};

    #[pymodule_export]
    use ottla_py_batches::record_error::RecordError;
    #[pymodule_export]
    use ottla_py_batches::records::{Record, RecordIterator};

    #[pymodule_export]
    use ottla_py_logs::recovery::{
        Rebuild, RebuiltIndexes, Recovery, SideFiles, Start, predict_recovery, predict_starts,
    };

    #[pymodule_export]
    use ottla_py_logs::rows::{segment_batches, segment_columns, segment_records};

    #[pymodule_export]
    use ottla_py_logs::segment::{Chunk, Segment, SegmentScan, segment_cuts};
    #[pymodule_export]
    use ottla_py_logs::segment_table::{
        SegmentStream, SegmentTable, TableBatch, segment_stream, segment_table,
    };
    #[pymodule_export]
    use ottla_py_logs::side_check::{
        check_names, epoch_beyond_end, foreign_topic_ids, missing_log, offsets_beyond_end,
        orphaned_indexes, partitions_without_directory, proved_end, unreadable_text_file,
    };
    #[pymodule_export]
    use ottla_py_logs::side_entries::parse_side_entries;
    #[pymodule_export]
    use ottla_py_logs::sidefiles::{
        parse_leader_epochs, parse_meta_properties, parse_offset_checkpoint,
        parse_partition_metadata, release_bounds, write_offset_checkpoint,
    };

    #[pymodule_export]
    use ottla_py_batches::topic_settings::TopicSettings;
    #[pymodule_export]
    use ottla_py_batches::validate::{
        SetPart, kafka_versions, profile_differences, release_differences, validate, validate_each,
        validate_stored,
    };
    #[pymodule_export]
    use ottla_py_batches::verdict::Verdict;
    #[pymodule_export]
    use ottla_py_logs::events::event_rows;
    #[pymodule_export]
    use ottla_py_logs::finding_rows::finding_rows;
    #[pymodule_export]
    use ottla_py_logs::placed::PlacedFindings;
    #[pymodule_export]
    use ottla_py_logs::traces::{FindingGroups, group_findings};
    #[pymodule_export]
    use ottla_py_logs::whole_logs::judge_whole_logs;

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        ottla_py_batches::kernels::check_environment()?;
        ottla_py_logs::names::add_constants(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
