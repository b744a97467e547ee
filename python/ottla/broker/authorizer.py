"""Who may do what: super users, and access rules on resources (KIP-11, KIP-290).

A request of a principal from a host for an operation on a resource is decided so, by the rules on
that resource: those on its name, on ``*``, and on any prefix of its name.

1. A super user may.
2. A rule that denies it to them decides against it, whatever else is allowed.
3. A rule that allows it decides for it. Some operations are allowed by allowing another: who may
   read, write, delete or alter may describe, and who may alter configs may describe them.
4. A resource without any rule follows ``allow.everyone.if.no.acl.found``; any other is refused.

Without an authorizer (``authorizer.class.name`` is empty, Kafka's default) everything is allowed,
and requests about rules are answered SECURITY_DISABLED.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.access_rule import (
    ANYTHING,
    CLUSTER_NAME,
    OPERATIONS,
    AccessRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ottla.broker.keeper import Keeper
from ottla.protocol.error_code import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "CLUSTER_NAME",
    "MAX_RULES",
    "NOT_ASKED",
    "AccessRule",
    "Authorizer",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
    "RuleFilter",
]

MAX_RULES: Final = 100_000
"""Each takes some 300 bytes. Kafka has no bound of its own."""

NOT_ASKED: Final = -(1 << 31)
"""Authorized operations of a request that did not ask for them."""

_ALLOWED_BY: Final[dict[int, tuple[int, ...]]] = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}

_ERRORS: Final[dict[int, int]] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


class RuleFilter(NamedTuple):
    """Which rules are meant; `None` and the numbers of ``ANY`` stand for all."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def is_known(self) -> bool:
        """Whether it names nothing that this broker does not know."""
        return (
            1 <= self.resource_type <= ResourceType.USER
            and 1 <= self.pattern_type <= PatternType.PREFIXED
            and 1 <= self.operation <= Operation.TWO_PHASE_COMMIT
            and 1 <= self.permission <= Permission.ALLOW
        )

    def takes(self, rule: AccessRule) -> bool:
        """Whether a rule is meant."""
        return (
            self.resource_type in {ResourceType.ANY, rule.resource_type}
            and self._takes_name(rule)
            and self.principal in {None, rule.principal}
            and self.host in {None, rule.host}
            and self.operation in {Operation.ANY, rule.operation}
            and self.permission in {Permission.ANY, rule.permission}
        )

    def _takes_name(self, rule: AccessRule) -> bool:
        if self.pattern_type in {PatternType.LITERAL, PatternType.PREFIXED}:
            is_named = self.resource_name in {None, rule.resource_name}
            return rule.pattern_type == self.pattern_type and is_named
        if self.resource_name in {None, rule.resource_name}:
            return True
        return self.pattern_type == PatternType.MATCH and _applies(rule, self.resource_name or "")


def _applies(rule: AccessRule, name: str) -> bool:
    if rule.pattern_type == PatternType.PREFIXED:
        return name.startswith(rule.resource_name)
    return rule.resource_name in {name, ANYTHING}


