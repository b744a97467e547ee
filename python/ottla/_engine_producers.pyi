# What a partition knows of its producers, a part of `_engine`.
from typing import Final, final

@final
class RememberedBatch:
    def __new__(
        cls,
        base_sequence: int,
        last_sequence: int,
        base_offset: int,
        last_offset: int,
        max_timestamp_ms: int,
    ) -> RememberedBatch: ...
    def __getnewargs__(self) -> tuple[int, int, int, int, int]: ...
    base_sequence: Final[int]
    last_sequence: Final[int]
    base_offset: Final[int]
    last_offset: Final[int]
    max_timestamp_ms: Final[int]

@final
class ProducerState:
    producer_id: Final[int]
    producer_epoch: Final[int]
    coordinator_epoch: Final[int]
    last_sequence: Final[int]
    last_timestamp_ms: Final[int]
    transaction_first_offset: Final[int | None]
    batches: Final[tuple[RememberedBatch, ...]]

@final
class AbortedTransaction:
    def __new__(
        cls, producer_id: int, *, first_offset: int, last_offset: int, last_stable_offset: int
    ) -> AbortedTransaction: ...
    producer_id: Final[int]
    first_offset: Final[int]
    last_offset: Final[int]
    last_stable_offset: Final[int]
    def to_bytes(self) -> bytes: ...
    def __getnewargs_ex__(self) -> tuple[tuple[int], dict[str, int]]: ...
