"""The messages, one module an API: its request, its response, and the structs of both.

The names are Apache's; attributes are those of its JSON in snake case. What an API is for stands at
the head of its module, what a field is for in Kafka's protocol guide. Six modules have what logs
keep or members tell each other: `consumer_offsets`, `transaction_state`, `cluster_metadata`,
`quorum_records`, `voters_record`, `consumer_protocol`.

Fields with ``private=True`` are Ottla's own, as tagged fields that other clients skip:

- ``partition_epoch`` (12321) counts the incarnations of a partition. ``max_partition_epoch``
  (12322) is the largest of the cluster, ``expected_partition_epoch`` (12323) that of the partition
  a client means; ``partition_epochs`` (12325) are those of a new topic by partition (KIP-232).
- ``private_expire_timestamp`` (12324): when a committed offset expires that says so itself.
- ``error_code`` of a record (14670): why just this one was refused (KIP-467).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.protocol.api_key import ApiKey
    from ottla.protocol.wire import Message

__all__ = ["request_of", "response_of"]


@cache
def request_of(api_key: ApiKey) -> type[Message]:
    """The request of an API, whose module is imported the first time."""
    return _message(api_key, "Request")


@cache
def response_of(api_key: ApiKey) -> type[Message]:
    """The response of an API, whose module is imported the first time."""
    return _message(api_key, "Response")


def _message(api_key: ApiKey, end: str) -> type[Message]:
    module = import_module(f"{__name__}.{api_key.name.lower()}")
    words = api_key.name.split("_")
    message: type[Message] = getattr(module, "".join(map(str.capitalize, words)) + end)
    return message
