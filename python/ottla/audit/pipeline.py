"""The stages of an audit and their order, which does not depend on what runs them.

1. Plan: which files to scan (`plan`).
2. Scan each file, whole or in ranges (`run.scan`).
3. Judge each log as soon as its files are scanned, then compare it with its copies (`judge_scans`).
4. Collect the results of all logs, in order (`judge.collector`).
5. Predict the next start of each partition that has a finding (`judge.restarts`).
6. Try what can be done before that start (`advice`).
7. Read the coordinators' topics: committed offsets, transactional ids (`judge.coordinators`).
8. Fill the tables (`result`).

A `Runner` performs the stages that read files, with threads of this process (`run.threads`) or with
tasks of a cluster (`ottla.spark`). Runners contain no rules of Kafka or of the audit.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from ottla import _engine
from ottla.audit.judge.collector import Collector
from ottla.audit.judge.log_ends import with_witnesses_elsewhere
from ottla.audit.judge.suspects import all_open_unchanged
from ottla.audit.judge.transaction_rows import has_coordinators, without_coordinators
from ottla.audit.plan.plan import MIN_SPLIT_BYTES
from ottla.audit.result.result import make_result
from ottla.severity import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ottla._engine import SegmentScan
    from ottla.audit.advice.partition import AdviceRequest, PartitionOptions
    from ottla.audit.judge.collector import Outcome
    from ottla.audit.judge.comparison import Comparison
    from ottla.audit.judge.context import Surroundings
    from ottla.audit.judge.coordinators import ReadAnswer, ReadRequest
    from ottla.audit.judge.judge import JudgedLog
    from ottla.audit.judge.restarts import StartRequest
    from ottla.audit.plan.logs import Log
    from ottla.audit.plan.plan import Plan
    from ottla.audit.result.result import AuditResult
    from ottla.logs.checkpoints import Checkpoints
    from ottla.logs.columns import Row
    from ottla.logs.inventory import Inventory
    from ottla.severity import Severity

Level = Literal["crc", "decode", "full"]
"""`crc` checks checksums and never decodes a batch, `decode` decompresses and decodes its records,
`full` checks them against every rule of the format."""


class Runner(Protocol):
    """Runs the stages of a plan that read files."""

    @property
    def plan(self) -> Plan:
        """The plan to run."""

    @property
    def checkpoints(self) -> Checkpoints:
        """What the checkpoints of its log directories hold."""

    def scan(self, collector: Collector) -> None:
        """Scans every file of the plan, and adds the result of `judge_scans` for each log.

        A file that cannot be read is added as unreadable; no exception is raised for it.
        """

    def predict_starts(self, requests: Sequence[StartRequest]) -> Iterable[Sequence[Row]]:
        """Returns the `rows` of each request, in order."""

    def price_options(self, requests: Sequence[AdviceRequest]) -> Iterable[PartitionOptions | str]:
        """Returns the `options` of each request, in order."""

    def read_coordinators(self, requests: Sequence[ReadRequest]) -> Iterable[ReadAnswer | None]:
        """Returns the `rows` of each request, in order."""


def check_arguments(*, level: str, fail_on: str, split_bytes: int | None) -> None:
    """Raises ValueError if an argument that all runners share is invalid."""
    if level not in get_args(Level):
        raise ValueError(f"level is {level!r}, not one of {', '.join(get_args(Level))}")
    if fail_on not in SEVERITIES:
        raise ValueError(f"fail_on is {fail_on!r}, not one of {', '.join(SEVERITIES)}")
    if split_bytes is not None and split_bytes < MIN_SPLIT_BYTES:
        raise ValueError(f"split_bytes is {split_bytes}, must be at least {MIN_SPLIT_BYTES}")


def run_audit(runner: Runner, *, level: str, fail_on: Severity) -> tuple[Outcome, AuditResult]:
    """Runs a plan. Returns the outcome, and the tables filled from it."""
    outcome = carry_out(runner)
    return outcome, make_result(runner.plan, outcome, level=level, fail_on=fail_on)


def run_part(runner: Runner, *, level: str) -> AuditResult:
    """Runs a part of a plan, for the tables that each log fills by itself.

    Stages that need all logs together are skipped: restarts and the coordinators' topics.
    """
    outcome = without_coordinators(_scanned(runner))
    return make_result(runner.plan, outcome, level=level, fail_on="error")


def carry_out(runner: Runner) -> Outcome:
    """Runs all stages except filling the tables."""
    started, started_ms = time.monotonic(), time.time_ns() // 1_000_000
    outcome = _scanned(runner)
    # Each stage runs in threads of its own, which take nothing of what those before have freed.
    _engine.release_freed_memory()
    if not all_open_unchanged(runner.plan, outcome.findings):
        outcome = _with_next_start(runner, outcome)
        _engine.release_freed_memory()
    outcome = _with_coordinators(runner, outcome)
    outcome = with_witnesses_elsewhere(runner.plan, outcome)
    return outcome._replace(elapsed_s=time.monotonic() - started, started_ms=started_ms)


def _with_next_start(runner: Runner, outcome: Outcome) -> Outcome:
    from ottla.audit.advice.deeds import with_advice
    from ottla.audit.judge.restarts import with_restarts

    outcome = with_restarts(runner.plan, outcome, runner.predict_starts)
    return with_advice(runner.plan, outcome, runner.price_options)


def _with_coordinators(runner: Runner, outcome: Outcome) -> Outcome:
    if not has_coordinators(runner.plan):
        return without_coordinators(outcome)
    from ottla.audit.judge.coordinators import with_coordinators

    return with_coordinators(runner.plan, outcome, runner.read_coordinators)


def judge_scans(
    log: Log,
    scans: Mapping[int, SegmentScan],
    inventory: Inventory,
    surroundings: Surroundings,
    comparison: Comparison,
) -> JudgedLog:
    """Judges the scans of a log's files, by index; compares a partition with its last copy."""
    # Most logs are clean, and take none of it.
    from ottla.audit.judge.judge import judge_log

    judged, merged = judge_log(log, scans, inventory, surroundings)
    if comparison.wants(log):
        comparison.add(log, merged)
    return judged


def _scanned(runner: Runner) -> Outcome:
    collector = Collector(runner.plan, runner.checkpoints)
    runner.scan(collector)
    return collector.outcome()
