"""The users in a login configuration of Java (JAAS), as Kafka's ``sasl.jaas.config`` has it.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="admin" password="secret" user_admin="secret" user_alice="hers";

Options are names and values; each ``user_NAME`` is the password of a user. ``username`` and
``password`` are for brokers among themselves, and no user's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["InvalidLoginError", "users_of"]

_USER: Final = "user_"
_CONTROL_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_QUOTE: Final = '"'


class InvalidLoginError(ValueError):
    """A text that is no login configuration; it does not show the text, which has passwords."""


def users_of(text: str) -> dict[str, str]:
    """Returns passwords by user.

    Raises:
        InvalidLoginError: the text is none.
    """
    words = list(_words(text))
    if not words:
        return {}
    if words[-1] != ";" or ";" in words[:-1]:
        raise InvalidLoginError("a login configuration is one module, and ends with a semicolon")
    if len(words) <= 2 or words[1].lower() not in _CONTROL_FLAGS:  # noqa: PLR2004
        raise InvalidLoginError("a login module is followed by `required`, and by its options")
    users = {}
    for word in words[2:-1]:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise InvalidLoginError("an option of a login module is name=value")
        if name.startswith(_USER):
            users[name.removeprefix(_USER)] = value
    return users


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
