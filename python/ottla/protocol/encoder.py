"""Compiles what writes a message."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ottla.errors import UnwritableMessageError
from ottla.protocol.source import FEW, Source, few
from ottla.protocol.varint import MAX_STRING_BYTES, uvarint
from ottla.protocol.wire import Field, Kind, Schema, Struct, schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["encoder"]

# A byte string of so many bytes is cheaper to send as a part of its own than to copy.
_LARGE = 16384
# The bytes of lengths, of which nearly all are small.
_SMALL = tuple(uvarint(number) for number in range(128))
_UUID_BYTES = 16


def encoder(message: type[Struct], version: int, *, private: bool) -> Callable[[Any], list[bytes]]:
    """Compile the function from a message to its bytes, in parts."""
    source = _Encoder(schema(message), version, private=private)
    with source.guarded("encode(m)"):
        source.line("whole = []")
        source.struct(message, "m")
        source.flush()
        source.line("whole.append(join(parts)); return whole")
    scope = {**_SCOPE, "name": schema(message).name, "version": version}
    compiled: Callable[[Any], list[bytes]] = source.compiled("encode", scope)
    return compiled


class _Encoder(Source):
    """In the lines parts is what the next part of the message is made of; n7 is a length."""

    is_in_tag = False

    @contextmanager
    def guarded(self, head: str) -> Iterator[None]:
        """Add a function in which a value that does not fit its type is an error with a name."""
        with self.function(head):
            self.line("parts = []; add = parts.append")
            with self.block("try:"):
                yield
            self.line("except caught as error: raise unfit(error, name, version, paths) from None")

    def add_run(self, run: list[tuple[str, str]], layout: struct.Struct) -> None:
        values = ", ".join(value for value, form in run if form != "x")
        if values:
            self.line(f"add({self.constant(layout.pack)}({values}))")
        else:
            self.line(f"add({bytes(layout.size)!r})")

    def struct(self, made: type[Struct], source: str) -> None:
        """Write a struct: first what is in order, then its tagged fields."""
        declared = schema(made)
        self.refuse_what_is_absent(declared, source)
        for field in self.ordered(declared):
            with self.field(field.name):
                self.value(field, f"{source}.{field.name}")
        if self.is_flexible:
            tagged = self.tagged(declared)
            if tagged:
                self.tags(tagged, source)
            else:
                self.number("", "x")

    def refuse_what_is_absent(self, declared: Schema, source: str) -> None:
        """Refuse what would be lost without a word."""
        for field in declared.fields:
            if self.version not in field.versions and not field.ignorable:
                with self.field(field.name):
                    value = f"{source}.{field.name}"
                    self.line(
                        f"if {self.differs(field, value)}: raise absent(name, version, "
                        f"{'.'.join(self.path)!r})"
                    )

    def differs(self, field: Field, value: str) -> str:
        """The condition that a value is not the field's default."""
        if field.default is None:
            return f"{value} is not None"
        if not field.is_shared and not field.is_array:
            return f"{value} != {self.constant(field.new_default())}"
        return f"{value} != {field.new_default()!r}"

    def tags(self, fields: list[Field], source: str) -> None:
        """Write the tagged fields that are not their defaults."""
        tags = self.fresh("t")
        self.line(f"{tags} = []")
        for field in fields:
            with self.field(field.name):
                value = f"{source}.{field.name}"
                call = f"{self.tag(field)}({value})"
                self.line(f"if {self.differs(field, value)}: {tags} += {field.tag}, {call}")
        with self.block(f"if {tags}:"):
            self.line(f"parts += tag_section({tags})")
        with self.block("else:"):
            self.number("", "x")

    def tag(self, field: Field) -> str:
        """Add a function that writes the value of a tagged field, and return its name."""
        name = self.fresh("tag")
        outer, self.is_in_tag = self.is_in_tag, True
        with self.guarded(f"{name}(v)"):
            self.value(field, "v")
            self.flush()
            self.line("return join(parts)")
        self.is_in_tag = outer
        return name

    def value(self, field: Field, value: str) -> None:
        """Write a value of a field, which may be null."""
        may_be_null = self.version in field.null
        if field.is_array:
            self.array(field.kind, value, may_be_null=may_be_null)
        elif isinstance(field.kind, Kind):
            self.plain(field.kind, value, may_be_null=may_be_null)
        elif may_be_null:
            # The marker is an int8, but in a tagged field a varint, which has no -1 (KIP-893).
            with self.block(f"if {value} is None:"):
                self.number("0" if self.version in field.tagged else "-1", "b")
            with self.block("else:"):
                self.number("1", "b")
                self.nested(field.kind, value)
        else:
            self.nested(field.kind, value)

    def nested(self, kind: type[Struct], value: str) -> None:
        """Write a struct in an attribute."""
        name = self.fresh("s")
        self.line(f"{name} = {value}")
        self.struct(kind, name)

    def plain(self, kind: Kind, value: str, *, may_be_null: bool) -> None:
        """Write a number, or bytes behind their size."""
        if kind.format:
            if kind.format == "16s":
                self.line(f"if len({value}) != {_UUID_BYTES}: raise TypeError('not 16 bytes')")
            self.number(value, kind.format)
            return
        data = self.fresh("d")
        encoded = f"{value}.encode()" if kind.name == "string" else value
        if may_be_null:
            self.line(f"{data} = b'' if {value} is None else {encoded}")
        else:
            self.line(f"{data} = {encoded}")
        self.length(kind, data, f"{value} is None" if may_be_null else "", is_array=False)
        if kind.name == "string" or self.is_in_tag:
            self.line(f"add({data})")
        else:
            with self.block(f"if len({data}) < {_LARGE}:"):
                self.line(f"add({data})")
            with self.block("else:"):
                self.line(f"whole += join(parts), {data}; parts.clear()")

    def array(self, kind: Kind | type[Struct], value: str, *, may_be_null: bool) -> None:
        """Write elements behind their number."""
        values = self.fresh("a")
        self.line(f"{values} = {value} or ()" if may_be_null else f"{values} = {value}")
        self.length(kind, values, f"{value} is None" if may_be_null else "", is_array=True)
        if isinstance(kind, Kind) and len(kind.format) == 1:
            packs = self.constant([layout.pack for layout in few(kind.format)])
            size = f"len({values})"
            many = f"pack('>%d{kind.format}' % {size}, *{values})"
            self.line(f"add({packs}[{size}](*{values}) if {size} < {FEW} else {many})")
            return
        element = self.fresh("s")
        with self.block(f"for {element} in {values}:"):
            if isinstance(kind, Kind):
                self.plain(kind, element, may_be_null=False)
            else:
                self.struct(kind, element)

    def length(self, kind: Kind | type[Struct], value: str, null: str, *, is_array: bool) -> None:
        """Write the length of a value, or that it is null."""
        if self.is_flexible:
            length = self.fresh("n")
            self.flush()
            count = f"0 if {null} else len({value}) + 1" if null else f"len({value}) + 1"
            self.line(f"{length} = {count}")
            is_string = self.length_format(kind, is_array=is_array) == "h"
            write = "string_length" if is_string else "uvarint"
            self.line(f"add(small[{length}] if {length} < 128 else {write}({length}))")
        else:
            count = f"-1 if {null} else len({value})" if null else f"len({value})"
            self.number(count, self.length_format(kind, is_array=is_array))
            self.flush()


