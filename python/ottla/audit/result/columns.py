"""The columns of every table of an audit: the one definition that each form of them is made from.

`TABLES` is read by the JSON and Arrow forms, by `docs/tables.md` and by the tests. To add a column,
add a row here and give its value where the table is filled.
"""

from __future__ import annotations

from ottla.logs.columns import BATCH_COLUMNS, PLACE_COLUMNS, RECORD_COLUMNS, Column

FILE_COLUMNS = len(PLACE_COLUMNS)
"""How many columns name the place, at the start of `files`, `batches` and `records`."""

FILES = (
    *PLACE_COLUMNS,
    Column("kind", "string", "what the name says it is: segment, offset-index, … unknown"),
    Column("state", "string", "live, deleted, swap, cleaned or temporary"),
    Column("partition_state", "string", "live, delete, future or stray"),
    Column("size", "int64", "bytes when listed"),
    Column("base_offset", "int64", "the number in the name"),
    Column("is_read", "bool", "whether the file was scanned"),
    Column("batches", "int64", "sound batches and those with findings about their inside"),
    Column("records", "int64", "records in them"),
    Column("first_offset", "int64", "offset of the first record"),
    Column("next_offset", "int64", "the last offset plus one"),
    Column("min_timestamp", "int64", "smallest timestamp, ms since 1970"),
    Column("max_timestamp", "int64", "largest timestamp, ms since 1970"),
    Column("magics", "list", "magic bytes of its batches"),
    Column("codecs", "list", "codecs of its batches"),
    Column("reason", "string", "why it could not be read"),
)

BATCHES = (*PLACE_COLUMNS, *BATCH_COLUMNS)

RECORDS = (*PLACE_COLUMNS, *RECORD_COLUMNS)

QUARANTINE = (
    *RECORDS,
    Column("reason", "string", "name of the finding that keeps the record, or the bytes, out"),
    Column("message", "string", "a sentence that says it all"),
    Column("record_index", "int32", "index of the record in its batch; null for whole ranges"),
    Column("size", "int64", "bytes of a range that is no readable batch; null for a record"),
    Column("bytes", "binary", "these bytes, as they stand in the file"),
)

FINDINGS = (
    Column("name", "string", "stable name of the fault, see docs/findings.md"),
    Column("severity", "string", "error, warning or info"),
    *PLACE_COLUMNS,
    Column("position", "int64", "bytes from the start of the file"),
    Column("size", "int64", "bytes concerned"),
    Column("first_offset", "int64", "first offset concerned"),
    Column("last_offset", "int64", "last offset concerned, inclusive"),
    Column("record_index", "int32", "index of the record in its batch"),
    Column("producer_id", "int64", "producer concerned"),
    Column("next_good_offset", "int64", "where a consumer can go on"),
    Column("cause", "string", "why offsets are missing, see docs/findings.md"),
    Column("replica", "string", "the copy concerned, where copies of a partition are compared"),
    Column("good_replicas", "list", "the copies to trust; empty where nothing tells"),
    Column("commands", "list", "commands to copy that look at it, or mend it"),
    Column("expected", "string", "what should have been there"),
    Column("found", "string", "what is there"),
    Column("message", "string", "a sentence that says it all"),
)

TRANSACTIONS = (
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column("producer_id", "int64", "producer"),
    Column("producer_epoch", "int32", "its epoch"),
    Column("coordinator_epoch", "int32", "of the coordinator that wrote its marker; -1 for none"),
    Column("state", "string", "committed, aborted, open, or hanging: open for longer than allowed"),
    Column("first_offset", "int64", "offset of its first record"),
    Column("last_offset", "int64", "offset of its last record"),
    Column("marker_offset", "int64", "offset of its end marker"),
    Column("batches", "int64", "batches of its data"),
    Column("records", "int64", "records of its data"),
    Column("bytes", "int64", "bytes of its data"),
    Column("first_timestamp", "int64", "largest timestamp of its first batch, ms since 1970"),
    Column("last_timestamp", "int64", "of its marker, or of its data while it has none"),
    Column(
        "duration_ms", "int64", "from first_timestamp to its marker, or to the newest timestamp"
    ),
    Column("transactional_id", "string", "of an open one, where __transaction_state tells it"),
    Column(
        "coordinator_state", "string", "what the coordinator says of that id: Ongoing, Empty, …"
    ),
    Column("holds_last_stable_offset", "bool", "whether read_committed consumers stop at it"),
    Column("commands", "list", "commands to copy that end it; HOST stands for a broker"),
)

