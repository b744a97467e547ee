"""Findings with one cause are one event, with one loss and one cure."""

import json
import random
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla.audit.catalogue.finding import PlacedFinding
from ottla.audit.catalogue.findings import Findings
from ottla.audit.result.traces import LogEnd, group_findings
from support.logs import TIMESTAMP, segment_name
from support.small_log import (
    CONTROL,
    FIRST,
    PARTITION,
    SECOND,
    SIZE,
    TRANSACTIONAL,
    SnapshotEntry,
    batch,
    marker,
    offset_index,
    overwrite,
    producer_snapshot,
    time_index,
    with_last_offset_delta,
    write_checkpoint,
    write_orders,
)

from benches.data import encode_batch

LOG = f"{PARTITION}/{segment_name(9)}"
DAY_LATER = TIMESTAMP + 86_400_000

SILENT = {
    "047-payload-silent": "one bit of a value under a right CRC: one copy cannot show it",
    "059-last-batch-removed-unclean": "equals a batch that was never written",
    "089-empty-active": "lawful",
    "097-index-emptied": "lawful: Kafka makes no entry for so little",
    "129-marker-of-stranger": "lawful",
}
"""Injuries that are no event, because a broker could have left the same bytes."""


def events(directory: Path) -> Sequence[Mapping[str, Any]]:
    return list(ottla.audit(directory).events)


def only_event(directory: Path) -> Mapping[str, Any]:
    (event,) = events(directory)
    return event


def snapshot(offset: int) -> bytes:
    """A snapshot of producer 7, whose last batch ends right before an offset."""
    return producer_snapshot([SnapshotEntry(7, 0, offset - 1, offset - 1, 2, 0)])


def test_a_cut_end_and_what_knows_of_it_are_one_event(tmp_path: Path) -> None:
    write_orders(tmp_path, second=[*SECOND[:2], SECOND[2][:70]])
    (tmp_path / PARTITION / segment_name(18, "snapshot")).write_bytes(snapshot(18))
    event = only_event(tmp_path)
    assert (event["name"], event["cause"], event["file"]) == ("truncated-tail", "lost-end", LOG)
    assert (event["first_offset"], event["last_offset"]) == (15, 17)
    assert (event["offsets_lost"], event["records_lost"], event["findings"]) == (3, 3, 4)
    assert event["message"] == (
        "the log lost its end, offsets 15 to 17: the file ends inside the batch at position"
        f" {2 * SIZE}: it has 70 of its {SIZE} bytes; also seen in the producer snapshot, the"
        " recovery point and the high watermark"
    )


def test_a_last_segment_that_is_missing_is_the_cause_of_open_transactions(tmp_path: Path) -> None:
    inside = batch(6, producer_id=7, is_transactional=True)
    write_orders(tmp_path, first=[*FIRST[:2], inside], second=[marker("commit", 9, producer_id=7)])
    assert only_event_names(tmp_path) == {"checkpoint-mismatch"}
    for suffix in ("log", "index", "timeindex"):
        (tmp_path / PARTITION / segment_name(9, suffix)).unlink()
    (tmp_path / PARTITION / segment_name(9, "snapshot")).write_bytes(producer_snapshot([]))
    (tmp_path / PARTITION / segment_name(18, "snapshot")).write_bytes(producer_snapshot([]))
    event = next(e for e in events(tmp_path) if e["name"] == "checkpoint-mismatch")
    assert event["cause"] == "missing-file"
    assert (event["first_offset"], event["last_offset"]) == (9, 17)
    assert "the segment that begins at offset 9 is missing" in event["message"]
    assert "look for these offsets on the other replicas" in event["action"]
    assert "open-transaction" in event["message"]


def only_event_names(directory: Path) -> set[str]:
    return {event["name"] for event in events(directory)}


def test_one_checkpoint_that_nothing_confirms_loses_no_offset(tmp_path: Path) -> None:
    write_orders(tmp_path)
    write_checkpoint(tmp_path / "replication-offset-checkpoint", {PARTITION: 20})
    event = only_event(tmp_path)
    assert (event["cause"], event["offsets_lost"]) == ("wrong-checkpoint", 0)
    assert "remove the line of this partition" in event["action"]


