"""What records, batches, columns and verdicts are in Python: equal, hashed, pickled, shown."""

import pickle
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import ottla
import pytest
from ottla.records import ConsumerRecord, FetchedColumns, ProducerState, fetched, join_columns

HEADERS: list[tuple[str | bytes, bytes | None]] = [("h", b"x"), (b"\xff", None)]
ROWS = [
    ottla.NewRecord(b"k", b"value", timestamp=5, headers=HEADERS),
    ottla.NewRecord(None, b"v" * 100),
]
DATA = ottla.build_batch(ROWS, base_offset=40, compression="zstd")
MARKER = ottla.build_control_batch(
    "abort", producer_id=9, producer_epoch=2, coordinator_epoch=7, timestamp=5
)
REFUSED = ottla.build_batch([ottla.NewRecord(b"k", b"v"), ottla.NewRecord(None, b"v")])
COMPACTED = ottla.TopicConfig(cleanup_policy="compact")


def record() -> ottla.Record:
    return next(ottla.read(DATA))


def marker() -> ottla.Record:
    return next(ottla.read(MARKER, control=True))


def batch() -> ottla.RecordBatch:
    return next(ottla.read_batches(DATA))


def behind_another() -> ottla.RecordBatch:
    return list(ottla.read_batches(MARKER + DATA + MARKER))[1]


def accepted() -> ottla.Verdict:
    return ottla.validate(REFUSED, now_ms=7, base_offset=3)


def refused() -> ottla.Verdict:
    return ottla.validate(REFUSED, COMPACTED, now_ms=7)


def consumer_record() -> ConsumerRecord:
    return ConsumerRecord("orders", 1, 40, key=b"k", headers=[("h", b"x")])


def aborted() -> ottla.AbortedTransaction:
    return ottla.AbortedTransaction(7, first_offset=0, last_offset=3, last_stable_offset=4)


def record_error() -> ottla.RecordError:
    return refused().record_errors[0]


def producer_state() -> ProducerState:
    """Of a producer with two batches in an open transaction, behind a marker."""
    leader = ottla.Leader(transaction_verification=False)
    for sequence in (0, 2, 4):
        batch = ottla.build_batch(
            [ottla.NewRecord(b"k", b"v", timestamp=sequence)] * 2,
            producer_id=9,
            producer_epoch=2,
            base_sequence=sequence,
            is_transactional=True,
        )
        assert leader.append(batch, now_ms=5, transactional_id="t")
        if sequence == 0:
            leader.end_transaction(9, 2, coordinator_epoch=7, commit=True, now_ms=5)
    (state,) = leader.producers
    assert (len(state.batches), state.transaction_first_offset) == (3, 3)
    return state


def fetched_columns() -> FetchedColumns:
    part = fetched(DATA, 40)
    return join_columns([("orders", 1, part), ("refunds", 0, part), ("orders", 2, part)])


MADE: list[Callable[[], Any]] = [
    *(record, marker, batch, behind_another, accepted, refused, consumer_record, aborted),
    *(record_error, lambda: ottla.read_columns(DATA), lambda: ottla.read_columns(b"")),
    lambda: ottla.NewRecord(b"k", b"v"),
    *(producer_state, fetched_columns, lambda: join_columns([])),
    lambda: ottla.RememberedBatch(5, 6, 10, 11, 1_500_000_000_000),
]


@pytest.mark.parametrize("make", MADE)
def test_what_is_made_twice_is_equal_and_has_one_hash(make: Callable[[], Any]) -> None:
    one, other = make(), make()
    assert one is not other
    assert one == other
    assert hash(one) == hash(other)
    assert {one: 1}[other] == 1
    assert one != object()
    assert one.__eq__(5) is NotImplemented


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_what_is_pickled_comes_back_equal(make: Callable[[], Any], protocol: int) -> None:
    one = make()
    back = pickle.loads(pickle.dumps(one, protocol))  # noqa: S301 - our own
    assert back == one
    assert repr(back) == repr(one)
    assert hash(back) == hash(one)


