"""Everything at once that happens to a log while a stream reads it, against a naive model.

Every record comes exactly once, or the stream fails or waits, and says for which offsets.
"""

import random
import re
import shutil
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.logs import segment_name

from benches.data import encode_batch

pytest.importorskip("pyspark", minversion="4.0")

from ottla.errors import DataLossWarning, SparkError
from ottla.spark.source.stream import ReadMaxBytes
from support.streams import STEPS, KilledError, Query
from support.thin import encode_thin

Name = tuple[int, int]
"""A record: which life of the log wrote it, and its offset."""

IDS = [f"{letter * 21}A" for letter in "BCDEFGHIJKLMNOPQRSTUVWXYZ"]


@dataclass
class Batch:
    first: int
    last: int
    kept: list[int]
    life: int

    @property
    def names(self) -> list[Name]:
        return [(self.life, offset) for offset in self.kept]

    def encode(self, epoch: int) -> bytes:
        values = {offset: f"{self.life}:{offset}".encode() for offset in self.kept}
        if len(self.kept) == self.last - self.first + 1:
            records = [(1_760_000_000_000 + o, b"k", values[o], ()) for o in self.kept]
            return encode_batch(records, base_offset=self.first, partition_leader_epoch=epoch)
        return encode_thin(self.first, self.last, values, epoch)


