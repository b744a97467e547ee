"""The source of a function in the making: its lines, the objects they name, its runs of numbers."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.protocol.wire import Field, Kind, Schema, Struct

__all__ = ["FEW", "Source", "few"]

# Arrays of fewer numbers have layouts made beforehand: replicas of a partition are nearly all.
FEW = 8


@cache
def few(form: str) -> tuple[struct.Struct, ...]:
    """The layouts of arrays of no, one, and up to so many numbers."""
    return tuple(struct.Struct(f">{count}{form}") for count in range(FEW))


class Source:
    """What decoders and encoders of one (message, version) have in common.

    Attributes:
        version: of the message.
        is_flexible: whether lengths are compact and structs end in tagged fields.
        run: numbers beside each other that are not in a line yet, each as (what, format).
        path: names of the fields around the next line.
    """

    def __init__(self, declared: Schema, version: int, *, private: bool) -> None:
        self.declared = declared
        self.version = version
        self.is_flexible = version in declared.flexible
        self.private = private
        self.run: list[tuple[str, str]] = []
        self.path: list[str] = []
        self._run_path = ""
        self._depth = 0
        self._lines: list[str] = []
        self._paths: list[str] = []
        self._done: list[str] = []
        self._done_paths: list[str] = []
        self._scope: dict[str, Any] = {}
        self._count = 0

    def line(self, text: str) -> None:
        """Add a line."""
        self._lines.append(" " * self._depth + text)
        self._paths.append(".".join(self.path))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a head and, one deeper, what is added meanwhile; a run of numbers ends with it."""
        self.flush()
        self.line(head)
        self._depth += 1
        yield
        self.flush()
        self._depth -= 1

    @contextmanager
    def function(self, head: str) -> Iterator[None]:
        """Add a function beside the present one."""
        outer = (self._lines, self._paths, self._depth, self.run)
        self._lines, self._paths, self._depth, self.run = [], [], 0, []
        with self.block(f"def {head}:"):
            yield
        self._done += self._lines
        self._done_paths += self._paths
        self._lines, self._paths, self._depth, self.run = outer

    @contextmanager
    def field(self, name: str) -> Iterator[None]:
        """Name the field that lines are about."""
        self.path.append(name)
        yield
        self.path.pop()

    def fresh(self, prefix: str) -> str:
        """A name that nothing has yet."""
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, value: object) -> str:
        """A name of an object for the lines."""
        name = self.fresh("k")
        self._scope[name] = value
        return name

    def number(self, what: str, form: str) -> None:
        """Add a number to the run."""
        if not self.run:
            self._run_path = ".".join(self.path)
        self.run.append((what, form))

    def flush(self) -> None:
        """Make the run of numbers a line."""
        if self.run:
            run, self.run = self.run, []
            path, self.path = self.path, [self._run_path]
            self.add_run(run, struct.Struct(">" + "".join(form for _, form in run)))
            self.path = path

    def add_run(self, run: list[tuple[str, str]], layout: struct.Struct) -> None:
        """Add the line of a run."""
        raise NotImplementedError

    def ordered(self, declared: Schema) -> list[Field]:
        """The fields of a struct that this version has in the order of their declaration."""
        return [
            field
            for field in declared.fields
            if self.version in field.versions and self.version not in field.tagged
        ]

    def tagged(self, declared: Schema) -> list[Field]:
        """The tagged fields of a struct in this version, ascending."""
        fields = [
            field
            for field in declared.fields
            if self.version in field.versions
            and self.version in field.tagged
            and (self.private or not field.private)
        ]
        return sorted(fields, key=lambda field: field.tag or 0)

    def compiled(self, name: str, scope: dict[str, Any]) -> Any:
        """The function of that name, in a scope to which `paths` adds what each line is about."""
        self._scope |= scope
        self._scope["paths"] = self._done_paths
        code = compile("\n".join(self._done), f"<{self.declared.name} {self.version}>", "exec")
        exec(code, self._scope)  # noqa: S102 - of names in our own declarations
        return self._scope[name]

    def length_format(self, kind: Kind | type[Struct], *, is_array: bool) -> str:
        """The format of a length where it is not compact."""
        return "i" if is_array or getattr(kind, "name", "") != "string" else "h"
