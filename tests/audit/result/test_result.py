"""What an audit gives back, in memory and on disk."""

import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import ottla
import pyarrow.parquet as pq
import pytest
from ottla.audit import Finding
from ottla.audit.result import save as save_module
from ottla.audit.result.columns import TABLES
from ottla.audit.result.result import SAVED_TABLES, save
from support.logs import segment_name, write_log_directory


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    """A log directory with one damaged batch."""
    directory = write_log_directory(tmp_path / "kafka")
    damaged = directory / "orders-1" / segment_name(12)
    data = damaged.read_bytes()
    damaged.write_bytes(data[: len(data) // 2 - 1] + b"!" + data[len(data) // 2 :])
    return directory


@pytest.fixture
def result(log_directory: Path) -> ottla.AuditResult:
    return ottla.audit(log_directory)


def test_the_summary_counts_what_was_read(result: ottla.AuditResult) -> None:
    summary = result.summary
    assert (summary.files, summary.partitions) == (6, 3)
    assert (summary.batches, summary.records) == (24 - 1, 72 - 3)
    assert summary.findings == {"error": 1, "warning": 0, "info": 0}
    assert (summary.not_read, summary.exit_code, result.exit_code) == (0, 2, 2)


def test_files_lists_every_file_and_what_was_scanned(
    result: ottla.AuditResult, log_directory: Path
) -> None:
    rows = {row["file"]: row for row in result.files}
    assert len(rows) == sum(1 for path in log_directory.rglob("*") if path.is_file())
    scanned = rows["orders-0/00000000000000000012.log"]
    assert scanned["is_read"] is True
    assert (scanned["first_offset"], scanned["next_offset"]) == (12, 24)
    assert (scanned["magics"], scanned["codecs"]) == ((2,), ("none",))
    assert rows["meta.properties"]["is_read"] is False


def test_batches_and_records_are_read_when_they_are_used(
    result: ottla.AuditResult, log_directory: Path
) -> None:
    assert len(result.batches) == 24
    assert len(result.records) == 72 - 3
    record = next(row for row in result.records if row["topic"] == "payments")
    assert record["file"] == "payments-0/00000000000000000000.log"
    assert (record["offset"], record["key"], record["value"]) == (0, b"key", b"v" * 20)
    (log_directory / "orders-0" / segment_name(0)).unlink()
    with pytest.raises(FileNotFoundError):
        list(result.batches)


def test_findings_can_be_raised(result: ottla.AuditResult) -> None:
    with pytest.raises(ottla.FindingsError, match=r"^crc-mismatch in orders-1/0") as raised:
        result.raise_for_findings()
    assert [finding["name"] for finding in raised.value.findings] == ["crc-mismatch"]


def test_a_row_of_findings_is_a_finding(result: ottla.AuditResult) -> None:
    (finding,) = result.findings.rows()
    assert isinstance(finding, Finding)
    assert (finding.name, finding.severity) == ("crc-mismatch", "error")


def test_only_findings_as_grave_as_asked_for_are_raised(demo: Path) -> None:
    ottla.audit(demo).raise_for_findings()
    with pytest.raises(ottla.FindingsError, match=r"^open-transaction"):
        ottla.audit(demo, fail_on="warning").raise_for_findings()


def test_what_was_not_read_is_raised(log_directory: Path) -> None:
    with pytest.raises(ottla.FindingsError, match="no such file or directory"):
        ottla.audit([log_directory / "orders-0", log_directory / "nowhere"]).raise_for_findings()


def test_a_path_that_is_not_there_is_raised_with_what_is_near(log_directory: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"did you mean .*orders-0") as raised:
        ottla.audit(log_directory / "order-0")
    assert raised.value.filename == str(log_directory / "order-0")
    with pytest.raises(FileNotFoundError):
        ottla.audit([log_directory / "nowhere", log_directory / "either"])


def test_a_path_that_is_not_there_is_a_finding_where_that_is_asked_for(tmp_path: Path) -> None:
    result = ottla.audit(tmp_path / "nowhere", must_exist=False)
    assert [row["name"] for row in result.findings] == ["unreadable"]
    assert result.exit_code == 3


def test_a_directory_without_logs_is_there_and_a_finding(tmp_path: Path) -> None:
    assert ottla.audit(tmp_path).exit_code == 3


def test_a_topic_is_audited_by_its_name_alone(demo: Path) -> None:
    by_name, by_list = ottla.audit(demo, topics="orders"), ottla.audit(demo, topics=["orders"])
    assert {row["topic"] for row in by_name.files} == {"orders"}
    assert by_name.files == by_list.files
    with pytest.raises(ValueError, match="topics is empty"):
        ottla.audit(demo, topics="")


def test_a_pickled_result_is_equal_and_still_reads_the_files(demo: Path) -> None:
    result = ottla.audit(demo)
    back = pickle.loads(pickle.dumps(result))  # noqa: S301 - our own
    for name in TABLES:
        table: ottla.Table = getattr(back, name)
        assert table == getattr(result, name), name
        assert hash(table) == hash(getattr(result, name))
    assert len(back.records) == result.summary.records
    ignored = back.select(ignore=["open-transaction"])
    assert ignored.findings == result.select(ignore=["open-transaction"]).findings
    assert len(back.split_records()[0]) == result.summary.records


def test_tables_differ_in_their_rows_and_names(result: ottla.AuditResult, demo: Path) -> None:
    other = ottla.audit(demo)
    assert other.findings != result.findings
    assert other.groups != other.transactional_ids
    assert other.findings != [*other.findings]


def test_a_notebook_shows_what_happened(result: ottla.AuditResult) -> None:
    page = result._repr_html_()
    assert page.startswith("<p>&lt;AuditResult DAMAGED: 1 error and 0 warnings")
    assert "<caption>events: 1 row</caption>" in page
    assert "<caption>records: the first 20 rows</caption>" in result.records._repr_html_()


def test_the_json_form_is_one_object_with_the_tables(result: ottla.AuditResult) -> None:
    form = json.loads("".join(result.json_chunks()))
    assert form["version"] == ottla.__version__
    assert form["summary"]["findings"] == {"error": 1, "warning": 0, "info": 0}
    assert form["summary"]["exit_code"] == 2
    (finding,) = form["findings"]
    assert finding["file"] == "orders-1/00000000000000000012.log"
    assert (finding["topic"], finding["partition"]) == ("orders", 1)
    assert len(form["files"]) == len(result.files)
    assert form["transactions"] == []


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_every_table_is_saved(result: ottla.AuditResult, tmp_path: Path, form: str) -> None:
    target = tmp_path / "new" / "results"
    result.save(target, "jsonl" if form == "jsonl" else "parquet", batches=True, records=True)
    names = {*SAVED_TABLES, "batches", "records"}
    assert {path.name for path in target.iterdir()} == {
        "summary.json",
        *(f"{name}.{form}" for name in names),
    }
    assert json.loads((target / "summary.json").read_text())["records"] == 69
    for name in names:
        table = getattr(result, name)
        path = target / f"{name}.{form}"
        if form == "jsonl":
            saved = [json.loads(line) for line in path.read_text().splitlines()]
            assert [list(row) for row in saved[:1]] == [[c.name for c in table.columns]][
                : len(saved)
            ]
            assert len(saved) == len(table)
        else:
            assert pq.read_table(path).equals(table.to_arrow())


def test_the_tables_can_be_asked_in_sql(result: ottla.AuditResult) -> None:
    query = "select name, severity, next_good_offset from findings"
    assert result.sql(query).fetchall() == [("crc-mismatch", "error", 18)]
    joined = """
        select f.name, g.cause, m.log_end_offset
        from findings f
        join gaps g on f.topic = g.topic and f.partition = g.partition
        join metrics m on f.topic = m.topic and f.partition = m.partition
    """
    assert result.sql(joined).fetchall() == [("crc-mismatch", "damage", 24)]
    assert result.sql("select count(*) from records").fetchall() == [(69,)]
    with pytest.raises(duckdb.Error, match="no_such_table"):
        result.sql("select * from no_such_table")


def test_every_table_has_its_rows_in_polars_and_sql(demo: Path) -> None:
    result = ottla.audit(demo)
    for name in TABLES:
        table = getattr(result, name)
        # The demo is one copy: nothing to compare.
        assert (len(table) > 0) == (name != "differences")
        assert len(table.to_polars()) == len(table)
        assert len(result.sql(f"from {name}").fetchall()) == len(table)


def test_sql_without_duckdb_says_what_to_install(
    result: ottla.AuditResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ottla.MissingDependencyError, match=r"pip install 'ottla\[duckdb\]'"):
        result.sql("select 1")


def test_findings_carry_the_commands_that_help(result: ottla.AuditResult) -> None:
    (finding,) = result.findings
    (inspect,) = finding["commands"]
    assert inspect.startswith("ottla inspect /")


def test_nothing_is_saved_over_what_is_there(result: ottla.AuditResult, tmp_path: Path) -> None:
    target = tmp_path / "results"
    target.mkdir()
    result.save(target)
    before = sorted(path.name for path in target.iterdir())
    with pytest.raises(FileExistsError, match="use a new or an empty directory"):
        result.save(target)
    assert sorted(path.name for path in target.iterdir()) == before


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_result_appears_whole_or_not_at_all(
    result: ottla.AuditResult,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    def fail() -> Iterator[list[object]]:
        raise error

    monkeypatch.setattr(result.producers, "_chunks", fail)
    target = tmp_path / "out" / "results"
    with pytest.raises(type(error)):
        save(result, target, ("jsonl",))
    assert list((tmp_path / "out").iterdir()) == []


def test_parquet_without_pyarrow_says_what_to_install(
    result: ottla.AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ottla.MissingDependencyError, match="pip install"):
        result.save(tmp_path / "results", "parquet")
    assert not (tmp_path / "results").exists()


def test_a_row_group_is_more_than_what_is_read_at_once(
    result: ottla.AuditResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result.save(tmp_path / "one", "parquet", records=True)
    monkeypatch.setattr(save_module, "ROW_GROUP_BYTES", 1)
    result.save(tmp_path / "many", "parquet", records=True)
    groups = [
        pq.ParquetFile(tmp_path / name / "records.parquet").num_row_groups
        for name in ("one", "many")
    ]
    assert groups == [1, sum(row["is_read"] for row in result.files)]


def test_selecting_everything_fills_no_table_anew() -> None:
    result = ottla.audit("examples/data")
    assert result.select() is result
    few = result.select(severity="error")
    assert few.select(severity="error") is few
    assert few.select().summary == result.summary