class Authorizer:
    """Decides by rules.

    Args:
        is_enabled: false allows everything.
        super_users: principals that may do anything (``super.users``).
        allow_everyone: ``allow.everyone.if.no.acl.found``.
        rules: to begin with.
        keeper: is told of changes.
    """

    def __init__(
        self,
        *,
        is_enabled: bool = False,
        super_users: Iterable[str] = (),
        allow_everyone: bool = False,
        rules: Iterable[AccessRule] = (),
        keeper: Keeper | None = None,
    ) -> None:
        self._keeper = keeper or Keeper()
        self.is_enabled = is_enabled
        self.super_users = frozenset(super_users)
        self.allow_everyone = allow_everyone
        self._rules: dict[AccessRule, None] = {}
        self._by_name: dict[tuple[int, int, str], dict[AccessRule, None]] = {}
        self._prefix_lengths: Counter[int] = Counter()
        """Rules on prefixes by their length: the name of a client may have 32,767 prefixes."""
        for rule in dict.fromkeys(rules):
            self._index(rule)

    def __len__(self) -> int:
        return len(self._rules)

    def allows(
        self, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> bool:
        """Whether a principal at a host may do something with a resource."""
        if not self.is_enabled or principal in self.super_users:
            return True
        rules = tuple(self._rules_on(resource_type, name))
        if not rules:
            return self.allow_everyone
        own = [rule for rule in rules if rule.concerns(principal, host)]
        denying = {operation, Operation.ALL}
        if any(rule.permission == Permission.DENY and rule.operation in denying for rule in own):
            return False
        allowing = denying.union(_ALLOWED_BY.get(operation, ()))
        return any(
            rule.permission == Permission.ALLOW and rule.operation in allowing for rule in own
        )

    def error(
        self, principal: str, host: str, operation: int, resource_type: int, name: str
    ) -> int:
        """Returns `NONE`, or the error code of a resource that may not be used so."""
        if self.allows(principal, host, operation, resource_type, name):
            return ErrorCode.NONE
        return _ERRORS[resource_type]

    def allows_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether there can be a resource of a type that a principal may use so.

        An idempotent producer needs no more than one topic to write to.
        """
        if not self.is_enabled or principal in self.super_users:
            return True
        meant = {operation, Operation.ALL}
        own = [
            rule
            for rule in self._rules
            if rule.resource_type == resource_type
            and rule.operation in meant
            and rule.concerns(principal, host)
        ]
        denied = [rule for rule in own if rule.permission == Permission.DENY]
        if any(_is_wildcard(rule) for rule in denied):
            return False
        allowed = [rule for rule in own if rule.permission == Permission.ALLOW]
        is_allowed = any(
            _is_wildcard(rule) or not any(_covers(other, rule) for other in denied)
            for rule in allowed
        )
        return is_allowed or self.allow_everyone

    def authorized_operations(
        self, principal: str, host: str, resource_type: int, name: str
    ) -> int:
        """Returns what a principal may do with a resource: a bit for each operation (KIP-430)."""
        allowed = (
            operation
            for operation in OPERATIONS[resource_type]
            if self.allows(principal, host, operation, resource_type, name)
        )
        return sum(1 << operation for operation in allowed)

    def rules(self, wanted: RuleFilter) -> list[AccessRule]:
        """Returns the rules that a filter takes."""
        return [rule for rule in self._rules if wanted.takes(rule)]

    def add(self, rule: AccessRule) -> int:
        """Adds a rule, once; returns an error code."""
        if rule.fault() is not None:
            return ErrorCode.INVALID_REQUEST
        if rule in self._rules:
            return ErrorCode.NONE
        if len(self._rules) >= MAX_RULES:
            return ErrorCode.POLICY_VIOLATION
        self._keeper.add_rule(rule)
        self._index(rule)
        return ErrorCode.NONE

    def remove(self, rule: AccessRule) -> None:
        """Removes a rule, if it is there."""
        if rule not in self._rules:
            return
        self._keeper.remove_rule(rule)
        del self._rules[rule]
        of_name = self._by_name[_key_of(rule)]
        del of_name[rule]
        if not of_name:
            del self._by_name[_key_of(rule)]
        if rule.pattern_type == PatternType.PREFIXED:
            length = len(rule.resource_name)
            self._prefix_lengths[length] -= 1
            if not self._prefix_lengths[length]:
                del self._prefix_lengths[length]

    def _index(self, rule: AccessRule) -> None:
        """Enters a rule that is not there."""
        self._rules[rule] = None
        self._by_name.setdefault(_key_of(rule), {})[rule] = None
        if rule.pattern_type == PatternType.PREFIXED:
            self._prefix_lengths[len(rule.resource_name)] += 1

    def _rules_on(self, resource_type: int, name: str) -> Iterator[AccessRule]:
        find = self._by_name.get
        for literal in {name, ANYTHING}:
            yield from find((resource_type, PatternType.LITERAL, literal), ())
        for length in self._prefix_lengths:
            if length <= len(name):
                yield from find((resource_type, PatternType.PREFIXED, name[:length]), ())


def _key_of(rule: AccessRule) -> tuple[int, int, str]:
    return rule.resource_type, rule.pattern_type, rule.resource_name


def _is_wildcard(rule: AccessRule) -> bool:
    return rule.pattern_type == PatternType.LITERAL and rule.resource_name == ANYTHING


def _covers(denied: AccessRule, allowed: AccessRule) -> bool:
    """Whether every resource that one rule allows is denied by the other."""
    if denied.pattern_type == PatternType.PREFIXED:
        return allowed.resource_name.startswith(denied.resource_name)
    is_literal = allowed.pattern_type == PatternType.LITERAL
    return is_literal and allowed.resource_name == denied.resource_name
