"""Rows of integers that a log may have any number of."""

import pickle

from ottla.logs.packed import PackedRows

ROWS = ((7, 0, 2), (-1, 2**63 - 1, -(2**63)), (8, 3, 9))


def test_packed_rows_are_a_sequence_of_tuples() -> None:
    rows = PackedRows.of(ROWS)
    assert (len(rows), rows[-1], rows[1:], list(rows)) == (3, ROWS[2], ROWS[1:], list(ROWS))
    assert rows == ROWS
    assert (hash(rows), repr(rows)) == (hash(ROWS), repr(ROWS))
    assert rows != ROWS[:2]
    assert not PackedRows.of(())


def test_packed_rows_are_sent_in_eight_bytes_a_number() -> None:
    rows = PackedRows.of((n, 2 * n, 2 * n + 1) for n in range(1000))
    sent = pickle.dumps(rows)
    assert len(sent) < 24 * 1000 + 200
    assert pickle.loads(sent) == rows  # noqa: S301
