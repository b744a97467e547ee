"""Our declarations beside Apache's own, in every version that either release defines."""

from collections.abc import Iterator

import pytest
from ottla.protocol.wire import Field, Kind, Message, Struct, schema
from support.apache_messages import NEWEST, OLDER, Fact, definitions, facts, versions_of
from support.messages import all_messages, modules

pytestmark = pytest.mark.slow

# Structs of one module that Apache names alike in a request and in its response.
RENAMED = {
    "ResponseEntityData": "EntityData",
    "ResponseEntryData": "EntryData",
    "ResponsePartitionData": "PartitionData",
    "ResponseTopicData": "TopicData",
}

# What Kafka's brokers answer clients and we do not: delegation tokens, telemetry, share groups,
# streams groups, and voters of the metadata log.
NOT_SERVED = {
    *("CreateDelegationToken", "RenewDelegationToken"),
    *("ExpireDelegationToken", "DescribeDelegationToken"),
    *("GetTelemetrySubscriptions", "PushTelemetry"),
    *("ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge"),
    *("DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
    *("InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState"),
    *("DeleteShareGroupState", "ReadShareGroupStateSummary"),
    *("StreamsGroupHeartbeat", "StreamsGroupDescribe"),
    "StreamsGroupTopologyDescriptionUpdate",
    *("AddRaftVoter", "RemoveRaftVoter", "UnregisterBroker", "UnregisterController"),
}


def declared_facts(declared: type[Struct], version: int) -> tuple[Fact, ...]:
    fields = [
        field
        for field in schema(declared).fields
        if version in field.versions and not field.private
    ]
    ordered = [field for field in fields if version not in field.tagged]
    tagged = [field for field in fields if version in field.tagged]
    tagged.sort(key=lambda field: field.tag or 0)
    return tuple(declared_fact(field, version) for field in (*ordered, *tagged))


def declared_fact(field: Field, version: int) -> Fact:
    kind = field.kind
    is_struct = not isinstance(kind, Kind)
    has_struct = is_struct and not field.is_array and not field.is_shared
    name = kind.name if isinstance(kind, Kind) else schema(kind).name
    return Fact(
        field.name,
        RENAMED.get(name, name),
        field.is_array,
        version in field.null,
        field.tag if version in field.tagged else None,
        "a struct of defaults" if has_struct else field.new_default(),
        field.ignorable,
        declared_facts(kind, version) if not isinstance(kind, Kind) else (),
    )


# What the older release says otherwise of versions that both have; we follow the newest.
MEANT = {
    NEWEST: set[str](),
    OLDER: {
        "OffsetCommitRequest topics.name: ignorable is False",
        "OffsetCommitResponse topics.name: ignorable is False",
        "OffsetFetchRequest groups.topics.name: ignorable is False",
        "OffsetFetchResponse groups.topics.name: ignorable is False",
        "ProduceRequest topic_data.name: ignorable is False",
        "ProduceResponse responses.name: ignorable is False",
        "TxnOffsetCommitRequest topics.name: ignorable is False",
        "TxnOffsetCommitResponse topics.name: ignorable is False",
        "UpdateFeaturesResponse results: ignorable is False",
        # Renamed since members of consumer groups commit by it, too.
        "TxnOffsetCommitRequest: generation_id, not generation_id_or_member_epoch",
    },
}


def differences(name: str, ours: tuple[Fact, ...], theirs: tuple[Fact, ...]) -> Iterator[str]:
    """What Apache says otherwise of fields, each in its place."""
    assert len(ours) == len(theirs), name
    for mine, its in zip(ours, theirs, strict=True):
        if mine.name != its.name:
            yield f"{name}: {its.name}, not {mine.name}"
            continue
        path = f"{name}.{its.name}" if " " in name else f"{name} {its.name}"
        for attribute in Fact._fields[1:-1]:
            said = getattr(its, attribute)
            if said != getattr(mine, attribute):
                yield f"{path}: {attribute} is {said!r}"
        yield from differences(path, mine.fields, its.fields)


@pytest.mark.parametrize("release", [NEWEST, OLDER])
def test_every_version_has_apaches_fields_in_its_order(release: str) -> None:
    found = set()
    for message in all_messages():
        name = schema(message).name
        if definition := definitions(release).get(name):
            for version in versions_of(definition["validVersions"]):
                ours, theirs = declared_facts(message, version), facts(definition, version)
                found |= set(differences(name, ours, theirs))
    assert found == MEANT[release]


def test_every_message_is_apaches_by_its_key_versions_and_flexible_versions() -> None:
    for message in all_messages():
        declared, name = schema(message), schema(message).name
        newest = definitions(NEWEST)[name]
        older = definitions(OLDER).get(name, newest)
        first = min(versions_of(each["validVersions"]).start for each in (newest, older))
        assert declared.versions == range(first, versions_of(newest["validVersions"]).stop), name
        assert declared.flexible == versions_of(newest["flexibleVersions"]), name
        assert declared.api_key == newest.get("apiKey"), name


def test_every_api_for_clients_is_declared_or_left_out_by_name() -> None:
    named = {schema(message).name for message in all_messages()}
    for name, definition in definitions(NEWEST).items():
        if definition["type"] == "request" and "broker" in definition.get("listeners", ()):
            api = name.removesuffix("Request")
            assert (name in named) is not (api in NOT_SERVED), name


def test_messages_and_structs_are_declared_once_in_a_module() -> None:
    for module in modules().values():
        declared = [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, Struct)
        ]
        own = [value for value in declared if value not in {Struct, Message}]
        assert sorted(value.__name__ for value in own) == sorted(module.__all__)
