"""Access rules: who may do what with which resource, and what is said to those who may not."""

import timeit
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.broker.authorizer import (
    CLUSTER_NAME,
    AccessRule,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    RuleFilter,
)
from ottla.protocol.error_code import ErrorCode

ALICE, BOB = "User:alice", "User:bob"
HOME, OUT = "10.0.0.1", "10.0.0.2"
ALL_RULES = RuleFilter(1, None, 1, None, None, 1, 1)


def rule(
    name: str,
    operation: int = Operation.READ,
    *,
    principal: str = ALICE,
    host: str = "*",
    pattern: int = PatternType.LITERAL,
    permission: int = Permission.ALLOW,
    resource: int = ResourceType.TOPIC,
) -> AccessRule:
    return AccessRule(resource, name, pattern, principal, host, operation, permission)


def enforced(*rules: AccessRule, allow_everyone: bool = False) -> Authorizer:
    return Authorizer(
        is_enabled=True, super_users=["User:admin"], allow_everyone=allow_everyone, rules=rules
    )


def may(
    authorizer: Authorizer,
    name: str,
    operation: int = Operation.READ,
    *,
    principal: str = ALICE,
    host: str = HOME,
    resource: int = ResourceType.TOPIC,
) -> bool:
    return authorizer.allows(principal, host, operation, resource, name)


def test_without_an_authorizer_everybody_may_do_everything() -> None:
    assert may(Authorizer(), "orders", Operation.DELETE)


def test_a_super_user_may_do_everything_even_what_is_denied() -> None:
    denied = rule("orders", Operation.ALL, principal="User:*", permission=Permission.DENY)
    assert may(enforced(denied), "orders", principal="User:admin")
    assert not may(enforced(denied), "orders")


@pytest.mark.parametrize("allow_everyone", [True, False])
def test_a_resource_without_rules_follows_the_setting(*, allow_everyone: bool) -> None:
    authorizer = enforced(rule("payments"), allow_everyone=allow_everyone)
    assert may(authorizer, "orders") == allow_everyone
    assert not may(authorizer, "payments", principal=BOB)


def test_a_rule_is_for_its_principal_host_operation_and_resource() -> None:
    authorizer = enforced(rule("orders", host=HOME))
    assert may(authorizer, "orders")
    assert not may(authorizer, "orders", principal=BOB)
    assert not may(authorizer, "orders", host=OUT)
    assert not may(authorizer, "orders", Operation.WRITE)
    assert not may(authorizer, "orders", resource=ResourceType.GROUP)
    assert not may(authorizer, "orders2")


def test_a_rule_for_anyone_is_for_everybody() -> None:
    assert may(enforced(rule("orders", principal="User:*")), "orders", principal=BOB)


def test_a_literal_asterisk_names_all_resources_of_the_type() -> None:
    assert may(enforced(rule("*")), "whatever")


def test_a_prefix_names_all_resources_that_begin_with_it() -> None:
    authorizer = enforced(rule("or", pattern=PatternType.PREFIXED))
    assert [may(authorizer, name) for name in ("or", "orders", "o", "for")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("orders", PatternType.LITERAL),
        ("*", PatternType.LITERAL),
        ("ord", PatternType.PREFIXED),
    ],
)
def test_a_denial_wins_over_any_permission(name: str, pattern: int) -> None:
    denied = rule(name, pattern=pattern, permission=Permission.DENY)
    authorizer = enforced(rule("orders"), rule("*"), denied)
    assert not may(authorizer, "orders")


@pytest.mark.parametrize(
    ("allowed", "implied"),
    [
        (Operation.READ, Operation.DESCRIBE),
        (Operation.WRITE, Operation.DESCRIBE),
        (Operation.DELETE, Operation.DESCRIBE),
        (Operation.ALTER, Operation.DESCRIBE),
        (Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS),
        (Operation.ALL, Operation.CREATE),
    ],
)
def test_some_permissions_bring_others(allowed: int, implied: int) -> None:
    assert may(enforced(rule("orders", allowed)), "orders", implied)
    assert not may(enforced(rule("orders", implied)), "orders", allowed)


def test_a_denial_brings_no_others() -> None:
    denied = rule("orders", Operation.READ, permission=Permission.DENY)
    authorizer = enforced(rule("orders", Operation.DESCRIBE), denied)
    assert may(authorizer, "orders", Operation.DESCRIBE)


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_each_type_of_resource_has_its_error(resource: int, error: int) -> None:
    authorizer = enforced()
    assert authorizer.error(ALICE, HOME, Operation.DESCRIBE, resource, "a") == error
    assert authorizer.error("User:admin", HOME, Operation.DESCRIBE, resource, "a") == 0


def test_an_idempotent_producer_needs_one_topic_that_it_may_write_to() -> None:
    def writes(*rules: AccessRule) -> bool:
        return enforced(*rules).allows_any(ALICE, HOME, Operation.WRITE, ResourceType.TOPIC)

    write = Operation.WRITE
    prefix = PatternType.PREFIXED

    def denied(name: str, pattern: int = PatternType.LITERAL) -> AccessRule:
        return rule(name, write, pattern=pattern, permission=Permission.DENY)

    assert not writes()
    assert writes(rule("orders", write))
    assert not writes(rule("orders", write, principal=BOB))
    assert not writes(rule("orders", write), denied("orders"))
    assert writes(rule("orders", write, pattern=prefix), denied("orders"))
    assert not writes(rule("orders", write, pattern=prefix), denied("ord", prefix))
    assert writes(rule("*", write), denied("ord", prefix))
    assert not writes(rule("*", write), denied("*"))


