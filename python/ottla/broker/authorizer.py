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

from typing import TYPE_CHECKING, Final, NamedTuple

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

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type cluster."""

MAX_RULES: Final = 100_000
"""Each takes some 300 bytes. Kafka has no bound of its own."""

NOT_ASKED: Final = -(1 << 31)
"""Authorized operations of a request that did not ask for them."""

ANYONE: Final = "User:*"
ANYTHING: Final = "*"


class ResourceType:
    """What a rule is about: numbers of the protocol."""

    UNKNOWN: Final = 0
    ANY: Final = 1
    TOPIC: Final = 2
    GROUP: Final = 3
    CLUSTER: Final = 4
    TRANSACTIONAL_ID: Final = 5
    DELEGATION_TOKEN: Final = 6
    USER: Final = 7


class PatternType:
    """How a rule names resources (KIP-290); ``MATCH`` is for filters alone."""

    UNKNOWN: Final = 0
    ANY: Final = 1
    MATCH: Final = 2
    LITERAL: Final = 3
    PREFIXED: Final = 4


class Operation:
    """What can be done: numbers of the protocol."""

    UNKNOWN: Final = 0
    ANY: Final = 1
    ALL: Final = 2
    READ: Final = 3
    WRITE: Final = 4
    CREATE: Final = 5
    DELETE: Final = 6
    ALTER: Final = 7
    DESCRIBE: Final = 8
    CLUSTER_ACTION: Final = 9
    DESCRIBE_CONFIGS: Final = 10
    ALTER_CONFIGS: Final = 11
    IDEMPOTENT_WRITE: Final = 12
    CREATE_TOKENS: Final = 13
    DESCRIBE_TOKENS: Final = 14
    TWO_PHASE_COMMIT: Final = 15


class Permission:
    """What a rule says: numbers of the protocol."""

    UNKNOWN: Final = 0
    ANY: Final = 1
    DENY: Final = 2
    ALLOW: Final = 3


_OPERATIONS: Final[dict[int, tuple[int, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""What can be done with a resource, by its type."""

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


class AccessRule(NamedTuple):
    """One rule (an ACL binding)."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    """As in ``User:alice``; ``User:*`` for anyone."""
    host: str
    """Address of the client; ``*`` for any."""
    operation: int
    permission: int

    def fault(self) -> str | None:
        """Returns why this cannot be a rule, `None` if it can."""
        operations = (*_OPERATIONS.get(self.resource_type, ()), Operation.ALL)
        kind, _, name = self.principal.partition(":")
        faults = (
            (self.resource_type not in _OPERATIONS, "the resource type is none"),
            (not self.resource_name, "the resource has no name"),
            (
                self.resource_type == ResourceType.CLUSTER and self.resource_name != CLUSTER_NAME,
                f"the only cluster is named {CLUSTER_NAME}",
            ),
            (
                self.pattern_type not in {PatternType.LITERAL, PatternType.PREFIXED},
                "a rule's pattern is literal or prefixed",
            ),
            (not kind or not name, "a principal is a type and a name, as in User:alice"),
            (not self.host, "a rule without host is for *"),
            (self.operation not in operations, "no such operation on such a resource"),
            (
                self.permission not in {Permission.ALLOW, Permission.DENY},
                "a rule allows or denies",
            ),
        )
        return next((text for is_fault, text in faults if is_fault), None)

    def concerns(self, principal: str, host: str) -> bool:
        """Whether it is about that principal at that host."""
        return self.principal in {principal, ANYONE} and self.host in {host, ANYTHING}


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
        self._rules: dict[AccessRule, None] = dict.fromkeys(rules)
        self._by_name: dict[tuple[int, int, str], dict[AccessRule, None]] = {}
        for rule in self._rules:
            self._of_name(rule)[rule] = None

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
            for operation in _OPERATIONS[resource_type]
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
        if rule not in self._rules and len(self._rules) >= MAX_RULES:
            return ErrorCode.POLICY_VIOLATION
        if rule not in self._rules:
            self._keeper.add_rule(rule)
        self._rules[rule] = None
        self._of_name(rule)[rule] = None
        return ErrorCode.NONE

    def remove(self, rule: AccessRule) -> None:
        """Removes a rule, if it is there."""
        if rule not in self._rules:
            return
        self._keeper.remove_rule(rule)
        del self._rules[rule]
        of_name = self._of_name(rule)
        del of_name[rule]
        if not of_name:
            del self._by_name[rule.resource_type, rule.pattern_type, rule.resource_name]

    def _of_name(self, rule: AccessRule) -> dict[AccessRule, None]:
        key = (rule.resource_type, rule.pattern_type, rule.resource_name)
        return self._by_name.setdefault(key, {})

    def _rules_on(self, resource_type: int, name: str) -> Iterator[AccessRule]:
        find = self._by_name.get
        for literal in {name, ANYTHING}:
            yield from find((resource_type, PatternType.LITERAL, literal), ())
        for end in range(1, len(name) + 1):
            yield from find((resource_type, PatternType.PREFIXED, name[:end]), ())


def _is_wildcard(rule: AccessRule) -> bool:
    return rule.pattern_type == PatternType.LITERAL and rule.resource_name == ANYTHING


def _covers(denied: AccessRule, allowed: AccessRule) -> bool:
    """Whether every resource that one rule allows is denied by the other."""
    if denied.pattern_type == PatternType.PREFIXED:
        return allowed.resource_name.startswith(denied.resource_name)
    is_literal = allowed.pattern_type == PatternType.LITERAL
    return is_literal and allowed.resource_name == denied.resource_name
