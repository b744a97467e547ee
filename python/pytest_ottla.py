"""Fixtures for pytest: `kafka_broker` for a session, and `kafka` for a test.

    def test_orders_are_kept(kafka):
        topic = kafka.topic("orders", partitions=3)
        producer = confluent_kafka.Producer(kafka.client_config())
        ...
        assert len(kafka.records(topic)) == 1

pytest finds them by itself where Ottla is installed. Each worker of pytest-xdist has a broker of
its own. When a test fails that used one of them, the last requests that the broker got during the
test are printed with it.

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


@pytest.fixture(scope="session")
def kafka_options() -> dict[str, Any]:
    """What the session's broker is made with; a project that wants more has one of its own.

    @pytest.fixture(scope="session")
    def kafka_options():
        return {"config": {"auto.create.topics.enable": False}, "process": True}
    """
    return {}


@pytest.fixture(scope="session")
def kafka_broker(kafka_options: dict[str, Any]) -> Iterator[Broker]:
    """A broker for all tests of a session: `ottla.testing.Broker`."""
    from ottla.testing import Broker

    with Broker(**kafka_options) as broker:
        yield broker


@pytest.fixture
def kafka(kafka_broker: Broker) -> Iterator[Scope]:
    """The session's broker with names that are this test's own, and cleaned up behind it."""
    from ottla.testing.scope import Scope

    with Scope(kafka_broker) as scope:
        yield scope


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Prints what the broker has got with a test that has failed."""
    report = yield
    fixtures = getattr(item, "funcargs", {})
    asked: Any = fixtures.get("kafka") or fixtures.get("kafka_broker")
    if report.when == "call" and report.failed and asked is not None:
        requests = asked.requests
        lines = [
            f"{entry.time_ms} {entry.client_id or '-'} {entry.api} {entry.version} "
            f"errors {list(entry.errors)}"
            for entry in requests[-JOURNAL_TAIL:]
        ]
        if len(requests) > JOURNAL_TAIL:
            lines.insert(0, f"({len(requests) - JOURNAL_TAIL:,} requests before)")
        report.sections.append(("requests to the Kafka broker", "\n".join(lines)))
    return report
