"""How a function of Ottla runs in a Python worker.

PySpark pickles a module's function by reference, so a worker without Ottla fails before any line of
ours runs, with an error that names no remedy. What goes to the workers here are nested functions,
which are pickled by value: they first find what `ottla.spark.ship` put there, then import.
"""

from __future__ import annotations

import pickle
import platform
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ottla import __version__
from ottla.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

__all__ = [
    "by_value",
    "find_ottla",
    "remember_shipped",
    "run_in_worker",
    "run_rows_in_worker",
    "run_table_in_worker",
    "where_it_is_missing",
]

_shipped: list[str] = []


def remember_shipped(directory: str) -> None:
    """Have the functions made from now on look for this directory first.

    Args:
        directory: name of what an archive is unpacked to, without a path.
    """
    _shipped[:] = [directory]


def _find_shipped(version: str, shipped: tuple[str, ...]) -> Callable[[], str | None]:
    """Make the function that gives the directory of a shipped Ottla, pickled by value."""

    def unpacked() -> str | None:
        import os

        places = [os.getcwd()]
        try:
            from pyspark.core.files import SparkFiles

            root = SparkFiles.getRootDirectory()
        except ImportError:
            # The workers of Spark Connect alone have no such module, and unpack here.
            return among(places)
        # A stream is planned and read in a directory that nobody makes, or above its own: what
        # was shipped lies above, or in the directory of a session beside.
        above = root if os.path.isdir(root) else os.path.dirname(root)
        beside = [above, *(os.path.join(above, name) for name in names(above))]
        return among([root, *places]) or among(beside)

    def among(places: list[str]) -> str | None:
        import os

        found = [
            (order, os.path.join(place, name))
            for place in places
            for name in names(place)
            if (order := rank(name)) is not None
        ]
        return min(found)[1] if found else None

    def names(place: str) -> list[str]:
        import os

        try:
            return sorted(os.listdir(place))
        except OSError:
            return []

    def rank(name: str) -> int | None:
        if name in shipped:
            return shipped.index(name)
        # What was shipped by another process of the driver's than the one that pickled.
        return len(shipped) if f"{name}-".startswith(f"ottla-{version}-") else None

    return unpacked


def find_ottla() -> Callable[[], None]:
    """Make the function that lets a worker import Ottla; it is pickled by value.

    The directory that `ottla.spark.ship` or ``--archives`` put beside the worker goes before
    an installed package. Calling the function again costs a dictionary look-up.

    Raises:
        ImportError: from the function, in the worker: there is no Ottla, it cannot be loaded,
            or it has another version than the driver's.
    """
    version = __version__
    unpacked = _find_shipped(version, tuple(_shipped))

    def find() -> None:
        import importlib
        import os
        import platform
        import sys

        if "ottla" not in sys.modules:
            directory = unpacked()
            if directory is not None and directory not in sys.path:
                sys.path.insert(0, directory)
                importlib.invalidate_caches()
        here = (
            f"the Python worker {sys.executable} ({platform.python_version()}) on {platform.node()}"
        )
        remedy = (
            "call ottla.spark.ship(spark) before the job, "
            f"or install ottla=={version} on the workers"
        )
        try:
            import ottla
        except ImportError as error:
            raise ImportError(f"{here} cannot import Ottla ({error}): {remedy}") from error
        if ottla.__version__ != version:
            raise ImportError(
                f"{here} has Ottla {ottla.__version__} in {os.path.dirname(ottla.__file__)}, "
                f"the driver has {version}: {remedy}"
            )

    return find


@contextmanager
def where_it_is_missing() -> Iterator[None]:
    """Tell of a package that a task lacks on which worker it has to be installed.

    Raises:
        MissingDependencyError: in place of one from the block, with the worker's name.
    """
    try:
        yield
    except MissingDependencyError as error:
        raise MissingDependencyError(
            f"the Python worker {sys.executable} on {platform.node()} lacks a package that has to"
            f" be installed there: {error}"
        ) from error


def _load(target: str, payload: object) -> Callable[[], Callable[[Any], Any]]:
    """Make the function that finds in a worker what is to run there."""
    find = find_ottla()
    # As bytes: unpickling objects of Ottla imports it, which works only behind `find`.
    pickled = pickle.dumps(payload, protocol=pickle.HIGHEST_PROTOCOL)
    module, _, name = target.partition(":")

    def load() -> Callable[[Any], Any]:
        import importlib
        import pickle

        find()
        function = getattr(importlib.import_module(module), name)
        loaded: Callable[[Any], Any] = function(pickle.loads(pickled))
        return loaded

    return load


def _run_over(target: str, payload: object) -> Callable[[Iterator[Any]], Iterator[Any]]:
    load = _load(target, payload)

    def run_over(items: Iterator[Any]) -> Iterator[Any]:
        function = load()
        from ottla.spark.work.worker import where_it_is_missing

        with where_it_is_missing():
            yield from function(items)
        # A worker with input left is thrown away, and the next task waits for a new one.
        for _ in items:
            pass

    return run_over


def by_value(target: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What `__reduce__` gives for an object that is made anew where Ottla must be found first.

    Args:
        target: ``"module:class"``.
        arguments: of the class; anything the standard pickle takes.
    """
    find = find_ottla()
    pickled = pickle.dumps(arguments, protocol=5)

    def make(target: str, pickled: bytes) -> Any:
        import importlib
        import pickle

        find()
        module, _, name = target.partition(":")
        # Bytes of the driver's.
        return getattr(importlib.import_module(module), name)(*pickle.loads(pickled))

    return make, (target, pickled)


def run_in_worker(
    target: str, payload: object
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make a function for `mapInArrow` that runs one of Ottla's in the worker.

    Args:
        target: ``"module:function"``. The function takes the payload and gives a function from an
            iterator of record batches to one of record batches.
        payload: any object the standard pickle takes; it is unpickled in each task.

    Example:
        >>> function = run_in_worker("functools:partial", iter)  # hands batches through
        >>> frame = spark.range(8).mapInArrow(function, "id bigint")  # doctest: +SKIP
    """
    return _run_over(target, payload)


def run_rows_in_worker(target: str, payload: object) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Make a function for `RDD.mapPartitions` that runs one of Ottla's in the worker.

    Args:
        target: ``"module:function"``. The function takes the payload and gives a function from an
            iterator of rows to one of rows.
        payload: any object the standard pickle takes; it is unpickled in each task.
    """
    return _run_over(target, payload)


def run_table_in_worker(target: str, payload: object) -> Callable[[pa.Table], pa.Table]:
    """Make a function for `applyInArrow` that runs one of Ottla's in the worker.

    Args:
        target: ``"module:function"``. The function takes the payload and gives a function from a
            table to a table.
        payload: any object the standard pickle takes; it is unpickled for each group.
    """
    load = _load(target, payload)

    def run_table(table: pa.Table) -> pa.Table:
        function = load()
        from ottla.spark.work.worker import where_it_is_missing

        with where_it_is_missing():
            result: pa.Table = function(table)
        return result

    return run_table
