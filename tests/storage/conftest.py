"""Object stores for the tests of what reads them."""

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest
from ottla.storage import ANYWHERE, objects
from support.stores import Store, missing, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[Store]:
    """Return an S3 server, the same for all tests."""
    if reason := missing():
        pytest.skip(reason)
    with s3_server() as url:
        yield Store(url)


@pytest.fixture
def store(s3: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return the server, and an environment that names it."""
    monkeypatch.setattr(ANYWHERE, "_stores", {})
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return s3


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a store in memory that stands in for every bucket."""
    if importlib.util.find_spec("obstore") is None:
        pytest.skip("no object store to test with: obstore is not installed (constraints.txt)")
    from obstore.store import MemoryStore

    held = MemoryStore()
    monkeypatch.setattr(ANYWHERE, "_stores", {})
    monkeypatch.setattr(objects, "connect", lambda _url, _options: held)
    return held
