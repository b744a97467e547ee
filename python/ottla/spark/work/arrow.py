"""`mapInArrow` and `applyInArrow` without pandas, which PySpark requires but does not use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.spark.work.kind import is_connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["apply_in_arrow", "map_in_arrow"]


def map_in_arrow(
    frame: DataFrame,
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    columns: str | StructType,
) -> DataFrame:
    """Returns `frame.mapInArrow(function, columns)`."""
    if _can_use_public_api(frame):
        return frame.mapInArrow(function, columns)
    from pyspark.util import PythonEvalType

    column = _column(frame, function, columns, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    return _frame(frame, frame._jdf.mapInArrow(column, False, None))  # noqa: FBT003, SLF001


def apply_in_arrow(
    frame: DataFrame, by: str, function: Callable[[pa.Table], pa.Table], columns: str
) -> DataFrame:
    """Returns `frame.groupBy(by).applyInArrow(function, columns)`."""
    grouped = frame.groupBy(by)
    if _can_use_public_api(frame):
        return grouped.applyInArrow(function, columns)
    from pyspark.util import PythonEvalType

    column = _column(frame, function, columns, PythonEvalType.SQL_GROUPED_MAP_ARROW_UDF)
    return _frame(frame, grouped._jgd.flatMapGroupsInArrow(column))  # noqa: SLF001


def _can_use_public_api(frame: DataFrame) -> bool:
    """Whether the public methods work: with pandas, or on Connect, where there is no other way."""
    if is_connect(frame.sparkSession):
        return True
    try:
        import pandas as pd  # noqa: F401
    except ImportError:
        return False
    return True


def _column(frame: DataFrame, function: Any, columns: str | StructType, kind: int) -> Any:
    from pyspark.sql.udf import UserDefinedFunction

    udf = UserDefinedFunction(function, returnType=columns, evalType=kind)
    return udf(*(frame[name] for name in frame.columns))._jc  # noqa: SLF001


def _frame(like: DataFrame, java: Any) -> DataFrame:
    from pyspark.sql import DataFrame

    return DataFrame(java, like.sparkSession)
