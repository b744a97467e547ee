"""`ottla validate`: the leader's verdict at a terminal."""

import base64
import io
import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import ottla
import pytest
from ottla.records import profile_differences, release_differences
from records.crafting import compressed_batch, entry, message, record
from support.commands import Run

NOW = 1_700_000_000_000
# Some days after the broker of the examples wrote its log.
LATER = 1_795_300_000_000


def a_batch(*keys: bytes | None, base_offset: int = 0) -> bytes:
    records = [ottla.NewRecord(key, b"v", NOW) for key in keys]
    return ottla.build_batch(records, base_offset=base_offset)


def line_of(records: bytes) -> str:
    return json.dumps({"records": base64.b64encode(records).decode()}) + "\n"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """Return a file with a record set that a leader takes."""
    path = tmp_path / "good.bin"
    path.write_bytes(a_batch(b"k", b"l"))
    return path


def test_a_right_record_set_is_accepted_with_its_offsets(run: Run, good: Path) -> None:
    ran = run("validate", good, "--now-ms", NOW)
    assert ran.status == 0
    size = good.stat().st_size
    assert ran.out == f"{good}: accepted, offsets 0 to 1, {size} bytes stored in place\n"


@pytest.mark.parametrize("key", ["cleanup.policy", "cleanup_policy"])
def test_records_to_blame_stand_under_the_refusal(run: Run, tmp_path: Path, key: str) -> None:
    path = tmp_path / "set.bin"
    path.write_bytes(a_batch(b"k", None, b"l", None))
    ran = run("validate", path, "--now-ms", NOW, "--config", f"{key}=compact")
    assert ran.status == 2
    head, _, *culprits = ran.out.splitlines()
    assert head == f"{path}: refused, INVALID_RECORD (87)"
    assert [line.split(":")[0] for line in culprits] == ["  record 1", "  record 3"]