@dataclass
class World:
    """A log at its source, and the directory in which a stream finds it."""

    directory: Path
    rng: random.Random
    is_copied: bool
    has_id: bool
    segments: dict[int, list[Batch]] = field(default_factory=lambda: {0: []})
    there: dict[int, int] = field(default_factory=dict)
    """Bytes of each segment in the directory."""
    damaged: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Positions and bits of each segment that are wrong there."""
    life: int = 0
    """Offsets are given again after the log was created again, or cut."""
    topic: int = 0
    epoch: int = 0
    next_offset: int = 0
    written: set[Name] = field(default_factory=set)
    lawfully_gone: set[Name] = field(default_factory=set)
    is_cleaned: bool = False
    is_disturbed: bool = False
    """Whether something happened that a stream may fail or wait for."""

    def data(self, base: int) -> bytearray:
        data = bytearray(b"".join(batch.encode(self.epoch) for batch in self.segments[base]))
        for position, bit in self.damaged.get(base, ()):
            if position < len(data):
                data[position] ^= 1 << bit
        return data

    def append(self) -> None:
        for _ in range(self.rng.randrange(1, 4)):
            count = self.rng.randrange(1, 4)
            offsets = list(range(self.next_offset, self.next_offset + count))
            batch = Batch(offsets[0], offsets[-1], offsets, self.life)
            self.segments[max(self.segments)].append(batch)
            self.written |= set(batch.names)
            self.next_offset += count
        if not self.is_copied:
            self.copy(max(self.segments), whole=self.rng.random() < 0.7)

    def roll(self) -> None:
        if self.segments[max(self.segments)]:
            if not self.is_copied:
                self.copy(max(self.segments))
            self.segments[self.next_offset] = []

    def copy(self, base: int | None = None, *, whole: bool = True) -> None:
        """Bring the bytes of a segment into the directory, the first ones at least."""
        if base is None:
            base = self.rng.choice(list(self.segments))
            whole = self.rng.random() < 0.8
        size = len(self.data(base))
        least = self.there.get(base, 0)
        self.there[base] = size if whole or least >= size else self.rng.randrange(least, size + 1)
        self.put(base)

    def put(self, base: int) -> None:
        self.directory.mkdir(exist_ok=True)
        data = self.data(base)[: self.there[base]]
        (self.directory / segment_name(base)).write_bytes(data)
        if self.has_id:
            text = f"version: 0\ntopic_id: {IDS[self.topic % len(IDS)]}"
            (self.directory / "partition.metadata").write_text(text)

    def gone(self, base: int, *, lawfully: bool) -> None:
        names = {name for batch in self.segments.pop(base) for name in batch.names}
        if lawfully:
            self.lawfully_gone |= names
        self.there.pop(base, None)
        self.damaged.pop(base, None)
        (self.directory / segment_name(base)).unlink(missing_ok=True)

    def retention(self, *, was_planned: bool) -> None:
        if len(self.segments) > 1:
            self.is_disturbed = True
            self.gone(min(self.segments), lawfully=not was_planned)

    def vanish(self) -> None:
        if len(self.segments) > 2:
            self.is_disturbed = True
            self.gone(
                sorted(self.segments)[self.rng.randrange(1, len(self.segments) - 1)], lawfully=False
            )

    def compact(self) -> None:
        closed = sorted(self.segments)[:-1]
        if not closed:
            return
        for base in closed:
            kept: list[Batch] = []
            for batch in self.segments[base]:
                left = [offset for offset in batch.kept if self.rng.random() < 0.7]
                self.lawfully_gone |= set(batch.names) - {(batch.life, o) for o in left}
                if left:
                    kept.append(Batch(batch.first, batch.last, left, batch.life))
            self.segments[base] = kept
            self.damaged.pop(base, None)
            if base in self.there:
                self.there[base] = len(self.data(base))
                self.put(base)
        self.is_cleaned = True
        checkpoint = self.directory.parent / "cleaner-offset-checkpoint"
        checkpoint.write_text(f"0\n1\norders 0 {max(self.segments)}\n")

    def create_again(self, *, was_planned: bool) -> None:
        self.is_disturbed = True
        shape = [(batch.first, batch.last) for batch in self.segments.get(0, [])]
        for base in list(self.segments):
            self.gone(base, lawfully=not was_planned)
        shutil.rmtree(self.directory, ignore_errors=True)
        (self.directory.parent / "cleaner-offset-checkpoint").unlink(missing_ok=True)
        self.life, self.topic, self.next_offset = self.life + 1, self.topic + 1, 0
        self.segments = {0: []}
        if self.rng.random() < 0.5:
            for first, last in shape:
                self.segments[0].append(Batch(first, last, list(range(first, last + 1)), self.life))
                self.written |= set(self.segments[0][-1].names)
                self.next_offset = last + 1
        self.append()
        self.copy(max(self.segments))

    def cut(self) -> None:
        base = max(self.segments)
        if len(self.segments[base]) > 1:
            self.is_disturbed = True
            batch = self.segments[base].pop()
            self.lawfully_gone |= set(batch.names)
            self.next_offset, self.life = batch.first, self.life + 1
            if base in self.there:
                self.there[base] = min(self.there[base], len(self.data(base)))
                self.put(base)

    def damage(self) -> None:
        base = self.rng.choice(list(self.segments))
        size = len(self.data(base))
        if base in self.there and size:
            self.is_disturbed = True
            place = self.rng.randrange(size), self.rng.randrange(8)
            self.damaged.setdefault(base, []).append(place)
            self.put(base)


def names_of(query: Query) -> list[Name]:
    pairs = (row[3].split(b":") for row in query.rows)
    return [(int(life), int(offset)) for life, offset in pairs]


def act(world: World, rng: random.Random, query: Query) -> None:
    was_planned = query.start is not None or query.planned is not None
    chance = rng.random()
    if chance < 0.45:
        world.append()
    elif chance < 0.6:
        world.roll()
    elif chance < 0.85:
        world.copy() if world.is_copied else world.append()
    elif chance < 0.9:
        world.compact()
    elif rng.random() < 0.8:
        event = rng.randrange(5)
        if event == 0:
            world.retention(was_planned=was_planned)
        elif event == 1:
            world.create_again(was_planned=was_planned)
        elif event == 2:
            world.cut()
        elif event == 3:
            world.damage()
        else:
            world.vanish()


def trigger(query: Query, rng: random.Random) -> bool:
    """One trigger, perhaps with a kill at some step."""
    step = rng.choice(STEPS) if rng.random() < 0.4 else None

    def kill(at: str) -> None:
        if at == step:
            raise KilledError

    try:
        return query.trigger(rng.choice([None, 1, 200]) if ReadMaxBytes else None, kill=kill)
    except KilledError:
        query.restart()
        return True


def check(world: World, delivered: list[Name], *, is_complete: bool) -> None:
    assert len(set(delivered)) == len(delivered), "a record came twice"
    assert set(delivered) <= world.written
    furthest: dict[int, int] = {}
    for life, offset in delivered:
        furthest[life] = max(offset, furthest.get(life, -1))
    missing = world.written - set(delivered) - world.lawfully_gone
    begun = min((name for name in delivered), default=(0, 0)) if world.is_copied else (0, 0)
    if world.is_cleaned and not is_complete:
        # A checkpoint of the cleaner explains segments that may still come: that is told then.
        late = (s for base, s in world.segments.items() if base not in world.there)
        missing -= {name for segment in late for batch in segment for name in batch.names}
    # The same for what comes before the first segment that was copied.
    passed = {name for name in missing if begun < name and name[1] < furthest.get(name[0], -1)}
    assert not passed, "records were passed over"
    assert not (is_complete and missing), "records never came"


def check_error(world: World, query: Query, message: str) -> None:
    assert re.search(r"offsets? \d+|offsets \d+ to \d+|topic id|position \d+", message), message
    assert world.is_disturbed or world.is_copied, message
    if "came after reading had gone on" not in message:
        check(world, names_of(query), is_complete=False)


def run(seed: int, root: Path) -> str:
    rng = random.Random(seed)
    root.mkdir()
    world = World(root / "orders-0", rng, rng.random() < 0.5, rng.random() < 0.5)
    query = Query(root, late_segments=rng.choice(["wait", "wait", "fail"]))
    try:
        for _ in range(rng.randrange(4, 14)):
            act(world, rng, query)
            if rng.random() < 0.5:
                trigger(query, rng)
                check(world, names_of(query), is_complete=False)
        # In the end all is copied, and the log goes on.
        for base in world.segments:
            world.copy(base)
        world.append()
        world.copy(max(world.segments))
        while trigger(query, rng):
            pass
    except SparkError as error:
        check_error(world, query, str(error))
        return "failed"
    report = query.reader.reportLatestOffset()
    waits = bool(report and report["partitions_waiting"])
    assert not waits or world.is_disturbed, report
    check(world, names_of(query), is_complete=not waits)
    return "waits" if waits else "complete"


def runs(seeds: range, root: Path) -> dict[str, int]:
    ends: dict[str, int] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataLossWarning)
        for seed in seeds:
            end = run(seed, root / str(seed))
            ends[end] = ends.get(end, 0) + 1
            shutil.rmtree(root / str(seed))
    return ends


def test_every_record_comes_once_or_the_stream_says_which_do_not(tmp_path: Path) -> None:
    ends = runs(range(100), tmp_path)
    assert ends["complete"] > 20, ends


@pytest.mark.slow
def test_every_record_comes_once_or_the_stream_says_which_do_not_at_length(tmp_path: Path) -> None:
    ends = runs(range(100, 2100), tmp_path)
    assert ends["complete"] > 400, ends
