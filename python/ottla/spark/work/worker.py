"""Runs functions of Ottla in Python workers.

PySpark pickles a module's function by reference, so a worker without Ottla fails before any code of
Ottla runs, with an error that suggests no remedy. The functions sent here are nested ones, which
are pickled by value: they first find what `ottla.spark.ship` sent, then import it.
"""

from __future__ import annotations

import gc
import pickle
import platform
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import ottla
from ottla import __version__
from ottla.errors import MissingDependencyError
from ottla.spark.work.private import is_connect
from ottla.storage import sending_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = [
    "by_value",
    "find_ottla",
    "keep_modules",
    "owner_of",
    "remember_shipped",
    "run_calls_in_worker",
    "run_groups_in_worker",
    "run_in_worker",
    "run_rows_in_worker",
    "run_table_in_worker",
    "worker_in_errors",
]

_shipped: WeakKeyDictionary[object, str] = WeakKeyDictionary()


def remember_shipped(spark: SparkSession, directory: str) -> None:
    """Makes functions created for a session from now on look for this directory first.

    Args:
        spark: the session; classic ones share their context, and what was sent to it.
        directory: name of the directory that the archive is unpacked to, without a path.
    """
    _shipped[owner_of(spark)] = directory


def owner_of(spark: SparkSession) -> object:
    """Returns what archives are sent to: a session of Spark Connect, or the context of others."""
    return spark if is_connect(spark) else spark.sparkContext


def _shipped_to(spark: SparkSession | None) -> tuple[str, ...]:
    """Returns the directory to look for first in the workers of a session, if there is one."""
    if spark is not None:
        name = _shipped.get(owner_of(spark))
        return () if name is None else (name,)
    # In a process of Spark that plans for a session, a shipped Ottla runs: that one.
    name = Path(ottla.__file__).parent.parent.name
    return (name,) if name.startswith(f"ottla-{__version__}-") else ()


def _find_shipped(version: str, shipped: tuple[str, ...]) -> Callable[[], str | None]:
    """Returns a function, pickled by value, that returns the directory of a shipped Ottla."""

    def unpacked() -> str | None:
        import os

        places = [os.getcwd()]
        try:
            from pyspark import SparkFiles

            root = SparkFiles.getRootDirectory()
        except ImportError:
            # Only workers of Spark Connect lack the module; they unpack archives here.
            return among(places)
        # Streams are planned and read in a directory that does not exist, or above their own:
        # archives are above it, or in the directory of another session beside it.
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
        # Shipped by another process of the driver than the one that pickled this function.
        return len(shipped) if f"{name}-".startswith(f"ottla-{version}-") else None

    return unpacked


def find_ottla(spark: SparkSession | None = None) -> Callable[[], None]:
    """Returns a function, pickled by value, that makes Ottla importable in a worker.

    The directory that `ottla.spark.ship` or ``--archives`` created for the worker takes precedence
    over an installed package. Further calls cost a dictionary lookup.

    Args:
        spark: the session whose workers run the function; None in a process that has no session.

    Raises:
        ImportError: from the function, in the worker: Ottla is missing, cannot be imported, or has
            another version than on the driver.
    """
    version = __version__
    unpacked = _find_shipped(version, _shipped_to(spark))

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


def keep_modules() -> None:
    """Takes what a worker has imported out of what the collector of garbage walks through.

    PySpark collects after each task: of a worker with Ottla, pyarrow and pandas that takes 20 to
    60 ms, more than most tasks, and what was imported stays.
    """
    _freeze(len(sys.modules))


@cache
def _freeze(_modules: int) -> None:
    # Once for each number of modules: what a task leaves in cycles is frozen, too, and never freed.
    gc.freeze()


@contextmanager
def worker_in_errors() -> Iterator[None]:
    """Adds the worker to errors about a missing package.

    Raises:
        MissingDependencyError: in place of one raised in the block, naming the worker.
    """
    try:
        yield
    except MissingDependencyError as error:
        raise MissingDependencyError(
            f"the Python worker {sys.executable} on {platform.node()} lacks a package:"
            f" install it there: {error}"
        ) from error


def _load(
    target: str, payload: object, spark: SparkSession | None
) -> Callable[[], Callable[[Any], Any]]:
    """Returns a function that loads, in a worker, the function to run there."""
    find = find_ottla(spark)
    # As bytes: unpickling objects of Ottla imports it, which works only after `find`.
    with sending_secrets():
        pickled = pickle.dumps(payload, protocol=pickle.HIGHEST_PROTOCOL)
    module, _, name = target.partition(":")

    def load() -> Callable[[Any], Any]:
        import importlib
        import pickle

        find()
        function = getattr(importlib.import_module(module), name)
        from ottla.spark.work.worker import keep_modules

        keep_modules()
        loaded: Callable[[Any], Any] = function(pickle.loads(pickled))
        return loaded

    return load