def test_after_an_unclean_stop_the_high_watermark_alone_proves_a_loss(tmp_path: Path) -> None:
    write_orders(tmp_path)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    write_checkpoint(tmp_path / "replication-offset-checkpoint", {PARTITION: 20})
    event = only_event(tmp_path)
    assert (event["cause"], event["offsets_lost"]) == ("lost-end", 2)


def test_a_removed_batch_and_the_indexes_behind_it_are_one_event(tmp_path: Path) -> None:
    write_orders(tmp_path, first=[FIRST[0], FIRST[2]])
    index = tmp_path / PARTITION / segment_name(0, "index")
    index.write_bytes(offset_index((8, 2 * SIZE)))
    event = only_event(tmp_path)
    assert (event["name"], event["findings"]) == ("offset-gap", 2)
    assert (event["first_offset"], event["last_offset"], event["offsets_lost"]) == (3, 5, 3)
    assert event["message"].endswith("; also seen in the index")


def test_a_wrong_index_beside_a_batch_with_a_wrong_crc_is_an_event_of_its_own(
    tmp_path: Path,
) -> None:
    write_orders(tmp_path)
    overwrite(tmp_path / PARTITION / segment_name(0), SIZE + 65, b"\xff")
    (tmp_path / PARTITION / segment_name(0, "index")).write_bytes(offset_index((5, SIZE + 1)))
    assert [event["name"] for event in events(tmp_path)] == ["crc-mismatch", "index-mismatch"]


def test_a_batch_out_of_order_loses_no_offset(tmp_path: Path) -> None:
    write_orders(tmp_path, first=[FIRST[0], FIRST[2], FIRST[1]])
    event = only_event(tmp_path)
    assert (event["name"], event["offsets_lost"]) == ("offset-repeat", 0)
    assert event["message"].endswith("also seen in the finding offset-gap")


def test_wrong_timestamps_explain_the_time_index(tmp_path: Path) -> None:
    late = batch(3, timestamp=1_760_000_000_000_000)
    write_orders(tmp_path, first=[FIRST[0], late, FIRST[2]])
    entries = time_index((1_760_000_000_008, 8))
    (tmp_path / PARTITION / segment_name(0, "timeindex")).write_bytes(entries)
    assert only_event(tmp_path)["name"] == "timestamp-suspect"


def test_a_zombie_explains_the_sequences_behind_it_but_not_those_of_others(
    tmp_path: Path,
) -> None:
    first = [
        batch(0, producer_id=7, producer_epoch=1),
        batch(3, producer_id=7, producer_epoch=0, base_sequence=3),
        batch(6, producer_id=7, producer_epoch=1, base_sequence=17),
    ]
    other = [batch(9, producer_id=8), batch(12, producer_id=8, base_sequence=9), SECOND[2]]
    write_orders(tmp_path, first=first, second=other)
    found = {(event["name"], event["findings"]) for event in events(tmp_path)}
    assert found == {("epoch-regression", 2), ("sequence-gap", 1)}


def test_plain_data_inside_a_transaction_explains_that_its_sequences_occur_again(
    tmp_path: Path,
) -> None:
    first = [
        batch(0, producer_id=7, is_transactional=True),
        batch(3, 2, producer_id=7, base_sequence=3),
        batch(5, 4, producer_id=8),
    ]
    second = [
        batch(9, producer_id=7, base_sequence=3, is_transactional=True),
        marker("commit", 12, producer_id=7),
        batch(13, 5),
    ]
    write_orders(tmp_path, first=first, second=second)
    event = only_event(tmp_path)
    assert (event["name"], event["findings"]) == ("transaction-fault", 2)
    assert event["message"].endswith("; also seen in the finding sequence-repeat")


def test_plain_data_inside_a_transaction_explains_no_other_number_of_sequences(
    tmp_path: Path,
) -> None:
    first = [
        batch(0, producer_id=7, is_transactional=True),
        batch(3, 2, producer_id=7, base_sequence=3),
        batch(5, 4, producer_id=8),
    ]
    second = [
        batch(9, producer_id=7, base_sequence=4, is_transactional=True),
        marker("commit", 12, producer_id=7),
        batch(13, 5),
    ]
    write_orders(tmp_path, first=first, second=second)
    assert [event["name"] for event in events(tmp_path)] == ["transaction-fault", "sequence-repeat"]


