"""Sessions of Spark, one kind at a time; see `support.clusters`."""

from collections.abc import Iterator
from typing import Any

import ottla.spark
import pytest
from ottla.spark.work.kind import SOURCE_VERSION, require_pyspark, spark_version
from support.clusters import Sessions, what_is_missing

KINDS = ("spark", "cluster", "connect")


def kind_of(item: pytest.Item) -> int:
    """Return the place of a test in the run, so that each kind of session is started once.

    The first one is of this process: its JVM looks for data sources once, and has to find Ottla.
    """
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    names = {*getattr(item, "fixturenames", ()), *(p for p in parameters if isinstance(p, str))}
    asked = {name.removeprefix("new_") for name in names}
    kind = max((at for at, kind in enumerate(KINDS) if kind in asked), default=-1)
    if kind < 0 and "sessions" in asked:
        raise pytest.UsageError(f"{item.nodeid} asks for sessions, but by no name for which kind")
    return kind


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by kind of session, and leave out what needs Java where there is none."""
    items.sort(key=kind_of)
    selected = [item for item in items if item.get_closest_marker("spark")]
    missing = what_is_missing() if selected else ""
    if missing:
        for item in selected:
            item.add_marker(pytest.mark.skip(reason=missing))
    elif selected and spark_version(require_pyspark().__version__) < SOURCE_VERSION:
        for item in selected:
            if item.path.parent.name == "source" and item.path.name != "test_read.py":
                item.add_marker(pytest.mark.skip(reason="needs PySpark 4.0: has no data sources"))


@pytest.fixture(scope="session")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    """Return what starts sessions, for tests that need a fresh one."""
    sessions = Sessions(tmp_path_factory.mktemp("sessions"))
    yield sessions
    sessions.close()


@pytest.fixture
def spark(sessions: Sessions) -> Any:
    """Return a session in this process with two cores; its workers have Ottla."""
    return sessions.get("spark")


@pytest.fixture
def new_spark(sessions: Sessions) -> Any:
    """Return a session in this process whose workers have done no other work."""
    return sessions.get("spark", fresh=True)


@pytest.fixture
def cluster(sessions: Sessions) -> Any:
    """Return a session on a cluster of two workers whose Python has no Ottla: ship it."""
    return sessions.get("cluster")


@pytest.fixture
def connect(sessions: Sessions) -> Any:
    """Return a session of Spark Connect whose workers' Python has no Ottla: ship it."""
    return sessions.get("connect")


@pytest.fixture
def new_cluster(sessions: Sessions) -> Any:
    """Return a session on the cluster to which nothing was shipped."""
    return sessions.get("cluster", fresh=True)


@pytest.fixture
def new_connect(sessions: Sessions) -> Any:
    """Return a session of Spark Connect to which nothing was shipped."""
    return sessions.get("connect", fresh=True)


@pytest.fixture(params=KINDS)
def everywhere(sessions: Sessions, request: pytest.FixtureRequest) -> Any:
    """Return each kind of session in turn, with Ottla on its workers."""
    kind: str = request.param
    session = sessions.get(kind)
    if kind != "spark":
        ottla.spark.ship(session)
    return session
