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

mod arrow;
mod bare;
mod batch_builder;
mod batches;
mod build;
mod bytes;
mod calls;
mod check;
mod clean;
mod consumer_record;
mod copies;
mod damage;
mod error_codes;
mod errors;
mod fetched;
mod findings;
mod framing;
mod hashes;
mod header_structs;
mod integers;
mod internal_topics;
mod json;
mod kernels;
mod leader;
mod leader_options;
mod listing;
mod names;
mod numpy_columns;
mod packed_log;
mod packed_rows;
mod partition;
mod partition_batches;
mod partition_tables;
mod partitioning;
mod place;
mod placed;
mod plane;
mod plane_answers;
mod plane_compaction;
mod plane_errors;
mod plane_options;
mod plane_storage;
mod producer_state;
mod progress;
mod quorum_log;
mod readable_offsets;
mod reading;
mod record_error;
mod records;
mod recovery;
mod request_options;
mod row_arrays;
mod row_column;
mod row_columns;
mod rows;
mod scanners;
mod segment;
mod segment_table;
mod shown;
mod side_check;
mod side_entries;
mod sidefiles;
mod topic_settings;
mod traces;
mod validate;
mod validator;
mod verdict;
mod verdict_state;

use pyo3::prelude::*;

/// The engine of Ottla.
#[pymodule(gil_used = false)]
mod _engine {
    #[pymodule_export]
    use crate::arrow::columns::{Columns, read_columns};
    #[pymodule_export]
    use crate::arrow::fetched::{FetchedColumns, join_columns};
    #[pymodule_export]
    use crate::arrow::split::{SetSplit, split_column};
    #[pymodule_export]
    use crate::arrow::tables::{TableStream, table_stream};
    #[pymodule_export]
    use crate::arrow::verdicts::validate_column;
    #[pymodule_export]
    use crate::bare::{bare_inflate, bare_read};
    #[pymodule_export]
    use crate::batch_builder::BatchBuilder;
    #[pymodule_export]
    use crate::batches::{BatchIterator, RecordBatch, read_batches};
    #[pymodule_export]
    use crate::build::{
        build_batch, build_batch_from_columns, build_control_batch, build_message_set,
        build_quorum_batch,
    };
    #[pymodule_export]
    use crate::calls::provoke_panic;
    #[pymodule_export]
    use crate::check::check_batches;
    #[pymodule_export]
    use crate::clean::judge_clean;
    #[pymodule_export]
    use crate::consumer_record::ConsumerRecord;
    #[pymodule_export]
    use crate::copies::{Copy, CopyFinding, Difference, compare_copies};
    #[pymodule_export]
    use crate::error_codes::{ErrorCode, error_codes, leader_error_codes};
    #[pymodule_export]
    use crate::fetched::{FetchedRecords, read_fetched};
    #[pymodule_export]
    use crate::findings::{
        CauseExplanation, Explanation, Finding, cause_catalogue, finding_catalogue,
    };
    #[pymodule_export]
    use crate::framing::{follow_batches, lawful_hole};
    #[pymodule_export]
    use crate::hashes::{crc32c, murmur2};
    #[pymodule_export]
    use crate::internal_topics::{
        committed_offsets, decode_record, judge_committed_offset, judge_open_transaction,
        least_release, share_group_states, transactional_ids,
    };
    #[pymodule_export]
    use crate::json::values::json_rows;
    #[pymodule_export]
    use crate::kernels::{build_profile, kernel_level, release_freed_memory};
    #[pymodule_export]
    use crate::leader::Leader;
    #[pymodule_export]
    use crate::listing::list_plain_partitions;
    #[pymodule_export]
    use crate::names::{
        directory_kind, file_name, lacks_offset, listed_order, live_base_offsets, parse_file_name,
        parse_partition_name, refuses_start, stray_name,
    };
    #[pymodule_export]
    use crate::packed_log::{PackedLog, partition_tables};
    #[pymodule_export]
    use crate::partition::{PartitionScan, merge_partition};
    #[pymodule_export]
    use crate::partition_batches::{PartitionBatches, PartitionColumns};
    #[pymodule_export]
    use crate::partitioning::{partitions_of, rows_by_partition};
    #[pymodule_export]
    use crate::plane::DataPlane;
    #[pymodule_export]
    use crate::plane_answers::{Fetched, Produced, Verification};
    #[pymodule_export]
    use crate::plane_compaction::{CompactJob, Compaction};
    #[pymodule_export]
    use crate::plane_storage::FlushJob;
    #[pymodule_export]
    use crate::producer_state::{
        AbortedTransaction, ProducerState, RememberedBatch, VerificationGuard,
    };
    #[pymodule_export]
    use crate::quorum_log::{QuorumLog, metadata_snapshot_fault};
    #[pymodule_export]
    use crate::readable_offsets::ReadableOffsets;
    #[pymodule_export]
    use crate::reading::{PartitionRecords, partition_transactions};

    #[pymodule_export]
    use crate::record_error::RecordError;
    #[pymodule_export]
    use crate::records::{Record, RecordIterator};

    #[pymodule_export]
    use crate::recovery::{
        Rebuild, RebuiltIndexes, Recovery, SideFiles, Start, predict_recovery, predict_starts,
    };

    #[pymodule_export]
    use crate::rows::{segment_batches, segment_columns, segment_records};

    #[pymodule_export]
    use crate::segment::{Chunk, Segment, SegmentScan, segment_cuts};
    #[pymodule_export]
    use crate::segment_table::{
        SegmentStream, SegmentTable, TableBatch, segment_stream, segment_table,
    };
    #[pymodule_export]
    use crate::side_check::{
        check_names, epoch_beyond_end, foreign_topic_ids, missing_log, offset_beyond_end,
        partitions_without_directory, proved_end, unreadable_text_file,
    };
    #[pymodule_export]
    use crate::side_entries::parse_side_entries;
    #[pymodule_export]
    use crate::sidefiles::{
        parse_leader_epochs, parse_meta_properties, parse_offset_checkpoint,
        parse_partition_metadata, release_bounds, write_offset_checkpoint,
    };

    #[pymodule_export]
    use crate::placed::{count_findings, sorted_findings};
    #[pymodule_export]
    use crate::topic_settings::TopicSettings;
    #[pymodule_export]
    use crate::traces::{FindingGroups, group_findings};
    #[pymodule_export]
    use crate::validate::{
        SetPart, kafka_versions, profile_differences, release_differences, validate, validate_each,
        validate_stored,
    };
    #[pymodule_export]
    use crate::verdict::Verdict;

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::kernels::check_environment()?;
        crate::names::add_constants(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
