"""Fixtures for pytest: `kafka_broker` for a session, and `kafka` for a test.

    def test_orders_are_kept(kafka):
        topic = kafka.topic("orders", partitions=3)
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers})
        ...
        assert len(kafka.records(topic)) == 1

Each worker of pytest-xdist has a broker of its own. When a test fails that used one of them, the
last requests that the broker got are printed with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ottla.testing.broker import Broker
    from ottla.testing.scope import Scope

__all__ = ["kafka", "kafka_broker"]

JOURNAL_TAIL = 20
"""Requests that are printed with a failed test."""


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[Broker]:
    """A broker for all tests of a session."""
    # Who does not ask for it does not pay for it.
    from ottla.testing.broker import Broker  # noqa: PLC0415

    with Broker() as broker:
        yield broker


@pytest.fixture
def kafka(kafka_broker: Broker) -> Iterator[Scope]:
    """The session's broker with names that are this test's own, and cleaned up behind it."""
    from ottla.testing.scope import Scope  # noqa: PLC0415

    with Scope(kafka_broker) as scope:
        yield scope


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Prints what the broker has got with a test that has failed."""
    report = yield
    broker = getattr(item, "funcargs", {}).get("kafka_broker")
    if report.when == "call" and report.failed and broker is not None:
        lines = [
            f"{entry.time_ms} {entry.client_id or '-'} {entry.api} {entry.version} "
            f"errors {list(entry.errors)}"
            for entry in broker.requests[-JOURNAL_TAIL:]
        ]
        report.sections.append(("requests to the Kafka broker", "\n".join(lines)))
    return report
