"""An audit of objects finds what an audit of the same files finds."""

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla import _engine, cli
from ottla.audit.pipeline import carry_out
from ottla.audit.plan.plan import plan_audit
from ottla.audit.result.columns import TABLES
from ottla.audit.result.result import make_result
from ottla.audit.run.threads import ThreadRunner
from ottla.storage import ANYWHERE, readahead
from support.logs import segment, segment_name, write_log_directory, write_partition
from support.stores import Store

NOW_MS = 1_760_000_000_000
MIB = 1 << 20


def told(result: ottla.AuditResult) -> dict[str, str]:
    """All that an audit says, but for the time it took."""
    tables = {name: list(getattr(result, name)) for name in TABLES}
    return {name: json.dumps(rows, default=repr) for name, rows in tables.items()}


def of_files(directory: Path, uri: str, **options: Any) -> dict[str, str]:
    """The same of an audit of files, as if they were objects."""
    rows = told(ottla.audit(directory, **options))
    return {name: text.replace(str(directory), uri) for name, text in rows.items()}


@pytest.mark.slow
def test_objects_of_a_broker_are_audited_as_its_files_are(store: Store, demo: Path) -> None:
    uri = store.upload(demo, store.bucket() + "/some/where")
    expected = of_files(demo, uri)
    result = ottla.audit(uri)
    assert told(result) == expected
    assert result.directory == uri
    assert result.summary == ottla.audit(demo).summary
    assert result.summary.partitions > 5
    # What the environment says, said by options, and by the name that Hadoop has for the store.
    again = ottla.audit(uri.replace("s3://", "s3a://"), storage_options=store.options)
    assert {n: t.replace("s3a://", "s3://") for n, t in told(again).items()} == expected


def test_objects_of_odd_names_are_named_as_they_are(store: Store, tmp_path: Path) -> None:
    directory = write_log_directory(tmp_path / "logs", ("or ders-0", "café+%20-0"))
    for name in ("a b", "café.log", "100%25.index", "plus+minus", "#hash", "q?mark", "~tilde"):
        (directory / "or ders-0" / name).write_bytes(b"odd")
    uri = store.upload(directory, store.bucket() + "/lo gs")
    result = ottla.audit(uri)
    assert told(result) == of_files(directory, uri)
    assert len([row for row in result.findings if row["name"] == "unknown-file"]) == 7


def hurt_partition(directory: Path) -> Path:
    data = bytearray(segment(3000, records=3, value_size=300))
    for position in (100_000, 1_500_003, MIB + 20_000):
        data[position] ^= 0x20
    data[2_000_000:2_050_000] = bytes(50_000)
    write_partition(directory / "orders-0", {0: bytes(data[:-30])})
    return directory


@pytest.mark.parametrize("split_bytes", [1 << 16, MIB + 1, None])
@pytest.mark.parametrize("threads", [1, 3])
def test_cuts_and_threads_change_nothing(
    memory: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
    split_bytes: int | None,
) -> None:
    monkeypatch.setattr(readahead, "PIECE_BYTES", 300_007)
    directory = hurt_partition(tmp_path / "logs")
    uri = put_all(memory, directory)
    found = told(ottla.audit(uri, threads=threads, split_bytes=split_bytes))
    assert found == of_files(directory, uri, threads=1)


def put_all(memory: Any, directory: Path, uri: str = "s3://bucket/logs") -> str:
    import obstore

    for path in sorted(directory.rglob("*")):
        if path.is_file():
            key = f"{uri.split('/', 3)[3]}/{path.relative_to(directory).as_posix()}"
            obstore.put(memory, key, path.read_bytes())
    return uri


def test_one_partition_and_one_object_are_audited_as_named(memory: Any, tmp_path: Path) -> None:
    directory = write_log_directory(tmp_path / "logs")
    put_all(memory, directory)
    result = ottla.audit("s3://bucket/logs/orders-0")
    assert {row["topic"] for row in result.files} == {"orders"}
    assert result.directory == "s3://bucket/logs"
    # The mark of a clean stop and the checkpoints beside it are read, too.
    assert result.exit_code == ottla.audit(directory / "orders-0").exit_code == 0
    name = f"orders-0/{segment_name(12)}"
    result = ottla.audit([f"s3://bucket/logs/{name}"])
    assert [row["file"] for row in result.files] == [name]
    assert result.summary.batches == 4


