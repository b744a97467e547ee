"""Fixtures for pytest: `kafka_broker` for a session, and `kafka` for a test.

    def test_orders_are_kept(kafka):
        topic = kafka.topic("orders", partitions=3)
        producer = confluent_kafka.Producer(kafka.client_config())
        ...
        assert len(kafka.records(topic)) == 1

pytest finds them by itself where Ottla is installed. Each worker of pytest-xdist has a broker of
its own. When a test fails that used one of them, the last requests that the broker got since the
test began are printed with it.

This stands outside of the package, so that a session that uses none of it loads none of Ottla.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ottla.testing import Broker
    from ottla.testing.scope import Scope

__all__ = ["kafka", "kafka_broker", "kafka_options"]

JOURNAL_TAIL = 20
"""Requests that are printed with a failed test."""

BROKER = pytest.StashKey["Broker"]()
BEGUN = pytest.StashKey[tuple[int, int]]()
"""How many requests there had been when a test began, and the broker's time."""


@pytest.fixture(scope="session")
def kafka_options() -> dict[str, Any]:
    """What the session's broker is made with; a project that wants more has one of its own.

    @pytest.fixture(scope="session")
    def kafka_options():
        return {"config": {"auto.create.topics.enable": False}, "process": True}
    """
    return {}


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest, kafka_options: dict[str, Any]) -> Iterator[Broker]:
    """A broker for all tests of a session: `ottla.testing.Broker`."""
    from ottla.testing import Broker

    with Broker(**kafka_options) as broker:
        request.node.stash[BROKER] = broker
        yield broker
        del request.node.stash[BROKER]


@pytest.fixture
def kafka(kafka_broker: Broker) -> Iterator[Scope]:
    """The session's broker with names that are this test's own, and cleaned up behind it."""
    from ottla.testing.scope import Scope

    with Scope(kafka_broker) as scope:
        yield scope


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remembers what the broker had got before a test."""
    broker = item.session.stash.get(BROKER, None)
    if broker is not None and "kafka_broker" in getattr(item, "fixturenames", ()):
        item.stash[BEGUN] = (broker.request_count, broker.clock.now_ms)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Prints what the broker has got with a test that has failed."""
    report = yield
    broker = item.session.stash.get(BROKER, None)
    is_asked = "kafka_broker" in getattr(item, "funcargs", {})
    if report.when != "teardown" and report.failed and broker is not None and is_asked:
        from ottla.testing.request_lines import request_lines

        # The first test has the broker made, and so has all that it has got.
        before, began_ms = item.stash.get(BEGUN, (0, None))
        requests = broker.last_requests(broker.request_count - before)
        lines = request_lines(requests, began_ms, JOURNAL_TAIL)
        report.sections.append(("requests to the Kafka broker", "\n".join(lines)))
    return report
