"""Fixtures that several test folders share."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Behind `nohup` or `&` a process ignores Ctrl-C, and so would all that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("OTTLA_SHARED", ROOT.parent / "shared"))

# A slow moment of a shared machine is no fault of the code; in CI the same inputs every time.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", _PATIENT)
settings.register_profile("ci", _PATIENT, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what needs the corpora where they are absent; in CI that is a failure."""
    if item.get_closest_marker("shared") is None or SHARED.is_dir():
        return
    reason = f"needs the corpora in {SHARED} (OTTLA_SHARED names another)"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def demo() -> Path:
    """Return the log directory of the demo, which a real broker wrote; tests only read it."""
    return ROOT / "examples" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the directory of corpora, vectors and acceptance programs; mark the test `shared`."""
    return SHARED
