"""Options of captured sets are told as they were given, before any job."""

from typing import Any

import ottla.spark
import pytest

pytestmark = pytest.mark.spark

NUMBER = "expected a whole number, the name of a column or a Column"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"now_ms": 2.5}, f"now_ms is 2.5, {NUMBER}"),
        ({"now_ms": True}, f"now_ms is True, {NUMBER}"),
        ({"now_ms": None}, f"now_ms is None, {NUMBER}"),
        ({"base_offset": b"7"}, f"base_offset is b'7', {NUMBER}"),
        ({"origin": 5}, "origin is 5, expected text or a Column"),
        ({"transactional_id": ["a"]}, "transactional_id is ['a'], expected text or a Column"),
    ],
)
def test_a_value_of_another_type_is_told_as_it_was_given(given: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError) as raised:
        ottla.spark.validate_partition(**{"now_ms": 0, **given})
    assert str(raised.value) == says


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"origin": "Client"}, "not 'Client'"),
        ({"profile": "Strict"}, "not 'Strict'"),
        ({"kafka_version": "4,1"}, "kafka_version is '4,1'"),
        ({"api_version": 99}, "api_version is 99"),
    ],
)
def test_a_value_out_of_range_is_told_as_it_was_given(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ottla.spark.validate_partition(**{"now_ms": 0, **given})
