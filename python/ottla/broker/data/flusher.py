"""What has to be on the disk before an answer leaves: which logs, and who waits for them.

The plane makes a job of a log's files, a worker runs it, and the broker's thread takes it back. One
round of jobs is on its way at a time, for all logs that need one; what comes meanwhile is in the
next. So a sync is shared by all who wait for it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ottla.errors import KafkaError
from ottla.protocol.api_key import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ottla.broker.plane import DataPlane

__all__ = ["Flusher"]

_WRITERS = frozenset(
    {
        ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP,
        ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.WRITE_TXN_MARKERS, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DELETE_GROUPS,
        ApiKey.OFFSET_DELETE, ApiKey.CONSUMER_GROUP_HEARTBEAT,
    }
)  # fmt: skip
"""APIs whose answers say what a coordinator's log must not forget."""


class _Job(Protocol):
    def run(self) -> None: ...


class Flusher:
    """Syncs logs, and holds answers until that is done.

    Args:
        plane: whose logs.
        fail: called with the error of a sync that failed.
        check: called with the log that is about to be synced, by whoever syncs; what it raises
            counts as what the system reports.

    Attributes:
        submit: has a sealed job done, and calls back with its error or `None`; by default at once.
        later: calls back after so many milliseconds of the broker's time.
    """

    def __init__(
        self,
        plane: DataPlane,
        fail: Callable[[BaseException], None],
        check: Callable[[int], None],
    ) -> None:
        self.submit: Callable[
            [Callable[[], None], Callable[[BaseException | None], None]], None
        ] = _at_once
        self._plane: Any = plane
        self._fail = fail
        self._check = check
        self.later: Callable[[int, Callable[[], None]], None] = _never
        self._intervals: dict[int, int] = {}
        self._ages: dict[int, int] = {}
        self._aging: dict[int, None] = {}
        self._synced: dict[int, int] = {}
        self._due: dict[int, None] = {}
        self._held: list[Callable[[bool], None]] = []
        self._running: dict[int, tuple[int, _Job]] = {}
        self._held_by_running: list[Callable[[bool], None]] = []
        self._is_running = False
        self._is_touched = False
        self._has_failed = False
        self._has_lost = False

    def set_interval(self, handle: int, messages: int) -> None:
        """Has a log synced after so many records; what is not set is left to the system."""
        if handle not in self._intervals and not self._is_synced(handle):
            self._due[handle] = None
        self._intervals[handle] = messages
        self._synced.setdefault(handle, self._plane.offsets(handle)[3])

    def set_age(self, handle: int, age_ms: int) -> None:
        """Has a log synced so long after a record at the latest; nobody waits for that."""
        self._ages[handle] = age_ms

    def forget_age(self, handle: int) -> None:
        """Leaves it to the system when a log is synced, unless there are many records."""
        self._ages.pop(handle, None)

    def forget_interval(self, handle: int) -> None:
        """Leaves a log to the system however many records it gets."""
        self._intervals.pop(handle, None)
        self._synced.pop(handle, None)

    def forget(self, handle: int) -> None:
        """A log is closed."""
        self.forget_age(handle)
        self.forget_interval(handle)
        for known in (self._aging, self._due, self._running):
            known.pop(handle, None)

    def begin(self) -> None:
        """A request, or what is due, is about to be served."""
        self._is_touched = False

    def moved(self, handles: Iterable[int]) -> None:
        """Logs have got records."""
        for handle in handles:
            if handle in self._ages and handle not in self._aging:
                self._aging[handle] = None
                self.later(self._ages[handle], partial(self._come_of_age, handle))
            interval = self._intervals.get(handle)
            if interval is None:
                continue
            if interval > 1 and self._plane.offsets(handle)[3] < self._synced[handle] + interval:
                continue
            self._due[handle] = None
            self._is_touched = True

    def repeated(self, handles: Iterable[int]) -> None:
        """Logs were sent what they have had before: whoever repeats it waits for the same sync."""
        self._is_touched |= any(
            handle in self._intervals and (handle in self._due or handle in self._running)
            for handle in handles
        )

    def _come_of_age(self, handle: int) -> None:
        if handle not in self._aging:
            return
        del self._aging[handle]
        if handle in self._ages and not self._is_synced(handle):
            self._due[handle] = None

    def must_wait(self, api_key: int) -> bool:
        """Whether an answer that is ready has to wait for a sync."""
        if self._has_failed:
            return False
        if api_key == ApiKey.PRODUCE:
            return self._is_touched
        return api_key in _WRITERS and (self._is_running or bool(self._due))

    def hold(self, release: Callable[[bool], None]) -> None:
        """Calls back once all that is due is synced, with whether that succeeded.

        Where a log of the round is offline, nobody of the round is told that it did.
        """
        if self._due:
            self._held.append(release)
        elif self._is_running:
            self._held_by_running.append(release)
        else:
            release(not self._has_failed)

    def unsynced(self, handles: Iterable[int]) -> tuple[int, ...]:
        """Returns those of these logs that are not known to be on the disk as they are now."""
        return tuple(handle for handle in handles if not self._is_synced(handle))

    def _is_synced(self, handle: int) -> bool:
        if handle in self._due or handle in self._running:
            return False
        if self._intervals.get(handle) == 1:
            return True
        try:
            log_start_offset, _, _, log_end_offset = self._plane.offsets(handle)
            return log_start_offset == log_end_offset or self._plane.flush_job(handle) is None
        except (OSError, KafkaError):
            # It is offline, and nothing is done to it any more.
            return True

    def when_synced(self, handles: Iterable[int], then: Callable[[bool], None]) -> None:
        """Calls back once logs are on the disk as they are now, with whether they are."""
        unsynced = self.unsynced(handles)
        if self._has_failed or not unsynced:
            then(not self._has_failed)
            return
        self._due.update(dict.fromkeys(unsynced))
        self._held.append(then)

    def end(self) -> None:
        """The request is served, or what was due: begins to sync what it has left."""
        if self._is_running or self._has_failed or not self._due:
            return
        handles, self._due = tuple(self._due), {}
        self._held_by_running, self._held = self._held, []
        self._is_running = True
        try:
            for handle in handles:
                if self._plane.is_offline(handle):
                    # What it has is not known, and its own error has been told where it came up.
                    self._has_lost = True
                    continue
                end_offset = self._plane.offsets(handle)[3]
                job = self._plane.flush_job(handle)
                if job is not None:
                    self._running[handle] = end_offset, job
        except (OSError, KafkaError) as error:
            self._take_back(error)
            return
        jobs = [(handle, job) for handle, (_, job) in self._running.items()]
        failed: list[tuple[int, OSError]] = []

        def take_back(error: BaseException | None) -> None:
            # A log that was deleted meanwhile has no files.
            errors = (fault for handle, fault in failed if handle in self._running)
            self._take_back(error or next(errors, None))

        self.submit(lambda: self._run(jobs, failed), take_back)

    def _run(self, jobs: Iterable[tuple[int, _Job]], failed: list[tuple[int, OSError]]) -> None:
        for handle, job in jobs:
            try:
                self._check(handle)
                job.run()
            except OSError as error:
                failed.append((handle, error))

    def sync_sealed(self) -> None:
        """Syncs segments that are written no more."""
        for handle in self._plane.unflushed():
            self._due[handle] = None
        self.end()

    def _take_back(self, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, OSError | KafkaError):
            raise error
        done, self._running = self._running, {}
        held, self._held_by_running = self._held_by_running, []
        self._is_running = False
        has_lost, self._has_lost = self._has_lost, False
        if error is None:
            for handle, (end_offset, job) in done.items():
                self._plane.flushed(handle, job)
                if handle in self._synced:
                    self._synced[handle] = end_offset
        else:
            self._has_failed = True
            held += self._held
            self._held, self._due = [], {}
            self._fail(error)
        for release in held:
            release(error is None and not has_lost)
        self.end()


def _at_once(job: Callable[[], None], then: Callable[[BaseException | None], None]) -> None:
    try:
        job()
    except OSError as error:
        then(error)
    else:
        then(None)


def _never(_delay_ms: int, _action: Callable[[], None]) -> None:
    """Has no time."""
