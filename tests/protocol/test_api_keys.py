import pytest
from ottla import _engine
from ottla.protocol.api_key import FIRST_FLEXIBLE, ApiKey
from ottla.protocol.error_code import ErrorCode, is_retriable, name_of
from ottla.protocol.messages import request_of, response_of
from ottla.protocol.wire import schema
from support.messages import modules

DECLARED = [key for key in ApiKey if key.name.lower() in modules()]


@pytest.mark.parametrize("api_key", DECLARED)
def test_a_request_and_its_response_are_found_by_the_key_of_their_api(api_key: ApiKey) -> None:
    request, response = schema(request_of(api_key)), schema(response_of(api_key))
    assert request.api_key == response.api_key == api_key
    assert request.versions == response.versions


@pytest.mark.parametrize("api_key", DECLARED)
def test_headers_and_messages_are_flexible_in_the_same_versions(api_key: ApiKey) -> None:
    first = FIRST_FLEXIBLE.get(api_key)
    for declared in (schema(request_of(api_key)), schema(response_of(api_key))):
        assert (declared.flexible.start if declared.flexible else None) == first


def test_error_codes_are_those_of_the_engine() -> None:
    declared = {name: code for name, code in vars(ErrorCode).items() if name.isupper()}
    assert declared == {error.name: error.code for error in _engine.error_codes()}


def test_an_error_says_its_name_and_whether_to_try_again() -> None:
    assert name_of(ErrorCode.NOT_COORDINATOR) == "NOT_COORDINATOR"
    assert is_retriable(ErrorCode.NOT_COORDINATOR)
    assert not is_retriable(ErrorCode.INVALID_RECORD)
    assert (name_of(999), is_retriable(999)) == ("999", False)
