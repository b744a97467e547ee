"""How messages are declared: a class a struct, a line a field, with the versions that carry it.

A declaration costs little, since a broker imports a dozen of them before its first answer: classes
are plain and slotted, and their constructors are compiled when first called.
"""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_options: object) -> Callable[[type], type]:
        """Tell type checkers alone what constructors take."""
        return lambda transformed: transformed


__all__ = [
    "NO_UUID",
    "Field",
    "Kind",
    "Message",
    "Schema",
    "Struct",
    "array",
    "boolean",
    "byte_string",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "records",
    "schema",
    "string",
    "struct",
    "uint16",
    "uint32",
    "uuid",
]

NO_UUID = bytes(16)
_LAST_VERSION = 32767
# Stands in for a default that every instance needs for itself.
_FRESH: Any = object()


@cache
def versions_of(text: str) -> range:
    """The versions that ``2``, ``1-3``, ``4+`` or ``none`` names."""
    if text == "none":
        return range(0)
    first, dash, last = text.removesuffix("+").partition("-")
    if dash:
        return range(int(first), int(last) + 1)
    return range(int(first), (_LAST_VERSION if text.endswith("+") else int(first)) + 1)


class Kind:
    """A type of a value on the wire; called, it declares a field of that type.

    Attributes:
        name: what Apache's JSON calls it.
        format: its character for the module struct; empty where its size varies.
        default: the value of a field that is not given.
    """

    __slots__ = ("default", "format", "name")

    def __init__(self, name: str, form: str, default: object) -> None:
        self.name = name
        self.format = form
        self.default = default

    def __call__(self, versions: str, **options: Any) -> Any:
        """Declare a field of this type; for its options see `Field`."""
        options.setdefault("default", self.default)
        return Field(self, versions, **options)


class Field:
    """A field of a struct.

    Attributes:
        name: of the attribute.
        kind: type of the value, or of an array's elements: a `Kind` or a class of a struct.
        is_array: whether there may be any number of them.
        versions: of the message, in which the field is on the wire.
        null: versions in which it may be null.
        tag: its number where it is a tagged field (KIP-482), in the versions `tagged`.
        default: what it is when it is not given, or not on the wire.
        ignorable: whether a value is dropped where its version has no such field; an encoder
            refuses any other that is not the default.
        private: whether it is Ottla's own, which Kafka does not know.
    """

    __slots__ = (
        "default",
        "ignorable",
        "is_array",
        "kind",
        "name",
        "null",
        "private",
        "tag",
        "tagged",
        "versions",
    )

    def __init__(
        self,
        kind: Kind | type[Struct],
        versions: str,
        *,
        default: object,
        is_array: bool = False,
        null: str = "none",
        tag: int | None = None,
        tagged: str = "",
        ignorable: bool = False,
        private: bool = False,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.is_array = is_array
        self.versions = versions_of(versions)
        self.null = versions_of(null)
        self.tag = tag
        self.tagged = versions_of("none" if tag is None else tagged or versions)
        self.default = default
        self.ignorable = ignorable
        self.private = private

    def new_default(self) -> Any:
        """The default, not shared with another message."""
        if self.default is not _FRESH:
            return self.default
        if self.is_array:
            return []
        return self.kind()  # type: ignore[call-arg]

    @property
    def is_shared(self) -> bool:
        """Whether messages can share the default, since nobody can change it."""
        return self.default is not _FRESH


boolean = Kind("bool", "?", default=False)
int8 = Kind("int8", "b", 0)
int16 = Kind("int16", "h", 0)
uint16 = Kind("uint16", "H", 0)
int32 = Kind("int32", "i", 0)
uint32 = Kind("uint32", "I", 0)
int64 = Kind("int64", "q", 0)
float64 = Kind("float64", "d", 0.0)
uuid = Kind("uuid", "16s", NO_UUID)
string = Kind("string", "", "")
byte_string = Kind("bytes", "", b"")
records = Kind("records", "", None)


def array(kind: Kind | type[Struct], versions: str, **options: Any) -> Any:
    """Declare a field of any number of values; without a default it is an empty list."""
    options.setdefault("default", _FRESH)
    return Field(kind, versions, is_array=True, **options)


def struct(kind: type[Struct], versions: str, **options: Any) -> Any:
    """Declare a field that is a struct; without a default it is one of defaults."""
    options.setdefault("default", _FRESH)
    return Field(kind, versions, **options)


class Schema:
    """What a class declares.

    Attributes:
        name: of the class.
        fields: in the order of the wire, by name.
        values: a function of an instance: the values of all fields, comparable.
        api_key: of the API, for its request and its response alone.
        versions: that exist of the message.
        flexible: versions with compact lengths and tagged fields (KIP-482).
    """

    __slots__ = ("api_key", "fields", "flexible", "name", "values", "versions")

    def __init__(self, name: str, fields: tuple[Field, ...]) -> None:
        self.name = name
        self.fields = fields
        names = [field.name for field in fields]
        self.values: Callable[[Any], object] = attrgetter(*names) if names else type
        self.api_key: int | None = None
        self.versions = self.flexible = range(0)


def schema(declared: type[Struct]) -> Schema:
    """What the class of a message or struct declares."""
    return declared.__schema__


class _StructType(type):
    """Takes the fields out of a class body and leaves slots."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any
    ) -> _StructType:
        fields = {key: value for key, value in body.items() if type(value) is Field}
        for key, field in fields.items():
            field.name = key
            del body[key]
        body["__slots__"] = tuple(fields)
        body["__schema__"] = Schema(name, tuple(fields.values()))
        return super().__new__(cls, name, bases, body, **options)


@dataclass_transform(kw_only_default=True)
class Struct(metaclass=_StructType):
    """A part of a message, with an attribute for each field: keyword arguments, or defaults."""

    __schema__: ClassVar[Schema]

    def __init__(self, **values: Any) -> None:
        initialize = _compiled_constructor(type(self).__schema__)
        type.__setattr__(type(self), "__init__", initialize)
        initialize(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        values = self.__schema__.values
        return values(self) == values(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        said = ", ".join(
            f"{field.name}={value!r}"
            for field in self.__schema__.fields
            if (value := getattr(self, field.name)) != field.new_default()
        )
        return f"{type(self).__name__}({said})"


class Message(Struct):
    """A message as a whole: the request or response of an API, or what a log keeps as a record."""

    def __init_subclass__(cls, *, versions: str, flexible: str, api_key: int | None = None) -> None:
        cls.__schema__.api_key = api_key
        cls.__schema__.versions = versions_of(versions)
        cls.__schema__.flexible = versions_of(flexible)


def _compiled_constructor(declared: Schema) -> Callable[..., None]:
    """A constructor with each field by its name; a loop over them takes four times as long."""
    scope: dict[str, Any] = {"fresh": _FRESH}
    arguments, lines = ["self"], []
    for field in declared.fields:
        name = field.name
        scope[f"new_{name}"] = field.default if field.is_shared else field.new_default
        if field.is_shared:
            arguments.append(f"{name}=new_{name}")
            lines.append(f" self.{name} = {name}")
        else:
            arguments.append(f"{name}=fresh")
            lines.append(f" self.{name} = new_{name}() if {name} is fresh else {name}")
    if declared.fields:
        arguments.insert(1, "*")
    source = "\n".join([f"def initialize({', '.join(arguments)}):", *(lines or [" pass"])])
    exec(source, scope)  # noqa: S102 - of names in our own declarations
    compiled: Callable[..., None] = scope["initialize"]
    return compiled
