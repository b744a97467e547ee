"""What to do before the next start of a broker, as the report says it.

Each deed stands with its price, the best first. Where even that one costs readable records, how to
save them comes before it; where other copies have them, that is all that is offered.
"""

from __future__ import annotations

import itertools
import os
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.audit.advice.words import what_to_do
from ottla.cli.copies import Copies, Cure
from ottla.cli.words import shell_path
from ottla.storage import store_of
from ottla.words import count, listed, offsets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ottla.audit import AuditResult
    from ottla.audit.advice.deed import Deed, Operation, PartitionPrice

DEEDS_SHOWN = 4
PARTITIONS_SHOWN = 3


def advice_lines(result: AuditResult) -> Iterator[str]:
    """What to do, a paragraph each; commands begin with ``$``."""
    cures = _Cures(result)
    for log_directory, group in itertools.groupby(
        result.advice, key=lambda deed: deed.log_directory
    ):
        deeds = list(group)
        nothing = next(deed for deed in deeds if not deed.operations)
        troubled = [price for price in nothing.partitions if _is_troubled(price)]
        if troubled:
            yield from _of_log_directory(result, log_directory, deeds, troubled, cures)
        yield from _if_recovery_point_is_lost(nothing)


def first_step(result: AuditResult) -> str | None:
    """What to do first if the next start costs anything; None if it does not."""
    cures = _Cures(result)
    for log_directory, group in itertools.groupby(
        result.advice, key=lambda deed: deed.log_directory
    ):
        deeds = list(group)
        nothing = next(deed for deed in deeds if not deed.operations)
        troubled = [price for price in nothing.partitions if _is_troubled(price)]
        if not troubled:
            continue
        for price in troubled:
            if cures.of(log_directory, price) is not None:
                return f"do not start the broker: another copy has what {_name(price)} lacks."
        if _losing(deeds[0]):
            return "before the broker starts, save the records that can be read."
        if deeds[0].operations:
            where = f"in {shell_path(log_directory)} " if _is_twice(deeds[0]) else ""
            return f"before the broker starts, {where}{_lower(what_to_do(deeds[0].operations))}."
        return "nothing is better than the next start itself."
    return None


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _is_twice(deed: Deed) -> bool:
    """Whether another log directory has a partition of the same name."""
    return any(price.goes_on_in is not None for price in deed.partitions)


def _losing(deed: Deed) -> list[PartitionPrice]:
    """The partitions that lose readable records by a deed."""
    return [
        price
        for price in deed.partitions
        if price.as_expected.gone and not price.as_expected.is_put_aside
    ]


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
        places = listed([*dict.fromkeys(aside)], PARTITIONS_SHOWN)
        if any(deed.partitions_not_priced for deed in result.advice):
            places += " at least"
        yield (
            "Brokers since 4.0 do not take over a partition without partition.metadata, but rename"
            f" its directory to -stray: here {places}. Brokers before 2.8 wrote no such file."
        )


def _of_log_directory(
    result: AuditResult,
    log_directory: str,
    deeds: Sequence[Deed],
    troubled: Sequence[PartitionPrice],
    cures: _Cures,
) -> Iterator[str]:
    path = shell_path(log_directory)
    if len({deed.log_directory for deed in result.advice}) > 1 or _is_twice(deeds[0]):
        yield f"In {path}:"
    found = {_name(price): cures.of(log_directory, price) for price in troubled}
    helped = {name: cure for name, cure in found.items() if cure is not None}
    for name, cure in [*helped.items()][:PARTITIONS_SHOWN]:
        yield f"{name}: {cure.lines[0]}"
        yield from cure.lines[1:]
    if len(helped) > PARTITIONS_SHOWN:
        yield f"The same goes for {count(len(helped) - PARTITIONS_SHOWN, 'more partition')}."
    held = {name for name, cure in helped.items() if cure.is_whole}
    if held == found.keys():
        # Nothing that deletes stands beside the cure.
        return
    deeds = _without(deeds, held)
    best = deeds[0]
    yield from _save(path, best, cures.stems)
    if len(deeds) == 1:
        yield f"Nothing better was found than to do nothing: {price_of(best, deeds)}."
    else:
        yield "What was tried, the best first; the broker must be stopped:"
        for number, deed in enumerate(deeds[:DEEDS_SHOWN], 1):
            yield f"{number}. {what_to_do(deed.operations)}: {price_of(deed, deeds)}."
    if best.partitions_not_priced:
        others = count(best.partitions_not_priced, "other partition")
        yield (
            f"What the start does to at least {others} of this log directory was not tried: audit"
            " them, too, before you start the broker."
        )


