"""A table of an audit, and its rows as dictionaries, JSON or Arrow.

A table iterates over dictionaries, is read by Arrow libraries through `__arrow_c_stream__`, and
requires none of them. `batches` and `records` hold no rows: they read the files again in chunks.
"""

from __future__ import annotations

from functools import partial
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ottla import _engine
from ottla.audit.result.columns import columns_of
from ottla.errors import MissingDependencyError
from ottla.words import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized

    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from typing_extensions import TypeVar as _TypeVar

    from ottla.logs.columns import Column, Row

    RowT_co = _TypeVar(
        "RowT_co", bound=Mapping[str, Any], default=Mapping[str, Any], covariant=True
    )
else:
    RowT_co = TypeVar("RowT_co", covariant=True)

# Rows in a chunk of a table: as objects of Python they take some hundred bytes each.
CHUNK_ROWS = 1024


class Table(Generic[RowT_co]):
    """Rows with named, typed columns.

    Iteration yields dictionaries. pyarrow, Polars, DuckDB and pandas read a table directly::

        polars.DataFrame(result.findings)
        pyarrow.table(result.findings)
        findings = result.findings
        duckdb.sql("select name, count(*) from findings group by name")
    """

    __slots__ = ("_batches", "_chunks", "_length", "columns", "name")

    def __init__(
        self,
        name: str,
        chunks: Callable[[], Iterable[Sequence[Row]]],
        length: int | None = None,
        batches: Callable[[Sequence[str] | None], Iterable[_engine.TableBatch]] | None = None,
    ) -> None:
        self.name = name
        self.columns = columns_of(name)
        self._chunks = chunks
        self._length = length
        self._batches = batches

    @classmethod
    def of_rows(cls, name: str, rows: Sequence[Row]) -> Table[RowT_co]:
        """Returns a table of rows in memory."""
        return cls(name, partial(_cut, rows), len(rows))

    @classmethod
    def of_segments(
        cls,
        name: str,
        chunks: Callable[[], Iterable[Sequence[Row]]],
        batches: Callable[[Sequence[str] | None], Iterable[_engine.TableBatch]],
    ) -> Table[RowT_co]:
        """Returns the table `batches` or `records`, read from files.

        `batches` returns the rows of `chunks` as Arrow record batches of the requested columns,
        which is much faster.
        """
        return cls(name, chunks, None, batches)

    @classmethod
    def of_iterator(
        cls, name: str, rows: Callable[[], Iterator[Row]], count: int
    ) -> Table[RowT_co]:
        """Returns a table of `count` rows that are generated while it is read."""
        return cls(name, partial(_cut_as_made, rows), count)

    def __len__(self) -> int:
        """Number of rows. For `batches` and `records`, the files are read once to count them."""
        if self._length is None:
            pieces: Iterable[Sized] = self._batches([]) if self._batches else self._chunks()
            self._length = sum(map(len, pieces))
        return self._length

    def __bool__(self) -> bool:
        return next(iter(self.rows()), None) is not None

    def __iter__(self) -> Iterator[RowT_co]:
        names = [column.name for column in self.columns]
        for row in self.rows():
            yield cast("RowT_co", dict(zip(names, row, strict=True)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        if self.name != other.name:
            return False
        missing = object()
        pairs = zip_longest(self.rows(), other.rows(), fillvalue=missing)
        return all(ours == theirs for ours, theirs in pairs)

    def __hash__(self) -> int:
        # The rows may be those of files: they are not read for it.
        return hash(self.name)

    def _repr_html_(self) -> str:
        from ottla.notebook import MAX_ROWS, rows_html

        names = [column.name for column in self.columns]
        return rows_html(self.name, names, list(islice(self.rows(), MAX_ROWS)), self._length)

    def __repr__(self) -> str:
        rows = "" if self._length is None else f"{count(self._length, 'row')} of "
        return f"<Table {self.name}: {rows}{', '.join(column.name for column in self.columns)}>"

    def rows(self) -> Iterator[Row]:
        """Yields the rows as tuples, in the order of `columns`."""
        for chunk in self._chunks():
            yield from chunk

    def chunks(self) -> Iterator[Sequence[Row]]:
        """Yields the rows in chunks that fit in memory, none of them empty."""
        for chunk in self._chunks():
            if chunk:
                yield chunk

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the table for an Arrow library (Arrow C Stream interface).

        The files of `batches` and `records` are read while the stream is consumed.
        """
        if self._batches:
            stream = _engine.segment_stream(self.name, self._batches(None))
            return stream.__arrow_c_stream__(requested_schema)
        return arrow_stream(self.columns, list(self.rows())).__arrow_c_stream__(requested_schema)

    def json_lines(self) -> Iterator[bytes]:
        """Yields the rows as JSON objects, a line each, in pieces that fit in memory."""
        if self._batches:
            json_columns = [column.name for column in self.columns if column.type == "list"]
            for batch in self._batches(None):
                yield batch.json_lines(json_columns)
            return
        for chunk in self.chunks():
            yield json_rows(self.columns, chunk, "\n") + b"\n"

    def to_arrow(self) -> pa.Table:
        """Returns the table as a `pyarrow.Table`.

        Raises:
            MissingDependencyError: pyarrow is not installed.
        """
        try:
            import pyarrow as pa
        except ImportError as error:
            raise missing("pyarrow", "ottla[arrow]") from error
        schema = pa.table(arrow_stream(self.columns, [])).schema
        return pa.Table.from_batches(self.arrow_batches(), schema)

    def arrow_batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows as `pyarrow.RecordBatch` objects that fit in memory, none empty."""
        import pyarrow as pa

        if self._batches:
            yield from map(pa.record_batch, self._batches(None))
            return
        for chunk in self.chunks():
            yield from pa.table(arrow_stream(self.columns, chunk)).to_batches()

    def to_polars(self) -> pl.DataFrame:
        """Returns the table as a `polars.DataFrame`.

        Raises:
            MissingDependencyError: Polars is not installed.
        """
        try:
            import polars as pl
        except ImportError as error:
            raise missing("polars", "ottla[polars]") from error
        return pl.DataFrame(self)

    def to_pandas(self) -> pd.DataFrame:
        """Returns the table as a `pandas.DataFrame`, through pyarrow.

        Raises:
            MissingDependencyError: pandas or pyarrow is not installed.
        """
        try:
            import pandas as pd  # noqa: F401
        except ImportError as error:
            raise missing("pandas", "ottla[arrow]' 'pandas") from error
        return self.to_arrow().to_pandas()


def arrow_stream(columns: Sequence[Column], rows: Sequence[Row]) -> _engine.TableStream:
    """Returns rows as an object with `__arrow_c_stream__`, one record batch."""
    values: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
    names, types = zip(*((column.name, column.type) for column in columns), strict=True)
    return _engine.table_stream(names, types, values or [[] for _ in columns])


def jsonable(value: Any) -> Any:
    r"""Returns a value for JSON: bytes that are UTF-8 as text, others as ``{"base64": …}``.

    >>> jsonable([b"price", b"12.50", None]), jsonable(b"\xff")
    (['price', '12.50', None], {'base64': '/w=='})
    """
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            import base64

            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, dict):
        return {name: jsonable(item) for name, item in value.items()}
    return value


def json_rows(columns: Sequence[Column], rows: Sequence[Row], separator: str) -> bytes:
    """Returns rows as JSON objects, each on one line, with a separator between them.

    They are what `ottla.text.json_text` would give of `jsonable` values.
    """
    return _engine.json_rows([column.name for column in columns], rows, separator)


def json_line(columns: Sequence[Column], row: Row) -> str:
    """Returns a row as one JSON object on one line."""
    return json_rows(columns, [row], "").decode()


def _cut_as_made(rows: Callable[[], Iterator[Row]]) -> Iterator[Sequence[Row]]:
    left = rows()
    while chunk := tuple(islice(left, CHUNK_ROWS)):
        yield chunk


def _cut(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), CHUNK_ROWS):
        yield rows[start : start + CHUNK_ROWS]


def missing(package: str, what: str) -> MissingDependencyError:
    """Returns the error for a missing package that a format of a table needs."""
    return MissingDependencyError(
        f"{package} is not installed: pip install '{what}', or read the table through any"
        " library that supports __arrow_c_stream__"
    )
