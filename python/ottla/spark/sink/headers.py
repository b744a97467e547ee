"""Headers of rows to be written: an array of structs of key and value, as a read gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.records import NewRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["has_headers", "header_sizes", "records_of"]

_LENGTHS_BYTES = 2
"""The lengths of key and value of a header, each at least one byte."""


def has_headers(rows: pa.Table) -> bool:
    """Whether any of the rows has a header."""
    return bool(_counts(rows).any())


def header_sizes(rows: pa.Table) -> NDArray[np.int64]:
    """Returns the bytes of the headers of each row, about."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    counts = _counts(rows)
    if not counts.any():
        return np.zeros(rows.num_rows, np.int64)
    headers = pa.chunked_array([chunk.flatten() for chunk in rows.column("headers").chunks])
    sizes = np.full(len(headers), _LENGTHS_BYTES, np.int64)
    for name in ("key", "value"):
        lengths = pc.fill_null(pc.binary_length(pc.struct_field(headers, [name])), 0)
        sizes += np.asarray(lengths.to_numpy(), np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    whole: NDArray[np.int64] = np.diff(ends[np.concatenate([[0], np.cumsum(counts)])])
    return whole


def records_of(rows: pa.Table) -> Iterator[NewRecord]:
    """Yields rows as records.

    Raises:
        ValueError: a header has no key.
    """
    names = ("timestamp", "key", "value", "headers")
    columns = (rows.column(name).to_pylist() for name in names)
    for timestamp, key, value, headers in zip(*columns, strict=True):
        pairs = []
        for header in headers or ():
            if header is None or header["key"] is None:
                raise ValueError("a header is null, or its key: every header has a key")
            pairs.append((header["key"], header["value"]))
        yield NewRecord(key, value, timestamp, pairs)


def _counts(rows: pa.Table) -> NDArray[np.int64]:
    """Returns the number of headers of each row."""
    import numpy as np
    import pyarrow.compute as pc

    if "headers" not in rows.column_names:
        return np.zeros(rows.num_rows, np.int64)
    counts = pc.fill_null(pc.list_value_length(rows.column("headers")), 0)
    return np.asarray(counts.to_numpy(), np.int64)
