import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import MalformedFrameError
from ottla.protocol.api_key import ApiKey
from ottla.protocol.header import read_request_header, request_header, response_header


@pytest.mark.parametrize(
    ("frame", "position", "client_id"),
    [
        # Produce 8 and 9 (flexible), of a client "me", of one without an id, with a tagged field.
        ("0000 0008 00000007 0002 6d65", 12, "me"),
        ("0000 0008 00000007 ffff", 10, ""),
        ("0000 0009 00000007 0002 6d65 00", 13, "me"),
        ("0000 0009 00000007 0002 6d65 01 05 02 0102", 17, "me"),
    ],
)
def test_a_request_header_is_as_flexible_as_its_request(
    frame: str, position: int, client_id: str
) -> None:
    header, end = read_request_header(bytes.fromhex(frame + "ffff"))
    assert (header.api_key, header.correlation_id, header.client_id) == (0, 7, client_id)
    assert end == position


def test_the_first_controlled_shutdown_has_no_client_id() -> None:
    header, position = read_request_header(bytes.fromhex("0007 0000 00000007 00000001"))
    assert (header.client_id, position) == ("", 8)


def test_a_header_of_an_unknown_api_is_read_without_tagged_fields() -> None:
    header, position = read_request_header(bytes.fromhex("7fff 7fff 00000001 0001 61 00"))
    assert (header.api_key, header.api_version, header.client_id) == (32767, 32767, "a")
    assert position == 11


@pytest.mark.parametrize(
    ("frame", "position", "what"),
    [
        ("", 0, "the frame ends inside its header"),
        ("0003 0001 000000", 0, "the frame ends inside its header"),
        ("0003 0001 00000007 00", 8, "the frame ends inside its header"),
        ("0003 0001 00000007 0002 61", 10, "client_id takes 2 bytes, of which 1 are left"),
        ("0003 0001 00000007 0002 c328", 10, "client_id is not UTF-8"),
        ("0003 0009 00000007 0001 61", 11, "the frame ends inside its header"),
    ],
)
def test_a_header_that_is_cut_or_no_text_is_malformed(frame: str, position: int, what: str) -> None:
    with pytest.raises(MalformedFrameError) as caught:
        read_request_header(bytes.fromhex(frame))
    assert (caught.value.position, caught.value.what) == (position, what)


@given(
    api_key=st.sampled_from(list(ApiKey)),
    version=st.integers(0, 20),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    client_id=st.none() | st.text(max_size=30),
)
def test_a_header_of_a_client_is_read_by_the_broker(
    api_key: ApiKey, version: int, correlation_id: int, client_id: str | None
) -> None:
    written = request_header(api_key, version, correlation_id, client_id)
    header, position = read_request_header(written + b"body")
    assert position == len(written)
    assert (header.api_key, header.api_version) == (api_key, version)
    assert header.correlation_id == correlation_id
    if (api_key, version) != (ApiKey.CONTROLLED_SHUTDOWN, 0):
        assert header.client_id == (client_id or "")


def test_the_answer_to_api_versions_never_has_tagged_fields_in_its_header() -> None:
    # A client finds the error code at one place, whatever version it asked for (KIP-511).
    assert response_header(ApiKey.API_VERSIONS, 4, 7) == b"\0\0\0\7"
    assert response_header(ApiKey.PRODUCE, 8, 7) == b"\0\0\0\7"
    assert response_header(ApiKey.PRODUCE, 9, 7) == b"\0\0\0\7\0"