def _save(path: str, best: Deed, stems: set[str]) -> Iterator[str]:
    """How to save records before even the best deed costs some."""
    losing = [_name(price) for price in _losing(best)]
    if not losing:
        return
    is_local = store_of(os.fsencode(path)) is None
    yield (
        "First save the readable records: every deed costs some"
        + (" (COPY is elsewhere):" if is_local else ":")
    )
    if len(losing) > PARTITIONS_SHOWN:
        stem = _unused(os.path.basename(path) or "log", stems)
        yield (
            f"$ cp -a {shlex.quote(path)} {shlex.quote(f'COPY/{stem}')}"
            if is_local
            else (f"{listed(losing, PARTITIONS_SHOWN)}.")
        )
        return
    for name in losing:
        directory, stem = shlex.quote(os.path.join(path, name)), _unused(name, stems)
        if is_local:
            yield f"$ cp -a {directory} {shlex.quote(f'COPY/{stem}')}"
        yield f"$ ottla read {directory} --format jsonl > {shlex.quote(f'{stem}.jsonl')}"


def _unused(name: str, stems: set[str]) -> str:
    """A name for what is saved: nothing is to be saved over something else."""
    numbers = (f"{name}-{number}" for number in itertools.count(2))
    stem = next(stem for stem in itertools.chain([name], numbers) if stem not in stems)
    stems.add(stem)
    return stem


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
    away = [price for price in prices if _name(price) in moved and price.goes_on_in is None]
    if away:
        held = sum(price.readable_offsets for price in away)
        records = count(held, "readable record") if held else "no readable record"
        is_are = "is" if held <= 1 else "are"
        whose, places = ("it", "directory") if len(away) == 1 else ("them", "directories")
        parts.append(
            f"the broker starts without {whose}, and fetches {whose} from another replica or, if"
            f" there is none, begins {whose} empty; {records} {is_are} then only in the moved"
            f" {places}"
        )
    parts += [_goes_on(price) for price in prices if price.goes_on_in is not None]
    cut = [
        price
        for price in prices
        if price.as_expected.opens and price.as_expected.gone and price not in aside
    ]
    if cut:
        parts.append(_cut(cut, is_alone=len(prices) == 1))
    elif not parts and not aside:
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


def _goes_on(price: PartitionPrice) -> str:
    """What becomes of a partition that the broker has twice, once one directory is moved."""
    lost = price.readable_offsets_lost
    only = f"at most {count(lost, 'readable record')}" if lost else "no readable record"
    return (
        f"the broker starts with {price.goes_on_in}, whose log ends at offset {price.goes_on_at};"
        f" {only} {'is' if lost <= 1 else 'are'} then only in the moved directory"
    )


def _forgotten(prices: Sequence[PartitionPrice], others: Sequence[Deed]) -> int:
    """Producers that some other deed keeps, in partitions that open."""
    most: dict[str, int] = {}
    for deed in others:
        for price in deed.partitions:
            most[_name(price)] = max(most.get(_name(price), 0), price.producers or 0)
    return sum(
        max(most.get(_name(price), 0) - price.producers, 0)
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


class _Cures:
    """How to take partitions from other copies."""

    def __init__(self, result: AuditResult) -> None:
        self._base = os.path.join(result.directory, "")
        self._copies = Copies(result)
        self.stems: set[str] = set()
        """Names that something is saved under."""
        self._kept: dict[tuple[str | None, int | None], dict[str, PartitionPrice]] = {}
        """What the best deed of each log directory makes of a partition."""
        for log_directory, deeds in itertools.groupby(
            result.advice, key=lambda deed: deed.log_directory
        ):
            for price in next(deeds).partitions:
                place = price.topic, price.partition
                self._kept.setdefault(place, {})[log_directory] = price

    def of(self, log_directory: str, price: PartitionPrice) -> Cure | None:
        """That of a partition in a log directory."""
        directory = os.path.join(log_directory, _name(price)).removeprefix(self._base)
        cure = self._copies.cure(directory, price.topic, price.partition)
        if cure is not None or not self._copies.are_compared(price.topic, price.partition):
            return cure
        keeper = self._keeper(price)
        if keeper in (None, log_directory):
            return None
        text = (
            "every copy at hand loses readable records of it at its next start, and that in"
            f" {keeper} keeps the most. Do there what stands there; here, with the broker stopped,"
            f" move {directory} out of the log directory, and start it when that copy leads the"
            " partition."
        )
        return Cure(is_whole=True, lines=[text])

    def _keeper(self, price: PartitionPrice) -> str | None:
        """The log directory that keeps most of a partition, if each of several loses some."""
        prices = self._kept.get((price.topic, price.partition), {})
        kept = {
            path: price.readable_offsets - price.as_expected.gone
            for path, price in prices.items()
            if price.as_expected.gone
        }
        is_everywhere = len(kept) == len(prices) > 1
        return max(kept, key=lambda path: kept[path]) if is_everywhere else None


def _without(deeds: Sequence[Deed], held: Collection[str]) -> list[Deed]:
    """Deeds as far as they are not about partitions that other copies have."""
    left: dict[tuple[Operation, ...], Deed] = {}
    for deed in deeds:
        operations = tuple(o for o in deed.operations if o.path.split("/", 1)[0] not in held)
        prices = tuple(price for price in deed.partitions if _name(price) not in held)
        left.setdefault(operations, replace(deed, operations=operations, partitions=prices))
    return sorted(left.values(), key=lambda deed: (deed.cost.expected, len(deed.operations) > 0))


def _name(price: PartitionPrice) -> str:
    return f"{price.topic}-{price.partition}"
