"""What a read does about bytes that cannot be read: it ends, leaves them out, or returns them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ottla.errors import DamageWarning, SparkError
from ottla.logs.columns import Column
from ottla.logs.reading import Damage, damage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ottla.storage import Place

DAMAGE_COLUMN = Column("damage", "damage", "what could not be read; null in rows of records")

MAX_BYTES = 1 << 20
"""Bytes of a row: more of them take several rows."""

_PLACE = ("file", "topic", "partition")


class DamageHandler:
    """Handles the damage of one file as the option `on_damage` says.

    Args:
        on_damage: ``fail``, ``skip`` or ``quarantine``.
        columns: names of the columns of the request.
        place: the file.
        prefix: its name, topic and partition.
    """

    def __init__(
        self,
        on_damage: str,
        columns: Sequence[str],
        place: Place,
        prefix: tuple[str, str | None, int | None],
    ) -> None:
        self._on_damage = on_damage
        self._columns = list(columns)
        self._place = place
        self._prefix = prefix

    def complete(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Returns rows of records with the columns of the request."""
        if self._on_damage != "quarantine":
            return rows
        import pyarrow as pa

        nothing = pa.nulls(rows.num_rows, damage_type())
        arrays = dict(zip(rows.schema.names, rows.columns, strict=True))
        names = self._columns
        return pa.record_batch([arrays.get(name, nothing) for name in names], names=names)

    def rows(
        self, found: Iterable[Mapping[str, Any]], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Yields rows of what cannot be read; `schema` is that of the records.

        A torn end, which a killed broker leaves and the next start cuts off, is no damage.

        Raises:
            SparkError: there is any, and the option is `fail`.
        """
        for row in found:
            damage = damage_of(row, [self._prefix[0]])
            if damage.severity == "info":
                continue
            if self._on_damage == "fail":
                raise SparkError(
                    f"{damage}; the option on_damage=skip leaves it out, and on_damage=quarantine"
                    " returns it as rows"
                )
            if self._on_damage == "skip":
                warnings.warn(DamageWarning(str(damage), damage), stacklevel=2)
                continue
            for position in range(damage.position, damage.position + damage.size, MAX_BYTES):
                yield self._row(damage, position, schema)

    def _row(self, damage: Damage, position: int, schema: pa.Schema) -> pa.RecordBatch:
        import pyarrow as pa

        size = min(MAX_BYTES, damage.position + damage.size - position)
        values = {
            "file": self._prefix[0],
            "position": position,
            "size": size,
            "first_offset": damage.first_offset,
            "last_offset": damage.last_offset,
            "reason": damage.message,
            "bytes": bytes(self._place.read_at(position, size)),
        }
        known = dict(zip(_PLACE, self._prefix, strict=True))
        arrays = [
            pa.array([values], damage_type())
            if name == DAMAGE_COLUMN.name
            else pa.array([known.get(name)], schema.field(name).type)
            for name in self._columns
        ]
        return pa.record_batch(arrays, names=self._columns)


def damage_type() -> pa.DataType:
    """Returns the type of the column `damage` in Arrow."""
    import pyarrow as pa

    numbers = ("position", "size", "first_offset", "last_offset")
    return pa.struct(
        [
            ("file", pa.string()),
            *((name, pa.int64()) for name in numbers),
            ("reason", pa.string()),
            ("bytes", pa.binary()),
        ]
    )


def with_damage(columns: Sequence[str]) -> tuple[str, ...]:
    """Returns columns with that of damage, at the end unless it is among them."""
    name = DAMAGE_COLUMN.name
    return tuple(columns) if name in columns else (*columns, name)
