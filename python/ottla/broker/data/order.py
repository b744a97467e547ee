"""What has to be on the disk before a request is served, so that no power cut parts the two.

An offset that is committed says that what is before it was read, and a transaction that is
committed says that its records are there. Both are on the disk as soon as they are answered, or
earlier; so what they speak of has to be there first, at whichever level its topic is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.protocol.api_key import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ottla.broker.image import Image

__all__ = ["logs_before"]


def logs_before(
    api_key: int,
    request: Any,
    image: Image,
    partitions_of: Callable[[str], Iterable[tuple[str, int]]],
) -> Iterator[int]:
    """Yields the logs that a request speaks of as of something that has happened.

    Args:
        partitions_of: returns where the transaction of a transactional id has written.
    """
    names: Iterable[tuple[str, int]] = ()
    if api_key in {ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT}:
        names = _committed(request, image)
    elif api_key == ApiKey.END_TXN and request.committed:
        names = partitions_of(request.transactional_id)
    for topic, index in names:
        partition = image.partition(topic, index)
        if partition is not None:
            yield partition.handle


def _committed(request: Any, image: Image) -> Iterator[tuple[str, int]]:
    for topic in request.topics:
        found = image.topics_by_id.get(topic.topic_id)
        name = topic.name if found is None else found.name
        for each in topic.partitions:
            yield name, each.partition_index