def test_a_batch_that_claims_an_offset_of_the_next_explains_the_sequence_behind_it(
    tmp_path: Path,
) -> None:
    wide = with_last_offset_delta(batch(0, producer_id=7), 3)
    second = [batch(9, producer_id=7, base_sequence=9), *SECOND[1:]]
    beside = [batch(3, producer_id=7, base_sequence=3), batch(6, producer_id=7, base_sequence=6)]
    write_orders(tmp_path, first=[wide, *beside], second=second)
    event = only_event(tmp_path)
    assert (event["name"], event["findings"]) == ("offset-repeat", 2)
    assert "sequence-repeat" in event["message"]


def test_a_marker_that_cannot_be_read_explains_the_transaction_that_it_should_end(
    tmp_path: Path,
) -> None:
    odd = marker("commit", 6, producer_id=7, kind_number=5)
    first = [
        batch(0, producer_id=8, is_transactional=True),
        batch(3, producer_id=7, is_transactional=True),
        odd,
        batch(7, 2),
    ]
    write_orders(tmp_path, first=first, second=[*SECOND[:2], batch(15, timestamp=DAY_LATER)])
    found = {(event["name"], event["findings"]) for event in events(tmp_path)}
    assert found == {("transaction-fault", 2), ("open-transaction", 1)}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (struct.pack(">hh", 0, 5), struct.pack(">hi", 0, 0)),
        (struct.pack(">hh", -1, 1), struct.pack(">hi", 0, 0)),
        (b"\0", struct.pack(">hi", 0, 0)),
        (None, struct.pack(">hi", 0, 0)),
        (struct.pack(">hh", 0, 1), b"\0"),
        (struct.pack(">hh", 0, 1), None),
    ],
)
def test_a_marker_at_which_every_unclean_start_gives_up_is_an_error(
    key: bytes | None, value: bytes | None, tmp_path: Path
) -> None:
    odd = encode_batch(
        [(TIMESTAMP + 3, key, value, ())],
        base_offset=3,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=7,
        producer_epoch=0,
    )
    begin = batch(0, producer_id=7, is_transactional=True)
    write_orders(tmp_path, first=[begin, odd, batch(4, 5)])
    (tmp_path / ".kafka_cleanshutdown").unlink()
    result = ottla.audit(tmp_path)
    assert [row["outcome"] for row in result.recovery if row["is_next"]] == ["refuses"]
    found = {row["name"]: row["severity"] for row in result.findings}
    assert found["transaction-fault"] == "error"
    assert result.summary.verdict == "DAMAGED"


@pytest.mark.shared
@pytest.mark.parametrize("segment", ["s034", "s069", "s103"])
def test_a_log_that_costs_records_at_the_next_start_whatever_is_done_is_damaged(
    segment: str, shared: Path
) -> None:
    assert ottla.audit(shared / "damage" / "segments" / segment).exit_code == 2


@pytest.mark.shared
@pytest.mark.parametrize("case", ["085-garbage-tail", "111-epochs-unreadable"])
def test_a_start_that_a_deed_without_a_loss_makes_possible_is_a_warning(
    case: str, shared: Path
) -> None:
    result = audited(shared / "damage" / "cases" / case)
    assert result.exit_code == 1
    best = result.advice[0]
    assert best.deed != "nothing"
    assert [p.readable_offsets_lost for p in best.partitions if p.readable_offsets_lost] == []


def test_a_witness_is_named_once(tmp_path: Path) -> None:
    write_orders(tmp_path, first=FIRST[:2])
    index = tmp_path / PARTITION / segment_name(0, "index")
    index.write_bytes(offset_index((8, 2 * SIZE)))
    event = only_event(tmp_path)
    assert event["cause"] == "truncated-tail"
    assert event["message"] == (
        "offsets 6 to 8 are missing between the previous file and this one: the previous file was"
        " cut short; also seen in the index"
    )


def test_the_gravest_event_is_first_and_the_one_that_loses_most(tmp_path: Path) -> None:
    write_orders(tmp_path, second=[SECOND[0], batch(15), batch(21)])
    overwrite(tmp_path / PARTITION / segment_name(0), SIZE + 65, b"\xff")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        write_checkpoint(tmp_path / name, {PARTITION: 24})
    found = [(e["event"], e["severity"], e["offsets_lost"]) for e in events(tmp_path)]
    assert found == [(1, "error", 3), (2, "warning", 3), (3, "warning", 3)]