def test_copies_in_two_stores_and_on_this_machine_are_compared(memory: Any, tmp_path: Path) -> None:
    directory = write_log_directory(tmp_path / "logs", ("orders-0",))
    put_all(memory, directory)
    sources = {"a": "s3://bucket/logs", "b": "gs://other/logs", "c": str(directory)}
    result = ottla.audit(replicas=sources)
    assert result.exit_code == 0
    assert result.directory == ""
    assert {row["file"].partition("orders-0")[0] for row in result.files if row["topic"]} == {
        "s3://bucket/logs/",
        "gs://other/logs/",
        f"{directory}/",
    }
    data = (directory / "orders-0" / segment_name(12)).read_bytes()
    (directory / "orders-0" / segment_name(12)).write_bytes(data[:-100])
    result = ottla.audit(replicas=sources)
    assert [row["kind"] for row in result.differences] != []


def test_records_and_starts_are_told_of_objects(memory: Any, tmp_path: Path) -> None:
    directory = hurt_partition(tmp_path / "logs")
    uri = put_all(memory, directory)
    damage: list[ottla.Damage] = []
    found = list(ottla.read_partition(f"{uri}/orders-0", on_damage=damage.append))
    expected: list[ottla.Damage] = []
    of_file = list(ottla.read_partition(directory / "orders-0", on_damage=expected.append))
    assert [(r.offset, r.value) for r in found] == [(r.offset, r.value) for r in of_file]
    assert damage == expected != []
    after = ottla.predict_recovery(f"{uri}/orders-0")
    assert after.segments == ottla.predict_recovery(directory / "orders-0").segments
    built = ottla.rebuild_side_files(uri, tmp_path / "built")
    again = ottla.rebuild_side_files(directory, tmp_path / "again")
    assert built[0].files == again[0].files


@pytest.mark.slow
def test_blind_cuts_of_an_object_join_to_the_whole(store: Store, tmp_path: Path) -> None:
    path = tmp_path / segment_name(0)
    path.write_bytes(segment(36_000, records=1, value_size=500))
    uri = store.bucket() + f"/orders-0/{path.name}"
    store.put(uri, path.read_bytes())
    place = ANYWHERE.place(uri.encode())
    cut = 8 * MIB

    def opened() -> _engine.Segment:
        return _engine.Segment(place, base_offset=0, now_ms=NOW_MS)

    stop = path.stat().st_size
    assert stop > 2 * cut
    chunks = [opened().scan_range(at, min(at + cut, stop)) for at in range(0, stop, cut)]
    left = chunks[0]
    for right in chunks[1:]:
        left = left.merge(right)
    assert left.pieces == 1
    scan = opened().finish(left)
    assert scan == _engine.Segment(bytes(path), base_offset=0, now_ms=NOW_MS).scan()


@pytest.fixture
def logs(store: Store, tmp_path: Path) -> str:
    """Return the URI of a sound log directory."""
    directory = write_log_directory(tmp_path / "logs")
    return store.upload(directory, store.bucket() + "/logs")


def unread(result: ottla.AuditResult) -> list[str]:
    return [row["message"] for row in result.findings if row["name"] == "unreadable"]


def test_an_empty_bucket_is_not_read(store: Store) -> None:
    bucket = store.bucket()
    result = ottla.audit(bucket)
    assert unread(result) == [f"{bucket}: the directory holds nothing"]
    assert result.exit_code == 3
    with pytest.raises(FileNotFoundError, match="no object of this name or below it"):
        ottla.audit(f"{bucket}/nowhere")
    result = ottla.audit(f"{bucket}/nowhere", must_exist=False)
    (said,) = unread(result)
    assert said.endswith("/nowhere: no object of this name or below it")
    assert result.exit_code == 3


