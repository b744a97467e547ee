"""Client quotas: what is kept, what is refused, and which of them a filter takes."""

import pytest
from ottla.broker.quotas import (
    MATCH_ANY,
    MATCH_DEFAULT,
    MATCH_EXACT,
    ClientQuotas,
    Component,
)
from ottla.protocol.error_code import ErrorCode

Entity = list[tuple[str, str | None]]
ALICE: Entity = [("user", "alice")]
ANY_USER: Entity = [("user", None)]
ALICE_AT_APP: Entity = [("user", "alice"), ("client-id", "app")]
RATE = {"producer_byte_rate": 1000.0}


def kept() -> ClientQuotas:
    quotas = ClientQuotas()
    for entity in (ALICE, ANY_USER, ALICE_AT_APP):
        assert quotas.alter(entity, RATE, validate_only=False) == (ErrorCode.NONE, None)
    return quotas


def found(quotas: ClientQuotas, *components: Component, strict: bool = False) -> list[Entity]:
    (error, _), entries = quotas.describe(components, strict=strict)
    assert error == ErrorCode.NONE
    return [list(entity) for entity, _ in entries]


def test_what_is_set_is_described_until_it_is_removed() -> None:
    quotas = kept()
    quotas.alter(ALICE, {"request_percentage": 12.5}, validate_only=False)
    exact = Component("user", MATCH_EXACT, "alice")
    _, [(_, values), *_] = quotas.describe([exact], strict=True)
    assert values == {"producer_byte_rate": 1000.0, "request_percentage": 12.5}
    removal = dict.fromkeys(values)
    quotas.alter(ALICE, removal, validate_only=False)
    assert found(quotas, exact, strict=True) == []


def test_what_is_only_validated_is_not_kept() -> None:
    quotas = ClientQuotas()
    assert quotas.alter(ALICE, RATE, validate_only=True) == (ErrorCode.NONE, None)
    assert found(quotas) == []


def test_a_filter_takes_an_exact_name_the_default_or_any() -> None:
    quotas = kept()
    by_type = sorted(ALICE_AT_APP)
    assert found(quotas, Component("user", MATCH_EXACT, "alice")) == [ALICE, by_type]
    assert found(quotas, Component("user", MATCH_EXACT, "alice"), strict=True) == [ALICE]
    assert found(quotas, Component("user", MATCH_DEFAULT, None)) == [ANY_USER]
    assert found(quotas, Component("user", MATCH_ANY, None), strict=True) == [ALICE, ANY_USER]
    assert found(quotas, Component("client-id", MATCH_ANY, None)) == [by_type]
    assert found(quotas) == [ALICE, ANY_USER, by_type]


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([Component("", MATCH_ANY, None)], ErrorCode.INVALID_REQUEST),
        ([Component("robot", MATCH_ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([Component("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([Component("user", MATCH_EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([Component("user", MATCH_DEFAULT, "alice")], ErrorCode.INVALID_REQUEST),
        ([Component("user", MATCH_ANY, None)] * 2, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(components: list[Component], error: int) -> None:
    (found_error, text), entries = kept().describe(components, strict=False)
    assert (found_error, entries) == (error, [])
    assert text


@pytest.mark.parametrize(
    ("entity", "changes"),
    [
        ([], RATE),
        ([("robot", "r2")], RATE),
        ([("user", "")], RATE),
        ([("user", "alice"), ("user", "bob")], RATE),
        ([("user", "alice"), ("ip", "10.0.0.1")], {"connection_creation_rate": 1.0}),
        (ALICE, {"connection_creation_rate": 1.0}),
        ([("ip", "10.0.0.1")], RATE),
        (ALICE, {"beer_rate": 1.0}),
        (ALICE, {"producer_byte_rate": -1.0}),
        (ALICE, {"producer_byte_rate": 1.5}),
        (ALICE, {"request_percentage": float("nan")}),
        (ALICE, {**RATE, "request_percentage": float("inf")}),
    ],
)
def test_what_cannot_be_a_quota_changes_nothing(
    entity: Entity, changes: dict[str, float | None]
) -> None:
    quotas = ClientQuotas()
    error, text = quotas.alter(entity, changes, validate_only=False)
    assert error == ErrorCode.INVALID_REQUEST
    assert text
    assert found(quotas) == []
