"""The last requests: in bounded memory, whatever clients call themselves."""

from ottla.broker.journal import MAX_ENTRIES, MAX_NAME
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from support.wire_client import WireClient, new_broker


def test_the_oldest_requests_are_forgotten_and_counted() -> None:
    broker = new_broker()
    client = WireClient(broker)
    client.ask(ApiVersionsRequest(), 2)
    for _ in range(MAX_ENTRIES):
        client.ask(ApiVersionsRequest(), 0)
    assert (len(broker.journal), broker.journal.dropped) == (MAX_ENTRIES, 1)
    assert {entry.version for entry in broker.journal} == {0}


def test_of_an_endless_name_as_much_is_remembered_as_a_reader_needs() -> None:
    broker = new_broker()
    client = WireClient(broker, client_id="c" * 32_767)
    request = ApiVersionsRequest(client_software_name="s" * 32_767, client_software_version="1")
    client.ask(request, 3)
    [entry] = broker.journal
    cut = "… and 31767 more characters"
    assert entry.client_id == "c" * MAX_NAME + cut
    assert (entry.software_name, entry.software_version) == ("s" * MAX_NAME + cut, "1")
