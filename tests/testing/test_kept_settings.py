"""What a client sets of features and groups is there when the broker comes back."""

from pathlib import Path

from ottla.broker.broker import Broker as Engine
from ottla.broker.configs.resources import GROUP, alter
from ottla.broker.features import level_of
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from ottla.testing import Broker
from support.wire_client import WireClient

SESSION = "consumer.session.timeout.ms"


def test_levels_of_features_and_settings_of_groups_survive_a_restart(tmp_path: Path) -> None:
    def change(broker: Engine) -> None:
        lowered = FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
        client = WireClient(broker)
        answer = client.ask(UpdateFeaturesRequest(feature_updates=[lowered]), 2)
        assert answer.error_code == 0
        alter(broker, GROUP, "g", {SESSION: "50000"}, validate_only=False)
        alter(broker, GROUP, "h", {SESSION: "50000"}, validate_only=False)
        alter(broker, GROUP, "h", {}, validate_only=False)

    def look(broker: Engine) -> tuple[dict[str, dict[str, str]], int, str]:
        level = level_of(broker.features, "group.version")
        return broker.group_settings, level, broker.log_dir

    directory = tmp_path / "data"
    with Broker(data=directory) as broker:
        broker.run(change)
    with Broker(data=directory) as broker:
        assert broker.run(look) == ({"g": {SESSION: "50000"}}, 0, str(directory))


def test_a_broker_with_a_seed_creates_topics_behind_a_restart(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    for number in range(3):
        with Broker(data=directory, seed=7) as broker:
            broker.create_topic(f"topic-{number}")
            assert broker.topics == {f"topic-{each}": 1 for each in range(number + 1)}
