"""The admin client: for an event loop, and for callers without one."""

from __future__ import annotations

from random import SystemRandom
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ottla.client.admin.cluster import DescribeCluster, DescribeFeatures
from ottla.client.admin.configs import AlterConfigs, DescribeConfigs
from ottla.client.admin.core import AdminCore
from ottla.client.admin.groups import DeleteGroups, DescribeGroups, ListGroups
from ottla.client.admin.offsets import (
    AlterGroupOffsets,
    DeleteGroupOffsets,
    DeleteRecords,
    ListGroupOffsets,
    ListOffsets,
)
from ottla.client.admin.topics import (
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    DescribeTopics,
    ListTopics,
    NewTopic,
)
from ottla.client.admin.transactions import (
    AbortTransaction,
    DescribeProducers,
    DescribeTransactions,
    FenceProducers,
    ListTransactions,
)
from ottla.client.network.network import ClientNetwork
from ottla.client.options.settings import AdminSettings
from ottla.net.client.driver import Driver
from ottla.net.client.thread import DriverThread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from ottla.client.admin.cluster import ClusterDescription, FeaturesDescription
    from ottla.client.admin.configs import (
        AlteredConfigs,
        ConfigChange,
        ConfigResource,
        DescribedConfigs,
    )
    from ottla.client.admin.groups import ChangedGroup, GroupDescription, GroupListing
    from ottla.client.admin.offsets import (
        ChangedOffset,
        CommittedOffset,
        DeletedRecords,
        ListedOffset,
        OffsetSpec,
    )
    from ottla.client.admin.operation import Operation, Results
    from ottla.client.admin.topics import (
        ChangedTopic,
        CreatedTopic,
        TopicDescription,
        TopicListing,
    )
    from ottla.client.admin.transactions import (
        FencedProducer,
        PartitionProducers,
        ProducerState,
        TransactionDescription,
        TransactionListing,
    )
    from ottla.client.partitions import AnyPartition, OffsetAndMetadata, TopicPartition

__all__ = ["Admin", "AsyncAdmin"]

V = TypeVar("V")


