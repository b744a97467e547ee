"""A disk that fills up is told where those look who run a broker."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.kept_broker import kept_broker
from support.wire_client import WireClient

MINUTE_MS = 60_000


def test_a_full_disk_is_said_once_and_is_in_the_health_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    free = {"bytes": 1 << 30}
    told = lambda _: SimpleNamespace(f_bavail=free["bytes"] // 4096, f_frsize=4096)  # noqa: E731
    with kept_broker(tmp_path / "data", lines=lines) as broker:
        monkeypatch.setattr(os, "statvfs", told)
        client = WireClient(broker)
        client.advance(MINUTE_MS)
        assert (lines, broker.wrong) == ([], {})
        free["bytes"] = 8192
        client.advance(5 * MINUTE_MS)
        assert broker.wrong == {"room": f"{tmp_path / 'data'} has 8,192 bytes of room left"}
        [line] = lines
        assert line.startswith(f"{broker.wrong['room']}: producers get KAFKA_STORAGE_ERROR")
        free["bytes"] = 1 << 30
        client.advance(MINUTE_MS)
        assert broker.wrong == {}
        assert lines[1:] == [f"{tmp_path / 'data'} has room again"]
