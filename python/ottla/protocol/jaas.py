"""A login configuration of Java (JAAS), as Kafka's ``sasl.jaas.config`` has it: one module.

org.apache.kafka.common.security.plain.PlainLoginModule required
    username="alice" password="secret";
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["InvalidLoginError", "LoginModule", "login_module"]

_CONTROL_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_QUOTE: Final = '"'


class InvalidLoginError(ValueError):
    """A text that is no login configuration; it does not show the text, which has passwords."""


class LoginModule(NamedTuple):
    """A module and its options.

    Attributes:
        name: of the class.
        options: values by name, without their quotes.
    """

    name: str
    options: dict[str, str]


def login_module(text: str) -> LoginModule | None:
    """Returns the module that a text names; ``None`` for an empty text.

    Raises:
        InvalidLoginError: the text is no login configuration.
    """
    words = list(_words(text))
    if not words:
        return None
    if words[-1] != ";" or ";" in words[:-1]:
        raise InvalidLoginError("a login configuration is one module, and ends with a semicolon")
    if len(words) <= 2 or words[1].lower() not in _CONTROL_FLAGS:  # noqa: PLR2004
        raise InvalidLoginError("a login module is followed by `required`, and by its options")
    options = {}
    for word in words[2:-1]:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise InvalidLoginError("an option of a login module is name=value")
        options[name] = value
    return LoginModule(words[0], options)


def _words(text: str) -> Iterator[str]:
    """Iterates over words without their quotes; a semicolon outside of quotes is a word."""
    word, is_quoted, escaped = "", False, False
    for character in text:
        if escaped:
            word, escaped = word + character, False
        elif is_quoted and character == "\\":
            escaped = True
        elif character == _QUOTE:
            is_quoted = not is_quoted
        elif is_quoted or not (character.isspace() or character == ";"):
            word += character
        else:
            if word:
                yield word
            word = ""
            if character == ";":
                yield character
    if is_quoted:
        raise InvalidLoginError("a quote of a login configuration has no end")
    if word:
        yield word