def test_a_bucket_that_is_not_there_is_not_read(store: Store) -> None:
    del store
    with pytest.raises(OSError, match="NoSuchBucket"):
        ottla.audit("s3://bucket-of-nobody/logs")
    result = ottla.audit("s3://bucket-of-nobody/logs", must_exist=False)
    (said,) = unread(result)
    assert "NoSuchBucket" in said
    assert result.exit_code == 3


def test_ten_thousand_objects_of_others_are_no_log(memory: Any) -> None:
    import obstore

    for number in range(10_000):
        obstore.put(memory, f"events/day={number % 30}/part-{number:05}.parquet", b"PAR1")
    result = ottla.audit("s3://bucket")
    assert unread(result) == [
        "s3://bucket: the directory holds no log directory, partition or segment file"
    ]
    assert result.exit_code == 3


def test_an_object_that_vanishes_is_a_finding_and_the_others_are_read(
    store: Store, logs: str
) -> None:
    plan = plan_audit(logs).split(None)
    gone = f"orders-0/{segment_name(0)}"
    store.delete(f"{logs}/{gone}")
    store.delete(f"{logs}/orders-1/leader-epoch-checkpoint")
    outcome = carry_out(ThreadRunner(plan, level="full", threads=2))
    result = make_result(plan, outcome, level="full", fail_on="error")
    assert unread(result) == [f"{gone}: no such object"]
    assert result.exit_code == 3
    assert result.summary.files == 5
    epochs = [r for r in result.findings if r["name"] == "epoch-checkpoint-mismatch"]
    assert [r["message"] for r in epochs] == [
        "leader-epoch-checkpoint: cannot be read: no such object"
    ]


@pytest.mark.parametrize("split_bytes", [None, 1 << 16])
def test_one_object_without_permission_among_many_is_a_finding(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split_bytes: int | None
) -> None:
    import obstore
    from obstore.exceptions import PermissionDeniedError

    directory = write_log_directory(tmp_path / "logs")
    write_partition(directory / "large-0", {0: segment(900, value_size=500)})
    uri = put_all(memory, directory)
    refused = f"large-0/{segment_name(0)}"
    get_range = obstore.get_range

    def get(store: Any, key: str, **span: int) -> Any:
        if key.endswith(refused):
            raise PermissionDeniedError("403")
        return get_range(store, key, **span)

    monkeypatch.setattr(obstore, "get_range", get)
    result = ottla.audit(uri, split_bytes=split_bytes, threads=2)
    assert unread(result) == [f"{refused}: permission denied by the store"]
    assert result.exit_code == 3
    assert result.summary.files == 6


def test_an_object_that_is_cut_while_it_is_read_ends_where_it_ends(
    store: Store, tmp_path: Path
) -> None:
    directory = tmp_path / "logs"
    write_partition(directory / "orders-0", {0: segment(900, value_size=500)})
    uri = store.upload(directory, store.bucket() + "/logs")
    plan = plan_audit(uri).split(1 << 16)
    store.put(f"{uri}/orders-0/{segment_name(0)}", segment(10, value_size=500))
    outcome = carry_out(ThreadRunner(plan, level="full", threads=2))
    result = make_result(plan, outcome, level="full", fail_on="error")
    assert result.summary.batches == 10