def test_every_finding_has_the_number_of_its_event(demo: Path) -> None:
    result = ottla.audit(demo)
    numbers = [event["event"] for event in result.events]
    assert numbers == list(range(1, len(numbers) + 1))
    of_findings = [finding["event"] for finding in result.findings]
    assert sorted(set(of_findings)) == numbers
    for event in result.events:
        assert of_findings.count(event["event"]) == event["findings"]


def test_what_stops_consumers_says_which_and_where(tmp_path: Path) -> None:
    write_orders(tmp_path)
    overwrite(tmp_path / PARTITION / segment_name(0), SIZE + 65, b"\xff")
    event = only_event(tmp_path)
    assert (event["blocks"], event["blocked_offset"], event["next_good_offset"]) == ("all", 3, 6)


def test_the_json_form_has_verdict_paths_and_times(tmp_path: Path) -> None:
    write_orders(tmp_path / "kafka")
    form = json.loads("".join(ottla.audit(tmp_path / "kafka").json_chunks()))
    assert form["summary"]["verdict"] == "SOUND"
    assert form["paths"] == [str(tmp_path / "kafka")]
    assert form["started_ms"] > 1_700_000_000_000
    assert form["elapsed_s"] >= 0
    assert form["events"] == []


def test_an_event_says_what_it_makes_of_the_log_and_when_its_records_were_written(
    tmp_path: Path,
) -> None:
    write_orders(tmp_path)
    overwrite(tmp_path / PARTITION / segment_name(0), SIZE + 65, b"\xff")
    event = only_event(tmp_path)
    assert (event["verdict"], event["severity"]) == ("DAMAGED", "error")
    assert (event["first_timestamp"], event["last_timestamp"]) == (TIMESTAMP, TIMESTAMP + 8)


def test_what_is_lost_at_the_end_was_written_after_what_is_left(tmp_path: Path) -> None:
    write_orders(tmp_path, second=SECOND[:2])
    event = only_event(tmp_path)
    assert (event["first_offset"], event["last_offset"]) == (15, 17)
    assert (event["first_timestamp"], event["last_timestamp"]) == (TIMESTAMP + 14, None)


def test_a_missing_segment_was_written_between_its_neighbours(tmp_path: Path) -> None:
    write_orders(tmp_path)
    third = b"".join(batch(18 + offset) for offset in (0, 3, 6))
    (tmp_path / PARTITION / segment_name(18)).write_bytes(third)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        write_checkpoint(tmp_path / name, {PARTITION: 27})
    for suffix in ("log", "index", "timeindex"):
        (tmp_path / PARTITION / segment_name(9, suffix)).unlink()
    event = next(e for e in events(tmp_path) if e["name"] == "missing-segment")
    assert (event["first_offset"], event["last_offset"]) == (9, 17)
    assert (event["first_timestamp"], event["last_timestamp"]) == (TIMESTAMP + 8, TIMESTAMP + 18)


def test_something_that_was_not_read_is_an_event_without_a_time(tmp_path: Path) -> None:
    event = only_event(tmp_path)
    assert (event["verdict"], event["first_timestamp"]) == ("INCOMPLETE", None)


def test_groups_depend_on_no_order_of_partitions_and_lose_no_finding() -> None:
    chance = random.Random(13)
    names = [
        "crc-mismatch",
        "offset-gap",
        "index-mismatch",
        "open-transaction",
        "snapshot-mismatch",
    ]
    findings = [
        PlacedFinding(
            path=b"/k/a-%d/%020d.%s"
            % (part, chance.randrange(3), chance.choice([b"log", b"index"])),
            directory=b"/k/a-%d" % part,
            name=chance.choice(names),
            severity="warning",
            message="",
            first_offset=(first := chance.randrange(90)),
            last_offset=first + chance.randrange(9),
        )
        for part in (0, 1, 2)
        for _ in range(40)
    ]
    ends = {b"/k/a-1": LogEnd(80, b"/k/a-1/%020d.log" % 2, 1000, is_clean=True)}
    groups = group_findings(Findings.of(findings), ends)
    assert sorted(i for group in groups for i in group.members) == list(range(len(findings)))
    assert all(len({findings[i].directory for i in group.members}) == 1 for group in groups)
    alone = group_findings(Findings.of(findings[:40]), {})
    assert [group.members for group in groups[: len(alone)]] == [g.members for g in alone]


