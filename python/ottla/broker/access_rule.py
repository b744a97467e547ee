"""Rules of access, in the numbers of the protocol: what they are about, and what they say."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = [
    "ANYONE",
    "ANYTHING",
    "CLUSTER_NAME",
    "OPERATIONS",
    "AccessRule",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
]

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type cluster."""

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


OPERATIONS: Final[dict[int, tuple[int, ...]]] = {
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
        operations = (*OPERATIONS.get(self.resource_type, ()), Operation.ALL)
        kind, _, name = self.principal.partition(":")
        faults = (
            (self.resource_type not in OPERATIONS, "the resource type is none"),
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
