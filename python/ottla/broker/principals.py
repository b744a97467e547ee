r"""Names of users from certificates, by Kafka's ``ssl.principal.mapping.rules`` (KIP-371).

A rule is ``RULE:pattern/replacement/`` with ``L`` or ``U`` behind it for small or capital letters,
or ``DEFAULT``, which keeps the whole subject. The first rule whose pattern is the whole subject
counts; ``$1`` in its replacement is the pattern's first group. A slash within is ``\/``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.configs.setting import InvalidConfigError
from ottla.broker.connection import CloseConnectionError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PrincipalRules", "parse_rules"]

NAME: Final = "ssl.principal.mapping.rules"
_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)|"
    r"RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,|$)"
)
_GROUP: Final = re.compile(r"\$(\d)")
_MAX_SUBJECT: Final = 4_096
"""Characters: a pattern of the operator's is tried with what an authority has signed."""


class Rule(NamedTuple):
    """A rule; without a pattern it is that for all others."""

    pattern: re.Pattern[str] | None
    replacement: str
    case: str

    def name_of(self, subject: str) -> str | None:
        """Returns the name of a user, `None` where the rule is for others."""
        if self.pattern is None:
            return subject
        found = self.pattern.fullmatch(subject)
        if found is None:
            return None
        name = _GROUP.sub(lambda group: _group(found, int(group[1])), self.replacement)
        return {"L": name.lower(), "U": name.upper()}.get(self.case, name)


def _group(found: re.Match[str], number: int) -> str:
    # As with Kafka, a group that there is none of is text.
    return (found[number] or "") if number <= len(found.groups()) else f"${number}"


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Returns rules, in their order.

    Raises:
        InvalidConfigError: they are none.
    """
    rules, position = [], 0
    text = text.strip() or "DEFAULT"
    while position < len(text):
        found = _RULE.match(text, position)
        if found is None:
            raise InvalidConfigError(
                f"Invalid value {text[position:]} for configuration {NAME}: a rule is DEFAULT or "
                "RULE:pattern/replacement/, with L or U behind it"
            )
        position = found.end()
        if found["default"]:
            rules.append(Rule(None, "", ""))
            continue
        pattern = found["pattern"].replace(r"\/", "/")
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            why = f"Invalid value {pattern} for configuration {NAME}: {error}"
            raise InvalidConfigError(why) from None
        rules.append(Rule(compiled, found["replacement"].replace(r"\/", "/"), found["case"]))
    return tuple(rules)


class PrincipalRules:
    """The rules of all listeners.

    Args:
        text_of: returns the rules of a listener as they were set.
    """

    def __init__(self, text_of: Callable[[str], str]) -> None:
        self._text_of = text_of
        self._rules: dict[str, tuple[Rule, ...]] = {}

    def name_of(self, listener: str, subject: str) -> str:
        """Returns the name of the user whose certificate has a subject.

        Raises:
            CloseConnectionError: no rule is for it.
        """
        rules = self._rules.get(listener)
        if rules is None:
            rules = parse_rules(self._text_of(listener))
            self._rules[listener] = rules
        if len(subject) > _MAX_SUBJECT:
            raise CloseConnectionError(
                f"the subject of a certificate has {len(subject)} characters"
            )
        for rule in rules:
            name = rule.name_of(subject)
            if name is not None:
                return name
        raise CloseConnectionError(f"no rule of {NAME} is for the certificate of {subject}")
