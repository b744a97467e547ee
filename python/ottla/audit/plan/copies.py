"""Which directories are copies of one partition.

Directories are copies of one partition when they have its name, belong to one cluster as far as
`meta.properties` tells, and

- come from paths that were named as replicas (``--replica name=path``), or
- lie under different paths that were given (``ottla audit A B C``), or
- lie under one path, in log directories of different brokers, cluster and broker known.

A copy has the name it was given, else that of the path or log directory it comes from. Two log
directories of one broker under one path that hold the same partition are no copies: a broker with
both as `log.dirs` does not start.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.audit.catalogue.findings import Finding
from ottla.logs.metadata import read_meta_properties

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.logs.inventory import Inventory, Partition


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies of one partition, by name."""

    names: tuple[str, ...]
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a directory of a partition comes from."""

    partition: Partition
    source: bytes
    name: str | None
    cluster: str | None
    broker: str | None
    directory_id: str | None


def find_copies(
    inventory: Inventory, partitions: Iterable[Partition]
) -> tuple[list[Copies], list[Finding]]:
    """The partitions of which there are several copies, and what is wrong with that already."""
    together: dict[tuple[str, int], list[Partition]] = {}
    for partition in partitions:
        if partition.state == "live" and partition.is_whole and partition.topic is not None:
            key = partition.topic, partition.partition or 0
            together.setdefault(key, []).append(partition)
    known: dict[bytes, dict[str, str]] = {}
    copies: list[Copies] = []
    findings: list[Finding] = []
    for several in together.values():
        if len(several) == 1:
            continue
        places = [_place(inventory, partition, known) for partition in several]
        for one_cluster in _by_cluster(places):
            chosen, repeated = _by_broker(inventory, one_cluster)
            findings += (_repeated(inventory, first, second) for first, second in repeated)
            if len(chosen) > 1:
                names, chosen_places = zip(*sorted(chosen.items()), strict=True)
                copies.append(Copies(names, tuple(place.partition for place in chosen_places)))
    return copies, findings


def _place(
    inventory: Inventory, partition: Partition, known: dict[bytes, dict[str, str]]
) -> _Place:
    above = os.path.dirname(partition.directory)
    if above not in known:
        known[above] = read_meta_properties(above, inventory.files)
    properties = known[above]
    source, name = inventory.source_of(partition.directory)
    return _Place(
        partition=partition,
        source=source,
        name=name,
        cluster=properties.get("cluster.id"),
        broker=properties.get("node.id", properties.get("broker.id")),
        directory_id=properties.get("directory.id"),
    )


def _by_cluster(places: Sequence[_Place]) -> list[list[_Place]]:
    """Places that may be of one cluster; who named them knows better than their files."""
    named = [place for place in places if place.name is not None]
    rest = [place for place in places if place.name is None]
    clusters = {place.cluster for place in rest if place.cluster is not None}
    if len(clusters) <= 1:
        return [named + rest]
    # Of those that do not say where they belong nobody can tell.
    groups = [[place for place in rest if place.cluster == cluster] for cluster in sorted(clusters)]
    return [named, *groups]


def _by_broker(
    inventory: Inventory, places: Sequence[_Place]
) -> tuple[dict[str, _Place], list[tuple[_Place, _Place]]]:
    """One place for each copy by name, and pairs of places that one broker cannot both have."""
    chosen: dict[str, _Place] = {}
    repeated: list[tuple[_Place, _Place]] = []
    per_source: dict[tuple[str | None, bytes], list[_Place]] = {}
    for place in places:
        key = (place.name, b"") if place.name is not None else (None, place.source)
        per_source.setdefault(key, []).append(place)
    for (name, source), of_source in per_source.items():
        if len(of_source) == 1:
            chosen[name or inventory.display(source)] = of_source[0]
            continue
        brokers: dict[str, _Place] = {}
        for place in of_source:
            # Without its cluster and number nobody can tell whose it is; a backup has the id of
            # its original.
            if place.cluster is None or place.broker is None:
                continue
            first = brokers.setdefault(place.broker, place)
            ids = first.directory_id, place.directory_id
            if first is not place and (None in ids or ids[0] != ids[1]):
                repeated.append((first, place))
        for place in brokers.values():
            above = inventory.display(os.path.dirname(place.partition.directory))
            chosen[above if name is None else f"{name}: {above}"] = place
    return chosen, repeated


def _repeated(inventory: Inventory, first: _Place, second: _Place) -> Finding:
    directory = inventory.display(second.partition.directory)
    other = inventory.display(first.partition.directory)
    return Finding(
        name="duplicate-partition",
        severity="warning",
        file=directory,
        topic=second.partition.topic,
        partition=second.partition.partition,
        message=f"broker {second.broker} has this partition here and in {other}: with both among"
        " its log.dirs it does not start",
        expected="one directory",
        found="two directories",
    )
