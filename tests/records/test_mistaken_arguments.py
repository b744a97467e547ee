"""What is given in place of something else: an error that names it and says what was meant."""

from collections.abc import Callable
from pathlib import Path

import ottla
import pytest

READERS: dict[str, Callable[..., object]] = {
    "read": ottla.read,
    "read_batches": ottla.read_batches,
    "read_columns": ottla.read_columns,
    "check_batches": ottla.check_batches,
    "RecordBatch": ottla.RecordBatch,
    "validate": lambda data: ottla.validate(data, now_ms=0),
    "Leader.append": lambda data: ottla.Leader().append(data, now_ms=0),
}
OF_BYTES = pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
MEANT = r'did you mean its content, open\(path, "rb"\)\.read\(\)\? A partition is read by ottla\.re'


@OF_BYTES
@pytest.mark.parametrize(
    "path",
    [
        Path("orders-0"),
        Path("segment.log"),
        "logs/orders-0",
        "00000000000000000000.log",
        "C:\\kafka",
    ],
    ids=repr,
)
def test_a_path_in_place_of_bytes_is_told_what_reads_it(
    reader: Callable[..., object], path: object
) -> None:
    with pytest.raises(TypeError, match=MEANT):
        reader(path)


@OF_BYTES
def test_text_that_is_no_path_is_to_be_encoded(reader: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match="expected a bytes-like object, found str; encode it first"):
        reader("three apples")


@OF_BYTES
@pytest.mark.parametrize(
    "value", [None, 5, 1.5, [1], object()], ids=lambda value: type(value).__name__
)
def test_what_has_no_bytes_is_named_by_its_type(
    reader: Callable[..., object], value: object
) -> None:
    name = type(value).__name__
    with pytest.raises(TypeError, match=f"expected a bytes-like object, found {name}$"):
        reader(value)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ("text", "records is of type str, expected several NewRecord"),
        (b"bytes", "records is of type bytes, expected several NewRecord"),
        (None, "records is of type NoneType, expected several NewRecord"),
        (5, "records is of type int, expected several NewRecord"),
        ([ottla.NewRecord(), b"v"], r"records\[1\] is of type bytes, expected a NewRecord"),
        ([(b"k", b"v")], r"records\[0\] is of type tuple, expected a NewRecord"),
        (ottla.NewRecord(), "records is of type NewRecord, expected several NewRecord"),
    ],
)
def test_what_is_no_record_is_named_by_its_place(records: object, said: str) -> None:
    builders: list[Callable[..., object]] = [ottla.build_batch, ottla.build_message_set]
    for build in builders:
        arguments = {"magic": 1} if build is ottla.build_message_set else {}
        with pytest.raises(TypeError, match=said):
            build(records, **arguments)
