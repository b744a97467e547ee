"""The rows of the speed table that are races: what is timed on which data, and what is wanted."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from benches.data import MIB, Compression, Data, Shape, generate
from benches.peers import (
    AIOKAFKA,
    CALLED,
    CALLS,
    CHECK,
    INFLATE,
    JAVA,
    JOBS,
    LIBRARIES,
    MEMCPY,
    OURS,
    READ,
    WrongAnswerError,
)
from benches.peers.maven import java_worker
from benches.race import Times, Turn, race, turn
from benches.worker import WorkerError, python_worker

# 1 MiB stays in the second-level cache: what the code can do. 16 MiB is what a user sees.
SMALL, LARGE = MIB, 16 * MIB
# Small batches that a call each is timed on.
FEW = MIB // 8

_HUNDRED = Shape(100)
_SINGLE = Shape(100, 1)
_HEADERS = Shape(100, headers=4)
_KIB = Shape(1024)
_TEN_KIB = Shape(10240)
# Batches of 13 KB, and of 1 MB.
_HUNDRED_OF_HUNDRED = Shape(100, 100)
_LARGE_OF_HUNDRED = Shape(100, 8000)


class AbsentLevelError(WorkerError):
    """The CPU lacks the level that a case names."""


@dataclass(frozen=True)
class Case:
    """A race between ours and a base."""

    job: str
    shape: Shape
    size: int
    target: float | None
    """How many times faster than the base ours shall be."""
    base: str = AIOKAFKA
    read_target: float | None = None
    """The share of a bare read's speed that is as good."""
    level: str | None = None
    """Force this CPU level."""

    @property
    def title(self) -> str:
        """Name the job and the shape, not the size."""
        level = f" ({self.level})" if self.level else ""
        job = "check" if self.job == "inflate" else self.job
        return f"{job} {self.shape}{level}"

    @property
    def size_name(self) -> str:
        """Name the size of its data."""
        if self.size >= MIB:
            return f"{self.size // MIB} MiB"
        return "one batch" if self.size == 1 else "small batches"

    @property
    def data(self) -> Data:
        """Return what it runs on."""
        return generate(self.shape, self.size)


def _both(job: str, shape: Shape, small: float | None, large: float, *, read: bool) -> list[Case]:
    return [
        Case(job, shape, SMALL, small),
        Case(job, shape, LARGE, large, read_target=0.9 if read else None),
    ]


def _compressed(codec: Compression, small: float, large: float) -> list[Case]:
    return [
        Case("inflate", Shape(100, compression=codec), SMALL, small, base=INFLATE),
        Case("inflate", Shape(1024, compression=codec), LARGE, large, base=INFLATE),
    ]


def _verdict_compressed(codec: Compression) -> Case:
    shape = Shape(1024, compression=codec)
    return Case("append-inflate", shape, SMALL, 0.90, base=INFLATE)


CASES: tuple[Case, ...] = (
    *_both("check", _HUNDRED, 40, 25, read=True),
    *_both("check", _SINGLE, 28, 25, read=False),
    *_both("check", _KIB, 35, 20, read=True),
    Case("check", _TEN_KIB, LARGE, 16, read_target=0.9),
    *_both("check", _HEADERS, 40, 28, read=False),
    Case("check-view", _HUNDRED, SMALL, None, base=CHECK),
    Case("check-view", _HUNDRED, LARGE, 0.9, base=CHECK),
    Case("check-bytearray", _HUNDRED, SMALL, None, base=CHECK),
    Case("check-bytearray", _HUNDRED, LARGE, None, base=CHECK),
    Case("call", _SINGLE, 1, 8),
    *_both("numbers", _HUNDRED, 50, 40, read=False),
    *_both("numbers", _KIB, 30, 18, read=False),
    *_both("views", _HUNDRED, 35, 36, read=False),
    *_both("views", _KIB, 28, 18, read=False),
    Case("split", _HUNDRED, LARGE, 10),
    Case("split", Shape(100, compression="zstd"), LARGE, 4),
    Case("build", _HUNDRED, SMALL, 12),
    Case("build", _KIB, SMALL, 10),
    Case("check", _HUNDRED, SMALL, 20, level="bmi2"),
    Case("check", _HUNDRED, SMALL, 12, level="sse42"),
    *_compressed("gzip", 0.90, 0.95),
    *_compressed("snappy", 0.90, 0.95),
    *_compressed("zstd", 0.90, 0.95),
    *_compressed("lz4", 0.80, 0.90),
    Case("append", _HUNDRED_OF_HUNDRED, SMALL, 15),
    Case("append", _LARGE_OF_HUNDRED, SMALL, 15),
    Case("append", _KIB, SMALL, 15),
    # What a copy into one piece costs beside the parts.
    Case("append-joined", _HUNDRED_OF_HUNDRED, SMALL, None),
    Case("append-joined", _KIB, SMALL, None),
    # At most 15 % over checking alone; at most twice a check of one record, which takes less time
    # than a call with a keyword that gives an object and does nothing.
    Case("accept", _LARGE_OF_HUNDRED, SMALL, 1 / 1.15, base=CHECK),
    Case("accept", _KIB, SMALL, 1 / 1.15, base=CHECK),
    Case("accept", _SINGLE, FEW, 1 / 2, base=CHECK),
    *(_verdict_compressed(codec) for codec in ("gzip", "snappy", "zstd", "lz4")),
)

