"""The examples of the client's pages run, ours and those of other clients."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ottla.client import Admin, NewTopic
from ottla.testing import Broker

PAGES = Path(__file__).resolve().parents[2] / "docs" / "client"
FENCE = "```"
BLOCK = re.compile(rf"^{FENCE}python\n(.*?)^{FENCE}$", re.MULTILINE | re.DOTALL)
CLIENTS = {"confluent-kafka": "confluent_kafka", "aiokafka": "aiokafka"}


class Example(NamedTuple):
    """A block of a page, and whose client it uses."""

    name: str
    code: str
    package: str = "ottla"


def examples() -> Iterator[Example]:
    """All blocks of the pages."""
    for page in ("README", "exactly-once", "coming-from"):
        text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
        for number, found in enumerate(BLOCK.finditer(text), 1):
            before = text[: found.start()].rstrip().rpartition("\n")[2]
            package = CLIENTS.get(before.removesuffix(":"), "ottla")
            yield Example(f"{page}-{number}-{package}", found[1], package)


EXAMPLES = list(examples())
OURS = [one for one in EXAMPLES if one.package == "ottla"]
THEIRS = [one for one in EXAMPLES if one.package != "ottla"]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 1, "invoices": 1}) as one:
        one.produce("orders", b"0 apples", key=b"alice")
        one.produce("orders", b"five apples", key=b"bob")
        with Admin(bootstrap_servers=one.bootstrap_servers) as admin:
            compacted = NewTopic("names", 1, configs={"cleanup.policy": "compact"})
            admin.create_topics([compacted]).check()
        yield one


def run(example: Example, broker: Broker) -> None:
    names: dict[str, Any] = {
        "servers": broker.bootstrap_servers,
        "is_enough": lambda: len(broker.records("invoices")) >= 2,
    }
    exec(compile(example.code, example.name, "exec"), names)  # noqa: S102 - a page of ours


@pytest.mark.parametrize("example", OURS, ids=lambda one: one.name)
def test_an_example_runs(example: Example, broker: Broker) -> None:
    run(example, broker)


@pytest.mark.parametrize("example", THEIRS, ids=lambda one: one.name)
def test_an_example_of_another_client_compiles_and_runs_where_that_is_installed(
    example: Example, broker: Broker
) -> None:
    compile(example.code, example.name, "exec")
    if find_spec(example.package) is not None:
        run(example, broker)


@pytest.mark.parametrize("number", [1, 2])
def test_exactly_once_writes_an_invoice_for_each_order(number: int, broker: Broker) -> None:
    example = [one for one in EXAMPLES if one.name.startswith("exactly-once")][number - 1]
    run(example, broker)
    invoices = [record.value for record in broker.records("invoices")]
    assert invoices == [b"invoice of 0 apples", b"invoice of five apples"]


def test_ten_things_are_shown_on_both_sides() -> None:
    text = (PAGES / "coming-from.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert [one.partition(".")[0] for one in sections] == [str(number) for number in range(1, 11)]
    assert all("\nconfluent-kafka:\n" in one and "\nOttla" in one for one in sections)


def test_exactly_once_takes_twenty_lines_and_its_imports() -> None:
    (example, _) = [one for one in EXAMPLES if one.name.startswith("exactly-once")]
    assert len(example.code.splitlines()) <= 25
