"""The columns of every table of an audit, defined once for all formats.

`TABLES` is used by the JSON and Arrow formats, by `docs/tables.md` and by the tests. To add a
column, add a row here and its value where the table is filled.
"""

from __future__ import annotations

from ottla.logs.columns import BATCH_COLUMNS, PLACE_COLUMNS, RECORD_COLUMNS, Column

FILE_COLUMNS = len(PLACE_COLUMNS)
"""Number of columns for the place, at the start of `files`, `batches` and `records`."""

FILES = (
    *PLACE_COLUMNS,
    Column("kind", "string", "kind by its name: segment, offset-index, … unknown"),
    Column("state", "string", "live, deleted, swap, cleaned or temporary"),
    Column("partition_state", "string", "live, delete, future or stray"),
    Column("size", "int64", "size in bytes when listed"),
    Column("base_offset", "int64", "offset in its name"),
    Column("is_read", "bool", "whether the file was scanned"),
    Column("batches", "int64", "batches, without those that are damaged or misplaced"),
    Column("records", "int64", "records in them"),
    Column("first_offset", "int64", "offset of the first record"),
    Column("next_offset", "int64", "last offset plus one"),
    Column("min_timestamp", "int64", "smallest timestamp, ms since 1970"),
    Column("max_timestamp", "int64", "largest timestamp, ms since 1970"),
    Column("magics", "list", "magic values of its batches"),
    Column("codecs", "list", "codecs of its batches"),
    Column("reason", "string", "why it could not be read"),
)

BATCHES = (*PLACE_COLUMNS, *BATCH_COLUMNS)

RECORDS = (*PLACE_COLUMNS, *RECORD_COLUMNS)

QUARANTINE = (
    *RECORDS,
    Column("reason", "string", "name of the finding about the record or the bytes"),
    Column("message", "string", "full description"),
    Column("record_index", "int32", "index of the record in its batch; null for whole ranges"),
    Column("size", "int64", "size of a range that is not a readable batch; null for a record"),
    Column("bytes", "binary", "the bytes of that range"),
)

FINDINGS = (
    Column("name", "string", "name of the finding; see docs/findings.md"),
    Column("severity", "string", "error, warning or info"),
    *PLACE_COLUMNS,
    Column("position", "int64", "position in the file"),
    Column("size", "int64", "bytes affected"),
    Column("first_offset", "int64", "first offset affected"),
    Column("last_offset", "int64", "last offset affected, inclusive"),
    Column("record_index", "int32", "index of the record in its batch"),
    Column("producer_id", "int64", "producer id"),
    Column("next_good_offset", "int64", "offset at which consumers can continue"),
    Column("cause", "string", "why offsets are missing; see docs/findings.md"),
    Column("replica", "string", "copy affected, if copies of a partition are compared"),
    Column("good_replicas", "list", "copies to trust; empty if unknown"),
    Column("commands", "list", "commands that diagnose or repair it"),
    Column("expected", "string", "expected value"),
    Column("found", "string", "value found"),
    Column("message", "string", "full description"),
    Column("event", "int32", "number of the event that it shows"),
)

EVENTS = (
    Column("event", "int32", "number, from 1 in the order of weight"),
    Column("name", "string", "name of the finding that is the cause, or shows it best"),
    Column("severity", "string", "of its gravest finding: error, warning or info"),
    Column("verdict", "string", "what it alone makes of the log: SOUND, SUSPECT, DAMAGED, …"),
    *PLACE_COLUMNS,
    Column("position", "int64", "position in the file"),
    Column("first_offset", "int64", "first offset affected"),
    Column("last_offset", "int64", "last offset affected, inclusive"),
    Column(
        "first_timestamp",
        "int64",
        "when its records were written at the earliest, ms since 1970: the smallest timestamp of"
        " the segments that it is in, or the largest one before records that are gone",
    ),
    Column(
        "last_timestamp",
        "int64",
        "when they were written at the latest: the largest timestamp of these segments, or the"
        " smallest one behind records that are gone; null if nothing is behind them",
    ),
    Column("next_good_offset", "int64", "offset at which consumers can continue"),
    Column("offsets_lost", "int64", "offsets whose records cannot be read in this copy"),
    Column(
        "records_lost",
        "int64",
        "records at these offsets; null if some of them may have had none: at most as many",
    ),
    Column("blocks", "string", "consumers that do not get past it: all, or read_committed only"),
    Column("blocked_offset", "int64", "offset at which they stop"),
    Column("cause", "string", "cause of the loss; see docs/findings.md"),
    Column("replica", "string", "copy affected, if copies of a partition are compared"),
    Column("good_replicas", "list", "copies to trust; empty if unknown"),
    Column("findings", "int64", "number of findings that show it"),
    Column("files", "list", "files of these findings, that of the cause first"),
    Column("action", "string", "what to do"),
    Column("message", "string", "what happened, and where else it shows"),
)