GAPS = (
    *PLACE_COLUMNS,
    Column(
        "position", "int64", "bytes from the start of the file, where the gap has a place there"
    ),
    Column("first_offset", "int64", "first offset that is not got"),
    Column("last_offset", "int64", "last offset that is not got, inclusive"),
    Column("ranges", "int64", "ranges of offsets this row sums up; 1 is one without a break"),
    Column("offsets", "int64", "offsets that are not got, in all"),
    Column("reader", "string", "who does not get them: all, or read_committed consumers only"),
    Column("cause", "string", "why, see docs/findings.md"),
    Column("confidence", "string", "certain, likely or possible"),
    Column("evidence", "string", "what speaks for the cause"),
)

EPOCHS = (
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column("leader_epoch", "int32", "epoch of the leader that appended the batches"),
    Column("start_offset", "int64", "offset of its first batch; null when none is left"),
    Column("batches", "int64", "its batches, one after the other"),
    Column("checkpoint_start_offset", "int64", "where leader-epoch-checkpoint has it start"),
)

TIMELINE = (
    *PLACE_COLUMNS,
    Column("base_offset", "int64", "the number in the name of the segment"),
    Column("next_offset", "int64", "the last offset plus one"),
    Column("batches", "int64", "batches of the segment"),
    Column("records", "int64", "records in them"),
    Column("bytes", "int64", "bytes of the file"),
    Column("min_timestamp", "int64", "smallest timestamp, ms since 1970"),
    Column("min_timestamp_offset", "int64", "first offset of the batch that has it"),
    Column("max_timestamp", "int64", "largest timestamp, ms since 1970: retention goes by it"),
    Column("max_timestamp_offset", "int64", "first offset of the batch that has it"),
    Column(
        "retention",
        "string",
        "held-back by a time in the future, with every later segment; expires-at-once;"
        " by-file-time, as no timestamp is positive; null for the usual",
    ),
    Column("blamed_offset", "int64", "offset of the record that holds the segment back"),
)

METRICS = (
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column("log_start_offset", "int64", "first offset that consumers can get"),
    Column("last_stable_offset", "int64", "where read_committed consumers stop at the latest"),
    Column("log_end_offset", "int64", "the last offset plus one"),
    Column("segments", "int64", "segments read"),
    Column("batches", "int64", "sound batches"),
    Column("records", "int64", "records in them"),
    Column("bytes", "int64", "bytes of the segments"),
    Column("damaged_bytes", "int64", "bytes that are no batch"),
    Column("missing_offsets", "int64", "offsets missing between batches"),
    Column("removed_offsets", "int64", "offsets inside batches whose records compaction took"),
    Column("control_batches", "int64", "control batches, such as end markers"),
    Column("thin_batches", "int64", "batches with fewer records than offsets"),
    Column("empty_batches", "int64", "batches without a record"),
    Column("transactional_batches", "int64", "batches of transactions, markers included"),
    Column("idempotent_batches", "int64", "batches with a producer id"),
    Column("producers", "int64", "producers seen"),
    Column("committed_transactions", "int64", "transactions committed"),
    Column("aborted_transactions", "int64", "transactions aborted"),
    Column("open_transactions", "int64", "transactions without an end marker"),
    Column("transactions_left_out", "int64", "ended transactions that are not in `transactions`"),
    Column("gaps_left_out", "int64", "gaps that are not in `gaps`"),
    Column("min_timestamp", "int64", "smallest timestamp, ms since 1970"),
    Column("max_timestamp", "int64", "largest timestamp, ms since 1970"),
)

PRODUCERS = (
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column("producer_id", "int64", "producer"),
    Column("producer_epoch", "int32", "its last epoch"),
    Column("last_sequence", "int32", "sequence of its last record"),
    Column("last_offset", "int64", "offset of its last record"),
    Column("last_offset_delta", "int32", "offsets of its last batch of data, less one"),
    Column("last_timestamp", "int64", "timestamp of its last batch, ms since 1970"),
    Column("coordinator_epoch", "int32", "of its last end marker; -1 for none"),
    Column("open_transaction_offset", "int64", "where its open transaction begins"),
)

DIFFERENCES = (
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column(
        "kind",
        "string",
        "diverged, different-bytes, leader-epoch, damaged, lost-everywhere, missing, behind,"
        " begins-later or compaction; the last two are lawful and no findings",
    ),
    Column("severity", "string", "error, warning or info"),
    Column("first_offset", "int64", "first offset at which the copies differ so"),
    Column("last_offset", "int64", "last such offset, inclusive"),
    Column("good_replicas", "list", "the copies to trust; empty where nothing tells"),
    Column("bad_replicas", "list", "the copies that do not have what the good ones have"),
    Column("only_replica", "string", "the one copy that has these records, if it is one only"),
    Column("replicas", "list", "names of all copies; the lists below are in their order"),
    Column("files", "list", "where each copy has the first of these offsets, or the damage"),
    Column("positions", "list", "bytes from the start of that file"),
    Column("sizes", "list", "bytes from there on, up to the end of the file at most"),
    Column("batches", "list", "sound batches of these offsets that were held against each other"),
    Column("records", "list", "records in them"),
    Column("leader_epochs", "list", "leader epoch of the first of them"),
    Column("action", "string", "what to do"),
    Column("commands", "list", "commands to copy that save what only one copy has"),
    Column("message", "string", "a sentence that says it all"),
)

