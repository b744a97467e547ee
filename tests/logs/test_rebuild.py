"""The files beside segments are built anew from them, and an audit holds them against them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import ottla
import pytest
from support.logs import files_under, segment, segment_name, write_log_directory, write_partition

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"


def side_findings(directory: Path) -> list[tuple[str, str, str]]:
    """Name, severity and file of what an audit says of the files beside segments."""
    return [
        (f["name"], f["severity"], f["file"])
        for f in ottla.audit(directory).findings
        if not f["file"].endswith(".log")
    ]


@pytest.fixture
def rebuilt(tmp_path: Path) -> Path:
    """A copy of the example's transactions with every side file built anew."""
    log_directory = tmp_path / "kafka"
    shutil.copytree(EXAMPLES / "payments-0", log_directory / "payments-0")
    (built,) = ottla.rebuild_side_files(log_directory, tmp_path / "new")
    assert built.fault is None
    for name in built.files:
        shutil.copyfile(Path(built.target) / name, log_directory / "payments-0" / name)
    return log_directory / "payments-0"


def test_what_is_built_is_what_the_broker_wrote(tmp_path: Path) -> None:
    (built,) = ottla.rebuild_side_files(EXAMPLES, tmp_path / "new", topics=["refunds"])[:1]
    names = {path.name for path in Path(built.target).iterdir()}
    assert names == set(built.files)
    for name in built.files:
        if name.endswith((".txnindex", ".snapshot")):
            theirs = (EXAMPLES / built.directory / name).read_bytes()
            assert (Path(built.target) / name).read_bytes() == theirs, name


def test_an_audit_finds_nothing_in_what_is_built(rebuilt: Path) -> None:
    assert side_findings(rebuilt) == []


def _flip_position(data: bytes) -> bytes:
    return data[:7] + bytes([data[7] ^ 1]) + data[8:]


def _later(data: bytes) -> bytes:
    return (int.from_bytes(data[:8], "big") + 1).to_bytes(8, "big") + data[8:]


@pytest.mark.parametrize(
    ("suffix", "change", "finding"),
    [
        ("index", _flip_position, "index-mismatch"),
        ("index", lambda data: data + b"\x01", "index-mismatch"),
        ("timeindex", _later, "timeindex-mismatch"),
        ("timeindex", lambda data: data + b"\x01", "timeindex-mismatch"),
        ("txnindex", lambda data: data[34:], "txnindex-mismatch"),
        ("txnindex", lambda _: None, "txnindex-mismatch"),
        ("snapshot", lambda data: data[:-1] + b"\x05", "snapshot-mismatch"),
        ("snapshot", lambda _: b"", "snapshot-mismatch"),
    ],
)
def test_what_is_changed_is_found(
    rebuilt: Path, suffix: str, change: Callable[[bytes], bytes | None], finding: str
) -> None:
    file = max(rebuilt.glob(f"*.{suffix}"))
    changed = change(file.read_bytes())
    file.unlink() if changed is None else file.write_bytes(changed)
    found = [(name, file) for name, _, file in side_findings(rebuilt)]
    assert found == [(finding, f"payments-0/{file.name}")]


def test_an_epoch_that_begins_elsewhere_is_found(rebuilt: Path) -> None:
    (rebuilt / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n7 3\n")
    names = [name for name, _, _ in side_findings(rebuilt)]
    assert names == ["epoch-checkpoint-mismatch"]


def test_nothing_of_the_source_is_modified(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka")
    before = list(files_under(log_directory))
    built = ottla.rebuild_side_files(log_directory, tmp_path / "new", topics=["orders"])
    assert [partition.directory for partition in built] == ["orders-0", "orders-1"]
    assert list(files_under(log_directory)) == before
    assert not (tmp_path / "new" / "payments-0").exists()


def test_a_log_is_built_up_to_damage(tmp_path: Path) -> None:
    data = bytearray(segment(4))
    data[-1] ^= 1
    write_partition(tmp_path / "kafka" / "orders-0", {0: bytes(data), 12: segment(4)})
    (built,) = ottla.rebuild_side_files(tmp_path / "kafka", tmp_path / "new")
    assert built.fault is not None
    assert built.fault.startswith(segment_name(0))
    assert segment_name(12, "index") not in built.files
    assert segment_name(9, "snapshot") in built.files


def test_a_log_without_its_head_begins_with_the_producers_of_its_first_snapshot(
    tmp_path: Path,
) -> None:
    source = EXAMPLES / "customers-0"
    (whole,) = ottla.rebuild_side_files(source, tmp_path / "whole")
    headless = tmp_path / "customers-0"
    headless.mkdir()
    for name in (segment_name(252), segment_name(252, "snapshot")):
        shutil.copyfile(source / name, headless / name)
    (built,) = ottla.rebuild_side_files(headless, tmp_path / "new")
    name = max(name for name in built.files if name.endswith(".snapshot"))
    end = (Path(built.target) / name).read_bytes()
    assert end == (Path(whole.target) / name).read_bytes()


def test_a_target_that_exists_is_left_alone(tmp_path: Path) -> None:
    log_directory = write_log_directory(tmp_path / "kafka", ["orders-0"])
    target = tmp_path / "new"
    target.mkdir()
    (target / "mine").write_text("mine")
    with pytest.raises(FileExistsError):
        ottla.rebuild_side_files(log_directory, target)
    assert [path.name for path in target.iterdir()] == ["mine"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kafka", "new"]


def test_what_holds_nothing_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="the directory holds nothing"):
        ottla.rebuild_side_files(tmp_path / "empty", tmp_path / "new")
    with pytest.raises(ValueError, match="must be at least 0"):
        ottla.rebuild_side_files(tmp_path / "empty", tmp_path / "new", index_interval_bytes=-1)
    with pytest.raises(ValueError, match="topics is empty"):
        ottla.rebuild_side_files(tmp_path / "empty", tmp_path / "new", topics=[])
    assert not (tmp_path / "new").exists()