class AsyncAdmin:
    """An admin client on the running event loop.

        async with AsyncAdmin(bootstrap_servers="kafka:9092") as admin:
            (await admin.create_topics([NewTopic("orders", 3)])).check()

    A call about several things returns a result for each, and each has its own ``error``; `check`
    of the results raises the first. A call about the cluster as a whole raises. What is retriable
    is asked for again until `timeout_ms` of the call, or `default_api_timeout_ms`, are over.

    Args:
        options: see `AdminSettings`.
    """

    def __init__(self, *others: NoReturn, **options: Any) -> None:
        self._settings = AdminSettings(*others, **options)
        random = SystemRandom().random
        network = ClientNetwork(self._settings, random=random)
        self._core = AdminCore(self._settings, network, random=random)
        self._driver = Driver(self._core)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Returns a client of the options that a configuration has, by dotted names."""
        from ottla.client.options.config import options_from_config

        return cls(**options_from_config(AdminSettings, config))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        driver: Driver | None = getattr(self, "_driver", None)
        if driver is not None:
            driver.discard(type(self).__name__)

    async def close(self) -> None:
        """Closes all connections; calls that wait fail."""
        await self._driver.close()

    async def _call(self, operation: Operation[Any, V], timeout_ms: int | None) -> V:
        self._driver.check()
        pending = self._core.begin(operation, self._driver.now_ms(), timeout_ms)
        value: V = await self._driver.call(pending)
        return value

    async def create_topics(
        self,
        topics: Iterable[NewTopic | str],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[str, CreatedTopic]:
        """Creates topics; a name alone has the broker's defaults."""
        return await self._call(CreateTopics(topics, validate_only=validate_only), timeout_ms)

    async def delete_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, ChangedTopic]:
        """Deletes topics."""
        return await self._call(DeleteTopics(names), timeout_ms)

    async def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[str, ChangedTopic]:
        """Gives topics more partitions, as many as they are to have then."""
        return await self._call(
            CreatePartitions(counts, assignments or {}, validate_only=validate_only), timeout_ms
        )

    async def list_topics(
        self, *, with_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicListing]:
        """Lists topics by name."""
        return await self._call(ListTopics(with_internal=with_internal), timeout_ms)

    async def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TopicDescription]:
        """Describes topics and their partitions."""
        return await self._call(DescribeTopics(names), timeout_ms)

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, DescribedConfigs]:
        """Tells configurations of topics, brokers, groups."""
        return await self._call(
            DescribeConfigs(resources, include_documentation=include_documentation), timeout_ms
        )

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange] | Mapping[str, str | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, AlteredConfigs]:
        """Changes some options, and leaves the others; ``None`` has one take its default again."""
        return await self._call(AlterConfigs(changes, validate_only=validate_only), timeout_ms)

    async def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout_ms: int | None = None,
    ) -> list[GroupListing]:
        """Lists groups, of these states and types alone where some are given."""
        return await self._call(ListGroups(states, types), timeout_ms)

    async def describe_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, GroupDescription]:
        """Describes groups and their members."""
        return await self._call(DescribeGroups(group_ids), timeout_ms)

    async def delete_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, ChangedGroup]:
        """Deletes groups that nobody is a member of, with what they have committed."""
        return await self._call(DeleteGroups(group_ids), timeout_ms)

    async def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, CommittedOffset]:
        """Tells what a group has committed, of some partitions or of all."""
        return await self._call(ListGroupOffsets(group_id, partitions), timeout_ms)

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[AnyPartition, OffsetAndMetadata | int],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, ChangedOffset]:
        """Sets where a group goes on that nobody is a member of."""
        return await self._call(AlterGroupOffsets(group_id, offsets), timeout_ms)

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[tuple[str, int]], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, ChangedOffset]:
        """Forgets what a group has committed, of topics that no member reads."""
        return await self._call(DeleteGroupOffsets(group_id, partitions), timeout_ms)

    async def list_offsets(
        self,
        wanted: Mapping[AnyPartition, OffsetSpec | int],
        *,
        read_committed: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, ListedOffset]:
        """Tells offsets: the first, the next, or that of a timestamp in ms."""
        return await self._call(ListOffsets(wanted, read_committed=read_committed), timeout_ms)

    async def delete_records(
        self, offsets: Mapping[AnyPartition, int], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, DeletedRecords]:
        """Deletes the records before an offset; -1 stands for all there are."""
        return await self._call(DeleteRecords(offsets), timeout_ms)

    async def describe_producers(
        self, partitions: Iterable[tuple[str, int]], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, PartitionProducers]:
        """Tells the producers that leaders of partitions know."""
        return await self._call(DescribeProducers(partitions), timeout_ms)

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        min_duration_ms: int = -1,
        timeout_ms: int | None = None,
    ) -> list[TransactionListing]:
        """Lists transactional ids, those that fit what is given."""
        return await self._call(ListTransactions(states, producer_ids, min_duration_ms), timeout_ms)

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TransactionDescription]:
        """Describes transactional ids and their transactions."""
        return await self._call(DescribeTransactions(transactional_ids), timeout_ms)

    async def abort_transaction(
        self, partition: tuple[str, int], producer: ProducerState, *, timeout_ms: int | None = None
    ) -> None:
        """Ends a transaction that hangs in a partition, of a producer as it was described."""
        await self._call(AbortTransaction(partition, producer), timeout_ms)

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, FencedProducer]:
        """Fences the producers of transactional ids, and aborts their transactions."""
        return await self._call(FenceProducers(transactional_ids), timeout_ms)

    async def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """Describes the cluster and its brokers."""
        return await self._call(DescribeCluster(), timeout_ms)

    async def describe_features(self, *, timeout_ms: int | None = None) -> FeaturesDescription:
        """Describes the features of the cluster, as ``transaction.version``."""
        return await self._call(
            DescribeFeatures(
                self._settings.client_software_name, self._settings.client_software_version
            ),
            timeout_ms,
        )