def test_authorized_operations_are_a_bit_each() -> None:
    authorizer = enforced(rule("orders", Operation.READ))
    bits = authorizer.authorized_operations(ALICE, HOME, ResourceType.TOPIC, "orders")
    assert bits == 1 << Operation.READ | 1 << Operation.DESCRIBE
    everything = Authorizer().authorized_operations(ALICE, HOME, ResourceType.TOPIC, "orders")
    assert everything == 0b1101_1111_1000
    of_cluster = Authorizer().authorized_operations(ALICE, HOME, ResourceType.CLUSTER, "k")
    assert of_cluster == 0b1_1111_1010_0000


@pytest.mark.parametrize(
    "wrong",
    [
        rule(""),
        rule("orders", Operation.ANY),
        rule("orders", Operation.IDEMPOTENT_WRITE),
        rule("orders", pattern=PatternType.MATCH),
        rule("orders", principal="alice"),
        rule("orders", principal=":alice"),
        rule("orders", host=""),
        rule("orders", permission=Permission.ANY),
        rule("orders", resource=ResourceType.ANY),
        rule("cluster", Operation.ALTER, resource=ResourceType.CLUSTER),
    ],
)
def test_what_cannot_be_a_rule_is_refused(wrong: AccessRule) -> None:
    authorizer = enforced()
    assert wrong.fault()
    assert authorizer.add(wrong) == ErrorCode.INVALID_REQUEST
    assert len(authorizer) == 0


def test_a_rule_is_there_once_until_it_is_removed() -> None:
    authorizer = enforced()
    on_cluster = rule(CLUSTER_NAME, Operation.CREATE, resource=ResourceType.CLUSTER)
    for one in (rule("orders"), rule("orders"), on_cluster):
        assert authorizer.add(one) == ErrorCode.NONE
    assert authorizer.rules(ALL_RULES) == [rule("orders"), on_cluster]
    authorizer.remove(rule("orders"))
    authorizer.remove(rule("orders"))
    assert authorizer.rules(ALL_RULES) == [on_cluster]
    assert not may(authorizer, "orders")


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        (PatternType.ANY, None, {"orders", "ord", "*"}),
        (PatternType.ANY, "orders", {"orders"}),
        (PatternType.MATCH, "orders", {"orders", "ord", "*"}),
        (PatternType.MATCH, "ord", {"ord", "*"}),
        (PatternType.LITERAL, "orders", {"orders"}),
        (PatternType.LITERAL, "ord", set()),
        (PatternType.LITERAL, None, {"orders", "*"}),
        (PatternType.PREFIXED, "ord", {"ord"}),
        (PatternType.PREFIXED, None, {"ord"}),
    ],
)
def test_a_filter_takes_rules_by_its_pattern(
    pattern: int, name: str | None, found: set[str]
) -> None:
    authorizer = enforced(rule("orders"), rule("*"), rule("ord", pattern=PatternType.PREFIXED))
    wanted = ALL_RULES._replace(pattern_type=pattern, resource_name=name)
    assert {one.resource_name for one in authorizer.rules(wanted)} == found


NAMES = st.text("ab", min_size=1, max_size=3) | st.just("*")
RULES = st.builds(
    AccessRule,
    st.just(ResourceType.TOPIC),
    NAMES,
    st.sampled_from((PatternType.LITERAL, PatternType.PREFIXED)),
    st.sampled_from((ALICE, BOB, "User:*")),
    st.sampled_from((HOME, "*")),
    st.sampled_from((Operation.READ, Operation.DESCRIBE, Operation.ALL)),
    st.sampled_from((Permission.ALLOW, Permission.DENY)),
)


@given(st.lists(RULES, max_size=6), st.lists(RULES, max_size=3), st.text("ab", max_size=3))
def test_decisions_are_those_of_a_look_at_every_rule(
    added: list[AccessRule], removed: list[AccessRule], name: str
) -> None:
    authorizer = enforced(*added)
    for one in removed:
        authorizer.remove(one)
    left = set(added) - set(removed)
    on_name = [
        one
        for one in left
        if (one.resource_name in {name, "*"} and one.pattern_type == PatternType.LITERAL)
        or (one.pattern_type == PatternType.PREFIXED and name.startswith(one.resource_name))
    ]
    own = [one for one in on_name if one.principal != BOB and one.host in {HOME, "*"}]
    is_denied = any(
        one.permission == Permission.DENY and one.operation in {Operation.DESCRIBE, Operation.ALL}
        for one in own
    )
    is_allowed = any(one.permission == Permission.ALLOW for one in own)
    assert may(authorizer, name, Operation.DESCRIBE) == (is_allowed and not is_denied)


@pytest.mark.measures
def test_a_name_of_very_many_prefixes_is_decided_on_about_as_fast_as_a_short_one() -> None:
    authorizer = enforced(rule("or", pattern=PatternType.PREFIXED))

    def least_s(name: str) -> float:
        decide = partial(may, authorizer, name)
        assert decide()
        return min(timeit.repeat(decide, number=3, repeat=5))

    # To try every prefix takes ten thousand times as long.
    assert least_s("or" + "d" * 32_765) < 500 * least_s("orders")
