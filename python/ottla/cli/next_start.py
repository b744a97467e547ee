"""What to do before the next start of a broker, as the report says it.

Each deed stands with its price, the best first. Where even that one costs readable records, how to
save them comes before it; where other copies have them, that is all that is offered.
"""

from __future__ import annotations

import os
import shlex
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ottla.audit.advice.words import what_to_do
from ottla.cli.words import shell_path
from ottla.words import count, listed, offsets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ottla.audit import AuditResult
    from ottla.audit.advice.deed import Deed, PartitionPrice

DEEDS_SHOWN = 4
PARTITIONS_SHOWN = 3


def advice_lines(result: AuditResult) -> Iterator[str]:
    """What to do, a paragraph each; commands begin with ``$``."""
    for log_directory, group in groupby(result.advice, key=lambda deed: deed.log_directory):
        deeds = list(group)
        nothing = next(deed for deed in deeds if not deed.operations)
        troubled = [price for price in nothing.partitions if _is_troubled(price)]
        if troubled:
            yield from _of_log_directory(result, log_directory, deeds, troubled)
        yield from _if_recovery_point_is_lost(nothing)


def put_aside_note(result: AuditResult) -> Iterator[str]:
    """That a newer broker than the one that wrote a log directory does not take it over."""
    aside = [
        _name(price)
        for deed in result.advice
        if not deed.operations
        for price in deed.partitions
        if price.is_put_aside and not price.as_expected.is_put_aside
    ]
    if aside:
        yield (
            "Brokers since 4.0 do not take over a partition without partition.metadata, but rename"
            f" its directory to -stray: here {listed(aside, PARTITIONS_SHOWN)}. Brokers before 2.8"
            " wrote no such file."
        )


def _of_log_directory(
    result: AuditResult,
    log_directory: str,
    deeds: Sequence[Deed],
    troubled: Sequence[PartitionPrice],
) -> Iterator[str]:
    path = shell_path(log_directory)
    if len({deed.log_directory for deed in result.advice}) > 1:
        yield f"In {path}:"
    holders = {_name(p): found for p in troubled if (found := _holders(result, log_directory, p))}
    for name, found in holders.items():
        yield (
            f"Another copy of {name} has what this one lacks: {found}. With this broker stopped,"
            f" move {name} out of the log directory; after its start the broker fetches it from"
            " there."
        )
    if len(holders) == len({_name(price) for price in troubled}):
        # Nothing that deletes stands beside the cure.
        return
    best = deeds[0]
    losing = [
        price
        for price in best.partitions
        if price.as_expected.gone and not price.as_expected.is_put_aside
    ]
    if losing:
        yield "Save the readable records first, because whatever is done costs some of them:"
        if len(losing) > PARTITIONS_SHOWN:
            yield f"$ cp -a {shlex.quote(path)} COPY"
        for price in losing if len(losing) <= PARTITIONS_SHOWN else ():
            directory = shlex.quote(os.path.join(path, _name(price)))
            target = shlex.quote(f"{_name(price)}.jsonl")
            yield f"$ ottla read {directory} --format jsonl > {target}"
    if len(deeds) == 1:
        yield f"Nothing better was found than to do nothing: {price_of(best)}."
    else:
        yield "What was tried, the best first; the broker must be stopped:"
        for number, deed in enumerate(deeds[:DEEDS_SHOWN], 1):
            yield f"{number}. {what_to_do(deed.operations)}: {price_of(deed, deeds)}."
    if best.partitions_not_priced:
        yield (
            "Other partitions of this log directory were not looked at: audit all of it before"
            " anything that concerns them."
        )