TRANSACTIONS = (
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column("producer_id", "int64", "producer id"),
    Column("producer_epoch", "int32", "producer epoch"),
    Column("coordinator_epoch", "int32", "epoch of the marker's coordinator; -1 for none"),
    Column(
        "state",
        "string",
        "committed, aborted, open, or hanging: unknown to its coordinator",
    ),
    Column("first_offset", "int64", "offset of its first record"),
    Column("last_offset", "int64", "offset of its last record"),
    Column("marker_offset", "int64", "offset of its end marker"),
    Column("batches", "int64", "its batches, without the marker"),
    Column("records", "int64", "its records"),
    Column("bytes", "int64", "size of its batches in bytes"),
    Column("first_timestamp", "int64", "largest timestamp of its first batch, ms since 1970"),
    Column("last_timestamp", "int64", "timestamp of its marker, or of its last batch without one"),
    Column("duration_ms", "int64", "from first_timestamp to its marker or the newest timestamp"),
    Column("transactional_id", "string", "of an open one, from __transaction_state"),
    Column("coordinator_state", "string", "the coordinator's state of that id: Ongoing, Empty, …"),
    Column("holds_last_stable_offset", "bool", "whether read_committed consumers stop at it"),
    Column("commands", "list", "commands that end it; HOST stands for a broker"),
)

GAPS = (
    *PLACE_COLUMNS,
    Column("position", "int64", "position in the file, if the gap is inside one"),
    Column("first_offset", "int64", "first missing offset"),
    Column("last_offset", "int64", "last missing offset, inclusive"),
    Column("ranges", "int64", "number of ranges that the row sums up; 1 for a contiguous one"),
    Column("offsets", "int64", "number of missing offsets"),
    Column("reader", "string", "consumers that do not receive them: all, or read_committed only"),
    Column("cause", "string", "reason; see docs/findings.md"),
    Column("confidence", "string", "certain, likely or possible"),
    Column("evidence", "string", "evidence for the cause"),
)

EPOCHS = (
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column("leader_epoch", "int32", "epoch of the leader that appended the batches"),
    Column("start_offset", "int64", "offset of its first batch; null if none is left"),
    Column("batches", "int64", "its consecutive batches"),
    Column("checkpoint_start_offset", "int64", "its start in leader-epoch-checkpoint"),
)

TIMELINE = (
    *PLACE_COLUMNS,
    Column("base_offset", "int64", "offset in the name of the segment"),
    Column("next_offset", "int64", "last offset plus one"),
    Column("batches", "int64", "batches of the segment"),
    Column("records", "int64", "records in them"),
    Column("bytes", "int64", "size of the file in bytes"),
    Column("min_timestamp", "int64", "smallest timestamp, ms since 1970"),
    Column("min_timestamp_offset", "int64", "first offset of its batch"),
    Column("max_timestamp", "int64", "largest timestamp, ms since 1970; retention by time uses it"),
    Column("max_timestamp_offset", "int64", "first offset of its batch"),
    Column(
        "retention",
        "string",
        "held-back: a timestamp in the future keeps it and all later segments; expires-at-once;"
        " by-file-time: no timestamp is positive; null otherwise",
    ),
    Column("blamed_offset", "int64", "offset of the record that keeps the segment"),
)

