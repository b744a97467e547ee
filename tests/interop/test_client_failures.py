"""What clients do when something fails: `docs/client/failures.md` says what was measured."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from support import kafka_broker
from support.maven import MissingError
from support.programs import leave_out

from benches.failures.client import CLIENTS
from benches.failures.page import PAGE, page
from benches.failures.real import KAFKA_RELEASE, WITHOUT_FAULTS, observe_kafka
from benches.failures.results import load, observe, version_of
from benches.failures.scenarios import SCENARIOS

MEASURED = load()
TAKES = 3
AT_ONCE = 5


def test_the_page_is_what_the_results_make() -> None:
    """`python -m benches.failures --page` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page(MEASURED)


def test_each_client_was_measured_in_each_of_twenty_failures() -> None:
    assert len(SCENARIOS) == 20
    assert {name: sorted(seen) for name, seen in MEASURED.observed.items()} == dict.fromkeys(
        SCENARIOS, sorted(CLIENTS)
    )
    assert sorted(MEASURED.clients) == sorted(CLIENTS)


def left_out_in_another_version(client: str) -> None:
    recorded = str(MEASURED.clients[client]["version"])
    found = version_of(client)
    if found != recorded:
        pytest.skip(f"{client} {found} is here, and {recorded} was measured")


def still_does(client: str, name: str) -> bool:
    """Whether a client does in a failure what the results say, in the version that they name."""
    wanted = MEASURED.observed[name][client]
    # Threads of a client race each other, and a busy machine lets another one win.
    return any(observe(client, name)[0] == wanted for _ in range(TAKES))


@pytest.fixture(scope="module")
def observations(request: pytest.FixtureRequest) -> Iterator[dict[tuple[str, str], Future[bool]]]:
    """What the chosen tests look at, some at once: a failure is waiting, mostly."""
    chosen = [
        item.callspec.params
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.module is request.module
        and "observations" in item.fixturenames
    ]
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield {
            (client, name): pool.submit(still_does, client, name)
            for client, name in ((str(each["client"]), str(each["name"])) for each in chosen)
        }
    finally:
        pool.shutdown(cancel_futures=True)


@pytest.mark.slow
# Whether a client says it at once: one that has just come up takes longer on a busy machine.
@pytest.mark.measures
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_does_what_the_page_says(
    observations: dict[tuple[str, str], Future[bool]], client: str, name: str
) -> None:
    try:
        left_out_in_another_version(client)
        assert observations[client, name].result()
    except MissingError as missing:
        leave_out(str(missing))


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a broker of Apache Kafka is."""
    try:
        kafka_broker.broker_jars(KAFKA_RELEASE)
    except MissingError as missing:
        leave_out(str(missing))
    home = tmp_path_factory.mktemp("kafka")
    with kafka_broker.broker(home, version=KAFKA_RELEASE) as broker:
        yield broker.bootstrap_servers


@pytest.mark.slow
@pytest.mark.xdist_group("apache")
@pytest.mark.parametrize("name", WITHOUT_FAULTS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_failure_that_needs_no_fault_comes_to_the_same_with_apache_kafka(
    apache: str, client: str, name: str
) -> None:
    left_out_in_another_version(client)
    wanted = MEASURED.observed[name][client]
    for _ in range(TAKES):
        observed = observe_kafka(client, name, apache)
        if observed == wanted:
            break
    assert observed == wanted