def price_of(deed: Deed, others: Sequence[Deed] = ()) -> str:
    """What a deed costs, as far as producers are concerned beside other deeds."""
    prices = deed.partitions
    moved = {operation.path for operation in deed.operations if operation.operation == "move"}
    parts = []
    refusing = [_name(price) for price in prices if price.as_expected.opens is False]
    if refusing:
        verb = "keeps" if len(refusing) == 1 else "keep"
        parts.append(f"{listed(refusing, PARTITIONS_SHOWN)} {verb} the broker from starting")
    aside = [price for price in prices if price.as_expected.is_put_aside]
    away = [price for price in prices if _name(price) in moved]
    if away:
        records = count(sum(price.readable_offsets for price in away), "readable record")
        whose, places = ("it", "directory") if len(away) == 1 else ("them", "directories")
        parts.append(
            f"the broker starts without {whose}; {records} are then only in the moved {places}"
        )
    cut = [
        price
        for price in prices
        if price.as_expected.opens and price.as_expected.gone and price not in aside
    ]
    if cut:
        parts.append(_cut(cut, is_alone=len(prices) == 1))
    elif not (refusing or away or aside):
        parts.append("no readable record is lost")
    exposed = sum(price.as_expected.exposed_transactions for price in prices)
    if exposed:
        parts.append(
            f"read_committed consumers receive aborted records of {count(exposed, 'transaction')}"
        )
    if forgotten := _forgotten(prices, others):
        parts.append(
            f"forgets {count(forgotten, 'producer')}: the broker no longer recognizes their"
            " duplicates, nor knows their open transactions"
        )
    return "; ".join(parts) or f"{listed([_name(p) for p in aside], PARTITIONS_SHOWN)} put aside"


def _forgotten(prices: Sequence[PartitionPrice], others: Sequence[Deed]) -> int:
    """Producers that some other deed keeps, in partitions that open."""
    most: dict[str, int] = {}
    for deed in others:
        for price in deed.partitions:
            most[_name(price)] = max(most.get(_name(price), 0), price.producers or 0)
    return sum(
        most.get(_name(price), 0) - (price.producers or 0)
        for price in prices
        if price.as_expected.opens and not price.as_expected.gone and price.producers is not None
    )


def _cut(prices: Sequence[PartitionPrice], *, is_alone: bool) -> str:
    """The records that are lost, by partition while these are few."""
    first, *others = prices
    if len(prices) > PARTITIONS_SHOWN:
        lost = sum(price.as_expected.gone for price in prices)
        readable = sum(price.readable_offsets for price in prices)
        return (
            f"cuts off {count(lost, 'readable record')} of {readable:,} in {len(prices):,}"
            " partitions"
        )
    start, end = first.log_start_offset or 0, first.as_expected.log_end_offset or 0
    keeps = f"keeps {offsets(start, end - 1)}" if end > start else "keeps nothing"
    place = "this partition" if is_alone else _name(first)
    cut = count(first.as_expected.gone, "readable record")
    text = f"{keeps}; cuts off {cut} of {first.readable_offsets:,} in {place}"
    return ", ".join([text, *(f"{p.as_expected.gone:,} in {_name(p)}" for p in others)])


def _if_recovery_point_is_lost(nothing: Deed) -> Iterator[str]:
    worse = [
        price
        for price in nothing.partitions
        if not price.is_put_aside and price.at_worst.cost[:2] > price.as_expected.cost[:2]
    ]
    for price in worse[:PARTITIONS_SHOWN]:
        does = (
            "does not open"
            if price.opens is False
            else f"loses {count(price.at_worst.gone, 'readable record')}"
        )
        yield (
            f"Keep recovery-point-offset-checkpoint: without it {_name(price)} {does} at the next"
            " start."
        )


def _is_troubled(price: PartitionPrice) -> bool:
    return not price.as_expected.is_put_aside and any(price.as_expected.cost)


def _holders(result: AuditResult, log_directory: str, price: PartitionPrice) -> str | None:
    """The copies that have what a partition's copy in a log directory lacks, and which offsets."""
    said: dict[str, None] = {}
    for row in result.differences:
        if (row["topic"], row["partition"]) != (price.topic, price.partition):
            continue
        if _replica_in(result, log_directory, row) in row["bad_replicas"] and row["good_replicas"]:
            span = offsets(row["first_offset"], row["last_offset"])
            said[f"{listed(row['good_replicas'], PARTITIONS_SHOWN)} ({span})"] = None
    return listed(list(said), PARTITIONS_SHOWN) if said else None


def _replica_in(result: AuditResult, log_directory: str, row: Mapping[str, Any]) -> str | None:
    """The copy of a difference that lies in a log directory."""
    for name, file in zip(row["replicas"], row["files"], strict=True):
        inside = os.path.join(log_directory, "")
        if file is not None and os.path.join(result.directory, file).startswith(inside):
            return str(name)
    return None


def _name(price: PartitionPrice) -> str:
    return f"{price.topic}-{price.partition}"
