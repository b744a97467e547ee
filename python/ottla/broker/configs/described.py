"""A setting as DescribeConfigs tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ottla.broker.configs.setting import Setting

__all__ = ["Described"]


class Described(NamedTuple):
    """A setting of something.

    Attributes:
        setting: which.
        value: in force.
        source: where the value comes from, by Kafka's number.
        synonyms: name, value and source of each place where it may be set, the one in force first.
        is_read_only: whether it holds until a restart.
    """

    setting: Setting
    value: str
    source: int
    synonyms: tuple[tuple[str, str, int], ...] = ()
    is_read_only: bool = False
