"""What is said of settings that are refused, or taken without effect."""

import pytest
from ottla.broker.configs.broker import BROKER_SETTINGS, BrokerConfig
from ottla.broker.configs.setting import InvalidConfigError
from ottla.broker.configs.without_effect import SELDOM_SET


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("log.segment.bytes", "20000", "Value must be at least 1048576"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "Value must be no more than 1"),
        ("num.partitions", "0", "Value must be at least 1"),
    ],
)
def test_a_bound_is_said_to_the_last_digit(name: str, text: str, said: str) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        BrokerConfig({name: text})
    assert str(caught.value) == f"Invalid value {text} for configuration {name}: {said}"


def test_settings_that_kafka_knows_are_taken_and_told_to_have_no_effect() -> None:
    config = BrokerConfig(dict.fromkeys(SELDOM_SET, "1"))
    assert config.ignored == tuple(sorted(SELDOM_SET))
    assert not {*SELDOM_SET} & {*BROKER_SETTINGS}
