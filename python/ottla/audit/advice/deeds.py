"""What to do before the next start of a broker: deeds over a whole log directory, priced.

Partitions are independent of each other but for the mark of a clean stop, which decides how all of
them are loaded. So each partition's best option is found alone, with the mark and, where that may
help, without it; a deed is what is done to all partitions of a log directory together.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ottla.audit.advice.actions import with_actions
from ottla.audit.advice.candidates import MOVE_PARTITION, NOTHING, Named
from ottla.audit.advice.deed import MARK, Deed, Operation, PartitionPrice
from ottla.audit.advice.duplicates import Duplicates
from ottla.audit.advice.partition import AdviceRequest, Option, PartitionOptions
from ottla.audit.advice.trial import Effect
from ottla.audit.judge.packed import rows_about
from ottla.audit.judge.restarts import StartRequest, start_requests
from ottla.logs.names import (
    CLUSTER_METADATA,
    PARTITION_METADATA,
    display,
    parse_partition_name,
)
from ottla.logs.packed import PackedRows
from ottla.storage import join

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from ottla.audit.advice.deed import DeedName
    from ottla.audit.catalogue.findings import Findings
    from ottla.audit.judge.collector import Outcome
    from ottla.audit.plan.plan import Plan
    from ottla.logs.inventory import Partition

    Answer: TypeAlias = PartitionOptions | str
    Price: TypeAlias = Callable[[Sequence[AdviceRequest]], Iterable[Answer]]
    """Carries requests out."""

MAX_PARTITIONS = 1_000
"""Partitions of a log directory that are priced; the others are counted."""


def with_advice(plan: Plan, outcome: Outcome, price: Price) -> Outcome:
    """The outcome with what to do before the next start, also in the table `recovery`.

    `price` carries requests out.
    """
    advice = _advice(plan, outcome, price)
    return outcome._replace(advice=advice, recovery=with_actions(plan, outcome.recovery, advice))


def _advice(plan: Plan, outcome: Outcome, price: Price) -> tuple[Deed, ...]:
    places = _Places(plan, outcome)
    answers = places.ask(places.requests, price)
    without_mark = places.requests_without_mark(answers)
    others = places.ask(without_mark, price)
    return tuple(
        deed
        for path, requests in places.by_log_directory.items()
        for deed in _deeds(places, path, requests, answers, others)
    )


class _Places:
    """The partitions that may need advice, by log directory."""

    def __init__(self, plan: Plan, outcome: Outcome) -> None:
        self._log_directories = {directory.path for directory in plan.inventory.log_directories}
        self._planned = {partition.directory for partition in plan.partitions}
        self._beside: dict[bytes, list[Partition]] = defaultdict(list)
        """Live partitions by log directory."""
        for partition in plan.inventory.partitions:
            if partition.state == "live":
                self._beside[os.path.dirname(partition.directory)].append(partition)
        self._unreadable: dict[bytes, int] = defaultdict(int)
        """Partitions of a log directory that could not even be listed."""
        for unreadable in plan.inventory.unreadable:
            above, name = os.path.split(unreadable.path)
            self._unreadable[above] += parse_partition_name(name) is not None
        starts = [
            request
            for request in start_requests(plan, outcome.findings, outcome.tables)
            if request.partition.topic != CLUSTER_METADATA
        ]
        put_aside = _put_aside(plan, {start.partition.directory for start in starts})
        starts += put_aside
        self._settled = _settled(put_aside, outcome)
        self._duplicates = Duplicates(plan, outcome)
        starts += _not_yet(plan, starts, self._duplicates.partitions)
        named = _named(outcome.findings)
        self.by_log_directory: dict[bytes, list[AdviceRequest]] = defaultdict(list)
        self.not_asked: dict[bytes, int] = defaultdict(int)
        for start in starts:
            directory = start.partition.directory
            above = os.path.dirname(directory)
            if len(self.by_log_directory[above]) >= MAX_PARTITIONS:
                self.not_asked[above] += 1
                continue
            clean = start.partition.stopped_cleanly
            request = AdviceRequest(start, tuple(named.get(directory, ())), clean)
            self.by_log_directory[above].append(request)

    @property
    def requests(self) -> list[AdviceRequest]:
        """All of them."""
        return [request for requests in self.by_log_directory.values() for request in requests]

    def ask(self, requests: Sequence[AdviceRequest], price: Price) -> dict[bytes, Answer]:
        """Answers by the directory of the partition."""
        asked = [r for r in requests if r.partition.directory not in self._settled]
        directories = [request.partition.directory for request in asked]
        answers = dict(zip(directories, price(asked), strict=True)) if asked else {}
        return {
            directory: self._duplicates.priced(directory, answer)
            if isinstance(answer, PartitionOptions)
            else answer
            for directory, answer in (*self._settled.items(), *answers.items())
        }

    def requests_without_mark(self, answers: Mapping[bytes, Answer]) -> list[AdviceRequest]:
        """Of log directories where a start without the mark of a clean stop may be better."""
        found = []
        for path, requests in self.by_log_directory.items():
            if not (requests and requests[0].clean and self.counts(path, requests)[1] == 0):
                continue
            known = [answers[request.partition.directory] for request in requests]
            if any(isinstance(answer, PartitionOptions) and answer.is_hard for answer in known):
                found += [replace(request, clean=False) for request in requests]
        return found

    def counts(self, path: bytes, requests: Sequence[AdviceRequest]) -> tuple[int, int]:
        """Partitions of a log directory beside those asked about: known to be sound, and not."""
        asked = {request.partition.directory for request in requests}
        beside = [p for p in self._beside.get(path, ()) if p.directory not in asked]
        sound = sum(p.directory in self._planned and p.is_whole for p in beside)
        left_out = self.not_asked[path]
        unknown = len(beside) - sound + left_out + self._unreadable[path]
        if path not in self._log_directories:
            # A partition's directory was named: nobody knows what lies beside it.
            unknown = max(unknown, 1)
        return sound - left_out, unknown


def _put_aside(plan: Plan, known: Collection[bytes]) -> list[StartRequest]:
    """The other partitions of log directories in which none has a topic id.

    Brokers before 2.8 wrote none, and since 4.0 they put every such partition aside.
    """
    has_ids = {
        os.path.dirname(p.directory)
        for p in plan.inventory.partitions
        if PARTITION_METADATA in p.names
    }
    return [
        _request(plan, partition)
        for partition in plan.partitions
        if partition.state == "live"
        and partition.is_whole
        and partition.topic not in (None, CLUSTER_METADATA)
        and partition.directory not in known
        and os.path.dirname(partition.directory) not in has_ids
        and partition.has_segments
    ]


def _not_yet(
    plan: Plan, starts: Iterable[StartRequest], partitions: Iterable[Partition]
) -> list[StartRequest]:
    """Requests for partitions that have none."""
    known = {start.partition.directory for start in starts}
    return [_request(plan, p) for p in partitions if p.directory not in known]


def _request(plan: Plan, partition: Partition) -> StartRequest:
    """A request for a partition without a finding."""
    return StartRequest(
        partition=partition,
        name=plan.inventory.display(partition.directory),
        end_offset=None,
        aborted=PackedRows(b""),
        needs_topic_id=False,
    )


def _settled(put_aside: Sequence[StartRequest], outcome: Outcome) -> dict[bytes, PartitionOptions]:
    """Of partitions that are put aside, none of which a finding blames: their offsets are counted.

    A missing index, say, changes nothing about them, so no byte is read again.
    """
    if not put_aside:
        return {}
    wanted = {start.partition.directory: start for start in put_aside}
    kinds = outcome.findings.kinds
    found = {directory for _, severity, directory in kinds if severity != "info"}
    settled = {}
    for partition, row in rows_about(outcome.tables["metrics"], wanted):
        start, end = row["log_start_offset"], row["log_end_offset"]
        bases = partition.live_base_offsets
        is_dense = start == bases[0] and row["records"] == end - start if bases else False
        if is_dense and partition.directory not in found:
            readable = row["records"] - row["control_batches"]
            effect = Effect(
                opens=True,
                error=None,
                is_put_aside=True,
                log_start_offset=start,
                log_end_offset=end,
                readable=readable,
                inside=readable,
                left=readable,
                exposed_transactions=0,
                leader_epochs=0,
                producers=None,
                mended=(),
            )
            nothing = Option(NOTHING, effect, effect._replace(is_put_aside=False))
            clean = partition.stopped_cleanly
            settled[partition.directory] = PartitionOptions(
                clean, readable, nothing, nothing, None, 0
            )
    return settled


def _named(findings: Findings) -> Mapping[bytes, Iterable[Named]]:
    """Findings about files of partitions, by the directory of the partition."""
    named: dict[bytes, dict[Named, None]] = defaultdict(dict)
    is_of_interest = any(severity != "info" for _, severity, _ in findings.kinds)
    for finding in findings if is_of_interest else ():
        if finding.directory is None or finding.path is None or finding.severity == "info":
            continue
        directory, name = os.path.split(finding.path)
        if directory == finding.directory:
            named[directory][Named(finding.name, name)] = None
    return named


Choice: TypeAlias = "list[tuple[AdviceRequest, PartitionOptions, Option]]"
"""What is done to each partition."""


def _deeds(
    places: _Places,
    path: bytes,
    requests: Sequence[AdviceRequest],
    answers: Mapping[bytes, Answer],
    others: Mapping[bytes, Answer],
) -> list[Deed]:
    """The deeds for a log directory, the best first; none where there is nothing to say."""
    known = list(_known(requests, answers))
    sound, unknown = places.counts(path, requests)
    counts = sound, unknown + len(requests) - len(known)
    if all(_is_settled(options) for _, options in known):
        return []
    choices: list[tuple[Choice, tuple[Operation, ...]]] = [
        ([(r, o, o.nothing) for r, o in known], ()),
        ([(r, o, o.best) for r, o in known], ()),
        ([(r, o, o.mend or o.best) for r, o in known], ()),
        ([(r, o, o.move if o.nothing.expected.refuses else o.best) for r, o in known], ()),
    ]
    unmarked = list(_known(requests, others))
    if unmarked and len(unmarked) == len(requests):
        choices.append(([(r, o, o.best) for r, o in unmarked], (Operation("delete", MARK),)))
    touched = _touched(choices)
    deeds = [_deed(path, choice, before, touched, counts) for choice, before in choices]
    nothing, best, *_ = deeds
    offered = {
        deed.operations: deed
        for deed in deeds
        # What decides over all partitions must be worth it.
        if not deed.deletes_mark
        or (deed.cost.worst <= nothing.cost.worst and deed.cost.expected < best.cost.expected)
    }
    # What is as good as nothing as far as anybody expects is not worth the trouble.
    return sorted(
        offered.values(), key=lambda d: (d.cost.expected, len(d.operations) > 0, d.cost.worst)
    )


def _is_settled(options: PartitionOptions) -> bool:
    """Whether there is nothing to say about a partition."""
    return options.nothing.is_fine and options.mend is None and not options.nothing.expected.mended


def _known(
    requests: Sequence[AdviceRequest], answers: Mapping[bytes, Answer]
) -> Iterator[tuple[AdviceRequest, PartitionOptions]]:
    for request in requests:
        answer = answers.get(request.partition.directory)
        if isinstance(answer, PartitionOptions):
            yield request, answer


def _touched(choices: Iterable[tuple[Choice, Any]]) -> set[bytes]:
    """The partitions to which any start or deed does something."""
    return {
        request.partition.directory
        for choice, _ in choices
        for request, _, option in choice
        if option.candidate.operations or not option.is_fine or option.expected.mended
    }


def _deed(
    path: bytes,
    choice: Choice,
    before: tuple[Operation, ...],
    touched: set[bytes],
    counts: tuple[int, int],
) -> Deed:
    operations = list(before)
    names: set[DeedName] = {"delete-clean-shutdown-mark"} if before else set()
    for request, _, option in choice:
        if option.candidate.operations:
            names.add(option.candidate.deed)
            operations += _operations(request.partition, option)
    deed: DeedName = "several" if len(names) > 1 else next(iter(names), "nothing")
    return Deed(
        log_directory=display(path),
        deed=deed,
        operations=tuple(operations),
        partitions=tuple(
            _price(request.start, options, option)
            for request, options, option in choice
            if request.partition.directory in touched
        ),
        partitions_unchanged=len(choice) - len(touched) + counts[0],
        partitions_not_priced=counts[1],
        not_tried=sum(options.left_out for _, options, _ in choice),
    )


def _operations(partition: Partition, option: Option) -> Iterator[Operation]:
    inside = os.path.basename(partition.directory)
    for operation in sorted(option.candidate.operations, key=lambda o: o.name):
        path = join(inside, operation.name) if operation.name else inside
        yield Operation(operation.operation, display(path))


def _price(start: StartRequest, options: PartitionOptions, option: Option) -> PartitionPrice:
    effect, expected = option.effect, option.expected
    stays = options.stays if option.candidate == MOVE_PARTITION else None
    return PartitionPrice(
        topic=start.partition.topic,
        partition=start.partition.partition,
        opens=effect.opens,
        error=effect.error,
        is_put_aside=effect.is_put_aside,
        log_start_offset=effect.log_start_offset,
        log_end_offset=effect.log_end_offset,
        readable_offsets=options.readable,
        readable_offsets_lost=effect.readable_offsets_lost,
        readable_offsets_cut=effect.readable_offsets_cut,
        exposed_transactions=effect.exposed_transactions,
        goes_on_in=stays.directory if stays else None,
        goes_on_at=stays.log_end_offset if stays else None,
        producers=expected.producers,
        side_files_mended=tuple(display(name) for name in expected.mended),
        expected=None if _differing(expected) == _differing(effect) else _differing(expected),
    )


def _differing(effect: Effect) -> dict[str, Any]:
    """The fields of an effect that may differ from those at worst."""
    return {
        "opens": effect.opens,
        "is_put_aside": effect.is_put_aside,
        "log_end_offset": effect.log_end_offset,
        "readable_offsets_lost": effect.readable_offsets_lost,
        "readable_offsets_cut": effect.readable_offsets_cut,
        "exposed_transactions": effect.exposed_transactions,
    }
