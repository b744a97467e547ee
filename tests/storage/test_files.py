"""Paths, the files that they belong to, and what is asked of those of this machine."""

import os
import pickle
from pathlib import Path

import pytest
from ottla.errors import StorageError
from ottla.storage import ANYWHERE, AnyFiles, LocalFiles, common_path, files_of, full_path, store_of


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("s3://bucket", b"s3://bucket"),
        ("s3://bucket/", b"s3://bucket"),
        ("s3a://bucket//logs/orders-0/", b"s3a://bucket/logs/orders-0"),
        ("s3://bucket/a b#?%20é", "s3://bucket/a b#?%20é".encode()),
        (Path("s3://bucket/logs"), b"s3://bucket/logs"),
        ("abfss://logs@account.dfs.core.windows.net/x", None),
        ("/var/lib/kafka/", b"/var/lib/kafka"),
        (b"/var/lib/\xff", None),
        ("file:///var/lib/kafka", b"/var/lib/kafka"),
        ("file:/var/lib/kafka", b"/var/lib/kafka"),
        ("file://localhost/var/my%20logs", b"/var/my logs"),
    ],
)
def test_a_full_path_stands_for_itself(given: str | Path, full: bytes | None) -> None:
    found = full_path(given)
    assert found == (os.fsencode(given) if full is None else full)
    assert full_path(found) == found


def test_a_relative_path_is_one_of_this_machine() -> None:
    assert full_path("logs") == os.fsencode(Path.cwd() / "logs")


def test_a_directory_whose_name_looks_like_a_scheme_is_read_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hdfs:" / "logs").mkdir(parents=True)
    assert full_path("hdfs:/logs") == os.fsencode(tmp_path / "hdfs:" / "logs")


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("hdfs://namenode/logs", "hdfs: URIs cannot be read"),
        ("hdfs:///logs", "mount the storage"),
        ("dbfs:/mnt/logs", "use /dbfs/ and the rest of the path"),
        ("https://host/logs", "only s3://, s3a://, gs://, az://, abfs://, abfss://"),
        ("file://other-host/logs", "a file of another machine"),
        ("s3://", "no bucket or container after s3://"),
    ],
)
def test_a_uri_that_leads_to_no_store_is_refused_with_what_to_do(uri: str, said: str) -> None:
    with pytest.raises(StorageError, match=said):
        files_of(uri)


def test_paths_are_asked_of_the_files_they_belong_to() -> None:
    assert isinstance(files_of("/tmp"), LocalFiles)  # noqa: S108
    assert store_of(b"s3a://bucket/a/b") == b"s3a://bucket"
    assert store_of(b"/s3://bucket") is None
    # What stands above a bucket.
    assert store_of(b"s3:/.kafka_cleanshutdown") is None
    files = AnyFiles()
    assert files.of(b"s3://bucket/a") is files.of(b"s3://bucket/b")
    assert files.of(b"s3://bucket/a") is not files.of(b"s3://bucket2/a")


def test_the_path_above_several_is_of_their_store() -> None:
    assert common_path([b"/a/b", b"/a/c"]) == b"/a"
    assert common_path([b"s3://bucket/a/b", b"s3://bucket/a/bc"]) == b"s3://bucket/a"
    assert common_path([b"s3://bucket/a", b"s3://bucket/b"]) == b"s3://bucket"
    assert common_path([b"s3://bucket", b"s3://bucket/b"]) == b"s3://bucket"
    assert common_path([b"s3://one/a", b"s3://two/a"]) == b""
    assert common_path([b"s3://one/a", b"/a"]) == b""


def test_files_cross_processes_as_their_settings() -> None:
    files = AnyFiles({"endpoint": "http://127.0.0.1:9"})
    files.of(b"s3://bucket/a")
    sent = pickle.dumps(files)
    assert len(sent) < 200
    again = pickle.loads(sent)  # noqa: S301
    assert again.of(b"s3://bucket/a") == files.of(b"s3://bucket/a")
    assert again.of(b"s3://bucket/a") != ANYWHERE.of(b"s3://bucket/a")


def test_what_is_no_regular_file_says_so_and_blocks_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "inside").mkdir()
    (tmp_path / "file").write_bytes(b"12345")
    there = bytes(tmp_path)
    entries = {entry.name: entry for entry in ANYWHERE.list(there)}
    assert list(entries) == [b"file", b"gone", b"inside", b"pipe"]
    assert entries[b"pipe"].fault == "a FIFO, not a file"
    assert entries[b"gone"].fault == "broken link to nowhere"
    assert entries[b"inside"].is_directory
    assert entries[b"file"] == ANYWHERE.stat(there + b"/file")
    assert ANYWHERE.read(there + b"/pipe", 10) == b""
    assert ANYWHERE.read(there + b"/file", 3) == b"12345"
    with pytest.raises(FileNotFoundError, match="broken link to nowhere"):
        ANYWHERE.stat(there + b"/gone")


def test_the_system_is_asked_for_each_file_but_not_for_each_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "file").write_bytes(b"123")
    (tmp_path / "link").symlink_to("orders-0")
    asked: list[str] = []
    stat = os.stat

    def noted(path: bytes) -> os.stat_result:
        asked.append(Path(os.fsdecode(path)).name)
        return stat(path)

    monkeypatch.setattr(os, "stat", noted)
    entries = LocalFiles().list(bytes(tmp_path))
    assert sorted(asked) == ["file", "link"]
    assert [(entry.is_directory, entry.size) for entry in entries] == [(0, 3), (1, 0), (1, 0)]
    # Where names may not be looked up, as with read permission alone, each tells so.
    monkeypatch.setattr(os, "access", lambda *_: False)
    LocalFiles().list(bytes(tmp_path))
    assert "orders-0" in asked


def test_a_side_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"x" * 10_000)
    assert len(ANYWHERE.read(bytes(path), 9_000)) > 9_000
    assert len(ANYWHERE.read(bytes(path), 10_000)) == 10_000