def test_the_profile_decides_where_kafka_leaks(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "set.bin"
    data = a_batch(b"k")
    path.write_bytes(data[:8] + b"\x7f\xff\xff\xff" + data[12:])
    lines = [
        run("validate", path, "--now-ms", NOW, "--profile", profile, "--format", "jsonl").out
        for profile in ("kafka", "strict")
    ]
    assert [json.loads(line)["error"] for line in lines] == [-1, 87]


def test_the_release_of_kafka_decides_too(run: Run, tmp_path: Path) -> None:
    """The length of its one record is −1: older releases do not look at it while they skip it."""
    path = tmp_path / "set.bin"
    path.write_bytes(compressed_batch(b"\x01" + record()[1:], "gzip"))
    options = ("--now-ms", NOW, "--profile", "kafka")
    statuses = [
        run("validate", path, *options, "--kafka-version", version).status
        for version in ("4.1", "4.3.1", "4.2.2", "4.4")
    ]
    assert statuses == [0, 0, 2, 2]
    assert run("validate", path, *options).status == 2
    unknown = run("validate", path, *options, "--kafka-version", "3.9")
    assert (unknown.status, unknown.out) == (64, "")
    assert "kafka_version is '3.9', expected a line (4.1, 4.2, 4.3, 4.4) or" in unknown.err


def test_the_version_of_the_request_decides_too(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "set.bin"
    path.write_bytes(ottla.build_batch([ottla.NewRecord(timestamp=NOW)], compression="zstd"))
    statuses = [
        run("validate", path, "--now-ms", NOW, "--api-version", version).status
        for version in (6, 7, -1)
    ]
    assert statuses == [2, 0, 0]


def test_lines_of_base64_are_judged_one_by_one(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "sets.jsonl"
    path.write_text(line_of(a_batch(b"k")) + "\n" + line_of(a_batch(b"k", base_offset=5)))
    ran = run("validate", path, "--now-ms", NOW, "--format", "jsonl")
    assert ran.status == 2
    verdicts = [json.loads(line) for line in ran.out.splitlines()]
    assert [(v["line"], v["accepted"], v["error"]) for v in verdicts] == [
        (1, True, 0),
        (3, False, 87),
    ]
    stored = base64.b64decode(verdicts[0]["stored"])
    assert [record.key for record in ottla.read(stored)] == [b"k"]


def test_lines_may_come_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO(line_of(a_batch(b"k")).encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    ran = run("validate", "-", "--now-ms", NOW)
    assert (ran.status, ran.out[:21]) == (0, "-, line 1: accepted, ")


@pytest.mark.parametrize("line", ["{", "[]", "7", "{}", '{"records": 1}', '{"records": "*"}'])
def test_a_line_of_another_form_has_no_verdict_but_the_next_has(
    run: Run, tmp_path: Path, line: str
) -> None:
    path = tmp_path / "sets.jsonl"
    path.write_text(line + "\n" + line_of(a_batch(b"k")))
    ran = run("validate", path, "--now-ms", NOW)
    assert ran.status == 3
    assert "sets.jsonl, line 1: not {" in ran.err
    assert "line 2: accepted" in ran.out


def test_a_segment_is_judged_as_if_its_producers_sent_it_again(run: Run, demo: Path) -> None:
    segment = demo / "refunds-0" / "00000000000000000000.log"
    ran = run("validate", segment, "--now-ms", LATER, "--format", "jsonl")
    assert ran.status == 0
    verdicts = [json.loads(line) for line in ran.out.splitlines()]
    batches = list(ottla.read_batches(segment.read_bytes()))
    assert any(batch.is_control for batch in batches)
    assert [(v["position"], v["base_offset"], v["last_offset"]) for v in verdicts] == [
        (batch.position, batch.base_offset, batch.last_offset) for batch in batches
    ]


def test_what_no_producer_may_send_is_refused_in_a_segment(run: Run, demo: Path) -> None:
    stamped = demo / "audit-log-0" / "00000000000000000000.log"
    ran = run("validate", stamped, "--now-ms", LATER)
    assert (ran.status, "LogAppendTime, which only brokers may set" in ran.out) == (2, True)


@pytest.mark.parametrize("base_offset", [-5, 2**63 - 1])
def test_a_base_offset_that_no_log_has_is_no_end_of_the_run(
    run: Run, tmp_path: Path, base_offset: int
) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(base_offset.to_bytes(8, "big", signed=True) + a_batch(b"k")[8:])
    ran = run("validate", path, "--now-ms", NOW)
    assert ran.status == 0
    assert "position 0: accepted" in ran.out


def test_a_wrapper_that_does_not_inflate_is_refused_in_a_segment(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    sound = ottla.build_message_set([ottla.NewRecord(b"k", b"v", NOW)], magic=1, compression="gzip")
    path.write_bytes(sound + entry(1, message(1, value=b"no gzip", attributes=1)))
    ran = run("validate", path, "--now-ms", NOW)
    assert ran.status == 2
    assert "position 0: accepted" in ran.out
    assert f"position {len(sound)}: refused, INVALID_RECORD (87)" in ran.out


def test_bytes_of_a_segment_that_are_no_batch_could_not_be_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(a_batch(b"k") + b"no batch" + a_batch(b"k", base_offset=1)[:-1])
    ran = run("validate", path, "--now-ms", NOW)
    assert ran.status == 3
    assert "accepted" in ran.out
    assert "bytes are not a batch" in ran.err


def test_what_could_not_be_read_wins_over_a_refusal(run: Run, tmp_path: Path, good: Path) -> None:
    refused = tmp_path / "cut.bin"
    refused.write_bytes(good.read_bytes()[:-1])
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    ran = run("validate", tmp_path / "absent", tmp_path, fifo, refused, good, "--now-ms", NOW)
    assert ran.status == 3
    assert len(ran.err.splitlines()) == 3
    assert "refused" in ran.out
    assert "accepted" in ran.out


def test_the_time_of_the_broker_is_now_unless_it_is_given(run: Run, tmp_path: Path) -> None:
    now_ms = time.time_ns() // 1_000_000
    decided = []
    for ahead_ms in (0, 2 * 3_600_000):
        path = tmp_path / f"{ahead_ms}.bin"
        record = ottla.NewRecord(value=b"v", timestamp=now_ms + ahead_ms)
        path.write_bytes(ottla.build_batch([record]))
        decided.append(run("validate", path).status)
    # An hour is what a clock may be ahead by default since Kafka 4.
    assert decided == [0, 2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--now-ms", -1], "now_ms"),
        (["--now-ms", 2**63], "now_ms"),
        (["--now-ms", NOW, "--api-version", 99], "api_version"),
        (["--now-ms", NOW, "--config", "max.message.bytes"], "is not KEY=VALUE"),
        (["--now-ms", NOW, "--config", "max.message.bytes=many"], "must be a whole number"),
        (["--now-ms", NOW, "--config", "max.message.bites=1"], "did you mean"),
        (["--now-ms", NOW, "--config", "compression.type=zip"], "zip"),
    ],
)
def test_wrong_usage_is_told_and_has_its_own_status(
    run: Run, good: Path, arguments: list[object], says: str
) -> None:
    ran = run("validate", good, *arguments)
    assert (ran.status, ran.out) == (64, "")
    assert says in ran.err


def test_every_difference_of_the_profiles_is_listed(run: Run) -> None:
    ran = run("explain", "--profiles")
    assert ran.status == 0
    text = " ".join(ran.out.split())
    for row in profile_differences():
        assert row["id"] in ran.out.splitlines()
        assert all(" ".join(row[part].split()) in text for part in ("kafka", "strict", "why"))
    assert max(len(line) for line in ran.out.splitlines()) <= 80


def test_every_difference_of_the_releases_is_listed(run: Run) -> None:
    ran = run("explain", "--releases")
    assert ran.status == 0
    text = " ".join(ran.out.split())
    for row in release_differences():
        assert row["id"] in ran.out.splitlines()
        assert "from: " + ", ".join(row["releases"]) in text
        assert all(" ".join(row[part].split()) in text for part in ("before", "since"))
    assert max(len(line) for line in ran.out.splitlines()) <= 80


@pytest.mark.parametrize("option", ["--profiles", "--releases"])
def test_the_list_of_differences_takes_no_name(run: Run, option: str) -> None:
    assert run("explain", "crc-mismatch", option).status == 64
