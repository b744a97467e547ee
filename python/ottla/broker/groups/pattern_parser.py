"""The parser of regular expressions over topic names; `topic_pattern.py` says what is in them."""

from enum import Enum
from typing import NamedTuple

from ottla.broker.groups.limits import MAX_PATTERN_DEPTH, MAX_PATTERN_REPEAT

# Every character that a topic's name may have.
ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_DIGITS = frozenset("0123456789")
_WORD = ALPHABET - frozenset(".-")
_NOTHING: frozenset[str] = frozenset()
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _NOTHING}
_POSIX = {
    "alnum": _WORD - {"_"},
    "alpha": _WORD - _DIGITS - {"_"},
    "ascii": ALPHABET,
    "blank": _NOTHING,
    "cntrl": _NOTHING,
    "digit": _DIGITS,
    "graph": ALPHABET,
    "lower": frozenset("abcdefghijklmnopqrstuvwxyz"),
    "print": ALPHABET,
    "punct": frozenset("._-"),
    "space": _NOTHING,
    "upper": frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "word": _WORD,
    "xdigit": frozenset("0123456789abcdefABCDEF"),
}
_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_ASCII_END = 0x7F
_MAX_DIGITS = 4


class PatternError(ValueError):
    """A text that is no pattern, or one that is too large."""


class Place(Enum):
    """Where a name begins and ends."""

    BEGIN = "begin"
    END = "end"


class Take(NamedTuple):
    """One of some characters."""

    characters: frozenset[str]


class Hold(NamedTuple):
    """A place, and no character."""

    place: Place


class Sequence(NamedTuple):
    """One after the other."""

    parts: "list[Node]"


class Choice(NamedTuple):
    """One of several."""

    choices: "list[Node]"


class Repeat(NamedTuple):
    """The same so many times, without end if `most` is `None`."""

    part: "Node"
    least: int
    most: int | None


Node = Take | Hold | Sequence | Choice | Repeat


def parse(pattern: str, alphabet: frozenset[str] = ALPHABET) -> Node:
    """Returns what a pattern says of texts over an alphabet.

    Raises:
        PatternError: it is none.
    """
    parser = _Parser(pattern, alphabet)
    node = parser.choice(depth=0)
    if not parser.is_done:
        raise PatternError("unexpected )")
    return node


