"""Transactions whose marker was never written, and markers that are there or may have been."""

from pathlib import Path

import ottla
from support.small_log import PARTITION, batch, marker, write_orders

FIRST = batch(0, producer_id=7, producer_epoch=4, is_transactional=True)
COMMIT = marker("commit", 3, producer_id=7, producer_epoch=5)
AT_3, AT_4 = (
    batch(offset, 2, producer_id=7, producer_epoch=5, is_transactional=True) for offset in (3, 4)
)


def found(directory: Path, *after_first: bytes) -> list[str]:
    """The findings about the first transaction and what comes behind it, which ends at offset 8."""
    write_orders(directory, first=[FIRST, *after_first])
    return [finding["name"] for finding in ottla.audit(directory).findings]


def test_aborted_records_that_are_read_as_committed_are_no_sound_log(tmp_path: Path) -> None:
    end = marker("commit", 5, producer_id=7, producer_epoch=6)
    assert found(tmp_path, AT_3, end, batch(6)) == ["marker-missing"]
    records = ottla.read_partition(tmp_path / PARTITION, isolation="read_committed", to_offset=6)
    assert [record.offset for record in records] == [0, 1, 2, 3, 4]


def test_the_message_has_both_transactions_and_every_marker_that_is_missing(tmp_path: Path) -> None:
    third = batch(5, 1, producer_id=7, producer_epoch=6, is_transactional=True)
    end = marker("abort", 6, producer_id=7, producer_epoch=7)
    write_orders(tmp_path, first=[FIRST, AT_3, third, end, batch(7, 2)])
    [finding] = ottla.audit(tmp_path).select(severity="error").findings
    assert finding["message"] == (
        "the transaction of producer 7 epoch 4 at offsets 0 to 2 has no end marker (nor has the one"
        " after it), and one of epoch 5 begins at offset 3: the next marker decides about them all"
    )


def test_a_transaction_that_another_segment_ends_is_found_without_its_marker(
    tmp_path: Path,
) -> None:
    other = batch(9, producer_id=7, producer_epoch=5, is_transactional=True)
    end = marker("commit", 12, producer_id=7, producer_epoch=6)
    write_orders(tmp_path, first=[FIRST, batch(3, 6)], second=[other, end, batch(13, 5)])
    assert [one["name"] for one in ottla.audit(tmp_path).findings] == ["marker-missing"]


def test_a_marker_in_its_place_is_enough(tmp_path: Path) -> None:
    end = marker("commit", 6, producer_id=7, producer_epoch=6)
    assert found(tmp_path, COMMIT, AT_4, end, batch(7, 2)) == []


def test_a_marker_that_cannot_be_read_is_not_missing_as_well(tmp_path: Path) -> None:
    odd = marker("commit", 3, producer_id=7, producer_epoch=5, kind_number=5)
    end = marker("commit", 6, producer_id=7, producer_epoch=6)
    assert found(tmp_path, odd, AT_4, end, batch(7, 2)) == ["transaction-fault"]


def test_a_marker_whose_bits_are_wrong_is_not_missing_as_well(tmp_path: Path) -> None:
    wrong = COMMIT[:-1] + bytes([COMMIT[-1] ^ 1])
    end = marker("commit", 6, producer_id=7, producer_epoch=6)
    assert found(tmp_path, wrong, AT_4, end, batch(7, 2)) == ["crc-mismatch"]


def test_a_marker_that_a_cleaner_may_have_removed_is_not_missing(tmp_path: Path) -> None:
    end = marker("commit", 6, producer_id=7, producer_epoch=6)
    assert "marker-missing" not in found(tmp_path, AT_4, end, batch(7, 2))


def test_plain_batches_of_new_epochs_have_no_markers(tmp_path: Path) -> None:
    plain = [batch(offset, 2, producer_id=8, producer_epoch=offset) for offset in (4, 6)]
    assert found(tmp_path, COMMIT, *plain, batch(8, 1)) == []
