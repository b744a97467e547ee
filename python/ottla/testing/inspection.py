"""What a test sees of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.net.log_parts import ALL_BYTES

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from ottla.audit import AuditResult
    from ottla.broker.inspection import Group, Producer, Transaction
    from ottla.broker.journal import RequestEntry
    from ottla.net.log_parts import LogPart
    from ottla.records import Columns, Record
    from ottla.testing.desk import Desk
    from ottla.testing.options import Options

__all__ = ["Inspection"]


class Inspection:
    """Logs, groups, transactions, producers and requests of a broker, as they are now."""

    _desk: Desk
    _options: Options
    _folders: list[TemporaryDirectory[str]]

    # Logs.

    def records(self, topic: str, partition: int | None = None) -> list[Record]:
        """Returns the records of a topic, by partition and offset, without control records.

            >>> from ottla.testing import Broker
            >>> with Broker(topics=["orders"]) as broker:
            ...     broker.records("orders")
            []

        Records of transactions that were aborted or are not over are among them.

        Raises:
            KafkaError: there is no such topic or partition.
        """
        from ottla.records import read  # noqa: PLC0415 - it is half of the start

        return [
            record
            for start_offset, data in self._logs(topic, partition)
            for record in read(data)
            if record.offset >= start_offset
        ]

    def columns(self, topic: str, partition: int | None = None) -> Columns:
        """Returns the records of a topic as columns, as `ottla.read_columns` does.

            >>> from ottla.testing import Broker
            >>> with Broker(topics=["orders"]) as broker:
            ...     len(broker.columns("orders"))
            0

        Raises:
            KafkaError: there is no such topic or partition.
        """
        from ottla.records import read_columns  # noqa: PLC0415 - as above

        return read_columns(
            b"".join(
                _from_offset(start_offset, data)
                for start_offset, data in self._logs(topic, partition)
            )
        )

    def _logs(self, topic: str, partition: int | None) -> list[tuple[int, bytes]]:
        """Returns of each partition where its log begins, and its batches."""
        parts: list[LogPart] = self._desk.call(
            "log", topic=topic, partition=partition, max_bytes=ALL_BYTES
        )
        logs = []
        for first in parts:
            part, data = first, [first.data]
            while part.next_offset < part.end_offset:
                (part,) = self._desk.call(
                    "log",
                    topic=topic,
                    partition=first.partition,
                    offset=part.next_offset,
                    max_bytes=ALL_BYTES,
                )
                if not part.data:
                    break
                data.append(part.data)
            logs.append((first.start_offset, b"".join(data)))
        return logs

    def audit(self) -> AuditResult:
        """Returns what an audit says of every log, those of the coordinators included.

            >>> from ottla.testing import Broker
            >>> with Broker(topics=["orders"]) as broker:
            ...     len(broker.audit().findings)
            0

        Logs in a directory are audited where they are. Those in memory are written to one for it,
        which is gone when the broker stops.
        """
        # The audit is a start of its own.
        from tempfile import TemporaryDirectory  # noqa: PLC0415

        from ottla.testing.audited import audited, audited_directory  # noqa: PLC0415

        if self._options.data is not None:
            return audited_directory(self._options.data)
        home = TemporaryDirectory(prefix="ottla-")
        self._folders.append(home)
        names: list[tuple[str, int]] = self._desk.call("logs")
        logs = ((topic, index, self._logs(topic, index)[0][1]) for topic, index in names)
        return audited(home.name, logs)

    # Groups, transactions, producers, requests.

    @property
    def groups(self) -> dict[str, Group]:
        """Groups by id, with members and committed offsets.

        >>> from ottla.testing import Broker
        >>> with Broker(topics=["orders"]) as broker:
        ...     broker.groups
        {}
        """
        groups: dict[str, Group] = self._desk.call("groups")
        return groups

    @property
    def transactions(self) -> dict[str, Transaction]:
        """Transactional ids, with their states.

        >>> from ottla.testing import Broker
        >>> with Broker(topics=["orders"]) as broker:
        ...     broker.transactions
        {}
        """
        transactions: dict[str, Transaction] = self._desk.call("transactions")
        return transactions

    def producers(self, topic: str, partition: int) -> tuple[Producer, ...]:
        """Returns the idempotent producers that a partition knows, by id.

            >>> from ottla.testing import Broker
            >>> with Broker(topics=["orders"]) as broker:
            ...     broker.producers("orders", 0)
            ()

        Raises:
            KafkaError: there is no such topic or partition.
        """
        found: tuple[Producer, ...] = self._desk.call("producers", topic=topic, partition=partition)
        return found

    @property
    def requests(self) -> tuple[RequestEntry, ...]:
        """The last requests that it has got, 10,000 at most, oldest first.

        >>> from ottla.testing import Broker
        >>> with Broker(topics=["orders"]) as broker:
        ...     broker.requests
        ()
        """
        return self.last_requests(None)

    def last_requests(self, count: int | None) -> tuple[RequestEntry, ...]:
        """Returns the last requests that it has got, so many at most, oldest first.

        >>> from ottla.testing import Broker
        >>> with Broker(topics=["orders"]) as broker:
        ...     broker.last_requests(20)
        ()
        """
        requests: tuple[RequestEntry, ...] = self._desk.call("requests", last=count)
        return requests

    @property
    def request_count(self) -> int:
        """How many requests it has got since it began.

        >>> from ottla.testing import Broker
        >>> with Broker(topics=["orders"]) as broker:
        ...     broker.request_count
        0
        """
        count: int = self._desk.call("request_count")
        return count


def _from_offset(start_offset: int, data: bytes) -> bytes:
    """Returns batches without the records of the first that are before an offset."""
    from ottla.records import NewRecord, build_batch, read_batches  # noqa: PLC0415 - as above

    first = next(iter(read_batches(data)), None)
    if first is None or first.base_offset >= start_offset:
        return data
    kept = [
        NewRecord(
            record.key,
            record.value,
            record.timestamp,
            record.raw_headers,
            offset_delta=record.offset - first.base_offset,
        )
        for record in first.records()
        if record.offset >= start_offset
    ]
    rest = data[first.size :]
    return build_batch(kept, base_offset=first.base_offset) + rest if kept else rest
