"""Filters of a query that select files before they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pyspark.sql.datasource import Filter


class Bounds(NamedTuple):
    """Bounds of the requested records, inclusive. All rows within them are returned, maybe more."""

    min_offset: int | None = None
    max_offset: int | None = None
    min_timestamp: int | None = None
    max_timestamp: int | None = None

    def meet(self, name: str, value: int) -> Bounds:
        """Returns these bounds narrow_bounds by one more."""
        value = min(max(value, -(2**63)), 2**63 - 1)
        known = getattr(self, name)
        if known is not None:
            value = max(known, value) if name.startswith("min") else min(known, value)
        return self._replace(**{name: value})

    def within(self, min_offset: int | None, max_offset: int | None) -> Bounds:
        """Returns these bounds with bounds of offsets beside them."""
        low = self if min_offset is None else self.meet("min_offset", min_offset)
        return low if max_offset is None else low.meet("max_offset", max_offset)


class PushedFilters(NamedTuple):
    """Filters of a query that are known before anything is read."""

    places: tuple[Filter, ...] = ()
    """Filters on columns that have one value per file."""
    bounds: Bounds = Bounds()

    def wants(self, **place: object) -> bool:
        """Whether rows of a file, topic and partition are requested, as far as given."""
        return all(matches(f, place[name]) for f in self.places if (name := column_of(f)) in place)


# Filters are distinguished by name: PySpark 4.0 does not have their classes.
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "EqualTo": lambda found, value: found == value,
    "GreaterThan": lambda found, value: found > value,
    "GreaterThanOrEqual": lambda found, value: found >= value,
    "LessThan": lambda found, value: found < value,
    "LessThanOrEqual": lambda found, value: found <= value,
    "StringStartsWith": str.startswith,
    "StringEndsWith": str.endswith,
    "StringContains": str.__contains__,
}


def kind_of(f: Filter) -> str:
    """Returns the name of a filter's class."""
    return type(f).__name__


def column_of(f: Filter) -> str | None:
    """Returns the column of a filter, None for a field inside a column."""
    path = (f.child if kind_of(f) == "Not" else f).attribute
    return path[0] if len(path) == 1 else None


def is_about(f: Filter, columns: Collection[str]) -> bool:
    """Whether a filter is about one of these columns, and supported by `matches`."""
    kind = kind_of(f.child if kind_of(f) == "Not" else f)
    is_known = kind in COMPARISONS or kind in ("EqualNullSafe", "In", "IsNull", "IsNotNull")
    return is_known and column_of(f) in columns


def matches(f: Filter, found: Any) -> bool:
    """Whether a filter is true for a value; a comparison with null is neither true nor false."""
    if kind_of(f) == "Not":
        return _truth_of(f.child, found) is False
    return _truth_of(f, found) is True


def _truth_of(f: Filter, found: Any) -> bool | None:
    kind = kind_of(f)
    if kind in ("IsNull", "IsNotNull"):
        return (found is None) is (kind == "IsNull")
    if kind == "EqualNullSafe":
        return bool(found == f.value)
    if found is None:
        return None
    if kind == "In":
        if found in f.value:
            return True
        return None if None in f.value else False
    return None if f.value is None else COMPARISONS[kind](found, f.value)


# The bounds that a comparison of a column sets, by table: first for ≥, then for ≤.
BOUNDS: dict[str, dict[str, tuple[str, str | None]]] = {
    "records": {
        "offset": ("min_offset", "max_offset"),
        "timestamp": ("min_timestamp", "max_timestamp"),
    },
    "batches": {
        "base_offset": ("min_offset", "max_offset"),
        "last_offset": ("min_offset", "max_offset"),
        "max_timestamp": ("min_timestamp", None),
    },
}


def narrow_bounds(bounds: Bounds, table: str, f: Filter) -> Bounds:
    """Returns bounds narrow_bounds by one more filter."""
    kind = kind_of(f)
    named = BOUNDS[table].get(column_of(f) or "")
    if named is None or kind in ("Not", "IsNull", "IsNotNull"):
        return bounds
    low, high = named
    values = list(f.value) if kind == "In" else [f.value]
    values = [value for value in values if isinstance(value, int)]
    if not values:
        return bounds
    if kind in ("EqualTo", "EqualNullSafe", "In", "GreaterThan", "GreaterThanOrEqual"):
        bounds = bounds.meet(low, min(values) + (kind == "GreaterThan"))
    if high and kind in ("EqualTo", "EqualNullSafe", "In", "LessThan", "LessThanOrEqual"):
        bounds = bounds.meet(high, max(values) - (kind == "LessThan"))
    return bounds