METRICS = (
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column("log_start_offset", "int64", "first offset that consumers can read"),
    Column("last_stable_offset", "int64", "offset at which read_committed consumers stop"),
    Column("log_end_offset", "int64", "last offset plus one"),
    Column("segments", "int64", "segments read"),
    Column("batches", "int64", "batches, without those that are damaged or misplaced"),
    Column("records", "int64", "records in them"),
    Column("bytes", "int64", "size of the segments in bytes"),
    Column("damaged_bytes", "int64", "bytes that are not a batch"),
    Column("missing_offsets", "int64", "offsets missing between batches"),
    Column("removed_offsets", "int64", "offsets inside batches whose records compaction removed"),
    Column("control_batches", "int64", "control batches, such as end markers"),
    Column("thin_batches", "int64", "batches with fewer records than offsets"),
    Column("empty_batches", "int64", "batches without a record"),
    Column("transactional_batches", "int64", "batches of transactions, markers included"),
    Column("idempotent_batches", "int64", "batches with a producer id"),
    Column("producers", "int64", "number of producers"),
    Column("committed_transactions", "int64", "transactions committed"),
    Column("aborted_transactions", "int64", "transactions aborted"),
    Column("open_transactions", "int64", "transactions without an end marker"),
    Column("transactions_left_out", "int64", "ended transactions omitted from `transactions`"),
    Column("gaps_left_out", "int64", "gaps omitted from `gaps`"),
    Column("min_timestamp", "int64", "smallest timestamp, ms since 1970"),
    Column("max_timestamp", "int64", "largest timestamp, ms since 1970"),
)

PRODUCERS = (
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column("producer_id", "int64", "producer id"),
    Column("producer_epoch", "int32", "its latest epoch"),
    Column("last_sequence", "int32", "sequence of its last record"),
    Column("last_offset", "int64", "offset of its last record"),
    Column("last_offset_delta", "int32", "offsets in its last data batch, minus one"),
    Column("last_timestamp", "int64", "timestamp of its last batch, ms since 1970"),
    Column("coordinator_epoch", "int32", "coordinator epoch of its last end marker; -1 for none"),
    Column("open_transaction_offset", "int64", "first offset of its open transaction"),
)

DIFFERENCES = (
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column(
        "kind",
        "string",
        "diverged, different-bytes, leader-epoch, damaged, lost-everywhere, missing, behind,"
        " begins-later or compaction; the last two are normal and not reported as findings",
    ),
    Column("severity", "string", "error, warning or info"),
    Column("first_offset", "int64", "first offset of the difference"),
    Column("last_offset", "int64", "last offset of the difference, inclusive"),
    Column("good_replicas", "list", "copies to trust; empty if unknown"),
    Column("bad_replicas", "list", "copies that lack what the good ones have"),
    Column("only_replica", "string", "copy that has these records, if only one has"),
    Column("replicas", "list", "names of all copies, in the order of the lists below"),
    Column("files", "list", "file of the first of these offsets, or of the damage, in each copy"),
    Column("positions", "list", "position in that file"),
    Column("sizes", "list", "bytes from that position, at most to the end of the file"),
    Column("batches", "list", "batches with these offsets that were compared"),
    Column("records", "list", "records in them"),
    Column("leader_epochs", "list", "leader epoch of the first of them"),
    Column("action", "string", "what to do"),
    Column("commands", "list", "commands that save what only one copy has"),
    Column("message", "string", "full description"),
)

RECOVERY = (
    Column("directory", "string", "path of the partition relative to the audited directory"),
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column("stop", "string", "shutdown before this start: clean or unclean"),
    Column("is_next", "bool", "whether the directory is in the state after that shutdown"),
    Column(
        "outcome",
        "string",
        "refuses: the broker does not start; put-aside: an empty partition replaces it;"
        " cuts: records are cut off; ends-early: the log ends before records that stay;"
        " empties: every segment is deleted, since the log start offset is beyond the end;"
        " exposes-aborted: read_committed consumers receive aborted records; opens: none of these",
    ),
    Column("opens", "bool", "whether the broker starts"),
    Column("error", "string", "exception with which the start fails"),
    Column("message", "string", "message of the exception, or why the start cannot be predicted"),
    Column("log_start_offset", "int64", "first offset after the start"),
    Column("log_end_offset", "int64", "offset of the next record"),
    Column("offsets_lost", "int64", "offsets at the end that are assigned again"),
    Column("bytes_cut", "int64", "bytes cut off segments, including deleted ones"),
    Column("segments_deleted", "list", "segments deleted completely"),
    Column(
        "exposed_transactions",
        "int64",
        "aborted transactions whose records read_committed consumers receive",
    ),
    Column("action", "string", "what to do before the start"),
)

