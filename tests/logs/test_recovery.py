"""Starts of a broker, predicted: small directories with one thing wrong each.

The acceptance tests hold many more against the answers of Apache Kafka itself.
"""

import os
import struct
from pathlib import Path

import ottla
import pytest
from crc32c import crc32c
from ottla.logs.recovery import RecoveryPrediction, predict_starts
from support.logs import TIMESTAMP, batches, files_under, segment, segment_name, write_partition

from benches.data import encode_batch

FIRST = segment_name(0)
TRANSACTIONAL = 16
ABORT = 0
COMMIT = 1


def both_stops(directory: Path) -> tuple[RecoveryPrediction, RecoveryPrediction]:
    """The start after an unclean and after a clean stop; neither may touch a file."""
    before = list(files_under(directory))
    predictions = tuple(ottla.predict_recovery(directory, clean=clean) for clean in (False, True))
    assert list(files_under(directory)) == before
    return predictions[0], predictions[1]


def transactional(base_offset: int, base_sequence: int, count: int = 2, **fields: int) -> bytes:
    attributes = fields.pop("attributes", TRANSACTIONAL)
    return encode_batch(
        [(TIMESTAMP + base_offset, None, b"value", ())] * count,
        base_offset=base_offset,
        attributes=attributes,
        producer_id=7,
        producer_epoch=0,
        base_sequence=base_sequence,
    )


def marker(base_offset: int, kind: int) -> bytes:
    """The end of a transaction of producer 7."""
    return ottla.build_control_batch(
        "commit" if kind == COMMIT else "abort",
        base_offset=base_offset,
        producer_id=7,
        producer_epoch=0,
        timestamp=TIMESTAMP + base_offset,
        coordinator_epoch=1,
    )


def test_a_sound_directory_opens_as_it_is(tmp_path: Path) -> None:
    directory = write_partition(
        tmp_path / "orders-0", {0: segment(4), 12: segment(4, base_offset=12)}
    )
    for after in both_stops(directory):
        assert (after.opens, after.error, after.is_stray) == (True, None, False)
        assert (after.log_start_offset, after.log_end_offset) == (0, 24)
        assert (after.bytes_cut, after.segments_deleted, after.files_deleted) == (0, (), ())
        assert dict(after.segments) == dict(after.bytes_before)


@pytest.mark.parametrize("left", [10, 17, 30, 80])
def test_a_torn_batch_is_cut_off_after_an_unclean_stop_alone(tmp_path: Path, left: int) -> None:
    sound = segment(3)
    torn = batches(1, base_offset=9)[0][:left]
    directory = write_partition(tmp_path / "orders-0", {0: sound + torn})
    unclean, clean = both_stops(directory)
    assert (unclean.log_end_offset, dict(unclean.segments)) == (9, {FIRST: len(sound)})
    assert (unclean.bytes_cut, unclean.rebuilt[FIRST].max_timestamp) == (left, TIMESTAMP + 8)
    assert (clean.log_end_offset, clean.bytes_cut) == (9, 0)


def test_a_wrong_checksum_takes_every_later_segment_with_it(tmp_path: Path) -> None:
    damaged = bytearray(segment(4))
    damaged[-1] ^= 1
    directory = write_partition(
        tmp_path / "orders-0", {0: bytes(damaged), 12: segment(4, base_offset=12)}
    )
    unclean, clean = both_stops(directory)
    assert unclean.log_end_offset == 9
    assert unclean.segments_deleted == (segment_name(12),)
    assert {segment_name(12, s) for s in ("log", "index", "timeindex")} == set(
        unclean.files_deleted
    )
    assert "crc" in (unclean.rebuilt[FIRST].fault or "").lower()
    assert (clean.log_end_offset, clean.segments_deleted) == (24, ())


def test_segments_below_the_recovery_point_are_not_looked_at(tmp_path: Path) -> None:
    damaged = bytearray(segment(4))
    damaged[-1] ^= 1
    directory = write_partition(
        tmp_path / "orders-0", {0: bytes(damaged), 12: segment(4, base_offset=12)}
    )
    after = ottla.predict_recovery(directory, recovery_point=15)
    assert (after.log_end_offset, after.bytes_cut, set(after.rebuilt)) == (
        24,
        0,
        {segment_name(12)},
    )
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 12\n")
    assert ottla.predict_recovery(directory, recovery_point=None) == after
    assert ottla.predict_recovery(directory).log_end_offset == 9