def test_the_commands_read_objects(
    logs: str, capsys: pytest.CaptureFixture[str], store: Store
) -> None:
    assert cli.run(["audit", logs]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith(f"{logs}:")
    assert cli.run(["audit", "--format", "json", f"{logs}/orders-1", f"{logs}/orders-0"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["partitions"] == 2
    assert cli.run(["inspect", f"{logs}/orders-0/{segment_name(0)}", "--records"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 12
    assert cli.run(["read", f"{logs}/orders-0", "--format", "raw"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 24
    assert cli.run(["read", logs, "--topic", "orders", "--tail", "2", "-f", "%t-%p %o\n"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["orders-0 22", "orders-0 23"]
    assert cli.run(["inspect", f"{logs}/orders-0/leader-epoch-checkpoint"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["epoch", "start_offset"]
    for verb in (["inspect"], ["read"], ["validate", "--now-ms", "1"]):
        assert cli.run([*verb, f"{logs}/nowhere.log"]) == 3
        assert "nowhere.log: no object of this name" in capsys.readouterr().err
    store.put(f"{logs}/orders-0/{segment_name(12)}", b"damage" + segment(4, base_offset=12))
    assert cli.run(["audit", logs]) == 2
    assert f"{logs}/orders-0" in capsys.readouterr().out


def test_a_scheme_of_no_store_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in (["audit"], ["inspect"], ["read"], ["validate", "--now-ms", "1"]):
        assert cli.run([*verb, "hdfs://namenode/logs"]) == 64
        assert "hdfs: URIs cannot be read" in capsys.readouterr().err


def test_without_obstore_a_store_is_refused_and_files_are_read_all_the_same(tmp_path: Path) -> None:
    directory = write_log_directory(tmp_path / "logs")
    program = (
        "import sys; sys.modules['obstore'] = None\n"
        "from ottla.cli import run\n"
        "sys.exit(run(sys.argv[1:]))"
    )

    def ran(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, capture_output=True, check=False, env=os.environ)

    assert ran("audit", str(directory)).returncode == 0
    refused = ran("audit", "s3://bucket/logs")
    assert refused.returncode == 3
    assert b"pip install 'ottla[objects]'" in refused.stderr
    assert b"Traceback" not in refused.stderr


def without_clock(output: str) -> str:
    """Leave out when an audit began and how long it took."""
    return re.sub(r'"(started_ms|elapsed_s)": [0-9.e-]+', r'"\1": 0', output)


@pytest.mark.slow
def test_commands_take_settings_of_the_store(
    s3: Store, demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = s3.upload(demo, s3.bucket() + "/logs")
    options = [word for pair in s3.options.items() for word in ("--storage-option", "=".join(pair))]
    segment_uri = f"{logs}/refunds-0/{segment_name(0)}"
    for verb, path, more in (
        ("audit", "", ["--format", "json"]),
        ("read", "/refunds-0", []),
        ("inspect", f"/refunds-0/{segment_name(0)}", []),
        ("validate", f"/refunds-0/{segment_name(0)}", ["--now-ms", str(NOW_MS)]),
    ):
        status = cli.run([verb, f"{demo}{path}", *more])
        of_the_file = without_clock(capsys.readouterr().out)
        assert cli.run([verb, f"{logs}{path}", *more, *options]) == status
        assert without_clock(capsys.readouterr().out).replace(logs, str(demo)) == of_the_file
    assert cli.run(["rebuild", logs, "--output", str(tmp_path / "built"), *options]) == 0
    assert list((tmp_path / "built").iterdir())
    # The key of the last one is not one of a store.
    assert cli.run(["inspect", segment_uri, *options, "--storage-option", "no_such=1"]) == 64
    assert "no_such" in capsys.readouterr().err


@pytest.mark.slow
def test_record_sets_in_a_store_get_the_verdicts_of_files(
    s3: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket = s3.bucket()
    lines = [{"records": base64.b64encode(segment(1)).decode()}] * 3
    of_kinds = {
        "set.bin": segment(1),
        # Larger than what is read at once.
        "large.bin": segment(1, records=3_000, value_size=1_000),
        "sets.jsonl": "\n".join(map(json.dumps, lines)).encode(),
        "0.log": segment(4) + b"damage",
        "empty.bin": b"",
    }
    options = [word for pair in s3.options.items() for word in ("--storage-option", "=".join(pair))]
    for name, data in of_kinds.items():
        (tmp_path / name).write_bytes(data)
        s3.put(f"{bucket}/{name}", data)
        status = cli.run(["validate", f"{tmp_path}/{name}", "--now-ms", str(NOW_MS)])
        of_the_file = capsys.readouterr()
        assert (
            cli.run(["validate", f"{bucket}/{name}", "--now-ms", str(NOW_MS), *options]) == status
        )
        told = capsys.readouterr()
        assert told.out.replace(bucket, str(tmp_path)) == of_the_file.out
        assert told.err.replace(bucket, str(tmp_path)) == of_the_file.err
