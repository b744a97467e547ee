"""What a test can wait for, and how it is told what there is instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ottla.broker.inspection import Group, Transaction

__all__ = [
    "Wanted",
    "listed",
    "nearest",
    "shown",
    "wanted_group",
    "wanted_records",
    "wanted_transaction",
]

MAX_LISTED = 10
"""Names in a message: a reader wants to see a slip, not an inventory."""

GROUP_STATES = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "Dead",
)
"""Kafka's names, of classic groups and of consumer groups."""


class Wanted(NamedTuple):
    """Something to wait for.

    Attributes:
        text: what it is, as in "group orders was to be Stable".
        look: returns what is found instead; nothing once it is there.
    """

    text: str
    look: Callable[[], str]

    def lateness(self, found: str, timeout_s: float) -> str:
        """Returns the message of an error, for what was found in the end."""
        return f"{self.text} within {timeout_s:g} s: {found}"


def wanted_group(
    groups: Callable[[], Mapping[str, Group]],
    group_id: str,
    state: str | None,
    members: int | None,
) -> Wanted:
    """Returns a group, of a state and with so many members as far as these are given.

    Raises:
        ValueError: no group has such a state.
    """
    _check_state(state, "group", GROUP_STATES)

    def look() -> str:
        known = groups()
        group = known.get(group_id)
        if group is None:
            # Nobody in it is what Kafka calls such a group.
            if state in {"Dead", "Empty"} and not members:
                return ""
            return f"there is no group {shown(group_id)}; {listed('groups', known)}"
        is_it = state in {None, group.state} and members in {None, len(group.members)}
        return "" if is_it else f"it is {group.state} with {_counted(len(group.members), 'member')}"

    told = f" {state}" if state is not None else " there"
    if members is not None:
        told += f" with {_counted(members, 'member')}"
    return Wanted(f"group {shown(group_id)} was to be{told}", look)


def wanted_transaction(
    transactions: Callable[[], Mapping[str, Transaction]], transactional_id: str, state: str | None
) -> Wanted:
    """Returns a transactional id, in a state if one is given.

    Raises:
        ValueError: no transaction has such a state.
    """
    from ottla.broker.transactions.metadata import STATE_NAMES

    _check_state(state, "transaction", STATE_NAMES)

    def look() -> str:
        known = transactions()
        found = known.get(transactional_id)
        if found is None:
            there = listed("transactional ids", known)
            return f"there is no transactional id {shown(transactional_id)}; {there}"
        return "" if state in {None, found.state} else f"it is {found.state}"

    told = "there" if state is None else state
    return Wanted(f"transactional id {shown(transactional_id)} was to be {told}", look)


def wanted_records(
    counts: Callable[[], Mapping[int, int] | None],
    topic: str,
    partition: int | None,
    records: int,
) -> Wanted:
    """Returns a topic with so many records or more, in one partition or in all of them."""

    def look() -> str:
        known = counts()
        if known is None:
            return f"there is no topic {topic}"
        if partition is None:
            found = sum(known.values())
        elif partition in known:
            found = known[partition]
        else:
            return f"it has no partition {partition}, but {_counted(len(known), 'partition')}"
        return "" if found >= records else f"it has {_counted(found, 'record')}"

    place = f"topic {topic}" if partition is None else f"partition {partition} of topic {topic}"
    return Wanted(f"{place} was to have {_counted(records, 'record')}", look)


def _check_state(state: str | None, what: str, known: Sequence[str]) -> None:
    if state is not None and state not in known:
        near = nearest(state, known)
        raise ValueError(
            f"{state!r} is no state of a {what}{near or ';'} there are {', '.join(known)}"
        )


def nearest(given: str, names: Sequence[str]) -> str:
    """Returns what is said of the name that may have been meant, if there is one."""
    from difflib import get_close_matches

    near = get_close_matches(given, names, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def listed(what: str, names: Iterable[str]) -> str:
    """Returns names for a message, the first of them."""
    known = [shown(name) for name in sorted(names)]
    if not known:
        return f"there are no {what}"
    more = f" and {len(known) - MAX_LISTED:,} more" if len(known) > MAX_LISTED else ""
    return f"{what} are {', '.join(known[:MAX_LISTED])}{more}"


def shown(name: str) -> str:
    """Returns a name as a message has it: those of groups and transactions may be any text."""
    from ottla.text import visible

    return visible(name)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