def test_each_field_of_a_record_counts() -> None:
    whole: dict[str, Any] = {
        "offset": 1,
        "timestamp": 2,
        "key": b"k",
        "value": b"v",
        "headers": [("h", b"x")],
        "sequence": 3,
    }
    others: dict[str, Any] = {
        "offset": 9,
        "timestamp": 9,
        "key": None,
        "value": b"",
        "headers": [("h", None)],
        "sequence": 9,
    }
    one = ottla.Record(**whole)
    assert one == ottla.Record(**whole)
    for name, other in others.items():
        assert one != ottla.Record(**{**whole, name: other}), name
    assert ottla.Record(0, 0, b"", None) != ottla.Record(0, 0, None, b"")


def test_a_record_that_is_made_says_what_it_was_made_of() -> None:
    made = ottla.Record(40, 5, b"k", b"value", HEADERS)
    assert made == record()
    assert made.raw_headers == [(b"h", b"x"), (b"\xff", None)]
    with pytest.raises(TypeError, match="the key of a header is <class 'int'>, expected str or by"):
        ottla.Record(0, headers=[(5, b"x")])  # type: ignore[list-item]


def test_a_pickled_marker_is_a_marker() -> None:
    back = pickle.loads(pickle.dumps(marker()))  # noqa: S301 - our own
    assert (back.control, back.coordinator_epoch) == ("ABORT", 7)


def test_records_batches_and_errors_are_matched_by_position() -> None:
    match record():
        case ottla.Record(offset, timestamp, key, value):
            assert (offset, timestamp, key, value) == (40, 5, b"k", b"value")
    match batch():
        case ottla.RecordBatch(base_offset, last_offset):
            assert (base_offset, last_offset) == (40, 41)
    match record_error():
        case ottla.RecordError(index, message, error):
            assert (index, error) == (1, 87)
            assert "key" in message
    match consumer_record():
        case ConsumerRecord(topic, partition, offset, key=b"k"):
            assert (topic, partition, offset) == ("orders", 1, 40)


def test_the_bytes_of_a_batch_are_those_it_was_read_from() -> None:
    assert bytes(batch()) == DATA
    assert bytes(behind_another()) == DATA
    assert behind_another().position == len(MARKER)
    assert behind_another() == batch()


def test_a_batch_that_was_pickled_keeps_its_place_and_its_own_bytes_alone() -> None:
    one = behind_another()
    pickled = pickle.dumps(one)
    assert len(pickled) < len(DATA) + 100
    back = pickle.loads(pickled)  # noqa: S301 - our own
    assert (back.position, back.size) == (one.position, one.size)
    back.verify()
    assert list(back.records()) == list(one.records())


def test_a_batch_is_made_of_the_bytes_of_one() -> None:
    assert list(ottla.RecordBatch(memoryview(DATA)).records()) == list(ottla.read(DATA))
    with pytest.raises(ValueError, match=f"data has {2 * len(DATA)} bytes, expected those of one"):
        ottla.RecordBatch(DATA + DATA)
    with pytest.raises(ValueError, match="data has 0 bytes, expected those of one batch; read_bat"):
        ottla.RecordBatch(b"")
    with pytest.raises(ottla.CorruptRecordBatchError):
        ottla.RecordBatch(b"\xff" * 100)


def test_columns_are_equal_by_their_rows_however_they_are_compressed() -> None:
    other = ottla.build_batch(ROWS, base_offset=40, compression="gzip")
    assert ottla.read_columns(DATA) == ottla.read_columns(other, views=True)
    assert ottla.read_columns(DATA) != ottla.read_columns(ottla.build_batch(ROWS))


def test_a_verdict_is_true_where_the_set_is_accepted() -> None:
    assert accepted()
    assert not refused()
    assert accepted().accepted