def _run_over(
    target: str, payload: object, spark: SparkSession | None
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    load = _load(target, payload, spark)

    def run_over(items: Iterator[Any]) -> Iterator[Any]:
        function = load()
        from ottla.spark.work.worker import worker_in_errors

        with worker_in_errors():
            yield from function(items)
        # Spark discards a worker with input left, and the next task waits for a new one.
        for _ in items:
            pass

    return run_over


def by_value(target: str, arguments: tuple[object, ...]) -> tuple[object, ...]:
    """Returns the `__reduce__` of an object to be unpickled where Ottla must be found first.

    Args:
        target: ``"module:class"``.
        arguments: arguments of the class; any objects that can be pickled.
    """
    find = find_ottla()
    with sending_secrets():
        pickled = pickle.dumps(arguments, protocol=5)

    def make(target: str, pickled: bytes) -> Any:
        import importlib
        import pickle

        find()
        module, _, name = target.partition(":")
        # The bytes are from the driver.
        return getattr(importlib.import_module(module), name)(*pickle.loads(pickled))

    return make, (target, pickled)


def run_in_worker(
    target: str, payload: object, spark: SparkSession | None = None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function for `mapInArrow` that runs a function of Ottla in the worker.

    Args:
        target: ``"module:function"``. The function takes the payload and returns a function from
            an iterator of record batches to an iterator of record batches.
        payload: any object that can be pickled; it is unpickled in each task.
        spark: the session of the job: what was shipped to it is found first.

    Example:
        >>> function = run_in_worker("functools:partial", iter)  # passes batches through
        >>> frame = spark.range(8).mapInArrow(function, "id bigint")  # doctest: +SKIP
    """
    return _run_over(target, payload, spark)


def run_rows_in_worker(
    target: str, payload: object, spark: SparkSession | None = None
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Returns a function for `RDD.mapPartitions` that runs a function of Ottla in the worker.

    Args:
        target: ``"module:function"``. The function takes the payload and returns a function from
            an iterator of rows to an iterator of rows.
        payload: any object that can be pickled; it is unpickled in each task.
        spark: the session of the job, if known.
    """
    return _run_over(target, payload, spark)


def run_calls_in_worker(
    target: str, payload: object, spark: SparkSession | None = None
) -> Callable[..., Any]:
    """Returns a function for single calls that runs a function of Ottla in the worker.

    Args:
        target: ``"module:function"``. The function takes the payload and returns the function that
            is called; a worker loads it once.
        payload: any object that can be pickled.
        spark: the session of the calls, if known.
    """
    load = _load(target, payload, spark)
    loaded: list[Callable[..., Any]] = []

    def call(*arguments: Any, **named: Any) -> Any:
        if not loaded:
            loaded.append(load())
        return loaded[0](*arguments, **named)

    return call


def run_groups_in_worker(
    target: str, payload: object, spark: SparkSession | None = None
) -> Callable[[tuple[Any, ...], Iterator[Any], Any], Iterator[Any]]:
    """Returns a function for `applyInPandasWithState` that runs one of Ottla in the worker.

    Args:
        target: ``"module:function"``. The function takes the payload and returns a function from
            key, frames and state to frames.
        payload: any object that can be pickled; it is unpickled for each group.
        spark: the session of the job, if known.
    """
    load: Callable[[], Any] = _load(target, payload, spark)

    def run_groups(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
        yield from load()(key, frames, state)

    return run_groups


def run_table_in_worker(
    target: str, payload: object, spark: SparkSession | None = None
) -> Callable[[pa.Table], pa.Table]:
    """Returns a function for `applyInArrow` that runs a function of Ottla in the worker.

    Args:
        target: ``"module:function"``. The function takes the payload and returns a function from a
            table to a table.
        payload: any object that can be pickled; it is unpickled once in each task.
        spark: the session of the job, if known.
    """
    load = _load(target, payload, spark)
    loaded: list[Callable[[pa.Table], pa.Table]] = []

    def run_table(table: pa.Table) -> pa.Table:
        if not loaded:
            loaded.append(load())
        from ottla.spark.work.worker import worker_in_errors

        with worker_in_errors():
            return loaded[0](table)

    return run_table
