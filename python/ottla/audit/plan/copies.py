"""Finds the directories that are copies of one partition.

Directories are copies of one partition if they have its name, are of one cluster as far as
`meta.properties` says, and

- come from paths given as replicas (``--replica name=path``), or
- are below different given paths (``ottla audit A B C``), or
- are below one path, in log directories of different brokers, with cluster and broker known.

A copy has the name of its replica if one was given, else of its path or log directory. Two log
directories of one broker below one path that hold the same partition are not copies: a broker with
both in `log.dirs` does not start.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ottla.audit.catalogue.findings import make_finding
from ottla.logs.metadata import read_meta_properties

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.audit.catalogue.finding import PlacedFinding
    from ottla.logs.inventory import Inventory, Partition


class Copies(NamedTuple):
    """The copies of one partition, by name."""

    names: tuple[str, ...]
    partitions: tuple[Partition, ...]


class _Place(NamedTuple):
    """A directory of a partition, and where it comes from."""

    partition: Partition
    source: bytes
    name: str | None
    cluster: str | None
    broker: str | None
    directory_id: str | None


class Found(NamedTuple):
    """What directories are to each other."""

    copies: list[Copies]
    """Partitions with several copies."""
    repeated: list[tuple[Partition, ...]]
    """Directories of one partition that one broker has: it does not start with them."""
    findings: list[PlacedFinding]
    """Findings about these."""


def find_copies(inventory: Inventory, partitions: Iterable[Partition]) -> Found:
    """Returns which directories are copies of one partition, and which one broker has twice."""
    together: dict[tuple[str, int], list[Partition]] = {}
    for partition in partitions:
        if partition.state == "live" and partition.is_whole and partition.topic is not None:
            key = partition.topic, partition.partition or 0
            together.setdefault(key, []).append(partition)
    known: dict[bytes, dict[str, str]] = {}
    copies: list[Copies] = []
    findings: list[PlacedFinding] = []
    twice: list[tuple[Partition, ...]] = []
    for several in together.values():
        if len(several) == 1:
            continue
        places = [_place(inventory, partition, known) for partition in several]
        for one_cluster in _by_cluster(places):
            chosen, repeated = _by_broker(inventory, one_cluster)
            findings += (_repeated(inventory, first, second) for first, second in repeated)
            twice += _of_one_broker(repeated)
            if len(chosen) > 1:
                names, chosen_places = zip(*sorted(chosen.items()), strict=True)
                copies.append(Copies(names, tuple(place.partition for place in chosen_places)))
    return Found(copies, twice, findings)


def _of_one_broker(repeated: Iterable[tuple[_Place, _Place]]) -> list[tuple[Partition, ...]]:
    groups: dict[bytes, list[Partition]] = {}
    for first, second in repeated:
        group = groups.setdefault(first.partition.directory, [first.partition])
        group.append(second.partition)
    return [tuple(group) for group in groups.values()]


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
    """Groups places by cluster; places given as replicas form a group of their own."""
    named = [place for place in places if place.name is not None]
    rest = [place for place in places if place.name is None]
    clusters = {place.cluster for place in rest if place.cluster is not None}
    if len(clusters) <= 1:
        return [named + rest]
    # Places without a cluster id could be of any cluster.
    groups = [[place for place in rest if place.cluster == cluster] for cluster in sorted(clusters)]
    return [named, *groups]


def _by_broker(
    inventory: Inventory, places: Sequence[_Place]
) -> tuple[dict[str, _Place], list[tuple[_Place, _Place]]]:
    """Returns one place per copy by name, and pairs of places that conflict within one broker."""
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
        beside: dict[bytes, _Place] = {}
        for place in of_source:
            # `orders-0` and `orders-00`: to a broker both numbers are 0.
            first = beside.setdefault(os.path.dirname(place.partition.directory), place)
            if first is not place:
                repeated.append((first, place))
                continue
            # Without cluster and broker id the owner is unknown. A backup has the directory id of
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


def _repeated(inventory: Inventory, first: _Place, second: _Place) -> PlacedFinding:
    directory = second.partition.directory
    other = inventory.display(first.partition.directory)
    if os.path.dirname(first.partition.directory) == os.path.dirname(directory):
        message = (
            f"this partition is here and in {other} of the same log directory: a broker does not"
            " start with both"
        )
    else:
        message = (
            f"broker {second.broker} has this partition here and in {other}: with both among its"
            " log.dirs it does not start"
        )
    return make_finding(
        "duplicate-partition",
        message,
        path=directory,
        directory=directory,
        expected="one directory",
        found="two directories",
    )
