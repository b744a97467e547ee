"""Compiles what reads a message."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ottla.errors import MalformedFrameError
from ottla.protocol.source import FEW, Source, few
from ottla.protocol.varint import read_string_length, read_tag, read_uvarint, skip_tags
from ottla.protocol.wire import Field, Kind, Struct, schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["MAX_ELEMENTS", "decoder"]

# Of all arrays of a message together. A struct takes up to 60 times the memory of its bytes, so
# that a frame of 100 MiB would otherwise become 6 GiB. No client names a million of anything.
MAX_ELEMENTS = 1_000_000


def decoder(
    message: type[Struct], version: int, *, private: bool
) -> Callable[[bytes, int], tuple[Any, int]]:
    """Compile the function from a frame and a position to a message and the position behind it."""
    source = _Decoder(schema(message), version, private=private)
    with source.guarded("decode(b, o)"):
        source.line(f"left = {MAX_ELEMENTS}")
        source.struct(message, "m")
        source.flush()
        source.line("return m, o")
    compiled: Callable[[bytes, int], tuple[Any, int]] = source.compiled("decode", _SCOPE)
    return compiled


class _Decoder(Source):
    """In the lines b is the frame, e its size and o the position; n7 is a length.

    Arrays may have as many elements together as are left.
    """

    @contextmanager
    def guarded(self, head: str) -> Iterator[None]:
        """Add a function in which a frame that ends too soon is an error with a position."""
        with self.function(head):
            self.line("e = len(b)")
            with self.block("try:"):
                yield
            self.line("except caught as error: raise broken(error, o, paths) from None")

    def add_run(self, run: list[tuple[str, str]], layout: struct.Struct) -> None:
        if run == [(run[0][0], "B")]:
            self.line(f"{run[0][0]} = b[o]; o += 1")
            return
        targets = ", ".join(target for target, _ in run)
        self.line(f"{targets}, = {self.constant(layout.unpack_from)}(b, o); o += {layout.size}")

    def struct(self, made: type[Struct], target: str) -> None:
        """Read a struct: first what is in order, then its tagged fields."""
        declared = schema(made)
        self.line(f"{target} = new({self.constant(made)})")
        ordered, tagged = self.ordered(declared), self.tagged(declared)
        for field in declared.fields:
            if field not in ordered:
                self.line(f"{target}.{field.name} = {self.default(field)}")
        for field in ordered:
            with self.field(field.name):
                self.value(field, f"{target}.{field.name}")
        if self.is_flexible:
            with self.field("tagged fields"):
                size = self.fresh("n")
                self.number(size, "B")
                self.flush()
                skip = self.tags(tagged, target) if tagged else "o = skip_tags(b, o - 1)"
                self.line(f"if {size}: {skip}")

    def default(self, field: Field) -> str:
        """What a field is that is not there."""
        if field.is_shared:
            return repr(field.default)
        return "[]" if field.is_array else f"{self.constant(field.kind)}()"

    def tags(self, fields: list[Field], target: str) -> str:
        """Add a function that reads tagged fields, and return the statement that calls it."""
        name = self.fresh("tags")
        with self.guarded(f"{name}(b, o, left, {target})"):
            self.line("count, o = read_uvarint(b, o)")
            self.line("tag = -1")
            with self.block("for _ in range(count):"):
                self.line("tag, size, o = read_tag(b, o, tag)")
                self.line("limit = o + size")
                for word, field in zip(["if"] + ["elif"] * len(fields), fields, strict=False):
                    with self.block(f"{word} tag == {field.tag}:"), self.field(field.name):
                        self.value(field, f"{target}.{field.name}")
                with self.block("else:"):
                    self.line("o = limit")
                self.line("if o != limit: raise tag_size(o, tag, limit)")
            self.line("return o, left")
        return f"o, left = {name}(b, o - 1, left, {target})"

    def value(self, field: Field, target: str) -> None:
        """Read a value of a field, which may be null."""
        may_be_null = self.version in field.null
        if field.is_array:
            self.array(field.kind, target, may_be_null=may_be_null)
        elif isinstance(field.kind, Kind):
            self.plain(field.kind, target, may_be_null=may_be_null)
        elif may_be_null:
            with self.block(f"if {self.marker(field)}:"):
                self.nested(field.kind, target)
            self.line(f"else: {target} = None")
        else:
            self.nested(field.kind, target)

    def marker(self, field: Field) -> str:
        """Read what stands before a struct that may be null; return whether the struct is there.

        It is an int8, negative for null, but in a tagged field a varint, 0 for null (KIP-893).
        """
        marker = self.fresh("n")
        if self.version in field.tagged:
            self.line(f"{marker}, o = read_uvarint(b, o)")
            return marker
        self.number(marker, "b")
        self.flush()
        return f"{marker} >= 0"

    def nested(self, kind: type[Struct], target: str) -> None:
        """Read a struct into an attribute."""
        made = self.fresh("s")
        self.struct(kind, made)
        self.line(f"{target} = {made}")

    def plain(self, kind: Kind, target: str, *, may_be_null: bool) -> None:
        """Read a number, or bytes behind their size."""
        if kind.format:
            self.number(target, kind.format)
            return
        size, end = self.length(kind, is_array=False), self.fresh("o")
        with self.null_or(size, target, may_be_null=may_be_null):
            self.line(f"{end} = o + {size}")
            self.line(f"if {end} > e: raise bounds(o, {size}, e, {'.'.join(self.path)!r})")
            text = ".decode()" if kind.name == "string" else ""
            self.line(f"{target} = b[o:{end}]{text}; o = {end}")

    def array(self, kind: Kind | type[Struct], target: str, *, may_be_null: bool) -> None:
        """Read elements behind their number."""
        count = self.length(kind, is_array=True)
        least = self.least(kind)
        size = count if least == 1 else f"{count} * {least}"
        with self.null_or(count, target, may_be_null=may_be_null):
            self.line(f"if {size} > e - o: raise bounds(o, {size}, e, {'.'.join(self.path)!r})")
            self.line(f"left -= {count}")
            self.line(f"if left < 0: raise too_many(o, {'.'.join(self.path)!r})")
            if isinstance(kind, Kind) and len(kind.format) == 1:
                unpacks = self.constant([layout.unpack_from for layout in few(kind.format)])
                many = f"unpack('>%d{kind.format}' % {count}, b, o)"
                numbers = f"{unpacks}[{count}](b, o) if {count} < {FEW} else {many}"
                self.line(f"{target} = list({numbers}); o += {size}")
                return
            made, element = self.fresh("a"), self.fresh("s")
            self.line(f"{made} = []")
            with self.block(f"for _ in range({count}):"):
                if isinstance(kind, Kind):
                    self.plain(kind, element, may_be_null=False)
                else:
                    self.struct(kind, element)
                self.flush()
                self.line(f"{made}.append({element})")
            self.line(f"{target} = {made}")

    def length(self, kind: Kind | type[Struct], *, is_array: bool) -> str:
        """Read a length, which is below zero for null, and return its name."""
        length = self.fresh("n")
        if self.is_flexible:
            self.number(length, "B")
            self.flush()
            is_string = self.length_format(kind, is_array=is_array) == "h"
            read = "read_string_length" if is_string else "read_uvarint"
            self.line(f"if {length} > 127: {length}, o = {read}(b, o - 1)")
            self.line(f"{length} -= 1")
        else:
            self.number(length, self.length_format(kind, is_array=is_array))
            self.flush()
        return length

    @contextmanager
    def null_or(self, length: str, target: str, *, may_be_null: bool) -> Iterator[None]:
        """Read null, or what follows."""
        null = f"{target} = None" if may_be_null else f"raise null(o, {'.'.join(self.path)!r})"
        self.line(f"if {length} < 0: {null}")
        with self.block("else:"):
            yield

    def least(self, kind: Kind | type[Struct]) -> int:
        """The fewest bytes that an element takes, never fewer than one: no array is endless."""
        if isinstance(kind, Kind):
            return self.least_plain(kind, is_array=False)
        size = int(self.is_flexible)
        for field in self.ordered(schema(kind)):
            if field.is_array or isinstance(field.kind, Kind):
                size += self.least_plain(field.kind, is_array=field.is_array)
            else:
                size += 1 if self.version in field.null else self.least(field.kind)
        return max(size, 1)

    def least_plain(self, kind: Kind | type[Struct], *, is_array: bool) -> int:
        """The size of a number, or of the length of anything else."""
        if isinstance(kind, Kind) and kind.format and not is_array:
            return struct.calcsize(">" + kind.format)
        if self.is_flexible:
            return 1
        return struct.calcsize(">" + self.length_format(kind, is_array=is_array))


def _broken(error: Exception, position: int, paths: list[str]) -> MalformedFrameError:
    trace = error.__traceback__
    where = paths[trace.tb_lineno - 1] if trace else ""
    if isinstance(error, UnicodeDecodeError):
        return MalformedFrameError(position + error.start, f"{where} is not UTF-8")
    return MalformedFrameError(position, f"the frame ends before the end of {where}")


def _bounds(position: int, size: int, end: int, where: str) -> MalformedFrameError:
    return MalformedFrameError(
        position, f"{where} takes {size} bytes at least, of which {end - position} are left"
    )


def _null(position: int, where: str) -> MalformedFrameError:
    return MalformedFrameError(position, f"{where} is null, which it cannot be")


def _too_many(position: int, where: str) -> MalformedFrameError:
    return MalformedFrameError(
        position, f"more than {MAX_ELEMENTS} elements of arrays, with those of {where}"
    )


def _tag_size(position: int, tag: int, limit: int) -> MalformedFrameError:
    return MalformedFrameError(
        position, f"the value of tag {tag} ends here, its size says position {limit}"
    )


_SCOPE = {
    "bounds": _bounds,
    "broken": _broken,
    "caught": (IndexError, UnicodeDecodeError, struct.error),
    "new": object.__new__,
    "null": _null,
    "read_string_length": read_string_length,
    "read_tag": read_tag,
    "read_uvarint": read_uvarint,
    "skip_tags": skip_tags,
    "tag_size": _tag_size,
    "too_many": _too_many,
    "unpack": struct.unpack_from,
}