@pytest.mark.parametrize("zeros", [18, 100, 4096])
def test_zeros_behind_the_last_batch_keep_a_broker_from_starting_after_a_clean_stop(
    tmp_path: Path, zeros: int
) -> None:
    sound = segment(3)
    directory = write_partition(tmp_path / "orders-0", {0: sound + bytes(zeros)})
    unclean, clean = both_stops(directory)
    assert (unclean.log_end_offset, unclean.bytes_cut) == (9, zeros)
    assert not clean.opens
    assert clean.error == "org.apache.kafka.common.errors.CorruptRecordException"
    assert clean.message == (
        f"Found record size 0 smaller than minimum record overhead (14) in file orders-0/{FIRST}."
    )
    assert clean.log_end_offset is None


def test_an_index_that_lies_gives_a_log_that_ends_where_it_starts(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(4)})
    (directory / segment_name(0, "index")).write_bytes(struct.pack(">ii", 11, 1 << 20))
    unclean, clean = both_stops(directory)
    assert (clean.opens, clean.log_end_offset, clean.bytes_cut) == (True, 0, 0)
    assert unclean.log_end_offset == 12


def test_plain_records_inside_a_transaction_keep_a_broker_from_starting(tmp_path: Path) -> None:
    data = transactional(0, 0) + transactional(2, 2, attributes=0)
    directory = write_partition(tmp_path / "orders-0", {0: data})
    unclean, _ = both_stops(directory)
    assert unclean.error == "org.apache.kafka.common.errors.InvalidTxnStateException"
    assert unclean.message is not None
    assert "producer 7 at offset (offset=2," in unclean.message


def test_a_transaction_ended_twice_keeps_a_broker_from_starting(tmp_path: Path) -> None:
    once = transactional(0, 0) + marker(2, COMMIT)
    directory = write_partition(tmp_path / "orders-0", {0: once + once})
    (unclean, clean) = both_stops(directory)
    # Batch by batch the second transaction is one of its own.
    assert unclean.opens
    # After a clean stop without a snapshot Kafka takes it that there are no producers.
    assert (clean.opens, clean.producers) == (True, ())
    (directory / "00000000000000000001.snapshot").write_bytes(b"")
    assert not ottla.predict_recovery(directory, recovery_point=99, clean=True).opens


def test_a_recovery_lists_aborted_transactions_and_knows_the_open_one(tmp_path: Path) -> None:
    data = transactional(0, 0) + marker(2, ABORT) + transactional(3, 2)
    directory = write_partition(tmp_path / "orders-0", {0: data})
    unclean, _ = both_stops(directory)
    assert unclean.rebuilt[FIRST].aborted == ((7, 0, 2, 3),)
    assert unclean.first_undecided_offset == 3
    (producer,) = unclean.producers
    assert (producer.last_sequence, producer.last_offset, producer.coordinator_epoch) == (3, 4, 1)
    assert producer.transaction_first_offset == 3
    assert set(unclean.files_created) == {
        segment_name(0, "txnindex"),
        "00000000000000000005.snapshot",
    }


def test_offsets_too_far_apart_split_a_segment(tmp_path: Path) -> None:
    near, far = segment(2), segment(2, base_offset=1 << 32)
    directory = write_partition(tmp_path / "orders-0", {0: near + far})
    unclean, clean = both_stops(directory)
    assert dict(unclean.segments) == {FIRST: len(near), segment_name(1 << 32): len(far)}
    assert unclean.log_end_offset == (1 << 32) + 6
    assert unclean.bytes_cut == len(far)
    assert clean.log_end_offset == (1 << 32) + 6
    assert dict(clean.segments) == {FIRST: len(near + far)}


def test_one_far_offset_among_others_keeps_a_broker_from_starting(tmp_path: Path) -> None:
    data = segment(1) + segment(1, base_offset=1 << 32) + segment(1, base_offset=6)
    directory = write_partition(tmp_path / "orders-0", {0: data})
    unclean, clean = both_stops(directory)
    assert unclean.error == "java.lang.IllegalArgumentException"
    assert unclean.message == (
        "Split operation is only permitted for segments with overflow, and the problem path is"
        f" orders-0/{FIRST}"
    )
    assert clean.opens


