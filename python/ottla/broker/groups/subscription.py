"""What consumers of the classic protocol tell each other: which topics they subscribe to.

The coordinator passes subscriptions and assignments on unread (KIP-62). It reads the topics only,
to know which committed offsets are of topics that nobody reads any more (KIP-496).
"""

import struct


def subscribed_topics(metadata: bytes) -> tuple[str, ...] | None:
    """Returns the topics of a `ConsumerProtocolSubscription`, `None` where it is none.

    Topics stand at the same place in all of its versions.
    """
    try:
        _, count = struct.unpack_from(">hi", metadata)
        position = 6
        topics = []
        for _ in range(count):
            (size,) = struct.unpack_from(">h", metadata, position)
            end = position + 2 + size
            if size < 0 or end > len(metadata):
                return None
            topics.append(metadata[position + 2 : end].decode())
            position = end
    except (struct.error, UnicodeDecodeError):
        return None
    return tuple(topics)