RECOVERY = (
    Column("directory", "string", "path of the partition relative to the audited directory"),
    Column("topic", "string", "topic"),
    Column("partition", "int32", "partition"),
    Column("stop", "string", "how the broker stopped before this start: clean or unclean"),
    Column("is_next", "bool", "whether the directory is in the state that leads to this start"),
    Column(
        "outcome",
        "string",
        "refuses: the broker does not start; put-aside: an empty partition takes its place;"
        " cuts: records go; ends-early: they stay, and the log ends before them; exposes-aborted:"
        " read_committed consumers get aborted records; opens: nothing of this",
    ),
    Column("opens", "bool", "whether the broker starts"),
    Column("error", "string", "the exception with which it does not"),
    Column("message", "string", "what the exception says, or why nothing can be told"),
    Column("log_start_offset", "int64", "first offset after the start"),
    Column("log_end_offset", "int64", "the offset that the next record gets"),
    Column("offsets_lost", "int64", "offsets at the end that are given out again"),
    Column("bytes_cut", "int64", "bytes of segments that are gone, deleted ones included"),
    Column("segments_deleted", "list", "segments of which nothing is left"),
    Column(
        "exposed_transactions",
        "int64",
        "aborted transactions whose records read_committed consumers get",
    ),
    Column("action", "string", "what to do before the start"),
)

GROUPS = (
    Column("group", "string", "group that committed the offset"),
    Column("topic", "string", "topic that it reads"),
    Column("partition", "int32", "partition that it reads"),
    Column("offset", "int64", "the next offset it will read"),
    Column("lag", "int64", "offsets from there to the end of the log, where that is audited too"),
    Column("leader_epoch", "int32", "leader epoch of the record before; -1 if unknown"),
    Column("metadata", "string", "what the consumer noted beside it"),
    Column("commit_timestamp_ms", "int64", "when it was committed, ms since 1970"),
    Column("expire_timestamp_ms", "int64", "when it expires, as brokers up to 2.0 note it"),
)

TRANSACTIONAL_IDS = (
    Column("transactional_id", "string", "transactional id"),
    Column("producer_id", "int64", "its producer"),
    Column("producer_epoch", "int32", "the producer's epoch"),
    Column("state", "string", "Empty, Ongoing, PrepareCommit, CompleteCommit, …"),
    Column("partitions", "list", "partitions of the transaction that is on its way"),
    Column("timeout_ms", "int32", "how long a transaction may take"),
    Column("last_update_ms", "int64", "when that was written, ms since 1970"),
    Column("start_ms", "int64", "when its transaction began, ms since 1970; -1 before the first"),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "files": FILES,
    "batches": BATCHES,
    "records": RECORDS,
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
"""Tables that a method of the result gives, by other names than its attributes."""

SEGMENT_TABLES = ("batches", "records")
"""Tables whose rows are read from the segments when they are used."""

_DERIVED_BY = {
    "quarantine": "The second table of `AuditResult.split_records()`, beside the good `records`."
}


def columns_of(table: str) -> tuple[Column, ...]:
    """The columns of a table.

    Raises:
        KeyError: there is no such table.
    """
    return TABLES.get(table) or DERIVED[table]


def tables_markdown() -> str:
    """`docs/tables.md`."""
    lines = [
        "# Tables",
        "",
        "The tables of `ottla.audit`, in every form: attributes of `AuditResult`, the members of",
        "`ottla audit --format json`, the files of `--output DIR`. Positions and sizes are bytes",
        "in the file, offsets are offsets of the log, times are milliseconds since 1970 (UTC).",
        "What does not apply is null. Columns of type `list` are JSON text in Arrow and Parquet;",
        'bytes in JSON are text where they are UTF-8, else `{"base64": "…"}`.',
    ]
    for name, columns in (TABLES | DERIVED).items():
        lines += ["", f"## {name}", ""]
        lines += [_DERIVED_BY[name], ""] if name in DERIVED else []
        lines += ["| column | type | |", "| --- | --- | --- |"]
        lines += [f"| `{c.name}` | {c.type} | {c.doc} |" for c in columns]
    return "\n".join(lines) + "\n"