def test_offsets_that_go_back_on_an_index_entry_empty_the_segment(tmp_path: Path) -> None:
    data = b"".join(segment(1, base_offset=base, value_size=5000) for base in (0, 30, 60, 9, 90))
    directory = write_partition(tmp_path / "orders-0", {0: data, 93: segment(1, base_offset=93)})
    unclean, _ = both_stops(directory)
    assert (unclean.log_end_offset, dict(unclean.segments)) == (0, {FIRST: 0})
    (directory / segment_name(0, "index")).unlink()
    assert {after.error for after in both_stops(directory)} == {
        "org.apache.kafka.common.errors.InvalidOffsetException"
    }


def test_a_swap_under_way_is_finished_and_cleaned_files_go(tmp_path: Path) -> None:
    directory = write_partition(
        tmp_path / "orders-0", {0: segment(4), 12: segment(4, base_offset=12)}
    )
    merged = segment(2) + segment(4, base_offset=12)
    (directory / (FIRST + ".swap")).write_bytes(merged)
    for after in both_stops(directory):
        assert dict(after.segments) == {FIRST: len(merged)}
        assert (after.log_end_offset, after.segments_deleted) == (24, (segment_name(12),))
    (directory / (segment_name(0, "index") + ".cleaned")).write_bytes(b"")
    for after in both_stops(directory):
        assert (after.log_end_offset, after.segments_deleted) == (24, ())
        assert {FIRST + ".swap", segment_name(0, "index") + ".cleaned"} <= set(after.files_deleted)


def test_an_index_without_its_segment_is_deleted(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(1)})
    (directory / segment_name(3, "timeindex")).write_bytes(b"")
    for after in both_stops(directory):
        assert after.files_deleted == (segment_name(3, "timeindex"),)


def test_a_log_start_beyond_the_end_empties_the_log(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(4)})
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 40\n")
    for after in both_stops(directory):
        assert (after.log_start_offset, after.log_end_offset) == (40, 40)
        assert dict(after.segments) == {segment_name(40): 0}
        assert after.segments_deleted == (FIRST,)


def test_epochs_are_taken_up_and_cut_to_the_log(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(2)})
    (directory / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n4 2\n5 6\n")
    assert {after.leader_epochs for after in both_stops(directory)} == {((0, 0), (4, 2))}
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 x\n")
    assert {after.error for after in both_stops(directory)} == {"java.lang.NumberFormatException"}


def test_a_directory_without_its_topic_id_is_put_aside(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(2)})
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: AAAA\n")
    assert {after.opens for after in both_stops(directory)} == {False}
    (directory / "partition.metadata").unlink()
    for after in both_stops(directory):
        assert (after.opens, after.is_stray) == (True, True)


def test_a_snapshot_that_cannot_be_read_is_deleted_and_the_log_read_again(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: transactional(0, 0)})
    (directory / "00000000000000000002.snapshot").write_bytes(b"\0\1")
    _, clean = both_stops(directory)
    assert [producer.producer_id for producer in clean.producers] == [7]
    # Kafka writes the same name anew.
    assert (clean.files_deleted, clean.files_created) == ((), ())


def test_a_directory_that_cannot_be_listed_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ottla.predict_recovery(tmp_path / "orders-0")


def test_a_prediction_stops_when_its_caller_says_so(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(20, value_size=300_000)})
    told: list[int] = []

    def stop(read: int) -> bool:
        told.append(read)
        return False

    with pytest.raises(ottla.AuditCancelledError):
        predict_starts(
            os.fsencode(directory),
            stopped_cleanly=False,
            recovery_point=None,
            log_start_offset=None,
            log_end_offset=None,
            needs_topic_id=False,
            aborted=(),
            progress=stop,
        )
    assert len(told) == 1
    assert told[0] >= 8 << 20


def test_a_control_record_that_ends_no_transaction_keeps_a_broker_from_starting(
    tmp_path: Path,
) -> None:
    data = bytearray(transactional(0, 0) + marker(2, COMMIT))
    # The type is the second half of the key; the checksum is made right again.
    at = len(transactional(0, 0))
    key = data.index(b"\x00\x00\x00\x01", at + 61)
    data[key + 3] = 9
    data[at + 17 : at + 21] = crc32c(bytes(data[at + 21 :])).to_bytes(4, "big")
    directory = write_partition(tmp_path / "orders-0", {0: bytes(data)})
    unclean, _ = both_stops(directory)
    assert unclean.error == "java.lang.IllegalArgumentException"
    assert unclean.message == "Invalid control record type for end transaction marker UNKNOWN"
