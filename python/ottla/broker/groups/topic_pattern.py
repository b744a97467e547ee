r"""Regular expressions over topic names, in time linear in the name (KIP-848).

Kafka takes RE2's language here: a pattern comes from a client, and an engine that tracks back may
need exponential time for it. This is what RE2 has of it for names of letters, digits, `.`, `_` and
`-`: literals, `.`, classes, `\d \w \s` and their complements, `^ $ \A \z \Q \E`, groups (also
named, without capture, and with the flags `i m s U`), `|`, and `* + ? {m,n}`, also lazy. What
needs memory or looks around (back references, lookahead) is no part of it, as in RE2, and neither
are word boundaries and classes of Unicode. A pattern matches whole names.

Theory: a pattern compiles to an automaton of states (Thompson); a name is matched by the set of
states it may be in. Sets and the moves between them are remembered, up to a bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.groups.limits import (
    MAX_PATTERN_LENGTH,
    MAX_PATTERN_MOVES,
    MAX_PATTERN_STATES,
    MAX_PATTERN_WORK,
    MAX_PATTERN_WORK_A_NAME,
)
from ottla.broker.groups.pattern_parser import (
    ALPHABET,
    Choice,
    Hold,
    Node,
    PatternError,
    Place,
    Repeat,
    Sequence,
    Take,
    parse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

OTHER = "\U0010ffff"
"""Stands for the characters that an alphabet does not name; it is no character itself."""

_ACCEPT = 0


def text_pattern(pattern: str) -> TopicPattern:
    """Returns a pattern over texts of any characters, such as transactional ids.

    Raises:
        PatternError: the text is no pattern, or one that is too large.
    """
    ascii_characters = map(chr, range(128))
    return TopicPattern(pattern, frozenset({*ascii_characters, *pattern, OTHER}))


class TopicPattern:
    """A compiled pattern.

    Args:
        pattern: a regular expression.
        alphabet: the characters there are; any other one is the same as `OTHER`.

    Raises:
        PatternError: the text is no pattern, or one that is too large.
    """

    def __init__(self, pattern: str, alphabet: frozenset[str] = ALPHABET) -> None:
        if len(pattern) > MAX_PATTERN_LENGTH:
            raise PatternError(f"{len(pattern)} characters, more than {MAX_PATTERN_LENGTH}")
        # A state takes one of some characters, or holds at a place, or leads on; to which states.
        self._tests: list[frozenset[str] | Place | None] = [None]
        self._next: list[tuple[int, ...]] = [()]
        self._steps = 0
        self._alphabet = alphabet
        start = self._compile(parse(pattern, alphabet), _ACCEPT)
        self._sets: dict[frozenset[int], dict[str, frozenset[int]]] = {}
        self._moves = 0
        self._work = 0
        self._start = self._closure({start}, {Place.BEGIN})
        self._takes_nothing = _ACCEPT in self._closure({start}, {Place.BEGIN, Place.END})

    def matching(self, names: Iterable[str]) -> list[str]:
        """Returns those of many names that the pattern matches.

        Raises:
            PatternError: it takes too long.
        """
        self._work = 0
        matched, most = [], MAX_PATTERN_WORK
        for name in names:
            if self.matches(name):
                matched.append(name)
            most += MAX_PATTERN_WORK_A_NAME
            if self._work > most:
                raise PatternError(f"more than {most:,} steps over the names there are")
        return matched

    def matches(self, name: str) -> bool:
        """Whether the pattern matches a whole name."""
        if not name:
            return self._takes_nothing
        states = self._start
        for each in name:
            character = each if each in self._alphabet else OTHER
            known = self._sets.get(states, {}).get(character)
            states = self._move(states, character) if known is None else known
            if not states:
                return False
        return _ACCEPT in self._closure(states, {Place.END})

    def _compile(self, node: Node, following: int) -> int:
        """Adds the states of a node in front of a state. Returns the first of them."""
        # Repetitions of nothing make no states, so the steps count, too.
        self._steps += 1
        if self._steps > MAX_PATTERN_STATES * 2:
            raise PatternError(f"more than {MAX_PATTERN_STATES} states")
        if isinstance(node, Take):
            return self._add(node.characters, (following,))
        if isinstance(node, Hold):
            return self._add(node.place, (following,))
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                following = self._compile(part, following)
            return following
        if isinstance(node, Choice):
            return self._add(None, tuple(self._compile(each, following) for each in node.choices))
        return self._compile_repeat(node, following)

    def _compile_repeat(self, node: Repeat, following: int) -> int:
        if node.most is None:
            loop = self._add(None, ())
            self._next[loop] = (self._compile(node.part, loop), following)
            following = loop
        else:
            # Nested, so that each optional part may be the last: (part (part)?)?
            end = following
            for _ in range(node.most - node.least):
                following = self._add(None, (self._compile(node.part, following), end))
        for _ in range(node.least):
            following = self._compile(node.part, following)
        return following

    def _add(self, test: frozenset[str] | Place | None, following: tuple[int, ...]) -> int:
        if len(self._tests) >= MAX_PATTERN_STATES:
            raise PatternError(f"more than {MAX_PATTERN_STATES} states")
        self._tests.append(test)
        self._next.append(following)
        return len(self._tests) - 1

    def _move(self, states: frozenset[int], character: str) -> frozenset[int]:
        self._work += len(states)
        taken = set()
        for state in states:
            test = self._tests[state]
            if isinstance(test, frozenset) and character in test:
                taken.add(self._next[state][0])
        found = self._closure(taken, set())
        if self._moves >= MAX_PATTERN_MOVES:
            self._sets.clear()
            self._moves = 0
        self._sets.setdefault(states, {})[character] = found
        self._moves += 1 + len(found)
        return found

    def _closure(self, states: set[int] | frozenset[int], places: set[Place]) -> frozenset[int]:
        """Returns all states that are reached without a character, at these places."""
        self._work += len(states)
        found = set(states)
        stack = [*states]
        while stack:
            state = stack.pop()
            test = self._tests[state]
            if test is None or test in places:
                new = [each for each in self._next[state] if each not in found]
                found.update(new)
                stack += new
        return frozenset(found)
