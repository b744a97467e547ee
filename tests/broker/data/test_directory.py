"""Whose a directory is, and what makes it none that a broker may have."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ottla.broker.data.directory import DataDirectory
from ottla.errors import LogDirectoryError
from ottla.logs.checkpoints import parse_offset_checkpoint

META = "version=1\ncluster.id=abc\nnode.id=3\ndirectory.id=0oxwDUXU7rJV88pEP6rAlQ\n"


def bits(count: int) -> int:
    return int.from_bytes(bytes(range(1, 17)), "big") >> (128 - count)


def had(path: Path, cluster_id: str | None = None, node_id: int | None = None) -> DataDirectory:
    return DataDirectory(
        str(path), cluster_id=cluster_id, node_id=node_id, default_node_id=1, random_bits=bits
    )


def refusal(path: Path, cluster_id: str | None = None, node_id: int | None = None) -> str:
    before = {file.name: file.read_bytes() for file in path.glob("*") if file.is_file()}
    before.pop(".lock", None)
    with pytest.raises(LogDirectoryError) as caught:
        had(path, cluster_id, node_id)
    after = {file.name: file.read_bytes() for file in path.glob("*") if file.is_file()}
    after.pop(".lock", None)
    assert after == before
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_a_new_directory_says_whose_it_is_and_says_it_again(tmp_path: Path) -> None:
    first = had(tmp_path / "data", "abc", 7)
    first.release()
    second = had(tmp_path / "data")
    second.release()
    known = [(each.cluster_id, each.node_id, each.directory_id) for each in (first, second)]
    assert known[0] == known[1]
    assert known[0][:2] == ("abc", 7)
    assert "version=1\n" in (tmp_path / "data" / "meta.properties").read_text()


def test_a_directory_of_kafka_is_taken_with_its_ids(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(f"#\n#Sat Nov 21 10:06:31 UTC 2026\n{META}")
    taken = had(tmp_path)
    taken.release()
    assert (taken.cluster_id, taken.node_id) == ("abc", 3)
    assert taken.directory_id.hex() == "d28c700d45d4eeb255f3ca443faac095"


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "said"),
    [("xyz", None, "of the cluster abc, not of xyz"), (None, 4, "of node 3, not of node 4")],
)
def test_a_directory_of_another_cluster_or_node_is_refused(
    tmp_path: Path, cluster_id: str | None, node_id: int | None, said: str
) -> None:
    (tmp_path / "meta.properties").write_text(META)
    assert said in refusal(tmp_path, cluster_id, node_id)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version=0\nbroker.id=3\ncluster.id=abc\n", "is of version 0"),
        ("version=2\nnode.id=3\ncluster.id=abc\n", "meta.properties"),
        ("version=1\ncluster.id=abc\n", "meta.properties"),
        ("version=1\nnode.id=3\n", "has no cluster.id"),
        ("", "meta.properties"),
        (f"{META}directory.id=no\n", "'no' is no id"),
    ],
)
def test_a_directory_of_another_version_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "meta.properties").write_text(text)
    assert said in refusal(tmp_path)


def test_a_directory_that_holds_something_else_is_refused_and_not_written(tmp_path: Path) -> None:
    (tmp_path / "thesis.odt").write_text("years of work")
    assert "is no log directory: it has no meta.properties" in refusal(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thesis.odt"]


def test_a_file_and_a_place_that_is_not_there_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is a file, and should be a directory" in refusal(tmp_path / "file")
    assert "there is no directory" in refusal(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()


def test_what_is_no_file_is_refused_before_anything_waits_for_it(tmp_path: Path) -> None:
    had(tmp_path).release()
    (tmp_path / "orders-0").mkdir()
    for name in (".lock", "meta.properties.tmp", "orders-0/00000000000000000000.log"):
        path = tmp_path / name
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        assert f"{path} is neither a file nor a directory" in refusal(tmp_path)
        path.unlink()


def test_a_link_by_which_a_file_elsewhere_would_be_written_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    data = tmp_path / "data"
    had(data).release()
    (tmp_path / "disk").mkdir()
    (data / "orders-0").symlink_to(tmp_path / "disk")
    had(data).release()
    for name in ("meta.properties.tmp", "orders-0/leader-epoch-checkpoint.tmp"):
        (data / name).symlink_to(elsewhere)
        assert "is a link to no directory" in refusal(data)
        (data / name).unlink()
    assert elsewhere.read_text() == "precious"


def test_a_directory_that_this_process_has_is_refused_until_it_is_given_back(
    tmp_path: Path,
) -> None:
    taken = had(tmp_path)
    (tmp_path / "again").symlink_to(tmp_path)
    assert "a broker of this process has locked it" in refusal(tmp_path / "again")
    taken.release()
    had(tmp_path).release()


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_directory_that_the_system_does_not_let_write_is_refused_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    opened = os.open

    def refusing(path: str, flags: int, *mode: int, **options: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(number, os.strerror(number), path)
        return opened(path, flags, *mode, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refusing)
        said = refusal(tmp_path)
    assert said == f"{tmp_path / '.lock'}: {os.strerror(number)}"
    had(tmp_path).release()


LOCKED = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_directory_that_another_process_has_locked_as_kafka_does_is_refused(
    tmp_path: Path,
) -> None:
    had(tmp_path).release()
    with subprocess.Popen(
        [sys.executable, "-c", LOCKED, tmp_path / ".lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        assert "a broker of another process has locked it" in refusal(tmp_path)
        process.communicate("")
    had(tmp_path).release()


def test_a_clean_stop_is_known_at_the_next_start_alone(tmp_path: Path) -> None:
    first = had(tmp_path)
    assert not first.was_clean
    first.leave_clean(42)
    first.release()
    second = had(tmp_path)
    assert (second.was_clean, second.broker_epoch) == (True, 42)
    second.take_clean_mark()
    second.release()
    third = had(tmp_path)
    third.release()
    assert not third.was_clean


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", "{", '{"brokerEpoch":"many"}', '{"brokerEpoch":Infinity}', "[" * 65_536],
)
def test_a_mark_of_a_clean_stop_counts_whatever_it_says(tmp_path: Path, text: str) -> None:
    had(tmp_path).release()
    (tmp_path / ".kafka_cleanshutdown").write_text(text)
    found = had(tmp_path)
    found.release()
    assert (found.was_clean, found.broker_epoch) == (True, -1)


def test_a_checkpoint_is_read_as_it_was_written(tmp_path: Path) -> None:
    taken = had(tmp_path)
    offsets = [("a", 0, 0), ("b-c", 12, 2**63 - 1)]
    taken.write_checkpoint("x", offsets)
    taken.release()
    data = (tmp_path / "x").read_bytes()
    assert parse_offset_checkpoint(data) == {(topic, at): end for topic, at, end in offsets}
    assert not (tmp_path / "x.tmp").exists()