def test_a_refusal_is_raised_with_what_it_says() -> None:
    assert accepted().raise_for_error() is None  # type: ignore[func-returns-value]
    verdict = refused()
    said = r"^INVALID_RECORD \(87\): 1 record refused: record 1: no key"
    with pytest.raises(ottla.RecordsRefusedError, match=said) as told:
        verdict.raise_for_error()
    error = told.value
    assert (error.error_code, error.error) == (87, "INVALID_RECORD")
    assert error.record_errors == verdict.record_errors
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (str(back), back.record_errors) == (str(error), error.record_errors)


@pytest.mark.parametrize("make", [accepted, refused])
def test_a_pickled_verdict_says_all_that_it_said(make: Callable[[], ottla.Verdict]) -> None:
    one = make()
    back = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
    names = [name for name in dir(one) if not name.startswith("_") and name != "raise_for_error"]
    for name in set(names) - {"stored_parts"}:
        assert getattr(back, name) == getattr(one, name), name
    assert b"".join(back.stored_parts) == b"".join(one.stored_parts)


def test_verdicts_differ_in_what_they_store() -> None:
    assert accepted() != ottla.validate(REFUSED, now_ms=7, base_offset=4)
    assert refused() != accepted()
    assert refused() != ottla.validate(b"", now_ms=7)


def test_a_repr_names_what_is_unusual_and_is_bounded() -> None:
    assert repr(record()) == (
        "Record(offset=40, timestamp=5, key=b'k', value=b'value', "
        "headers=[('h', b'x'), ('\ufffd', None)])"
    )
    assert repr(marker()).endswith("control='ABORT')")
    long = repr(ottla.Record(0, value=b"v" * 1_000_000))
    assert long.endswith(f"b'{'v' * 64}'… and 999936 more bytes)")
    assert "compression='zstd'" in repr(batch())
    assert "producer_id=9, is_transactional=True, is_control=True" in repr(
        next(ottla.read_batches(MARKER))
    )
    assert repr(ottla.read_columns(DATA)) == "<Columns of 2 records>"


class Reader(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


HOSTILE = "<script>alert(1)</script>&\"'\x1b[2J\u202e"
TABLE_TAGS = {"table", "caption", "thead", "tbody", "tr", "th", "td"}


@pytest.mark.parametrize(
    "make",
    [
        lambda: ottla.Record(0, 1, HOSTILE.encode(), None, [(HOSTILE, HOSTILE.encode())]),
        lambda: ConsumerRecord(HOSTILE, 0, 0, key=HOSTILE, value=HOSTILE.encode()),
        lambda: ottla.read_columns(ottla.build_batch([ottla.NewRecord(HOSTILE.encode())])),
    ],
)
def test_the_text_of_strangers_is_escaped_in_a_notebook(make: Callable[[], Any]) -> None:
    page = make()._repr_html_()
    shown = Reader(page)
    assert shown.tags <= TABLE_TAGS
    assert "<script>" in "".join(shown.text)
    assert "\x1b" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize("make", [record, marker, batch, accepted, refused, consumer_record])
def test_a_notebook_shows_the_fields(make: Callable[[], Any]) -> None:
    thing = make()
    shown = Reader(thing._repr_html_()).text
    assert shown[0] == type(thing).__name__
    assert any(name in shown for name in ("offset", "base_offset"))


def test_a_notebook_shows_the_first_rows_and_how_many_there_are() -> None:
    rows = [ottla.NewRecord(b"k%d" % number, b"v" * 1_000_000) for number in range(30)]
    columns: Any = ottla.read_columns(ottla.build_batch(rows))
    page = columns._repr_html_()
    shown = Reader(page).text
    assert shown[0] == "Columns: 30 rows, the first 20 shown"
    assert "b'k19'" in shown
    assert "b'k20'" not in shown
    assert len(page) < 10_000


def test_columns_is_the_former_name_of_read_columns() -> None:
    with pytest.warns(
        DeprecationWarning, match=r"ottla\.columns is deprecated, and called ottla\.re"
    ):
        found = ottla.columns(DATA)
    assert found == ottla.read_columns(DATA)
    assert np.array_equal(found.offset, [40, 41])
