"""franz-go: what it sends is stored, and what is stored it receives."""

import subprocess
from pathlib import Path

import pytest
from ottla.testing import Broker
from support.go_programs import built

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parent / "go"
PATIENCE_S = 120


@pytest.fixture(scope="module")
def program() -> Path:
    return built(SOURCE, "franz-go")


def lines(program: Path, broker: Broker, scenario: str, given: str = "") -> list[str]:
    """What a scenario of `main.go` prints."""
    done = subprocess.run(
        [program, scenario, broker.bootstrap_servers, given],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_codec_arrive_with_keys_headers_and_timestamps(
    program: Path, broker: Broker, codec: str
) -> None:
    assert lines(program, broker, "codec", codec) == []
    stored = broker.records("orders", 0)
    assert [record.value for record in stored] == [b"value %d " % n * 20 for n in range(100)]
    assert {entry.software_name for entry in broker.requests} == {"kgo"}


def test_an_idempotent_producer_that_is_cut_off_stores_each_record_once(
    program: Path, broker: Broker
) -> None:
    cut = broker.fail("Produce", disconnect=True, after=True, times=1)
    lines(program, broker, "codec", "none")
    assert cut.hits == 1
    assert len(broker.records("orders", 0)) == 100


def test_committed_readers_get_what_was_committed_and_the_others_all(
    program: Path, broker: Broker
) -> None:
    assert lines(program, broker, "transactions") == ["a c", "a b c"]


def test_a_group_goes_on_where_it_has_ended(program: Path, broker: Broker) -> None:
    assert lines(program, broker, "group") == ["early0 early1 early2", "later0 later1 later2"]
    assert {each.offset for each in broker.groups["team"].offsets} == {2}


def test_offsets_are_found_by_time_and_at_both_ends(program: Path, broker: Broker) -> None:
    assert lines(program, broker, "times") == ["3 0 5"]


def test_admin_calls_create_grow_describe_and_delete(program: Path, broker: Broker) -> None:
    assert lines(program, broker, "admin") == ["1000", "4", "true", "1"]
    assert broker.topics == {"orders": 3}


@pytest.mark.parametrize("culprits", ["1", "03"])
def test_every_record_of_a_refused_batch_is_told_as_invalid(
    program: Path, broker: Broker, culprits: str
) -> None:
    """franz-go does not look for whom the broker blames (KIP-467)."""
    broker.create_topic("compacted", cleanup_policy="compact")
    general = "This record has failed the validation on the broker and hence been rejected."
    told = [f"true INVALID_RECORD: {general}"] * 4
    assert lines(program, broker, "refused", culprits) == told
    assert broker.records("compacted") == []
