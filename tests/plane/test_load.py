"""Directories of partitions, loaded: what a start of Kafka makes of them is done to their files."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import ottla
import pytest
from ottla.errors import LogDirectoryError
from support import damage, loading
from support.logs import TOPIC_ID, files_under, segment, segment_name, write_partition
from support.plane_frames import CODE, NOW_MS, Plane, batch

DAMAGE = Path(__file__).parents[1] / "samples" / "damage.tar.xz"

KINDS = {"as predicted", "refused", "recovered at its end"}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The damaged logs; tests only read them."""
    return damage.unpack(DAMAGE, tmp_path_factory.mktemp("damage"))


def check_load(directory: Path, copy: Path, log_start_offset: int, *, clean: bool) -> str:
    """Load a copy of a directory, and hold it to what is predicted of it. Returns what it was."""
    shutil.copytree(directory, copy)
    # Where nothing is compacted, a start keeps nothing behind a gap; what is predicted is Kafka's.
    settings = ottla.TopicConfig(cleanup_policy="compact")
    start: dict[str, Any] = {
        "log_start_offset": log_start_offset,
        "is_clean": clean,
        "settings": settings,
    }
    after = ottla.predict_recovery(directory, clean=clean, log_start_offset=log_start_offset)
    before = list(files_under(copy))
    try:
        plane, handle = loading.load(copy, **start)
    except LogDirectoryError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert str(copy) in refusal
        assert list(files_under(copy)) == before
        how = "refused" if not after.opens else "refused at its end"
        if after.opens:
            after = loading.predict_end(directory, after, log_start_offset)
        assert (after.error or "opens") in refusal
        return how
    assert after.opens, after.message
    found = loading.loaded(copy, plane, handle)
    expected = loading.predicted(directory, after)
    how = "as predicted"
    if clean and found != expected:
        end = loading.predict_end(directory, after, log_start_offset)
        expected, how = loading.predicted(directory, end), "recovered at its end"
    assert found == expected
    plane.close(handle)

    left = dict(files_under(copy))
    if clean and not ottla.predict_recovery(copy, clean=True).opens:
        # Kafka has left damage, which keeps it from starting again.
        return f"{how}, and never again"
    again, handle = loading.load(copy, **start)
    assert loading.loaded(copy, again, handle).log_end_offset == found.log_end_offset
    if again.changes(handle):
        # Kafka has deleted the snapshot by which it knew what was before the log start, or has cut
        # off an epoch that it finds in batches then.
        changed = {name for name, data in files_under(copy) if left[name] != data}
        kinds = {Path(name).suffix or name for name in changed}
        assert how != "as predicted" or kinds <= {".txnindex", "leader-epoch-checkpoint"}
        how += ", and changed again"
    return how


def check_all(damage_directory: Path, tmp_path: Path, every: int = 1) -> dict[str, int]:
    """Load the partitions of the corpus of damage after either stop. Returns what they were."""
    outcomes: dict[str, int] = {}
    lines = (damage_directory / "recovery.jsonl").read_text().splitlines()
    for line in lines[::every]:
        row = json.loads(line)
        directory = damage_directory / row["dir"]
        for clean in (False, True):
            copy = tmp_path / "copy" / directory.name
            how = check_load(directory, copy, row["log_start_checkpoint"], clean=clean)
            outcomes[how] = outcomes.get(how, 0) + 1
            shutil.rmtree(copy)
    return outcomes


def test_a_damaged_directory_is_left_as_a_start_leaves_it(damaged: Path, tmp_path: Path) -> None:
    assert check_all(damaged, tmp_path, every=6).keys() >= KINDS


@pytest.mark.slow
def test_every_damaged_directory_is_left_as_a_start_leaves_it(
    damaged: Path, tmp_path: Path
) -> None:
    assert check_all(damaged, tmp_path).keys() >= KINDS


