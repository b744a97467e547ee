"""Who of a classic group gets which partitions: the strategies of its leader (KIP-429, KIP-54)."""

from ottla.client.groups.assignors.assignor import Assignor, Members, Subscription
from ottla.client.groups.assignors.names import assignor_of

__all__ = ["Assignor", "Members", "Subscription", "assignor_of"]
