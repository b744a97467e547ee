"""Tables of an audit as temporary views, beside what else a session has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ottla.errors import SparkError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["create_views"]

_ours: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
"""Names of the views that were created here."""


def create_views(
    spark: SparkSession, frames: Mapping[str, DataFrame], prefix: str, *, replace: bool
) -> tuple[str, ...]:
    """Creates a temporary view for each frame, and returns their names.

    Raises:
        SparkError: a view or a table of such a name is there and was not created here.
        ValueError: the prefix is not part of a name.
    """
    if not re.fullmatch(r"[A-Za-z0-9_]*", prefix):
        raise ValueError(f"prefix is {prefix!r}, expected letters, digits and _")
    views = {f"{prefix}{name}": frame for name, frame in frames.items()}
    ours = _ours.setdefault(spark, set())
    taken = [view for view in views if view not in ours and spark.catalog.tableExists(view)]
    if taken and not replace:
        raise SparkError(
            f"the session has {', '.join(taken)} already: create_views(prefix='audit_') chooses"
            " other names, and create_views(replace=True) replaces them"
        )
    for view, frame in views.items():
        frame.createOrReplaceTempView(view)
    ours.update(views)
    return tuple(views)
