"""Regular expressions of consumers: RE2's language, in linear time."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.broker.groups.pattern_parser import PatternError
from ottla.broker.groups.topic_pattern import TopicPattern


@pytest.mark.parametrize(
    ("pattern", "matched", "others"),
    [
        ("orders", ["orders"], ["orders1", "Orders", "order"]),
        ("orders.*", ["orders", "orders-eu"], ["my-orders"]),
        ("a|bc|", ["a", "bc", ""], ["abc"]),
        ("(?i)Orders", ["ORDERS", "orders"], ["orders1"]),
        ("x(?i:y)z", ["xYz", "xyz"], ["XYz", "xYZ"]),
        ("^t-[0-9]{2,3}$", ["t-12", "t-123"], ["t-1", "t-1234"]),
        ("[^a-c]+", ["xyz"], ["xaz", ""]),
        (r"\w+\.\d", ["ab_1.7"], ["ab-1.7", "ab.x"]),
        (r"[\w.]+[[:digit:]]", ["a.b7"], ["a-b7"]),
        (r"\Qa.b\E+", ["a.b", "a.bb"], ["axb", "a.ba.b"]),
        ("(?P<name>a)(?<other>b)??", ["a", "ab"], ["b"]),
        ("a{,2}", [], ["a", "aa"]),
        ("a{0}b", ["b"], ["ab"]),
        (r"\x61\x{62}", ["ab"], ["x61"]),
        ("[]a]", ["a"], ["b"]),
        ("[a-]", ["a", "-"], ["b"]),
        ("(a*)*b", ["b", "aab"], ["a"]),
        ("a$b", [], ["ab", "a"]),
        ("", [""], ["a"]),
    ],
)
def test_patterns_match_whole_names(pattern: str, matched: list[str], others: list[str]) -> None:
    compiled = TopicPattern(pattern)
    assert [name for name in [*matched, *others] if compiled.matches(name)] == matched


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)", "[", "[a", "[b-a]", "*", "a**", "a{2}{3}", "|*", "\\", r"\1", r"\k", r"\pL",
        "(?=a)", "(?!a)", "(?<=a)", "(?P=name)", "(?", "(?P<", "a{3,2}", "a{1001}", "a{99999}",
        "[[:nope:]]", r"\x{110000}", r"\xzz", "(" * 51 + ")" * 51, "a" * 1_001,
        "((a{100}){100}){100}", "((((){1000}){1000}){1000}){1000}",
    ],
)  # fmt: skip
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        TopicPattern(pattern)


def test_a_pattern_that_would_run_away_takes_linear_time() -> None:
    # Moves are bounded by the name's length, whatever the pattern: (a|a)* doubles an engine's work
    # with each character.
    compiled = TopicPattern("(a|a|aa)*(a*)*c")
    assert not compiled.matches("a" * 249)
    assert compiled.matches("a" * 248 + "c")


def test_a_pattern_that_takes_too_long_over_all_names_is_refused_and_goes_on_over_few() -> None:
    chance = random.Random(848)
    names = ["".join(chance.choices("ab", k=249)) for _ in range(200)]
    compiled = TopicPattern("(a|b)*a(a|b){240}")
    with pytest.raises(PatternError, match="steps over the names there are"):
        compiled.matching(names)
    # Each set of states is of hundreds, and few of them are remembered.
    assert sum(len(found) for moves in compiled._sets.values() for found in moves.values()) < 30_000
    few = [name[:200] for name in names[:3]]
    assert compiled.matching(few) == []
    assert TopicPattern("[ab]*").matching(names) == names
    many = [f"shop-{number}.orders" for number in range(50_000)]
    assert TopicPattern(".*shop-[0-9]*[.](orders|payments)").matching(many) == many


def test_remembered_moves_are_bounded_and_forgetting_them_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ottla.broker.groups.topic_pattern.MAX_PATTERN_MOVES", 3)
    compiled = TopicPattern("(ab|cd)*x?")
    assert [compiled.matches(each) for each in ("abcdab", "abcdx", "abc", "abxx")] == [
        True,
        True,
        False,
        False,
    ]


atoms = st.sampled_from(["a", "b", "-", r"\.", ".", "[ab]", "[^a]", r"\d", r"\W", "1"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}", "{2}", "{1,}", "*?"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@given(patterns, st.lists(st.text("ab1-._A", max_size=6), max_size=8))
def test_it_matches_what_pythons_engine_matches(pattern: str, names: list[str]) -> None:
    compiled = TopicPattern(pattern)
    for name in names:
        assert compiled.matches(name) == bool(re.fullmatch(pattern, name, re.ASCII)), name
