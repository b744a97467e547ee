"""A file read again in pieces gives every batch and record once."""

from pathlib import Path

import pytest
from ottla.logs import segment as segment_module
from ottla.logs.columns import BATCH_COLUMNS, RECORD_COLUMNS
from ottla.logs.segment import batch_chunks, find_offset, record_chunks
from ottla.storage import LocalPlace
from support.logs import batches, segment

NAMES = [column.name for column in BATCH_COLUMNS]


def positions(path: Path, start: int = 0) -> list[int]:
    index = NAMES.index("position")
    return [row[index] for chunk in batch_chunks(LocalPlace(bytes(path)), start) for row in chunk]


def offsets(path: Path, start: int = 0) -> list[int]:
    index = [column.name for column in RECORD_COLUMNS].index("offset")
    return [row[index] for chunk in record_chunks(LocalPlace(bytes(path)), start) for row in chunk]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Five batches of three records."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(segment(5))
    return path


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_pieces_of_any_size_give_the_same(
    log: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(segment_module, "BATCHES_AT_ONCE", at_once)
    monkeypatch.setattr(segment_module, "RECORDS_AT_ONCE", at_once)
    size = len(batches(1)[0])
    assert positions(log) == [index * size for index in range(5)]
    assert offsets(log) == list(range(15))


def test_reading_starts_at_the_batch_at_a_position(log: Path) -> None:
    size = len(batches(1)[0])
    assert positions(log, 3 * size) == [3 * size, 4 * size]
    assert offsets(log, 3 * size) == list(range(9, 15))


def test_damage_between_batches_is_passed_over(log: Path) -> None:
    first, second = batches(2)
    log.write_bytes(first + b"\x01" * 100 + second)
    assert positions(log) == [0, len(first) + 100]
    assert offsets(log) == list(range(6))


def test_a_batch_with_a_wrong_checksum_is_listed_and_its_records_are_not(log: Path) -> None:
    first, second = batches(2)
    log.write_bytes(first + second[:-1] + b"!")
    index = NAMES.index("is_valid")
    assert [row[index] for chunk in batch_chunks(LocalPlace(bytes(log))) for row in chunk] == [
        True,
        False,
    ]
    assert offsets(log) == [0, 1, 2]


def test_an_offset_is_found_in_its_batch_or_in_the_next_one(log: Path) -> None:
    before, after = segment(1), segment(1, base_offset=10)
    log.write_bytes(before + after)
    found = {
        offset: find_offset(LocalPlace(bytes(log)), offset) for offset in (0, 2, 3, 10, 12, 13)
    }
    end = len(before)
    assert found == {0: 0, 2: 0, 3: end, 10: end, 12: end, 13: None}


def test_an_offset_is_not_found_in_a_batch_beyond_it_that_the_next_one_contradicts(
    log: Path,
) -> None:
    far = segment(1, base_offset=2**40)
    before, after = segment(1), segment(1, base_offset=6)
    log.write_bytes(before + far + after)
    found = {offset: find_offset(LocalPlace(bytes(log)), offset) for offset in (2, 6, 8, 9)}
    end = len(before + far)
    assert found == {2: 0, 6: end, 8: end, 9: len(before)}


def test_an_empty_file_has_no_batches_and_no_records(log: Path) -> None:
    log.write_bytes(b"")
    assert positions(log) == []
    assert offsets(log) == []


def test_a_missing_file_is_the_operating_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        positions(tmp_path / "nowhere")
