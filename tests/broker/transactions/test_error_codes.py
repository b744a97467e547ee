"""Codes that are younger than an API come to no client that does not know them."""

import pytest
from ottla.broker.transactions.error_codes import known_to
from ottla.protocol.api_key import ApiKey
from ottla.protocol.error_code import ErrorCode

FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
ABORTABLE = (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE)


@pytest.mark.parametrize(
    ("api_key", "since", "codes"),
    [
        (ApiKey.INIT_PRODUCER_ID, 4, FENCED),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 2, FENCED),
        (ApiKey.ADD_OFFSETS_TO_TXN, 2, FENCED),
        (ApiKey.END_TXN, 2, FENCED),
        (ApiKey.PRODUCE, 11, ABORTABLE),
        (ApiKey.FIND_COORDINATOR, 5, ABORTABLE),
        (ApiKey.INIT_PRODUCER_ID, 5, ABORTABLE),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 5, ABORTABLE),
        (ApiKey.ADD_OFFSETS_TO_TXN, 4, ABORTABLE),
        (ApiKey.END_TXN, 4, ABORTABLE),
        (ApiKey.TXN_OFFSET_COMMIT, 4, ABORTABLE),
    ],
)
def test_a_code_is_told_from_the_version_on_that_has_it(
    api_key: int, since: int, codes: tuple[int, int]
) -> None:
    young, old = codes
    assert [known_to(api_key, version, young) for version in (since - 1, since)] == [old, young]


@pytest.mark.parametrize("api_key", [ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT])
def test_who_writes_is_told_of_an_old_epoch_and_never_of_fencing(api_key: int) -> None:
    told = known_to(api_key, 13, ErrorCode.PRODUCER_FENCED)
    assert told == ErrorCode.INVALID_PRODUCER_EPOCH
