"""Settings of a broker that are not as they are written."""

import pytest
from ottla.broker.configs.broker import BrokerConfig
from ottla.broker.configs.setting import InvalidConfigError


def test_the_number_of_a_node_has_two_names() -> None:
    assert BrokerConfig({"node.id": "7"}).number("broker.id") == 7
    assert BrokerConfig({"node.id": "7", "broker.id": "7"}).number("broker.id") == 7
    with pytest.raises(InvalidConfigError, match=r"node\.id is 7 and broker\.id 8"):
        BrokerConfig({"node.id": "7", "broker.id": "8"})
    with pytest.raises(InvalidConfigError, match=r"node\.id"):
        BrokerConfig({"node.id": "seven"})
