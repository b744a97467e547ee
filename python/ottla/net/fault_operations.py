"""Faults by their numbers, which a test asks for: see `ottla.broker.faults`."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.broker.faults import SELECTORS, Fault, Names
from ottla.net.limits import MAX_ADVANCE_S
from ottla.net.wanted import Wanted, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.api import Api
    from ottla.broker.broker import Broker
    from ottla.broker.data.disk import DiskFault
    from ottla.net.server import Server

__all__ = ["FaultEntry", "FaultOperations"]

MAX_FAULTS = 1_000
"""Each is looked at for each request."""


class FaultEntry(NamedTuple):
    """A fault that is set.

    Attributes:
        fault: its number.
        disk: what the disk does; empty for a fault of requests.
        api: name of the API; empty for every API.
        error: Kafka's error code, 0 for none.
        is_spent: whether it will not strike again.
    """

    fault: int
    disk: str
    api: str
    error: int
    topic: str | None
    partition: int | None
    group: str | None
    transactional_id: str | None
    client: str | None
    hits: int
    is_paused: bool
    is_spent: bool


class FaultOperations:
    """All that can be asked of faults, on any thread; it is done on the server's."""

    def __init__(self, server: Server[Broker]) -> None:
        self._server = server
        self._faults: dict[int, Fault | DiskFault] = {}
        self._numbers = count(1)

    def fail(
        self,
        api: str | int | None = None,
        *,
        error: int | str = 0,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        client: str | None = None,
        times: int | None = None,
        when: Callable[[Any], bool] | None = None,
        after: bool = False,
        disconnect: bool = False,
        delay: float = 0.0,
        corrupt: bool = False,
        observe: bool = False,
    ) -> int:
        """Sets a fault, see `ottla.testing.Broker.fail`; returns its number.

        Raises:
            ValueError: no such API or error, or a limit that the API's requests do not name.
        """
        code = _error_code(error)
        _check_limits(topic, partition, group, transactional_id, client)
        names = Names(topic, partition, group, transactional_id)
        if times is not None and times < 1:
            raise ValueError(f"times is {times}: a fault strikes once at least")
        if not 0 <= delay <= MAX_ADVANCE_S:
            raise ValueError(f"delay is {delay}, expected 0 to {MAX_ADVANCE_S:,} seconds")

        is_limited = not {topic, partition, group, transactional_id} <= {None}
        _check_deeds(
            observe=observe,
            error=bool(code),
            after=after,
            disconnect=disconnect,
            delay=bool(delay),
            corrupt=corrupt,
            is_limited=is_limited,
        )

        def add(broker: Broker) -> int:
            row = None if api is None else _api(broker, api)
            _check_names(row, names)
            self._make_room(broker)
            number = next(self._numbers)
            self._faults[number] = broker.faults.add(
                Fault(
                    row,
                    error=code,
                    names=names,
                    client=client,
                    times=times,
                    when=when,
                    after=after,
                    disconnect=disconnect,
                    delay_ms=round(delay * 1000),
                    corrupt=corrupt,
                    observe=observe,
                )
            )
            return number

        return self._server.run(add)

    def fail_disk(
        self, kind: str, *, topic: str | None = None, partition: int | None = None
    ) -> int:
        """Sets a fault of the disk, see `ottla.testing.Broker.fail_disk`; returns its number.

        Raises:
            ValueError: there is no such fault, or the broker has its logs in memory.
        """

        def add(broker: Broker) -> int:
            self._make_room(broker)
            fault = broker.storage.fail_disk(kind, Names(topic, partition))
            number = next(self._numbers)
            self._faults[number] = fault
            return number

        return self._server.run(add)

    def _make_room(self, broker: Broker) -> None:
        """Forgets a fault that strikes no more; what it has struck can be read until then."""
        if len(self._faults) < MAX_FAULTS:
            return
        set_now = {*broker.faults, *broker.storage.disk_faults}
        for number, fault in self._faults.items():
            if fault not in set_now:
                del self._faults[number]
                return
        raise ValueError(f"{MAX_FAULTS:,} faults are set already: remove some")

    def faults(self) -> list[FaultEntry]:
        """Returns all faults that are set."""
        return self._server.run(
            lambda broker: [
                FaultEntry(
                    number,
                    getattr(fault, "kind", ""),
                    "" if fault.api is None else fault.api.title,
                    fault.error,
                    *fault.names,
                    fault.client,
                    fault.hits,
                    fault.is_paused,
                    fault.is_spent,
                )
                for number, fault in self._faults.items()
                if fault in {*broker.faults, *broker.storage.disk_faults}
            ]
        )

    def hits(self, fault: int) -> int:
        """Returns how often a fault has struck."""
        return self._server.run(lambda _: self._fault(fault).hits)

    def pause(self, fault: int) -> None:
        """Has requests that match wait, unanswered, until `release` or `remove`."""

        def pause(_: Broker) -> None:
            found = self._fault_of_requests(fault)
            if found.is_an_error_of_an_entity:
                raise ValueError(
                    f"fault {fault} is an error of what it is limited to, which no request waits "
                    f"for: pause one without an error"
                )
            found.is_paused = True

        self._server.run(pause)

    def release(self, fault: int) -> None:
        """Lets requests go on that wait, and those to come."""

        def release(broker: Broker) -> None:
            found = self._fault_of_requests(fault)
            found.is_paused = False
            broker.waiting.wake(("fault", found))

        self._server.run(release)

    def remove(self, fault: int) -> None:
        """Takes a fault away; nothing if it is gone."""

        def remove(broker: Broker) -> None:
            found = self._faults.get(fault)
            if isinstance(found, Fault):
                broker.faults.remove(found)
                broker.waiting.wake(("fault", found))
            elif found is not None:
                broker.storage.mend_disk(found)

        self._server.run(remove)

    def _fault_of_requests(self, number: int) -> Fault:
        found = self._fault(number)
        if not isinstance(found, Fault):
            raise ValueError(  # noqa: TRY004 - the number is wrong, whatever it stands for
                f"fault {number} is one of the disk: no requests wait for it"
            )
        return found

    def _fault(self, number: int) -> Fault | DiskFault:
        found = self._faults.get(number)
        if found is None:
            numbers = ", ".join(map(str, self._faults)) or "none"
            raise ValueError(f"there is no fault {number}: set are {numbers}")
        return found

    def wait(self, fault: int, hits: int = 1) -> Wanted:
        """Returns what to wait for until a fault has struck so often."""
        found = self._server.run(lambda _: self._fault(fault))

        def look() -> str:
            return "" if found.hits >= hits else f"it has struck {found.hits} times"

        return Wanted(f"the fault was to strike {hits} times", look)


