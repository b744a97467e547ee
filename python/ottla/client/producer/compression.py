"""How much records shrink, so that batches are full once they are compressed.

A batch is limited by what it has before compression, which is larger. Its limit follows the ratio
of the topic's batches before it: down slowly, up at once, as Kafka's own client does.
"""

from __future__ import annotations

__all__ = ["Ratio"]

_IMPROVING = 0.005
_DETERIORATING = 0.05
_MARGIN = 1.05


class Ratio:
    """The ratio of a topic's batches.

    Attributes:
        value: compressed bytes for one that is not.
    """

    def __init__(self) -> None:
        self.value = 1.0

    def observe(self, ratio: float) -> None:
        """A batch came out with a ratio."""
        if ratio > self.value:
            self.value = max(self.value + _DETERIORATING, ratio)
        elif ratio < self.value:
            self.value = max(self.value - _IMPROVING, ratio)

    def reset(self, ratio: float) -> None:
        """A batch was too large for its topic."""
        self.value = max(1.0, ratio)

    def limit(self, batch_size: int) -> int:
        """Returns how many bytes before compression may make a batch of a size."""
        return max(batch_size, int(batch_size / (self.value * _MARGIN)))