# A leader's decision beside Java's, one batch a call.
JAVA_CASES: tuple[Case, ...] = (
    Case("decide", _HUNDRED, 1, 3, base=JAVA),
    Case("decide", Shape(1024, 100), 1, 1.5, base=JAVA),
    Case("decide", _SINGLE, 1, 1.5, base=JAVA),
)
JAVA_STARTS = 3


@dataclass(frozen=True)
class Outcome:
    """What a race found."""

    case: Case
    times: dict[str, Times]
    absent: dict[str, str]
    """Peers that did not run, and why."""

    def ratio(self, peer: str) -> float:
        """Say how many times faster than a peer ours was."""
        return self.times[OURS].faster_than(self.times[peer])

    @property
    def is_met(self) -> bool | None:
        """Say whether the target is met; none where there is none."""
        return None if self.case.target is None else self.met_by is not None

    @property
    def met_by(self) -> str | None:
        """Name the yardstick that the target is met by: the base, or else a bare read."""
        if self.case.target is None:
            return None
        if self.ratio(self.case.base) >= self.case.target:
            return self.case.base
        share = self.case.read_target
        is_read = share is not None and READ in self.times and self.ratio(READ) >= share
        return READ if is_read else None

    @property
    def _repeats(self) -> int:
        return CALLS if self.case.job in CALLED else 1

    def seconds_per_call(self, peer: str) -> float:
        """Return the seconds of one run, or of one call where a run is many, at its median."""
        return self.times[peer].median / self._repeats

    def records_per_s(self, peer: str) -> float:
        """Return the records a peer went through in a second, at its median."""
        return self.case.data.records / self.seconds_per_call(peer)

    def bytes_per_s(self, peer: str) -> float:
        """Return the bytes, before compression, a peer went through in a second."""
        return self.case.data.raw_size / self.seconds_per_call(peer)


def _peers_of(case: Case, *, every: bool) -> list[str]:
    if not every:
        return [peer for peer in (case.base, OURS, READ) if peer in JOBS[case.job]]
    if case.size > SMALL:
        fast = (case.base, OURS, AIOKAFKA, READ, MEMCPY)
        return [peer for peer in JOBS[case.job] if peer in fast]
    return list(JOBS[case.job])


def _turn(case: Case, peer: str) -> Turn:
    candidate = JOBS[case.job][peer](case.data)
    found = candidate()
    if case.job != "call" and found != case.data.records:
        raise WrongAnswerError(f"{peer} saw {found} records, expected {case.data.records}")
    return turn(candidate)


@contextmanager
def turns_of(case: Case, *, every: bool) -> Iterator[tuple[dict[str, Turn], dict[str, str]]]:
    """Prepare the candidates of a case, `every` peer or the base alone; report which are absent."""
    turns: dict[str, Turn] = {}
    absent: dict[str, str] = {}
    with ExitStack() as workers:
        for peer in _peers_of(case, every=every):
            if peer == OURS and case.level:
                level = {"OTTLA_KERNELS": case.level}
                worker = python_worker(case.job, case.data, environment=level)
                turns[peer] = workers.enter_context(closing(worker))
                if worker.name.split()[0] != case.level:
                    raise AbsentLevelError(f"this CPU has no {case.level}")
                continue
            try:
                turns[peer] = _turn(case, peer)
            except ImportError as error:
                if peer in {OURS, case.base}:
                    raise
                absent[peer] = str(error)
        if every and case.job == "inflate":
            for peer, prepare in LIBRARIES[case.shape.compression].items():
                try:
                    turns[peer] = turn(prepare(case.data))
                except ImportError as error:
                    absent[peer] = str(error)
        if case.base == JAVA or (every and case.job == "check" and case.level is None):
            calls = CALLS if case.job in CALLED else 1
            try:
                turns[JAVA] = workers.enter_context(java_worker(case.job, case.data, calls=calls))
            except WorkerError as error:
                if case.base == JAVA:
                    raise
                absent[JAVA] = str(error)
        yield turns, absent


def run(case: Case, *, rounds: int, every: bool = False) -> Outcome:
    """Run the race of a case."""
    with turns_of(case, every=every) as (turns, absent):
        return Outcome(case, race(turns, rounds), absent)


def run_beside_java(case: Case, *, rounds: int) -> Outcome:
    """Run the race of a case over several starts of Java, since one differs from another.

    Raises:
        WorkerError: there is no Java or Maven, or they cannot build Kafka's side.
    """
    starts = [run(case, rounds=rounds, every=True).times for _ in range(JAVA_STARTS)]
    joined = {
        peer: Times(tuple(second for times in starts for second in times[peer].seconds))
        for peer in starts[0]
    }
    return Outcome(case, joined, {})