GROUPS = (
    Column("group", "string", "group"),
    Column("type", "string", "classic, consumer, share or streams, if a record says so"),
    Column("topic", "string", "topic of the committed offset; none for a group without any"),
    Column("partition", "int32", "partition of the committed offset"),
    Column("offset", "int64", "committed offset, the next one to read; of a share group its start"),
    Column("lag", "int64", "offsets from there to the end of the log, if that is audited too"),
    Column("leader_epoch", "int32", "leader epoch of the last record read; -1 if unknown"),
    Column("metadata", "string", "metadata that the consumer committed with it"),
    Column("commit_timestamp_ms", "int64", "when it was committed, ms since 1970"),
    Column("expire_timestamp_ms", "int64", "when it expires, written by brokers up to 2.0"),
)

TRANSACTIONAL_IDS = (
    Column("transactional_id", "string", "transactional id"),
    Column("producer_id", "int64", "its producer id"),
    Column("producer_epoch", "int32", "producer epoch"),
    Column("state", "string", "Empty, Ongoing, PrepareCommit, CompleteCommit, …"),
    Column("partitions", "list", "partitions of the ongoing transaction"),
    Column("timeout_ms", "int32", "transaction timeout"),
    Column("last_update_ms", "int64", "time of the last update, ms since 1970"),
    Column("start_ms", "int64", "start of its last transaction, ms since 1970; -1 if none"),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "files": FILES,
    "batches": BATCHES,
    "records": RECORDS,
    "events": EVENTS,
    "findings": FINDINGS,
    "gaps": GAPS,
    "transactions": TRANSACTIONS,
    "producers": PRODUCERS,
    "epochs": EPOCHS,
    "timeline": TIMELINE,
    "metrics": METRICS,
    "differences": DIFFERENCES,
    "recovery": RECOVERY,
    "groups": GROUPS,
    "transactional_ids": TRANSACTIONAL_IDS,
}

DERIVED: dict[str, tuple[Column, ...]] = {"quarantine": QUARANTINE}
"""Tables that a method of the result returns, not an attribute."""

NEVER_NULL: dict[str, tuple[str, ...]] = {
    "files": ("file", "kind", "state", "size", "is_read"),
    "batches": ("file", "position", "size", "magic", "base_offset", "last_offset", "is_valid"),
    "records": ("file", "batch_position", "offset", "timestamp", "sequence"),
    "events": ("event", "name", "severity", "message"),
    "findings": ("name", "severity", "message"),
    "gaps": ("file", "first_offset", "last_offset", "offsets"),
    "metrics": ("topic", "partition", "batches", "records", "bytes"),
}
"""Columns by table that have a value in every row."""

SEGMENT_TABLES = ("batches", "records")
"""Tables whose rows are read from the segments when they are used."""

_NOTES = {
    "records": (
        'What the files hold: beside the records of `ottla.read_partition`, `format("ottla")` and'
        " `ottla.spark.read`\nalso those before the log start offset, of batches out of their place"
        " or there twice, and outside their\nbatch, which no consumer gets; and control records,"
        " where `control` is not null."
    ),
    "quarantine": "The second table of `AuditResult.split_records()`; the first are the `records`.",
}


def columns_of(table: str) -> tuple[Column, ...]:
    """The columns of a table.

    Raises:
        KeyError: there is no such table.
    """
    return TABLES.get(table) or DERIVED[table]


def tables_markdown() -> str:
    """Returns the text of `docs/tables.md`."""
    lines = [
        "# Tables",
        "",
        "The tables of `ottla.audit`, in every format: attributes of `AuditResult`, members of the",
        "JSON of `ottla audit --format json`, files of `--output DIR`: Parquet where pyarrow is",
        "installed, else JSON lines, or as `--table-format` says. `batches` and `records` are not",
        "in that JSON, and become files with `--batches` and `--records` alone.",
        "",
        "Positions and sizes are in bytes of the file, offsets are offsets of the log, times are",
        "in ms since 1970 (UTC). Values that do not apply are null. Columns of type `list` are",
        "JSON text in Arrow and Parquet; bytes in JSON are text if they are UTF-8, else",
        '`{"base64": "…"}`.',
    ]
    for name, columns in (TABLES | DERIVED).items():
        lines += ["", f"## {name}", ""]
        lines += [_NOTES[name], ""] if name in _NOTES else []
        lines += ["| column | type | |", "| --- | --- | --- |"]
        lines += [f"| `{c.name}` | {c.type} | {c.doc} |" for c in columns]
    return "\n".join(lines) + "\n"
