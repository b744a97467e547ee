"""What clients do when something fails: `docs/client/failures.md` says what was measured."""

import pytest
from support.maven import MissingError
from support.programs import leave_out

from benches.failures.client import CLIENTS, JAVA
from benches.failures.page import PAGE, page
from benches.failures.results import load, observe, version_of
from benches.failures.scenarios import SCENARIOS

MEASURED = load()
TAKES = 3
PYTHON = [client for client in CLIENTS if client != JAVA]


def test_the_page_is_what_the_results_make() -> None:
    """`python -m benches.failures --page` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page(MEASURED)


def test_each_client_was_measured_in_each_of_twenty_failures() -> None:
    assert len(SCENARIOS) == 20
    assert {name: sorted(seen) for name, seen in MEASURED.observed.items()} == dict.fromkeys(
        SCENARIOS, sorted(CLIENTS)
    )
    assert sorted(MEASURED.clients) == sorted(CLIENTS)


def still_does(client: str, name: str) -> None:
    """A client does in a failure what the results say, in the version that they name."""
    recorded = str(MEASURED.clients[client]["version"])
    found = version_of(client)
    if found != recorded:
        pytest.skip(f"{client} {found} is here, and {recorded} was measured")
    wanted = MEASURED.observed[name][client]
    # Threads of a client race each other, and a busy machine lets another one win.
    for _ in range(TAKES):
        seen, _ = observe(client, name)
        if seen == wanted:
            break
    assert seen == wanted


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("client", PYTHON)
def test_a_client_of_python_does_what_the_page_says(client: str, name: str) -> None:
    still_does(client, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_javas_client_does_what_the_page_says(name: str) -> None:
    try:
        still_does(JAVA, name)
    except MissingError as missing:
        leave_out(str(missing))