class _Parser:
    def __init__(self, text: str, alphabet: frozenset[str]) -> None:
        self._text = text
        self._alphabet = alphabet
        self._position = 0
        # Flag i, which ends with the group it is in.
        self._ignores_case = False

    @property
    def is_done(self) -> bool:
        return self._position >= len(self._text)

    def _take(self, expected: str) -> bool:
        found = self._text.startswith(expected, self._position)
        self._position += len(expected) * found
        return found

    def _next(self) -> str:
        if self.is_done:
            raise PatternError("the pattern is not whole")
        self._position += 1
        return self._text[self._position - 1]

    def choice(self, *, depth: int) -> Node:
        """Reads as far as the end, or the parenthesis that closes the group."""
        if depth > MAX_PATTERN_DEPTH:
            raise PatternError(f"groups more than {MAX_PATTERN_DEPTH} deep")
        choices: list[Node] = []
        parts: list[Node] = []
        while not self.is_done and self._text[self._position] != ")":
            if self._take("|"):
                choices.append(Sequence(parts))
                parts = []
            elif self._take("\\Q"):
                literal = self._text[self._position :].partition("\\E")[0]
                self._position += len(literal)
                self._take("\\E")
                parts += [self._literal(each) for each in literal[:-1]]
                parts += [self._repeated(self._literal(each)) for each in literal[-1:]]
            else:
                parts.append(self._repeated(self._atom(depth)))
        return Choice([*choices, Sequence(parts)]) if choices else Sequence(parts)

    def _atom(self, depth: int) -> Node:
        character = self._next()
        if character == "(":
            return self._group(depth)
        if character == "[":
            return Take(self._class())
        if character == ".":
            return Take(self._alphabet)
        if character in "^$":
            return Hold(Place.BEGIN if character == "^" else Place.END)
        if character == "\\":
            return self._escape()
        if character in "*+?":
            raise PatternError(f"nothing that {character} repeats")
        return self._literal(character)

    def _literal(self, character: str) -> Take:
        return Take(self._folded({character}))

    def _folded(self, characters: "set[str] | frozenset[str]") -> frozenset[str]:
        if self._ignores_case:
            characters = characters | {each.swapcase() for each in characters}
        return self._alphabet & characters

    def _group(self, depth: int) -> Node:
        ignored_case = self._ignores_case
        if self._take("?"):
            if self._take("P<") or self._take("<"):
                name, closed, _ = self._text[self._position :].partition(">")
                if not closed or not name.replace("_", "a").isalnum():
                    raise PatternError("a group without a name")
                self._position += len(name) + 1
            elif self._flags():
                # Flags for the rest of the group around them.
                return Sequence([])
        node = self.choice(depth=depth + 1)
        if not self._take(")"):
            raise PatternError("missing )")
        self._ignores_case = ignored_case
        return node

    def _flags(self) -> bool:
        """Reads flags; whether they are a group of their own."""
        value = True
        while True:
            character = self._next()
            if character == "-" and value:
                value = False
            elif character == "i":
                self._ignores_case = value
            elif character in ":)":
                return character == ")"
            # A name has one line, and greed does not matter to whether it matches.
            elif character not in "msU":
                raise PatternError(f"group of an unknown kind {character}")

    def _escape(self) -> Node:
        character = self._next()
        if character in "Az":
            return Hold(Place.BEGIN if character == "A" else Place.END)
        known = self._escaped_class(character)
        return self._literal(self._escaped(character)) if known is None else Take(known)

    def _escaped_class(self, character: str) -> frozenset[str] | None:
        known = _CLASSES.get(character.lower())
        if known is not None and character.isupper():
            return self._alphabet - known
        return known

    def _escaped(self, character: str) -> str:
        """Returns the character that an escape stands for."""
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character == "x":
            digits = self._next()
            if digits == "{":
                digits, closed, _ = self._text[self._position :].partition("}")
                self._position += len(digits) + len(closed)
            else:
                digits += self._next()
            try:
                return chr(int(digits, 16))
            except (ValueError, OverflowError):
                raise PatternError(f"no character {digits}") from None
        if character.isalnum() or ord(character) > _ASCII_END:
            raise PatternError(f"unknown escape \\{character}")
        return character

    def _class(self) -> frozenset[str]:
        is_negated = self._take("^")
        found: set[str] = set()
        is_first = True
        while is_first or not self._take("]"):
            is_first = False
            if self._take("[:"):
                found |= self._posix()
                continue
            low = self._next()
            if low == "\\":
                low = self._next()
                known = self._escaped_class(low)
                if known is not None:
                    found |= known
                    continue
                low = self._escaped(low)
            high = low
            if self._text.startswith("-", self._position) and not self._text.startswith(
                "-]", self._position
            ):
                self._position += 1
                high = self._next()
                if high == "\\":
                    high = self._escaped(self._next())
            if high < low:
                raise PatternError(f"range {low}-{high} goes down")
            found |= {each for each in self._alphabet | {low} if low <= each <= high}
        return self._alphabet - self._folded(found) if is_negated else self._folded(found)

    def _posix(self) -> frozenset[str]:
        name, closed, _ = self._text[self._position :].partition(":]")
        known = _POSIX.get(name.removeprefix("^"))
        if not closed or known is None:
            raise PatternError(f"unknown class [:{name}:]")
        self._position += len(name) + len(closed)
        return self._alphabet - known if name.startswith("^") else known

    def _repeated(self, node: Node) -> Node:
        """Reads what repeats a part; one repetition of another is none, as in RE2."""
        bounds = self._bounds()
        if bounds is None:
            return node
        self._take("?")
        before = self._position
        if self._bounds() is not None:
            self._position = before
            raise PatternError(f"a repetition of a repetition: {self._text[before]}")
        return Repeat(node, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        if not self._text.startswith("{", self._position):
            return None
        text, closed, _ = self._text[self._position + 1 :].partition("}")
        low, comma, high = text.partition(",")
        # Anything else in braces is itself.
        if not closed or not low.isdecimal() or not (high.isdecimal() or not high):
            return None
        if len(low) > _MAX_DIGITS or len(high) > _MAX_DIGITS:
            raise PatternError(f"more than {MAX_PATTERN_REPEAT} repetitions")
        self._position += len(text) + 2
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > MAX_PATTERN_REPEAT or (most is not None and most < least):
            raise PatternError(f"repetitions {{{text}}}, not 0 to {MAX_PATTERN_REPEAT}")
        return least, most