def _string_length(length: int) -> bytes:
    """The length of a string plus one."""
    if length > MAX_STRING_BYTES + 1:
        raise TypeError(f"{length - 1} bytes, where {MAX_STRING_BYTES} are the most")
    return uvarint(length)


def _tag_section(tags: list[Any]) -> list[bytes]:
    """Tags and their values, in turn, behind their number."""
    section = [uvarint(len(tags) // 2)]
    for tag, value in zip(tags[::2], tags[1::2], strict=True):
        section += uvarint(tag), uvarint(len(value)), value
    return section


def _absent(name: str, version: int, where: str) -> UnwritableMessageError:
    return UnwritableMessageError(f"{name} {version} has no {where}")


def _unfit(error: Exception, name: str, version: int, paths: list[str]) -> UnwritableMessageError:
    trace = error.__traceback__
    where = paths[trace.tb_lineno - 1] if trace else ""
    return UnwritableMessageError(f"{name} {version}: {where}: {error}")


_SCOPE = {
    "absent": _absent,
    "caught": (AttributeError, TypeError, UnicodeEncodeError, struct.error),
    "join": b"".join,
    "pack": struct.pack,
    "small": _SMALL,
    "string_length": _string_length,
    "tag_section": _tag_section,
    "unfit": _unfit,
    "uvarint": uvarint,
}