def _error_code(error: int | str) -> int:
    from ottla.protocol.error_code import ErrorCode, name_of

    if isinstance(error, int):
        name_of(error)
        return error
    code = getattr(ErrorCode, error.upper(), None)
    if not isinstance(code, int):
        names = [name for name in vars(ErrorCode) if name.isupper()]
        raise ValueError(  # noqa: TRY004 - the value is wrong, which happens to be a text
            f"{error!r} is no error of Kafka's protocol{nearest(error.upper(), names)}"
        )
    return code


def _check_limits(
    topic: object, partition: object, group: object, transactional_id: object, client: object
) -> None:
    """Refuses what no request has, so that the fault would never strike."""
    texts = {"topic": topic, "group": group, "transactional_id": transactional_id, "client": client}
    for name, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} is {value!r}, expected a text")
    if partition is not None and not (isinstance(partition, int) and partition >= 0):
        raise ValueError(f"partition is {partition!r}, expected a number from 0 on")


def _check_deeds(
    *, observe: bool, error: bool, after: bool, is_limited: bool, **other: bool
) -> None:
    """Refuses deeds of which one would keep another from being done."""
    others = [name for name, is_set in other.items() if is_set]
    if observe and (error or after or others):
        raise ValueError("observe=True changes nothing: leave out what else the fault is to do")
    if error and other["disconnect"]:
        raise ValueError("a fault answers with an error or disconnects: leave out one of them")
    if error and is_limited and others and not after:
        raise ValueError(
            f"an error of a topic, partition, group or transactional id comes without "
            f"{' and '.join(others)}: set that as a fault of its own"
        )


def _api(broker: Broker, api: str | int) -> Api:
    plain = str(api).replace("_", "").lower()
    for row in broker.apis.values():
        if row.key == api or row.name.replace("_", "") == plain:
            return row
    names = [row.title for row in broker.apis.values()]
    raise ValueError(f"{api!r} is no API that this broker serves{nearest(str(api), names)}")


def _check_names(api: Api | None, names: Names) -> None:
    for selector, value in zip(SELECTORS, names, strict=True):
        if value is not None and api is not None and selector not in api.selectors:
            known = ", ".join(sorted(api.selectors)) or "nothing"
            raise ValueError(
                f"requests of {api.title} name no {selector}: a fault of theirs can be limited "
                f"to {known}, and to a client"
            )