@pytest.mark.parametrize("gravest", [0, 1])
def test_findings_of_one_file_that_show_a_lost_end_are_one_group_and_no_circle(
    gravest: int,
) -> None:
    """The gravest shows the lost end best, and the other is both a witness of it and like it.

    No log has two such findings: of a snapshot there is one, and of the epochs that a checkpoint
    knows beyond the end the last is told.
    """
    directory = b"/k/a-0"
    findings = [
        PlacedFinding(
            path=directory + b"/leader-epoch-checkpoint",
            directory=directory,
            name="epoch-checkpoint-mismatch",
            severity="error" if number == gravest else "warning",
            message="",
            first_offset=first,
            last_offset=first,
        )
        for number, first in enumerate((20, 30))
    ]
    end = LogEnd(10, directory + b"/%020d.log" % 0, 1000, is_clean=False)
    (group,) = group_findings(Findings.of(findings), {directory: end})
    assert (group.members, group.lost_end) == ((gravest, 1 - gravest), (10, 30))


# -- The damage corpus ------------------------------------------------------------


def case_directories(shared: Path) -> list[Path]:
    return sorted((shared / "damage" / "cases").iterdir())


def audited(case: Path) -> ottla.AuditResult:
    replicas = sorted((case / "log").glob("replica-*"))
    return ottla.audit(replicas or case / "log")


@pytest.mark.shared
def test_each_planted_injury_is_one_event(shared: Path) -> None:
    wrong = []
    for case in case_directories(shared):
        truth = json.loads((case / "injuries.json").read_text())
        natural = {entry["kind"] for entry in truth["natural"]}
        planted = len(truth["injuries"])
        # A deletion that the broker had not finished: a control, and no injury.
        natural |= {"leftover-file"} if truth["control"] else set()
        found = [e["name"] for e in audited(case).events if e["name"] not in natural]
        if len(found) != (0 if case.name in SILENT else planted):
            wrong.append((case.name, planted, found))
    assert wrong == []


@pytest.mark.shared
def test_the_offsets_that_are_lost_are_those_that_were_destroyed(shared: Path) -> None:
    compared = 0
    for case in case_directories(shared):
        truth = json.loads((case / "injuries.json").read_text())
        destroyed = [
            e["lost"] for i in truth["injuries"] for e in i["expect"] if e.get("lost") is not None
        ]
        if destroyed and len(truth["injuries"]) == 1:
            lost = sum(event["offsets_lost"] for event in audited(case).events)
            assert lost == sum(last - first + 1 for first, last in destroyed), case.name
            compared += 1
    assert compared > 35


@pytest.mark.shared
@pytest.mark.parametrize(
    ("case", "cause", "offsets", "cure"),
    [
        ("063-closed-segment-cut", "truncated-tail", (2, 131), "Restore the segment"),
        ("057-tail-cut-after-clean-stop", "lost-end", (198, 215), "look for these offsets"),
        ("079-segment-missing-last", "missing-file", (126, 193), "look for these offsets"),
        ("117-log-start-beyond-end", "wrong-checkpoint", (80, 80), "remove the line"),
    ],
)
def test_one_injury_with_many_traces_has_one_cause_and_one_cure(
    case: str, cause: str, offsets: tuple[int, int], cure: str, shared: Path
) -> None:
    (event,) = audited(shared / "damage" / "cases" / case).events
    assert event["cause"] == cause
    assert (event["first_offset"], event["last_offset"]) == offsets
    assert cure in event["action"]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        # The injury of s047 beside these is natural: two transactions that nobody ended.
        ("s047", {"record-fault": 2, "transaction-fault": 2, "open-transaction": 1}),
        ("s081", {"transaction-fault": 2, "sequence-gap": 1}),
        ("s094", {"offset-repeat": 2}),
        ("s103", {"transaction-fault": 2, "open-transaction": 1}),
    ],
)
def test_one_injury_of_a_producer_is_one_event_with_its_traces(
    segment: str, expected: dict[str, int], shared: Path
) -> None:
    found = events(shared / "damage" / "segments" / segment)
    assert {event["name"]: event["findings"] for event in found} == expected