class Admin:
    """An admin client for callers without an event loop; see `AsyncAdmin`.

        with Admin(bootstrap_servers="kafka:9092") as admin:
            admin.create_topics([NewTopic("orders", 3)]).check()

    Args:
        options: see `AdminSettings`.
    """

    def __init__(self, *others: NoReturn, **options: Any) -> None:
        self._settings = AdminSettings(*others, **options)
        random = SystemRandom().random
        network = ClientNetwork(self._settings, random=random)
        self._core = AdminCore(self._settings, network, random=random)
        self._thread = DriverThread(self._core, name="ottla-admin")

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Returns a client of the options that a configuration has, by dotted names."""
        from ottla.client.options.config import options_from_config

        return cls(**options_from_config(AdminSettings, config))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        thread: DriverThread | None = getattr(self, "_thread", None)
        if thread is not None:
            thread.discard(type(self).__name__)

    def close(self) -> None:
        """Closes all connections; calls that wait fail."""
        self._thread.close()

    def _call(self, operation: Operation[Any, V], timeout_ms: int | None) -> V:
        thread = self._thread
        pending = thread.run(self._core.begin, operation, thread.now_ms(), timeout_ms)
        value: V = thread.wait(pending)
        return value

    def create_topics(
        self,
        topics: Iterable[NewTopic | str],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[str, CreatedTopic]:
        """Creates topics; a name alone has the broker's defaults."""
        return self._call(CreateTopics(topics, validate_only=validate_only), timeout_ms)

    def delete_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, ChangedTopic]:
        """Deletes topics."""
        return self._call(DeleteTopics(names), timeout_ms)

    def create_partitions(
        self,
        counts: Mapping[str, int],
        *,
        assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[str, ChangedTopic]:
        """Gives topics more partitions, as many as they are to have then."""
        return self._call(
            CreatePartitions(counts, assignments or {}, validate_only=validate_only), timeout_ms
        )

    def list_topics(
        self, *, with_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicListing]:
        """Lists topics by name."""
        return self._call(ListTopics(with_internal=with_internal), timeout_ms)

    def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TopicDescription]:
        """Describes topics and their partitions."""
        return self._call(DescribeTopics(names), timeout_ms)

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, DescribedConfigs]:
        """Tells configurations of topics, brokers, groups."""
        return self._call(
            DescribeConfigs(resources, include_documentation=include_documentation), timeout_ms
        )

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange] | Mapping[str, str | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, AlteredConfigs]:
        """Changes some options, and leaves the others; ``None`` has one take its default again."""
        return self._call(AlterConfigs(changes, validate_only=validate_only), timeout_ms)

    def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout_ms: int | None = None,
    ) -> list[GroupListing]:
        """Lists groups, of these states and types alone where some are given."""
        return self._call(ListGroups(states, types), timeout_ms)

    def describe_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, GroupDescription]:
        """Describes groups and their members."""
        return self._call(DescribeGroups(group_ids), timeout_ms)

    def delete_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, ChangedGroup]:
        """Deletes groups that nobody is a member of, with what they have committed."""
        return self._call(DeleteGroups(group_ids), timeout_ms)

    def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, CommittedOffset]:
        """Tells what a group has committed, of some partitions or of all."""
        return self._call(ListGroupOffsets(group_id, partitions), timeout_ms)

    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[AnyPartition, OffsetAndMetadata | int],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, ChangedOffset]:
        """Sets where a group goes on that nobody is a member of."""
        return self._call(AlterGroupOffsets(group_id, offsets), timeout_ms)

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[tuple[str, int]], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, ChangedOffset]:
        """Forgets what a group has committed, of topics that no member reads."""
        return self._call(DeleteGroupOffsets(group_id, partitions), timeout_ms)

    def list_offsets(
        self,
        wanted: Mapping[AnyPartition, OffsetSpec | int],
        *,
        read_committed: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, ListedOffset]:
        """Tells offsets: the first, the next, or that of a timestamp in ms."""
        return self._call(ListOffsets(wanted, read_committed=read_committed), timeout_ms)

    def delete_records(
        self, offsets: Mapping[AnyPartition, int], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, DeletedRecords]:
        """Deletes the records before an offset; -1 stands for all there are."""
        return self._call(DeleteRecords(offsets), timeout_ms)

    def describe_producers(
        self, partitions: Iterable[tuple[str, int]], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, PartitionProducers]:
        """Tells the producers that leaders of partitions know."""
        return self._call(DescribeProducers(partitions), timeout_ms)

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        min_duration_ms: int = -1,
        timeout_ms: int | None = None,
    ) -> list[TransactionListing]:
        """Lists transactional ids, those that fit what is given."""
        return self._call(ListTransactions(states, producer_ids, min_duration_ms), timeout_ms)

    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TransactionDescription]:
        """Describes transactional ids and their transactions."""
        return self._call(DescribeTransactions(transactional_ids), timeout_ms)

    def abort_transaction(
        self, partition: tuple[str, int], producer: ProducerState, *, timeout_ms: int | None = None
    ) -> None:
        """Ends a transaction that hangs in a partition, of a producer as it was described."""
        self._call(AbortTransaction(partition, producer), timeout_ms)

    def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, FencedProducer]:
        """Fences the producers of transactional ids, and aborts their transactions."""
        return self._call(FenceProducers(transactional_ids), timeout_ms)

    def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """Describes the cluster and its brokers."""
        return self._call(DescribeCluster(), timeout_ms)

    def describe_features(self, *, timeout_ms: int | None = None) -> FeaturesDescription:
        """Describes the features of the cluster, as ``transaction.version``."""
        return self._call(
            DescribeFeatures(
                self._settings.client_software_name, self._settings.client_software_version
            ),
            timeout_ms,
        )