@pytest.mark.shared
@pytest.mark.slow
def test_every_directory_of_the_corpus_of_damage_is_left_as_a_start_leaves_it(
    shared: Path, tmp_path: Path
) -> None:
    assert check_all(shared / "damage", tmp_path).keys() >= KINDS


def test_a_directory_of_another_topic_is_refused_with_both_ids(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(2)})
    before = list(files_under(directory))
    with pytest.raises(LogDirectoryError, match=f"{TOPIC_ID}, expected AAAAAAAAAAAAAAAAAAAAAQ"):
        loading.load(directory, topic_id=bytes(15) + b"\1")
    assert list(files_under(directory)) == before


def test_a_directory_that_a_start_refuses_is_named_with_the_reason(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(2) + bytes(100)})
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 zero\n")
    before = list(files_under(directory))
    with pytest.raises(LogDirectoryError, match=r'orders-0 cannot be .*For input string: "zero"'):
        loading.load(directory)
    assert list(files_under(directory)) == before


def test_a_directory_without_a_topic_id_gets_that_of_its_topic(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(2)})
    (directory / "partition.metadata").unlink()
    loading.load(directory, topic_id=bytes(15) + b"\1")
    text = (directory / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n"


def test_what_was_done_to_the_files_is_told(tmp_path: Path) -> None:
    data = segment(2)
    directory = write_partition(tmp_path / "orders-0", {0: data + bytes(100)})
    plane, handle = loading.load(directory)
    cut = f"cut {segment_name(0)} from {len(data) + 100} to {len(data)} bytes"
    assert cut in plane.changes(handle)
    assert plane.read(handle, 0, 1 << 20) == data


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    directory = write_partition(tmp_path / "orders-0", {0: segment(2)})
    (directory / segment_name(0, "index")).unlink()
    (directory / segment_name(0, "index")).mkdir()
    with pytest.raises(OSError, match="index") as raised:
        loading.load(directory)
    assert raised.value.filename is not None


def test_a_log_that_is_loaded_goes_on_where_it_ended(tmp_path: Path) -> None:
    plane, handle = loading.load(tmp_path / "t-0")
    sequences = range(8)
    sets = [
        batch(b"%d" % sequence, producer_id=5, producer_epoch=0, base_sequence=sequence)
        for sequence in sequences
    ]
    for records in sets:
        assert plane.append(handle, records, now_ms=NOW_MS, origin="coordinator").accepted
    plane.close(handle)
    # Never stopped, as after a kill.
    loaded, handle = loading.load(tmp_path / "t-0")
    client = Plane(loaded, {("t", 0): handle})
    again = [client.append(records).base_offset for records in sets[-5:]]
    assert again == [3, 4, 5, 6, 7]
    older = client.append(sets[0])
    assert older.error_code == CODE.OUT_OF_ORDER_SEQUENCE_NUMBER
    following = batch(b"8", producer_id=5, producer_epoch=0, base_sequence=8)
    assert client.append(following).base_offset == 8
    assert loaded.offsets(handle)[3] == 9


@pytest.mark.measures
def test_a_log_that_is_read_whole_costs_a_few_checks_of_its_bytes(tmp_path: Path) -> None:
    one = bytearray(batch(*[b"v" * 100] * 150, producer_id=5, producer_epoch=0, base_sequence=0))
    data = bytearray()
    for base_offset in range(0, 3000 * 150, 150):
        one[:8] = base_offset.to_bytes(8, "big")
        data += one
    directory = write_partition(tmp_path / "orders-0", {0: bytes(data)})
    took: dict[str, float] = {"load": 1e9, "check": 1e9}
    for _ in range(3):
        begun = time.perf_counter()
        plane, handle = loading.load(directory)
        took["load"] = min(took["load"], time.perf_counter() - begun)
        assert plane.offsets(handle)[3] == 3000 * 150
        begun = time.perf_counter()
        ottla.check_batches(data, level="crc")
        took["check"] = min(took["check"], time.perf_counter() - begun)
    assert took["load"] < 40 * took["check"], took
