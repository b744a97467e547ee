"""Which releases of Kafka a log directory may be of."""

import os
from pathlib import Path

import pytest
from ottla.logs.release_bounds import releases_of
from ottla.logs.releases import Releases

from benches.data import encode_batch

TIMESTAMP = 1_700_000_000_000


def metadata_version(level: int) -> bytes:
    """Encode a `FeatureLevelRecord`: name and level, after frame, type and version."""
    name = b"metadata.version"
    return b"\x01\x0c\x00" + bytes([len(name) + 1]) + name + level.to_bytes(2, "big") + b"\x00"


def releases(directory: Path) -> Releases:
    return releases_of(os.fsencode(directory))


def test_the_demo_was_formatted_for_4_1(demo: Path) -> None:
    assert releases(demo) == Releases(since=(4, 1))


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("version=0\nbroker.id=1\n", Releases(before=(4, 0))),
        ("version=1\nnode.id=1\n", Releases(since=(2, 8))),
        ("version=1\nnode.id=1\ndirectory.id=slHfeHSMUwKvjMOj7_XxHQ\n", Releases(since=(3, 7))),
        ("no properties", Releases()),
    ],
)
def test_meta_properties_bound_the_release(
    tmp_path: Path, properties: str, expected: Releases
) -> None:
    (tmp_path / "meta.properties").write_text(properties)
    assert releases(tmp_path) == expected


@pytest.mark.parametrize(("level", "since"), [(7, (3, 3)), (21, (3, 9)), (26, (4, 1))])
def test_the_level_of_metadata_version_is_a_lower_bound(
    tmp_path: Path, level: int, since: tuple[int, int]
) -> None:
    record = (TIMESTAMP, None, metadata_version(level), ())
    (tmp_path / "bootstrap.checkpoint").write_bytes(encode_batch([record]))
    found = releases(tmp_path)
    assert found.since == since
    assert found.has(since) is True
    assert found.has((4, 9)) is None


@pytest.mark.parametrize(
    ("known", "release", "has"),
    [
        (Releases(since=(4, 1)), (4, 1), True),
        (Releases(since=(4, 1)), (4, 2), None),
        (Releases(before=(4, 0)), (3, 9), None),
        (Releases(before=(4, 0)), (4, 0), False),
    ],
)
def test_a_release_is_known_from_its_first_and_to_its_last(
    known: Releases, release: tuple[int, int], *, has: bool | None
) -> None:
    assert known.has(release) is has


@pytest.mark.parametrize("content", [b"", b"no batch", bytes(4096)])
def test_a_bootstrap_checkpoint_that_is_none_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bootstrap.checkpoint").write_bytes(content)
    assert releases(tmp_path) == Releases()
