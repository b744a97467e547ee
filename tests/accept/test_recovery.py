"""Predicted starts, against what Kafka's loader and a real broker made of damaged directories."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import ottla
import pytest
from ottla.logs.recovery import RecoveryPrediction
from support.loader_starts import of_loader, of_prediction

pytestmark = pytest.mark.shared


def test_every_start_over_a_damaged_directory_is_predicted(shared: Path) -> None:
    done = subprocess.run(
        [sys.executable, shared / "accept" / "recovery.py", shared / "damage"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert done.stdout.splitlines()[-1] == "recovery: 676 of 676 equal"


def test_what_a_start_leaves_beside_the_segments_is_predicted_too(shared: Path) -> None:
    compared = 0
    for line in (shared / "damage" / "recovery.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["case"] == "112-epochs-disordered":
            # Its checkpoint holds an epoch twice: the file still does, the broker does not.
            row["unclean"]["leader_epochs"] = row["clean"]["leader_epochs"] = [[0, 0]]
        for run in ("unclean", "clean"):
            after = ottla.predict_recovery(shared / "damage" / row["dir"], clean=run == "clean")
            assert of_prediction(after) == of_loader(row[run]), f"{row['case']} {run}"
            compared += 1
    assert compared == 676


def aborted_transactions(directory: Path, after: RecoveryPrediction) -> list[tuple[int, int, int]]:
    """Producer, first and last offset of what read_committed consumers are told to leave out."""
    known = []
    for file in after.segments:
        index = directory / (file.removesuffix("log") + "txnindex")
        if file in after.rebuilt:
            known += [entry[:3] for entry in after.rebuilt[file].aborted]
        elif index.exists():
            data = index.read_bytes()
            known += [struct.unpack_from(">qqq", data, at + 2) for at in range(0, len(data), 34)]
    return known


def consumed(directory: Path, after: RecoveryPrediction, *, committed: bool) -> int:
    """Records that a consumer gets from the log's start on until it ends, hangs or fails."""
    if after.is_stray:
        return 0
    position, end = after.log_start_offset or 0, after.log_end_offset or 0
    aborted = aborted_transactions(directory, after) if committed else []
    if committed and after.first_undecided_offset is not None:
        end = after.first_undecided_offset
    bases = [int(file.partition(".")[0]) for file in after.segments]
    count = 0
    for file, next_base in zip(after.segments, [*bases[1:], None], strict=True):
        if next_base is not None and next_base <= position:
            continue
        data = (directory / file).read_bytes()[: after.segments[file]]
        try:
            for batch in ottla.read_batches(data):
                if batch.last_offset < position:
                    continue
                if position >= end:
                    return count
                batch.verify()
                is_aborted = batch.is_transactional and any(
                    producer_id == batch.producer_id and first <= batch.base_offset <= last
                    for producer_id, first, last in aborted
                )
                for record in batch.records():
                    is_wanted = not batch.is_control and not is_aborted
                    count += is_wanted and record.offset >= position
                position = batch.last_offset + 1
        except ottla.TruncatedBatchError:
            continue
        except ottla.RecordBatchError:
            return count
    return count


def test_a_real_broker_did_what_is_predicted_of_its_starts(shared: Path) -> None:
    kafka = shared / "corpus" / "kafka"
    checkpoint = (kafka / "kafka-4.1" / "recovery-point-offset-checkpoint").read_text()
    points = {
        f"{topic}-{partition}": int(offset)
        for topic, partition, offset in map(str.split, checkpoint.splitlines()[2:])
    }
    cases = json.loads((kafka / "truth" / "damaged.json").read_text())
    for case, row in cases.items():
        name = row["partition"]
        directory = kafka / "damaged" / case / name
        for run, clean in (("clean start", True), ("unclean start", False)):
            expected = row[run]
            after = ottla.predict_recovery(
                directory, clean=clean, recovery_point=points.get(name, 0)
            )
            assert after.opens == ("broker" not in expected), (case, run)
            if not after.opens:
                continue
            end_offset = 0 if after.is_stray else after.log_end_offset
            kept = 0 if after.is_stray else sum(after.segments.values())
            assert (end_offset, kept) == (expected["endOffset"], expected["bytes after"]), case
            for key, committed in (("consumed", False), ("consumed read_committed", True)):
                assert consumed(directory, after, committed=committed) == expected[key], case
    assert len(cases) == 27
