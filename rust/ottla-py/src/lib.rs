//! The extension module `ottla._engine`: converts between Python and the engine's crates, decides nothing.
#![deny(unsafe_code)]
// What stands in `///` here is what Python's `help()` shows: reStructuredText, not Markdown.
#![allow(clippy::doc_markdown)]

mod audit;
mod build;
mod bytes;
mod check;
mod columns;
mod errors;
mod header_json;
mod internal_topics;
mod leader;
mod names;
mod partition;
mod partition_leader;
mod place;
mod read;
mod reading;
mod recovery;
mod replicas;
mod rows;
mod segment_table;
mod sidefiles;
mod tables;
mod verdict_table;

use pyo3::prelude::*;

/// The engine of Ottla.
#[pymodule(gil_used = false)]
mod _engine {
    #[pymodule_export]
    use crate::audit::{
        Chunk, Segment, SegmentScan, cause_catalogue, finding_catalogue, segment_cuts,
    };
    #[pymodule_export]
    use crate::build::{
        build_batch, build_batch_from_columns, build_control_batch, build_message_set,
    };
    #[pymodule_export]
    use crate::check::{bare_inflate, bare_read, check_batches, kernel_level};
    #[pymodule_export]
    use crate::columns::{Columns, read_columns};
    #[pymodule_export]
    use crate::internal_topics::{
        committed_offsets, decode_record, judge_committed_offset, judge_open_transaction,
        transactional_ids,
    };
    #[pymodule_export]
    use crate::leader::{RecordError, TopicSettings, Verdict, profile_differences, validate};
    #[pymodule_export]
    use crate::names::{directory_kind, file_name, parse_file_name, parse_partition_name};
    #[pymodule_export]
    use crate::partition::{PartitionScan, merge_partition};
    #[pymodule_export]
    use crate::partition_leader::{
        AbortedTransaction, Leader, ProducerState, RememberedBatch, VerificationGuard,
    };
    #[pymodule_export]
    use crate::reading::PartitionRecords;

    #[pymodule_export]
    use crate::read::{BatchIterator, Record, RecordBatch, RecordIterator, read_batches};

    #[pymodule_export]
    use crate::recovery::{predict_recovery, rebuild_side_files};

    #[pymodule_export]
    use crate::replicas::{Copy, compare_copies};
    #[pymodule_export]
    use crate::rows::{segment_batches, segment_columns, segment_records};

    #[pymodule_export]
    use crate::segment_table::{
        SegmentStream, SegmentTable, TableBatch, segment_stream, segment_table,
    };
    #[pymodule_export]
    use crate::sidefiles::{
        parse_leader_epochs, parse_offset_checkpoint, parse_partition_metadata,
    };

    #[pymodule_export]
    use crate::tables::{TableStream, table_stream};
    #[pymodule_export]
    use crate::verdict_table::validate_column;

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::check::check_environment()?;
        crate::names::add_constants(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
