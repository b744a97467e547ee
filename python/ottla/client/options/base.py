"""How settings are made of options, and refuse what they cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from ottla.client.errors import InvalidConfigurationError
from ottla.client.options.option import Option
from ottla.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Settings", "nearest_hint"]


class Settings:
    """Values of the options that a class declares, as attributes.

    Attributes:
        options: all that there are, by name.
        given: the names of those that were given, and did not take their default.
    """

    options: ClassVar[dict[str, Option[Any]]]
    given: frozenset[str]

    def __init_subclass__(cls) -> None:
        cls.options = {
            name: value
            for one in reversed(cls.__mro__)
            for name, value in vars(one).items()
            if isinstance(value, Option)
        }

    def __init__(self, *others: NoReturn, **given: Any) -> None:
        if others:
            raise InvalidConfigurationError(
                'options are keywords, such as bootstrap_servers="kafka:9092", and one was given '
                "without its name; a dict of dotted names goes to from_config(), topics to "
                "subscribe()"
            )
        options = type(self).options
        values = {name: option.default for name, option in options.items()}
        for name, value in given.items():
            option = options.get(name)
            if option is None:
                raise InvalidConfigurationError(
                    f"{visible(name)} is no option of this client{nearest_hint(name, options)}"
                )
            values[name] = option.convert(value, name)
        for name, option in options.items():
            if option.is_required and name not in given:
                raise InvalidConfigurationError(f"{name} is not given; expected {option.expected}")
        self.__dict__.update(values, given=frozenset(given))
        self.check()

    def check(self) -> None:
        """Refuses values that contradict each other, and settles what follows from others.

        Raises:
            InvalidConfigurationError: they do.
        """

    def adjust(self, name: str, value: Any) -> None:
        """Sets what follows from other options, while these are checked."""
        self.__dict__[name] = value

    def shown(self, name: str) -> str:
        """Returns a value for a message."""
        return "not shown" if type(self).options[name].is_secret else repr(getattr(self, name))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"settings cannot be changed: make others with another {name}")

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={self.shown(name)}" for name in sorted(self.given))
        return f"{type(self).__name__}({given})"


def nearest_hint(name: str, known: Iterable[str]) -> str:
    """Returns the end of a sentence about a name that nobody knows: which may have been meant."""
    # A slip of the pen is rare, and difflib costs more to load than these settings.
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""
