"""Every argument of every public function, given what it is not: an error that names it."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ottla
import pytest

BATCH = ottla.build_batch([ottla.NewRecord(b"k", b"v")])
PARTITION = str(Path(__file__).resolve().parents[2] / "examples" / "data" / "orders-0")
WRONG: list[object] = [object(), 1 << 70, -(1 << 70), 1.5, [1]]

# What each function is given besides, so that nothing else is wrong.
GIVEN: dict[str, dict[str, Any]] = {
    "AbortedTransaction": {
        "producer_id": 1,
        "first_offset": 0,
        "last_offset": 0,
        "last_stable_offset": 0,
    },
    "Leader": {},
    "Record": {"offset": 1},
    "RememberedBatch": {
        "base_sequence": 0,
        "last_sequence": 0,
        "base_offset": 0,
        "last_offset": 0,
        "max_timestamp_ms": 0,
    },
    "RecordBatch": {"data": BATCH},
    "RecordError": {"batch_index": 0, "message": "", "error": 0},
    "audit": {"source": PARTITION},
    "build_batch": {"records": [ottla.NewRecord(b"k")]},
    "build_control_batch": {
        "kind": "commit",
        "producer_id": 1,
        "producer_epoch": 0,
        "coordinator_epoch": 0,
        "timestamp": 0,
    },
    "build_message_set": {"records": [ottla.NewRecord(b"k")], "magic": 1},
    "check_batches": {"data": BATCH},
    "decode_record": {"topic": "__consumer_offsets", "key": b"", "value": b""},
    "predict_recovery": {"partition_directory": PARTITION},
    "read": {"data": BATCH},
    "read_batches": {"data": BATCH},
    "read_columns": {"data": BATCH},
    "read_partition": {"directory": PARTITION},
    "rebuild_side_files": {"source": PARTITION, "directory": "never"},
    "validate": {"records": BATCH, "now_ms": 0},
}
# Whatever has a truth value is a choice, and a time may be any number.
ANYTHING = {"control", "follow_links", "must_exist", "clean", "transaction_verification"}

# Results, to which nobody gives arguments; what is deprecated; and what has tests of its own for
# what it is given: columns, settings and records.
ELSEWHERE = {
    "AuditResult",
    "Columns",
    "Damage",
    "NewRecord",
    "PartitionRecords",
    "ProducerState",
    "RebuiltPartition",
    "RecoveryPrediction",
    "Table",
    "TopicConfig",
    "Verdict",
    "VerificationGuard",
    "build_batch_from_columns",
    "columns",
}


def arguments() -> Iterator[tuple[str, str]]:
    """Names of functions and their arguments."""
    for function in GIVEN:
        for name in inspect.signature(getattr(ottla, function)).parameters:
            if name not in ANYTHING:
                yield function, name


def is_error(name: str) -> bool:
    value = getattr(ottla, name)
    return isinstance(value, type) and issubclass(value, (Exception, Warning))


def test_no_public_function_is_left_out() -> None:
    public = {name for name in ottla.__all__ if callable(getattr(ottla, name))}
    assert {name for name in public if not is_error(name)} == {*GIVEN, *ELSEWHERE}


def said_of(error: Exception) -> str:
    return " ".join([str(error), *getattr(error, "__notes__", ())])


@pytest.mark.parametrize(("function", "argument"), [*arguments()])
def test_an_argument_of_another_kind_is_named(
    function: str, argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call: Callable[..., object] = getattr(ottla, function)
    refused = 0
    for wrong in WRONG:
        try:
            call(**{**GIVEN[function], argument: wrong})
        except (TypeError, ValueError, OverflowError) as error:
            refused += 1
            said = said_of(error)
            # Older interpreters have no notes on errors, where the engine's have the name.
            is_named = argument in said or "expected a bytes-like object" in said
            assert is_named or sys.version_info < (3, 11), (wrong, said)
    assert refused
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "beyond", [1 << 70, -(1 << 70), 1 << 20_000], ids=["2^70", "-2^70", "2^2e4"]
)
@pytest.mark.parametrize(("function", "argument"), [*arguments()])
def test_an_integer_beyond_its_range_is_told_with_its_name_and_the_range(
    function: str, argument: str, beyond: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call: Callable[..., object] = getattr(ottla, function)
    default = inspect.signature(call).parameters[argument].default
    if isinstance(default, str):
        return
    with pytest.raises((TypeError, ValueError)) as caught:
        call(**{**GIVEN[function], argument: beyond})
    if caught.type is TypeError:
        assert isinstance(default, bool) or not isinstance(default, int)
        return
    found = f"{beyond}|beyond 64 bits" if abs(beyond) < 1 << 71 else "beyond 64 bits"
    assert re.search(f"^{argument} is ({found}), .*[0-9] to [0-9]", str(caught.value))
    assert getattr(caught.value, "__notes__", []) == []
