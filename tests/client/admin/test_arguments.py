"""What makes no sense is refused before anything is asked, and says what does."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ottla.client import (
    Admin,
    ConfigResource,
    IllegalArgumentError,
    NewTopic,
    ResourceType,
)


@pytest.fixture(scope="module")
def admin() -> Iterator[Any]:
    """One without a broker, which none of these calls needs."""
    with Admin(bootstrap_servers="127.0.0.1:1") as one:
        yield one


TEXT: Any = "3"
TOPIC = ConfigResource(ResourceType.TOPIC, "orders")
CALLS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda admin: admin.create_topics("orders"), "topics is 'orders'; expected a list"),
    (lambda admin: admin.create_topics(NewTopic("orders")), "expected a list"),
    (lambda admin: admin.create_topics([5]), "topics has 5; expected a NewTopic"),
    (
        lambda admin: admin.create_topics([NewTopic("t", TEXT)]),
        "partition_count of t is '3'",
    ),
    (lambda admin: admin.delete_topics("orders"), "names is 'orders'; expected a list of names"),
    (lambda admin: admin.delete_topics([None]), "names has None; expected a str"),
    (lambda admin: admin.create_partitions(["orders"]), "expected such as"),
    (lambda admin: admin.describe_groups(5), "group_ids is 5; expected a list of str"),
    (lambda admin: admin.fence_producers("t"), "transactional_ids is 't'"),
    (lambda admin: admin.describe_configs(["orders"]), "expected a ConfigResource"),
    (lambda admin: admin.alter_configs({TOPIC: {"retention.ms": 5}}), "is to be 5; expected a str"),
    (
        lambda admin: admin.describe_producers(("orders", 0)),
        r'expected such as \[\("orders", 0\)\]',
    ),
    (lambda admin: admin.describe_producers(["orders"]), "'orders' is no partition"),
    (lambda admin: admin.list_offsets([("orders", 0)]), "expected a dict such as"),
    (lambda admin: admin.list_offsets({("orders", 0): "earliest"}), "'earliest'; expected an int"),
    (lambda admin: admin.delete_records({("orders", "0"): 5}), "is no partition"),
    (lambda admin: admin.alter_group_offsets("g", {("orders", 0): "5"}), "expected an int"),
    (lambda admin: admin.list_topics(timeout_ms=-1), "timeout_ms is -1; expected an int of 0"),
    (lambda admin: admin.list_topics(timeout_ms="5"), "timeout_ms is '5'"),
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_an_argument_that_makes_no_sense_is_refused(
    admin: Any, call: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(IllegalArgumentError, match=message):
        call(admin)
